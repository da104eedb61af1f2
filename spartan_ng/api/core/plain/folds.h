/* Folds of few numbers along axes: NumPy's loops, without what NumPy does around them.
 *
 * NumPy's iterator goes along the axes as they lie in memory, and calls its loop for each line; so does this, which
 * gives the same bits. Where what is added up are short lines, the calls take longer than the sums: these are made
 * here, some columns at a time, in the order of the rows as there. */

enum { MOST_BESIDE = 8, SHORT_LINE = 64 }; /* columns that are summed together; of lines that NumPy's loop is not called for */

typedef void (*SumRows)(char *out, const char *x, npy_intp columns, npy_intp rows, npy_intp step);

typedef struct {
    PyUFuncGenericFunction loop;
    void *data;
    SumRows sum_rows;                 /* for the last two axes together, or NULL */
    int axes, last, starts;           /* the axis where lines begin; whether a fold starts with a number, */
    size_t itemsize;
    char start[sizeof(double)];       /* which is this one */
    npy_intp shape[MOST_AXES], of_a[MOST_AXES], of_out[MOST_AXES]; /* steps, which are 0 along what is folded */
} Fold;

#define SUM_BESIDE(type, count)                                                                               \
    for (; j + count <= columns; j += count) {                                                                \
        type sums[count];                                                                                     \
        memcpy(sums, (type *)out + j, sizeof sums);                                                           \
        const char *row = x + j * (npy_intp)sizeof(type);                                                     \
        for (npy_intp i = 0; i < rows; i++, row += step)                                                      \
            for (int k = 0; k < count; k++)                                                                   \
                sums[k] += ((const type *)row)[k];                                                            \
        memcpy((type *)out + j, sums, sizeof sums);                                                           \
    }
#define SUM_ROWS(type)                                                                                        \
    static void sum_rows_of_##type(char *out, const char *x, npy_intp columns, npy_intp rows, npy_intp step) \
    {                                                                                                         \
        npy_intp j = 0;                                                                                       \
        SUM_BESIDE(type, MOST_BESIDE)                                                                         \
        SUM_BESIDE(type, 2)                                                                                   \
        SUM_BESIDE(type, 1)                                                                                   \
    }
SUM_ROWS(float)
SUM_ROWS(double)

/* Fold a line of the array, or lines of rows, into where its result goes, for the first time or after others. */
static void
fold_line(const Fold *job, char *out, char *x, int is_first)
{
    npy_intp n = job->shape[job->last], of_a = job->of_a[job->last], of_out = job->of_out[job->last];
    if (job->sum_rows != NULL) {
        npy_intp columns = job->shape[job->axes - 1];
        if (is_first)
            memset(out, 0, columns * job->itemsize);
        job->sum_rows(out, x, columns, n, of_a);
        return;
    }
    if (is_first && !job->starts && of_out != 0) {
        for (npy_intp i = 0; i < n; i++)
            memcpy(out + i * of_out, x + i * of_a, job->itemsize);
        return;
    }
    if (is_first && job->starts)
        for (npy_intp i = 0; i < (of_out == 0 ? 1 : n); i++)
            memcpy(out + i * of_out, job->start, job->itemsize);
    else if (is_first) {
        memcpy(out, x, job->itemsize);
        x += of_a;
        n--;
    }
    char *places[3] = {out, x, out};
    npy_intp steps[3] = {of_out, of_a, of_out};
    if (n > 0)
        job->loop(places, &n, steps, job->data);
}

static void
fold_axis(const Fold *job, int axis, char *out, char *x, int is_first)
{
    if (axis == job->last) {
        fold_line(job, out, x, is_first);
        return;
    }
    for (npy_intp i = 0; i < job->shape[axis]; i++, out += job->of_out[axis], x += job->of_a[axis])
        fold_axis(job, axis + 1, out, x, is_first && (i == 0 || job->of_out[axis] != 0));
}

/* The axes of an array that are folded, and those of its result, neighbours joined where both go through as one. */
static void
join_axes(Fold *job, PyArrayObject *a, unsigned along)
{
    npy_intp of_out[MOST_AXES], step = (npy_intp)job->itemsize;
    for (int axis = PyArray_NDIM(a) - 1; axis >= 0; axis--) {
        of_out[axis] = along >> axis & 1 ? 0 : step;
        step *= along >> axis & 1 ? 1 : PyArray_DIM(a, axis);
    }
    job->axes = 0;
    for (int axis = 0; axis < PyArray_NDIM(a); axis++) {
        npy_intp n = PyArray_DIM(a, axis), of_a = PyArray_STRIDE(a, axis);
        if (n == 1)
            continue;
        int last = job->axes - 1;
        int joins = last >= 0 && (job->of_out[last] == 0) == (of_out[axis] == 0) && job->of_a[last] == of_a * n
                    && job->of_out[last] == of_out[axis] * n;
        if (joins)
            n *= job->shape[last];
        else
            last = job->axes++;
        job->shape[last] = n;
        job->of_a[last] = of_a;
        job->of_out[last] = of_out[axis];
    }
    if (job->axes == 0) { /* one element */
        job->axes = 1;
        job->shape[0] = 1;
        job->of_a[0] = job->of_out[0] = 0;
    }
}

