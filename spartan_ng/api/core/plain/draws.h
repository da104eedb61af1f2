/* Few numbers of a generator, drawn by NumPy's method of the generator that ours has. */

enum { MOST_DRAWN = 1 << 10 }; /* numbers: `_DRAWN` of the door */

static PyObject *numpy_name, *size_name;

/* Whether a size asks for one number, or for few where small arrays are NumPy's. */
static int
is_few_to_draw(PyObject *size)
{
    if (size == Py_None)
        return 1;
    Py_ssize_t n = PyTuple_CheckExact(size) ? PyTuple_GET_SIZE(size) : 1;
    double count = 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *length = PyTuple_CheckExact(size) ? PyTuple_GET_ITEM(size, i) : size;
        if (!PyLong_CheckExact(length))
            return 0;
        double found = PyLong_AsDouble(length);
        if (found == -1 && PyErr_Occurred())
            PyErr_Clear();
        if (!(found >= 0 && found <= MOST_DRAWN))
            return 0;
        count *= found;
    }
    return count <= MOST_DRAWN && small_bytes() >= known.surely;
}

/* What a method of NumPy's generators gives for parameters that are numbers, and a size at its place, if that is not
 * negative; NULL, also without an error, where Python is to see to it. */
static PyObject *
drawn_at_once(PyObject *numpys, Py_ssize_t place, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *values[MOST_GIVEN + 1] = {NULL}, *found = NULL;
    Py_ssize_t total = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names)), i = 1;
    for (; i < total; i++) {
        int is_size = i < n ? i == place : PyUnicode_Compare(PyTuple_GET_ITEM(names, i - n), size_name) == 0;
        int is_plain = is_size ? is_few_to_draw(args[i]) : args[i] == Py_None || is_number(args[i]);
        values[i + 1] = is_plain ? plain_of(args[i]) : NULL;
        if (values[i + 1] == NULL)
            goto done;
    }
    values[1] = PyObject_GetAttr(args[0], numpy_name);
    if (values[1] != NULL)
        found = PyObject_Vectorcall(numpys, values + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
    if (found != NULL && !PyFloat_CheckExact(found) && !PyLong_CheckExact(found)) /* one number may be Python's */
        found = wrapped(found);
done:
    Py_XDECREF(values[1]);
    for (Py_ssize_t k = 2; k <= i && k <= total; k++)
        Py_XDECREF(values[k]);
    return found;
}
