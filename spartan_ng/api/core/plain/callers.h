/* Who calls an operator of ours: the interpreter, at an operator of Python's code, or code that was
 * compiled.
 *
 * A compiled class that holds the only reference to an array, and has an operator that adds to it, looks
 * like the interpreter with a temporary: the array counts one reference, and Python's code is at an
 * operator. NumPy looks through the stack of calls for code that is neither its own nor Python's
 * (numpy/_core/src/multiarray/temp_elide.c), which takes microseconds. Here the stack is walked when the
 * package is imported: `temporaries.learn` has the interpreter call each operator of a `Probe`, which
 * notes where on the stack the return addresses lie, up to that into the interpreter, and what they are.
 * From one place in its code a function always calls with a frame of the same size, so that some words of
 * the stack tell whether a later call came the same way: each of them says that the next one is where it
 * was. Where that has not been learnt (other compilers, processors and systems), nobody is the
 * interpreter.
 *
 * A function that ends with a call may leave its own frame to who is called, as `PyNumber_Negative`
 * does, and so may a compiled class that calls it: then both look like the interpreter, which gets what
 * ours gives, but need not have the operands. So a temporary is known only by a frame between the
 * interpreter's and ours, which a second call of Python's function for the operator would have as well.
 *
 * NumPy's generators shuffle what is none of NumPy's arrays as `x[i], x[j] = x[j], x[i]`, by code of their own: of
 * lines that are views, both then show the first that has been written. They are given copies. A program that says so
 * itself (`random.shuffle`) gets views, as from NumPy.
 *
 * Python's `sum` calls an operator as well, of what it alone holds, and lets go of both operands: `sum(np.roll(a, k) for
 * k in ks)` has temporaries. Where its result goes is another question than where the interpreter takes that. */
#if defined(__GNUC__) && defined(__ELF__) && defined(__x86_64__) && !defined(Py_GIL_DISABLED)
#define KNOWS_CALLERS
#include <dlfcn.h>
#include <unwind.h>
/* Where the frames of those begin who have called this function: above its own and the return address. */
#define CALLERS ((const char *)__builtin_frame_address(0) + 2 * sizeof(void *))
#define NOT_INLINE __attribute__((noinline))
#else
#define CALLERS NULL
#define NOT_INLINE
#endif

enum { MOST_CALLERS = 16, MOST_WAYS = 16, MOST_READERS = 8, FAR_AWAY = 1 << 16 /* bytes on a stack */ };

/* The callers from an operator of ours to the interpreter: where their frames begin, counted from the first, and where
 * they go on after the call. */
typedef struct {
    int n;
    ptrdiff_t at[MOST_CALLERS];
    uintptr_t to[MOST_CALLERS];
} Way;

typedef struct {
    int n;
    Way ways[MOST_WAYS];
} Ways;

static Ways interpreters[op_count], sums; /* of additions */
static Ways askers; /* for all that a buffer may be: `memoryview` and its like, as programs call them */
static Ways numpys; /* for an attribute: NumPy's own code, which is the last on each way */

static uintptr_t
return_address(const char *frame)
{
    return ((const uintptr_t *)frame)[-1];
}

/* The way among some that an operator with these callers was called, as far as the frames tell; or NULL. */
static const Way *
way_among(const Ways *known, const char *callers)
{
    for (const Way *way = known->ways; way < known->ways + known->n; way++) {
        int k = 0;
        while (k < way->n && return_address(callers + way->at[k]) == way->to[k])
            k++;
        if (k == way->n)
            return way;
    }
    return NULL;
}

/* Whether the interpreter gets what an operator gives as it is: it has called it, or somebody who has left the frame to it. */
static int
is_given_to_interpreter(const Operator *op, const char *callers)
{
    return callers != NULL && way_among(&interpreters[op - operators], callers) != NULL;
}

/* Whether it was called by the interpreter, whose operands then are on its stack, or by `sum`. */
static int
has_temporaries(const Operator *op, const char *callers)
{
    const Way *way = way_among(&interpreters[op - operators], callers);
    if (way == NULL && op == &operators[op_add])
        way = way_among(&sums, callers);
    return way != NULL && way->n > 1;
}

/* Whether a function is called by the interpreter, at a call of Python's code: on its stack, which is no thread's of C,
 * the function lies below the arguments. */
