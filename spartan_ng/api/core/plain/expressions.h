/* Expressions of several operators and functions, worked on together: `.5 * np.sqrt(a + b)` as one pass over its arrays.
 *
 * Where the interpreter gives a result to another operator or function (`ahead.h`), what makes it is written down and not
 * done: its result is an array that is pending. The last one has all of them done, a piece of the arrays after the other,
 * by the loops that NumPy calls for each of them: what lies between them stays in the cache, and has the same bits. An
 * array that is pending is seen by nobody but the interpreter's stack. Whoever sees it all the same, as an operator of
 * another class may, has it become an ordinary array by its first look at it; and before anything is written, all are. */

enum { LEAST_PENDING = 1 << 11 }; /* elements of a result */
#define NOBODY 0UL

typedef struct Expression {
    PyObject_HEAD
    PyObject *array;                         /* that is pending, which has this for its cell; borrowed */
    PyArrayObject *found;                    /* what it is, where other code was about to write; NULL otherwise */
    Whereabouts awaited;                     /* where it is to be taken, unless somebody has looked at it */
    struct Expression *before, *after;       /* of all that are pending, the first one first */
    unsigned long thread;                    /* that has it on its stack; NOBODY once it is taken */
    int type, axes, places, count, buffered; /* results that lie in buffers at a time */
    int is_private;                          /* whether nobody writes into its arrays but by ours */
    npy_intp shape[MOST_AXES];
    PyArrayObject *arrays[MOST_SHARED];      /* NULL for a number */
    double numbers[MOST_SHARED][2];
    Called called[MOST_OPERATORS];
    Recurring *recurring;                    /* that it is one of, NULL where nobody has looked, or there is no room */
} Expression;

static Expression *all_pending, *last_pending;

static void
expression_dealloc(PyObject *self)
{
    Expression *e = (Expression *)self;
    if (e->before != NULL)
        e->before->after = e->after;
    else if (all_pending == e)
        all_pending = e->after;
    if (e->after != NULL)
        e->after->before = e->before;
    else if (last_pending == e)
        last_pending = e->before;
    for (int i = 0; i < e->places; i++) /* which may run code that writes */
        Py_XDECREF(e->arrays[i]);
    Py_XDECREF(e->found);
    PyObject_Free(self);
}

/* Whether an operator is the one that what is pending has been left to. */
static int
is_taker(const Expression *e, Whereabouts here)
{
    return e->awaited.frame == here.frame && e->awaited.next == here.at;
}

/* Whether the left operand of the operator that is next is pending. */
static int
is_awaited(Whereabouts here)
{
    for (Expression *e = all_pending; e != NULL; e = e->after)
        if (e->awaited.frame == here.frame && e->awaited.next == here.next)
            return 1;
    return 0;
}

static PyTypeObject ExpressionType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spartan_ng.api.core._quick.Expression",
    .tp_basicsize = sizeof(Expression),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Operators that are to be done together.",
    .tp_dealloc = expression_dealloc,
};

static Expression *
expression_of(PyObject *a)
{
    return known.pending != NULL && Py_TYPE(a) == known.pending ? (Expression *)((Handle *)a)->cell : NULL;
}

/* Give each function its loop, and its result a buffer, or that of one of several operands of the same size, which nobody else reads;
 * the last one's has a place. The bytes of the largest element; 0 where there are not enough buffers. */
static npy_intp
programmed(const Expression *e, Shared *job)
{
    unsigned taken = 0;
    npy_intp largest = 1;
    for (int k = 0; k < e->count; k++) {
        const Called *called = &e->called[k];
        Step *step = &job->program[k];
        int to = -1;
        unsigned left = taken;
        npy_intp bytes = bytes_of(called->type);
        largest = Py_MAX(largest, bytes);
        step->n = called->n;
        step->loop = called->loop;
        step->data = called->data;
        for (int i = 0; i < step->n; i++) {
            int from = called->operands[i];
            const Step *made = from < 0 ? &job->program[~from] : NULL;
            step->places[i] = made == NULL ? from : made->places[made->n];
            step->sizes[i] = made == NULL ? 0 : made->sizes[made->n];
            if (made != NULL) {
                left &= ~(1u << ~step->places[i]);
                to = to == -1 && step->n > 1 && step->sizes[i] == bytes ? step->places[i] : to;
            }
        }
        for (int i = 0; to == -1 && i < MOST_BUFFERED; i++)
            to = taken & 1u << i ? -1 : ~i;
        if (k == e->count - 1)
            to = e->places;
        else if (to == -1)
            return 0;
        else
            left |= 1u << ~to;
        taken = left;
        step->places[step->n] = to;
        step->sizes[step->n] = bytes;
    }
    job->count = e->count;
    return largest;
}

/* The type of the last function's results. */
static int
type_given(const Expression *e)
{
    return e->called[e->count - 1].type;
}

