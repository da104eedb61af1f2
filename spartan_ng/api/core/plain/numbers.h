/* Our numbers, which are NumPy's with methods of ours: Python's operators of them.
 *
 * NumPy knows its own classes at a glance, and looks for long at others. So its operators are given numbers of its own
 * classes. Where one integer or one of double precision is what C says it is, C says it. */

#define OF_TWO_NUMBERS(X)                                                                                     \
    X(add, "__add__", "__radd__", PyNumber_Add)                                                               \
    X(subtract, "__sub__", "__rsub__", PyNumber_Subtract)                                                     \
    X(multiply, "__mul__", "__rmul__", PyNumber_Multiply)                                                     \
    X(true_divide, "__truediv__", "__rtruediv__", PyNumber_TrueDivide)                                        \
    X(floor_divide, "__floordiv__", "__rfloordiv__", PyNumber_FloorDivide)                                    \
    X(remainder, "__mod__", "__rmod__", PyNumber_Remainder)                                                   \
    X(and, "__and__", "__rand__", PyNumber_And)                                                               \
    X(or, "__or__", "__ror__", PyNumber_Or)                                                                   \
    X(xor, "__xor__", "__rxor__", PyNumber_Xor)                                                               \
    X(lshift, "__lshift__", "__rlshift__", PyNumber_Lshift)                                                   \
    X(rshift, "__rshift__", "__rrshift__", PyNumber_Rshift)
#define OF_ONE_NUMBER(X)                                                                                      \
    X(negative, "__neg__", PyNumber_Negative)                                                                 \
    X(positive, "__pos__", PyNumber_Positive)                                                                 \
    X(absolute, "__abs__", PyNumber_Absolute)                                                                 \
    X(invert, "__invert__", PyNumber_Invert)

enum {
#define NUMBERED(name, ...) number_##name,
    OF_TWO_NUMBERS(NUMBERED) OF_ONE_NUMBER(NUMBERED)
#undef NUMBERED
    number_power, number_times, number_op_count
};

static const Operator number_names[number_op_count] = {
#define OF_TWO(name, method, reflected, ...) [number_##name] = {method, reflected},
#define OF_ONE(name, method, ...) [number_##name] = {method},
    OF_TWO_NUMBERS(OF_TWO) OF_ONE_NUMBER(OF_ONE)
#undef OF_TWO
#undef OF_ONE
    [number_power] = {"__pow__", "__rpow__"},
    [number_times] = {"__imul__"},
};

/* The methods of each class. */
static Operator number_operators[MOST_KINDS][number_op_count];

/* The methods of a number's class, also of one that is derived from it; NULL where it is none of ours. */
static Operator *
operators_of(PyObject *a)
{
    for (PyTypeObject *type = Py_TYPE(a); type != NULL; type = type->tp_base) {
        NumberKind *kind = kind_of(type);
        if (kind != NULL)
            return number_operators[kind - number_kinds];
    }
    return NULL;
}

/* What the methods say, in Python's order. */
static NOT_INLINE PyObject *
by_number_methods(int which, PyObject *a, PyObject *b)
{
    Operator *of_a = operators_of(a), *of_b = Py_TYPE(a) == Py_TYPE(b) ? NULL : operators_of(b);
    if (of_a != NULL) {
        PyObject *found = call_two(of_a[which].method, a, b);
        if (found != Py_NotImplemented || of_b == NULL)
            return found;
        Py_DECREF(found);
    }
    if (of_b != NULL && of_b[which].reflected != NULL)
        return call_two(of_b[which].reflected, b, a);
    Py_RETURN_NOTIMPLEMENTED;
}

/* What NumPy's operator gave, whose reference is taken: its numbers and arrays as ours. */
static PyObject *
as_ours(PyObject *found)
{
    if (found != NULL && PyArray_CheckExact(found))
        return wrapped(found);
    PyObject *number = found == NULL ? NULL : numbered(found);
    if (number == NULL)
        return PyErr_Occurred() ? (Py_XDECREF(found), NULL) : found;
    Py_DECREF(found);
    return number;
}

/* --- what C says ----------------------------------------------------------------------------------------- */

