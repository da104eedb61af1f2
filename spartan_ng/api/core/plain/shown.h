/* Views that NumPy's functions and attributes make of an array's memory, and what its methods tell as Python's objects.
 *
 * What such a view is to us, its lens, is asked of our own function once for a shape and arguments (`lenses.py`); from
 * then on NumPy makes the view, and the lens is found. Most have nothing to do with the lengths: where the last lens
 * shows the same of an array of others, nobody is asked, as in loops over parts of an array. */

enum { MOST_GIVEN = 12, MOST_LENSES = 1 << 10, LEARNT = 8, LEFT = 32 }; /* calls in a row; one of so many more */

/* Whether a dtype, or a class of NumPy's numbers, is of numbers or truth values. */
static int
is_plain_dtype(PyObject *a)
{
    if (PyArray_DescrCheck(a)) {
        int type = ((PyArray_Descr *)a)->type_num;
        return (PyTypeNum_ISNUMBER(type) || PyTypeNum_ISBOOL(type)) && PyArray_ISNBO(((PyArray_Descr *)a)->byteorder);
    }
    return PyType_Check(a) && kind_of((PyTypeObject *)a) == NULL && PySet_Contains(known.numbers, a) == 1;
}

/* An axis, a length or none as Python's (a new reference); NULL, without an error, for all else. */
static PyObject *
as_place(PyObject *a)
{
    if (a == Py_None || PyLong_CheckExact(a))
        return Py_NewRef(a);
    PyObject *place = is_among(known.integers, a) ? PyNumber_Index(a) : NULL;
    PyErr_Clear();
    return place;
}

/* What an argument says that is one of these, some in a tuple, a list or an array, or a dtype, by which a call is known (a
 * new reference); NULL, without an error, for all else. */
static PyObject *
as_places(PyObject *a)
{
    PyArrayObject *listed = numbers_of(a);
    if (listed != NULL) {
        int is_line = PyArray_NDIM(listed) == 1 && PyTypeNum_ISINTEGER(PyArray_TYPE(listed)) && PyArray_SIZE(listed) <= NPY_MAXDIMS;
        PyObject *items = is_line ? PyArray_ToList(listed) : NULL, *places = items == NULL ? NULL : PyList_AsTuple(items);
        Py_XDECREF(items);
        PyErr_Clear();
        return places;
    }
    if (PyUnicode_CheckExact(a) || is_plain_dtype(a)) /* a view's */
        return Py_NewRef(a);
    if (!PyTuple_CheckExact(a) && !PyList_CheckExact(a))
        return as_place(a);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(a), i = 0;
    while (PyTuple_CheckExact(a) && i < n && (PyTuple_GET_ITEM(a, i) == Py_None || PyLong_CheckExact(PyTuple_GET_ITEM(a, i))))
        i++;
    if (i == n && PyTuple_CheckExact(a))
        return Py_NewRef(a);
    PyObject *places = n > NPY_MAXDIMS ? NULL : PyTuple_New(n);
    for (i = 0; i < n && places != NULL; i++) {
        PyObject *place = as_place(PySequence_Fast_GET_ITEM(a, i));
        if (place == NULL)
            Py_CLEAR(places);
        else
            PyTuple_SET_ITEM(places, i, place);
    }
    return places;
}

/* What the arguments besides the first say, those of keywords last (new references); 0 where one is no place. */
static int
all_places(PyObject *const *args, Py_ssize_t total, PyObject **places)
{
    for (Py_ssize_t i = 1; i < total; i++)
        if ((places[i] = as_places(args[i])) == NULL) {
            while (--i > 0)
                Py_DECREF(places[i]);
            return 0;
        }
    return 1;
}

/* What NumPy's function gives for an array of the kind that we know, or a number, and for places, those of keywords last (a
 * new reference); NULL, also without an error, where Python is to see to it. */
static PyObject *
asked_of(PyObject *numpys, PyObject *shown, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *values[MOST_GIVEN + 1] = {NULL, shown};
    Py_ssize_t total = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    for (Py_ssize_t i = 1; i < total; i++)
        values[i + 1] = Py_TYPE(args[i]) == known.array ? (PyObject *)value_of((Handle *)args[i]) : args[i];
    PyObject *found = PyObject_Vectorcall(numpys, values + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_Exception)) /* ours name the shapes */
        PyErr_Clear();
    return found;
}

