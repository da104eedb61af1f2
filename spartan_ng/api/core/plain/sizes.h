/* How many elements arguments ask for, where they say it. */

/* Elements of a shape, -1 where it is none that is plain. */
static double
shape_size(PyObject *shape)
{
    Py_ssize_t n = PyTuple_CheckExact(shape) ? PyTuple_GET_SIZE(shape) : 1;
    double size = 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *length = PyTuple_CheckExact(shape) ? PyTuple_GET_ITEM(shape, i) : shape;
        double found = PyLong_CheckExact(length) ? PyLong_AsDouble(length) : -1;
        if (!(found >= 0))
            return -1; /* also with an error */
        size *= found;
    }
    return size;
}

/* Elements of a range from one number to another, -1 where they are none that are plain. */
static double
range_size(PyObject *const *args, Py_ssize_t n)
{
    double at[3] = {0, 0, 1};
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!PyLong_CheckExact(args[i]) && !PyFloat_CheckExact(args[i]) && !PyArray_IsScalar(args[i], Integer)
            && !PyArray_IsScalar(args[i], Double))
            return -1;
        at[i] = PyFloat_AsDouble(args[i]);
        if (at[i] == -1 && PyErr_Occurred())
            return -1;
    }
    return fabs((at[1] - at[0]) / at[2]);
}

/* Elements of what repeats those of an array as often as a number says, or as numbers of NumPy's default integers; -1 where
 * that is another question. */
static double
repeated_size(PyObject *array, PyObject *times)
{
    PyArrayObject *counts = PyArray_CheckExact(times) ? (PyArrayObject *)times : NULL;
    double size = PyArray_CheckExact(array) ? (double)PyArray_SIZE((PyArrayObject *)array) : -1, sum = 0;
    if (PyLong_CheckExact(times))
        return size * PyLong_AsDouble(times);
    if (counts == NULL || PyArray_TYPE(counts) != NPY_LONG || PyArray_NDIM(counts) != 1 || !PyArray_ISBEHAVED_RO(counts))
        return -1;
    for (npy_intp i = 0; i < PyArray_DIM(counts, 0); i++) {
        long n = *(npy_long *)PyArray_GETPTR1(counts, i);
        if (n < 0)
            return -1;
        sum += (double)n;
    }
    return sum * size / (double)Py_MAX(PyArray_DIM(counts, 0), 1);
}
