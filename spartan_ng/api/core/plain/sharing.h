/* Universal functions of arrays alike, line by line, and by all threads where that is sooner.
 *
 * NumPy goes through arrays that are no one line by an iterator, which takes longer than the loop over a short line,
 * and on one thread. Here the loop that it would call is called for pieces of the arrays: the same loop over the same
 * elements gives the same bits. Short lines are one line to it, several at a time, for which operands are gathered that
 * do not lie so, and results put where they belong. What is not alike, turned, or lies over each other is left to NumPy. */

enum { MOST_SHORT = 64, LEAST_GROUP = 32 }; /* elements of a line; of lines along one axis that are worth putting together */
enum { SHORT_TO_ONE = 512 }; /* bytes of a line, for each loop of several: to call one takes as long as to gather as many */
enum { LEAST_PIECE = 1 << 11, MOST_PIECE = 1 << 16, EACH = 4 };  /* elements; bytes of a place; pieces for each thread */
enum { LEAST_SHARED = 1 << 14, FAR = 8 };                        /* elements; elements that a far one counts for */

/* A piece: some parts of lines, one after the other. */
static void
do_piece(void *of, int piece)
{
    Shared *job = of;
    npy_intp first = piece * job->per_piece, end = Py_MIN(first + job->per_piece, job->units);
    int last = job->axes - 1;
    npy_intp length = job->shape[last], steps[MOST_SHARED + 1];
    for (int i = 0; i < job->n; i++)
        steps[i] = job->steps[i][last];
    be_quiet();
    Place here = place_at(job, first);
    for (npy_intp unit = first; unit < end; unit++, go_on(job, &here)) {
        npy_intp done = job->kernel != NULL && !job->refused ? units_by_kernel(job, &here, end - unit) : 0;
        if (done > 0) {
            unit += done - 1;
            continue;
        }
        if (job->together) {
            npy_intp lines = Py_MIN(job->together, end - unit);
            do_lines(job, &here, lines);
            unit += lines - 1;
            continue;
        }
        npy_intp from = here.part * job->part, count = Py_MIN(length - from, job->part);
        char *places[MOST_SHARED + 1];
        for (int i = 0; i < job->n; i++)
            places[i] = here.lines[i] + from * steps[i];
        call_loops(job, places, count, steps);
    }
    int told = fetestexcept(TOLD);
    if (told)
        set_flags(&job->told, told);
}

/* Whether an array's axes go from long steps to short ones, as in C order; those of no step are stretched. */
static int
is_in_order(PyArrayObject *a)
{
    npy_intp before = NPY_MAX_INTP;
    for (int axis = 0; axis < PyArray_NDIM(a); axis++) {
        npy_intp step = PyArray_STRIDE(a, axis);
        if (step < 0 || step > before)
            return 0;
        if (step > 0 && PyArray_DIM(a, axis) > 1)
            before = step;
    }
    return PyArray_ISBEHAVED_RO(a);
}

/* The bytes from an array's first element to its last. */
static npy_intp
reach(PyArrayObject *a)
{
    npy_intp bytes = PyArray_ITEMSIZE(a);
    for (int axis = 0; axis < PyArray_NDIM(a); axis++)
        bytes += (PyArray_DIM(a, axis) - 1) * PyArray_STRIDE(a, axis);
    return bytes;
}

/* Whether two arrays are the same elements in memory. */
static int
is_same(PyArrayObject *a, PyArrayObject *b)
{
    return PyArray_BYTES(a) == PyArray_BYTES(b) && PyArray_SAMESHAPE(a, b)
           && PyArray_CompareLists(PyArray_STRIDES(a), PyArray_STRIDES(b), PyArray_NDIM(a));
}

/* Whether a result may be written where `out` lies while `a` is read: the same elements, or none. */
static int
is_apart(PyArrayObject *out, PyArrayObject *a)
{
    if (PyArray_BYTES(a) + reach(a) <= PyArray_BYTES(out) || PyArray_BYTES(out) + reach(out) <= PyArray_BYTES(a))
        return 1;
    return is_same(a, out);
}

