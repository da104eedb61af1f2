/* Arrays that all lie turned, as `M.T` does: worked on as what they are turned from. */

/* Whether all arrays among some operands, and the place of the result, are matrices alike whose columns lie one after the
 * other. */
static int
are_turned(PyObject *const *operands, Py_ssize_t n, PyArrayObject *out)
{
    PyArrayObject *first = out;
    for (Py_ssize_t i = out == NULL ? 0 : -1; i < n; i++) {
        PyArrayObject *a = i < 0 ? out : (PyArrayObject *)operands[i];
        if (i >= 0 && !PyArray_CheckExact(operands[i]))
            continue;
        first = first == NULL ? a : first;
        if (PyArray_NDIM(a) < 2 || PyArray_IS_C_CONTIGUOUS(a) || !PyArray_IS_F_CONTIGUOUS(a) || !PyArray_SAMESHAPE(a, first))
            return 0;
    }
    return first != NULL;
}

/* Turn an array that nobody else has yet. */
static PyObject *
turn_new(PyArrayObject *a)
{
    npy_intp *lengths = PyArray_DIMS(a), *steps = PyArray_STRIDES(a);
    for (int i = 0, k = PyArray_NDIM(a) - 1; i < k; i++, k--) {
        npy_intp length = lengths[i], step = steps[i];
        lengths[i] = lengths[k];
        steps[i] = steps[k];
        lengths[k] = length;
        steps[k] = step;
    }
    PyArray_UpdateFlags(a, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
    return (PyObject *)a;
}

/* What a function of NumPy's gives for operands, as a new array, or written to `out` (a new reference), by several
 * threads; NULL without an error where NumPy is to do it. */
static PyObject *
shared(PyObject *numpys, PyObject *const *operands, Py_ssize_t n, PyArrayObject *out)
{
    PyObject *turned[MOST_TAKEN + 1] = {NULL}, *found = NULL;
    if (n < 1 || n > MOST_TAKEN || !are_turned(operands, n, out))
        return shared_in_order(numpys, operands, n, out);
    int failed = out != NULL && (turned[n] = PyArray_Transpose(out, NULL)) == NULL;
    for (Py_ssize_t i = 0; i < n && !failed; i++) {
        PyObject *a = operands[i];
        turned[i] = PyArray_CheckExact(a) ? PyArray_Transpose((PyArrayObject *)a, NULL) : Py_NewRef(a);
        failed = turned[i] == NULL;
    }
    if (!failed)
        found = shared_in_order(numpys, turned, n, (PyArrayObject *)turned[n]);
    for (Py_ssize_t i = 0; i <= n; i++)
        Py_XDECREF(turned[i]);
    if (found == NULL || out == NULL)
        return found == NULL ? NULL : turn_new((PyArrayObject *)found);
    Py_DECREF(found);
    return Py_NewRef((PyObject *)out);
}

/* Copy an array's elements to a place of the same type, by several threads where elements are far from each other; -1
 * with an error. Others are copied as fast as one thread can write. */
static int
copied_to(PyArrayObject *place, PyArrayObject *value)
{
    PyObject *given[1] = {(PyObject *)value}, *found = NULL;
    npy_intp furthest = Py_MAX(last_step(place), last_step(value));
    if (is_same(place, value)) /* `a[key] += b` ends with it */
        return 0;
    if (furthest >= CACHE_LINE && threads_for(PyArray_SIZE(place), furthest) > 1)
        found = shared(operators[op_positive].numpys, given, 1, place);
    if (found == NULL)
        return PyErr_Occurred() ? -1 : PyArray_CopyInto(place, value);
    Py_DECREF(found);
    return 0;
}

/* `applied(numpys, operands, out=None)`: what a function of NumPy's gives for NumPy's arrays and numbers. */
static PyObject *
applied_to(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count < 2 || count > 3 || !PyTuple_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "applied takes a function, a tuple and a place for the result");
        return NULL;
    }
    PyObject **operands = ((PyTupleObject *)args[1])->ob_item, *out = count < 3 || args[2] == Py_None ? NULL : args[2];
    Py_ssize_t n = PyTuple_GET_SIZE(args[1]);
    PyObject *found = NULL;
    if (out == NULL || PyArray_CheckExact(out))
        found = shared(args[0], operands, n, (PyArrayObject *)out);
    if (found != NULL || PyErr_Occurred())
        return found;
    PyObject *all[NPY_MAXARGS];
    if (n >= NPY_MAXARGS - 1)
        return PyObject_CallObject(args[0], args[1]);
    memcpy(all + 1, operands, n * sizeof(PyObject *));
    all[n + 1] = out;
    return PyObject_Vectorcall(args[0], all + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, out == NULL ? NULL : out_names);
}
