/* Dot products of lines of two matrices at given places, for `patterns.py`: NumPy has to gather the lines first.
 *
 * A line has its elements side by side; lines lie anywhere. Those of places to come are asked for ahead, as waiting
 * for them would take longer than multiplying. Other threads of Python go on meanwhile.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define ABREAST 8 /* sums that are independent, for vector registers */
#define AHEAD 8   /* places ahead that a line is asked for */
#define CACHE_LINE 64

#if defined(__GNUC__)
#define ASK_FOR(address) __builtin_prefetch(address)
#else
#define ASK_FOR(address) ((void)0)
#endif
/* Processors with wide registers get loops of their own, where the loader can choose. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("arch=haswell", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

/* The elements at `count` places from the first on; how many of them lie in the matrices before one does not. */
#define DOTS(name, Real, Index)                                                                                   \
    FOR_EACH_PROCESSOR static Py_ssize_t name(const Py_buffer *left, const Py_buffer *right, const Index *rows,   \
                                              const Index *columns, Real *out, Py_ssize_t count)                  \
    {                                                                                                             \
        const Py_ssize_t length = left->shape[1], nbytes = length * (Py_ssize_t)sizeof(Real);                     \
        for (Py_ssize_t p = 0; p < count; p++) {                                                                  \
            const Py_ssize_t row = (Py_ssize_t)rows[p], column = (Py_ssize_t)columns[p];                          \
            if (row < 0 || row >= left->shape[0] || column < 0 || column >= right->shape[0])                      \
                return p;                                                                                         \
            if (p + AHEAD < count) {                                                                              \
                const uintptr_t far                                                                               \
                    = (uintptr_t)right->buf + (uintptr_t)columns[p + AHEAD] * (uintptr_t)right->strides[0];       \
                for (Py_ssize_t b = 0; b < nbytes; b += CACHE_LINE)                                               \
                    ASK_FOR((const char *)(far + (uintptr_t)b));                                                  \
            }                                                                                                     \
            const Real *u = (const Real *)((const char *)left->buf + row * left->strides[0]);                     \
            const Real *v = (const Real *)((const char *)right->buf + column * right->strides[0]);                \
            Real sums[ABREAST] = {0}, rest = 0;                                                                   \
            Py_ssize_t k = 0;                                                                                     \
            for (; k + ABREAST <= length; k += ABREAST)                                                           \
                for (int j = 0; j < ABREAST; j++)                                                                 \
                    sums[j] += u[k + j] * v[k + j];                                                               \
            for (; k < length; k++)                                                                               \
                rest += u[k] * v[k];                                                                              \
            for (int j = 0; j < ABREAST; j++)                                                                     \
                rest += sums[j];                                                                                  \
            out[p] = rest;                                                                                        \
        }                                                                                                         \
        return count;                                                                                             \
    }
DOTS(dots_f4_i4, float, int32_t)
DOTS(dots_f4_i8, float, int64_t)
DOTS(dots_f8_i4, double, int32_t)
DOTS(dots_f8_i8, double, int64_t)

static int
is_lines(const Py_buffer *lines, const Py_buffer *out)
{
    return lines->ndim == 2 && !strcmp(lines->format, out->format) && lines->strides[1] == out->itemsize
        && !((uintptr_t)lines->buf % (size_t)out->itemsize) && !(lines->strides[0] % out->itemsize);
}

static int
is_places(const Py_buffer *places, const Py_buffer *out)
{
    return places->ndim == 1 && places->shape[0] == out->shape[0] && strchr("ilq", places->format[0])
        && !places->format[1] && (places->itemsize == 4 || places->itemsize == 8)
        && !((uintptr_t)places->buf % (size_t)places->itemsize);
}

static PyObject *
dots(PyObject *module, PyObject *args)
{
    PyObject *given[5];
    Py_buffer b[5];
    if (!PyArg_ParseTuple(args, "OOOOO", &given[0], &given[1], &given[2], &given[3], &given[4]))
        return NULL;
    int held = 0;
    for (; held < 5; held++) {
        int how = PyBUF_FORMAT | (held < 2 ? PyBUF_STRIDES : PyBUF_C_CONTIGUOUS) | (held == 4 ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(given[held], &b[held], how) < 0)
            break;
    }
    Py_ssize_t done = -1, count = 0;
    if (held == 5) {
        const Py_buffer *left = &b[0], *right = &b[1], *rows = &b[2], *columns = &b[3], *out = &b[4];
        int is_good = out->ndim == 1 && (!strcmp(out->format, "f") || !strcmp(out->format, "d"))
            && is_lines(left, out) && is_lines(right, out) && left->shape[1] == right->shape[1]
            && is_places(rows, out) && is_places(columns, out) && rows->itemsize == columns->itemsize;
        if (is_good) {
            count = out->shape[0];
            Py_BEGIN_ALLOW_THREADS
            if (out->itemsize == 4 && rows->itemsize == 4)
                done = dots_f4_i4(left, right, rows->buf, columns->buf, out->buf, count);
            else if (out->itemsize == 4)
                done = dots_f4_i8(left, right, rows->buf, columns->buf, out->buf, count);
            else if (rows->itemsize == 4)
                done = dots_f8_i4(left, right, rows->buf, columns->buf, out->buf, count);
            else
                done = dots_f8_i8(left, right, rows->buf, columns->buf, out->buf, count);
            Py_END_ALLOW_THREADS
            if (done < count)
                PyErr_Format(PyExc_IndexError, "place %zd is not in the matrices", done);
        } else {
            PyErr_SetString(PyExc_TypeError, "no lines of numbers, places in them, and a line for the products");
        }
    }
    for (int i = 0; i < held; i++)
        PyBuffer_Release(&b[i]);
    return held == 5 && done == count && !PyErr_Occurred() ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef functions[] = {
    {"dots", dots, METH_VARARGS,
     "dots(left, right, rows, columns, out)\n--\n\n"
     "The dot products of a line of each of two matrices for each pair of places."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_dots", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC
PyInit__dots(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddIntConstant(module, "SOURCE", SOURCE)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
