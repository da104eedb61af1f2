/* What the first axis of an array has, one after the other. */

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
