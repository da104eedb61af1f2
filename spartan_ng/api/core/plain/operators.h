/* Operators, and the order in which Python asks for them. */

static PyTypeObject Quick;

/* What the methods of the operands say, in Python's order. */
static PyObject *
by_methods(const Operator *op, PyTypeObject *ours, PyObject *a, PyObject *b)
{
    if (PyObject_TypeCheck(a, ours)) {
        PyObject *found = method_of(op, op->method) == NULL ? NULL : call_two(op->method, a, b);
        if (found != Py_NotImplemented || Py_TYPE(a) == Py_TYPE(b))
            return found;
        Py_DECREF(found);
    }
    if (op->reflected_name != NULL && PyObject_TypeCheck(b, ours) && Py_TYPE(a) != Py_TYPE(b))
        return method_of(op, op->reflected) == NULL ? NULL : call_two(op->reflected, b, a);
    Py_RETURN_NOTIMPLEMENTED;
}

/* The result of NumPy's function for two operands, or NULL, with an error unless the methods are to say it. */
static PyObject *
computed(PyObject *numpys, PyObject *x, PyObject *y)
{
    PyObject *given[2] = {x, y}, *found = looped(numpys, given, 2, NULL);
    if (found == NULL && !PyErr_Occurred())
        found = shared(numpys, given, 2, NULL);
    if (found != NULL || PyErr_Occurred())
        return found == NULL ? NULL : wrapped(found);
    x = plain_of(x);
    y = plain_of(y);
    found = x == NULL || y == NULL ? NULL : call_two(numpys, x, y);
    Py_XDECREF(x);
    Py_XDECREF(y);
    if (found != NULL)
        return wrapped(found);
    if (PyErr_ExceptionMatches(PyExc_ValueError))
        PyErr_Clear();
    return NULL;
}

/* Whether a number's places in a line are asked for, which the methods may know (`members.py`). */
static int
is_looked_up(PyObject *numpys, PyObject *x, PyObject *y)
{
    PyArrayObject *line = PyArray_CheckExact(x) ? (PyArrayObject *)x : NULL;
    return numpys == operators[op_EQ].numpys && line != NULL && !PyArray_CheckExact(y) && PyTypeNum_ISINTEGER(PyArray_TYPE(line))
           && PyArray_NBYTES(line) >= known.least;
}

/* The same of small arrays and numbers. */
static PyObject *
at_once_of_two(PyObject *numpys, PyObject *a, PyObject *b)
{
    PyObject *x = numpys == NULL ? NULL : operand_of(a), *y = x == NULL ? NULL : operand_of(b);
    return y != NULL && !is_looked_up(numpys, x, y) && stay_small(x, y) ? computed(numpys, x, y) : NULL;
}

/* The same of a small array and a list of few numbers. A number repeats a list, which the methods know. */
static NOT_INLINE PyObject *
beside_list(PyObject *numpys, PyObject *a, PyObject *b)
{
    PyObject *all[2], *given[2] = {a, b}, *array = Py_TYPE(a) == known.array ? a : b;
    Cell *cell = numpys != NULL && Py_TYPE(array) == known.array ? cell_of((Handle *)array) : NULL;
    if (cell == NULL || cell->frozen || !unlisted(given, 2, all))
        return NULL;
    PyObject *found = at_once_of_two(numpys, all[0], all[1]);
    let_go(all, 2);
    return found;
}

/* A text or a time, or a small array of them, as NumPy takes it, and the type of its elements; else NULL. */
static PyObject *
text_or_time(PyObject *a, int *type)
{
    PyArrayObject *shown = Py_TYPE(a) == known.array ? value_of((Handle *)a) : NULL;
    if (shown != NULL) {
        *type = PyArray_TYPE(shown);
        return PyTypeNum_ISDATETIME(*type) || PyTypeNum_ISSTRING(*type) ? (PyObject *)shown : NULL;
    }
    if (PyUnicode_CheckExact(a) || Py_IS_TYPE(a, &PyUnicodeArrType_Type))
        *type = NPY_UNICODE;
    else if (PyBytes_CheckExact(a) || Py_IS_TYPE(a, &PyStringArrType_Type))
        *type = NPY_STRING;
    else if (Py_IS_TYPE(a, &PyDatetimeArrType_Type))
        *type = NPY_DATETIME;
    else if (Py_IS_TYPE(a, &PyTimedeltaArrType_Type))
        *type = NPY_TIMEDELTA;
    else
        return NULL;
    return a;
}

/* What NumPy's function gives for times, or a time and a number, of which one at least is a small array; NULL, also
 * without an error, where the methods have to see to it. */