/* What stands for a call: the array's lengths behind their number, the names of keywords, what is given besides. */
static PyObject *
key_of_call(PyArrayObject *shown, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    Py_ssize_t total = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names)), ndim = PyArray_NDIM(shown), at = 0;
    PyObject *key = PyTuple_New(ndim + total + 1);
    for (Py_ssize_t i = -1; key != NULL && i < ndim; i++) {
        PyObject *length = PyLong_FromSsize_t(i < 0 ? ndim : PyArray_DIM(shown, i));
        if (length == NULL)
            Py_CLEAR(key);
        else
            PyTuple_SET_ITEM(key, at++, length);
    }
    if (key == NULL)
        return NULL;
    PyTuple_SET_ITEM(key, at++, Py_NewRef(names == NULL ? Py_None : names));
    for (Py_ssize_t i = 1; i < total; i++)
        PyTuple_SET_ITEM(key, at++, Py_NewRef(args[i]));
    return key;
}

/* What the views are that one function makes: by calls, and of the last call, which loops make again; and how many
 * calls in a row were others. */
typedef struct {
    PyObject *by_call, *last_call, *last;
    unsigned others;
    int turns; /* whether the views are the same of arrays of any lengths */
} Lenses;

/* Whether a call is the one that a key stands for, or that of an array of any lengths. */
static int
is_call(PyObject *key, PyArrayObject *shown, PyObject *const *args, Py_ssize_t n, PyObject *names, int is_of_any)
{
    Py_ssize_t total = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names)), ndim = PyArray_NDIM(shown), at = 0;
    if (key == NULL || PyTuple_GET_SIZE(key) != ndim + total + 1)
        return 0;
    for (Py_ssize_t i = -1; i < (is_of_any ? 0 : ndim); i++)
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(key, at++)) != (i < 0 ? ndim : PyArray_DIM(shown, i)))
            return 0;
    at = ndim + 1;
    if (PyTuple_GET_ITEM(key, at++) != (names == NULL ? Py_None : names))
        return 0;
    for (Py_ssize_t i = 1; i < total; i++)
        if (PyTuple_GET_ITEM(key, at++) != args[i])
            return 0;
    return 1;
}

/* Whether the last call was the same of another array with as many axes. */
static int
is_of_other_lengths(const Lenses *lenses, PyObject *key, int ndim)
{
    PyObject *last = lenses->last_call;
    if (last == NULL || PyTuple_GET_SIZE(last) != PyTuple_GET_SIZE(key))
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++)
        if (i == 0 || i > ndim) {
            PyObject *a = PyTuple_GET_ITEM(last, i), *b = PyTuple_GET_ITEM(key, i);
            int same = a == b ? 1 : PyObject_RichCompareBool(a, b, Py_EQ);
            if (same != 1) {
                PyErr_Clear();
                return 0;
            }
        }
    return 1;
}

/* Whether a lens of one step that says nothing of lengths shows the same memory as a view of an array. */
static int
shows(PyObject *lens, PyArrayObject *shown, PyObject *view)
{
    if (lens == NULL || !PyTuple_CheckExact(lens) || PyTuple_GET_SIZE(lens) != 1)
        return 0;
    PyObject *step = PyTuple_GET_ITEM(lens, 0), *key = basic_key(step), *seen = NULL;
    if (key != NULL)
        seen = PyArray_Type.tp_as_mapping->mp_subscript((PyObject *)shown, key);
    else if (!PyObject_HasAttrString(step, "shape"))
        seen = PyObject_CallMethod(step, "apply_value", "O", shown);
    Py_XDECREF(key);
    PyErr_Clear();
    if (seen == NULL)
        return 0;
    PyArrayObject *a = (PyArrayObject *)seen, *b = (PyArrayObject *)view;
    int same = PyArray_CheckExact(seen) && PyArray_SAMESHAPE(a, b) && PyArray_DESCR(a) == PyArray_DESCR(b)
               && PyArray_DATA(a) == PyArray_DATA(b)
               && PyArray_CompareLists(PyArray_STRIDES(a), PyArray_STRIDES(b), PyArray_NDIM(a));
    Py_DECREF(seen);
    return same;
}