/* An integer of NumPy's default type, ours or NumPy's, or Python's; as C's. */
static int
as_long(PyObject *a, long *value)
{
    if ((known.integer != NULL && Py_TYPE(a) == known.integer) || Py_TYPE(a) == &PyLongArrType_Type) {
        *value = PyArrayScalar_VAL(a, Long);
        return 1;
    }
    int overflow = 0;
    if (PyLong_CheckExact(a))
        *value = PyLong_AsLongAndOverflow(a, &overflow);
    return PyLong_CheckExact(a) && !overflow;
}

static PyObject *
long_number(long value)
{
    PyObject *number = known.integer->tp_alloc(known.integer, 0);
    if (number != NULL)
        PyArrayScalar_ASSIGN(number, Long, value);
    return number;
}

/* A power, unless it is none of C's integers. */
static int
long_power(long x, long n, long *power)
{
    long found = 1;
    if (n < 0 || n > 63)
        return 0;
    for (; n > 0; n--)
        if (__builtin_mul_overflow(found, x, &found))
            return 0;
    *power = found;
    return 1;
}

/* What an operator gives for two integers; NULL without an error where that is NumPy's to say. */
static PyObject *
of_longs(int which, long x, long y)
{
    long z;
    switch (which) {
    case number_add:
        return __builtin_add_overflow(x, y, &z) ? NULL : long_number(z);
    case number_subtract:
        return __builtin_sub_overflow(x, y, &z) ? NULL : long_number(z);
    case number_multiply:
        return __builtin_mul_overflow(x, y, &z) ? NULL : long_number(z);
    case number_true_divide:
        return y == 0 ? NULL : double_number((double)x / (double)y);
    case number_floor_divide:
        return y == 0 || y == -1 ? NULL : long_number(x / y - (x % y != 0 && (x < 0) != (y < 0)));
    case number_remainder:
        return y == 0 || y == -1 ? NULL : long_number(x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0));
    case number_power:
        return long_power(x, y, &z) ? long_number(z) : NULL;
    case number_and:
        return long_number(x & y);
    case number_or:
        return long_number(x | y);
    case number_xor:
        return long_number(x ^ y);
    default:
        return NULL;
    }
}

/* A real number as one of double precision, if it is one, or takes it without loss. */
static int
as_real(PyObject *a, double *value)
{
    long n;
    if (!as_long(a, &n))
        return as_double(a, value);
    *value = (double)n;
    return n <= 1L << 53 && n >= -(1L << 53);
}

/* A quotient that is rounded down, and what is left, as NumPy finds them (`npy_divmod`). */
static double
quotient_of(double x, double y, double *left)
{
    double mod = fmod(x, y), div = (x - mod) / y;
    if (mod == 0)
        mod = copysign(0, y);
    else if ((y < 0) != (mod < 0)) {
        mod += y;
        div -= 1;
    }
    *left = mod;
    double whole = floor(div);
    return div == 0 ? copysign(0, x / y) : div - whole > 0.5 ? whole + 1 : whole;
}

/* The same of two of double precision: a result is a number like any other, or exactly zero, of which nobody would be
 * told anything. */
static PyObject *
of_doubles(int which, double x, double y)
{
    double z, left;
    int is_exact_zero = 0, is_divided = y != 0 && isfinite(x) && isfinite(y);
    switch (which) {
    case number_add:
    case number_subtract:
        z = which == number_add ? x + y : x - y;
        is_exact_zero = 1;
        break;
    case number_multiply:
        z = x * y;
        is_exact_zero = x == 0 || y == 0;
        break;
    case number_true_divide:
        z = y == 0 ? NAN : x / y;
        is_exact_zero = x == 0;
        break;
    case number_floor_divide:
    case number_remainder:
        z = is_divided ? quotient_of(x, y, &left) : NAN;
        is_exact_zero = isnormal(x / y) || x == 0;
        z = which == number_remainder ? left : z;
        if (!is_divided || !is_exact_zero)
            return NULL;
        break;
    case number_power:
        z = pow(x, y);
        break;
    default:
        return NULL;
    }
    return isnormal(z) || (z == 0 && is_exact_zero) ? double_number(z) : NULL;
}

