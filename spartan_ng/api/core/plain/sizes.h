/* How many elements arguments ask for, where they say it. */

static int
is_listed(PyObject *a)
{
    return PyList_CheckExact(a) || PyTuple_CheckExact(a);
}

/* Whether an object is an integer, of Python's, NumPy's or ours. */
static int
is_length(PyObject *a)
{
    return PyLong_CheckExact(a) || is_among(known.integers, a);
}

/* Elements of a shape, -1 where it is none that is plain. */
static double
shape_size(PyObject *shape)
{
    int is_one = !is_listed(shape);
    Py_ssize_t n = is_one ? 1 : PySequence_Fast_GET_SIZE(shape);
    double size = 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *length = is_one ? shape : PySequence_Fast_GET_ITEM(shape, i);
        double found = is_length(length) ? PyFloat_AsDouble(length) : -1;
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
    if (!PyArray_CheckExact(array))
        return -1;
    double size = (double)PyArray_SIZE((PyArrayObject *)array), sum = 0;
    if (is_length(times))
        return size * PyFloat_AsDouble(times);
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

/* A number of lines, or of those that are in a line; -1 where it is neither. */
static double
lines_of(PyObject *value)
{
    if (PyArray_CheckExact(value))
        return PyArray_NDIM((PyArrayObject *)value) == 1 ? (double)PyArray_SIZE((PyArrayObject *)value) : -1;
    double n = is_length(value) ? PyFloat_AsDouble(value) : -1;
    if (n == -1 && PyErr_Occurred())
        PyErr_Clear();
    return n;
}

/* Numbers in a progression, the third argument or the keyword `num`, else fifty; -1 where it is no number. */
static double
counted_size(PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *count = n > 2 ? args[2] : NULL;
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "num") == 0)
            count = args[n + i];
    return count == NULL ? 50 : is_length(count) ? lines_of(count) : -1;
}

/* At least the elements of a matrix, by its lines, and its columns or how far its diagonal is away; -1 where that is not
 * said so. */
static double
square_size(PyObject **values, Py_ssize_t n)
{
    double side = lines_of(values[0]), more = n > 1 && values[1] != Py_None ? lines_of(values[1]) : 0;
    if (n > 1 && values[1] != Py_None && !is_length(values[1]))
        return -1;
    return side < 0 ? -1 : (side + fabs(more)) * (side + fabs(more));
}

/* Elements of an array, or a number, that is there as often as a number, or all numbers of a tuple together, say; -1 where
 * they do not. */
static double
tiled_size(PyObject *array, PyObject *times)
{
    double count = shape_size(times);
    if (PyErr_Occurred())
        PyErr_Clear();
    if (!PyArray_CheckExact(array))
        return is_number(array) ? count : -1;
    return count < 0 ? -1 : count * (double)PyArray_SIZE((PyArrayObject *)array);
}