/* An array of the expression that nobody else has, and that its result may be written over, borrowed; NULL if there is
 * none. */
static PyArrayObject *
written_over_by(const Expression *e)
{
    int type = type_given(e);
    for (int i = 0; i < e->places; i++) {
        PyArrayObject *a = e->arrays[i];
        if (a != NULL && Py_REFCNT(a) == 1 && PyArray_TYPE(a) == type && PyArray_NDIM(a) == e->axes
            && PyArray_CompareLists(PyArray_DIMS(a), e->shape, e->axes) && PyArray_IS_C_CONTIGUOUS(a)
            && ((PyArrayObject_fields *)a)->weakreflist == NULL
            && PyArray_CHKFLAGS(a, NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE))
            return a;
    }
    return NULL;
}

/* Tell of the floating-point errors of a function, whose line may be before that where the code is now; -1 with an error. */
static int
tell_errors(const Expression *e, Called *called)
{
    int told = called->told;
    called->told = 0; /* once */
    if (told == 0)
        return 0;
#if PY_VERSION_HEX < 0x030c0000
    PyFrameObject *frame = PyEval_GetFrame();
    int is_there = frame != NULL && frame == e->awaited.frame && called->at >= 0, line = is_there ? frame->f_lineno : 0;
    if (is_there) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        frame->f_lineno = PyCode_Addr2Line(code, called->at);
        Py_DECREF(code);
    }
    int failed = PyUFunc_GiveFloatingpointErrors(called->name, numpys_errors(told));
    if (is_there)
        frame->f_lineno = line;
    return failed;
#else
    return PyUFunc_GiveFloatingpointErrors(called->name, numpys_errors(told));
#endif
}

/* Tell of the errors of all functions, in the order in which they are called; -1 with an error. */
static int
tell_all(Expression *e)
{
    for (int k = 0; k < e->count; k++)
        if (tell_errors(e, &e->called[k]) < 0)
            return -1;
    return 0;
}

/* What is to be done for a result in `out`: how many pieces it is cut into. */
static int
laid_out(const Expression *e, Shared *job, Step *program, PyArrayObject *out, int *threads)
{
    *job = (Shared){.n = e->places + 1, .axes = e->axes, .program = program};
    memset(program, 0, e->count * sizeof *program);
    memcpy(job->shape, e->shape, sizeof job->shape);
    npy_intp itemsize = programmed(e, job), furthest = 0;
    if (itemsize == 0) {
        PyErr_SetString(PyExc_SystemError, "an expression has more results at a time than it has room for");
        return -1;
    }
    for (int i = 0; i < job->n; i++) {
        PyArrayObject *a = i < e->places ? e->arrays[i] : out;
        take_part(job, i, a, i < e->places ? (char *)e->numbers[i] : NULL);
        job->sizes[i] = a == NULL ? 0 : PyArray_ITEMSIZE(a);
        job->is_written_over = job->is_written_over || (i < e->places && a != NULL && is_same(a, out));
        itemsize = Py_MAX(itemsize, job->sizes[i]);
        furthest = Py_MAX(furthest, job->shape[job->axes - 1] == 1 ? 0 : job->steps[i][job->axes - 1]);
    }
    step_over_one(job, e->arrays, out);
    *threads = threads_for(PyArray_SIZE(out) * e->count, furthest);
    int pieces = cut(job, itemsize, *threads);
    job->together = lines_together(job, itemsize);
    job->block = BUFFER / itemsize;
    return pieces;
}

/* Have a kernel make what an expression gives, and the loops: it is refused where it makes anything else. -1 with an
 * error. */
static int
prove(Expression *e)
{
    Step program[MOST_OPERATORS];
    Shared job;
    int threads;
    PyArrayObject *found[2] = {NULL, NULL};
    int is_done = 1;
    for (int i = 0; is_done && i < 2; i++) {
        found[i] = (PyArrayObject *)PyArray_SimpleNew(e->axes, e->shape, type_given(e));
        int pieces = found[i] == NULL ? -1 : laid_out(e, &job, program, found[i], &threads);
        if (pieces < 0)
            is_done = 0;
        else {
            job.kernel = i == 0 ? e->recurring->kernel : NULL;
            do_together(do_piece, &job, pieces, threads);
            is_done = !job.refused;
        }
    }
    int told = 0;
    for (int k = 0; is_done && k < e->count; k++)
        told |= program[k].told;
    if (told) /* which the kernel does not come upon, as what it leaves out is not needed */
        give_up(e->recurring);
    else if (!is_done && !PyErr_Occurred())
        refuse(e->recurring);
    else if (is_done && are_same_results(found[0], found[1]))
        e->recurring->proofs--;
    else if (is_done)
        ask_about(e->recurring, e->called, 1);
    Py_XDECREF(found[0]);
    Py_XDECREF(found[1]);
    return PyErr_Occurred() ? -1 : 0;
}

