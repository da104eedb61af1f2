/* Rows of an array at places that are known to be in it, copied by all threads where that is sooner. They lie anywhere:
 * each is asked for while those before it are copied. */

enum { ROWS_PIECE = 1 << 10, ROWS_AHEAD = 8 };

typedef struct {
    const char *rows;
    char *found;
    npy_intp row, size; /* bytes of a row; how many are copied */
    const int32_t *places;
} Taken;

static void
ask_for(const char *row, npy_intp bytes)
{
#if defined(__GNUC__)
    for (npy_intp at = 0; at < bytes; at += 64)
        __builtin_prefetch(row + at);
#endif
}

static void
take_piece(void *of, int piece)
{
    Taken *job = of;
    npy_intp i = (npy_intp)piece * ROWS_PIECE, end = Py_MIN(i + ROWS_PIECE, job->size), row = job->row;
    char *out = job->found + i * row;
    if (row == 8)
        for (; i < end; i++, out += row)
            memcpy(out, job->rows + (npy_intp)job->places[i] * row, 8);
    for (; i < end; i++, out += row) {
        if (i + ROWS_AHEAD < end)
            ask_for(job->rows + (npy_intp)job->places[i + ROWS_AHEAD] * row, row);
        memcpy(out, job->rows + (npy_intp)job->places[i] * row, row);
    }
}

/* Whether an array has rows of numbers, one after the other. */
static int
has_rows(PyArrayObject *a)
{
    return PyArray_NDIM(a) > 0 && PyArray_SIZE(a) > 0 && PyArray_DIM(a, 0) <= INT32_MAX && PyArray_IS_C_CONTIGUOUS(a)
           && of_numbers((PyObject *)a) != NULL;
}

/* Whether so many places are those of rows. */
static int
are_places(const int32_t *places, npy_intp n, npy_intp rows)
{
    int are = 1;
    for (npy_intp i = 0; i < n; i++)
        are &= places[i] >= 0 && places[i] < rows;
    return are;
}

/* The rows of such an array at so many places, which are looked at before (a new reference). */
static PyObject *
rows_at(PyArrayObject *a, const int32_t *places, npy_intp n)
{
    npy_intp shape[NPY_MAXDIMS];
    memcpy(shape, PyArray_DIMS(a), PyArray_NDIM(a) * sizeof(npy_intp));
    shape[0] = n;
    Py_INCREF(PyArray_DESCR(a));
    PyObject *found = PyArray_SimpleNewFromDescr(PyArray_NDIM(a), shape, PyArray_DESCR(a));
    if (found == NULL || n == 0)
        return found;
    Taken job = {.rows = PyArray_BYTES(a), .found = PyArray_BYTES((PyArrayObject *)found), .size = n, .places = places,
                 .row = PyArray_NBYTES(a) / PyArray_DIM(a, 0)};
    npy_intp elements = n * (job.row / PyArray_ITEMSIZE(a));
    PyThreadState *state = let_others_run(elements, &a, 1);
    do_together(take_piece, &job, (int)((n + ROWS_PIECE - 1) / ROWS_PIECE), threads_for(elements, 0));
    go_on_alone(state, &a, 1);
    return found;
}

/* `taken_at(a, places)`: what an array of NumPy's has at places along its first axis. */
static PyObject *
taken_at(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyArray_CheckExact(args[0]) || !PyArray_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "taken_at takes two arrays of NumPy's");
        return NULL;
    }
    PyArrayObject *a = (PyArrayObject *)args[0], *places = (PyArrayObject *)args[1];
    if (has_rows(a) && PyArray_NDIM(places) == 1 && PyArray_TYPE(places) == NPY_INT32 && PyArray_IS_C_CONTIGUOUS(places)
        && PyArray_ISBEHAVED_RO(places) && are_places(PyArray_DATA(places), PyArray_SIZE(places), PyArray_DIM(a, 0)))
        return rows_at(a, PyArray_DATA(places), PyArray_SIZE(places));
    return PyArray_TakeFrom(a, args[1], 0, NULL, NPY_RAISE);
}
