/* What programs of many tiny operations do by the million, without Python in between: elements, views and places
 * read and written, operators, products, functions of few arrays, numbers carried through loops.
 *
 * `Quick` stands in front of the class whose methods decide everything (`quick.py` says where). It answers the
 * plain case: arrays of this package whose elements are a NumPy array of numbers on the driver, that are small
 * or have only an element or a view asked of them; basic keys; numbers. NumPy's own functions then do the work.
 * Whatever is anything else, or fails as our methods would say in other words, goes to the methods, which find it
 * as it was: nothing here remembers what was decided, or says what an error is.
 *
 * Every question that is asked here is one of those that the methods ask first, of the objects that `connect`
 * was given: there is no second threshold and no second table.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stddef.h>
#include <structmember.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <numpy/ufuncobject.h>

/* --- fields ---------------------------------------------------------------------------------------------- */

/* What a cell has; see `Cell`. Zeros are None, False and 0. */
typedef struct {
    PyObject_HEAD
    PyObject *value, *node, *masked, *order, *lender, *source, *owner;
    int picks;
    char frozen, borrowed, blank, shared, settled;
    PyObject *weakrefs;
} Cell;

/* What an array has; see `Handle`. */
typedef struct {
    PyObject_HEAD
    PyObject *cell, *views, *state, *shown;
    PyObject *weakrefs;
} Handle;

static PyMemberDef cell_members[] = {
    {"value", T_OBJECT_EX, offsetof(Cell, value), 0, NULL},
    {"masked", T_OBJECT, offsetof(Cell, masked), 0, NULL},
    {"frozen", T_BOOL, offsetof(Cell, frozen), 0, NULL},
    {"borrowed", T_BOOL, offsetof(Cell, borrowed), 0, NULL},
    {"blank", T_BOOL, offsetof(Cell, blank), 0, NULL},
    {"picks", T_INT, offsetof(Cell, picks), 0, NULL},
    {"order", T_OBJECT, offsetof(Cell, order), 0, NULL},
    {"shared", T_BOOL, offsetof(Cell, shared), 0, NULL},
    {"lender", T_OBJECT, offsetof(Cell, lender), 0, NULL},
    {"source", T_OBJECT, offsetof(Cell, source), 0, NULL},
    {"owner", T_OBJECT, offsetof(Cell, owner), 0, NULL},
    {"settled", T_BOOL, offsetof(Cell, settled), 0, NULL},
    {"_node", T_OBJECT, offsetof(Cell, node), 0, NULL},
    {NULL},
};

static PyMemberDef handle_members[] = {
    {"_cell", T_OBJECT_EX, offsetof(Handle, cell), 0, NULL},
    {"_views", T_OBJECT_EX, offsetof(Handle, views), 0, NULL},
    {"_state", T_OBJECT_EX, offsetof(Handle, state), 0, NULL},
    {"_shown", T_OBJECT_EX, offsetof(Handle, shown), 0, NULL},
    {NULL},
};

static int
cell_traverse(PyObject *self, visitproc visit, void *arg)
{
    Cell *c = (Cell *)self;
    Py_VISIT(c->value);
    Py_VISIT(c->node);
    Py_VISIT(c->masked);
    Py_VISIT(c->order);
    Py_VISIT(c->lender);
    Py_VISIT(c->source);
    Py_VISIT(c->owner);
    return 0;
}

static int
cell_clear(PyObject *self)
{
    Cell *c = (Cell *)self;
    Py_CLEAR(c->value);
    Py_CLEAR(c->node);
    Py_CLEAR(c->masked);
    Py_CLEAR(c->order);
    Py_CLEAR(c->lender);
    Py_CLEAR(c->source);
    Py_CLEAR(c->owner);
    return 0;
}

static void
cell_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (((Cell *)self)->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    cell_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static int
handle_traverse(PyObject *self, visitproc visit, void *arg)
{
    Handle *h = (Handle *)self;
    Py_VISIT(h->cell);
    Py_VISIT(h->views);
    Py_VISIT(h->state);
    Py_VISIT(h->shown);
    return 0;
}

static int
handle_clear(PyObject *self)
{
    Handle *h = (Handle *)self;
    Py_CLEAR(h->cell);
    Py_CLEAR(h->views);
    Py_CLEAR(h->state);
    Py_CLEAR(h->shown);
    return 0;
}

static void
handle_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (((Handle *)self)->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    handle_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject CellFields = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spartan_ng.api.core._quick.CellFields",
    .tp_basicsize = sizeof(Cell),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What a cell has.",
    .tp_members = cell_members,
    .tp_weaklistoffset = offsetof(Cell, weakrefs),
    .tp_traverse = cell_traverse,
    .tp_clear = cell_clear,
    .tp_dealloc = cell_dealloc,
};

static PyTypeObject HandleFields = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spartan_ng.api.core._quick.HandleFields",
    .tp_basicsize = sizeof(Handle),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What an array has.",
    .tp_members = handle_members,
    .tp_weaklistoffset = offsetof(Handle, weakrefs),
    .tp_traverse = handle_traverse,
    .tp_clear = handle_clear,
    .tp_dealloc = handle_dealloc,
};

/* --- what the methods know ------------------------------------------------------------------------------- */

/* An operator: NumPy's function for the plain case, or NULL, and the methods for all others. */
typedef struct {
    const char *name, *reflected_name;
    PyObject *numpys, *method, *reflected;
} Operator;

#define BINARY(X)                                                                                             \
    X(add, "__add__", "__radd__")                                                                             \
    X(subtract, "__sub__", "__rsub__")                                                                        \
    X(multiply, "__mul__", "__rmul__")                                                                        \
    X(true_divide, "__truediv__", "__rtruediv__")                                                             \
    X(floor_divide, "__floordiv__", "__rfloordiv__")                                                          \
    X(remainder, "__mod__", "__rmod__")                                                                       \
    X(and, "__and__", "__rand__")                                                                             \
    X(or, "__or__", "__ror__")                                                                                \
    X(xor, "__xor__", "__rxor__")                                                                             \
    X(lshift, "__lshift__", "__rlshift__")                                                                    \
    X(rshift, "__rshift__", "__rrshift__")