/* Whether no two elements of an array that is written to lie over each other. */
static int
is_spread(PyArrayObject *out)
{
    npy_intp reached = PyArray_ITEMSIZE(out);
    for (int axis = PyArray_NDIM(out) - 1; axis >= 0; axis--) {
        if (PyArray_DIM(out, axis) > 1 && PyArray_STRIDE(out, axis) < reached)
            return 0;
        reached += (PyArray_DIM(out, axis) - 1) * PyArray_STRIDE(out, axis);
    }
    return 1;
}

/* The shape that operands are broadcast to; the number of its axes, or -1. */
static int
common_shape(PyArrayObject **arrays, int n, npy_intp *shape)
{
    int axes = 0;
    for (int i = 0; i < n; i++)
        axes = arrays[i] == NULL ? axes : Py_MAX(axes, PyArray_NDIM(arrays[i]));
    if (axes < 1 || axes > MOST_AXES)
        return -1;
    for (int axis = 0; axis < axes; axis++)
        shape[axis] = 1;
    for (int i = 0; i < n; i++)
        for (int axis = 1; arrays[i] != NULL && axis <= PyArray_NDIM(arrays[i]); axis++) {
            npy_intp length = PyArray_DIM(arrays[i], PyArray_NDIM(arrays[i]) - axis), *found = &shape[axes - axis];
            if (length != 1 && *found != 1 && length != *found)
                return -1;
            *found = length == 1 ? *found : length;
        }
    return axes;
}

/* Whether lines, and the axis that they lie along, have few elements, and an array is stretched along one of them: NumPy
 * loops over the lines as they are, and what is put together of them is little. */
static int
stretches_few(const npy_intp *dims, int ndim, const npy_intp *shape, int axes)
{
    if (axes < 3 || shape[axes - 1] * shape[axes - 2] >= LEAST_GROUP)
        return 0;
    for (int axis = 1; axis <= 2; axis++)
        if (shape[axes - axis] > 1 && (axis > ndim || dims[ndim - axis] == 1))
            return ndim > 0;
    return 0;
}

/* Let an operand take part: a number at `place`, or an array that is broadcast to the job's shape. */
static void
take_part(Shared *job, int i, PyArrayObject *a, char *place)
{
    job->places[i] = a == NULL ? place : PyArray_BYTES(a);
    int missing = job->axes - (a == NULL ? 0 : PyArray_NDIM(a));
    for (int axis = 0; axis < job->axes; axis++)
        job->steps[i][axis] = a == NULL || axis < missing || PyArray_DIM(a, axis - missing) == 1
                                  ? 0
                                  : PyArray_STRIDE(a, axis - missing);
}

/* Of one element NumPy's loops are given the steps that arrays of as many axes have, which nobody goes: complex numbers
 * are multiplied in another way, with other last bits, where there are none, as where such arrays are broadcast. */
static void
step_over_one(Shared *job, PyArrayObject *const *arrays, PyArrayObject *out)
{
    for (int axis = 0; axis < job->axes; axis++)
        if (job->shape[axis] != 1)
            return;
    for (int i = 0; i < job->n - 1; i++)
        if (arrays[i] != NULL && PyArray_NDIM(arrays[i]) != 0 && PyArray_NDIM(arrays[i]) != job->axes)
            return;
    for (int i = 0; i < job->n; i++) {
        PyArrayObject *a = i == job->n - 1 ? out : arrays[i];
        for (int axis = 0; axis < job->axes; axis++)
            if (a != NULL && PyArray_NDIM(a) != 0)
                job->steps[i][axis] = job->axes == 1 ? PyArray_STRIDE(a, 0) : PyArray_ITEMSIZE(a);
    }
}

