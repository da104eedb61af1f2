/* Where a line of integers has each of its values: counted, and written down one value after the other.
 *
 * Pieces of the line are counted, which says where the places of each value in each piece go, and are then gone through
 * again. Another thread may write to the line meanwhile, as to any array, and then it is in no order. */

enum { MOST_VALUES = 1 << 12 };

typedef struct {
    const char *line;
    int type;
    npy_intp size, piece; /* elements of the line, and of each piece */
    int64_t least, *ends; /* the least value; of each piece the least and the greatest */
    npy_intp values;      /* from the least to the greatest */
    int32_t *next;        /* by pieces and values, how many there are, and then where the next one goes */
    int32_t *places;
} Grouped;

#define IN_PIECE(type, x, job, piece)                                                                         \
    const type *x = (const type *)(job)->line;                                                                \
    npy_intp i = (npy_intp)(piece) * (job)->piece, end = Py_MIN(i + (job)->piece, (job)->size)

static void
find_ends(void *of, int piece)
{
    Grouped *job = of;
    int64_t least, greatest;
#define FIND_ENDS(type)                                                                                       \
    do {                                                                                                      \
        IN_PIECE(type, x, job, piece);                                                                        \
        type low = x[i], high = x[i];                                                                         \
        for (; i < end; i++) {                                                                                \
            low = x[i] < low ? x[i] : low;                                                                    \
            high = x[i] > high ? x[i] : high;                                                                 \
        }                                                                                                     \
        least = low;                                                                                          \
        greatest = high;                                                                                      \
    } while (0)
    if (job->type == NPY_INT32)
        FIND_ENDS(int32_t);
    else
        FIND_ENDS(int64_t);
#undef FIND_ENDS
    job->ends[2 * piece] = least;
    job->ends[2 * piece + 1] = greatest;
}

static void
count_values(void *of, int piece)
{
    Grouped *job = of;
    int32_t *counts = job->next + piece * job->values;
#define COUNT_VALUES(type)                                                                                    \
    do {                                                                                                      \
        IN_PIECE(type, x, job, piece);                                                                        \
        for (; i < end; i++) {                                                                                \
            uint64_t value = (uint64_t)x[i] - (uint64_t)job->least;                                           \
            if (value < (uint64_t)job->values)                                                                \
                counts[value]++;                                                                              \
        }                                                                                                     \
    } while (0)
    if (job->type == NPY_INT32)
        COUNT_VALUES(int32_t);
    else
        COUNT_VALUES(int64_t);
#undef COUNT_VALUES
}

static void
write_places(void *of, int piece)
{
    Grouped *job = of;
    int32_t *next = job->next + piece * job->values;
#define WRITE_PLACES(type)                                                                                    \
    do {                                                                                                      \
        IN_PIECE(type, x, job, piece);                                                                        \
        for (; i < end; i++) {                                                                                \
            uint64_t value = (uint64_t)x[i] - (uint64_t)job->least;                                           \
            if (value < (uint64_t)job->values && next[value] < job->size)                                     \
                job->places[next[value]++] = (int32_t)i;                                                      \
        }                                                                                                     \
    } while (0)
    if (job->type == NPY_INT32)
        WRITE_PLACES(int32_t);
    else
        WRITE_PLACES(int64_t);
#undef WRITE_PLACES
}

/* The type that a line of integers is gone through as, NPY_NOTYPE for another array. */
static int
groups_as(PyArrayObject *a)
{
    int is_line = PyArray_NDIM(a) == 1 && PyArray_SIZE(a) > 0 && PyArray_SIZE(a) <= INT32_MAX && PyArray_IS_C_CONTIGUOUS(a)
                  && PyArray_ISBEHAVED_RO(a) && PyTypeNum_ISSIGNED(PyArray_TYPE(a));
    return !is_line ? NPY_NOTYPE : PyArray_ITEMSIZE(a) == 4 ? NPY_INT32 : PyArray_ITEMSIZE(a) == 8 ? NPY_INT64 : NPY_NOTYPE;
}

/* Find the least value and how many there are from it to the greatest: 0 where these are too many. */
static int
find_values(Grouped *job, int pieces, int threads)
{
    do_together(find_ends, job, pieces, threads);
    int64_t least = job->ends[0], greatest = job->ends[1];
    for (int piece = 1; piece < pieces; piece++) {
        least = Py_MIN(least, job->ends[2 * piece]);
        greatest = Py_MAX(greatest, job->ends[2 * piece + 1]);
    }
    if ((uint64_t)greatest - (uint64_t)least >= MOST_VALUES)
        return 0;
    job->least = least;
    job->values = (npy_intp)(greatest - least) + 1;
    return 1;
}

/* From how many truths on those of each value are, `firsts`, which has one more place for all. */
static void
add_counts(Grouped *job, int pieces, int64_t *firsts)
{
    int32_t before = 0;
    for (npy_intp value = 0; value < job->values; value++) {
        firsts[value] = before;
        for (int piece = 0; piece < pieces; piece++) {
            int32_t *place = job->next + piece * job->values + value, count = *place;
            *place = before;
            before += count;
        }
    }
    firsts[job->values] = before;
}

/* `grouped(line)`: the least value, where the places of each begin, and the places; None where NumPy's line has none. */
static PyObject *
grouped(PyObject *module, PyObject *line)
{
    PyArrayObject *a = (PyArrayObject *)line;
    int type = PyArray_CheckExact(line) ? groups_as(a) : NPY_NOTYPE;
    if (type == NPY_NOTYPE)
        Py_RETURN_NONE;
    int threads = threads_for(PyArray_SIZE(a), 0), pieces = threads == 1 ? 1 : EACH * threads;
    Grouped job = {.line = PyArray_BYTES(a), .type = type, .size = PyArray_SIZE(a)};
    job.piece = (job.size + pieces - 1) / pieces;
    pieces = (int)((job.size + job.piece - 1) / job.piece);
    PyObject *found = NULL;
    PyArrayObject *firsts = NULL, *places = NULL;
    job.ends = PyMem_Malloc(2 * pieces * sizeof *job.ends);
    int has_room = job.ends != NULL, is_grouped = 0;
    if (has_room) {
        PyThreadState *state = PyEval_SaveThread();
        is_grouped = find_values(&job, pieces, threads);
        PyEval_RestoreThread(state);
    }
    if (is_grouped) {
        npy_intp starts = job.values + 1;
        firsts = (PyArrayObject *)PyArray_SimpleNew(1, &starts, NPY_INT64);
        places = (PyArrayObject *)PyArray_SimpleNew(1, &job.size, NPY_INT32);
        job.next = PyMem_Calloc(pieces * job.values, sizeof *job.next);
        has_room = firsts != NULL && places != NULL && job.next != NULL;
    }
    if (is_grouped && has_room) {
        job.places = PyArray_DATA(places);
        PyThreadState *state = PyEval_SaveThread();
        do_together(count_values, &job, pieces, threads);
        add_counts(&job, pieces, PyArray_DATA(firsts));
        do_together(write_places, &job, pieces, threads);
        PyEval_RestoreThread(state);
        found = Py_BuildValue("LOO", (long long)job.least, firsts, places);
    }
    Py_XDECREF(firsts);
    Py_XDECREF(places);
    PyMem_Free(job.ends);
    PyMem_Free(job.next);
    if (!has_room && !PyErr_Occurred())
        PyErr_NoMemory();
    return found != NULL || PyErr_Occurred() ? found : Py_NewRef(Py_None);
}
