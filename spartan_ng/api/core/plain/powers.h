/* Powers, which NumPy's operator takes other functions for where they are squares, roots or reciprocals. */

/* A power of an array, as a new one or written to `out`, by several threads where that is sooner; NULL without an error
 * where NumPy is to do it, whose operator knows squares, roots and reciprocals. */
static PyObject *
shared_power(const Operator *op, PyObject *x, PyObject *exponent, PyArrayObject *out)
{
    double n;
    int type = PyArray_TYPE((PyArrayObject *)x);
    if (op->numpys == NULL || (type != NPY_DOUBLE && type != NPY_FLOAT) || !as_double(exponent, &n))
        return NULL;
    PyObject *given[2] = {x, exponent};
    return n == -1 || n == 0 || n == 0.5 || n == 1 || n == 2 ? NULL : shared(op->numpys, given, 2, out);
}

/* The function that NumPy's operator takes for a power of elements of a type: a square, a root or a reciprocal, else NULL. */
static PyObject *
function_of_power(int type, PyObject *exponent)
{
    PyObject *function = NULL;
    if (PyLong_CheckExact(exponent)) {
        int overflow;
        long n = PyLong_AsLongAndOverflow(exponent, &overflow);
        function = overflow ? NULL : n == 2 ? known.square : n == -1 ? known.reciprocal : NULL;
    }
    else if (PyFloat_CheckExact(exponent) && PyFloat_AS_DOUBLE(exponent) == 0.5)
        function = known.sqrt;
    return function == known.square || !is_whole(type) ? function : NULL; /* of integers, no root */
}

/* A power of few elements; NULL without an error where NumPy is to do it. */
static PyObject *
power_of_few(const Operator *op, PyObject *x, PyObject *exponent)
{
    PyObject *given[2] = {x, exponent}, *function = function_of_power(PyArray_TYPE((PyArrayObject *)x), exponent);
    if (op->numpys == NULL || known.square == NULL || PyArray_CheckExact(exponent))
        return NULL;
    return function != NULL ? looped(function, given, 1, NULL) : looped(op->numpys, given, 2, NULL);
}

/* A power of an array that is a temporary, written over it (a new reference); NULL without an error where it is none. */
static PyObject *
power_taken_over(const Operator *op, PyObject *a, PyObject *exponent, const char *callers)
{
    PyArrayObject *own = own_of(a);
    int type = own == NULL ? NPY_NOTYPE : PyArray_TYPE(own);
    int keeps_type = PyTypeNum_ISINTEGER(type) ? PyLong_CheckExact(exponent) : type != NPY_BOOL;
    if (own == NULL || !keeps_type || PyArray_NBYTES(own) > small_bytes() || !has_temporaries(op, callers))
        return NULL;
    PyObject *found = shared_power(op, (PyObject *)own, exponent, own);
    if (found == NULL && !PyErr_Occurred())
        found = PyNumber_InPlacePower((PyObject *)own, exponent, Py_None);
    Py_XDECREF(found);
    return found == NULL ? NULL : Py_NewRef(a);
}

/* The same as part of an expression: by the functions that NumPy's operator takes for powers. */
static PyObject *
power_in_expression(const Operator *op, PyObject *a, PyObject *exponent, const char *callers)
{
    PyObject *given[2] = {a, exponent};
    const Expression *e = expression_of(a);
    PyArrayObject *x = e == NULL ? numbers_of(a) : NULL;
    int type = e != NULL ? e->type : x != NULL ? PyArray_TYPE(x) : NPY_NOTYPE;
    PyObject *function = function_of_power(type, exponent);
    if (function != known.square && is_whole(type) && !PyFloat_CheckExact(exponent))
        return NULL;
    return function != NULL ? in_expression(function, given, 1, op, callers) : in_expression(op->numpys, given, 2, op, callers);
}

static NOT_INLINE PyObject *
power_of(PyObject *a, PyObject *b, PyObject *modulus, const char *callers)
{
    const Operator *op = &operators[op_power];
    PyObject *together = modulus == Py_None ? power_in_expression(op, a, b, callers) : NULL;
    if (together != NULL || PyErr_Occurred() || settle_all() < 0)
        return together;
    if (modulus == Py_None) {
        int is_ours = Py_TYPE(a) == known.array, is_pythons = PyLong_CheckExact(b) || PyFloat_CheckExact(b);
        PyObject *found = is_ours && is_pythons ? power_taken_over(op, a, b, callers) : NULL;
        if (found != NULL || PyErr_Occurred())
            return found;
        PyArrayObject *x = is_ours ? shown_of((Handle *)a) : NULL;
        PyArrayObject *exponents = Py_TYPE(b) == known.array ? shown_of((Handle *)b) : NULL;
        found = exponents != NULL && PyArray_NDIM(exponents) > 0 ? at_once_of_two(op->numpys, a, b) : NULL;
        if (found != NULL || PyErr_Occurred())
            return found;
        int is_one = is_number(b) || (exponents != NULL && PyArray_NDIM(exponents) == 0);
        if (x == NULL || !is_one || !stay_small((PyObject *)x, exponents != NULL ? (PyObject *)exponents : b))
            return by_methods(op, &Quick, a, b);
        Py_INCREF(x);
        PyObject *exponent = exponents != NULL ? Py_NewRef(exponents) : plain_of(b);
        found = exponent == NULL ? NULL : power_of_few(op, (PyObject *)x, exponent);
        if (found == NULL && exponent != NULL && !PyErr_Occurred())
            found = shared_power(op, (PyObject *)x, exponent, NULL);
        if (found == NULL && !PyErr_Occurred())
            found = PyNumber_Power((PyObject *)x, exponent, modulus);
        Py_XDECREF(exponent);
        Py_DECREF(x);
        return found == NULL ? NULL : wrapped(found);
    }
    if (!PyObject_TypeCheck(a, &Quick))
        Py_RETURN_NOTIMPLEMENTED;
    return method_of(op, op->method) == NULL ? NULL : call_three(op->method, a, b, modulus);
}

static PyObject *
power(PyObject *a, PyObject *b, PyObject *modulus)
{
    return power_of(a, b, modulus, CALLERS);
}
