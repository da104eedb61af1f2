/* NumPy's loops over doubles, without what NumPy does around them.
 *
 * For each call NumPy finds the loop, how operands broadcast, whether they overlap, and how errors are to be told: for
 * few elements that takes several times as long as the loop. Here the loop itself is called where none of this is a
 * question: arrays of doubles of one shape, whose elements lie in even steps, and numbers. What a loop would tell
 * (an overflow, a division by zero) is left to NumPy, which does it again: nothing has been written by then. */
#include <fenv.h>

enum { MOST_LOOPED = 1 << 13, MOST_WRITTEN = 1 << 11, MOST_LOOPED_OPERANDS = 2, AT_A_TIME = 8 }; /* some microseconds, without other threads */
#define TOLD (FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID)

/* A number's value, if it is one of double precision, or takes it without loss. */
static int
as_double(PyObject *a, double *value)
{
    if (Py_TYPE(a) == known.number || Py_TYPE(a) == &PyDoubleArrType_Type)
        *value = PyArrayScalar_VAL(a, Double);
    else if (PyFloat_CheckExact(a))
        *value = PyFloat_AS_DOUBLE(a);
    else if (PyLong_CheckExact(a)) {
        int overflow;
        long n = PyLong_AsLongAndOverflow(a, &overflow);
        if (overflow || n > (1L << 53) || n < -(1L << 53))
            return 0;
        *value = (double)n;
    }
    else
        return 0;
    return 1;
}

static PyObject *
double_number(double value)
{
    PyObject *number = known.number->tp_alloc(known.number, 0);
    if (number != NULL)
        PyArrayScalar_ASSIGN(number, Double, value);
    return number;
}

/* Whether an array has few doubles, which lie in even steps; the step in bytes. */
static int
in_steps(PyArrayObject *a, npy_intp *step)
{
    int ndim = PyArray_NDIM(a);
    if (PyArray_TYPE(a) != NPY_DOUBLE || ndim == 0 || !PyArray_ISBEHAVED_RO(a) || PyArray_SIZE(a) > MOST_LOOPED)
        return 0;
    *step = ndim == 1 ? PyArray_STRIDE(a, 0) : (npy_intp)sizeof(double);
    return ndim == 1 || PyArray_IS_C_CONTIGUOUS(a);
}

/* Forget what earlier loops had to tell; and whether this one has something to tell. */
static void
be_quiet(void)
{
    if (fetestexcept(TOLD))
        feclearexcept(TOLD);
}

static int
has_told(void)
{
    return fetestexcept(TOLD) || PyErr_Occurred();
}

/* Which of a function's loops takes doubles, or -1. */
static int
loop_of(PyUFuncObject *f)
{
    const char *types = f->types;
    for (int i = 0; i < f->ntypes; i++, types += f->nargs)
        if (types[0] == NPY_DOUBLE && types[f->nin - 1] == NPY_DOUBLE)
            return i;
    return -1;
}

/* What a function gives for `n` operands, as a new array, or written to `target`, if that is not NULL (a new
 * reference); NULL without an error where NumPy has to do it. */