/* By how many threads so many elements are worth working on, one of which lies so many bytes from the next. Where each has
 * a line of the cache of its own, it takes as long as several that share one. */
static int
threads_for(npy_intp size, npy_intp step)
{
    return size * (step < CACHE_LINE ? 1 : FAR) < LEAST_SHARED ? 1 : helping_threads();
}

/* How far the elements of an array lie from each other, along its last axis. */
static npy_intp
last_step(PyArrayObject *a)
{
    int axes = PyArray_NDIM(a);
    return axes == 0 || PyArray_DIM(a, axes - 1) == 1 ? 0 : PyArray_STRIDE(a, axes - 1);
}

/* Join axes that all places, whose elements have so many bytes at most, go through as through one, and cut what is there
 * into pieces; how many. */
static int
cut(Shared *job, npy_intp itemsize, int threads)
{
    int last = 0;
    for (int axis = 1; axis < job->axes; axis++) {
        if (job->shape[axis] == 1)  /* whose steps nobody goes */
            continue;
        int joins = 1;
        for (int i = 0; i < job->n; i++)
            joins = joins && job->steps[i][last] == job->steps[i][axis] * job->shape[axis];
        if (!joins && job->shape[last] != 1)
            last++;
        job->shape[last] = joins ? job->shape[last] * job->shape[axis] : job->shape[axis];
        for (int i = 0; i < job->n; i++)
            job->steps[i][last] = job->steps[i][axis];
    }
    job->axes = last + 1;
    npy_intp length = job->shape[last], lines = 1;
    for (int axis = 0; axis < last; axis++)
        lines *= job->shape[axis];
    job->part = Py_MAX(LEAST_PIECE, Py_MIN(lines * length / (EACH * threads), MOST_PIECE / itemsize)) / 64 * 64;
    job->parts = (length + job->part - 1) / job->part;
    job->units = lines * job->parts;
    job->per_piece = Py_MAX(1, job->part / Py_MAX(length, 1));
    while ((job->units + job->per_piece - 1) / job->per_piece >= MOST_PIECES)
        job->per_piece *= 2;
    return (int)((job->units + job->per_piece - 1) / job->per_piece);
}

/* How many lines of a job the loop gets at a time, 0 where they are long. */
static npy_intp
lines_together(const Shared *job, npy_intp itemsize)
{
    npy_intp length = job->shape[job->axes - 1];
    int is_short = length <= MOST_SHORT
                   || (job->count > 1 && itemsize * length <= Py_MIN(job->count * SHORT_TO_ONE, GATHERED / 2));
    return job->axes > 1 && is_short ? GATHERED / (itemsize * length) : 0;
}

/* What the errors of floating-point operations are to NumPy. */
static int
numpys_errors(int told)
{
    return (told & FE_DIVBYZERO ? NPY_FPE_DIVIDEBYZERO : 0) | (told & FE_OVERFLOW ? NPY_FPE_OVERFLOW : 0)
           | (told & FE_UNDERFLOW ? NPY_FPE_UNDERFLOW : 0) | (told & FE_INVALID ? NPY_FPE_INVALID : 0);
}

/* Let other threads run while so many elements are worked on, if that is long. They may give arrays other elements
 * meanwhile, or let go of them: what is read is kept. */
static PyThreadState *
let_others_run(npy_intp size, PyArrayObject **read, int n)
{
    if (size <= MOST_LOOPED)
        return NULL;
    for (int i = 0; i < n; i++)
        Py_XINCREF(read[i]);
    return PyEval_SaveThread();
}

static void
go_on_alone(PyThreadState *state, PyArrayObject **read, int n)
{
    if (state == NULL)
        return;
    PyEval_RestoreThread(state);
    for (int i = 0; i < n; i++)
        Py_XDECREF(read[i]);
}

