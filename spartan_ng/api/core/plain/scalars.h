/* Numbers as elements of a type, and the type that operands are worked on in: what loops are given. */

/* Whether elements of a type are worked on by loops that are called here. */
static int
is_of_loops(int type)
{
    return PyTypeNum_ISBOOL(type) || PyTypeNum_ISINTEGER(type) || type == NPY_FLOAT || type == NPY_DOUBLE
           || type == NPY_CFLOAT || type == NPY_CDOUBLE;
}

static npy_intp
bytes_of(int type)
{
    PyArray_Descr *descr = PyArray_DescrFromType(type);
    npy_intp bytes = PyDataType_ELSIZE(descr);
    Py_DECREF(descr);
    return bytes;
}

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

/* Whether a number is one of NumPy's, of a type. */
static int
is_number_of(PyObject *a, int type)
{
    PyArray_Descr *descr = PyArray_DescrFromType(type);
    int is_it = descr->typeobj == Py_TYPE(a);
    Py_DECREF(descr);
    return is_it;
}

/* The type that a number of NumPy's, or of ours, is of; NOTYPE of others. */
static int
numpys_type(PyObject *a)
{
    NumberKind *kind = kind_of(Py_TYPE(a));
    PyArray_Descr *descr = PyArray_DescrFromTypeObject(kind == NULL ? (PyObject *)Py_TYPE(a) : (PyObject *)kind->numpys);
    int type = descr == NULL ? NPY_NOTYPE : descr->type_num;
    Py_XDECREF(descr);
    PyErr_Clear();
    return PyTypeNum_ISNUMBER(type) || PyTypeNum_ISBOOL(type) ? type : NPY_NOTYPE;
}

/* A number of NumPy's as an element of a type that all numbers of its own type have a place in: of both, NumPy takes that
 * type. 0 where it is none, or its type is another question. */
static int
numpys_as_element(PyObject *a, int type, char *place)
{
    int own = is_number_of(a, type) ? type : numpys_type(a);
    char *number = (char *)a + sizeof(PyObject); /* behind what all objects have */
    PyUFuncGenericFunction cast = own == NPY_NOTYPE || own == type ? NULL : casting(own, type);
    if (own == type)
        memcpy(place, number, bytes_of(type));
    else if (cast != NULL) {
        npy_intp one = 1, steps[2] = {0, 0};
        cast((char *[2]){number, place}, &one, steps, NULL);
    }
    return own == type || cast != NULL;
}

/* Python's integer as an element of a type that has it; 0 where none does. */
static int
as_integer(PyObject *a, int type, char *place)
{
    int overflow;
    long n = PyLong_AsLongAndOverflow(a, &overflow);
#define OF_TYPE(name, of)                                                                                     \
    case NPY_##name:                                                                                          \
        *(of *)place = (of)n;                                                                                 \
        return !overflow && (long)(of)n == n && (n < 0) == (((of)n) < 0);
    switch (type) {
        OF_TYPE(BYTE, npy_byte)
        OF_TYPE(UBYTE, npy_ubyte)
        OF_TYPE(SHORT, npy_short)
        OF_TYPE(USHORT, npy_ushort)
        OF_TYPE(INT, npy_int)
        OF_TYPE(UINT, npy_uint)
        OF_TYPE(LONG, npy_long)
        OF_TYPE(ULONG, npy_ulong)
    }
    return 0;
}

/* A number as an element of an array's dtype, as NumPy takes it; 0 where that is another question. */
static int
as_element(PyObject *a, int type, char *place)
{
    double x;
    if (type == NPY_DOUBLE && as_double(a, &x)) {
        *(double *)place = x;
        return 1;
    }
    if (PyArray_IsScalar(a, Generic))
        return numpys_as_element(a, type, place);
    if (PyBool_Check(a) && PyTypeNum_ISBOOL(type)) {
        *(npy_bool *)place = a == Py_True;
        return 1;
    }
    if (PyTypeNum_ISINTEGER(type))
        return PyLong_CheckExact(a) && as_integer(a, type, place);
    if (type == NPY_CDOUBLE && PyComplex_CheckExact(a)) {
        ((double *)place)[0] = PyComplex_RealAsDouble(a);
        ((double *)place)[1] = PyComplex_ImagAsDouble(a);
        return 1;
    }
    if (!as_double(a, &x))
        return 0;
    if (type == NPY_FLOAT) {
        *(float *)place = (float)x;
        return isfinite(x) && isfinite(*(float *)place);
    }
    ((double *)place)[0] = x;
    ((double *)place)[1] = 0;
    return type == NPY_CDOUBLE;
}

static int
is_whole(int type)
{
    return PyTypeNum_ISBOOL(type) || PyTypeNum_ISINTEGER(type);
}

/* The type that a number in a list is of, as NumPy finds it; NOTYPE of all else. */
static int
type_in_list(PyObject *a)
{
    if (PyFloat_CheckExact(a) || Py_TYPE(a) == known.number || Py_TYPE(a) == &PyDoubleArrType_Type)
        return NPY_DOUBLE;
    if (PyBool_Check(a))
        return NPY_BOOL;
    return PyLong_CheckExact(a) ? NPY_LONG : PyComplex_CheckExact(a) ? NPY_CDOUBLE : is_number(a) ? numpys_type(a) : NPY_NOTYPE;
}

/* The type that operands of two types are given to a function in; NOTYPE where that depends on the function. */
static int
promoted(int one, int other)
{
    if (one == NPY_NOTYPE || one == other)
        return other;
    PyArray_Descr *of_one = PyArray_DescrFromType(one), *of_other = PyArray_DescrFromType(other);
    PyArray_Descr *both = PyArray_PromoteTypes(of_one, of_other);
    int type = both == NULL || (is_whole(one) && is_whole(other) && !is_whole(both->type_num)) ? NPY_NOTYPE : both->type_num;
    Py_XDECREF(both);
    Py_DECREF(of_one);
    Py_DECREF(of_other);
    PyErr_Clear();
    return type;
}

/* The same of elements of a type and a number, which takes their type if that is of its kind. */
static int
promoted_by(PyObject *number, int type)
{
    if (PyFloat_CheckExact(number))
        return is_whole(type) ? NPY_DOUBLE : type;
    if (PyLong_CheckExact(number))
        return PyTypeNum_ISBOOL(type) ? NPY_INTP : type;
    if (PyComplex_CheckExact(number))
        return type == NPY_CDOUBLE || type == NPY_CFLOAT ? type : type == NPY_FLOAT ? NPY_CFLOAT : NPY_CDOUBLE;
    return PyBool_Check(number) || is_number_of(number, type) ? type : promoted(numpys_type(number), type);
}