static NOT_INLINE PyObject *
of_times(PyObject *numpys, PyObject *a, PyObject *b)
{
    int of_a = NPY_NOTYPE, of_b = NPY_NOTYPE;
    PyObject *x = numpys == NULL ? NULL : text_or_time(a, &of_a), *y = numpys == NULL ? NULL : text_or_time(b, &of_b);
    if (!PyTypeNum_ISDATETIME(of_a) && !PyTypeNum_ISDATETIME(of_b))
        return NULL;
    x = x == NULL ? operand_of(a) : x;
    y = y == NULL ? operand_of(b) : y;
    if (x == NULL || y == NULL || !(PyArray_CheckExact(x) || PyArray_CheckExact(y)) || !stay_small(x, y))
        return NULL;
    x = plain_of(x);
    y = plain_of(y);
    PyObject *found = x == NULL || y == NULL ? NULL : call_two(numpys, x, y);
    Py_XDECREF(x);
    Py_XDECREF(y);
    if (found != NULL)
        return wrapped(found);
    if (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Clear();
    return NULL;
}

static NOT_INLINE PyObject *
of_two(const Operator *op, PyObject *a, PyObject *b, const char *callers)
{
    PyObject *operands[2] = {a, b}, *taken = in_expression(op->numpys, operands, 2, op, callers);
    if (taken != NULL || PyErr_Occurred() || settle_all() < 0)
        return taken;
    taken = op->numpys == NULL ? NULL : taken_over(op, operands, 2, callers);
    if (taken != NULL || PyErr_Occurred())
        return taken;
    PyObject *found = at_once_of_two(op->numpys, a, b);
    if (found == NULL && !PyErr_Occurred())
        found = beside_list(op->numpys, a, b);
    if (found == NULL && !PyErr_Occurred())
        found = of_times(op->numpys, a, b);
    if (found == NULL && !PyErr_Occurred() && Py_TYPE(a) == known.array && is_derived(b))
        Py_RETURN_NOTIMPLEMENTED; /* its class has operators of its own, which Python asks next */
    return found != NULL || PyErr_Occurred() ? found : by_methods(op, &Quick, a, b);
}

/* Whether a function is one of NumPy's of sub-arrays, as products are. */
static int
is_of_parts(PyObject *numpys)
{
    return Py_IS_TYPE(numpys, &PyUFunc_Type) && ((PyUFuncObject *)numpys)->core_enabled;
}

enum { MOST_LETTERS = 8 };

/* Whether a product of two stacks is NumPy's at once: of parts whose axes are those that the function names, or vectors as
 * the last axis of the first, or the first of the second, operand of `matmul`. */
static int
is_quick_stack(PyObject *numpys, PyArrayObject *a, PyArrayObject *b)
{
    PyUFuncObject *f = (PyUFuncObject *)numpys;
    PyArrayObject *operands[2] = {a, b};
    double lengths[MOST_LETTERS] = {1, 1, 1, 1, 1, 1, 1, 1}, flops = 1, made = 1;
    int stacked[2];
    if (!is_of_parts(numpys) || f->nin != 2 || f->nout != 1 || f->core_num_dim_ix > MOST_LETTERS)
        return 0;
    for (int i = 0; i < 2; i++) {
        int wanted = f->core_num_dims[i], axes = Py_MIN(PyArray_NDIM(operands[i]), wanted);
        const int *letters = f->core_dim_ixs + f->core_offsets[i] + (i == 0 ? wanted - axes : 0);
        if (axes < 1 || (axes < wanted && numpys != operators[op_matmul].numpys))
            return 0;
        stacked[i] = PyArray_NDIM(operands[i]) - axes;
        for (int k = 0; k < axes; k++)
            lengths[letters[k]] = Py_MAX(lengths[letters[k]], (double)PyArray_DIM(operands[i], stacked[i] + k));
    }
    for (int k = 1; k <= Py_MAX(stacked[0], stacked[1]); k++) {
        npy_intp x = k <= stacked[0] ? PyArray_DIM(a, stacked[0] - k) : 1, y = k <= stacked[1] ? PyArray_DIM(b, stacked[1] - k) : 1;
        made *= (double)Py_MAX(x, y);
    }
    flops = made;
    for (int k = 0; k < f->core_num_dim_ix; k++)
        flops *= lengths[k];
    for (int k = 0; k < f->core_num_dims[2]; k++)
        made *= lengths[f->core_dim_ixs[f->core_offsets[2] + k]];
    double small = (double)small_bytes();
    if (flops <= (double)known.flops && 8 * flops < small)
        return 1;
    return flops <= (double)known.most_flops && (double)(PyArray_NBYTES(a) + PyArray_NBYTES(b)) <= small && 8 * made <= small;
}

/* Whether a product of vectors and matrices is NumPy's at once, and their shapes fit (`small_products.quick`). */
static int
is_quick_product(PyObject *numpys, PyObject *x, PyObject *y)
{
    if (!PyArray_CheckExact(x) || !PyArray_CheckExact(y))
        return 0;
    PyArrayObject *a = (PyArrayObject *)x, *b = (PyArrayObject *)y;
    int na = PyArray_NDIM(a), nb = PyArray_NDIM(b);
    if (na > 2 || nb > 2 || (numpys != operators[op_matmul].numpys && numpys != known.dot))
        return is_quick_stack(numpys, a, b);
    if (na < 1 || nb < 1 || PyArray_DIM(a, na - 1) != PyArray_DIM(b, 0))
        return 0;
    Py_ssize_t size = PyArray_SIZE(a), columns = nb == 2 ? PyArray_DIM(b, 1) : 1, small = small_bytes();
    if (size > known.most_flops || columns > known.most_flops || size * columns > known.most_flops)
        return 0;
    if (size * columns <= known.flops && 8 * size * columns < small)
        return 1;
    Py_ssize_t made = (na == 2 ? PyArray_DIM(a, 0) : 1) * columns;
    return PyArray_NBYTES(a) + PyArray_NBYTES(b) <= small && 8 * made <= small;
}

/* Such a product by NumPy's `matmul` or `dot`; NULL, also without an error, where the methods have to see to it. */
static PyObject *
quick_product(PyObject *numpys, PyObject *a, PyObject *b)
{
    PyObject *x = numpys == NULL ? NULL : operand_of(a), *y = x == NULL ? NULL : operand_of(b);
    if (y == NULL || !is_quick_product(numpys, x, y))
        return NULL;
    PyObject *found = dotted(numpys, x, y);
    if (found != NULL || PyErr_Occurred())
        return found;
    if (numpys != known.dot)
        return computed(numpys, x, y);
    Py_INCREF(x); /* other threads run meanwhile */
    Py_INCREF(y);
    found = PyArray_Return((PyArrayObject *)PyArray_MatrixProduct2(x, y, NULL));
    Py_DECREF(x);
    Py_DECREF(y);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_ValueError))
        PyErr_Clear();
    return found == NULL ? NULL : wrapped(found);
}

