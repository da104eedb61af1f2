/* Elements where a mask is true, of arrays that lie in one piece, by all threads where that is sooner.
 *
 * Pieces of the mask are counted, which says where the elements of each go, and then copied. A thread looks at eight
 * truths at a time: most masks are false or true for long. */

enum { MASK_PIECE = 1 << 14, LEAST_MASKED = 1 << 12 };

typedef struct {
    const char *elements;
    const npy_bool *mask;
    char *found;
    npy_intp size, itemsize;
    npy_intp *counts; /* of each piece, and then of those before it */
    Flags is_odd;     /* whether there are truths that are neither 0 nor 1, as those of other arrays' memory may be */
} Masked;

static uint64_t
eight(const npy_bool *mask)
{
    uint64_t truths;
    memcpy(&truths, mask, sizeof truths);
    return truths;
}

static void
count_piece(void *of, int piece)
{
    Masked *job = of;
    npy_intp i = (npy_intp)piece * MASK_PIECE, end = Py_MIN(i + MASK_PIECE, job->size), count = 0;
    uint64_t seen = 0;
    while (i + 8 <= end) { /* eight sums in one number: each stays below 256 */
        npy_intp until = Py_MIN(end - 7, i + 8 * 255);
        uint64_t sums = 0;
        for (; i < until; i += 8) {
            uint64_t truths = eight(job->mask + i);
            seen |= truths;
            sums += truths & 0x0101010101010101u;
        }
        for (; sums != 0; sums >>= 8)
            count += (npy_intp)(sums & 0xff);
    }
    for (; i < end; i++) {
        seen |= job->mask[i];
        count += job->mask[i];
    }
    job->counts[piece] = count;
    if (seen & 0xfefefefefefefefeu)
        set_flags(&job->is_odd, 1);
}

/* Copy the elements of a piece, whose type has this size. Nothing is written beyond those that are left. */
#define COPY_PIECE(type)                                                                                      \
    do {                                                                                                      \
        const type *x = (const type *)job->elements;                                                          \
        type *out = (type *)job->found + job->counts[piece], *last = (type *)job->found + job->counts[piece + 1]; \
        for (; i + 8 <= end && out < last; i += 8) {                                                          \
            uint64_t truths = eight(mask + i);                                                                \
            if (truths == 0x0101010101010101u && last - out >= 8) {                                                            \
                memcpy(out, x + i, 8 * sizeof(type));                                                         \
                out += 8;                                                                                     \
            }                                                                                                 \
            else if (truths != 0)                                                                             \
                for (int k = 0; k < 8 && out < last; k++) {                                                   \
                    *out = x[i + k];                                                                          \
                    out += mask[i + k];                                                                       \
                }                                                                                             \
        }                                                                                                     \
        for (; i < end && out < last; i++) {                                                                  \
            *out = x[i];                                                                                      \
            out += mask[i];                                                                                   \
        }                                                                                                     \
    } while (0)

typedef struct {
    uint64_t first, second;
} Pair;

static void
copy_piece(void *of, int piece)
{
    Masked *job = of;
    const npy_bool *mask = job->mask;
    npy_intp i = (npy_intp)piece * MASK_PIECE, end = Py_MIN(i + MASK_PIECE, job->size);
    switch (job->itemsize) {
    case 1:
        COPY_PIECE(uint8_t);
        break;
    case 4:
        COPY_PIECE(uint32_t);
        break;
    case 8:
        COPY_PIECE(uint64_t);
        break;
    case 16:
        COPY_PIECE(Pair);
        break;
    }
}

/* The elements of an array where a mask of its shape is true (a new reference); NULL, without an error where NumPy is
 * to find them. */
static PyObject *
masked(PyArrayObject *a, PyArrayObject *mask)
{
    npy_intp size = PyArray_SIZE(a), itemsize = PyArray_ITEMSIZE(a);
    int pieces = (int)((size + MASK_PIECE - 1) / MASK_PIECE), threads = helping_threads();
    if (size < LEAST_MASKED || pieces >= MOST_PIECES || !PyArray_ISBOOL(mask) || !PyArray_SAMESHAPE(a, mask)
        || !PyArray_IS_C_CONTIGUOUS(a) || !PyArray_IS_C_CONTIGUOUS(mask) || !PyArray_ISBEHAVED_RO(a)
        || of_numbers((PyObject *)a) == NULL || (itemsize != 1 && itemsize != 4 && itemsize != 8 && itemsize != 16))
        return NULL;
    Masked job = {.elements = PyArray_BYTES(a), .mask = (const npy_bool *)PyArray_BYTES(mask), .size = size,
                  .itemsize = itemsize, .counts = PyMem_Malloc((pieces + 1) * sizeof(npy_intp))};
    if (job.counts == NULL)
        return PyErr_NoMemory();
    int wakes = size * itemsize >= LARGE_BYTES;
    threads = size * itemsize < SHARED_BYTES ? 1 : threads;
    PyThreadState *state = size > MOST_LOOPED ? PyEval_SaveThread() : NULL;
    do_together(count_piece, &job, pieces, threads, wakes);
    npy_intp count = 0;
    for (int piece = 0; piece <= pieces; piece++) {
        npy_intp here = piece < pieces ? job.counts[piece] : 0;
        job.counts[piece] = count;
        count += here;
    }
    if (state != NULL)
        PyEval_RestoreThread(state);
    PyArray_Descr *dtype = PyArray_DESCR(a);
    PyObject *found = NULL;
    if (!job.is_odd) {
        Py_INCREF(dtype);
        found = PyArray_SimpleNewFromDescr(1, &count, dtype);
    }
    if (found != NULL && count > 0) {
        job.found = PyArray_BYTES((PyArrayObject *)found);
        state = size > MOST_LOOPED ? PyEval_SaveThread() : NULL;
        do_together(copy_piece, &job, pieces, threads, wakes);
        if (state != NULL)
            PyEval_RestoreThread(state);
    }
    PyMem_Free(job.counts);
    return found;
}

/* `selected(a, key)`: what NumPy gives for an array of its own and an array of indices. */
static PyObject *
selected_by(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyArray_CheckExact(args[0]) || !PyArray_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "selected takes two arrays of NumPy's");
        return NULL;
    }
    PyObject *found = masked((PyArrayObject *)args[0], (PyArrayObject *)args[1]);
    return found != NULL || PyErr_Occurred() ? found : PyObject_GetItem(args[0], args[1]);
}
