/* Elements that are no numbers; and rows that are named by a few indices, without what NumPy asks of any index. */

enum { MOST_NAMED = 64 }; /* indices in a list for which NumPy is asked first: `_SHORT` of the methods */

/* The element that lies at a place, as NumPy gives it; NULL, without an error where the methods know more of it: of an
 * object that is an array, and of a record while its array is not written where it lies. */
static PyObject *
element_at(PyArrayObject *shown, char *place, int is_shared)
{
    int type = PyArray_TYPE(shown);
    if (type == NPY_OBJECT) {
        PyObject *object;
        memcpy(&object, place, sizeof object);
        return object == NULL || PyArray_Check(object) ? NULL : Py_NewRef(object);
    }
    if (type >= NPY_NTYPES_LEGACY || (type == NPY_VOID && !is_shared))
        return NULL;
    return PyArray_Scalar(place, PyArray_DESCR(shown), (PyObject *)shown);
}

/* Whether an object is a number or a text of Python's, or None. */
static int
is_pythons(PyObject *value)
{
    return value == Py_None || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) || PyBool_Check(value)
           || PyLong_CheckExact(value) || PyFloat_CheckExact(value);
}

/* Whether the methods would have NumPy set an element of this type, which is none of numbers, to the value as it is. */
static int
is_for(int type, PyObject *value)
{
    switch (type) {
    case NPY_OBJECT:
        return is_pythons(value);
    case NPY_DATETIME:
        return Py_IS_TYPE(value, &PyDatetimeArrType_Type);
    case NPY_TIMEDELTA:
        return Py_IS_TYPE(value, &PyTimedeltaArrType_Type);
    case NPY_STRING:
    case NPY_UNICODE:
        return PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) || Py_IS_TYPE(value, &PyUnicodeArrType_Type)
               || Py_IS_TYPE(value, &PyStringArrType_Type);
    case NPY_VOID:
        for (Py_ssize_t i = 0; PyTuple_CheckExact(value) && i < PyTuple_GET_SIZE(value); i++)
            if (!is_pythons(PyTuple_GET_ITEM(value, i)))
                return 0;
        return PyTuple_CheckExact(value) || Py_IS_TYPE(value, &PyVoidArrType_Type);
    }
    return 0;
}

/* Whether a part of a key lists integers. */
static int
lists(PyObject *part)
{
    return PyList_CheckExact(part) || PyRange_Check(part);
}

/* A list, or a range, of a few integers as an array of indices (a new reference), or NULL without an error. */
static PyObject *
listed_index(PyObject *listed)
{
    npy_intp n = PyList_CheckExact(listed) ? PyList_GET_SIZE(listed) : 0, found[MOST_NAMED];
    if (PyRange_Check(listed)) {
        Py_ssize_t length = PySequence_Size(listed);
        PyObject *items = length < 1 || length > MOST_NAMED ? NULL : PySequence_List(listed), *index = NULL;
        if (items != NULL)
            index = listed_index(items);
        Py_XDECREF(items);
        PyErr_Clear();
        return index;
    }
    if (n < 1 || n > MOST_NAMED)
        return NULL;
    for (npy_intp i = 0; i < n; i++) {
        PyObject *part = PyList_GET_ITEM(listed, i);
        if (!PyLong_CheckExact(part) && !is_among(known.integers, part))
            return NULL;
        found[i] = PyNumber_AsSsize_t(part, PyExc_IndexError);
        if (found[i] == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return NULL;
        }
    }
    PyObject *index = PyArray_SimpleNew(1, &n, NPY_INTP);
    if (index == NULL)
        PyErr_Clear();
    else
        memcpy(PyArray_DATA((PyArrayObject *)index), found, n * sizeof(npy_intp));
    return index;
}

/* Bytes of each row that indices name of an array of numbers in one piece, and the rows' numbers; 0 where NumPy is to
 * look at them. */
static npy_intp
named_rows(PyArrayObject *a, PyArrayObject *index, npy_intp *rows)
{
    int is_line = PyArray_NDIM(index) == 1 && PyArray_TYPE(index) == NPY_INTP && PyArray_IS_C_CONTIGUOUS(index)
                  && PyArray_ISBEHAVED_RO(index) && PyArray_SIZE(index) <= MOST_NAMED;
    if (!is_line || PyArray_NDIM(a) < 1 || !PyArray_IS_C_CONTIGUOUS(a) || !PyArray_ISBEHAVED_RO(a) || PyArray_SIZE(a) == 0
        || of_numbers((PyObject *)a) == NULL)
        return 0;
    npy_intp n = PyArray_DIM(a, 0);
    for (npy_intp k = 0; k < PyArray_SIZE(index); k++) {
        npy_intp i = ((npy_intp *)PyArray_DATA(index))[k];
        rows[k] = i < 0 ? i + n : i;
        if (rows[k] < 0 || rows[k] >= n)
            return 0;
    }
    return PyArray_NBYTES(a) / n;
}

/* The rows of an array that indices name (a new reference); NULL, without an error where NumPy is to find them. */
static PyObject *
taken(PyArrayObject *a, PyArrayObject *index)
{
    npy_intp rows[MOST_NAMED], shape[NPY_MAXDIMS], row = named_rows(a, index, rows);
    if (row == 0)
        return NULL;
    memcpy(shape, PyArray_DIMS(a), PyArray_NDIM(a) * sizeof(npy_intp));
    shape[0] = PyArray_SIZE(index);
    Py_INCREF(PyArray_DESCR(a));
    PyObject *found = PyArray_SimpleNewFromDescr(PyArray_NDIM(a), shape, PyArray_DESCR(a));
    for (npy_intp k = 0; found != NULL && k < shape[0]; k++)
        memcpy(PyArray_BYTES((PyArrayObject *)found) + k * row, PyArray_BYTES(a) + rows[k] * row, row);
    return found;
}

/* Whether two arrays that lie each in one piece have no byte in common. */
static int
lie_apart(PyArrayObject *a, PyArrayObject *b)
{
    return PyArray_BYTES(a) + PyArray_NBYTES(a) <= PyArray_BYTES(b) || PyArray_BYTES(b) + PyArray_NBYTES(b) <= PyArray_BYTES(a);
}

/* Whether the rows of an array that indices name were set to those of another one; 0 where NumPy is to do it. */
static int
put_rows(PyArrayObject *a, PyArrayObject *index, PyArrayObject *value)
{
    npy_intp rows[MOST_NAMED], row;
    int ndim = PyArray_NDIM(a);
    int fits = ndim > 0 && PyArray_NDIM(value) == ndim && PyArray_DESCR(value) == PyArray_DESCR(a)
               && PyArray_DIM(value, 0) == PyArray_SIZE(index)
               && PyArray_CompareLists(PyArray_DIMS(value) + 1, PyArray_DIMS(a) + 1, ndim - 1);
    if (!fits || !PyArray_IS_C_CONTIGUOUS(value) || !PyArray_ISWRITEABLE(a) || (row = named_rows(a, index, rows)) == 0
        || !lie_apart(a, value) || !lie_apart(a, index))
        return 0;
    for (npy_intp k = 0; k < PyArray_SIZE(index); k++)
        memcpy(PyArray_BYTES(a) + rows[k] * row, PyArray_BYTES(value) + k * row, row);
    return 1;
}
