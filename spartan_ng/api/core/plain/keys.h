/* Keys: elements, views and places, read and written. */

/* Whether an array of truths or integers selects elements; one without axes is a number to NumPy. */
static int
is_index(PyArrayObject *index)
{
    return index != NULL && PyArray_NDIM(index) > 0 && (PyArray_ISBOOL(index) || PyArray_ISINTEGER(index))
           && PyArray_NBYTES(index) < known.least;
}

/* Whether a key has small arrays of integers, all of one shape, and one for each axis of an array: it names single
 * elements, as many as an index has. Others may be broadcast together, to more than each of them has. */
static int
names_elements(PyArrayObject *a, PyObject *key)
{
    Py_ssize_t n = PyTuple_CheckExact(key) ? PyTuple_GET_SIZE(key) : 0;
    PyArrayObject *first = NULL;
    if (a == NULL || n < 1 || n != PyArray_NDIM(a))
        return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *part = PyTuple_GET_ITEM(key, i);
        PyArrayObject *index = numbers_of(part);
        first = i == 0 ? index : first;
        if (!is_index(index) || PyArray_ISBOOL(index) || !PyArray_SAMESHAPE(index, first))
            return 0;
    }
    return PyArray_SIZE(first) * PyArray_ITEMSIZE(a) < small_bytes();
}

/* A key that is a small array of ours, or a list of a few integers, or that holds such ones, as NumPy takes it (a new
 * reference), or NULL without an error; `is_few` says that it names single elements. */
static PyObject *
fancy_key(PyObject *key, int is_few)
{
    if (Py_TYPE(key) == known.array || PyArray_CheckExact(key)) {
        PyArrayObject *index = numbers_of(key);
        return is_index(index) ? Py_NewRef((PyObject *)index) : NULL;
    }
    if (lists(key))
        return listed_index(key);
    if (!PyTuple_CheckExact(key))
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(key), size = 1, nbytes = 0;
    PyObject *plain = PyTuple_New(n);
    for (Py_ssize_t i = 0; plain != NULL && i < n; i++) {
        PyObject *part = PyTuple_GET_ITEM(key, i), *listed = lists(part) ? listed_index(part) : NULL;
        PyArrayObject *index = listed != NULL ? (PyArrayObject *)listed : numbers_of(part);
        if (is_index(index)) {
            size = Py_MAX(size, 1) * PyArray_SIZE(index);
            nbytes += PyArray_NBYTES(index);
        }
        PyObject *taken = is_index(index)    ? Py_NewRef((PyObject *)index)
                          : is_simple(part)  ? Py_NewRef(part)
                          : is_integer(part) ? PyNumber_Long(part)
                                             : NULL;
        if (taken == NULL || (is_index(index) && 8 * size > known.surely && !is_few)) {
            Py_XDECREF(taken);
            Py_CLEAR(plain);
        }
        else
            PyTuple_SET_ITEM(plain, i, taken);
        Py_XDECREF(listed);
    }
    if (plain != NULL && nbytes >= small_bytes())
        Py_CLEAR(plain);
    PyErr_Clear();
    return plain;
}

/* The elements that such a key selects of a small array, or few that a list or one index for each axis selects of any,
 * or NULL, with an error unless the methods say it. */
static PyObject *
selected(PyArrayObject *shown, PyObject *key)
{
    Py_ssize_t nbytes = PyArray_NBYTES(shown), small = small_bytes();
    int is_few = names_elements(shown, key);
    if (PyArray_NDIM(shown) == 0 || (lists(key) || is_few ? small == 0 : nbytes > small))
        return NULL;
    PyObject *plain = fancy_key(key, is_few);
    if (plain == NULL)
        return NULL;
    PyObject *found = NULL;
    int whole = PyArray_CheckExact(plain) && !PyArray_ISBOOL((PyArrayObject *)plain);
    if (!whole || PyArray_SIZE((PyArrayObject *)plain) * nbytes < small * PyArray_DIM(shown, 0)) {
        Py_INCREF(shown);
        if (PyArray_CheckExact(plain))
            found = whole ? taken(shown, (PyArrayObject *)plain) : masked(shown, (PyArrayObject *)plain);
        if (found == NULL && !PyErr_Occurred())
            found = PyArray_Type.tp_as_mapping->mp_subscript((PyObject *)shown, plain);
        Py_DECREF(shown);
    }
    Py_DECREF(plain);
    if (found == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_IndexError))
        PyErr_Clear();
    int is_turned = found != NULL && PyArray_CheckExact(found) && PyArray_BASE((PyArrayObject *)found) != NULL && Py_REFCNT(found) == 1;
    return found == NULL ? NULL : is_turned ? owned((PyArrayObject *)found) : finished(found, NULL, NULL, 0);
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

