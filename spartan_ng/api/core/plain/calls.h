/* NumPy's functions of few small arrays and numbers. */

/* `__array_ufunc__`: NumPy's functions of a number or an array and an array, called for no more. */
static PyObject *
array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    const Operator *op = &operators[op_array_ufunc];
    int plain = n == 4 && Py_TYPE(self) == known.array && (names == NULL || PyTuple_GET_SIZE(names) == 0)
                && Py_IS_TYPE(args[0], &PyUFunc_Type)
                && (args[1] == call_name || (PyUnicode_Check(args[1]) && PyUnicode_Compare(args[1], call_name) == 0));
    PyObject *x = plain ? operand_of(args[2]) : NULL, *y = x == NULL ? NULL : operand_of(args[3]);
    if (y != NULL && ((PyUFuncObject *)args[0])->nin == 2 && ((PyUFuncObject *)args[0])->nout == 1
        && stay_small(x, y) && PySet_Contains(known.ufuncs, args[0]) == 1) {
        PyObject *found = computed(args[0], x, y);
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    if (method_of(op, op->method) == NULL)
        return NULL;
    Py_ssize_t given = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    PyObject **all = PyMem_New(PyObject *, given + 1);
    if (all == NULL)
        return PyErr_NoMemory();
    all[0] = self;
    for (Py_ssize_t i = 0; i < given; i++)
        all[i + 1] = args[i];
    PyObject *found = PyObject_Vectorcall(op->method, all, n + 1, names);
    PyMem_Free(all);
    return found;
}

/* `few(numpys, operands)`: what a function of NumPy's gives for operands of which one at least is a small array,
 * and the others are, or are numbers; None where Python is to see to it (`few_values`). */
static PyObject *
few(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    enum { MOST = 4 };
    PyObject *plain[MOST + 1] = {NULL};
    if (count != 2 || !PyTuple_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "few takes a function and a tuple");
        return NULL;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(args[1]), nbytes = 0, size = 1, arrays = 0;
    int alike = 1;
    if (known.array == NULL || n < 1 || n > MOST)
        Py_RETURN_NONE;
    PyArrayObject *first = NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = plain[i + 1] = operand_of(PyTuple_GET_ITEM(args[1], i));
        if (x == NULL)
            Py_RETURN_NONE;
        if (!PyArray_CheckExact(x))
            continue;
        PyArrayObject *a = (PyArrayObject *)x;
        if (PyArray_NBYTES(a) >= known.least)
            Py_RETURN_NONE;
        if (first == NULL)
            first = a;
        arrays++;
        alike = alike && PyArray_SAMESHAPE(first, a);
        nbytes += PyArray_NBYTES(a);
        size = Py_MIN(size * PyArray_SIZE(a), known.surely);
    }
    if (!arrays || nbytes >= known.least || nbytes >= small_bytes() || (!alike && 8 * size > known.surely))
        Py_RETURN_NONE;
    int failed = 0;
    for (Py_ssize_t i = 1; i <= n; i++)
        failed |= (plain[i] = plain_of(plain[i])) == NULL;
    PyObject *found = failed ? NULL : PyObject_Vectorcall(args[0], plain + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (found == NULL) {
        if (PyErr_ExceptionMatches(PyExc_ValueError)) { /* ours name the shapes */
            PyErr_Clear();
            found = Py_NewRef(Py_None);
        }
    }
    else
        found = finished(found, args[1], plain + 1, n);
    for (Py_ssize_t i = 1; i <= n; i++)
        Py_XDECREF(plain[i]);
    return found;
}