/* What all functions of an expression give, as a new array, or in `out`, if that is not NULL (a new reference), when
 * nobody has yet been told of errors. */
static PyArrayObject *
worked_out(Expression *e, PyArrayObject *out)
{
    Step program[MOST_OPERATORS];
    Shared job;
    int threads;
    out = out != NULL ? (PyArrayObject *)Py_NewRef((PyObject *)out)
                      : (PyArrayObject *)PyArray_SimpleNew(e->axes, e->shape, type_given(e));
    int pieces = out == NULL ? -1 : laid_out(e, &job, program, out, &threads);
    if (pieces < 0) {
        Py_XDECREF(out);
        return NULL;
    }
    npy_intp size = PyArray_SIZE(out);
    e->recurring = recurring_of(e->called, e->count, e->arrays, &job);
    if (e->recurring != NULL)
        e->recurring->done += (double)size * e->count;
    if (is_to_prove_itself(e->recurring) && prove(e) < 0) {
        Py_DECREF(out);
        return NULL;
    }
    job.kernel = trusted_kernel(e->recurring);
    PyThreadState *state = size > MOST_LOOPED ? PyEval_SaveThread() : NULL;
    do_together(do_piece, &job, pieces, threads);
    if (state != NULL)
        PyEval_RestoreThread(state);
    if (job.refused)
        refuse(e->recurring);
    for (int k = 0; k < e->count; k++)
        e->called[k].told = program[k].told;
    return out;
}

/* The same when everybody has been told. */
static PyArrayObject *
done_together(Expression *e, PyArrayObject *out)
{
    PyArrayObject *found = worked_out(e, out);
    if (found != NULL && tell_all(e) < 0)
        Py_CLEAR(found);
    if (found != NULL && ask_for_kernel(e->recurring, e->called) < 0)
        Py_CLEAR(found);
    return found;
}

/* Have what an expression gives, of whose errors nobody has been told; -1 with an error. */
static int
find_pending(Expression *e)
{
    if (e->count == 0)
        PyErr_SetString(PyExc_SystemError, "an array that is pending has been taken by an operator");
    else if (e->found == NULL)
        e->found = worked_out(e, written_over_by(e));
    return e->found == NULL ? -1 : 0;
}

/* Let an array that is pending be an ordinary one; -1 with an error. */
static int
finish_pending(PyObject *a)
{
    Expression *e = expression_of(a);
    if (e == NULL)
        return 0;
    Py_INCREF(e); /* another thread may look at it meanwhile, */
    e->thread = NOBODY; /* and whoever is told of its errors may write */
    int failed = find_pending(e) < 0 || tell_all(e) < 0, is_done = expression_of(a) != e;
    Cell *cell = failed || is_done ? NULL : (Cell *)again(known.cell, &spare_cells);
    Py_DECREF(e);
    if (cell == NULL)
        return is_done && !failed ? 0 : -1;
    cell->value = Py_NewRef((PyObject *)e->found);
    ((Handle *)a)->cell = (PyObject *)cell;
    Py_SET_TYPE(a, (PyTypeObject *)Py_NewRef(known.array));
    Py_DECREF(known.pending);
    Py_DECREF(e);
    return 0;
}

/* Let all of this thread be ordinary arrays, as what they are made of is to be written to; -1 with an error. Those of code
 * that has called this one, as that of an attribute, are worked out, and told of where they are taken. */
static int
settle_all(void)
{
    unsigned long thread = all_pending == NULL ? NOBODY : PyThread_get_thread_ident();
    for (Expression *e = all_pending, *next; e != NULL; e = next) {
        next = e->after;
        if (e->thread != thread)
            continue;
        int is_here = e->awaited.frame == PyEval_GetFrame(), failed = 0;
        if (!is_here && e->found != NULL)
            continue;
        PyObject *a = Py_NewRef(e->array);
        failed = is_here ? finish_pending(a) : find_pending(e);
        Py_DECREF(a);
        if (failed)
            return -1;
        next = all_pending; /* others may have come and gone */
    }
    return 0;
}

/* Tell of an expression that an error on the way to its last operator has left behind: NumPy had told of its errors
 * before. */
static void
tell_of_dropped(Expression *e)
{
    PyObject *type, *value, *traceback;
    PyFrameObject *frame = PyEval_GetFrame();
    PyErr_Fetch(&type, &value, &traceback);
    e->thread = NOBODY;
    if (find_pending(e) < 0)
        PyErr_Clear();
    else if (tell_all(e) < 0 && type != NULL) { /* which had been the error */
        Py_CLEAR(type);
        Py_CLEAR(value);
        Py_CLEAR(traceback);
        if (frame != NULL && frame == e->awaited.frame)
            PyTraceBack_Here(frame);
        return;
    }
    PyErr_Restore(type, value, traceback);
}

static PyObject *
settle_pending(PyObject *module, PyObject *unused)
{
    return settle_all() < 0 ? NULL : Py_NewRef(Py_None);
}
