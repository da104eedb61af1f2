/* An array's memory, lent to NumPy and to who works by NumPy's arrays; `lent.py` says what that means.
 *
 * What NumPy is given is a view of a view, whose memory is a keeper's: views of views have the array below the first one
 * that is not NumPy's for their base, so that the keeper goes with the last of them. */

typedef struct {
    PyObject_HEAD
    PyObject *cell, *memory;
} Keeper;

static void
keeper_dealloc(PyObject *self)
{
    Keeper *keeper = (Keeper *)self;
    Cell *cell = (Cell *)keeper->cell;
    if (cell->lent > 0 && --cell->lent == 0)
        cell->shared = 0;
    Py_DECREF(keeper->cell);
    Py_DECREF(keeper->memory);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef keeper_members[] = {
    {"kept", T_OBJECT, offsetof(Keeper, memory), READONLY, "What is lent: `copying.owner` looks through it."},
    {NULL},
};

static PyTypeObject KeeperType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spartan_ng.api.core._quick.Keeper",
    .tp_basicsize = sizeof(Keeper),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Who has an array's memory.",
    .tp_dealloc = keeper_dealloc,
    .tp_members = keeper_members,
};

/* A view of an array that another object keeps. */
static PyObject *
view_kept(PyArrayObject *a, PyObject *keeper, int flags)
{
    Py_INCREF(PyArray_DESCR(a));
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(a), PyArray_NDIM(a), PyArray_DIMS(a),
                                          PyArray_STRIDES(a), PyArray_DATA(a), flags & NPY_ARRAY_WRITEABLE, NULL);
    if (view == NULL)
        Py_DECREF(keeper);
    else if (PyArray_SetBaseObject((PyArrayObject *)view, keeper) < 0)
        Py_CLEAR(view);
    return view;
}

/* What an array shows, lent to NumPy (a new reference); NULL without an error where it is not here, or somebody else has
 * a claim on it. */
static PyObject *
lent_of(Handle *array)
{
    if (settle_all() < 0)
        return NULL;
    Cell *cell = cell_of(array);
    PyArrayObject *shown = value_of(array);
    if (cell == NULL || shown == NULL || !PyArray_CheckExact(cell->value) || cell->frozen)
        return NULL;
    int is_free = is_none(cell->node) && is_none(cell->masked) && !cell->borrowed && !cell->blank;
    if (cell->shared ? cell->lent == 0 : !(is_free && PyArray_ISWRITEABLE((PyArrayObject *)cell->value)))
        return cell->shared ? view_kept(shown, Py_NewRef(shown), PyArray_FLAGS(shown)) : NULL;
    Keeper *keeper = PyObject_New(Keeper, &KeeperType);
    if (keeper == NULL)
        return NULL;
    keeper->cell = Py_NewRef(cell);
    keeper->memory = Py_NewRef(shown);
    cell->shared = 1;
    cell->lent++;
    PyObject *memory = view_kept(shown, (PyObject *)keeper, PyArray_FLAGS((PyArrayObject *)cell->value));
    return memory == NULL ? NULL : view_kept(shown, memory, PyArray_FLAGS(shown));
}

/* `lend(a)`: the same or None. */
static PyObject *
lend(PyObject *module, PyObject *a)
{
    if (!PyObject_TypeCheck(a, &HandleFields)) {
        PyErr_SetString(PyExc_TypeError, "only an array is lent");
        return NULL;
    }
    PyObject *lent = lent_of((Handle *)a);
    return lent == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : lent;
}

/* The elements as NumPy asks for them, of any dtype: where they lie, or a copy of few. */
static PyObject *
array(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    const Operator *op = &operators[op_array];
    PyObject *method = method_of(op, op->method), *all[4] = {self}, *found = NULL;
    Py_ssize_t more = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    if (method == NULL)
        return NULL;
    if (n + more >= (Py_ssize_t)Py_ARRAY_LENGTH(all)) {
        PyErr_SetString(PyExc_TypeError, "__array__ takes a dtype and whether to copy");
        return NULL;
    }
    PyArrayObject *shown = Py_TYPE(self) == known.array ? value_of((Handle *)self) : NULL;
    if (shown != NULL && (n == 0 || (n == 1 && (args[0] == Py_None || args[0] == (PyObject *)PyArray_DESCR(shown))))) {
        if (more == 0)
            found = lent_of((Handle *)self);
        else if (more == 1 && args[n] == Py_True && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "copy") == 0
                 && of_numbers((PyObject *)shown) != NULL && PyTuple_GET_SIZE(((Handle *)self)->views) == 0
                 && PyArray_NBYTES(shown) < Py_MIN(known.least, small_bytes()))
            found = PyArray_NewCopy(shown, NPY_KEEPORDER);
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    memcpy(all + 1, args, (n + more) * sizeof(PyObject *));
    return PyObject_Vectorcall(method, all, n + 1, names);
}