/* A field of records as a view; NULL, also without an error, where the methods have to make it. */
static PyObject *
field_of(Handle *array, PyArrayObject *shown, PyObject *name)
{
    PyObject *field = cell_of(array)->frozen ? NULL : call_two(known.field, (PyObject *)PyArray_DESCR(shown), name);
    PyObject *found = NULL;
    if (field != NULL && field != Py_None) {
        found = PyArray_Type.tp_as_mapping->mp_subscript((PyObject *)shown, name);
        if (found != NULL)
            found = seen(array, field, found);
    }
    Py_XDECREF(field);
    return found;
}

/* What a basic key shows of an array, as NumPy's view (a new reference). */
static PyObject *
shown_by(PyArrayObject *array, PyObject *key)
{
    Py_ssize_t i = PyLong_CheckExact(key) ? PyLong_AsSsize_t(key) : -1;
    if (i >= 0) /* NumPy's way of an integer that C has */
        return PyArray_Type.tp_as_sequence->sq_item((PyObject *)array, i);
    PyErr_Clear();
    return PyArray_Type.tp_as_mapping->mp_subscript((PyObject *)array, key);
}

static PyObject *
part_by_key(PyObject *self, PyObject *key)
{
    const Operator *op = &operators[op_getitem];
    PyArrayObject *shown = Py_TYPE(self) == known.array ? value_of((Handle *)self) : NULL;
    PyObject *plain = shown == NULL ? NULL : basic_key(key);
    if (plain != NULL) {
        char *place = place_of(shown, plain);
        PyObject *found;
        if (place != NULL)
            found = element_at(shown, place, cell_of((Handle *)self)->shared);
        else {
            PyObject *value = Py_NewRef(((Cell *)((Handle *)self)->cell)->value);
            Py_INCREF(shown);
            found = shown_by(shown, plain);
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
        int is_name = PyArray_TYPE(shown) == NPY_VOID && PyUnicode_CheckExact(key);
        PyObject *found = is_name ? field_of((Handle *)self, shown, key) : selected(shown, key);
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    PyObject *method = method_of(op, op->method);
    return method == NULL ? NULL : call_two(method, self, key);
}

/* Whether what an array's key has found is a view of the array. */
static int
is_line_of(PyObject *self, PyObject *found)
{
    if (PyObject_TypeCheck(found, &HandleFields))
        return ((Handle *)found)->cell == ((Handle *)self)->cell;
    return PyArray_IsScalar(found, Void);
}

static PyObject *
getitem(PyObject *self, PyObject *key)
{
    PyObject *found = part_by_key(self, key);
    if (is_swapped(CALLERS) && found != NULL && is_line_of(self, found))
        Py_SETREF(found, PyObject_CallMethod(found, "copy", NULL));
    return found;
}

/* Whether a write of an array into what a basic key names succeeded; results as in `written`, 1 where NumPy has to look
 * at both. The view that `a[k] += b` ends with is not copied to its own place. */
static int
copied(PyArrayObject *target, PyObject *key, PyArrayObject *value)
{
    if (PyArray_DESCR(value) != PyArray_DESCR(target) || !PyArray_ISWRITEABLE(target))
        return 1;
    PyObject *place = PyArray_Type.tp_as_mapping->mp_subscript((PyObject *)target, key);
    if (place == NULL)
        return -1;
    int done = PyArray_CheckExact(place) ? copied_to((PyArrayObject *)place, value) : 1;
    Py_DECREF(place);
    return done;
}

enum { MOST_SET = 32 };

/* Whether few numbers in a list were written into a line of as many elements that a basic key names; 0 where NumPy is to
 * write an array of them; -1, also without an error, where the methods are to say what is wrong. */
static int
listed_put(PyArrayObject *target, PyObject *key, PyObject *listed)
{
    Pair numbers[MOST_SET];
    int type = PyArray_TYPE(target);
    if (!PyArray_ISWRITEABLE(target))
        return -1;
    PyObject *found = PyArray_Type.tp_as_mapping->mp_subscript((PyObject *)target, key);
    if (found == NULL)
        return -1;
    PyArrayObject *line = (PyArrayObject *)found;
    if (!PyArray_CheckExact(found) || PyArray_NDIM(line) == 0) {
        Py_DECREF(found);
        return -1;
    }
    npy_intp n = PySequence_Fast_GET_SIZE(listed); /* a slice's `__index__` may do anything */
    int fits = PyArray_ISBEHAVED_RO(line) && PyArray_NDIM(line) == 1 && PyArray_DIM(line, 0) == n && n <= MOST_SET;
    for (npy_intp i = 0; i < n && fits; i++)
        fits = as_element(PySequence_Fast_GET_ITEM(listed, i), type, (char *)&numbers[i]);
    for (npy_intp i = 0; i < n && fits; i++)
        memcpy(PyArray_BYTES(line) + i * PyArray_STRIDE(line, 0), &numbers[i], PyArray_ITEMSIZE(line));
    Py_DECREF(found);
    return fits;
}

/* Numbers in a list as NumPy's array, whose elements a type holds (a new reference); NULL, without an error, where the
 * methods are to say what becomes of them. */
static PyObject *
listed_numbers(PyObject *listed, PyArray_Descr *dtype)
{
    PyObject *plain = PyList_New(0), *found = NULL;
    for (Py_ssize_t i = 0; plain != NULL && i < PySequence_Fast_GET_SIZE(listed); i++) {
        PyObject *number = plain_of(PySequence_Fast_GET_ITEM(listed, i));
        if (number == NULL || PyList_Append(plain, number) < 0)
            Py_CLEAR(plain);
        Py_XDECREF(number);
    }
    if (plain != NULL)
        found = PyArray_FromAny(plain, NULL, 0, 0, NPY_ARRAY_DEFAULT, NULL);
    Py_XDECREF(plain);
    PyErr_Clear();
    PyArrayObject *numbers = of_numbers(found);
    if (numbers == NULL || !PyArray_CanCastTypeTo(PyArray_DESCR(numbers), dtype, NPY_SAFE_CASTING))
        Py_CLEAR(found);
    return found;
}

/* Whether a write into the memory of an array succeeded; -1 with NumPy's error, 0 where it is none for us. */
static int
written(PyArrayObject *target, PyObject *key, int is_basic, PyObject *value)
{
    if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) {
        int put = is_basic ? listed_put(target, key, value) : 0;
        PyObject *numbers = put == 0 ? listed_numbers(value, PyArray_DESCR(target)) : NULL;
        int done = put == 1 ? 0 : numbers == NULL ? -1 : written(target, key, is_basic, numbers);
        Py_XDECREF(numbers);
        return done;
    }
    if (is_basic && PyArray_CheckExact(value)) {
        int done = copied(target, key, (PyArrayObject *)value);
        if (done != 1)
            return done;
    }
    if (PyArray_CheckExact(key) && PyArray_CheckExact(value)
        && put_rows(target, (PyArrayObject *)key, (PyArrayObject *)value))
        return 0;
    if (PyArray_CheckExact(key) && masked_put(target, (PyArrayObject *)key, value))
        return 0;
    if (PyErr_Occurred())
        return -1;
    char *place = PyArray_CheckExact(value) || !PyArray_ISWRITEABLE(target) ? NULL : place_of(target, key);
    return place != NULL ? PyArray_Pack(PyArray_DESCR(target), place, value)
                         : PyArray_Type.tp_as_mapping->mp_ass_subscript((PyObject *)target, key, value);
}

/* Whether an element that is no number was set; 0 where the methods have to do it. */
static int
is_set(Handle *array, PyObject *key, PyObject *value)
{
    PyArrayObject *shown = value_of(array);
    PyObject *plain = shown != NULL && is_for(PyArray_TYPE(shown), value) ? basic_key(key) : NULL;
    PyArrayObject *target = plain == NULL ? NULL : opened(array, shown);
    char *place = target != NULL && PyArray_ISWRITEABLE(target) ? place_of(target, plain) : NULL;
    int done = place != NULL && PyArray_Pack(PyArray_DESCR(target), place, value) == 0;
    PyErr_Clear(); /* the methods fail as well */
    Py_XDECREF(target);
    Py_XDECREF(plain);
    return done;
}

/* Write what is pending where a basic key says: 1, 0 where it is to be made first, as before a key's own code runs, -1 with
 * an error. */
static int
set_together(PyObject *self, PyObject *key, Expression *e)
{
    PyObject *plain = Py_TYPE(self) == known.array && is_silent_key(key) ? basic_key(key) : NULL;
    PyArrayObject *target = plain == NULL ? NULL : open_of((Handle *)self);
    PyObject *view = target == NULL ? NULL : PyObject_GetItem((PyObject *)target, plain);
    int done = view != NULL && PyArray_CheckExact(view) ? done_into(e, (PyArrayObject *)view) : 0;
    if (done >= 0)
        PyErr_Clear();
    Py_XDECREF(view);
    Py_XDECREF(target);
    Py_XDECREF(plain);
    return done;
}

static int
setitem(PyObject *self, PyObject *key, PyObject *value)
{
    Expression *e = value != NULL && Py_REFCNT(value) == 1 ? expression_of(value) : NULL;
    if (e != NULL)
        e->thread = NOBODY; /* taken here */
    if (settle_all() < 0)
        return -1;
    if (e != NULL) {
        int done = set_together(self, key, e);
        if (done != 0)
            return done < 0 ? -1 : 0;
    }
    if (value != NULL && finish_pending(value) < 0)
        return -1;
    PyObject *elements = value != NULL && Py_TYPE(self) == known.array && is_derived(value) ? elements_for(self, key, value) : NULL;
    if (elements != NULL) {
        int done = setitem(self, key, elements);
        Py_DECREF(elements);
        return done;
    }
    if (value != NULL && Py_TYPE(self) == known.array) {
        if (is_own_view((Handle *)self, key, value) || is_set((Handle *)self, key, value))
            return 0;
        PyArrayObject *records = PyUnicode_CheckExact(key) ? value_of((Handle *)self) : NULL;
        if (records != NULL && PyDataType_HASFIELDS(PyArray_DESCR(records))) {
            PyObject *field = field_of((Handle *)self, records, key);
            int set = field == NULL || Py_TYPE(field) != known.array ? -1 : setitem(field, Py_Ellipsis, value);
            Py_XDECREF(field);
            if (set == 0 || PyErr_Occurred())
                return set;
        }
        PyObject *given = is_of_numbers(value) ? value : operand_of(value), *plain = given == NULL ? NULL : basic_key(key);
        int is_basic = plain != NULL;
        if (given != NULL && plain == NULL)
            plain = fancy_key(key, names_elements(value_of((Handle *)self), key));
        PyArrayObject *target = plain == NULL ? NULL : open_of((Handle *)self);
        int done = -1;
        if (target != NULL) {
            given = plain_of(given);
            done = given == NULL ? -1 : written(target, plain, is_basic, given);
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
    PyArrayObject *shown = Py_TYPE(self) == known.array ? value_of((Handle *)self) : NULL;
    if (shown != NULL && PyArray_NDIM(shown) > 0)
        return PyArray_DIM(shown, 0);
    const Operator *op = &operators[op_len];
    PyObject *method = method_of(op, op->method);
    PyObject *found = method == NULL ? NULL : call_one(method, self);
    Py_ssize_t n = found == NULL ? -1 : PyLong_AsSsize_t(found);
    Py_XDECREF(found);
    return n;
}
