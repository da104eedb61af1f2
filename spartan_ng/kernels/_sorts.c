/* Sorts of numbers by their digits, for `sorts.py`, which says what elements are and gives room for them.
 *
 * Lines are buffers of unsigned integers of the elements' width. `kind` says what they are: "u" for what has no
 * sign, "i" for what has, "m" for times, "f" for floating-point numbers. Other threads of Python go on meanwhile.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define LINE_BYTES 64
#define SAMPLES 64
#define SHORT 24         /* elements that are put in order one by one */
#define LONG 4096        /* elements from which digits have 11 bits, not 8 */
#define APART 1          /* bits more than would set neighbours apart that are equally far from each other */
#define FEW 8            /* values that are few */
#define FEW_SAMPLES 32
#define FEW_BLOCK 1024   /* elements from which it is worth asking, and after so many more each time */
#define MOST_BITS 11
#define FEW_BITS 8
#define MOST_DIGITS 8
#define MOST_PARTS 65535

#define WIDTH 8
#include "_sorts.h"
#define WIDTH 16
#include "_sorts.h"
#define WIDTH 32
#include "_sorts.h"
#define WIDTH 64
#include "_sorts.h"

/* A statement for lines of each width, where `W(name)` is what `name` is for that width. */
#define BY_WIDTH(bytes, statement)                                                                            \
    do {                                                                                                      \
        Py_BEGIN_ALLOW_THREADS                                                                                \
        if ((bytes) == 1) {                                                                                   \
            statement(8)                                                                                      \
        } else if ((bytes) == 2) {                                                                            \
            statement(16)                                                                                     \
        } else if ((bytes) == 4) {                                                                            \
            statement(32)                                                                                     \
        } else {                                                                                              \
            statement(64)                                                                                     \
        }                                                                                                     \
        Py_END_ALLOW_THREADS                                                                                  \
    } while (0)

/* Whether there are elements of `bytes` bytes of a kind, and buffers of as many; else an error. */
static int
is_line(int kind, int bytes, const Py_buffer *line, const Py_buffer *other)
{
    if ((bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) || !strchr("uimf", kind) || (kind == 'f' && bytes == 1))
        PyErr_Format(PyExc_TypeError, "no elements of kind %c have %d bytes", kind, bytes);
    else if (line->len % bytes || (uintptr_t)line->buf % (size_t)bytes)
        PyErr_SetString(PyExc_ValueError, "elements do not lie where they could be read");
    else if (other && (other->len != line->len || (uintptr_t)other->buf % (size_t)bytes))
        PyErr_SetString(PyExc_ValueError, "lines are not equally long");
    else
        return 1;
    return 0;
}

static int
mantissa_of(int bytes)
{
    return bytes == 8 ? 52 : bytes == 4 ? 23 : 10;
}

static PyObject *
sort(PyObject *module, PyObject *args)
{
    Py_buffer from, to, spare;
    int kind, bytes, in_order;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "Ciy*w*w*ni", &kind, &bytes, &from, &to, &spare, &length, &in_order))
        return NULL;
    int is_good = is_line(kind, bytes, &from, &to);
    if (is_good && from.len && (length < 1 || length > UINT32_MAX || in_order < 0 || in_order >= 8 * bytes
                                || from.len / bytes % length || spare.len / bytes < length
                    || (uintptr_t)spare.buf % (size_t)bytes)) {
        PyErr_SetString(PyExc_ValueError, "no lines of that length");
        is_good = 0;
    }
    if (is_good) {
#define SORT(W)                                                                                               \
    Code##W code = code_for##W((char)kind, mantissa_of(bytes));                                               \
    for (Py_ssize_t i = 0; i < from.len / bytes; i += length)                                                 \
        sort##W((const uint##W##_t *)from.buf + i, (uint##W##_t *)to.buf + i, spare.buf, (size_t)length, code, in_order);
        BY_WIDTH(bytes, SORT);
    }
    PyBuffer_Release(&from);
    PyBuffer_Release(&to);
    PyBuffer_Release(&spare);
    return is_good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *
ends(PyObject *module, PyObject *args)
{
    Py_buffer line;
    int kind, bytes, is_alike, goes_up = 0;
    uint64_t least = 0, most = 0, apart = 0;
    if (!PyArg_ParseTuple(args, "Ciy*p", &kind, &bytes, &line, &is_alike))
        return NULL;
    int is_good = is_line(kind, bytes, &line, NULL) && line.len;
    if (is_good) {
#define ENDS(W)                                                                                               \
    Code##W code = code_for##W((char)kind, mantissa_of(bytes));                                               \
    Ends##W found = ends_of##W(line.buf, (size_t)(line.len / bytes), code, NULL);                             \
    least = is_alike ? alike##W(found.least, code) : found.least;                                             \
    most = is_alike ? alike##W(found.most, code) : found.most;                                                \
    apart = found.apart | (least ^ most); /* what is no number has another key here */                        \
    goes_up = found.goes_up;
        BY_WIDTH(bytes, ENDS);
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "no elements have no ends");
    }
    PyBuffer_Release(&line);
    return is_good ? Py_BuildValue("KKKN", (unsigned long long)least, (unsigned long long)most,
                                   (unsigned long long)apart, PyBool_FromLong(goes_up))
                   : NULL;
}

static PyObject *
keys(PyObject *module, PyObject *args)
{
    Py_buffer line, to;
    int kind, bytes;
    unsigned long long less;
    if (!PyArg_ParseTuple(args, "Ciy*Kw*", &kind, &bytes, &line, &less, &to))
        return NULL;
    int is_good = is_line(kind, bytes, &line, NULL);
    if (is_good && (to.len / 8 != line.len / bytes || (uintptr_t)to.buf % 8)) {
        PyErr_SetString(PyExc_ValueError, "no room for keys");
        is_good = 0;
    }
    if (is_good) {
#define KEYS(W)                                                                                               \
    Code##W code = code_for##W((char)kind, mantissa_of(bytes));                                               \
    code.less = (uint##W##_t)(code.less + less);                                                              \
    put_keys##W(line.buf, (size_t)(line.len / bytes), code, to.buf);
        BY_WIDTH(bytes, KEYS);
    }
    PyBuffer_Release(&line);
    PyBuffer_Release(&to);
    return is_good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *
pack(PyObject *module, PyObject *args)
{
    Py_buffer line, to;
    int kind, bytes, without, digits;
    unsigned long long less;
    Py_ssize_t place, length;
    if (!PyArg_ParseTuple(args, "Ciy*Kiinnw*", &kind, &bytes, &line, &less, &without, &digits, &place, &length, &to))
        return NULL;
    int is_good = is_line(kind, bytes, &line, NULL);
    if (is_good && (to.len / 8 != line.len / bytes || (uintptr_t)to.buf % 8 || without < 0 || without > 63 || digits < 0
                    || digits > 63 || place < 0 || length < 1 || line.len / bytes % length)) {
        PyErr_SetString(PyExc_ValueError, "no room for places");
        is_good = 0;
    }
    if (is_good) {
#define PACK(W)                                                                                               \
    pack##W(line.buf, (size_t)(line.len / bytes), code_for##W((char)kind, mantissa_of(bytes)),                \
            (uint##W##_t)less, without, digits, (size_t)place, (size_t)length, to.buf);
        BY_WIDTH(bytes, PACK);
    }
    PyBuffer_Release(&line);
    PyBuffer_Release(&to);
    return is_good ? Py_NewRef(Py_None) : NULL;
}

/* Put places in the order of keys' last bits, which were missing, and of equal ones as they are; -1 without memory. */
static int
order_alike(const uint64_t *line, size_t length, Code64 code, uint64_t less, uint64_t last, int64_t *places, size_t n)
{
    int digits = length_of64(n - 1);
    uint64_t few[2 * SHORT], *room = n <= SHORT ? few : PyMem_RawMalloc(2 * n * sizeof(uint64_t));
    if (!room)
        return -1;
    int goes_up = 1;
    for (size_t i = 0; i < n; i++) {
        size_t place = (size_t)places[i] < length ? (size_t)places[i] : length - 1;
        room[i] = ((alike64(key_of64(line[place], code), code) - less) & last) << digits | i;
        goes_up &= !i || room[i] > room[i - 1];
    }
    if (!goes_up) {
        uint64_t *sorted = sort_keys64(room, room + n, n), *moved = sorted == room ? room + n : room;
        for (size_t i = 0; i < n; i++)
            moved[i] = (uint64_t)places[sorted[i] & (((uint64_t)1 << digits) - 1)];
        memcpy(places, moved, n * sizeof(uint64_t));
    }
    if (room != few)
        PyMem_RawFree(room);
    return 0;
}

/* The places behind sorted keys, in `digits` bits, of elements of a line whose keys lack the last bits there. */
static int
unpack_line(const uint64_t *line, size_t length, Code64 code, uint64_t less, const uint64_t *packed, size_t n,
            int digits, int without, int64_t *places)
{
    uint64_t place = ((uint64_t)1 << digits) - 1, last = ((uint64_t)1 << without) - 1;
    for (size_t first = 0, end; first < n; first = end) {
        uint64_t key = packed[first] >> digits;
        for (end = first; end < n && packed[end] >> digits == key; end++)
            places[end] = (int64_t)(packed[end] & place);
        if (end - first > 1 && order_alike(line, length, code, less, last, places + first, end - first))
            return -1;
    }
    return 0;
}

static PyObject *
unpack(PyObject *module, PyObject *args)
{
    Py_buffer line, packed, places;
    int kind, digits, without, is_done = 0;
    unsigned long long less;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "Cy*Ky*iinw*", &kind, &line, &less, &packed, &digits, &without, &length, &places))
        return NULL;
    int is_good = is_line(kind, 8, &line, NULL) && is_line('u', 8, &packed, &places);
    Py_ssize_t lines = is_good && length > 0 ? packed.len / 8 / length : 0;
    if (is_good && packed.len && (!lines || packed.len / 8 % length || !line.len || line.len / 8 % lines || without < 0
                                  || without > 63 || digits < 0 || digits > 63)) {
        PyErr_SetString(PyExc_ValueError, "no lines of that length");
        is_good = 0;
    }
    if (is_good) {
        Code64 code = code_for64((char)kind, 52);
        size_t of_line = lines ? (size_t)(line.len / 8 / lines) : 0;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < lines && !is_done; i++)
            is_done = unpack_line((const uint64_t *)line.buf + (size_t)i * of_line, of_line, code, less,
                                  (const uint64_t *)packed.buf + i * length, (size_t)length, digits, without,
                                  (int64_t *)places.buf + i * length);
        Py_END_ALLOW_THREADS
        if (is_done)
            PyErr_NoMemory();
    }
    PyBuffer_Release(&line);
    PyBuffer_Release(&packed);
    PyBuffer_Release(&places);
    return is_good && !is_done ? Py_NewRef(Py_None) : NULL;
}