static PyObject *
looped(PyObject *numpys, PyObject *const *operands, Py_ssize_t n, PyArrayObject *target)
{
    PyUFuncObject *f = (PyUFuncObject *)numpys;
    if (n > MOST_LOOPED_OPERANDS || !Py_IS_TYPE(numpys, &PyUFunc_Type) || f->nin != n || f->nout != 1
        || f->core_enabled)
        return NULL;
    PyArrayObject *like = target;
    char *places[MOST_LOOPED_OPERANDS + 1];
    npy_intp steps[MOST_LOOPED_OPERANDS + 1], step = sizeof(double);
    double numbers[MOST_LOOPED_OPERANDS], found[MOST_WRITTEN];
    if (target != NULL && (!in_steps(target, &step) || step == 0 || PyArray_SIZE(target) > MOST_WRITTEN
                           || !PyArray_ISWRITEABLE(target)))
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!PyArray_CheckExact(operands[i])) {
            if (!as_double(operands[i], &numbers[i]))
                return NULL;
            places[i] = (char *)&numbers[i];
            steps[i] = 0;
            continue;
        }
        PyArrayObject *a = (PyArrayObject *)operands[i];
        if (!in_steps(a, &steps[i]) || (like != NULL && !PyArray_SAMESHAPE(a, like)))
            return NULL;
        places[i] = PyArray_BYTES(a);
        like = a;
    }
    npy_intp size = like == NULL ? 0 : PyArray_SIZE(like);
    int loop = size == 0 ? -1 : loop_of(f), type = loop < 0 ? NPY_NOTYPE : f->types[loop * f->nargs + n];
    if (loop < 0 || (target != NULL && type != NPY_DOUBLE))
        return NULL;
    PyObject *result = target != NULL ? Py_NewRef((PyObject *)target)
                                      : PyArray_SimpleNew(PyArray_NDIM(like), PyArray_DIMS(like), type);
    if (result == NULL)
        return NULL;
    places[n] = target != NULL ? (char *)found : PyArray_BYTES((PyArrayObject *)result);
    steps[n] = PyArray_ITEMSIZE((PyArrayObject *)result);
    be_quiet();
    f->functions[loop](places, &size, steps, f->data == NULL ? NULL : (void *)f->data[loop]);
    if (has_told()) {
        PyErr_Clear();
        Py_DECREF(result);
        return NULL;
    }
    if (target != NULL) { /* which may be an operand, too */
        char *place = PyArray_BYTES(target);
        for (npy_intp i = 0; i < size; i++, place += step)
            *(double *)place = found[i];
    }
    return result;
}

/* A line of doubles whose step BLAS takes, and the step: where elements lie backwards, or at one place, a copy of them
 * in `room`, as NumPy's `dot` copies them. */
static void *
for_blas(PyArrayObject *a, npy_intp *step, double *room)
{
    const char *from = PyArray_BYTES(a);
    npy_intp size = PyArray_SIZE(a), apart = *step, i = 0;
    if (apart > 0)
        return PyArray_DATA(a);
    for (; i + AT_A_TIME <= size; i += AT_A_TIME, from += AT_A_TIME * apart)
        for (int k = 0; k < AT_A_TIME; k++)
            room[i + k] = *(const double *)(from + k * apart);
    for (; i < size; i++, from += apart)
        room[i] = *(const double *)from;
    *step = sizeof(double);
    return room;
}

/* The product of two lines of doubles as a number of ours, by NumPy's `matmul` or `dot`; NULL without an error where NumPy
 * has to do it. */
static PyObject *
dotted(PyObject *numpys, PyObject *x, PyObject *y)
{
    static double rooms[2][MOST_LOOPED]; /* with the interpreter's lock */
    if (!PyArray_CheckExact(x) || !PyArray_CheckExact(y))
        return NULL;
    PyArrayObject *a = (PyArrayObject *)x, *b = (PyArrayObject *)y;
    npy_intp of_a, of_b, n = PyArray_SIZE(a);
    if (PyArray_NDIM(a) != 1 || PyArray_NDIM(b) != 1 || n == 0 || n != PyArray_SIZE(b) || !in_steps(a, &of_a)
        || !in_steps(b, &of_b))
        return NULL;
    double found;
    int is_dot = numpys == known.dot;
    void *from_a = is_dot ? for_blas(a, &of_a, rooms[0]) : PyArray_DATA(a);
    void *from_b = is_dot ? for_blas(b, &of_b, rooms[1]) : PyArray_DATA(b);
    be_quiet();
    PyDataType_GetArrFuncs(PyArray_DESCR(a))->dotfunc(from_a, of_a, from_b, of_b, &found, n, a);
    if (!has_told())
        return double_number(found);
    PyErr_Clear();
    return NULL;
}
