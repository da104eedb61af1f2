/* NumPy's loops over few numbers, without what NumPy does around them.
 *
 * For each call NumPy finds the loop, how operands broadcast, whether they overlap, and how errors are to be told: for
 * few elements that takes several times as long as the loop. Here the loop itself is called where none of this is a
 * question: arrays of one shape, whose elements lie in even steps, those of NumPy's without axes, and numbers. Elements of
 * another type than the loop's are cast first. What a loop would tell (an overflow, a division by zero) is left to NumPy,
 * which does it again: nothing has been written by then. */
#include <fenv.h>

enum { MOST_LOOPED = 1 << 13, MOST_WRITTEN = 1 << 14 }; /* elements, some microseconds without other threads; bytes */
enum { MOST_LOOPED_OPERANDS = 2, AT_A_TIME = 8 };
#define TOLD (FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID)

/* Whether an array has few elements, which lie in even steps; the step in bytes, 0 where it has no axes. */
static int
in_steps(PyArrayObject *a, npy_intp *step)
{
    int ndim = PyArray_NDIM(a);
    *step = ndim == 0 ? 0 : ndim == 1 ? PyArray_STRIDE(a, 0) : PyArray_ITEMSIZE(a);
    return (ndim <= 1 || PyArray_IS_C_CONTIGUOUS(a)) && PyArray_SIZE(a) <= MOST_LOOPED && PyArray_ISBEHAVED_RO(a);
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

/* The loop of a function that takes and gives these types, or -1. */
static int
loop_for(PyUFuncObject *f, int type)
{
    const char *types = f->types;
    for (int i = 0; i < f->ntypes; i++, types += f->nargs) {
        int same = 1;
        for (int k = 0; k < f->nin; k++)
            same = same && types[k] == type;
        if (same)
            return i;
    }
    return -1;
}

/* Whether a function's loop raises errors: powers of integers do. */
static int
raises_errors(const PyUFuncObject *f, int type)
{
    return PyTypeNum_ISINTEGER(type) && strcmp(f->name, "power") == 0;
}

/* The type that few operands are worked on in, and what their arrays' shape is (`target`'s, if that is not NULL); NOTYPE
 * where NumPy has to find out. */
static int
type_of_few(PyObject *const *operands, Py_ssize_t n, PyArrayObject **like)
{
    int type = NPY_NOTYPE;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyArrayObject *a = (PyArrayObject *)operands[i];
        if (!PyArray_CheckExact(operands[i]))
            continue;
        type = promoted(type, PyArray_TYPE(a));
        if (type == NPY_NOTYPE || (*like != NULL && PyArray_NDIM(a) > 0 && !PyArray_SAMESHAPE(a, *like)))
            return NPY_NOTYPE;
        *like = PyArray_NDIM(a) > 0 ? a : *like;
    }
    for (Py_ssize_t i = 0; i < n && type != NPY_NOTYPE; i++)
        type = PyArray_CheckExact(operands[i]) ? type : promoted_by(operands[i], type);
    return type;
}

/* Where a loop finds an array's elements as those of a type, and their step: as they lie, or cast, in `room`; 0 where NumPy
 * has to see to them. */
static int
is_ready(PyArrayObject *a, int type, char *room, char **place, npy_intp *step)
{
    if (!in_steps(a, step))
        return 0;
    *place = PyArray_BYTES(a);
    if (PyArray_TYPE(a) == type)
        return 1;
    PyUFuncGenericFunction cast = casting(PyArray_TYPE(a), type);
    npy_intp size = PyArray_SIZE(a), steps[2] = {*step, bytes_of(type)};
    int is_one = size == 1 && PyArray_NDIM(a) > 0; /* whose steps NumPy chooses otherwise */
    if (cast == NULL || is_one || size * steps[1] > MOST_WRITTEN)
        return 0;
    char *places[2] = {*place, room};
    cast(places, &size, steps, NULL);
    *place = room;
    *step = PyArray_NDIM(a) > 0 ? steps[1] : 0;
    return 1;
}

/* What a function gives for `n` operands, as a new array, or written to `target`, if that is not NULL (a new
 * reference); NULL without an error where NumPy has to do it. */
static PyObject *
looped(PyObject *numpys, PyObject *const *operands, Py_ssize_t n, PyArrayObject *target)
{
    static double rooms[MOST_LOOPED_OPERANDS + 1][MOST_WRITTEN / sizeof(double)]; /* with the interpreter's lock */
    PyUFuncObject *f = (PyUFuncObject *)numpys;
    if (n > MOST_LOOPED_OPERANDS || !Py_IS_TYPE(numpys, &PyUFunc_Type) || f->nin != n || f->nout != 1
        || f->core_enabled)
        return NULL;
    PyArrayObject *like = target;
    char *places[MOST_LOOPED_OPERANDS + 1];
    npy_intp steps[MOST_LOOPED_OPERANDS + 1], step = 0;
    if (target != NULL && (!in_steps(target, &step) || step == 0 || PyArray_NBYTES(target) > MOST_WRITTEN
                           || !PyArray_ISWRITEABLE(target)))
        return NULL;
    int type = type_of_few(operands, n, &like);
    npy_intp size = like == NULL || !is_of_loops(type) ? 0 : PyArray_SIZE(like);
    int loop = size == 0 || raises_errors(f, type) ? -1 : loop_for(f, type);
    int given = loop < 0 ? NPY_NOTYPE : f->types[loop * f->nargs + n];
    if (!is_of_loops(given) || (target != NULL && PyArray_TYPE(target) != given))
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        char *room = (char *)rooms[i];
        places[i] = room;
        steps[i] = 0;
        if (PyArray_CheckExact(operands[i]) ? !is_ready((PyArrayObject *)operands[i], type, room, &places[i], &steps[i])
                                            : !as_element(operands[i], type, room))
            return NULL;
    }
    PyObject *result = target != NULL ? Py_NewRef((PyObject *)target)
                                      : PyArray_SimpleNew(PyArray_NDIM(like), PyArray_DIMS(like), given);
    if (result == NULL)
        return NULL;
    places[n] = target != NULL ? (char *)rooms[n] : PyArray_BYTES((PyArrayObject *)result);
    steps[n] = PyArray_ITEMSIZE((PyArrayObject *)result);
    be_quiet();
    f->functions[loop](places, &size, steps, f->data == NULL ? NULL : (void *)f->data[loop]);
    if (has_told()) {
        PyErr_Clear();
        Py_DECREF(result);
        return NULL;
    }
    if (target != NULL) /* which may be an operand, too; a loop may have moved the places */
        scatter(PyArray_BYTES(target), (char *)rooms[n], 1, size, 0, step, PyArray_ITEMSIZE(target));
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
    if (PyArray_TYPE(a) != NPY_DOUBLE || PyArray_TYPE(b) != NPY_DOUBLE || PyArray_NDIM(a) != 1 || PyArray_NDIM(b) != 1 || n == 0
        || n != PyArray_SIZE(b) || !in_steps(a, &of_a) || !in_steps(b, &of_b))
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
