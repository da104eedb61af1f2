/* What Einstein's sums take, as they are spelled. */

enum { LETTERS = 52 };

/* Products that loops over all letters make, each as long as its axes, where these are listed by their numbers behind each
 * operand; -1 where they are no numbers of letters, one for each axis. */
static double
listed_loop_size(PyObject **values, Py_ssize_t n)
{
    double lengths[LETTERS] = {0}, size = 1;
    for (Py_ssize_t i = 0; i + 1 < n; i += 2) {
        PyArrayObject *a = PyArray_CheckExact(values[i]) ? (PyArrayObject *)values[i] : NULL;
        Py_ssize_t axes = PySequence_Check(values[i + 1]) ? PySequence_Size(values[i + 1]) : -1;
        if (axes != (a == NULL ? 0 : PyArray_NDIM(a)))
            return PyErr_Clear(), -1;
        for (Py_ssize_t axis = 0; axis < axes; axis++) {
            PyObject *item = PySequence_GetItem(values[i + 1], axis);
            Py_ssize_t letter = item != NULL && PyLong_CheckExact(item) ? PyLong_AsSsize_t(item) : -1;
            Py_XDECREF(item);
            if (letter < 0 || letter >= LETTERS)
                return PyErr_Clear(), -1;
            lengths[letter] = Py_MAX(lengths[letter], (double)PyArray_DIM(a, axis));
        }
    }
    for (int c = 0; c < LETTERS; c++)
        size *= lengths[c] > 0 ? lengths[c] : 1;
    return n < 2 ? -1 : size;
}

/* How many letters are between a place in a text and the end of its term. */
static Py_ssize_t
letters_from(PyObject *text, Py_ssize_t i)
{
    Py_ssize_t found = 0;
    for (; i < PyUnicode_GET_LENGTH(text); i++) {
        Py_UCS4 c = PyUnicode_READ_CHAR(text, i);
        if (c == ',' || c == '-')
            break;
        found += c != ' ' && c != '.';
    }
    return found;
}

/* Products that loops over all letters of Einstein's sum make, each as long as its axes; -1 where it is spelled otherwise
 * than with a letter for each axis of each operand, or an ellipsis for some, which end together. */
static double
loop_size(PyObject *text, PyObject **operands, Py_ssize_t n)
{
    double lengths[128] = {0}, others[NPY_MAXDIMS] = {0}, size = 1;
    Py_ssize_t operand = 0, axis = 0, length = PyUnicode_CheckExact(text) ? PyUnicode_GET_LENGTH(text) : 0;
    for (Py_ssize_t i = 0; i < length; i++) {
        Py_UCS4 c = PyUnicode_READ_CHAR(text, i);
        PyArrayObject *a = operand < n && PyArray_CheckExact(operands[operand]) ? (PyArrayObject *)operands[operand] : NULL;
        if (c == ' ')
            continue;
        if (c == '-' || a == NULL)
            break;
        if (c == ',') {
            if (axis != PyArray_NDIM(a))
                return -1;
            operand++;
            axis = 0;
        }
        else if (c == '.') {
            Py_ssize_t rest = PyArray_NDIM(a) - axis - letters_from(text, i);
            for (Py_ssize_t k = rest; k > 0; k--, axis++)
                others[k - 1] = Py_MAX(others[k - 1], (double)PyArray_DIM(a, axis));
            while (i + 1 < length && PyUnicode_READ_CHAR(text, i + 1) == '.')
                i++;
        }
        else if (c >= 128 || !Py_ISALPHA(c) || axis >= PyArray_NDIM(a))
            return -1;
        else {
            lengths[c] = Py_MAX(lengths[c], (double)PyArray_DIM(a, axis));
            axis++;
        }
    }
    if (operand != n - 1 || !PyArray_CheckExact(operands[operand]) || axis != PyArray_NDIM((PyArrayObject *)operands[operand]))
        return -1;
    for (int c = 0; c < 128; c++)
        size *= lengths[c] > 0 ? lengths[c] : 1;
    for (int k = 0; k < NPY_MAXDIMS; k++)
        size *= others[k] > 0 ? others[k] : 1;
    return size;
}