/* Whether keys from `less` on up to `most` have an entry each, and every entry a part. */
static int
is_table(const Py_buffer *table, int rest, const Py_buffer *counts)
{
    const uint32_t *entries = table->buf;
    size_t n = (size_t)table->len / sizeof(uint32_t), parts = (size_t)counts->len / sizeof(int64_t);
    int is_good = rest >= 0 && rest <= 63 && n && parts <= MOST_PARTS;
    for (size_t i = 0; is_good && i < n; i++) {
        int shift = (int)(entries[i] & 255);
        uint64_t most = shift <= rest ? ((1ull << rest) - 1) >> shift : UINT64_MAX;
        is_good = most < parts && (entries[i] >> 8) + most < parts;
    }
    if (!is_good)
        PyErr_SetString(PyExc_ValueError, "no such parts");
    return is_good;
}

static PyObject *
count(PyObject *module, PyObject *args)
{
    Py_buffer line, table, counts;
    int kind, bytes, rest;
    unsigned long long less;
    if (!PyArg_ParseTuple(args, "Ciy*Ky*iw*", &kind, &bytes, &line, &less, &table, &rest, &counts))
        return NULL;
    int is_good = is_line(kind, bytes, &line, NULL) && is_table(&table, rest, &counts);
    if (is_good) {
#define COUNT(W)                                                                                              \
    Code##W code = code_for##W((char)kind, mantissa_of(bytes));                                               \
    code.less = (uint##W##_t)(code.less + less);                                                              \
    count##W(line.buf, (size_t)(line.len / bytes), code, table.buf, (size_t)table.len / 4, rest, counts.buf);
        BY_WIDTH(bytes, COUNT);
    }
    PyBuffer_Release(&line);
    PyBuffer_Release(&table);
    PyBuffer_Release(&counts);
    return is_good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *
spread(PyObject *module, PyObject *args)
{
    Py_buffer line, table, places, to;
    int kind, bytes, rest;
    unsigned long long less;
    if (!PyArg_ParseTuple(args, "Ciy*Ky*iw*w*", &kind, &bytes, &line, &less, &table, &rest, &places, &to))
        return NULL;
    size_t parts = (size_t)places.len / sizeof(int64_t);
    int is_good = is_line(kind, bytes, &line, NULL) && is_table(&table, rest, &places);
    char *room = is_good ? PyMem_RawMalloc(parts * (LINE_BYTES + sizeof(int64_t)) + LINE_BYTES) : NULL;
    if (is_good && !room) {
        PyErr_NoMemory();
    } else if (is_good) {
        void *lines = room + (LINE_BYTES - (uintptr_t)room % LINE_BYTES);
        int64_t *firsts = (int64_t *)((char *)lines + parts * LINE_BYTES);
#define SPREAD(W)                                                                                             \
    Code##W code = code_for##W((char)kind, mantissa_of(bytes));                                               \
    code.less = (uint##W##_t)(code.less + less);                                                              \
    spread##W(line.buf, (size_t)(line.len / bytes), code, table.buf, (size_t)table.len / 4, rest, parts, places.buf, to.buf, (size_t)(to.len / bytes), lines, firsts);
        BY_WIDTH(bytes, SPREAD);
        PyMem_RawFree(room);
    }
    PyBuffer_Release(&line);
    PyBuffer_Release(&table);
    PyBuffer_Release(&places);
    PyBuffer_Release(&to);
    return room ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef functions[] = {
    {"sort", sort, METH_VARARGS,
     "sort(kind, bytes, line, to, spare, length, in_order)\n--\n\n"
     "Sort lines into others, which may be the same ones, and may be in the order of some last bits."},
    {"ends", ends, METH_VARARGS,
     "ends(kind, bytes, line, is_alike)\n--\n\n"
     "The least and the greatest key of elements, those of equal ones alike or not, the bits in which keys differ, "
     "and whether they go up."},
    {"keys", keys, METH_VARARGS, "keys(kind, bytes, line, less, to)\n--\n\nThe keys of elements, from `less` on."},
    {"pack", pack, METH_VARARGS,
     "pack(kind, bytes, line, less, without, digits, place, length, to)\n--\n\n"
     "Keys without their last bits in front of the places of elements in lines of a length."},
    {"unpack", unpack, METH_VARARGS,
     "unpack(kind, line, less, packed, digits, without, length, places)\n--\n\n"
     "The places behind sorted keys, by the last bits of these, too."},
    {"count", count, METH_VARARGS,
     "count(kind, bytes, line, less, table, rest, counts)\n--\n\nCount how many elements there are of each part."},
    {"spread", spread, METH_VARARGS,
     "spread(kind, bytes, line, less, table, rest, places, to)\n--\n\nCopy elements to their parts."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_sorts", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC
PyInit__sorts(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddIntConstant(module, "SOURCE", SOURCE)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
