/* What the interpreter does next with a result of ours: whether another operator or function of ours takes it from the
 * stack.
 *
 * Then nobody else ever sees it, and it need not be there before that one is asked for (`expressions.h`). Python
 * reads the code (`ahead.py`), once for each place where an operator or a call is, and what it says is kept with the
 * code: that the result is taken, if what stands beside it in the other operator, or what it is written into, or the
 * functions that are called until then, are ours. */

/* What `ahead.py` says; the others name what is to be looked at: a variable by its number among the code's, or the other
 * operator. */
enum { NOT_TAKEN = 1, TAKEN, BESIDE_RESULT, BESIDE_LOCAL, BESIDE_GLOBAL, BESIDE_NAME, INTO_LOCAL, INTO_GLOBAL, INTO_NAME };

enum { MOST_CALLED = 3 };

/* A variable, which has to be a function, the package, or none, so that Python's own function of its name is called. */
enum { A_FUNCTION, THE_PACKAGE, A_BUILTIN };
typedef struct {
    int kind, number, what;
} Callee;

typedef struct {
    int kind, number, next, attributes; /* the taker's place; loaded before that is there */
    int calls;
    Callee called[MOST_CALLED];
} Reading;

typedef struct {
    Py_ssize_t n;
    Reading *readings[]; /* by the code's units, NULL where nobody has asked */
} Ahead;

/* Whether what is told of may name another line of a frame than where it is. */
enum { names_lines = PY_VERSION_HEX < 0x030c0000 };

static Py_ssize_t ahead_place = -1; /* among what is kept with codes */

#if PY_VERSION_HEX >= 0x030c0000
#define CODE_EXTRA(name) PyUnstable_Code_##name
#define CODE_EXTRA_PLACE PyUnstable_Eval_RequestCodeExtraIndex

/* A variable of a function that runs, which keeps it; NULL where it has none. */
static PyObject *
local_of(PyFrameObject *frame, PyCodeObject *code, int number)
{
    PyObject *found = PyFrame_GetVar(frame, PyTuple_GET_ITEM(code->co_localsplusnames, number));
    if (found == NULL)
        PyErr_Clear();
    Py_XDECREF(found);
    return found;
}
#else
#define CODE_EXTRA(name) _PyCode_##name
#define CODE_EXTRA_PLACE _PyEval_RequestCodeExtraIndex
#include <internal/pycore_frame.h>

static PyObject *
local_of(PyFrameObject *frame, PyCodeObject *code, int number)
{
    PyObject *found = frame->f_frame->localsplus[number];
    return found != NULL && PyCell_Check(found) ? PyCell_GET(found) : found;
}
#endif

static void
forget_readings(void *kept)
{
    Ahead *ahead = kept;
    for (Py_ssize_t i = 0; i < ahead->n; i++)
        PyMem_Free(ahead->readings[i]);
    PyMem_Free(ahead);
}

/* What is known of a code's places; NULL where nothing can be kept. */
static Ahead *
ahead_of(PyCodeObject *code)
{
    void *kept = NULL;
    if (CODE_EXTRA(GetExtra)((PyObject *)code, ahead_place, &kept) < 0 || kept != NULL)
        return kept;
    PyObject *units = PyCode_GetCode(code);
    Py_ssize_t n = units == NULL ? 0 : PyBytes_GET_SIZE(units) / 2;
    Py_XDECREF(units);
    Ahead *made = n == 0 ? NULL : PyMem_Calloc(1, sizeof(Ahead) + n * sizeof(Reading *));
    if (made == NULL)
        return NULL;
    made->n = n;
    if (CODE_EXTRA(SetExtra)((PyObject *)code, ahead_place, made) < 0) {
        PyMem_Free(made);
        return NULL;
    }
    return made;
}

/* Keep which variables have to be ours; 0 where that is no table of them. */
static int
read_called(Reading *reading, PyObject *called)
{
    Py_ssize_t n = PyTuple_Check(called) ? PyTuple_GET_SIZE(called) : MOST_CALLED + 1;
    if (n > MOST_CALLED)
        return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        Callee *callee = &reading->called[i];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(called, i), "iii", &callee->kind, &callee->number, &callee->what))
            return 0;
    }
    reading->calls = (int)n;
    return 1;
}

