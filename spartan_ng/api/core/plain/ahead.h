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

enum { MOST_USED = 12 };

/* A variable, which has to be a function, the package, or none, so that Python's own function of its name is called; or
 * an array or a number, or else its operators and keys may run anybody's code; or, if what they make is beside a result. */
enum { A_FUNCTION, THE_PACKAGE, A_BUILTIN, AN_OPERAND, A_PART };
typedef struct {
    int kind, number, what;
} Used;

typedef struct {
    int kind, number, next, runs_any; /* the taker's place; whether anybody's code runs before that is there */
    int uses;
    Used used[MOST_USED];
} Reading;

/* What is kept of a place: how many bytes have come of its results, while these are few, with a mark; or its reading. */
typedef union {
    Reading *reading; /* NULL where nothing has come */
    uintptr_t marked;
} Asked;

typedef struct {
    Py_ssize_t n;
    Asked places[]; /* by the code's units */
} Ahead;

/* Bytes that have come of a place before it is read: as many as operators take about as long for as reading does (0.1 ms). So a
 * program that is short does not wait for what a long one gains by. Tests read at once (`read_after`). */
static uintptr_t read_after_bytes = 1 << 20;

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

/* Whether a place has yet to be read; what lies aligned has no mark. */
static int
is_counted(Asked place)
{
    return (place.marked & 1) != 0;
}

static void
forget_readings(void *kept)
{
    Ahead *ahead = kept;
    for (Py_ssize_t i = 0; i < ahead->n; i++)
        if (!is_counted(ahead->places[i]))
            PyMem_Free(ahead->places[i].reading);
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
    Ahead *made = n == 0 ? NULL : PyMem_Calloc(1, sizeof(Ahead) + n * sizeof(Asked));
    if (made == NULL)
        return NULL;
    made->n = n;
    if (CODE_EXTRA(SetExtra)((PyObject *)code, ahead_place, made) < 0) {
        PyMem_Free(made);
        return NULL;
    }
    return made;
}

/* Keep which variables are used; 0 with an error where that is no table of them. */
static int
read_used(Reading *reading, PyObject *used)
{
    reading->uses = (int)PyTuple_GET_SIZE(used);
    if (reading->uses > MOST_USED)
        PyErr_SetString(PyExc_SystemError, "a result whose taker has to ask for too many variables");
    for (int i = 0; i < reading->uses && !PyErr_Occurred(); i++) {
        Used *one = &reading->used[i];
        PyArg_ParseTuple(PyTuple_GET_ITEM(used, i), "iii", &one->kind, &one->number, &one->what);
    }
    return !PyErr_Occurred();
}

/* Read what becomes of the result that is made at a place of the code; NULL, also without an error, where there is no
 * room to. A signal's handler may raise an error meanwhile, as in any of Python's code. */
static Reading *
read_ahead(PyCodeObject *code, int at)
{
    Reading *found = PyMem_Calloc(1, sizeof *found);
    PyObject *place = PyLong_FromLong(at), *said = place == NULL ? NULL : call_two(known.ahead, (PyObject *)code, place), *used;
    int is_read = found != NULL && said != NULL
                  && PyArg_ParseTuple(said, "iiipO!", &found->kind, &found->number, &found->next, &found->runs_any,
                                      &PyTuple_Type, &used)
                  && read_used(found, used);
    Py_XDECREF(place);
    Py_XDECREF(said);
    if (is_read)
        return found;
    PyMem_Free(found);
    if (PyErr_Occurred() && (PyErr_ExceptionMatches(PyExc_RecursionError) || PyErr_ExceptionMatches(PyExc_MemoryError)))
        PyErr_Clear();
    return NULL;
}

/* The same, once for a place, of whose results so many bytes come now; NULL before it is read. */
static const Reading *
reading_at(PyCodeObject *code, int at, npy_intp bytes)
{
    Ahead *ahead = ahead_of(code);
    if (ahead == NULL || at / 2 >= ahead->n)
        return NULL;
    Asked *place = &ahead->places[at / 2];
    if (place->reading != NULL && !is_counted(*place))
        return place->reading;
    uintptr_t come = place->marked / 2 + (uintptr_t)bytes;
    if (come < read_after_bytes) {
        place->marked = 2 * come + 1;
        return NULL;
    }
    Reading *found = read_ahead(code, at);
    if (place->reading != NULL && !is_counted(*place))
        PyMem_Free(found); /* another thread has read it meanwhile */
    else if (found != NULL)
        place->reading = found;
    return found == NULL ? NULL : place->reading;
}