static PyObject *
matrix_product(PyObject *a, PyObject *b)
{
    if (settle_all() < 0)
        return NULL;
    PyObject *found = quick_product(operators[op_matmul].numpys, a, b);
    return found != NULL || PyErr_Occurred() ? found : by_methods(&operators[op_matmul], &Quick, a, b);
}

static NOT_INLINE PyObject *
of_one(const Operator *op, PyObject *a, const char *callers)
{
    PyObject *taken = in_expression(op->numpys, &a, 1, op, callers);
    if (taken != NULL || PyErr_Occurred() || settle_all() < 0)
        return taken;
    taken = op->numpys == NULL ? NULL : taken_over(op, &a, 1, callers);
    if (taken != NULL || PyErr_Occurred())
        return taken;
    PyArrayObject *x = op->numpys != NULL && Py_TYPE(a) == known.array ? shown_of((Handle *)a) : NULL;
    if (x != NULL && PyArray_NBYTES(x) < small_bytes()) {
        Py_INCREF(x);
        PyObject *given[1] = {(PyObject *)x}, *found = looped(op->numpys, given, 1, NULL);
        if (found == NULL && !PyErr_Occurred())
            found = shared(op->numpys, given, 1, NULL);
        if (found == NULL && !PyErr_Occurred())
            found = call_one(op->numpys, (PyObject *)x);
        Py_DECREF(x);
        return found == NULL ? NULL : wrapped(found);
    }
    return method_of(op, op->method) == NULL ? NULL : call_one(op->method, a);
}

/* Write what NumPy's function gives over a small array: 1, or 0, also without an error, where the methods are to. */
static int
written_over(PyObject *numpys, PyObject *a, PyObject *b)
{
    PyObject *y = operand_of(b), *found = NULL;
    PyArrayObject *target = y == NULL ? NULL : open_of((Handle *)a);
    if (target == NULL)
        return 0;
    if (PyArray_NBYTES(target) <= small_bytes()) {
        PyObject *given[2] = {(PyObject *)target, y};
        found = looped(numpys, given, 2, target);
        if (found == NULL && !PyErr_Occurred())
            found = shared(numpys, given, 2, target);
        if (found == NULL && !PyErr_Occurred()) {
            y = plain_of(y);
            found = y == NULL ? NULL : call_three(numpys, (PyObject *)target, y, (PyObject *)target);
            Py_XDECREF(y);
        }
    }
    Py_DECREF(target);
    Py_XDECREF(found);
    return found != NULL;
}

