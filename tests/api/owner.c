/* A class that holds an array, and whose operators are those of the array: what Cython makes of such a class. */
#include <Python.h>

typedef struct {
    PyObject_HEAD
    PyObject *array;
} Owner;

static PyTypeObject OwnerType;

static PyObject *
array_of(PyObject *a)
{
    return Py_IS_TYPE(a, &OwnerType) ? ((Owner *)a)->array : a;
}

#define BINARY(X)                                                                                             \
    X(add, Add) X(subtract, Subtract) X(multiply, Multiply) X(true_divide, TrueDivide)                        \
    X(floor_divide, FloorDivide) X(remainder, Remainder) X(and, And) X(or, Or) X(xor, Xor)                    \
    X(lshift, Lshift) X(rshift, Rshift)
#define UNARY(X) X(negative, Negative) X(positive, Positive) X(invert, Invert) X(absolute, Absolute)
#define OF_TWO(slot, Name)                                                                                    \
    static PyObject *do_##slot(PyObject *a, PyObject *b) { return PyNumber_##Name(array_of(a), array_of(b)); }
#define OF_ONE(slot, Name)                                                                                    \
    static PyObject *do_##slot(PyObject *a) { return PyNumber_##Name(array_of(a)); }
BINARY(OF_TWO)
UNARY(OF_ONE)

static PyObject *
do_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    return PyNumber_Power(array_of(a), array_of(b), modulus);
}

static PyNumberMethods as_number = {
#define SLOT(slot, Name) .nb_##slot = do_##slot,
    BINARY(SLOT) UNARY(SLOT)
    .nb_power = do_power,
    .nb_matrix_multiply = do_add,
};
static PyMappingMethods as_mapping = {.mp_subscript = do_subtract};

/* What a function gives for the array. */
static PyObject *
call(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyObject *function = PyTuple_GET_ITEM(args, 0);
    return PyObject_VectorcallDict(function, &((Owner *)self)->array, 1, keywords);
}

static PyObject *
new_owner(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *array;
    if (!PyArg_ParseTuple(args, "O", &array))
        return NULL;
    Owner *self = (Owner *)type->tp_alloc(type, 0);
    if (self != NULL)
        self->array = Py_NewRef(array);
    return (PyObject *)self;
}

static void
dealloc(PyObject *self)
{
    Py_XDECREF(((Owner *)self)->array);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
get_array(PyObject *self, void *unused)
{
    return Py_NewRef(array_of(self));
}

static PyGetSetDef attributes[] = {{"array", get_array}, {NULL}};
static PyTypeObject OwnerType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "owner.Owner",
    .tp_basicsize = sizeof(Owner),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new_owner,
    .tp_dealloc = dealloc,
    .tp_getset = attributes,
    .tp_call = call,
    .tp_as_number = &as_number,
    .tp_as_mapping = &as_mapping,
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "owner", .m_size = -1};

PyMODINIT_FUNC
PyInit_owner(void)
{
    if (PyType_Ready(&OwnerType) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyModule_AddObjectRef(module, "Owner", (PyObject *)&OwnerType) < 0
        || PyDict_SetItemString(OwnerType.tp_dict, "__array_ufunc__", Py_None) < 0)
        return NULL;
    return module;
}