/* What a function of NumPy's gives for operands whose axes lie in order, as `shared` does. */
static PyObject *
shared_in_order(PyObject *numpys, PyObject *const *operands, Py_ssize_t n, PyArrayObject *out)
{
    PyUFuncObject *f = (PyUFuncObject *)numpys;
    if (known.array == NULL || !Py_IS_TYPE(numpys, &PyUFunc_Type) || f->nin != n || n < 1 || n > MOST_SHARED
        || f->nout != 1 || f->core_enabled || PySet_Contains(known.ufuncs, numpys) != 1)
        return NULL;
    PyArrayObject *arrays[MOST_SHARED + 1] = {NULL};
    double numbers[MOST_SHARED][2];
    int type = NPY_NOTYPE;
    for (Py_ssize_t i = 0; i < n; i++)
        if (PyArray_CheckExact(operands[i])) {
            arrays[i] = (PyArrayObject *)operands[i];
            if ((type != NPY_NOTYPE && PyArray_TYPE(arrays[i]) != type) || !is_in_order(arrays[i]))
                return NULL;
            type = PyArray_TYPE(arrays[i]);
        }
    if (!is_of_loops(type) || raises_errors(f, type))
        return NULL;
    int loop = loop_for(f, type);
    Shared job = {.n = (int)n + 1};
    job.axes = loop < 0 ? -1 : common_shape(arrays, (int)n, job.shape);
    if (job.axes < 0)
        return NULL;
    int found = f->types[loop * f->nargs + n];
    npy_intp size = PyArray_MultiplyList(job.shape, job.axes);
    if (!PyTypeNum_ISNUMBER(found) && !PyTypeNum_ISBOOL(found))
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        if (arrays[i] != NULL && stretches_few(PyArray_DIMS(arrays[i]), PyArray_NDIM(arrays[i]), job.shape, job.axes))
            return NULL;
    if (size == 0)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        if (arrays[i] == NULL && !as_element(operands[i], type, (char *)numbers[i]))
            return NULL;
    if (out != NULL) {
        if (PyArray_TYPE(out) != found || PyArray_NDIM(out) != job.axes || !PyArray_ISBEHAVED(out) || !is_in_order(out)
            || !PyArray_CompareLists(PyArray_DIMS(out), job.shape, job.axes) || !is_spread(out))
            return NULL;
        for (Py_ssize_t i = 0; i < n; i++)
            if (arrays[i] != NULL && !is_apart(out, arrays[i]))
                return NULL;
        Py_INCREF(out);
    }
    else if ((out = (PyArrayObject *)PyArray_SimpleNew(job.axes, job.shape, found)) == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        take_part(&job, (int)i, arrays[i], (char *)numbers[i]);
    take_part(&job, (int)n, out, NULL);
    step_over_one(&job, arrays, out);
    job.loop = f->functions[loop];
    job.data = f->data == NULL ? NULL : (void *)f->data[loop];
    npy_intp furthest = 0, itemsize = PyArray_ITEMSIZE(out);
    job.sizes[n] = itemsize;
    for (Py_ssize_t i = 0; i < n; i++) {
        job.sizes[i] = arrays[i] == NULL ? 0 : PyArray_ITEMSIZE(arrays[i]);
        itemsize = Py_MAX(itemsize, job.sizes[i]);
    }
    for (int i = 0; i < job.n; i++)
        furthest = Py_MAX(furthest, job.shape[job.axes - 1] == 1 ? 0 : job.steps[i][job.axes - 1]);
    int threads = threads_for(size, furthest), pieces = cut(&job, itemsize, threads);
    job.together = lines_together(&job, itemsize);
    PyThreadState *state = let_others_run(size, arrays, (int)n);
    do_together(do_piece, &job, pieces, threads);
    go_on_alone(state, arrays, (int)n);
    if (job.told && PyUFunc_GiveFloatingpointErrors(f->name, numpys_errors(job.told)) < 0) {
        Py_DECREF(out);
        return NULL;
    }
    return (PyObject *)out;
}
