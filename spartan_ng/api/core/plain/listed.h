/* Arrays of their own: of small arrays, of numbers, of lists. */

/* Whether all that a list has are texts. */
static int
is_of_texts(PyObject *listed)
{
    Py_ssize_t n = PyList_CheckExact(listed) ? PyList_GET_SIZE(listed) : 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!PyUnicode_CheckExact(PyList_GET_ITEM(listed, i)))
            return 0;
    return n > 0 && n <= MOST_LISTED;
}

/* `array_of(listed)`: an array of its own of a small array's elements, of a number, or of a list of few numbers or texts,
 * of small arrays, or of lists of them; None for all else. */
static PyObject *
array_of(PyObject *module, PyObject *listed)
{
    if (known.array != NULL && (Py_TYPE(listed) == known.array || PyArray_CheckExact(listed))) {
        PyArrayObject *shown = numbers_of(listed);
        if (shown == NULL || PyArray_NBYTES(shown) >= known.least || PyArray_NBYTES(shown) >= small_bytes())
            Py_RETURN_NONE;
        PyObject *copied = PyArray_NewCopy(shown, NPY_KEEPORDER);
        return copied == NULL ? NULL : wrapped(copied);
    }
    Given given = {.size = 1, .alike = 1};
    int is_list = PyList_CheckExact(listed) && PyList_GET_SIZE(listed) > 0;
    int is_texts = is_of_texts(listed);
    int is_plain = is_list ? is_texts || !PyUnicode_Check(PyList_GET_ITEM(listed, 0))
                           : is_number(listed) || is_of_numbers(listed);
    PyObject *values = known.array != NULL && is_plain ? given_value(listed, DEEPEST, &given) : NULL, *found = NULL;
    if (values != NULL && (given.first == NULL || given.nbytes < Py_MIN(known.least, small_bytes())))
        found = PyArray_FromAny(values, NULL, 0, 0, NPY_ARRAY_DEFAULT, NULL);
    Py_XDECREF(values);
    if (found != NULL && (of_numbers(found) != NULL || (is_texts && PyArray_TYPE((PyArrayObject *)found) == NPY_UNICODE)))
        return wrapped(found);
    PyErr_Clear(); /* lists of unlike lengths, of which ours says the same */
    Py_XDECREF(found);
    Py_RETURN_NONE;
}