#define INPLACE(X)                                                                                            \
    X(inplace_add, "__iadd__")                                                                                \
    X(inplace_subtract, "__isub__")                                                                           \
    X(inplace_multiply, "__imul__")                                                                           \
    X(inplace_true_divide, "__itruediv__")                                                                    \
    X(inplace_floor_divide, "__ifloordiv__")                                                                  \
    X(inplace_remainder, "__imod__")                                                                          \
    X(inplace_and, "__iand__")                                                                                \
    X(inplace_or, "__ior__")                                                                                  \
    X(inplace_xor, "__ixor__")                                                                                \
    X(inplace_lshift, "__ilshift__")                                                                          \
    X(inplace_rshift, "__irshift__")
#define UNARY(X)                                                                                              \
    X(negative, "__neg__")                                                                                    \
    X(positive, "__pos__")                                                                                    \
    X(absolute, "__abs__")                                                                                    \
    X(invert, "__invert__")
#define COMPARISON(X)                                                                                         \
    X(LT, "__lt__")                                                                                           \
    X(LE, "__le__")                                                                                           \
    X(EQ, "__eq__")                                                                                           \
    X(NE, "__ne__")                                                                                           \
    X(GT, "__gt__")                                                                                           \
    X(GE, "__ge__")

enum {
#define NUMBERED(name, ...) op_##name,
    BINARY(NUMBERED) INPLACE(NUMBERED) UNARY(NUMBERED) COMPARISON(NUMBERED)
#undef NUMBERED
    op_matmul, op_power, op_getitem, op_setitem, op_delitem, op_len, op_array_ufunc, op_count
};

static Operator operators[op_count] = {
#define OF_TWO(name, method, reflected) [op_##name] = {method, reflected},
#define OF_ONE(name, method) [op_##name] = {method},
    BINARY(OF_TWO) INPLACE(OF_ONE) UNARY(OF_ONE) COMPARISON(OF_ONE)
#undef OF_TWO
#undef OF_ONE
    [op_matmul] = {"__matmul__", "__rmatmul__"},
    [op_power] = {"__pow__", "__rpow__"},
    [op_getitem] = {"__getitem__"},
    [op_setitem] = {"__setitem__"},
    [op_delitem] = {"__delitem__"},
    [op_len] = {"__len__"},
    [op_array_ufunc] = {"__array_ufunc__"},
};

static struct {
    PyTypeObject *array, *cell;    /* the classes of plain arrays and their cells */
    PyObject *wrap;                /* makes of NumPy's results what we give */
    PyObject *open;                /* the method that finds out whether a value may be written to */
    PyObject *numbers, *integers;  /* classes of numbers that NumPy takes as they are, and of its integers */
    PyObject *ours;                /* what becomes of NumPy's numbers */
    PyObject *ufuncs;              /* NumPy's functions that are ours */
    PyObject *finish;              /* what a function's other results become */
    PyObject *reversed;            /* by numbers of axes, the view with its axes reversed */
    PyTypeObject *number;          /* the class of our numbers of double precision */
    PyObject *transposed, *shape;  /* properties */
    PyObject *copy;                /* a method */
    PyObject *config;              /* where the threshold stands, */
    Py_ssize_t small_bytes;        /* and where in it */
    Py_ssize_t surely, least;      /* bytes of broadcast results, and from which temporaries are reused */
    Py_ssize_t flops;              /* of products that are done without further questions */
    Py_ssize_t chain;              /* views of views that are joined */
} known;

static PyObject *no_views, *call_name;

/* Bytes up to which operands are small, now. */
static Py_ssize_t
small_bytes(void)
{
    PyObject *n = *(PyObject **)((char *)known.config + known.small_bytes);
    Py_ssize_t bytes = n == NULL ? 0 : PyLong_AsSsize_t(n);
    if (bytes == -1 && PyErr_Occurred()) { /* more than there can be */
        PyErr_Clear();
        bytes = PY_SSIZE_T_MAX;
    }
    return bytes;
}

static PyObject *
method_of(const Operator *op, PyObject *method)
{
    if (method == NULL)
        PyErr_Format(PyExc_SystemError, "%s is asked for before its class is there", op->name);
    return method;
}

