/* What an array has, one after the other: along its first axis, or of all axes in C's order. */

/* How a row is seen from its base, and NumPy's view of it. */
typedef struct {
    PyObject *views, *shown;
} Line;

enum { LINES = 2 }; /* a loop drops a row when it has been given the next one */
enum { OF_LAYOUT = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS | NPY_ARRAY_OWNDATA }; /* flags */

typedef struct {
    PyObject_HEAD
    PyObject *array;
    PyObject *views;      /* of the array, which those of its rows begin with */
    Line lines[LINES];    /* of the last rows, for the next ones once those have gone */
    Py_ssize_t at, count; /* of the next; of all, as the iteration begins */
} Rows;

static void
forget_lines(Rows *rows)
{
    Py_CLEAR(rows->views);
    for (int i = 0; i < LINES; i++) {
        Py_CLEAR(rows->lines[i].views);
        Py_CLEAR(rows->lines[i].shown);
    }
}

/* Whether nobody has a row any more, and NumPy's view shows one of an array's rows as NumPy would make it. */
static int
is_free_line(const Line *line, PyArrayObject *array)
{
    if (line->views == NULL || Py_REFCNT(line->views) != 1 || Py_REFCNT(line->shown) != 1)
        return 0;
    PyArrayObject *shown = (PyArrayObject *)line->shown;
    PyObject *base = PyArray_BASE(shown);
    int axes = PyArray_NDIM(array) - 1, others = (PyArray_FLAGS(shown) ^ PyArray_FLAGS(array)) & ~OF_LAYOUT;
    return PyArray_NDIM(shown) == axes && PyArray_DESCR(shown) == PyArray_DESCR(array) && others == 0
           && (base == (PyObject *)array || base == PyArray_BASE(array)) && PyArray_ISALIGNED(array)
           && ((PyArrayObject_fields *)shown)->weakreflist == NULL
           && PyArray_CompareLists(PyArray_DIMS(shown), PyArray_DIMS(array) + 1, axes)
           && PyArray_CompareLists(PyArray_STRIDES(shown), PyArray_STRIDES(array) + 1, axes);
}

/* The row of an array at an index, its reference taken, as another one that has gone; NULL with an error. */
static PyObject *
line_again(Handle *array, const Line *line, char *place, PyObject *index)
{
    PyTupleObject *views = (PyTupleObject *)line->views;
    Py_SETREF(views->ob_item[Py_SIZE(views) - 1], index);
#if PY_VERSION_HEX >= 0x030E0000
    views->ob_hash = -1;
#endif
    ((PyArrayObject_fields *)line->shown)->data = place;
    return made(Py_NewRef(array->cell), Py_NewRef(line->views), cell_of(array)->value, Py_NewRef(line->shown));
}

/* The next row of an array of several axes; NULL, also without an error, where the methods have to make it. */
static PyObject *
next_row(Rows *rows, Handle *array, PyArrayObject *shown)
{
    Line *line = &rows->lines[rows->at % LINES];
    PyObject *index = PyLong_FromSsize_t(rows->at);
    if (index == NULL)
        return NULL;
    if (rows->views != array->views) {
        forget_lines(rows);
        rows->views = Py_NewRef(array->views);
    }
    if (is_free_line(line, shown))
        return line_again(array, line, PyArray_BYTES(shown) + rows->at * PyArray_STRIDE(shown, 0), index);
    PyObject *found = PyArray_Type.tp_as_sequence->sq_item((PyObject *)shown, rows->at);
    PyObject *row = found == NULL ? NULL : seen(array, index, found);
    if (row != NULL) {
        Py_XSETREF(line->views, Py_NewRef(((Handle *)row)->views));
        Py_XSETREF(line->shown, Py_NewRef(found));
    }
    Py_DECREF(index);
    return row;
}

static int
rows_clear(PyObject *self)
{
    ((Rows *)self)->count = 0;
    Py_CLEAR(((Rows *)self)->array);
    forget_lines((Rows *)self);
    return 0;
}

static PyObject *
rows_next(PyObject *self)
{
    Rows *rows = (Rows *)self;
    if (rows->at >= rows->count) {
        rows_clear(self);
        return NULL;
    }
    PyArrayObject *shown = settle_all() < 0 || Py_TYPE(rows->array) != known.array ? NULL : shown_of((Handle *)rows->array);
    if (PyErr_Occurred())
        return NULL;
    int is_there = shown != NULL && PyArray_NDIM(shown) > 0 && rows->at < PyArray_DIM(shown, 0);
    if (is_there && PyArray_NDIM(shown) == 1)
        return PyArray_Scalar(PyArray_BYTES(shown) + rows->at++ * PyArray_STRIDE(shown, 0), PyArray_DESCR(shown), (PyObject *)shown);
    PyObject *array = Py_NewRef(rows->array), *found = is_there ? next_row(rows, (Handle *)array, shown) : NULL;
    if (found == NULL && !PyErr_Occurred()) {
        PyObject *index = PyLong_FromSsize_t(rows->at);
        found = index == NULL ? NULL : part_by_key(array, index);
        Py_XDECREF(index);
    }
    Py_DECREF(array);
    rows->at++;
    return found;
}