/* Whether numbers along several axes, which lie in parts, are added up along the last: NumPy gathers them first. */
static int
gathers(const Fold *job)
{
    int folded = 0;
    for (int axis = 0; axis < job->axes; axis++)
        folded += job->of_out[axis] == 0;
    return folded > 1 && job->of_out[job->axes - 1] == 0;
}

/* How a fold goes along the last axes. */
static void
choose_lines(Fold *job, int type, int adds)
{
    int last = job->axes - 1, is_short = last > 0 && job->of_out[last] != 0 && job->shape[last] <= SHORT_LINE;
    job->sum_rows = NULL;
    job->last = last;
    if (adds && is_short && job->of_out[last - 1] == 0 && job->of_a[last] == (npy_intp)job->itemsize
        && (type == NPY_DOUBLE || type == NPY_FLOAT)) {
        job->sum_rows = type == NPY_DOUBLE ? sum_rows_of_double : sum_rows_of_float;
        job->last--;
    }
}

/* A line that several threads add up. NumPy's loop adds the sums of a line's halves, and of their halves, however deep: so do
 * these, and each part lies in the cache of who has it from what made the line (`helpers.h`). */
enum { MOST_PARTS = 8 };

typedef struct {
    const Fold *fold;
    char *x;
    npy_intp begins[MOST_PARTS + 1];
    union {
        double of_double;
        float of_float;
        npy_ulong of_long;
    } sums[MOST_PARTS];
    Flags told;
} Parts;

static void
sum_part(void *of, int part)
{
    Parts *job = of;
    npy_intp n = job->begins[part + 1] - job->begins[part], of_a = job->fold->of_a[0], steps[3] = {0, of_a, 0};
    char *out = (char *)&job->sums[part], *places[3] = {out, job->x + job->begins[part] * of_a, out};
    be_quiet();
    memset(out, 0, sizeof *job->sums);
    job->fold->loop(places, &n, steps, job->fold->data);
    int told = fetestexcept(TOLD);
    if (told)
        set_flags(&job->told, told);
}

/* Where the parts of a line begin, so many, which is a power of two. */
static void
halve(npy_intp *begins, npy_intp first, npy_intp n, int parts)
{
    npy_intp half = n / 2 - n / 2 % 8;
    begins[0] = first;
    if (parts == 1)
        return;
    halve(begins, first, half, parts / 2);
    halve(begins + parts / 2, first + half, n - half, parts / 2);
}

/* Whether all of a line was added up by several threads. */
static int
is_summed_together(const Fold *fold, char *out, char *x, int type)
{
    Parts job = {.fold = fold, .x = x};
    npy_intp n = fold->shape[0];
    int parts = 1, threads = fold->axes == 1 && fold->of_out[0] == 0 ? threads_for(n, fold->of_a[0]) : 1;
    while (parts < threads && parts < MOST_PARTS)
        parts *= 2;
    if (parts == 1)
        return 0;
    halve(job.begins, 0, n, parts);
    job.begins[parts] = n;
    do_together(sum_part, &job, parts, threads);
    if (job.told)
        feraiseexcept(job.told);
    for (int step = 1; step < parts; step *= 2)
        for (int i = 0; i < parts; i += 2 * step)
            switch (type) {
            case NPY_DOUBLE:
                job.sums[i].of_double += job.sums[i + step].of_double;
                break;
            case NPY_FLOAT:
                job.sums[i].of_float += job.sums[i + step].of_float;
                break;
            default:
                job.sums[i].of_long += job.sums[i + step].of_long;
            }
    memcpy(out, job.sums, fold->itemsize);
    return 1;
}

/* Divide sums by how many there were of each, as NumPy's mean does. */
static void
divide(char *out, npy_intp size, int type, npy_intp count)
{
    for (npy_intp i = 0; i < size; i++)
        if (type == NPY_DOUBLE)
            ((double *)out)[i] /= (double)count;
        else
            ((float *)out)[i] /= (float)count;
}

/* What a function of NumPy's gives that is folded along the axes in `along`, or the mean (a new reference); NULL without
 * an error where NumPy has to do it. */
