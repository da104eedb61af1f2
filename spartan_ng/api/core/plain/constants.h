/* Arrays of one value, of a shape or like another array, without NumPy's ways to its functions of them. */

/* The type of numbers or truth values that a `dtype` names (a new reference), NULL for none; 0 where it names another one. */
static int
number_type(PyObject *dtype, PyArray_Descr **found)
{
    *found = NULL;
    if (dtype == NULL || dtype == Py_None)
        return 1;
    int is_word = PyUnicode_CheckExact(dtype) && PyUnicode_GET_LENGTH(dtype) > 0 && PyUnicode_READ_CHAR(dtype, 0) != 'a';
    int is_type = PyType_Check(dtype) || PyArray_DescrCheck(dtype) || is_word; /* one for texts is deprecated */
    if (is_type && PyArray_DescrConverter(dtype, found) && (PyTypeNum_ISNUMBER((*found)->type_num) || PyTypeNum_ISBOOL((*found)->type_num)))
        return 1;
    PyErr_Clear();
    Py_CLEAR(*found);
    return 0;
}

/* The lengths that an argument says, and how many elements those have together; -1 where it is no shape that is plain. */
static double
lengths_of(PyObject *shape, npy_intp *lengths, int *axes)
{
    double size = shape_size(shape);
    int is_one = !is_listed(shape), n = is_one ? 1 : (int)PySequence_Fast_GET_SIZE(shape);
    if (PyErr_Occurred())
        PyErr_Clear();
    if (n > NPY_MAXDIMS || MOST_ITEM * size >= (double)Py_MIN(known.least, small_bytes()))
        return -1;
    for (int axis = 0; size >= 0 && axis < n; axis++)
        lengths[axis] = PyNumber_AsSsize_t(is_one ? shape : PySequence_Fast_GET_ITEM(shape, axis), PyExc_OverflowError);
    if (PyErr_Occurred()) { /* a length beside none, which is no number of C's */
        PyErr_Clear();
        return -1;
    }
    *axes = n;
    return size;
}

/* What a call says of the array that it wants; NULL where it says nothing. */
typedef struct {
    PyObject *first, *value, *dtype, *order;
} Wanted;

/* Learn it from the arguments, `value` from those if it is None; 0 where one is another's to understand. */
static int
learn_wanted(Wanted *wanted, PyObject *value, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject **places[4] = {&wanted->first}, **by_name[] = {&wanted->first, &wanted->value, &wanted->dtype, &wanted->order};
    static const char *const words[] = {"shape", "fill_value", "dtype", "order"};
    int at = 1, is_given = value == Py_None;
    if (is_given)
        places[at++] = &wanted->value;
    places[at++] = &wanted->dtype;
    places[at++] = &wanted->order;
    for (Py_ssize_t i = 0; i < n; i++)
        *places[i] = args[i];
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++) {
        int k = 0;
        while (k < 4 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), words[k]) != 0)
            k++;
        if (k == 4 || *by_name[k] != NULL)
            return 0;
        *by_name[k] = args[n + i];
    }
    if (!is_given && wanted->value != NULL)
        return 0;
    wanted->value = is_given ? wanted->value : value;
    return wanted->first != NULL && wanted->value != NULL;
}

/* Have each element of a new array be what is at a place. */
static void
fill_with(PyArrayObject *a, const char *element)
{
    npy_intp done = PyArray_ITEMSIZE(a), nbytes = PyArray_NBYTES(a);
    if (nbytes > 0)
        memcpy(PyArray_BYTES(a), element, done);
    for (; done < nbytes; done *= 2)
        memcpy(PyArray_BYTES(a) + done, PyArray_BYTES(a), Py_MIN(done, nbytes - done));
}

/* The array that a call of a function wants that gives arrays of one value: of numbers, and small. NULL, also without an
 * error, where that is another question. */
static PyObject *
constant_at_once(int size, PyObject *value, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    Wanted wanted = {NULL};
    PyArray_Descr *type;
    Pair element = {0};
    npy_intp lengths[NPY_MAXDIMS];
    int axes = 0, is_turned = 0;
    if (!learn_wanted(&wanted, value, args, n, names) || !number_type(wanted.dtype, &type))
        return NULL;
    PyArrayObject *like = size == AS_LIKE ? numbers_of(wanted.first) : NULL, *found = NULL;
    double count = size == AS_LIKE ? (like == NULL ? -1 : (double)PyArray_SIZE(like)) : lengths_of(wanted.first, lengths, &axes);
    if (wanted.order != NULL && size != AS_LIKE && PyUnicode_CheckExact(wanted.order)) {
        is_turned = PyUnicode_CompareWithASCIIString(wanted.order, "F") == 0;
        if (is_turned || PyUnicode_CompareWithASCIIString(wanted.order, "C") == 0)
            wanted.order = NULL;
    }
    if (type == NULL && like != NULL)
        type = (PyArray_Descr *)Py_NewRef(PyArray_DESCR(like));
    else if (type == NULL && count >= 0) {
        int number = value == Py_None ? type_in_list(wanted.value) : NPY_DOUBLE;
        type = number == NPY_NOTYPE ? NULL : PyArray_DescrFromType(number);
    }
    int is_zero = value != Py_None && PyLong_AsLong(value) == 0;
    int is_few = count >= 0 && wanted.order == NULL && type != NULL && (like == NULL || PyArray_NBYTES(like) < known.least)
                 && count * (double)PyDataType_ELSIZE(type) < (double)Py_MIN(known.least, small_bytes());
    int is_plain = is_few && !is_zero && PyArray_ISNBO(type->byteorder) && is_of_loops(type->type_num)
                   && as_element(wanted.value, type->type_num, (char *)&element);
    if (is_plain || (is_few && is_zero)) {
        Py_INCREF(type);
        found = (PyArrayObject *)(like != NULL ? PyArray_NewLikeArray(like, NPY_KEEPORDER, type, 0)
                                  : is_zero    ? PyArray_Zeros(axes, lengths, type, is_turned)
                                               : PyArray_Empty(axes, lengths, type, is_turned));
        if (found != NULL && is_plain)
            fill_with(found, (char *)&element);
        else if (found != NULL && like != NULL)
            memset(PyArray_BYTES(found), 0, PyArray_NBYTES(found));
    }
    Py_XDECREF(type);
    return found == NULL ? NULL : wrapped((PyObject *)found);
}
