/* What an array has, one after the other: along its first axis, or of all axes in C's order. */

typedef struct {
    PyObject_HEAD
    PyObject *array;
    Py_ssize_t at, count; /* of the next; of all, as the iteration begins */
} Rows;

static PyObject *
rows_next(PyObject *self)
{
    Rows *rows = (Rows *)self;
    if (rows->at >= rows->count) {
        Py_CLEAR(rows->array);
        return NULL;
    }
    PyArrayObject *line = settle_all() < 0 || Py_TYPE(rows->array) != known.array ? NULL : shown_of((Handle *)rows->array);
    if (PyErr_Occurred())
        return NULL;
    if (line != NULL && PyArray_NDIM(line) == 1 && rows->at < PyArray_DIM(line, 0))
        return PyArray_Scalar(PyArray_BYTES(line) + rows->at++ * PyArray_STRIDE(line, 0), PyArray_DESCR(line), (PyObject *)line);
    PyObject *index = PyLong_FromSsize_t(rows->at++), *array = index == NULL ? NULL : Py_NewRef(rows->array);
    PyObject *found = array == NULL ? NULL : getitem(array, index);
    Py_XDECREF(array);
    Py_XDECREF(index);
    return found;
}

static int
rows_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Rows *)self)->array);
    return 0;
}

static int
rows_clear(PyObject *self)
{
    ((Rows *)self)->count = 0;
    Py_CLEAR(((Rows *)self)->array);
    return 0;
}

static void
rows_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    rows_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject RowsType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spartan_ng.api.core._quick.Rows",
    .tp_basicsize = sizeof(Rows),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What the first axis of an array has.",
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = rows_next,
    .tp_traverse = rows_traverse,
    .tp_clear = rows_clear,
    .tp_dealloc = rows_dealloc,
};

static PyObject *
iterate(PyObject *self)
{
    const Operator *op = &operators[op_iter];
    PyArrayObject *shown = Py_TYPE(self) == known.array ? value_of((Handle *)self) : NULL;
    if (shown == NULL || PyArray_NDIM(shown) < 1)
        return method_of(op, op->method) == NULL ? NULL : call_one(op->method, self);
    Rows *rows = (Rows *)RowsType.tp_alloc(&RowsType, 0);
    if (rows != NULL) {
        rows->array = Py_NewRef(self);
        rows->count = PyArray_DIM(shown, 0);
    }
    return (PyObject *)rows;
}

/* What `a.flat` has, which walks over an array. */
typedef struct {
    PyObject_HEAD
    PyObject *base;
    Py_ssize_t index; /* of the next */
} Walker;

static PyObject *following_name;

static PyObject *
walker_next(PyObject *self)
{
    Walker *walker = (Walker *)self;
    PyArrayObject *shown = NULL;
    if (settle_all() < 0)
        return NULL;
    if (walker->base != NULL && known.array != NULL && Py_TYPE(walker->base) == known.array)
        shown = shown_of((Handle *)walker->base);
    if (shown == NULL)
        return PyObject_CallMethodNoArgs(self, following_name);
    if (walker->index >= PyArray_SIZE(shown))
        return NULL;
    char *place = PyArray_BYTES(shown);
    Py_ssize_t left = walker->index++;
    for (int axis = PyArray_NDIM(shown) - 1; axis >= 0; axis--) {
        place += left % PyArray_DIM(shown, axis) * PyArray_STRIDE(shown, axis);
        left /= PyArray_DIM(shown, axis);
    }
    return PyArray_Scalar(place, PyArray_DESCR(shown), (PyObject *)shown);
}

static int
walker_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Walker *)self)->base);
    return 0;
}

static int
walker_clear(PyObject *self)
{
    Py_CLEAR(((Walker *)self)->base);
    return 0;
}

static void
walker_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    walker_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef walker_members[] = {
    {"base", T_OBJECT_EX, offsetof(Walker, base), 0, "The array."},
    {"_index", T_PYSSIZET, offsetof(Walker, index), 0, NULL},
    {NULL},
};

static PyTypeObject WalkerType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spartan_ng.api.core._quick.Walker",
    .tp_basicsize = sizeof(Walker),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "The elements of an array in C's order.",
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = walker_next,
    .tp_members = walker_members,
    .tp_new = PyType_GenericNew,
    .tp_traverse = walker_traverse,
    .tp_clear = walker_clear,
    .tp_dealloc = walker_dealloc,
};