static PyObject *
folded(PyUFuncObject *f, PyArrayObject *a, unsigned along, int keeps, int is_mean)
{
    int type = PyArray_TYPE(a), ndim = PyArray_NDIM(a), loop = loop_for(f, type), kept = 0;
    int adds = strcmp(f->name, "add") == 0, multiplies = strcmp(f->name, "multiply") == 0;
    int is_float = type == NPY_FLOAT || type == NPY_DOUBLE;
    int is_plain = is_float || (type == NPY_LONG && !is_mean) || (type == NPY_BOOL && !adds && !multiplies);
    if (!is_plain || loop < 0 || f->types[loop * f->nargs + 2] != type || PyArray_SIZE(a) == 0 || !is_in_order(a)
        || !is_spread(a))
        return NULL;
    Fold job = {.loop = f->functions[loop], .data = f->data == NULL ? NULL : (void *)f->data[loop],
                .itemsize = PyArray_ITEMSIZE(a)};
    npy_intp shape[MOST_AXES], size = 1, count = 1;
    for (int axis = 0; axis < ndim; axis++) {
        int is_folded = along >> axis & 1;
        if (!is_folded || keeps)
            shape[kept++] = is_folded ? 1 : PyArray_DIM(a, axis);
        size *= is_folded ? 1 : PyArray_DIM(a, axis);
        count *= is_folded ? PyArray_DIM(a, axis) : 1;
    }
    job.starts = adds || multiplies;
    if (multiplies && is_float)
        type == NPY_DOUBLE ? (*(double *)job.start = 1) : (*(float *)job.start = 1);
    else if (multiplies)
        *(long *)job.start = 1;
    join_axes(&job, a, along);
    if (is_float && adds && gathers(&job))
        return NULL;
    choose_lines(&job, type, adds);
    double number;
    PyObject *result = kept == 0 ? NULL : PyArray_SimpleNew(kept, shape, type);
    if (kept > 0 && result == NULL)
        return NULL;
    char *out = kept == 0 ? (char *)&number : PyArray_BYTES((PyArrayObject *)result);
    PyThreadState *state = let_others_run(PyArray_SIZE(a), &a, 1);
    be_quiet();
    if (!adds || !is_summed_together(&job, out, PyArray_BYTES(a), type))
        fold_axis(&job, 0, out, PyArray_BYTES(a), 1);
    go_on_alone(state, &a, 1);
    if (is_mean)
        divide(out, size, type, count);
    if (is_float && has_told()) {
        PyErr_Clear();
        Py_XDECREF(result);
        return NULL;
    }
    if (kept > 0)
        return result;
    return type == NPY_DOUBLE ? double_number(number) : PyArray_Scalar(out, PyArray_DESCR(a), NULL);
}

/* The axes that an argument names, as bits; 0 where that is another question. */
static unsigned
axes_of(PyObject *axis, int ndim)
{
    if (axis == NULL || axis == Py_None)
        return (1u << ndim) - 1;
    unsigned along = 0;
    Py_ssize_t n = PyTuple_CheckExact(axis) ? PyTuple_GET_SIZE(axis) : 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *one = PyTuple_CheckExact(axis) ? PyTuple_GET_ITEM(axis, i) : axis;
        int overflow = 1;
        long at = PyLong_CheckExact(one) ? PyLong_AsLongAndOverflow(one, &overflow) : 0;
        if (overflow || at < -ndim || at >= ndim)
            return 0;
        unsigned bit = 1u << (at < 0 ? at + ndim : at);
        if (along & bit)
            return 0;
        along |= bit;
    }
    return along;
}

/* A call of a fold of an array that is the first argument, with an axis, and whether axes are kept; NULL without an error
 * where NumPy has to do it. */
static PyObject *
fold_called(PyObject *numpys, int is_mean, PyArrayObject *a, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *axis = n > 1 ? args[1] : NULL, *keeps = Py_False;
    Py_ssize_t more = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    if (n > 2 || !Py_IS_TYPE(numpys, &PyUFunc_Type) || PyArray_NDIM(a) < 1 || PyArray_NDIM(a) > MOST_AXES)
        return NULL;
    for (Py_ssize_t i = 0; i < more; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i), *value = args[n + i];
        if (PyUnicode_CompareWithASCIIString(name, "axis") == 0 && n == 1)
            axis = value;
        else if (PyUnicode_CompareWithASCIIString(name, "keepdims") == 0 && PyBool_Check(value))
            keeps = value;
        else
            return NULL;
    }
    unsigned along = axes_of(axis, PyArray_NDIM(a));
    return along == 0 ? NULL : folded((PyUFuncObject *)numpys, a, along, keeps == Py_True, is_mean);
}
