/* Elements where a mask is true, of arrays that lie in one piece, read and written by all threads where that is sooner.
 *
 * Pieces of the mask are counted, which says where the elements of each go or come from, and then copied. A thread looks
 * at eight truths at a time: most masks are false or true for long. */

enum { MASK_PIECE = 1 << 14, LEAST_MASKED = 1 << 12 };

typedef struct {
    char *elements;
    const npy_bool *mask;
    char *found;      /* what is selected, or what is written, */
    int is_one;       /* a number everywhere */
    int32_t *places;  /* where truths are */
    npy_intp size, itemsize;
    int pieces, threads;
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

/* Which of eight truths, each 0 or 1, are true, as bits. */
static unsigned
true_ones(uint64_t truths, const npy_bool *mask)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ /* each truth moves to a bit of the last byte */
    return (unsigned)(truths * 0x0102040810204080u >> 56);
#else
    unsigned bits = 0;
    for (int k = 0; k < 8; k++)
        bits |= (unsigned)mask[k] << k;
    return bits;
#endif
}

/* The place of the first bit that is set, of some. */
static int
first_bit(unsigned bits)
{
#if defined(__GNUC__)
    return __builtin_ctz(bits);
#else
    int k = 0;
    while (!(bits >> k & 1))
        k++;
    return k;
#endif
}

/* Write the elements of a piece, one after the other as far as there are, or one everywhere. What the mask leaves out is
 * not touched: others may write there. */
#define PUT_PIECE(type, step)                                                                                 \
    do {                                                                                                      \
        type *out = (type *)job->elements;                                                                    \
        const type *x = (const type *)job->found + (step ? job->counts[piece] : 0);                           \
        const type *last = step ? (const type *)job->found + job->counts[piece + 1] : x + 1;                  \
        for (; i + 8 <= end && x < last; i += 8) {                                                            \
            uint64_t truths = eight(mask + i);                                                                \
            if (truths == 0x0101010101010101u && (step == 0 || last - x >= 8))                                \
                for (int k = 0; k < 8; k++, x += step)                                                        \
                    out[i + k] = *x;                                                                          \
            else if (truths != 0)                                                                             \
                for (unsigned bits = true_ones(truths, mask + i); bits != 0 && x < last; bits &= bits - 1, x += step) \
                    out[i + first_bit(bits)] = *x;                                                            \
        }                                                                                                     \
        for (; i < end && x < last; i++)                                                                      \
            if (mask[i]) {                                                                                    \
                out[i] = *x;                                                                                  \
                x += step;                                                                                    \
            }                                                                                                 \
    } while (0)

static void
put_piece(void *of, int piece)
{
    Masked *job = of;
    const npy_bool *mask = job->mask;
    npy_intp i = (npy_intp)piece * MASK_PIECE, end = Py_MIN(i + MASK_PIECE, job->size);
#define PUT(type)                                                                                             \
    if (job->is_one)                                                                                          \
        PUT_PIECE(type, 0);                                                                                   \
    else                                                                                                      \
        PUT_PIECE(type, 1);                                                                                   \
    break
    switch (job->itemsize) {
    case 1:
        PUT(uint8_t);
    case 4:
        PUT(uint32_t);
    case 8:
        PUT(uint64_t);
    case 16:
        PUT(Pair);
    }
#undef PUT
}

/* Write down where the truths of a piece are. Nothing is written beyond those that were counted. */
static void
list_piece(void *of, int piece)
{
    Masked *job = of;
    const npy_bool *mask = job->mask;
    npy_intp i = (npy_intp)piece * MASK_PIECE, end = Py_MIN(i + MASK_PIECE, job->size);
    int32_t *out = job->places + job->counts[piece], *last = job->places + job->counts[piece + 1];
    for (; i + 8 <= end && out < last; i += 8)
        for (unsigned bits = true_ones(eight(mask + i), mask + i); bits != 0 && out < last; bits &= bits - 1)
            *out++ = (int32_t)(i + first_bit(bits));
    for (; i < end && out < last; i++)
        if (mask[i])
            *out++ = (int32_t)i;
}

/* How the elements of an array are worked on where a mask of its shape is true; 0 where NumPy is to do it. */
static int
is_masked(Masked *job, PyArrayObject *a, PyArrayObject *mask)
{
    npy_intp size = PyArray_SIZE(a), itemsize = PyArray_ITEMSIZE(a);
    *job = (Masked){.elements = PyArray_BYTES(a), .mask = (const npy_bool *)PyArray_BYTES(mask), .size = size,
                    .itemsize = itemsize, .pieces = (int)((size + MASK_PIECE - 1) / MASK_PIECE),
                    .threads = threads_for(size, 0)};
    return size >= LEAST_MASKED && size / MASK_PIECE < MOST_PIECES - 1 && PyArray_ISBOOL(mask)
           && PyArray_SAMESHAPE(a, mask) && PyArray_IS_C_CONTIGUOUS(a) && PyArray_IS_C_CONTIGUOUS(mask)
           && PyArray_ISBEHAVED_RO(a) && of_numbers((PyObject *)a) != NULL
           && (itemsize == 1 || itemsize == 4 || itemsize == 8 || itemsize == 16);
}