/* The steps to a view that NumPy's function has made (a new reference), None where Python has to make it. */
static PyObject *
lens_of(PyObject *ours, Lenses *lenses, PyArrayObject *shown, PyObject *view, PyObject *const *args, Py_ssize_t n,
        PyObject *names)
{
    if (is_call(lenses->last_call, shown, args, n, names, 0))
        return Py_NewRef(lenses->last);
    PyObject *key = key_of_call(shown, args, n, names);
    PyObject *lens = key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(lenses->by_call, key));
    if (lens == NULL && key != NULL && !PyErr_Occurred() && is_of_other_lengths(lenses, key, PyArray_NDIM(shown))
        && shows(lenses->last, shown, view))
        lens = Py_NewRef(lenses->last);
    lenses->others = lens == NULL ? lenses->others + 1 : 0;
    /* Where no call comes again, as in a loop over parts of an array, learning takes longer than Python. */
    int learns = lenses->others <= LEARNT || lenses->others % LEFT == 0;
    if (lens == NULL && key != NULL && learns && !PyErr_Occurred()) {
        PyObject *arguments[5] = {NULL, ours, (PyObject *)shown, view, key};
        lens = PyObject_Vectorcall(known.learn, arguments + 1, 4 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        if (lens == NULL && PyErr_ExceptionMatches(PyExc_Exception)) { /* of places that ours takes for other ones */
            PyErr_Clear();
            lens = Py_NewRef(Py_None);
        }
        if (PyDict_GET_SIZE(lenses->by_call) >= MOST_LENSES)
            PyDict_Clear(lenses->by_call);
        if (lens != NULL && PyDict_SetItem(lenses->by_call, key, lens) < 0)
            Py_CLEAR(lens);
    }
    if (lens != NULL) {
        Py_XSETREF(lenses->last_call, Py_NewRef(key));
        Py_XSETREF(lenses->last, Py_NewRef(lens));
    }
    Py_XDECREF(key);
    return lens;
}

/* What NumPy has made of an array's memory, its reference taken, as ours; NULL, also without an error, where Python is
 * to see to it. */
static PyObject *
shown_as(Handle *array, PyArrayObject *shown, int is_few, PyObject *found, PyObject *ours, Lenses *lenses,
         PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    if (found == (PyObject *)shown) {
        Py_DECREF(found);
        return Py_NewRef((PyObject *)array);
    }
    PyObject *base = PyArray_CheckExact(found) ? PyArray_BASE((PyArrayObject *)found) : NULL;
    if (base == NULL || (base != (PyObject *)shown && base != PyArray_BASE(shown))) {
        if (is_few && PyArray_CheckExact(found) && Py_REFCNT(found) == 1 && PyArray_ISWRITEABLE((PyArrayObject *)found))
            return base == NULL ? wrapped(found) : owned((PyArrayObject *)found);
        Py_DECREF(found);
        return NULL;
    }
    PyObject *value = Py_NewRef(((Cell *)array->cell)->value), *view = NULL;
    PyObject *lens = lens_of(ours, lenses, shown, found, args, n, names);
    if (lens != NULL && PyTuple_CheckExact(lens) && ((Cell *)array->cell)->value == value)
        view = seen_through(array, PySequence_Fast_ITEMS(lens), PyTuple_GET_SIZE(lens), found);
    else
        Py_DECREF(found);
    Py_XDECREF(lens);
    Py_DECREF(value);
    return view;
}

/* What is copied where no view shows it, if it is small. */
static int
is_few_bytes(PyArrayObject *shown)
{
    return PyArray_NBYTES(shown) < Py_MIN(known.least, small_bytes());
}

/* Whether a key names all of each axis, in some order. */
static int
names_all(PyObject *key)
{
    if (PySlice_Check(key))
        return ((PySliceObject *)key)->start == Py_None && ((PySliceObject *)key)->stop == Py_None;
    int all = PyTuple_CheckExact(key);
    for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(key); i++) {
        PyObject *part = PyTuple_GET_ITEM(key, i);
        all = part == Py_None || part == Py_Ellipsis || (PySlice_Check(part) && names_all(part));
    }
    return all;
}

/* The view that was made last, of an array of any lengths: by its key, and without the function. NULL, also without an
 * error, where there is no such key. */
static PyObject *
turned(Handle *array, PyArrayObject *shown, const Lenses *lenses, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *lens = lenses->last;
    if (!lenses->turns || !is_call(lenses->last_call, shown, args, n, names, 1) || !PyTuple_CheckExact(lens)
        || PyTuple_GET_SIZE(lens) != 1 || !names_all(PyTuple_GET_ITEM(lens, 0)))
        return NULL;
    PyObject *key = PyTuple_GET_ITEM(lens, 0);
    PyObject *found = PyArray_Type.tp_as_mapping->mp_subscript((PyObject *)shown, key);
    return found == NULL ? NULL : seen(array, key, found);
}

