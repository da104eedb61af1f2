/* Arrays of their own: of small arrays, of numbers, of lists. */

/* Whether all that a list has are texts. */
static int
is_of_texts(PyObject *listed)
{
    Py_ssize_t n = PyList_CheckExact(listed) ? PyList_GET_SIZE(listed) : 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!PyUnicode_CheckExact(PyList_GET_ITEM(listed, i)))
            return 0;
    return n > 0 && n <= MOST_LISTED;
}

/* A small array's elements, copied, as elements of a type, which is none of those that leave imaginary parts out; its
 * reference is taken. */
static PyObject *
copied_as(PyArrayObject *shown, PyArray_Descr *type)
{
    int fits = shown != NULL && PyArray_NBYTES(shown) < Py_MIN(known.least, small_bytes())
               && (type == NULL || !PyArray_ISCOMPLEX(shown) || PyTypeNum_ISCOMPLEX(type->type_num));
    if (fits && type != NULL)
        return PyArray_FromArray(shown, type, NPY_ARRAY_ENSURECOPY | NPY_ARRAY_FORCECAST);
    Py_XDECREF(type);
    return fits ? PyArray_NewCopy(shown, NPY_KEEPORDER) : NULL;
}

/* An array of its own of a small array's elements, of a number, a range, or a list of few numbers or texts, of small arrays,
 * or of lists of them, of a type of numbers, if one is given; NULL, also without an error, for all else. */
static PyObject *
array_of(PyObject *listed, PyObject *dtype)
{
    PyArray_Descr *type;
    if (known.array == NULL || !number_type(dtype, &type))
        return NULL;
    PyObject *found = NULL;
    int is_texts = is_of_texts(listed);
    if (Py_TYPE(listed) == known.array || PyArray_CheckExact(listed))
        found = copied_as(numbers_of(listed), type);
    else if ((found = filled_from(listed, type)) != NULL)
        Py_XDECREF(type);
    else {
        Given given = NOTHING_GIVEN;
        int is_list = PyList_CheckExact(listed) && PyList_GET_SIZE(listed) > 0;
        int is_empty = counted(listed, 1) == 0;
        int is_plain = is_empty  ? 1
                       : is_list ? (is_texts && type == NULL) || !PyUnicode_Check(PyList_GET_ITEM(listed, 0))
                               : is_number(listed) || is_of_numbers(listed) || PyRange_Check(listed);
        PyObject *values = is_plain ? given_value(listed, DEEPEST, &given) : NULL;
        if (values != NULL && (given.first == NULL || given.nbytes < Py_MIN(known.least, small_bytes())))
            found = PyArray_FromAny(values, type, 0, 0, NPY_ARRAY_DEFAULT | NPY_ARRAY_FORCECAST, NULL);
        else
            Py_XDECREF(type);
        Py_XDECREF(values);
    }
    if (found != NULL && (of_numbers(found) != NULL || (is_texts && PyArray_TYPE((PyArrayObject *)found) == NPY_UNICODE)))
        return wrapped(found);
    PyErr_Clear(); /* lists of unlike lengths, of which ours says the same */
    Py_XDECREF(found);
    return NULL;
}

/* An array as it is, if its elements are of the type that a `dtype` names, or what is made of a number or a list; NULL, also
 * without an error, where Python is to see to it. */
static PyObject *
as_it_is(PyObject *a, PyObject *dtype)
{
    PyArray_Descr *type;
    if (known.array == NULL || !number_type(dtype, &type))
        return NULL;
    int is_ours = Py_TYPE(a) == known.array;
    if (is_ours && type == NULL && value_of((Handle *)a) != NULL && !cell_of((Handle *)a)->frozen)
        return Py_NewRef(a);
    PyArrayObject *shown = is_ours ? shown_of((Handle *)a) : of_numbers(a);
    int is_of_type = type == NULL || (shown != NULL && PyArray_TYPE(shown) == type->type_num && PyArray_ISNBO(type->byteorder)
                                      && PyArray_ISNOTSWAPPED(shown));
    Py_XDECREF(type);
    if (shown == NULL)
        return is_ours ? NULL : array_of(a, dtype);
    if (!is_of_type || (is_ours && cell_of((Handle *)a)->frozen))
        return NULL;
    return is_ours ? Py_NewRef(a) : borrowed_from(shown);
}
