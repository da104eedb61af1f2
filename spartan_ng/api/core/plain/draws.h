/* Few numbers of a generator, drawn by NumPy's method of the generator that ours has. */

enum { MOST_DRAWN = 1 << 14 }; /* numbers: `_DRAWN` of the door */

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

/* Whether what parameters are broadcast to is small. */
static int
are_few_parameters(const Given *given)
{
    return (given->first == NULL || given->nbytes < Py_MIN(known.least, small_bytes()))
           && (given->first == NULL || (given->alike && given->listed == 1) || 8 * given->size <= (double)known.surely);
}

/* What a method of NumPy's generators gives for parameters that are few numbers, and a size at its place, if that is not
 * negative; where it `chooses` among so many, as the first parameter may say, that has to be few, too. NULL, also without
 * an error, where Python is to see to it. */
static PyObject *
drawn_at_once(PyObject *numpys, Py_ssize_t place, int chooses, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *values[MOST_GIVEN + 1] = {NULL}, *found = NULL;
    Py_ssize_t total = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names)), i = 1;
    Given given = NOTHING_GIVEN;
    for (; i < total; i++) {
        int is_size = i < n ? i == place : PyUnicode_Compare(PyTuple_GET_ITEM(names, i - n), size_name) == 0;
        int is_plain = is_size || (chooses && i == 1 && is_number(args[i])) ? is_few_to_draw(args[i]) : 1;
        values[i + 1] = is_plain ? given_value(args[i], DEEPEST, &given) : NULL;
        if (values[i + 1] == NULL)
            goto done;
    }
    values[1] = are_few_parameters(&given) ? PyObject_GetAttr(args[0], numpy_name) : NULL;
    if (values[1] != NULL)
        found = PyObject_Vectorcall(numpys, values + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
    if (found != NULL && !PyFloat_CheckExact(found) && !PyLong_CheckExact(found)) /* one number may be Python's */
        found = settled(found, args, values + 1, 0);
done:
    Py_XDECREF(values[1]);
    for (Py_ssize_t k = 2; k <= i && k <= total; k++)
        Py_XDECREF(values[k]);
    return found;
}

/* Have a method of NumPy's generators put a small array that nobody else has a claim on in another order; NULL, also
 * without an error, where Python is to see to it. */
static PyObject *
shuffled_at_once(PyObject *numpys, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyArrayObject *target = n == 2 && names == NULL && Py_TYPE(args[1]) == known.array ? open_of((Handle *)args[1]) : NULL;
    int is_plain = target != NULL && PyArray_NDIM(target) > 0 && PyArray_ISWRITEABLE(target)
                   && PyArray_NBYTES(target) <= small_bytes() && small_bytes() >= known.surely;
    PyObject *generator = is_plain ? PyObject_GetAttr(args[0], numpy_name) : NULL;
    PyObject *found = generator == NULL ? NULL : call_two(numpys, generator, (PyObject *)target);
    Py_XDECREF(generator);
    Py_XDECREF(target);
    return found;
}