/* A view that a function makes of its first argument; NULL, also without an error, where Python is to see to it. */
static PyObject *
view_of(PyObject *numpys, PyObject *ours, Lenses *lenses, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *places[MOST_GIVEN] = {args[0]}, *found = NULL;
    Py_ssize_t total = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    PyArrayObject *shown = Py_TYPE(args[0]) == known.array ? value_of((Handle *)args[0]) : NULL;
    if (shown == NULL || !is_plain_kind(shown))
        return NULL;
    int is_few = is_few_bytes(shown);
    if ((!is_few && !PyArray_IS_C_CONTIGUOUS(shown)) || !all_places(args, total, places))
        return NULL;
    Py_INCREF(shown);
    found = turned((Handle *)args[0], shown, lenses, places, n, names);
    if (found == NULL && !PyErr_Occurred()) {
        found = asked_of(numpys, (PyObject *)shown, args, n, names);
        if (found != NULL)
            found = shown_as((Handle *)args[0], shown, is_few, found, ours, lenses, places, n, names);
    }
    Py_DECREF(shown);
    let_go(places + 1, total - 1);
    return found;
}

/* A number that NumPy's function makes of a number, or an array, which shows one that nobody else knows; NULL, also without
 * an error, where Python is to see to it. */
static PyObject *
view_of_number(PyObject *numpys, PyObject *ours, Lenses *lenses, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *places[MOST_GIVEN] = {args[0]}, *found = NULL;
    Py_ssize_t total = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    if (!all_places(args, total, places))
        return NULL;
    PyObject *number = plain_of(args[0]);
    if (number != NULL)
        found = asked_of(numpys, number, args, n, names);
    Py_XDECREF(number);
    int is_array = found != NULL && PyArray_CheckExact(found) && Py_REFCNT(found) == 1 && PyArray_ISWRITEABLE((PyArrayObject *)found);
    PyObject *base = is_array ? PyArray_BASE((PyArrayObject *)found) : NULL;
    if (base != NULL && PyArray_CheckExact(base) && Py_REFCNT(base) == 1) {
        PyObject *array = wrapped(Py_NewRef(base));
        if (array == NULL)
            Py_CLEAR(found);
        else
            found = shown_as((Handle *)array, (PyArrayObject *)base, 0, found, ours, lenses, places, n, names);
        Py_XDECREF(array);
    }
    else if (found != NULL && ((is_array && base == NULL) || PyArray_IsScalar(found, Generic)))
        found = wrapped(found);
    else
        Py_CLEAR(found);
    let_go(places + 1, total - 1);
    return found;
}

/* What NumPy's function gives for an array of a class derived from its own, where that is such a class's, too; NULL, also
 * without an error, where Python is to see to it. */
static PyObject *
view_of_derived(PyObject *numpys, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *places[MOST_GIVEN], *found = NULL;
    Py_ssize_t total = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    if (!all_places(args, total, places))
        return NULL;
    found = asked_of(numpys, args[0], args, n, names);
    let_go(places + 1, total - 1);
    if (found != NULL && !is_derived(found))
        Py_CLEAR(found);
    return found;
}

/* What a method, or a function, tells of an array as Python's objects, and a function of a number, of numbers in lists, or
 * of another array; NULL, also without an error, where Python is to see to it. */
static PyObject *
told_of(PyObject *numpys, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *places[MOST_GIVEN], *plain = NULL, *found = NULL;
    Py_ssize_t total = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    if (Py_TYPE(args[0]) == known.array) {
        PyArrayObject *shown = value_of((Handle *)args[0]);
        plain = shown != NULL && is_plain_kind(shown) ? Py_NewRef((PyObject *)shown) : NULL;
    }
    else if (total == 1 && !Py_IS_TYPE(numpys, &PyMethodDescr_Type)) {
        int is_other = PyArray_CheckExact(args[0]) || is_derived(args[0]) || counted(args[0], DEEPEST_LISTED) >= 0;
        plain = is_other ? Py_NewRef(args[0]) : is_number(args[0]) ? plain_of(args[0]) : NULL;
    }
    if (plain != NULL && all_places(args, total, places)) {
        found = asked_of(numpys, plain, args, n, names);
        let_go(places + 1, total - 1);
    }
    Py_XDECREF(plain);
    return found;
}
