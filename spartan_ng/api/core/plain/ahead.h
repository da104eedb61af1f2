/* What the interpreter does next with an operator's result: whether another operator of ours takes it from the stack.
 *
 * Then nobody else ever sees it, and it need not be there before that operator is asked for (`expressions.h`). Python
 * reads the code (`ahead.py`), once for each place where an operator is, and what it says is kept with the code: that
 * the result is taken, if what stands beside it in the other operator, or what it is written into, is one of ours. */

/* What `ahead.py` says; the others name what is to be looked at: a variable by its number among the code's, or the other
 * operator. */
enum { NOT_READ, NOT_TAKEN, TAKEN, BESIDE_RESULT, BESIDE_LOCAL, BESIDE_GLOBAL, BESIDE_NAME, INTO_LOCAL, INTO_GLOBAL, INTO_NAME };

typedef struct {
    int kind, number, next, attributes; /* the other operator's place; loaded before that is there */
} Reading;

typedef struct {
    Py_ssize_t n;
    Reading readings[]; /* by the code's units */
} Ahead;

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
    return frame->f_frame->localsplus[number];
}
#endif

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
    Ahead *made = n == 0 ? NULL : PyMem_Calloc(1, sizeof(Ahead) + n * sizeof(Reading));
    if (made == NULL)
        return NULL;
    made->n = n;
    if (CODE_EXTRA(SetExtra)((PyObject *)code, ahead_place, made) < 0) {
        PyMem_Free(made);
        return NULL;
    }
    return made;
}

static Reading
read_ahead(PyCodeObject *code, int at)
{
    Reading found = {NOT_TAKEN};
    PyObject *place = PyLong_FromLong(at), *said = place == NULL ? NULL : call_two(known.ahead, (PyObject *)code, place);
    if (said != NULL && (!PyTuple_Check(said) || !PyArg_ParseTuple(said, "iiii", &found.kind, &found.number, &found.next, &found.attributes)))
        found.kind = NOT_TAKEN;
    Py_XDECREF(place);
    Py_XDECREF(said);
    PyErr_Clear();
    return found;
}

/* The variable that a reading names; borrowed, NULL where there is none. */
static PyObject *
named_by(const Reading *reading, PyFrameObject *frame, PyCodeObject *code)
{
    if (reading->kind == BESIDE_LOCAL || reading->kind == INTO_LOCAL)
        return local_of(frame, code, reading->number);
    PyObject *globals = PyEval_GetGlobals();
    int is_name = reading->kind == BESIDE_NAME || reading->kind == INTO_NAME;
    if (globals == NULL || (is_name && PyEval_GetLocals() != globals))
        return NULL;
    return PyDict_GetItemWithError(globals, PyTuple_GET_ITEM(code->co_names, reading->number));
}

/* Where an operator is, that the interpreter has called: in which code that runs, and which operator takes its result, 0
 * for none; and whether other code may run before. */
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
    Reading *reading = ahead == NULL || at / 2 >= ahead->n ? NULL : &ahead->readings[at / 2];
    if (reading != NULL && reading->kind == NOT_READ)
        *reading = read_ahead(code, at);
    if (reading != NULL && reading->kind > NOT_TAKEN) {
        PyObject *named = reading->kind > BESIDE_RESULT ? named_by(reading, here.frame, code) : NULL;
        here.next = reading->next;
        int is_ours = reading->kind == TAKEN           ? 1
                      : reading->kind == BESIDE_RESULT ? is_awaited(here)
                      : named == NULL                  ? 0
                      : reading->kind >= INTO_LOCAL    ? Py_TYPE(named) == known.array
                                                       : Py_TYPE(named) == known.array || is_number(named);
        here.next = is_ours ? here.next : 0;
        here.has_attributes = reading->attributes > 0;
    }
    PyErr_Clear();
    Py_DECREF(code);
    return here;
}
