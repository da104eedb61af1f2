/* Temporaries of an expression, whose memory the next operator takes for its result.
 *
 * In `(a + b) + c` nobody but the interpreter's stack has a reference to the first sum. NumPy's own operators write
 * their result over such an operand; so do these. A chain of operators then stays in what the cache holds of one
 * result, and asks for no memory but the first's. */

enum { LEAST_TAKEN = 1 << 12 }; /* bytes; a smaller result is made anew in the time that asking takes */

static int
is_none(PyObject *field)
{
    return field == NULL || field == Py_None;
}

/* What an operand shows that has one reference, if that is all that it stands for, and nobody else knows it or its cell;
 * else NULL. */
static PyArrayObject *
own_of(PyObject *a)
{
    Handle *array = (Handle *)a;
    if (Py_REFCNT(a) != 1 || Py_TYPE(a) != known.array || array->weakrefs != NULL || !known.temporaries)
        return NULL;
    PyArrayObject *shown = shown_of(array);
    if (shown == NULL || PyTuple_GET_SIZE(array->views) != 0 || PyArray_NBYTES(shown) < LEAST_TAKEN)
        return NULL;
    Cell *cell = cell_of(array);
    int is_own = is_none(cell->node) && is_none(cell->masked) && is_none(cell->order) && is_none(cell->lender)
                 && is_none(cell->source) && is_none(cell->owner)
                 && !(cell->frozen || cell->borrowed || cell->blank || cell->shared) && cell->weakrefs == NULL
                 && Py_REFCNT(cell) == 1 && Py_REFCNT(shown) == 1
                 && ((PyArrayObject_fields *)shown)->weakreflist == NULL
                 && PyArray_CHKFLAGS(shown, NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE);
    return is_own ? shown : NULL;
}

/* What NumPy's function gives for an array that is written over and an operand of another type, whose elements it has room
 * for (a new reference); NULL without an error where it gives another type or shape. */
static PyObject *
cast_into(PyObject *numpys, PyObject *const *given, int n, PyArrayObject *own)
{
    PyUFuncObject *f = (PyUFuncObject *)numpys;
    int type = PyArray_TYPE(own), loop = Py_IS_TYPE(numpys, &PyUFunc_Type) && f->nin == n && n == 2 && f->nout == 1 ? loop_for(f, type) : -1;
    if (loop < 0 || f->types[loop * f->nargs + 2] != type)
        return NULL;
    for (int i = 0; i < 2; i++) {
        PyArrayObject *a = (PyArrayObject *)given[i];
        if (!PyArray_CheckExact(given[i]) || !PyArray_CanCastSafely(PyArray_TYPE(a), type) || PyArray_NDIM(a) > PyArray_NDIM(own))
            return NULL;
        for (int axis = 1; axis <= PyArray_NDIM(a); axis++) {
            npy_intp length = PyArray_DIM(a, PyArray_NDIM(a) - axis);
            if (length != 1 && length != PyArray_DIM(own, PyArray_NDIM(own) - axis))
                return NULL;
        }
    }
    return call_three(numpys, given[0], given[1], (PyObject *)own);
}

/* What an operator gives for operands, as the one of them that is a temporary and has taken the result (a new
 * reference); NULL without an error where none is. */
static PyObject *
taken_over(const Operator *op, PyObject *const *operands, int n, const char *callers)
{
    for (int i = 0; i < n; i++) {
        PyArrayObject *own = own_of(operands[i]);
        if (own == NULL || !has_temporaries(op, callers))
            continue;
        PyObject *given[2];
        Py_ssize_t bytes = 0;
        for (int k = 0; k < n; k++) {
            given[k] = operand_of(operands[k]);
            if (given[k] == NULL)
                return NULL;
            int is_read = k != i && PyArray_CheckExact(given[k]);
            bytes += is_read ? PyArray_NBYTES((PyArrayObject *)given[k]) : 0;
        }
        int is_small = PyArray_NBYTES(own) <= small_bytes() && bytes <= small_bytes(); /* nothing is made besides */
        PyObject *found = is_small ? shared(op->numpys, given, n, own) : NULL;
        if (found == NULL && is_small && !PyErr_Occurred())
            found = cast_into(op->numpys, given, n, own);
        if (found != NULL || PyErr_Occurred()) {
            Py_XDECREF(found);
            return found == NULL ? NULL : Py_NewRef(operands[i]);
        }
    }
    return NULL;
}
