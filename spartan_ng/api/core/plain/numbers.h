/* Our numbers of double precision. */

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
        if (Py_TYPE(b) == known.array) /* whose operator is asked next */                                     \
            Py_RETURN_NOTIMPLEMENTED;                                                                         \
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