/* Have the pieces of a mask worked on, by all threads where that is sooner. */
static void
mask_together(Masked *job, Work work)
{
    PyThreadState *state = job->size > MOST_LOOPED ? PyEval_SaveThread() : NULL;
    do_together(work, job, job->pieces, job->threads);
    if (state != NULL)
        PyEval_RestoreThread(state);
}

/* Count the truths of each piece and all before it; how many there are, or -1 with an error. */
static npy_intp
count_true(Masked *job)
{
    job->counts = PyMem_Malloc((job->pieces + 1) * sizeof(npy_intp));
    if (job->counts == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    mask_together(job, count_piece);
    npy_intp count = 0;
    for (int piece = 0; piece <= job->pieces; piece++) {
        npy_intp here = piece < job->pieces ? job->counts[piece] : 0;
        job->counts[piece] = count;
        count += here;
    }
    return count;
}

/* Whether a mask keeps lines of an array that lies in one piece. */
static int
keeps_lines(PyArrayObject *a, PyArrayObject *mask)
{
    return PyArray_ISBOOL(mask) && PyArray_NDIM(mask) == 1 && PyArray_NDIM(a) > 1
           && PyArray_DIM(a, 0) == PyArray_DIM(mask, 0) && PyArray_IS_C_CONTIGUOUS(a);
}

/* The lines of an array that a mask keeps (a new reference); NULL, without an error where NumPy is to find them. NumPy's
 * index copies each element by itself. */
static PyObject *
lines_kept(PyArrayObject *a, PyArrayObject *mask)
{
    Masked job = {0};
    npy_intp count = has_rows(a) && is_masked(&job, mask, mask) ? count_true(&job) : -1;
    PyObject *found = NULL;
    if (count >= 0 && !job.is_odd) {
        job.places = PyMem_Malloc((count + 1) * sizeof *job.places);
        if (job.places == NULL)
            PyErr_NoMemory();
        else
            mask_together(&job, list_piece);
    }
    if (job.places != NULL && are_places(job.places, count, PyArray_DIM(a, 0)))
        found = rows_at(a, job.places, count);
    PyMem_Free(job.places);
    PyMem_Free(job.counts);
    return found;
}

/* The elements of an array where a mask of its shape, or of its lines, is true (a new reference); NULL, without an error
 * where NumPy is to find them. Lines are copied by `compress` as they lie where there are few or of other kinds. */
static PyObject *
masked(PyArrayObject *a, PyArrayObject *mask)
{
    if (keeps_lines(a, mask)) {
        PyObject *kept = lines_kept(a, mask);
        return kept != NULL || PyErr_Occurred() ? kept : PyArray_Compress(a, (PyObject *)mask, 0, NULL);
    }
    Masked job;
    npy_intp count = is_masked(&job, a, mask) ? count_true(&job) : -1;
    PyArray_Descr *dtype = PyArray_DESCR(a);
    PyObject *found = NULL;
    if (count >= 0 && !job.is_odd) {
        Py_INCREF(dtype);
        found = PyArray_SimpleNewFromDescr(1, &count, dtype);
    }
    if (found != NULL && count > 0) {
        job.found = PyArray_BYTES((PyArrayObject *)found);
        mask_together(&job, copy_piece);
    }
    PyMem_Free(job.counts);
    return found;
}

/* Write a number, or elements of the same dtype, where a mask of an array's shape is true; 0, also with an error, where
 * NumPy is to do it. */
static int
masked_put(PyArrayObject *a, PyArrayObject *mask, PyObject *value)
{
    Masked job;
    Pair number;
    if (!PyArray_ISWRITEABLE(a) || !is_masked(&job, a, mask))
        return 0;
    job.is_one = !PyArray_CheckExact(value);
    job.found = (char *)&number;
    int fits = job.is_one ? as_element(value, PyArray_TYPE(a), job.found) : 0;
    if (!job.is_one) {
        PyArrayObject *given = (PyArrayObject *)value;
        fits = PyArray_DESCR(given) == PyArray_DESCR(a) && PyArray_NDIM(given) == 1 && PyArray_SIZE(given) > 1
               && PyArray_IS_C_CONTIGUOUS(given) && PyArray_ISBEHAVED_RO(given)
               && (PyArray_BYTES(given) + PyArray_NBYTES(given) <= job.elements
                   || job.elements + PyArray_NBYTES(a) <= PyArray_BYTES(given));
        job.found = PyArray_BYTES(given);
    }
    fits = fits && (job.elements + PyArray_NBYTES(a) <= (char *)job.mask || (char *)job.mask + job.size <= job.elements);
    npy_intp count = fits ? count_true(&job) : -1;
    if (count >= 0 && !job.is_odd && (job.is_one || count == PyArray_SIZE((PyArrayObject *)value)))
        mask_together(&job, put_piece);
    else
        count = -1;
    PyMem_Free(job.counts);
    return count >= 0;
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

/* `put(a, key, value)`: what `a[key] = value` does to an array of NumPy's own, by all threads where that is sooner. */
static PyObject *
put_by(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyArray_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "put takes an array of NumPy's, a key and a value");
        return NULL;
    }
    int done = PyArray_CheckExact(args[1]) && masked_put((PyArrayObject *)args[0], (PyArrayObject *)args[1], args[2]);
    if (PyErr_Occurred() || (!done && PyObject_SetItem(args[0], args[1], args[2]) < 0))
        return NULL;
    Py_RETURN_NONE;
}