static int
rows_traverse(PyObject *self, visitproc visit, void *arg)
{
    Rows *rows = (Rows *)self;
    Py_VISIT(rows->array);
    Py_VISIT(rows->views);
    for (int i = 0; i < LINES; i++) {
        Py_VISIT(rows->lines[i].views);
        Py_VISIT(rows->lines[i].shown);
    }
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

static PyObject *following_name, *read_flat_name, *write_flat_name;

/* The array that is walked over, if it is one of ours whose class has no ways of its own; NULL without an error. */
static Handle *
walked(PyObject *self)
{
    PyObject *base = ((Walker *)self)->base;
    return base != NULL && known.array != NULL && Py_TYPE(base) == known.array ? (Handle *)base : NULL;
}

/* Where the element lies that is so far from the first one, in C's order. */
static char *
place_in_order(PyArrayObject *array, Py_ssize_t left)
{
    char *place = PyArray_BYTES(array);
    for (int axis = PyArray_NDIM(array) - 1; axis > 0; axis--) {
        place += left % PyArray_DIM(array, axis) * PyArray_STRIDE(array, axis);
        left /= PyArray_DIM(array, axis);
    }
    return PyArray_NDIM(array) > 0 ? place + left * PyArray_STRIDE(array, 0) : place;
}

static PyObject *
walker_next(PyObject *self)
{
    Walker *walker = (Walker *)self;
    if (settle_all() < 0)
        return NULL;
    PyArrayObject *shown = walked(self) == NULL ? NULL : shown_of(walked(self));
    if (shown == NULL)
        return PyObject_CallMethodNoArgs(self, following_name);
    if (walker->index >= PyArray_SIZE(shown))
        return NULL;
    return PyArray_Scalar(place_in_order(shown, walker->index++), PyArray_DESCR(shown), (PyObject *)shown);
}

/* Where the element of an array lies that one of Python's integers names in C's order; NULL, without an error, for none. */
static char *
named_in_order(PyArrayObject *array, PyObject *key)
{
    Py_ssize_t i = PyLong_CheckExact(key) ? PyLong_AsSsize_t(key) : PY_SSIZE_T_MAX, size = PyArray_SIZE(array);
    if (i == -1 && PyErr_Occurred()) { /* the methods say what is wrong */
        PyErr_Clear();
        return NULL;
    }
    if (i < 0)
        i += size;
    return i < 0 || i >= size ? NULL : place_in_order(array, i);
}

static PyObject *
walker_read(PyObject *self, PyObject *key)
{
    if (settle_all() < 0)
        return NULL;
    PyArrayObject *shown = walked(self) == NULL ? NULL : shown_of(walked(self));
    char *place = shown == NULL ? NULL : named_in_order(shown, key);
    if (place == NULL)
        return PyObject_CallMethodOneArg(self, read_flat_name, key);
    ((Walker *)self)->index = 0; /* as NumPy's goes on from there */
    return PyArray_Scalar(place, PyArray_DESCR(shown), (PyObject *)shown);
}

/* Whether the element that an integer names was set to a number that its type takes; 0 where the methods have to do it. */
static int
is_put_in_order(Handle *array, PyObject *key, PyObject *value)
{
    Pair number;
    PyArrayObject *shown = array == NULL ? NULL : shown_of(array);
    if (shown == NULL || !is_number(value) || !as_element(value, PyArray_TYPE(shown), (char *)&number))
        return 0;
    PyArrayObject *target = opened(array, shown);
    int is_open = target != NULL && PyArray_ISWRITEABLE(target) && PyArray_ISNOTSWAPPED(target);
    char *place = is_open ? named_in_order(target, key) : NULL;
    if (place != NULL)
        memcpy(place, &number, PyArray_ITEMSIZE(target));
    Py_XDECREF(target);
    return place != NULL;
}

static int
walker_write(PyObject *self, PyObject *key, PyObject *value)
{
    if (value == NULL) {
        PyErr_SetString(PyExc_TypeError, "Cannot delete iterator elements");
        return -1;
    }
    if (settle_all() < 0)
        return -1;
    if (is_put_in_order(walked(self), key, value)) {
        ((Walker *)self)->index = 0;
        return 0;
    }
    if (PyErr_Occurred())
        return -1;
    PyObject *done = PyObject_CallMethodObjArgs(self, write_flat_name, key, value, NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static PyMappingMethods walker_mapping = {
    .mp_subscript = walker_read,
    .mp_ass_subscript = walker_write,
};

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
    .tp_as_mapping = &walker_mapping,
    .tp_members = walker_members,
    .tp_new = PyType_GenericNew,
    .tp_traverse = walker_traverse,
    .tp_clear = walker_clear,
    .tp_dealloc = walker_dealloc,
};