static int
is_called_at_call(PyObject *function, PyObject *const *args, size_t flags)
{
#if PY_VERSION_HEX < 0x030e0000
    ptrdiff_t away = (const char *)args - (const char *)&flags;
    return flags & PY_VECTORCALL_ARGUMENTS_OFFSET && (away < -FAR_AWAY || away > FAR_AWAY) && args[-1] == function;
#else /* which hands out copies of its stack */
    return 0;
#endif
}

#ifdef KNOWS_CALLERS
typedef struct {
    const char *callers;
    void *sum, *call; /* Python's function; what makes an object of a class, if the walk ends there */
    int is_for_numpy; /* whether it ends at NumPy's code */
    enum { ON_ITS_WAY, IN_INTERPRETER, IN_SUM, IN_CLASS, IN_NUMPY } arrived;
    Way way;
} Walk;

/* Whether code is NumPy's own: of the file that has its functions for C. */
static int
is_in_numpy(uintptr_t to)
{
    Dl_info its, numpys_own;
    return dladdr((void *)to, &its) && dladdr(PyArray_API[0], &numpys_own) && its.dli_fbase == numpys_own.dli_fbase;
}

static _Unwind_Reason_Code
walk_on(struct _Unwind_Context *context, void *of)
{
    Walk *walk = of;
    Way *way = &walk->way;
    const char *frame = (const char *)_Unwind_GetCFA(context);
    uintptr_t to = _Unwind_GetIP(context);
    if (way->n == 0 && frame < walk->callers) /* the operator's, and what it has called */
        return _URC_NO_REASON;
    if (way->n == MOST_CALLERS || (way->n == 0 && frame != walk->callers) || return_address(frame) != to)
        return _URC_END_OF_STACK;
    way->at[way->n] = frame - walk->callers;
    way->to[way->n++] = to;
    void *function = _Unwind_FindEnclosingFunction((void *)(to - 1));
    walk->arrived = function == (void *)_PyEval_EvalFrameDefault              ? IN_INTERPRETER
                    : function == walk->sum && function != NULL ? IN_SUM
                    : function == walk->call && function != NULL ? IN_CLASS
                    : walk->is_for_numpy && is_in_numpy(to)        ? IN_NUMPY
                                                                               : ON_ITS_WAY;
    return walk->arrived ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* Where Python's `sum` has its code; NULL where it is somebody else's. */
static void *
code_of_sum(void)
{
    PyObject *builtins = PyEval_GetBuiltins(), *sum = builtins == NULL ? NULL : PyDict_GetItemString(builtins, "sum");
    return sum != NULL && PyCFunction_CheckExact(sum) ? (void *)PyCFunction_GetFunction(sum) : NULL;
}

static void
learn_way(const Operator *op, const char *callers)
{
    Walk walk = {.callers = callers, .sum = code_of_sum()};
    if (has_temporaries(op, callers) || is_given_to_interpreter(op, callers))
        return;
    _Unwind_Backtrace(walk_on, &walk);
    Ways *found = walk.arrived == IN_SUM ? &sums : &interpreters[op - operators];
    if (walk.arrived && found->n < MOST_WAYS)
        found->ways[found->n++] = walk.way;
}

/* Learn who asks for all that a buffer may be: a class that is called for it. */
static void
learn_asking(const char *callers)
{
    Walk walk = {.callers = callers, .call = (void *)PyType_Type.tp_call};
    _Unwind_Backtrace(walk_on, &walk);
    if (walk.arrived == IN_CLASS && askers.n < MOST_WAYS)
        askers.ways[askers.n++] = walk.way;
}

/* Learn how NumPy asks for an attribute. */
static void
learn_numpys(const char *callers)
{
    Walk walk = {.callers = callers, .is_for_numpy = 1};
    _Unwind_Backtrace(walk_on, &walk);
    if (walk.arrived == IN_NUMPY && numpys.n < MOST_WAYS)
        numpys.ways[numpys.n++] = walk.way;
}
#else
static void
learn_way(const Operator *op, const char *callers)
{
}

static void
learn_asking(const char *callers)
{
}

static void
learn_numpys(const char *callers)
{
}
#endif

#ifdef KNOWS_CALLERS
/* Who has asked for an element, a line or an attribute lately: where they go on, whether those are NumPy's generators, and
 * whether they are NumPy's code for arrays. */
typedef struct {
    uintptr_t to;
    int swaps, is_numpys;
} Reader;

static Reader readers[MOST_READERS];

/* A reader that is not among those of late, which takes the place of the one that came first. */
static NOT_INLINE const Reader *
reader_to(uintptr_t to)
{
    static int n;
    Dl_info its;
    Reader *reader = &readers[n++ % MOST_READERS];
    reader->to = to;
    reader->swaps = dladdr((void *)to, &its) && its.dli_fname != NULL && strstr(its.dli_fname, "/numpy/random/") != NULL;
    reader->is_numpys = is_in_numpy(to);
    return reader;
}

static const Reader *
reader_at(uintptr_t to)
{
    for (const Reader *reader = readers; reader < readers + MOST_READERS; reader++)
        if (reader->to == to)
            return reader;
    return reader_to(to);
}

/* Whether a line is asked for by who swaps it with another one. */
static int
is_swapped(const char *callers)
{
    return reader_at(return_address(callers))->swaps;
}

/* Whether somebody asks for an attribute who is known not to be NumPy, wherever in its code. */
static int
is_asked_by_others(const char *callers)
{
    for (const Way *way = numpys.ways; way < numpys.ways + numpys.n; way++) {
        int k = 0, last = way->n - 1;
        while (k < last && return_address(callers + way->at[k]) == way->to[k])
            k++;
        if (k == last && reader_at(return_address(callers + way->at[last]))->is_numpys)
            return 0;
    }
    return numpys.n > 0;
}
#else
static int
is_swapped(const char *callers)
{
    return 0;
}

static int
is_asked_by_others(const char *callers)
{
    return 0;
}
#endif

/* --- the class whose operators learn ---------------------------------------------------------------------- */

static PyTypeObject Probe;

/* Learn who calls an operator; how many references a probe has then. */
static NOT_INLINE PyObject *
probed(const Operator *op, PyObject *a, PyObject *b, const char *callers)
{
    learn_way(op, callers);
    return PyLong_FromSsize_t(Py_REFCNT(Py_IS_TYPE(a, &Probe) ? a : b));
}

#define PROBE_OF_TWO(name, ...)                                                                               \
    static PyObject *probe_##name(PyObject *a, PyObject *b) { return probed(&operators[op_##name], a, b, CALLERS); }
#define PROBE_OF_ONE(name, ...)                                                                               \
    static PyObject *probe_##name(PyObject *a) { return probed(&operators[op_##name], a, a, CALLERS); }
BINARY(PROBE_OF_TWO)
UNARY(PROBE_OF_ONE)

static NOT_INLINE PyObject *
probe_compare(PyObject *a, PyObject *b, int which)
{
    return probed(&operators[comparisons[which]], a, b, CALLERS);
}

static PyObject *
probe_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    return probed(&operators[op_power], a, b, CALLERS);
}

