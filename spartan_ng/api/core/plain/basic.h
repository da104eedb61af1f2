/* Keys of integers, slices and new axes, which show parts of arrays, and what goes into these of other classes' arrays. */

static int
is_simple(PyObject *part)
{
    return PyLong_CheckExact(part) || PySlice_Check(part) || part == Py_None || part == Py_Ellipsis;
}

static int
is_integer(PyObject *part)
{
    return is_among(known.integers, part);
}

/* A key as one of Python's integers or slices, or a tuple of simple ones (a new reference), or NULL without an error. */
static PyObject *
basic_key(PyObject *key)
{
    if (PyLong_CheckExact(key) || PySlice_Check(key))
        return Py_NewRef(key);
    if (key == Py_None || key == Py_Ellipsis)
        return PyTuple_Pack(1, key);
    if (!PyTuple_CheckExact(key)) {
        PyObject *index = is_integer(key) ? PyNumber_Long(key) : NULL;
        if (index == NULL)
            PyErr_Clear();
        return index;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(key), simple = 0;
    while (simple < n && is_simple(PyTuple_GET_ITEM(key, simple)))
        simple++;
    if (simple == n)
        return Py_NewRef(key);
    for (Py_ssize_t i = simple; i < n; i++)
        if (!is_simple(PyTuple_GET_ITEM(key, i)) && !is_integer(PyTuple_GET_ITEM(key, i)))
            return NULL;
    PyObject *plain = PyTuple_New(n);
    for (Py_ssize_t i = 0; plain != NULL && i < n; i++) {
        PyObject *part = PyTuple_GET_ITEM(key, i);
        PyObject *index = is_simple(part) ? Py_NewRef(part) : PyNumber_Long(part);
        if (index == NULL)
            Py_CLEAR(plain);
        else
            PyTuple_SET_ITEM(plain, i, index);
    }
    if (plain == NULL)
        PyErr_Clear();
    return plain;
}

/* The elements of an array of a class derived from NumPy's, where they go into what a basic key shows of an array (a new
 * reference); NULL, without an error, of one for an element, and for all else. */
static PyObject *
elements_for(PyObject *self, PyObject *key, PyObject *value)
{
    PyArrayObject *shown = shown_of((Handle *)self);
    PyObject *plain = shown == NULL || !is_silent_key(key) ? NULL : basic_key(key), *found = NULL;
    PyObject *part = plain == NULL ? NULL : PyArray_Type.tp_as_mapping->mp_subscript((PyObject *)shown, plain);
    if (part != NULL && PyArray_CheckExact(part))
        found = PyArray_View((PyArrayObject *)value, NULL, &PyArray_Type);
    Py_XDECREF(part);
    Py_XDECREF(plain);
    PyErr_Clear();
    if (found != NULL && of_numbers(found) == NULL)
        Py_CLEAR(found);
    return found;
}