/* Read what becomes of the result that is made at a place of the code; NULL where there is no room to keep it. */
static Reading *
read_ahead(PyCodeObject *code, int at)
{
    Reading *found = PyMem_Calloc(1, sizeof *found);
    PyObject *place = PyLong_FromLong(at), *said = place == NULL ? NULL : call_two(known.ahead, (PyObject *)code, place), *called;
    if (found != NULL
        && (said == NULL || !PyTuple_Check(said)
            || !PyArg_ParseTuple(said, "iiiiO", &found->kind, &found->number, &found->next, &found->attributes, &called)
            || !read_called(found, called)))
        found->kind = NOT_TAKEN;
    Py_XDECREF(place);
    Py_XDECREF(said);
    PyErr_Clear();
    return found;
}

/* A variable by its kind, as of one that a result is beside, and its number; borrowed, NULL where there is none. */
static PyObject *
variable_of(int kind, int number, PyFrameObject *frame, PyCodeObject *code)
{
    if (kind == BESIDE_LOCAL)
        return local_of(frame, code, number);
    PyObject *globals = PyEval_GetGlobals();
    if (globals == NULL || (kind == BESIDE_NAME && PyEval_GetLocals() != globals))
        return NULL;
    return PyDict_GetItemWithError(globals, PyTuple_GET_ITEM(code->co_names, number));
}

/* Whether a function is `where`; whether a function's result may be left for later: that of a universal function of ours, or of `where`. */
static int chooses(PyObject *function), joins(PyObject *function);

/* Whether all that is called before a result is taken is what it has to be. */
static int
calls_ours(const Reading *reading, PyFrameObject *frame, PyCodeObject *code)
{
    for (const Callee *callee = reading->called; callee < reading->called + reading->calls; callee++) {
        PyObject *named = variable_of(callee->kind, callee->number, frame, code);
        int is_so = callee->what == A_BUILTIN     ? named == NULL && !PyErr_Occurred()
                    : callee->what == THE_PACKAGE ? named == known.package
                                                  : named != NULL && joins(named);
        if (!is_so)
            return 0;
    }
    return 1;
}

/* Whether what a result is beside, or is written into, is ours: an array, or beside it a number. Parts of arrays of
 * numbers are either. */
static int
is_beside_ours(const Reading *reading, PyFrameObject *frame, PyCodeObject *code)
{
    int is_into = reading->kind >= INTO_LOCAL, kind = reading->kind - (is_into ? INTO_LOCAL - BESIDE_LOCAL : 0);
    PyObject *named = variable_of(kind, reading->number, frame, code);
    if (named == NULL)
        return 0;
    return Py_TYPE(named) == known.array ? is_into || shown_of((Handle *)named) != NULL : !is_into && is_number(named);
}

/* Where an operator or a function is, that the interpreter has called: in which code that runs, and where its result is
 * taken, 0 if it is not; and whether other code may run before. */
typedef struct {
    PyFrameObject *frame;
    int at, next, has_attributes;
} Whereabouts;

static int is_awaited(Whereabouts here);

static Whereabouts
whereabouts(void)
{
    Whereabouts here = {ahead_place < 0 || known.ahead == NULL ? NULL : PyEval_GetFrame()};
    int at = here.at = here.frame == NULL ? -1 : PyFrame_GetLasti(here.frame);
    if (at < 0)
        return here;
    PyCodeObject *code = PyFrame_GetCode(here.frame);
    Ahead *ahead = ahead_of(code);
    Reading **kept = ahead == NULL || at / 2 >= ahead->n ? NULL : &ahead->readings[at / 2];
    if (kept != NULL && *kept == NULL)
        *kept = read_ahead(code, at);
    const Reading *reading = kept == NULL ? NULL : *kept;
    if (reading != NULL && reading->kind != NOT_TAKEN && calls_ours(reading, here.frame, code)) {
        here.next = reading->next;
        int is_ours = reading->kind == TAKEN           ? 1
                      : reading->kind == BESIDE_RESULT ? is_awaited(here)
                                                       : is_beside_ours(reading, here.frame, code);
        here.next = is_ours ? here.next : 0;
        here.has_attributes = reading->attributes > 0;
    }
    PyErr_Clear();
    Py_DECREF(code);
    return here;
}