static PyNumberMethods probe_as_number = {
#define PROBE_SLOT(name, ...) .nb_##name = probe_##name,
    BINARY(PROBE_SLOT) UNARY(PROBE_SLOT)
    .nb_power = probe_power,
};

static int
probe_buffer(PyObject *a, Py_buffer *buffer, int flags)
{
    learn_asking(CALLERS);
    buffer->obj = NULL;
    PyErr_SetString(PyExc_BufferError, "it has been learnt who asks");
    return -1;
}

static PyObject *
probe_attribute(PyObject *a, void *unused)
{
    learn_numpys(CALLERS);
    PyErr_SetString(PyExc_AttributeError, "it has been learnt how NumPy asks");
    return NULL;
}

static PyGetSetDef probe_attributes[] = {
    {"__array_interface__", probe_attribute, NULL, "It learns how NumPy asks for it."},
    {NULL},
};

static PyBufferProcs probe_as_buffer = {.bf_getbuffer = probe_buffer};

static PyTypeObject Probe = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spartan_ng.api.core._quick.Probe",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Operators that learn who calls them, and give the number of references to their operand.",
    .tp_as_number = &probe_as_number,
    .tp_as_buffer = &probe_as_buffer,
    .tp_getset = probe_attributes,
    .tp_richcompare = probe_compare,
};
