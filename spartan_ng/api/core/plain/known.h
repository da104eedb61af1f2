/* What the methods know, and is asked here: classes, tables, bounds, NumPy's function of each operator. */

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
    op_matmul, op_power, op_divmod, op_index, op_getitem, op_setitem, op_delitem, op_len, op_iter, op_array_ufunc, op_array_function, op_array, op_count
};

static Operator operators[op_count] = {
#define OF_TWO(name, method, reflected) [op_##name] = {method, reflected},
#define OF_ONE(name, method) [op_##name] = {method},
    BINARY(OF_TWO) INPLACE(OF_ONE) UNARY(OF_ONE) COMPARISON(OF_ONE)
#undef OF_TWO
#undef OF_ONE
    [op_matmul] = {"__matmul__", "__rmatmul__"},
    [op_power] = {"__pow__", "__rpow__"},
    [op_divmod] = {"__divmod__", "__rdivmod__"},
    [op_index] = {"__index__"},
    [op_getitem] = {"__getitem__"},
    [op_setitem] = {"__setitem__"},
    [op_delitem] = {"__delitem__"},
    [op_len] = {"__len__"},
    [op_iter] = {"__iter__"},
    [op_array_ufunc] = {"__array_ufunc__"},
    [op_array_function] = {"__array_function__"},
    [op_array] = {"__array__"},
};

/* Operators by what Python numbers comparisons with. */
static const int comparisons[] = {[Py_LT] = op_LT, [Py_LE] = op_LE, [Py_EQ] = op_EQ,
                                  [Py_NE] = op_NE, [Py_GT] = op_GT, [Py_GE] = op_GE};

static struct {
    PyTypeObject *array, *cell;    /* the classes of plain arrays and their cells, */
    PyTypeObject *pending;         /* and of those that have yet to be computed */
    PyObject *ahead;               /* what becomes of an operator's or a function's result */
    PyObject *raises;              /* whether an error may be seen before a result is written */
    PyObject *package;             /* whose functions programs call */
    PyObject *where, *square, *reciprocal, *sqrt; /* functions of NumPy's */
    PyObject *wrap;                /* makes of NumPy's results what we give */
    PyObject *numbers, *integers;  /* classes of numbers that NumPy takes as they are, and of its integers */
    PyObject *ours;                /* what becomes of NumPy's numbers */
    PyObject *ufuncs;              /* NumPy's functions of elements that are ours, */
    PyObject *lacking;             /* and those that are not; */
    PyObject *functions;           /* ours for each of its others */
    PyObject *dot;                 /* NumPy's product of lines */
    PyObject *finish;              /* what a function's other results become */
    PyObject *reversed;            /* by numbers of axes, the view with its axes reversed */
    PyTypeObject *number;          /* the class of our numbers of double precision, */
    PyTypeObject *complexes, *integer; /* of complex ones, and of NumPy's default integers */
    PyObject *transposed, *shape, *ndim, *size, *itemsize, *nbytes, *dtype; /* properties */
    PyObject *copy;                /* a method */
    PyObject *exported;            /* the method that gives memory to who has it for a time */
    PyObject *addressed;           /* and to who knows its address */
    PyObject *field;               /* what a field is as a view */
    PyObject *learn;               /* what NumPy's views are to us */
    PyObject *unfitting;           /* our error for shapes that do not fit */
    PyObject *config;              /* where the options stand, */
    Py_ssize_t small_bytes;        /* and where in it the threshold, */
    Py_ssize_t threads;            /* and how many threads there are to be, */
    Py_ssize_t kernels;            /* and what is compiled */
    int cores;                     /* processors that this process may use */
    Py_ssize_t surely, least;      /* bytes of broadcast results, and from which the methods ask more */
    int temporaries;               /* whether references tell them */
    Py_ssize_t flops, most_flops;  /* of products that are done without further questions, and of small operands */
    Py_ssize_t looped;             /* products of elements that NumPy's loops add up */
    Py_ssize_t chain;              /* views of views that are joined */
} known;

static PyObject *no_views, *call_name, *array_ufunc_name;
static PyObject *out_names; /* of a call whose last argument is `out`, as maximum and minimum want it named */

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

/* Threads that the user wants, now; those of all processors where nothing is said. */
static int
helping_threads(void)
{
    PyObject *n = *(PyObject **)((char *)known.config + known.threads);
    long threads = n == NULL || !PyLong_CheckExact(n) ? known.cores : PyLong_AsLong(n);
    if (threads == -1 && PyErr_Occurred())
        PyErr_Clear();
    return (int)Py_MIN(threads, known.cores);
}

/* Whether the user wants anything to be compiled, now. */
static int
are_kernels_wanted(void)
{
    PyObject *what = *(PyObject **)((char *)known.config + known.kernels);
    return what != NULL && PyUnicode_Check(what)
           && (PyUnicode_CompareWithASCIIString(what, "auto") == 0 || PyUnicode_CompareWithASCIIString(what, "compile") == 0);
}

static PyObject *
method_of(const Operator *op, PyObject *method)
{
    if (method == NULL)
        PyErr_Format(PyExc_SystemError, "%s is asked for before its class is there", op->name);
    return method;
}

/* NumPy's error for shapes that do not fit, in its words, as ours, where that has been raised; else 0. */
static int
is_of_shapes(void)
{
    if (!PyErr_ExceptionMatches(PyExc_ValueError))
        return 0;
    PyObject *type, *error, *trace, *words;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    words = error == NULL ? NULL : PyObject_Str(error);
    const char *text = words == NULL ? NULL : PyUnicode_AsUTF8(words);
    int is_it = text != NULL && strstr(text, "broadcast") != NULL;
    PyErr_Clear();
    if (is_it)
        PyErr_SetObject(known.unfitting, words);
    else
        PyErr_Restore(Py_XNewRef(type), Py_XNewRef(error), Py_XNewRef(trace));
    Py_XDECREF(words);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return is_it;
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