static PyObject *
in_place(const Operator *op, PyObject *a, PyObject *b)
{
    PyObject *all[1];
    Expression *e = Py_REFCNT(b) == 1 ? expression_of(b) : NULL;
    if (e != NULL)
        e->thread = NOBODY; /* taken here */
    if (settle_all() < 0)
        return NULL;
    if (e != NULL && Py_TYPE(a) == known.array) {
        PyArrayObject *target = open_of((Handle *)a);
        int done = target == NULL ? 0 : taken_into(op, target, e);
        Py_XDECREF(target);
        if (done != 0)
            return done < 0 ? NULL : Py_NewRef(a);
    }
    if (finish_pending(b) < 0)
        return NULL;
    int is_plain = op->numpys != NULL && Py_TYPE(a) == known.array;
    PyObject *elements = is_plain && is_derived(b) ? elements_beside(b) : NULL;
    if (elements != NULL) {
        PyObject *done = in_place(op, a, elements);
        Py_DECREF(elements);
        return done;
    }
    if (is_plain && written_over(op->numpys, a, b))
        return Py_NewRef(a);
    if (is_plain && !PyErr_Occurred() && unlisted(&b, 1, all)) {
        int is_written = written_over(op->numpys, a, all[0]);
        let_go(all, 1);
        if (is_written)
            return Py_NewRef(a);
    }
    if (PyErr_Occurred()) { /* read-only memory is copied */
        if (!PyErr_ExceptionMatches(PyExc_ValueError) || (Py_TYPE(b) == known.array && is_of_shapes()))
            return NULL;
        PyErr_Clear();
    }
    return method_of(op, op->method) == NULL ? NULL : call_two(op->method, a, b);
}

/* How texts compare with texts, and times with times; NULL, without an error where the methods have to say it. */
static PyObject *
alike_compared(PyObject *a, PyObject *b, int which)
{
    int of_a = NPY_NOTYPE, of_b = NPY_NOTYPE;
    PyObject *x = known.array == NULL ? NULL : text_or_time(a, &of_a), *y = x == NULL ? NULL : text_or_time(b, &of_b);
    if (y == NULL || of_a != of_b || !(PyArray_CheckExact(x) || PyArray_CheckExact(y)) || !stay_small(x, y))
        return NULL;
    Py_INCREF(x);
    Py_INCREF(y);
    PyObject *found = PyObject_RichCompare(x, y, which);
    Py_DECREF(x);
    Py_DECREF(y);
    if (found != NULL && PyArray_CheckExact(found))
        return wrapped(found);
    PyErr_Clear();
    Py_XDECREF(found);
    return NULL;
}

/* What numbers say to None: that none of them is it; NULL where the methods have to say it. */
static PyObject *
compared_with_none(PyObject *a, int which)
{
    PyArrayObject *x = known.array != NULL && Py_TYPE(a) == known.array ? shown_of((Handle *)a) : NULL;
    if (x == NULL || (which != Py_EQ && which != Py_NE) || PyArray_NDIM(x) == 0 || !stay_small((PyObject *)x, Py_None))
        return NULL;
    PyObject *found = PyArray_NewLikeArray(x, NPY_KEEPORDER, PyArray_DescrFromType(NPY_BOOL), 0);
    if (found != NULL)
        memset(PyArray_BYTES((PyArrayObject *)found), which == Py_NE, PyArray_NBYTES((PyArrayObject *)found));
    return found == NULL ? NULL : wrapped(found);
}

static NOT_INLINE PyObject *
compare(PyObject *a, PyObject *b, int which)
{
    PyObject *found = b == Py_None ? compared_with_none(a, which) : alike_compared(a, b, which);
    return found != NULL || PyErr_Occurred() ? found : of_two(&operators[comparisons[which]], a, b, CALLERS);
}

#define SLOT_OF_TWO(name, ...)                                                                                \
    static PyObject *name##_slot(PyObject *a, PyObject *b) { return of_two(&operators[op_##name], a, b, CALLERS); }
#define SLOT_IN_PLACE(name, ...)                                                                              \
    static PyObject *name##_slot(PyObject *a, PyObject *b) { return in_place(&operators[op_##name], a, b); }
#define SLOT_OF_ONE(name, ...)                                                                                \
    static PyObject *name##_slot(PyObject *a) { return of_one(&operators[op_##name], a, CALLERS); }
BINARY(SLOT_OF_TWO)
INPLACE(SLOT_IN_PLACE)
UNARY(SLOT_OF_ONE)