static PyObject *
call_one(PyObject *function, PyObject *a)
{
    PyObject *arguments[2] = {NULL, a};
    return PyObject_Vectorcall(function, arguments + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
}

static PyObject *
call_two(PyObject *function, PyObject *a, PyObject *b)
{
    PyObject *arguments[3] = {NULL, a, b};
    return PyObject_Vectorcall(function, arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
}

static PyObject *
call_three(PyObject *function, PyObject *a, PyObject *b, PyObject *c)
{
    PyObject *arguments[4] = {NULL, a, b, c};
    return PyObject_Vectorcall(function, arguments + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
}

/* --- values ---------------------------------------------------------------------------------------------- */

/* The object as a NumPy array of numbers, or NULL; no reference is taken, here and below. */
static PyArrayObject *
of_numbers(PyObject *value)
{
    if (value == NULL || !PyArray_CheckExact(value))
        return NULL;
    int kind = PyArray_TYPE((PyArrayObject *)value);
    return PyTypeNum_ISNUMBER(kind) || PyTypeNum_ISBOOL(kind) ? (PyArrayObject *)value : NULL;
}

/* An array's cell, unless it is one of another class, which has ways of its own. */
static Cell *
cell_of(Handle *array)
{
    PyObject *cell = array->cell;
    return cell != NULL && Py_TYPE(cell) == known.cell ? (Cell *)cell : NULL;
}

/* What an array shows, if that is known and numbers. */
static PyArrayObject *
shown_of(Handle *array)
{
    Cell *cell = cell_of(array);
    if (cell == NULL || array->views == NULL || !PyTuple_CheckExact(array->views))
        return NULL;
    if (PyTuple_GET_SIZE(array->views) == 0)
        return of_numbers(cell->value);
    return cell->value != NULL && array->state == cell->value ? of_numbers(array->shown) : NULL;
}

/* The memory to write to, if nobody else has a claim on it (a new reference); NULL, with an error or without. */
static PyArrayObject *
open_of(Handle *array)
{
    Cell *cell = cell_of(array);
    if (cell == NULL || (cell->node != NULL && cell->node != Py_None))
        return NULL;
    PyArrayObject *shown = shown_of(array);
    if (shown == NULL)
        return NULL;
    if (!cell->settled) {
        PyObject *found = call_one(known.open, (PyObject *)array);
        int same = found == (PyObject *)shown;
        Py_XDECREF(found);
        if (!same)
            return NULL;
    }
    Py_INCREF(shown);
    return shown;
}

/* Whether an object's class is in a set. */
static int
is_among(PyObject *classes, PyObject *a)
{
    int is_in = PySet_Contains(classes, (PyObject *)Py_TYPE(a));
    if (is_in < 0) /* a class whose own class has an odd `__hash__` */
        PyErr_Clear();
    return is_in == 1;
}

static int
is_number(PyObject *a)
{
    return PyFloat_CheckExact(a) || PyLong_CheckExact(a) || is_among(known.numbers, a);
}

/* An operand as NumPy takes it: a small array's elements, or a number; else NULL. */
static PyObject *
operand_of(PyObject *a)
{
    if (Py_TYPE(a) == known.array)
        return (PyObject *)shown_of((Handle *)a);
    return is_number(a) ? a : NULL;
}

/* An operand as NumPy is given it (a new reference): it looks for long at a class that it does not know. */
static PyObject *
plain_of(PyObject *x)
{
    if (Py_TYPE(x) != known.number)
        return Py_NewRef(x);
    PyObject *plain = PyArrayScalar_New(Double);
    if (plain != NULL)
        PyArrayScalar_ASSIGN(plain, Double, PyArrayScalar_VAL(x, Double));
    return plain;
}

/* Whether operands are small, and what is made of them is, however they broadcast (`few_pair`). */
static int
stay_small(PyObject *x, PyObject *y)
{
    PyArrayObject *a = PyArray_CheckExact(x) ? (PyArrayObject *)x : NULL;
    PyArrayObject *b = PyArray_CheckExact(y) ? (PyArrayObject *)y : NULL;
    Py_ssize_t of_a = a == NULL ? 0 : PyArray_NBYTES(a), of_b = b == NULL ? 0 : PyArray_NBYTES(b);
    if (of_a >= known.least || of_b >= known.least)
        return 0;
    if (a != NULL && b != NULL && of_a * PyArray_SIZE(b) > known.surely && !PyArray_SAMESHAPE(a, b))
        return 0;
    return of_a + of_b < known.least && of_a + of_b < small_bytes();
}

/* --- results --------------------------------------------------------------------------------------------- */

/* A further array over a cell; the cell's, the views' and the element's references are taken. */
static PyObject *
made(PyObject *cell, PyObject *views, PyObject *state, PyObject *shown)
{
    PyObject *array = known.array->tp_alloc(known.array, 0);
    if (array == NULL) {
        Py_DECREF(cell);
        Py_DECREF(views);
        Py_XDECREF(shown);
        return NULL;
    }
    Handle *h = (Handle *)array;
    h->cell = cell;
    h->views = views;
    h->state = Py_NewRef(state);
    h->shown = shown;
    return array;
}

/* NumPy's number as one of ours, which has the same fields; NULL without an error if it is no number. */
static PyObject *
numbered(PyObject *found)
{
    PyObject *ours = PyDict_GetItemWithError(known.ours, (PyObject *)Py_TYPE(found));
    if (ours == NULL || ours == (PyObject *)Py_TYPE(found))
        return ours == NULL ? NULL : Py_NewRef(found);
    PyTypeObject *type = (PyTypeObject *)ours;
    PyObject *number = type->tp_alloc(type, 0);
    if (number != NULL)
        memcpy((char *)number + sizeof(PyObject), (char *)found + sizeof(PyObject),
               Py_TYPE(found)->tp_basicsize - sizeof(PyObject));
    return number;
}

/* What `wrap` makes of a result, whose reference is taken. */
static PyObject *
wrapped(PyObject *found)
{
    if (PyArray_CheckExact(found)) {
        PyObject *cell = known.cell->tp_alloc(known.cell, 0);
        if (cell == NULL) {
            Py_DECREF(found);
            return NULL;
        }
        ((Cell *)cell)->value = found;
        return made(cell, Py_NewRef(no_views), Py_None, NULL);
    }
    PyObject *number = numbered(found);
    if (number == NULL && !PyErr_Occurred())
        number = call_one(known.wrap, found);
    Py_DECREF(found);
    return number;
}

/* What a function's result becomes, whose reference is taken: an operand that is given back stays the array that
 * it is, and what is a view of something is copied. */
static PyObject *
finished(PyObject *found, PyObject *given, PyObject **values, Py_ssize_t n)
{
    if (PyArray_CheckExact(found) && PyArray_BASE((PyArrayObject *)found) == NULL && Py_REFCNT(found) == 1
        && PyArray_ISWRITEABLE((PyArrayObject *)found))
        return wrapped(found);
    PyObject *made = numbered(found);
    if (made == NULL && !PyErr_Occurred()) {
        PyObject *listed = PyList_New(n);
        for (Py_ssize_t i = 0; listed != NULL && i < n; i++)
            PyList_SET_ITEM(listed, i, Py_NewRef(values[i]));
        made = listed == NULL ? NULL : call_three(known.finish, found, given, listed);
        Py_XDECREF(listed);
    }
    Py_DECREF(found);
    return made;
}

/* A view of an array that NumPy has made by a basic key; its reference is taken. NULL, also without an error,
 * where the methods have to make it. */
static PyObject *
seen(Handle *array, PyObject *key, PyObject *element)
{
    Cell *cell = (Cell *)array->cell;
    Py_ssize_t n = PyTuple_GET_SIZE(array->views);
    PyObject *views = NULL;
    if (n >= known.chain || (n == 0 && cell->frozen))
        goto none;
    if (n == 0 && (cell->owner == NULL || cell->owner == Py_None)) {
        PyObject *owner = PyWeakref_NewRef((PyObject *)array, NULL);
        if (owner == NULL)
            goto none;
        Py_XSETREF(cell->owner, owner);
    }
    views = PyTuple_New(n + 1);
    if (views == NULL)
        goto none;
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(views, i, Py_NewRef(PyTuple_GET_ITEM(array->views, i)));
    PyTuple_SET_ITEM(views, n, Py_NewRef(key));
    return made(Py_NewRef((PyObject *)cell), views, cell->value, element);
none:
    Py_DECREF(element);
    return NULL;
}

/* --- keys ------------------------------------------------------------------------------------------------ */

static int
is_simple(PyObject *part)
{
    return PyLong_CheckExact(part) || PySlice_Check(part) || part == Py_None || part == Py_Ellipsis;
}

static int
is_integer(PyObject *part)
{
    return is_among(known.integers, part);
}

/* A key as Python's integers and slices, and tuples of them (a new reference), or NULL without an error. */
static PyObject *
basic_key(PyObject *key)
{
    if (PyLong_CheckExact(key) || PySlice_Check(key))
        return Py_NewRef(key);
    if (!PyTuple_CheckExact(key)) {
        PyObject *index = is_integer(key) ? PyNumber_Long(key) : NULL;
        if (index == NULL)
            PyErr_Clear();
        return index;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(key), simple = 0;
    while (simple < n && is_simple(PyTuple_GET_ITEM(key, simple)))
        simple++;
    if (simple == n)
        return Py_NewRef(key);
    for (Py_ssize_t i = simple; i < n; i++)
        if (!is_simple(PyTuple_GET_ITEM(key, i)) && !is_integer(PyTuple_GET_ITEM(key, i)))
            return NULL;
    PyObject *plain = PyTuple_New(n);
    for (Py_ssize_t i = 0; plain != NULL && i < n; i++) {
        PyObject *part = PyTuple_GET_ITEM(key, i);
        PyObject *index = is_simple(part) ? Py_NewRef(part) : PyNumber_Long(part);
        if (index == NULL)
            Py_CLEAR(plain);
        else
            PyTuple_SET_ITEM(plain, i, index);
    }
    if (plain == NULL)
        PyErr_Clear();
    return plain;
}

/* Whether an array of truths or integers selects elements; one without axes is a number to NumPy. */
static int
is_index(PyArrayObject *index)
{
    return index != NULL && PyArray_NDIM(index) > 0 && (PyArray_ISBOOL(index) || PyArray_ISINTEGER(index))
           && PyArray_NBYTES(index) < known.least;
}

/* A key that holds small arrays of ours as NumPy takes it (a new reference), or NULL without an error. */
static PyObject *
fancy_key(PyObject *key)
{
    if (Py_TYPE(key) == known.array) {
        PyArrayObject *index = shown_of((Handle *)key);
        return is_index(index) ? Py_NewRef((PyObject *)index) : NULL;
    }
    if (!PyTuple_CheckExact(key))
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(key), size = 1, nbytes = 0;
    PyObject *plain = PyTuple_New(n);
    for (Py_ssize_t i = 0; plain != NULL && i < n; i++) {
        PyObject *part = PyTuple_GET_ITEM(key, i);
        PyArrayObject *index = Py_TYPE(part) == known.array ? shown_of((Handle *)part) : NULL;
        if (is_index(index)) {
            size = Py_MAX(size, 1) * PyArray_SIZE(index);
            nbytes += PyArray_NBYTES(index);
        }
        if (is_index(index) ? 8 * size > known.surely : !is_simple(part))
            Py_CLEAR(plain);
        else
            PyTuple_SET_ITEM(plain, i, Py_NewRef(index == NULL ? part : (PyObject *)index));
    }
    if (plain != NULL && nbytes >= small_bytes())
        Py_CLEAR(plain);
    PyErr_Clear();
    return plain;
}

/* The elements that such a key selects of a small array, or NULL, with an error unless the methods say it. */
static PyObject *
selected(PyArrayObject *shown, PyObject *key)
{
    Py_ssize_t nbytes = PyArray_NBYTES(shown), small = small_bytes();
    if (PyArray_NDIM(shown) == 0 || nbytes >= known.least || nbytes >= small)
        return NULL;
    PyObject *plain = fancy_key(key);
    if (plain == NULL)
        return NULL;
    PyObject *found = NULL;
    int whole = PyArray_CheckExact(plain) && !PyArray_ISBOOL((PyArrayObject *)plain);
    if (!whole || PyArray_SIZE((PyArrayObject *)plain) * nbytes < small * PyArray_DIM(shown, 0)) {
        Py_INCREF(shown);
        found = PyArray_Type.tp_as_mapping->mp_subscript((PyObject *)shown, plain);
        Py_DECREF(shown);
    }
    Py_DECREF(plain);
    if (found == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_IndexError))
        PyErr_Clear();
    return found == NULL ? NULL : finished(found, no_views, NULL, 0);
}

/* Where the element lies that a key of one integer an axis names, or NULL. */
static char *
place_of(PyArrayObject *array, PyObject *key)
{
    int ndim = PyArray_NDIM(array);
    char *place = PyArray_BYTES(array);
    PyObject **parts = &key; /* an array of indices is no integer, either */
    if (PyTuple_CheckExact(key)) {
        if (PyTuple_GET_SIZE(key) != ndim)
            return NULL;
        parts = ((PyTupleObject *)key)->ob_item;
    }
    else if (ndim != 1)
        return NULL;
    for (int axis = 0; axis < ndim; axis++) {
        if (!PyLong_CheckExact(parts[axis]))
            return NULL;
        Py_ssize_t i = PyLong_AsSsize_t(parts[axis]);
        if (i == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return NULL;
        }
        Py_ssize_t n = PyArray_DIM(array, axis);
        if (i < 0)
            i += n;
        if (i < 0 || i >= n)
            return NULL;
        place += i * PyArray_STRIDE(array, axis);
    }
    return ndim ? place : NULL;
}

static PyObject *
getitem(PyObject *self, PyObject *key)
{
    const Operator *op = &operators[op_getitem];
    PyArrayObject *shown = Py_TYPE(self) == known.array ? shown_of((Handle *)self) : NULL;
    PyObject *plain = shown == NULL ? NULL : basic_key(key);
    if (plain != NULL) {
        char *place = place_of(shown, plain);
        PyObject *found;
        if (place != NULL)
            found = PyArray_Scalar(place, PyArray_DESCR(shown), (PyObject *)shown);
        else {
            PyObject *value = Py_NewRef(((Cell *)((Handle *)self)->cell)->value);
            Py_INCREF(shown);
            found = PyArray_Type.tp_as_mapping->mp_subscript((PyObject *)shown, plain);
            if (found != NULL && PyArray_CheckExact(found)) /* a slice's `__index__` may do anything */
                found = ((Cell *)((Handle *)self)->cell)->value == value ? seen((Handle *)self, plain, found)
                                                                         : (Py_DECREF(found), NULL);
            Py_DECREF(shown);
            Py_DECREF(value);
        }
        Py_DECREF(plain);
        if (found != NULL)
            return found;
        if (PyErr_Occurred()) {
            if (!PyErr_ExceptionMatches(PyExc_IndexError) && !PyErr_ExceptionMatches(PyExc_TypeError)
                && !PyErr_ExceptionMatches(PyExc_ValueError))
                return NULL;
            PyErr_Clear();
        }
    }
    else if (shown != NULL) {
        PyObject *found = selected(shown, key);
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    PyObject *method = method_of(op, op->method);
    return method == NULL ? NULL : call_two(method, self, key);
}

/* Whether a write into the memory of an array succeeded; -1 with NumPy's error, 0 where it is none for us. */
static int
written(PyArrayObject *target, PyObject *key, PyObject *value)
{
    char *place = PyArray_CheckExact(value) || !PyArray_ISWRITEABLE(target) ? NULL : place_of(target, key);
    return place != NULL ? PyArray_Pack(PyArray_DESCR(target), place, value)
                         : PyArray_Type.tp_as_mapping->mp_ass_subscript((PyObject *)target, key, value);
}

static int
setitem(PyObject *self, PyObject *key, PyObject *value)
{
    if (value != NULL && Py_TYPE(self) == known.array) {
        PyObject *given = operand_of(value), *plain = given == NULL ? NULL : basic_key(key);
        if (given != NULL && plain == NULL)
            plain = fancy_key(key);
        PyArrayObject *target = plain == NULL ? NULL : open_of((Handle *)self);
        int done = -1;
        if (target != NULL) {
            given = plain_of(given);
            done = given == NULL ? -1 : written(target, plain, given);
            Py_XDECREF(given);
            Py_DECREF(target);
        }
        Py_XDECREF(plain);
        if (done == 0)
            return 0;
        if (PyErr_Occurred()) { /* read-only memory is copied; our errors name the shapes */
            if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_IndexError))
                return -1;
            PyErr_Clear();
        }
    }
    const Operator *op = &operators[value == NULL ? op_delitem : op_setitem];
    PyObject *method = method_of(op, op->method), *done = NULL;
    if (method != NULL)
        done = value == NULL ? call_two(method, self, key) : call_three(method, self, key, value);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static Py_ssize_t
length(PyObject *self)
{
    PyArrayObject *shown = Py_TYPE(self) == known.array ? shown_of((Handle *)self) : NULL;
    if (shown != NULL && PyArray_NDIM(shown) > 0)
        return PyArray_DIM(shown, 0);
    const Operator *op = &operators[op_len];
    PyObject *method = method_of(op, op->method);
    PyObject *found = method == NULL ? NULL : call_one(method, self);
    Py_ssize_t n = found == NULL ? -1 : PyLong_AsSsize_t(found);
    Py_XDECREF(found);
    return n;
}

/* --- operators ------------------------------------------------------------------------------------------- */

static PyTypeObject Quick;

/* What the methods of the operands say, in Python's order. They count references to operands, to find
 * temporaries: there is none of this function's. */
static PyObject *
by_methods(const Operator *op, PyTypeObject *ours, PyObject *a, PyObject *b)
{
    if (PyObject_TypeCheck(a, ours)) {
        PyObject *found = method_of(op, op->method) == NULL ? NULL : call_two(op->method, a, b);
        if (found != Py_NotImplemented || Py_TYPE(a) == Py_TYPE(b))
            return found;
        Py_DECREF(found);
    }
    if (op->reflected_name != NULL && PyObject_TypeCheck(b, ours) && Py_TYPE(a) != Py_TYPE(b))
        return method_of(op, op->reflected) == NULL ? NULL : call_two(op->reflected, b, a);
    Py_RETURN_NOTIMPLEMENTED;
}

/* The result of NumPy's function for two operands, or NULL, with an error unless the methods are to say it. */
static PyObject *
computed(PyObject *numpys, PyObject *x, PyObject *y)
{
    x = plain_of(x);
    y = plain_of(y);
    PyObject *found = x == NULL || y == NULL ? NULL : call_two(numpys, x, y);
    Py_XDECREF(x);
    Py_XDECREF(y);
    if (found != NULL)
        return wrapped(found);
    if (PyErr_ExceptionMatches(PyExc_ValueError))
        PyErr_Clear();
    return NULL;
}

static PyObject *
of_two(const Operator *op, PyObject *a, PyObject *b)
{
    PyObject *x = op->numpys == NULL ? NULL : operand_of(a), *y = x == NULL ? NULL : operand_of(b);
    if (y != NULL && stay_small(x, y)) {
        PyObject *found = computed(op->numpys, x, y);
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    return by_methods(op, &Quick, a, b);
}

/* Whether a product of vectors and matrices is small, and their shapes fit (`products.quick`). */
static int
is_quick_product(PyObject *x, PyObject *y)
{
    if (!PyArray_CheckExact(x) || !PyArray_CheckExact(y))
        return 0;
    PyArrayObject *a = (PyArrayObject *)x, *b = (PyArrayObject *)y;
    int na = PyArray_NDIM(a), nb = PyArray_NDIM(b);
    if (na < 1 || na > 2 || nb < 1 || nb > 2 || PyArray_DIM(a, na - 1) != PyArray_DIM(b, 0))
        return 0;
    Py_ssize_t size = PyArray_SIZE(a), columns = nb == 2 ? PyArray_DIM(b, 1) : 1;
    if (size > known.flops || columns > known.flops)
        return 0;
    return size * columns <= known.flops && 8 * size * columns < small_bytes();
}

static PyObject *
matrix_product(PyObject *a, PyObject *b)
{
    const Operator *op = &operators[op_matmul];
    PyObject *x = op->numpys == NULL ? NULL : operand_of(a), *y = x == NULL ? NULL : operand_of(b);
    if (y != NULL && is_quick_product(x, y)) {
        PyObject *found = computed(op->numpys, x, y);
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    return by_methods(op, &Quick, a, b);
}

static PyObject *
of_one(const Operator *op, PyObject *a)
{
    PyArrayObject *x = op->numpys != NULL && Py_TYPE(a) == known.array ? shown_of((Handle *)a) : NULL;
    if (x != NULL && PyArray_NBYTES(x) < known.least && PyArray_NBYTES(x) < small_bytes()) {
        Py_INCREF(x);
        PyObject *found = call_one(op->numpys, (PyObject *)x);
        Py_DECREF(x);
        return found == NULL ? NULL : wrapped(found);
    }
    return method_of(op, op->method) == NULL ? NULL : call_one(op->method, a);
}

static PyObject *
in_place(const Operator *op, PyObject *a, PyObject *b)
{
    PyObject *y = op->numpys != NULL && Py_TYPE(a) == known.array ? operand_of(b) : NULL;
    PyArrayObject *target = y == NULL ? NULL : open_of((Handle *)a);
    PyObject *found = NULL;
    if (target != NULL) {
        if (PyArray_NBYTES(target) <= small_bytes()) {
            y = plain_of(y);
            found = y == NULL ? NULL : call_three(op->numpys, (PyObject *)target, y, (PyObject *)target);
            Py_XDECREF(y);
        }
        Py_DECREF(target);
    }
    if (found != NULL) {
        Py_DECREF(found);
        return Py_NewRef(a);
    }
    if (PyErr_Occurred()) { /* read-only memory is copied; our errors name the shapes */
        if (!PyErr_ExceptionMatches(PyExc_ValueError))
            return NULL;
        PyErr_Clear();
    }
    return method_of(op, op->method) == NULL ? NULL : call_two(op->method, a, b);
}

static PyObject *
power(PyObject *a, PyObject *b, PyObject *modulus)
{
    const Operator *op = &operators[op_power];
    if (modulus == Py_None) {
        PyArrayObject *x = NULL;
        if (Py_TYPE(a) == known.array && (PyLong_CheckExact(b) || PyFloat_CheckExact(b)))
            x = shown_of((Handle *)a);
        if (x == NULL || !stay_small((PyObject *)x, b))
            return by_methods(op, &Quick, a, b);
        Py_INCREF(x); /* NumPy's operator knows squares and roots, its function does not */
        PyObject *found = PyNumber_Power((PyObject *)x, b, modulus);
        Py_DECREF(x);
        return found == NULL ? NULL : wrapped(found);
    }
    if (!PyObject_TypeCheck(a, &Quick))
        Py_RETURN_NOTIMPLEMENTED;
    return method_of(op, op->method) == NULL ? NULL : call_three(op->method, a, b, modulus);
}

static PyObject *
compare(PyObject *a, PyObject *b, int which)
{
    static const int of[] = {[Py_LT] = op_LT, [Py_LE] = op_LE, [Py_EQ] = op_EQ,
                             [Py_NE] = op_NE, [Py_GT] = op_GT, [Py_GE] = op_GE};
    return of_two(&operators[of[which]], a, b);
}

#define SLOT_OF_TWO(name, ...)                                                                                \
    static PyObject *name##_slot(PyObject *a, PyObject *b) { return of_two(&operators[op_##name], a, b); }
#define SLOT_IN_PLACE(name, ...)                                                                              \
    static PyObject *name##_slot(PyObject *a, PyObject *b) { return in_place(&operators[op_##name], a, b); }
#define SLOT_OF_ONE(name, ...)                                                                                \
    static PyObject *name##_slot(PyObject *a) { return of_one(&operators[op_##name], a); }
BINARY(SLOT_OF_TWO)
INPLACE(SLOT_IN_PLACE)
UNARY(SLOT_OF_ONE)

/* `__array_ufunc__`: NumPy's functions of a number or an array and an array, called for no more. */
static PyObject *
array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    const Operator *op = &operators[op_array_ufunc];
    int plain = n == 4 && Py_TYPE(self) == known.array && (names == NULL || PyTuple_GET_SIZE(names) == 0)
                && Py_IS_TYPE(args[0], &PyUFunc_Type)
                && (args[1] == call_name || (PyUnicode_Check(args[1]) && PyUnicode_Compare(args[1], call_name) == 0));
    PyObject *x = plain ? operand_of(args[2]) : NULL, *y = x == NULL ? NULL : operand_of(args[3]);
    if (y != NULL && ((PyUFuncObject *)args[0])->nin == 2 && ((PyUFuncObject *)args[0])->nout == 1
        && stay_small(x, y) && PySet_Contains(known.ufuncs, args[0]) == 1) {
        PyObject *found = computed(args[0], x, y);
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    if (method_of(op, op->method) == NULL)
        return NULL;
    Py_ssize_t given = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    PyObject **all = PyMem_New(PyObject *, given + 1);
    if (all == NULL)
        return PyErr_NoMemory();
    all[0] = self;
    for (Py_ssize_t i = 0; i < given; i++)
        all[i + 1] = args[i];
    PyObject *found = PyObject_Vectorcall(op->method, all, n + 1, names);
    PyMem_Free(all);
    return found;
}

/* `few(numpys, operands)`: what a function of NumPy's gives for operands of which one at least is a small array,
 * and the others are, or are numbers; None where Python is to see to it (`few_values`). */
static PyObject *
few(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    enum { MOST = 4 };
    PyObject *plain[MOST + 1] = {NULL};
    if (count != 2 || !PyTuple_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "few takes a function and a tuple");
        return NULL;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(args[1]), nbytes = 0, size = 1, arrays = 0;
    int alike = 1;
    if (known.array == NULL || n < 1 || n > MOST)
        Py_RETURN_NONE;
    PyArrayObject *first = NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = plain[i + 1] = operand_of(PyTuple_GET_ITEM(args[1], i));
        if (x == NULL)
            Py_RETURN_NONE;
        if (!PyArray_CheckExact(x))
            continue;
        PyArrayObject *a = (PyArrayObject *)x;
        if (PyArray_NBYTES(a) >= known.least)
            Py_RETURN_NONE;
        if (first == NULL)
            first = a;
        arrays++;
        alike = alike && PyArray_SAMESHAPE(first, a);
        nbytes += PyArray_NBYTES(a);
        size = Py_MIN(size * PyArray_SIZE(a), known.surely);
    }
    if (!arrays || nbytes >= known.least || nbytes >= small_bytes() || (!alike && 8 * size > known.surely))
        Py_RETURN_NONE;
    int failed = 0;
    for (Py_ssize_t i = 1; i <= n; i++)
        failed |= (plain[i] = plain_of(plain[i])) == NULL;
    PyObject *found = failed ? NULL : PyObject_Vectorcall(args[0], plain + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (found == NULL) {
        if (PyErr_ExceptionMatches(PyExc_ValueError)) { /* ours name the shapes */
            PyErr_Clear();
            found = Py_NewRef(Py_None);
        }
    }
    else
        found = finished(found, args[1], plain + 1, n);
    for (Py_ssize_t i = 1; i <= n; i++)
        Py_XDECREF(plain[i]);
    return found;
}

/* --- attributes and methods ------------------------------------------------------------------------------ */

/* What a property of the methods says. */
static PyObject *
property_of(PyObject *property, PyObject *self)
{
    if (property == NULL) {
        PyErr_SetString(PyExc_SystemError, "a property is asked for before its class is there");
        return NULL;
    }
    return Py_TYPE(property)->tp_descr_get(property, self, (PyObject *)Py_TYPE(self));
}

static PyObject *
get_shape(PyObject *self, void *closure)
{
    PyArrayObject *shown = Py_TYPE(self) == known.array ? shown_of((Handle *)self) : NULL;
    return shown == NULL ? property_of(known.shape, self)
                         : PyArray_IntTupleFromIntp(PyArray_NDIM(shown), PyArray_DIMS(shown));
}

/* Set what a property sets; `closure` is where it is kept. */
static int
set_property(PyObject *self, PyObject *value, void *closure)
{
    PyObject *property = *(PyObject **)closure;
    if (property == NULL) {
        PyErr_SetString(PyExc_SystemError, "a property is set before its class is there");
        return -1;
    }
    return Py_TYPE(property)->tp_descr_set(property, self, value);
}

static PyObject *
get_transposed(PyObject *self, void *closure)
{
    PyArrayObject *shown = Py_TYPE(self) == known.array ? shown_of((Handle *)self) : NULL;
    if (shown != NULL && PyArray_NDIM(shown) < PyTuple_GET_SIZE(known.reversed)) {
        PyObject *turned = PyArray_Transpose(shown, NULL);
        if (turned == NULL)
            return NULL;
        PyObject *found = seen((Handle *)self, PyTuple_GET_ITEM(known.reversed, PyArray_NDIM(shown)), turned);
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    return property_of(known.transposed, self);
}

static PyObject *
copy(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyArrayObject *shown = Py_TYPE(self) == known.array && n == 0 && names == NULL ? shown_of((Handle *)self) : NULL;
    if (shown != NULL && PyArray_NBYTES(shown) < known.least && PyArray_NBYTES(shown) < small_bytes()) {
        PyObject *found = PyArray_NewCopy(shown, NPY_CORDER);
        return found == NULL ? NULL : wrapped(found);
    }
    PyObject *method = known.copy == NULL ? NULL : Py_TYPE(known.copy)->tp_descr_get(known.copy, self, (PyObject *)Py_TYPE(self));
    if (method == NULL)
        return NULL;
    PyObject *found = PyObject_Vectorcall(method, args, n, names);
    Py_DECREF(method);
    return found;
}

/* --- our numbers of double precision --------------------------------------------------------------------- */

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

static PyTypeObject QuickFloat;
enum { float_add, float_subtract, float_multiply, float_divide, float_times, float_neg, float_pos, float_abs, float_count };
static Operator float_operators[float_count] = {
    [float_add] = {"__add__", "__radd__"},
    [float_subtract] = {"__sub__", "__rsub__"},
    [float_multiply] = {"__mul__", "__rmul__"},
    [float_divide] = {"__truediv__", "__rtruediv__"},
    [float_times] = {"__imul__"},
    [float_neg] = {"__neg__"},
    [float_pos] = {"__pos__"},
    [float_abs] = {"__abs__"},
};

/* A result is a number like any other, or exactly zero: nothing that NumPy would say about it. Else NumPy does it. */
#define FLOAT_OF_TWO(name, operation, is_exact_zero)                                                          \
    static PyObject *name##_slot(PyObject *a, PyObject *b)                                                    \
    {                                                                                                         \
        double x, y;                                                                                          \
        if (as_double(a, &x) && as_double(b, &y)) {                                                           \
            double z = operation;                                                                             \
            if (isnormal(z) || (z == 0 && (is_exact_zero)))                                                   \
                return double_number(z);                                                                      \
        }                                                                                                     \
        return by_methods(&float_operators[name], &QuickFloat, a, b);                                         \
    }
FLOAT_OF_TWO(float_add, x + y, 1)
FLOAT_OF_TWO(float_subtract, x - y, 1)
FLOAT_OF_TWO(float_multiply, x * y, x == 0 || y == 0)
FLOAT_OF_TWO(float_divide, y == 0 ? NAN : x / y, x == 0)

static PyObject *
float_times_slot(PyObject *a, PyObject *b)
{
    double x, y;
    return as_double(a, &x) && as_double(b, &y) ? float_multiply_slot(a, b)
                                                : by_methods(&float_operators[float_times], &QuickFloat, a, b);
}

#define FLOAT_OF_ONE(name, operation)                                                                         \
    static PyObject *name##_slot(PyObject *a)                                                                 \
    {                                                                                                         \
        const Operator *op = &float_operators[name];                                                          \
        double x;                                                                                             \
        if (Py_TYPE(a) == known.number && as_double(a, &x))                                                   \
            return double_number(operation);                                                                  \
        return method_of(op, op->method) == NULL ? NULL : call_one(op->method, a);                            \
    }
FLOAT_OF_ONE(float_neg, -x)
FLOAT_OF_ONE(float_pos, x)
FLOAT_OF_ONE(float_abs, fabs(x))

static PyNumberMethods float_as_number = {
    .nb_add = float_add_slot,
    .nb_subtract = float_subtract_slot,
    .nb_multiply = float_multiply_slot,
    .nb_true_divide = float_divide_slot,
    .nb_inplace_multiply = float_times_slot,
    .nb_negative = float_neg_slot,
    .nb_positive = float_pos_slot,
    .nb_absolute = float_abs_slot,
};

static PyTypeObject QuickFloat = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spartan_ng.api.core._quick.QuickFloat", /* derived from NumPy's as the module is made */
    .tp_basicsize = sizeof(PyDoubleScalarObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "The plain case of what our numbers of double precision do.",
    .tp_as_number = &float_as_number,
};

/* --- the class ------------------------------------------------------------------------------------------- */

static PyNumberMethods as_number = {
#define SLOT(name, ...) .nb_##name = name##_slot,
    BINARY(SLOT) INPLACE(SLOT) UNARY(SLOT)
#undef SLOT
    .nb_power = power,
    .nb_matrix_multiply = matrix_product,
};

static PyMappingMethods as_mapping = {
    .mp_length = length,
    .mp_subscript = getitem,
    .mp_ass_subscript = setitem,
};

static PyMethodDef quick_methods[] = {
    {"__array_ufunc__", (PyCFunction)(void (*)(void))array_ufunc, METH_FASTCALL | METH_KEYWORDS,
     "__array_ufunc__($self, function, method, /, *inputs, **keywords)\n--\n\n"
     "NumPy's ufuncs of our arrays are ours (NEP 13)."},
    {"copy", (PyCFunction)(void (*)(void))copy, METH_FASTCALL | METH_KEYWORDS,
     "copy($self, /, order='C')\n--\n\nThe same elements in an array of their own."},
    {NULL},
};

static PyGetSetDef quick_attributes[] = {
    {"shape", get_shape, set_property, "Lengths of the axes; a filtered array counts its elements now.", &known.shape},
    {"T", get_transposed, set_property, "The axes reversed.", &known.transposed},
    {NULL},
};

static PyTypeObject Quick = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spartan_ng.api.core._quick.Quick",
    .tp_basicsize = sizeof(Handle),
    .tp_base = &HandleFields,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "The plain case of what arrays do, in front of the methods that know all others.",
    .tp_as_number = &as_number,
    .tp_as_mapping = &as_mapping,
    .tp_richcompare = compare,
    .tp_methods = quick_methods,
    .tp_getset = quick_attributes,
};

/* --- the module ------------------------------------------------------------------------------------------ */

/* Keep an attribute of a class. */
static int
kept(PyObject **place, PyObject *of, const char *name)
{
    PyObject *found = PyObject_GetAttrString(of, name);
    if (found == NULL)
        return -1;
    Py_XSETREF(*place, found);
    return 0;
}

/* Learn the methods of operators, and which function of NumPy's is the plain case of each. */
static int
learned(Operator *op, int count, PyObject *methods)
{
    for (; count > 0; count--, op++) {
        if (kept(&op->method, methods, op->name) < 0)
            return -1;
        if (op->reflected_name != NULL && kept(&op->reflected, methods, op->reflected_name) < 0)
            return -1;
        if (kept(&op->numpys, op->method, "numpys") < 0)
            PyErr_Clear();
    }
    return 0;
}

/* `connect_numbers(number, methods)`: say what class our numbers of double precision have. */
static PyObject *
connect_numbers(PyObject *module, PyObject *args)
{
    PyObject *number, *methods;
    if (!PyArg_ParseTuple(args, "O!O:connect_numbers", &PyType_Type, &number, &methods))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)number, &QuickFloat)
        || !PyType_IsSubtype((PyTypeObject *)number, &PyDoubleArrType_Type)) {
        PyErr_SetString(PyExc_TypeError, "connect_numbers: a class of other numbers");
        return NULL;
    }
    if (learned(float_operators, float_count, methods) < 0)
        return NULL;
    Py_XSETREF(known.number, (PyTypeObject *)Py_NewRef(number));
    Py_RETURN_NONE;
}

/* `connect(...)`: say which classes, methods and tables these are. */
static PyObject *
connect(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"array",  "methods", "cell",   "wrap",  "numbers", "integers", "ours", "ufuncs",
                            "finish", "reversed", "config", "surely", "least",   "flops",    "chain", NULL};
    PyObject *array, *methods, *cell, *wrap, *numbers, *integers, *ours, *ufuncs, *finish, *reversed, *config;
    Py_ssize_t surely, least, flops, chain;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "$O!OO!OOOOOOO!Onnnn:connect", names, &PyType_Type, &array,
                                     &methods, &PyType_Type, &cell, &wrap, &numbers, &integers, &ours, &ufuncs,
                                     &finish, &PyTuple_Type, &reversed, &config, &surely, &least, &flops, &chain))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)array, &Quick) || !PyType_IsSubtype((PyTypeObject *)cell, &CellFields)
        || !PyAnySet_Check(numbers) || !PyAnySet_Check(integers) || !PyAnySet_Check(ufuncs)
        || !PyDict_Check(ours)) {
        PyErr_SetString(PyExc_TypeError, "connect: classes or tables of other kinds");
        return NULL;
    }
    PyObject *option = PyObject_GetAttrString((PyObject *)Py_TYPE(config), "small_bytes");
    if (option == NULL)
        return NULL;
    if (!Py_IS_TYPE(option, &PyMemberDescr_Type)) {
        Py_DECREF(option);
        PyErr_SetString(PyExc_TypeError, "connect: small_bytes is no slot");
        return NULL;
    }
    known.small_bytes = ((PyMemberDescrObject *)option)->d_member->offset;
    Py_DECREF(option);
    if (learned(operators, op_count, methods) < 0 || kept(&known.open, methods, "_open") < 0
        || kept(&known.shape, methods, "shape") < 0 || kept(&known.transposed, methods, "T") < 0
        || kept(&known.copy, methods, "copy") < 0)
        return NULL;
    Py_XSETREF(known.array, (PyTypeObject *)Py_NewRef(array));
    Py_XSETREF(known.cell, (PyTypeObject *)Py_NewRef(cell));
    Py_XSETREF(known.wrap, Py_NewRef(wrap));
    Py_XSETREF(known.numbers, Py_NewRef(numbers));
    Py_XSETREF(known.integers, Py_NewRef(integers));
    Py_XSETREF(known.ours, Py_NewRef(ours));
    Py_XSETREF(known.ufuncs, Py_NewRef(ufuncs));
    Py_XSETREF(known.finish, Py_NewRef(finish));
    Py_XSETREF(known.reversed, Py_NewRef(reversed));
    Py_XSETREF(known.config, Py_NewRef(config));
    known.surely = surely;
    known.least = least;
    known.flops = flops;
    known.chain = chain;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"connect", (PyCFunction)(void (*)(void))connect, METH_VARARGS | METH_KEYWORDS,
     "Say which classes, methods and tables the plain case is that of."},
    {"connect_numbers", connect_numbers, METH_VARARGS, "Say which class our numbers of double precision have."},
    {"few", (PyCFunction)(void (*)(void))few, METH_FASTCALL,
     "What a function of NumPy's gives for a few small arrays and numbers; None for others."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "spartan_ng.api.core._quick",
    .m_doc = "The plain case of what arrays do.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC
PyInit__quick(void)
{
    import_array();
    import_umath();
    no_views = PyTuple_New(0);
    call_name = PyUnicode_InternFromString("__call__");
    if (no_views == NULL || call_name == NULL)
        return NULL;
    CellFields.tp_new = HandleFields.tp_new = Quick.tp_new = PyBaseObject_Type.tp_new;
    QuickFloat.tp_base = &PyDoubleArrType_Type;
    if (PyType_Ready(&CellFields) < 0 || PyType_Ready(&HandleFields) < 0 || PyType_Ready(&Quick) < 0
        || PyType_Ready(&QuickFloat) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    if (PyModule_AddObjectRef(module, "CellFields", (PyObject *)&CellFields) < 0
        || PyModule_AddObjectRef(module, "HandleFields", (PyObject *)&HandleFields) < 0
        || PyModule_AddObjectRef(module, "Quick", (PyObject *)&Quick) < 0
        || PyModule_AddObjectRef(module, "QuickFloat", (PyObject *)&QuickFloat) < 0
        || PyModule_AddIntConstant(module, "SOURCE", SOURCE) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