/* Say after how many bytes places are read. */
static PyObject *
read_after(PyObject *module, PyObject *bytes)
{
    size_t most = PyLong_AsSize_t(bytes);
    if (most == (size_t)-1 && PyErr_Occurred())
        return NULL;
    read_after_bytes = most;
    Py_RETURN_NONE;
}

/* Whether names without a place of their own are those of a module, and not of a class, say. */
static int
is_of_module(void)
{
    return PyEval_GetLocals() == PyEval_GetGlobals();
}

/* A variable by its kind, as of one that a result is beside, and its number; borrowed, NULL where there is none. */
static PyObject *
variable_of(int kind, int number, PyFrameObject *frame, PyCodeObject *code)
{
    if (kind == BESIDE_LOCAL)
        return local_of(frame, code, number);
    PyObject *globals = PyEval_GetGlobals();
    if (globals == NULL || (kind == BESIDE_NAME && !is_of_module()))
        return NULL;
    return PyDict_GetItemWithError(globals, PyTuple_GET_ITEM(code->co_names, number));
}

/* Whether a function is `where`; whether a function's result may be left for later: that of a universal function of ours, or of `where`. */
static int chooses(PyObject *function), joins(PyObject *function);

/* Whether an array or a number has operators and parts that are NumPy's or ours. */
static int
is_ours_or_number(PyObject *a)
{
    return Py_TYPE(a) == known.array ? shown_of((Handle *)a) != NULL : is_number(a);
}

/* Whether all that is called before a result is taken is what it has to be; and what is worked on, if it is no matter what
 * code that runs. */
static int
uses_ours(const Reading *reading, PyFrameObject *frame, PyCodeObject *code, int runs_any)
{
    if (reading->runs_any && !runs_any)
        return 0;
    for (const Used *one = reading->used; one < reading->used + reading->uses; one++) {
        if ((one->what == AN_OPERAND && runs_any) || one->what == A_PART)
            continue;
        PyObject *named = variable_of(one->kind, one->number, frame, code);
        int is_so = one->what == A_BUILTIN ? named == NULL && !PyErr_Occurred() && (one->kind != BESIDE_NAME || is_of_module())
                    : named == NULL                ? 0
                    : one->what == THE_PACKAGE     ? named == known.package
                    : one->what == AN_OPERAND      ? is_ours_or_number(named)
                                                   : joins(named);
        if (!is_so)
            return 0;
    }
    return 1;
}

/* Whether the result that another one is beside is made of arrays of ours and numbers, by their operators and keys. */
static int
is_made_of_ours(const Reading *reading, PyFrameObject *frame, PyCodeObject *code)
{
    int parts = 0;
    for (const Used *one = reading->used; one < reading->used + reading->uses; one++) {
        PyObject *named = one->what == A_PART ? variable_of(one->kind, one->number, frame, code) : NULL;
        if (one->what == A_PART && (named == NULL || !is_ours_or_number(named)))
            return 0;
        parts += one->what == A_PART;
    }
    return parts > 0;
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
    return is_into ? Py_TYPE(named) == known.array : is_ours_or_number(named);
}

/* Where an operator or a function is, that the interpreter has called: in which code that runs, and where its result is
 * taken, 0 if it is not. */
typedef struct {
    PyFrameObject *frame;
    int at, next;
} Whereabouts;

static int is_awaited(Whereabouts here);

/* Find out where the interpreter is, and what becomes of a result of so many bytes; -1 with an error. Whether code that is not
 * ours may run before a result is taken is for the caller to say. */
static int
find_whereabouts(Whereabouts *here, npy_intp bytes, int runs_any)
{
    *here = (Whereabouts){ahead_place < 0 || known.ahead == NULL ? NULL : PyEval_GetFrame()};
    here->at = here->frame == NULL ? -1 : PyFrame_GetLasti(here->frame);
    if (here->at < 0)
        return 0;
    PyCodeObject *code = PyFrame_GetCode(here->frame);
    const Reading *reading = reading_at(code, here->at, bytes);
    int failed = PyErr_Occurred() != NULL;
    if (reading != NULL && reading->kind != NOT_TAKEN && uses_ours(reading, here->frame, code, runs_any)) {
        here->next = reading->next;
        int is_ours = reading->kind == TAKEN           ? 1
                      : reading->kind == BESIDE_RESULT ? is_awaited(*here) || is_made_of_ours(reading, here->frame, code)
                                                       : is_beside_ours(reading, here->frame, code);
        here->next = is_ours ? here->next : 0;
    }
    if (!failed)
        PyErr_Clear();
    Py_DECREF(code);
    return failed ? -1 : 0;
}