/* A complex number of double precision, or a real one. */
static int
as_complex(PyObject *a, double *parts)
{
    if (known.complexes != NULL && (Py_TYPE(a) == known.complexes || Py_TYPE(a) == &PyCDoubleArrType_Type)) {
        memcpy(parts, &PyArrayScalar_VAL(a, CDouble), 2 * sizeof(double));
        return 1;
    }
    parts[1] = PyComplex_CheckExact(a) ? PyComplex_ImagAsDouble(a) : 0;
    if (!PyComplex_CheckExact(a))
        return as_real(a, parts);
    parts[0] = PyComplex_RealAsDouble(a);
    return 1;
}

/* A product of which nobody would be told anything; else NaN. */
static double
told_product(double x, double y)
{
    double z = x * y;
    return isnormal(z) || (z == 0 && (x == 0 || y == 0)) ? z : NAN;
}

/* The same of two complex numbers. */
static PyObject *
of_complex(int which, const double *x, const double *y)
{
    double z[2];
    if (which == number_add || which == number_subtract) {
        double sign = which == number_add ? 1 : -1;
        z[0] = x[0] + sign * y[0];
        z[1] = x[1] + sign * y[1];
    }
    else if (which == number_multiply) {
        z[0] = told_product(x[0], y[0]) - told_product(x[1], y[1]);
        z[1] = told_product(x[0], y[1]) + told_product(x[1], y[0]);
    }
    else
        return NULL;
    PyObject *number = isfinite(z[0]) && isfinite(z[1]) ? known.complexes->tp_alloc(known.complexes, 0) : NULL;
    if (number != NULL)
        memcpy(&PyArrayScalar_VAL(number, CDouble), z, sizeof(z));
    return number;
}

/* What C says of two numbers; NULL without an error where that is NumPy's to say. */
static PyObject *
by_c(int which, PyObject *a, PyObject *b)
{
    long m, n;
    double x[2], y[2];
    if (as_long(a, &m) && as_long(b, &n))
        return of_longs(which, m, n);
    if (as_real(a, x) && as_real(b, y))
        return of_doubles(which, *x, *y);
    return as_complex(a, x) && as_complex(b, y) ? of_complex(which, x, y) : NULL;
}

/* A number as NumPy knows it, NumPy's own array, a list of numbers unless that is repeated (a new reference); NULL, also
 * without an error, where it is something else. */
static PyObject *
plain_number(int which, PyObject *a)
{
    NumberKind *kind = kind_of(Py_TYPE(a));
    if (kind != NULL)
        return number_as(kind->numpys, a);
    int is_known = is_number(a) || of_numbers(a) != NULL;
    return is_known || (which != number_multiply && counted(a, DEEPEST_LISTED) > 0) ? Py_NewRef(a) : NULL;
}

/* --- the slots ------------------------------------------------------------------------------------------- */

static PyObject *
raised(PyObject *a, PyObject *b)
{
    return PyNumber_Power(a, b, Py_None);
}

static PyObject *
of_two_numbers(int which, binaryfunc numpys, PyObject *a, PyObject *b)
{
    if (known.array == NULL)
        return by_number_methods(which, a, b);
    if (Py_TYPE(b) == known.array || expression_of(b) != NULL) /* whose operator is asked next */
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *found = by_c(which, a, b);
    if (found != NULL || PyErr_Occurred())
        return found;
    PyObject *p = plain_number(which, a), *q = p == NULL ? NULL : plain_number(which, b);
    if (q != NULL)
        found = as_ours(numpys(p, q));
    else if (!PyErr_Occurred())
        found = by_number_methods(which, a, b);
    Py_XDECREF(p);
    Py_XDECREF(q);
    return found;
}

static PyObject *
of_one_number(int which, unaryfunc numpys, PyObject *a)
{
    double x;
    long n;
    int type = Py_TYPE(a) == known.number ? NPY_DOUBLE : Py_TYPE(a) == known.integer ? NPY_LONG : NPY_NOTYPE;
    if (type == NPY_DOUBLE && which != number_invert && as_double(a, &x))
        return double_number(which == number_negative ? -x : which == number_absolute ? fabs(x) : x);
    if (type == NPY_LONG && as_long(a, &n) && n != LONG_MIN)
        return long_number(which == number_negative   ? -n
                           : which == number_absolute ? labs(n)
                           : which == number_invert   ? ~n
                                                      : n);
    if (kind_of(Py_TYPE(a)) == NULL || known.array == NULL)
        return call_one(operators_of(a)[which].method, a);
    PyObject *plain = plain_number(which, a), *found = plain == NULL ? NULL : as_ours(numpys(plain));
    Py_XDECREF(plain);
    return found;
}

