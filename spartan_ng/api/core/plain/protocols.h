/* What NumPy asks of us where it is called by its own names: its functions, and universal functions, of our arrays. */

/* Whether all classes of a call's arrays are ours or NumPy's own. */
static int
are_known(PyObject *types)
{
    if (!PyTuple_CheckExact(types))
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types); i++) {
        PyObject *type = PyTuple_GET_ITEM(types, i);
        if (type != (PyObject *)known.array && type != (PyObject *)&PyArray_Type)
            return 0;
    }
    return 1;
}

/* What a function that we lack gives for few values; NULL, also without an error, where the method has to see to it. */
static PyObject *
lacking(PyObject *function, PyObject *args, PyObject *keywords)
{
    PyObject *all[MOST_GIVEN], *names = NULL, *name, *value;
    Py_ssize_t n = PyTuple_GET_SIZE(args), more = PyDict_GET_SIZE(keywords), at = 0, i = 0;
    if (n + more > MOST_GIVEN || PyDict_GetItemWithError(keywords, out_name) != NULL || PyErr_Occurred())
        return NULL;
    for (; i < n; i++)
        all[i] = PyTuple_GET_ITEM(args, i);
    if (more > 0 && (names = PyTuple_New(more)) == NULL)
        return NULL;
    while (PyDict_Next(keywords, &at, &name, &value)) {
        PyTuple_SET_ITEM(names, i - n, Py_NewRef(name));
        all[i++] = value;
    }
    PyObject *found = at_once(function, AS_GIVEN, all, n, names);
    Py_XDECREF(names);
    return found;
}

/* `__array_function__`: ours for NumPy's functions, and those that we lack at once of few values. */
static PyObject *
array_function(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    const Operator *op = &operators[op_array_function];
    int plain = n == 4 && names == NULL && Py_TYPE(self) == known.array && are_known(args[1]) && PyTuple_CheckExact(args[2])
                && PyDict_CheckExact(args[3]);
    if (settle_all() < 0 || method_of(op, op->method) == NULL)
        return NULL;
    PyObject *ours = plain ? PyDict_GetItemWithError(known.functions, args[0]) : NULL, *found = NULL;
    if (ours != NULL)
        return PyObject_Call(ours, args[2], args[3]);
    if (plain && !PyErr_Occurred())
        found = lacking(args[0], args[2], args[3]);
    if (found != NULL || PyErr_Occurred())
        return found;
    PyObject *all[8] = {self};
    Py_ssize_t given = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    if (given >= (Py_ssize_t)Py_ARRAY_LENGTH(all)) {
        PyErr_SetString(PyExc_TypeError, "__array_function__ takes a function, types, args and kwargs");
        return NULL;
    }
    memcpy(all + 1, args, given * sizeof *args);
    return PyObject_Vectorcall(op->method, all, n + 1, names);
}

/* Whether a function, of whatever library, takes elements that are numbers alone, none of which are Python's objects. */
static int
takes_numbers(const PyUFuncObject *function)
{
    if (function->core_enabled)
        return 0;
    for (int i = 0; i < function->ntypes * function->nargs; i++)
        if (function->types[i] == NPY_OBJECT)
            return 0;
    return 1;
}

/* What a function of elements that we lack, NumPy's or SciPy's, or of elements that are no numbers, gives for few values;
 * NULL, also without an error, where the method has to see to it. */
static PyObject *
few_others(PyObject *function, PyObject *const *operands, Py_ssize_t n)
{
    int is_known = Py_IS_TYPE(function, &PyUFunc_Type) && ((PyUFuncObject *)function)->nin == n
                   && (takes_numbers((PyUFuncObject *)function) || PySet_Contains(known.lacking, function) == 1
                       || PySet_Contains(known.ufuncs, function) == 1);
    return is_known ? at_once(function, AS_BROADCAST, operands, n, NULL) : NULL;
}

/* Quotients and remainders: the one operator of two results. */
static PyObject *
divided(PyObject *a, PyObject *b)
{
    const Operator *op = &operators[op_divmod];
    PyObject *given[2] = {a, b};
    if (settle_all() < 0)
        return NULL;
    int is_plain = op->numpys != NULL && (Py_TYPE(a) == known.array || Py_TYPE(b) == known.array);
    PyObject *found = is_plain ? at_once(op->numpys, AS_BROADCAST, given, 2, NULL) : NULL;
    return found != NULL || PyErr_Occurred() ? found : by_methods(op, &Quick, a, b);
}

/* `__array_ufunc__`: NumPy's functions of small arrays and numbers, called for no more. */
static PyObject *
array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    const Operator *op = &operators[op_array_ufunc];
    if (settle_all() < 0)
        return NULL;
    int plain = n > 2 && Py_TYPE(self) == known.array && (names == NULL || PyTuple_GET_SIZE(names) == 0)
                && (args[1] == call_name || (PyUnicode_Check(args[1]) && PyUnicode_Compare(args[1], call_name) == 0));
    PyObject *done = plain ? few_called(args[0], args + 2, n - 2) : NULL;
    if (done == NULL && plain && !PyErr_Occurred())
        done = few_others(args[0], args + 2, n - 2);
    if (done != NULL || PyErr_Occurred())
        return done;
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
