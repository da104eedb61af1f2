/* Temporaries of an expression, whose memory the next operator takes for its result.
 *
 * In `(a + b) + c` nobody but the interpreter's stack has a reference to the first sum. NumPy's own operators write
 * their result over such an operand; so do these. A chain of operators then stays in what the cache holds of one
 * result, and asks for no memory but the first's. NumPy, asked for a temporary's elements, is given their memory. */

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

/* What an operator gives for operands, as the one of them that is a temporary and has taken the result (a new
 * reference); NULL without an error where none is. */
static PyObject *
taken_over(const Operator *op, PyObject *const *operands, int n, const char *callers)
{
    for (int i = 0; i < n; i++) {
        PyArrayObject *own = own_of(operands[i]);
        if (own == NULL || !is_called_by_interpreter(op, callers))
            continue;
        PyObject *given[2];
        Py_ssize_t bytes = 0;
        for (int k = 0; k < n; k++) {
            given[k] = operand_of(operands[k]);
            if (given[k] == NULL)
                return NULL;
            bytes += PyArray_CheckExact(given[k]) ? PyArray_NBYTES((PyArrayObject *)given[k]) : 0;
        }
        PyObject *found = bytes > small_bytes() ? NULL : shared(op->numpys, given, n, own);
        if (found != NULL || PyErr_Occurred()) {
            Py_XDECREF(found);
            return found == NULL ? NULL : Py_NewRef(operands[i]);
        }
    }
    return NULL;
}

/* A copy of an array of less than `least` bytes that is no view, asked for as it is; NULL, also without an error, where the methods are to see
 * to it. */
static PyObject *
copy_asked(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names, Py_ssize_t least)
{
    PyArrayObject *shown = Py_TYPE(self) == known.array ? shown_of((Handle *)self) : NULL;
    int is_whole = shown != NULL && PyTuple_GET_SIZE(((Handle *)self)->views) == 0;
    if (!is_whole || PyArray_NBYTES(shown) >= Py_MIN(least, small_bytes()))
        return NULL;
    Py_ssize_t more = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    if (n > 1 || more > 1 || (n == 1 && args[0] != Py_None && args[0] != (PyObject *)PyArray_DESCR(shown)))
        return NULL;
    if (more == 1 && (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "copy") != 0 || args[n] == Py_False))
        return NULL;
    return PyArray_NewCopy(shown, NPY_KEEPORDER);
}

/* The elements as NumPy asks for them: those of a temporary, as in `numpy.asarray(a + b)`, in the memory they lie in. */
static NOT_INLINE PyObject *
elements_asked(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names, const char *callers)
{
    const Operator *op = &operators[op_array];
    int is_handed = Py_REFCNT(self) == known.asked && is_called_by_interpreter(op, callers);
    PyObject *found = copy_asked(self, args, n, names, is_handed ? LEAST_TAKEN : known.least);
    if (found != NULL || PyErr_Occurred())
        return found;
    PyObject *method = is_handed ? known.handed : method_of(op, op->method), *all[4] = {self};
    Py_ssize_t count = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    if (method == NULL)
        return NULL;
    if (count >= (Py_ssize_t)Py_ARRAY_LENGTH(all)) {
        PyErr_SetString(PyExc_TypeError, "__array__ takes a dtype and whether to copy");
        return NULL;
    }
    memcpy(all + 1, args, count * sizeof(PyObject *));
    return PyObject_Vectorcall(method, all, n + 1, names);
}

static PyObject *
array(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    return elements_asked(self, args, n, names, CALLERS);
}
