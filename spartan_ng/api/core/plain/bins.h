/* How many numbers fall into each of some bins that are equally wide, or the sums of their weights.
 *
 * NumPy makes an array of each step: what lies within, how far from the first edge, which bin that is, corrected where
 * rounding has it beyond an edge. Here all of it is done for one number after the other, by the same arithmetic, in
 * pieces as long as NumPy's, whose counts are added in the same order. */

enum { BIN_PIECE = 1 << 16, BIN_BLOCK = 1 << 8, MOST_COUNTED = 1 << 21 }; /* numbers; counts of all pieces */

typedef struct {
    const double *x, *weights, *edges;
    double first, last;
    npy_intp size, bins;
    char *counts; /* of each piece, integers or sums of weights */
} Bins;

static void
bin_piece(void *of, int piece)
{
    const Bins *job = of;
    npy_intp from = (npy_intp)piece * BIN_PIECE, end = Py_MIN(from + BIN_PIECE, job->size), bins = job->bins;
    int64_t *counts = (int64_t *)job->counts + piece * bins;
    double *sums = (double *)job->counts + piece * bins, places[BIN_BLOCK], width = job->last - job->first;
    for (; from < end; from += BIN_BLOCK) {
        npy_intp n = Py_MIN(end - from, BIN_BLOCK);
        const double *x = job->x + from;
        for (npy_intp k = 0; k < n; k++)
            places[k] = (x[k] - job->first) / width * (double)bins;
        for (npy_intp k = 0; k < n; k++) {
            if (!(x[k] >= job->first && x[k] <= job->last))
                continue;
            npy_intp bin = (npy_intp)places[k];
            bin -= bin == bins;
            bin -= x[k] < job->edges[bin];
            bin += x[k] >= job->edges[bin + 1] && bin != bins - 1;
            if (job->weights == NULL)
                counts[bin]++;
            else
                sums[bin] += job->weights[from + k];
        }
    }
}

static int
is_line_of_doubles(PyObject *a)
{
    return PyArray_CheckExact(a) && PyArray_TYPE((PyArrayObject *)a) == NPY_DOUBLE && PyArray_NDIM((PyArrayObject *)a) == 1
           && PyArray_ISCARRAY_RO((PyArrayObject *)a);
}

/* `binned(x, edges, weights)`: counts or sums for the bins between edges that NumPy has made, of which the first is
 * less than the last; None where NumPy is to do it. */
static PyObject *
binned(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !is_line_of_doubles(args[0]) || !is_line_of_doubles(args[1])
        || (args[2] != Py_None && !is_line_of_doubles(args[2]))) {
        PyErr_SetString(PyExc_TypeError, "binned takes three lines of doubles");
        return NULL;
    }
    PyArrayObject *x = (PyArrayObject *)args[0], *edges = (PyArrayObject *)args[1];
    PyArrayObject *weights = args[2] == Py_None ? NULL : (PyArrayObject *)args[2];
    Bins job = {.x = PyArray_DATA(x), .edges = PyArray_DATA(edges), .size = PyArray_SIZE(x),
                .bins = PyArray_SIZE(edges) - 1, .weights = weights == NULL ? NULL : PyArray_DATA(weights)};
    npy_intp pieces = (job.size + BIN_PIECE - 1) / BIN_PIECE;
    if (job.bins < 1 || pieces >= MOST_PIECES || pieces * job.bins > Py_MAX(MOST_COUNTED, job.bins)
        || (weights != NULL && PyArray_SIZE(weights) != job.size))
        Py_RETURN_NONE;
    job.first = job.edges[0];
    job.last = job.edges[job.bins];
    if (!(job.first < job.last) || !isfinite(job.last - job.first))
        Py_RETURN_NONE;
    PyObject *found = PyArray_ZEROS(1, &job.bins, weights == NULL ? NPY_LONG : NPY_DOUBLE, 0);
    job.counts = found == NULL ? NULL : PyMem_RawCalloc(Py_MAX(pieces, 1) * job.bins, sizeof(double));
    if (job.counts == NULL) {
        Py_XDECREF(found);
        return found == NULL ? NULL : PyErr_NoMemory();
    }
    PyThreadState *state = PyEval_SaveThread();
    do_together(bin_piece, &job, (int)pieces, helping_threads());
    char *into = PyArray_BYTES((PyArrayObject *)found);
    for (npy_intp i = 0; i < pieces * job.bins; i++)
        if (weights == NULL)
            ((int64_t *)into)[i % job.bins] += ((int64_t *)job.counts)[i];
        else
            ((double *)into)[i % job.bins] += ((double *)job.counts)[i];
    PyEval_RestoreThread(state);
    PyMem_RawFree(job.counts);
    return found;
}
