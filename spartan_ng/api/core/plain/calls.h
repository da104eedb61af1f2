/* NumPy's functions of few small arrays and numbers. */

enum { MOST_OPERANDS = 4, OF_NUMBERS = 1, OF_ARRAYS = 2 };

/* Operands of a function as NumPy takes them, no references taken: OF_ARRAYS where one at least is a small array,
 * and the others are, or are numbers; OF_NUMBERS of numbers alone; 0 where Python is to see to it (`few_values`). */
static int
few_operands(PyObject *const *given, Py_ssize_t n, PyObject **plain)
{
    Py_ssize_t nbytes = 0, size = 1;
    PyArrayObject *first = NULL;
    int alike = 1;
    if (known.array == NULL || n < 1 || n > MOST_OPERANDS)
        return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = plain[i] = operand_of(given[i]);
        if (x == NULL)
            return 0;
        if (!PyArray_CheckExact(x))
            continue;
        PyArrayObject *a = (PyArrayObject *)x;
        if (first == NULL)
            first = a;
        alike = alike && PyArray_SAMESHAPE(first, a);
        nbytes += PyArray_NBYTES(a);
        size = Py_MIN(size * PyArray_SIZE(a), known.surely);
    }
    if (first == NULL)
        return OF_NUMBERS;
    return nbytes < small_bytes() && (alike || 8 * size <= known.surely) ? OF_ARRAYS : 0;
}

/* The same for a function: two arrays that elements are taken of are broadcast as operators' are. */
static int
few_given(const PyUFuncObject *f, PyObject *const *given, Py_ssize_t n, PyObject **plain)
{
    for (Py_ssize_t i = 0; i < Py_MIN(n, MOST_OPERANDS); i++)
        plain[i] = NULL;
    int kind = few_operands(given, n, plain), are_both = n == 2 && f != NULL && !f->core_enabled && plain[0] != NULL && plain[1] != NULL;
    return kind == 0 && are_both && stay_small(plain[0], plain[1]) ? OF_ARRAYS : kind;
}

/* What NumPy's function gives for operands as `few_operands` finds them, and for `out`, if that is not NULL. */
static PyObject *
for_few(PyObject *numpys, PyObject **found, Py_ssize_t n, PyArrayObject *out)
{
    PyObject *all[MOST_OPERANDS + 2] = {NULL}, *result = looped(numpys, found, n, out);
    int failed = 0;
    if (result == NULL && n == 2 && numpys == known.dot)
        result = dotted(numpys, found[0], found[1]);
    if (result == NULL && !PyErr_Occurred())
        result = shared(numpys, found, n, out);
    if (result != NULL || PyErr_Occurred())
        return result;
    for (Py_ssize_t i = 0; i < n; i++)
        failed |= (all[i + 1] = plain_of(found[i])) == NULL;
    all[n + 1] = (PyObject *)out;
    PyObject *names = out == NULL ? NULL : out_names;
    result = failed ? NULL : PyObject_Vectorcall(numpys, all + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
    for (Py_ssize_t i = 1; i <= n; i++)
        Py_XDECREF(all[i]);
    return result;
}

/* What a function of NumPy's that is ours gives for few small arrays and numbers; NULL, also without an error, where the
 * method has to do it. */
static PyObject *
few_called(PyObject *numpys, PyObject *const *operands, Py_ssize_t n)
{
    PyUFuncObject *f = (PyUFuncObject *)numpys;
    PyObject *plain[MOST_OPERANDS], *all[MOST_OPERANDS], *found = NULL;
    if (!Py_IS_TYPE(numpys, &PyUFunc_Type) || f->nin != n || f->nout != 1)
        return NULL;
    if (numpys == operators[op_matmul].numpys)
        return quick_product(numpys, operands[0], operands[1]);
    if (PySet_Contains(known.ufuncs, numpys) != 1)
        return NULL;
    if (few_given(f, operands, n, plain) == OF_ARRAYS)
        found = for_few(numpys, plain, n, NULL);
    else if (n <= MOST_OPERANDS && unlisted(operands, n, all)) {
        found = few_called(numpys, all, n);
        let_go(all, n);
        return found;
    }
    if (found != NULL)
        return wrapped(found);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_ValueError)) /* ours name the shapes */
        PyErr_Clear();
    return NULL;
}