#define NUMBER_SLOT_OF_TWO(name, method, reflected, numpys)                                                          \
    static PyObject *number_##name##_slot(PyObject *a, PyObject *b)                                           \
    {                                                                                                         \
        return of_two_numbers(number_##name, numpys, a, b);                                                   \
    }
#define NUMBER_SLOT_OF_ONE(name, method, numpys)                                                                     \
    static PyObject *number_##name##_slot(PyObject *a) { return of_one_number(number_##name, numpys, a); }
OF_TWO_NUMBERS(NUMBER_SLOT_OF_TWO)
OF_ONE_NUMBER(NUMBER_SLOT_OF_ONE)
#undef NUMBER_SLOT_OF_TWO
#undef NUMBER_SLOT_OF_ONE

static PyObject *
number_power_slot(PyObject *a, PyObject *b, PyObject *modulus)
{
    if (modulus == Py_None)
        return of_two_numbers(number_power, raised, a, b);
    Operator *of_a = operators_of(a);
    if (of_a == NULL)
        Py_RETURN_NOTIMPLEMENTED;
    return call_three(of_a[number_power].method, a, b, modulus);
}

static PyObject *
number_times_slot(PyObject *a, PyObject *b)
{
    return is_number(b) || of_numbers(b) != NULL ? number_multiply_slot(a, b)
                                                 : call_two(operators_of(a)[number_times].method, a, b);
}

/* `number_class(kind)`: a class derived from one of NumPy's, with these operators. */
static PyObject *
number_class(PyObject *module, PyObject *kind)
{
    static PyType_Slot slots[] = {
#define SLOT(name, ...) {Py_nb_##name, number_##name##_slot},
        OF_TWO_NUMBERS(SLOT) OF_ONE_NUMBER(SLOT)
#undef SLOT
        {Py_nb_power, number_power_slot},
        {Py_nb_inplace_multiply, number_times_slot},
        {Py_tp_doc, "The plain case of what our numbers do."},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "spartan_ng.api.core._quick.QuickNumber",
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
        .slots = slots,
    };
    return PyType_FromSpecWithBases(&spec, kind);
}

/* `connect_numbers(number, methods, kind)`: say what class our numbers of one of NumPy's have. */
static PyObject *
connect_numbers(PyObject *module, PyObject *args)
{
    PyObject *number, *methods, *kind;
    if (!PyArg_ParseTuple(args, "O!O!O!:connect_numbers", &PyType_Type, &number, &PyType_Type, &methods, &PyType_Type,
                          &kind))
        return NULL;
    if (kinds_count == MOST_KINDS || !PyType_IsSubtype((PyTypeObject *)number, (PyTypeObject *)kind)
        || ((PyTypeObject *)number)->tp_basicsize != ((PyTypeObject *)kind)->tp_basicsize) {
        PyErr_SetString(PyExc_TypeError, "connect_numbers: a class of other numbers");
        return NULL;
    }
    Operator *operators = number_operators[kinds_count];
    memcpy(operators, number_names, sizeof(number_names));
    if (learned(operators, number_op_count, methods) < 0)
        return NULL;
    number_kinds[kinds_count].ours = (PyTypeObject *)Py_NewRef(number);
    number_kinds[kinds_count++].numpys = (PyTypeObject *)Py_NewRef(kind);
    if (kind == (PyObject *)&PyDoubleArrType_Type)
        known.number = (PyTypeObject *)number;
    if (kind == (PyObject *)&PyLongArrType_Type)
        known.integer = (PyTypeObject *)number;
    if (kind == (PyObject *)&PyCDoubleArrType_Type)
        known.complexes = (PyTypeObject *)number;
    Py_RETURN_NONE;
}
