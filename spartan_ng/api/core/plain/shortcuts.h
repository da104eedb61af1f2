/* NumPy's functions that are ours: done at once where all that they are given is small, or no array. */

/* A function of ours; see `in_front`. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *ours, *numpys;
    PyObject *names;  /* keywords that say what is to be done */
    PyObject *fold;   /* what it folds by, or NULL */
    Lenses lenses;    /* what its views are */
    Py_ssize_t most;  /* arguments by their places */
    int size;         /* what bounds the size of a result */
    int is_mean;      /* which is a sum that is divided */
} Shortcut;

static PyTypeObject ShortcutType;

static int
chooses(PyObject *function)
{
    return Py_IS_TYPE(function, &ShortcutType) && known.where != NULL && ((Shortcut *)function)->numpys == known.where;
}

enum { DEEPEST = 3, MOST_ITEM = 16 };
/* Results are about as large as operands; as these broadcast together; as all of their products; as what loops over all
 * letters of the first argument make; as the first argument says, a shape; as the arguments say, a range; as the second
 * says how often there is each of the first; or are the only argument itself; a view of the first; Python's own objects;
 * numbers of a generator, as many as the last argument says; a copy of the first; or a view of it that is the same step
 * whatever its lengths are. */
enum { AS_GIVEN, AS_BROADCAST, AS_OUTER, AS_LOOPS, AS_SHAPE, AS_RANGE, AS_REPEATED, AS_ITSELF, AS_VIEW, AS_PYTHONS, AS_DRAWN, AS_COPY, AS_TURNED, SIZES };

/* What is given in a call. */
typedef struct {
    Py_ssize_t nbytes;
    double size; /* of what is broadcast together, at most */
    PyArrayObject *first;
    int alike;
} Given;

static int
is_word(PyObject *a)
{
    return a == Py_None || PyUnicode_CheckExact(a) || is_number(a);
}

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

static PyObject *given_value(PyObject *a, int depth, Given *given);

/* A list or a tuple with what NumPy takes instead of what it has: the same one where that is the same. */
static PyObject *
given_list(PyObject *listed, int depth, Given *given)
{
    Py_ssize_t n = PySequence_Fast_GET_SIZE(listed), i = 0;
    if (n > MOST_LISTED)
        return NULL;
    while (i < n && is_word(PySequence_Fast_GET_ITEM(listed, i))
           && kind_of(Py_TYPE(PySequence_Fast_GET_ITEM(listed, i))) == NULL)
        i++;
    given->size *= n > 0 ? n : 1;
    given->alike = 0;
    if (i == n)
        return Py_NewRef(listed);
    PyObject *made = PyList_CheckExact(listed) ? PyList_New(n) : PyTuple_New(n);
    for (i = 0; made != NULL && i < n; i++) {
        PyObject *a = given_value(PySequence_Fast_GET_ITEM(listed, i), depth - 1, given);
        if (a == NULL)
            Py_CLEAR(made);
        else if (PyList_CheckExact(made))
            PyList_SET_ITEM(made, i, a);
        else
            PyTuple_SET_ITEM(made, i, a);
    }
    return made;
}

/* An argument as NumPy is given it (a new reference); NULL, also without an error, where Python is to see to it. */
static PyObject *
given_value(PyObject *a, int depth, Given *given)
{
    if (Py_TYPE(a) == known.array || PyArray_CheckExact(a)) {
        PyArrayObject *shown = Py_TYPE(a) == known.array ? value_of((Handle *)a) : (PyArrayObject *)a;
        if (shown == NULL || !is_plain_kind(shown) || PyArray_NBYTES(shown) >= known.least)
            return NULL;
        if (given->first == NULL)
            given->first = shown;
        given->alike = given->alike && PyArray_SAMESHAPE(given->first, shown);
        given->nbytes += PyArray_NBYTES(shown);
        given->size *= (double)PyArray_SIZE(shown);
        return Py_NewRef((PyObject *)shown);
    }
    if (is_word(a))
        return plain_of(a);
    if (PyList_CheckExact(a) || PyTuple_CheckExact(a))
        return depth > 0 ? given_list(a, depth, given) : NULL;
    if (a == (PyObject *)&PyFloat_Type || a == (PyObject *)&PyLong_Type || a == (PyObject *)&PyBool_Type
        || a == (PyObject *)&PyComplex_Type || is_plain_dtype(a))
        return Py_NewRef(a);
    return NULL;
}

/* What results become, whose reference is taken: each of several by itself. */
static PyObject *
settled(PyObject *found, PyObject *given, PyObject **values, Py_ssize_t n)
{
    int is_list = PyList_CheckExact(found);
    if (PyBool_Check(found) || found == Py_None || PyLong_CheckExact(found))
        return found;
    if (PyArray_CheckExact(found) && PyArray_BASE((PyArrayObject *)found) != NULL && Py_REFCNT(found) == 1)
        return owned((PyArrayObject *)found);
    if ((!is_list && !PyTuple_CheckExact(found)) || Py_REFCNT(found) != 1)
        return finished(found, given, values, n);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(found);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject **place = &PySequence_Fast_ITEMS(found)[i], *one = *place;
        *place = Py_NewRef(Py_None); /* nobody else is to hold it, if it is new */
        one = settled(one, given, values, n);
        if (one == NULL) {
            Py_DECREF(found);
            return NULL;
        }
        Py_SETREF(*place, one);
    }
    return found;
}

/* Whether what a function is given, and what it gives, is small; `values` are the arguments as NumPy is given them. */
static int
are_few(Shortcut *f, Given *given, PyObject *const *args, PyObject **values, Py_ssize_t n)
{
    Py_ssize_t least = Py_MIN(known.least, small_bytes());
    double size;
    switch (f->size) {
    case AS_LOOPS:
        size = loop_size(values[0], values + 1, n - 1);
        if (size >= 0)
            return given->nbytes < least && size <= (double)known.looped;
        /* fall through */
    case AS_BROADCAST:
    case AS_OUTER:
        return given->nbytes < least
               && ((given->alike && f->size == AS_BROADCAST) || 8 * given->size <= (double)known.surely);
    case AS_SHAPE:
    case AS_RANGE:
        size = f->size == AS_SHAPE ? shape_size(args[0]) : range_size(args, n);
        if (PyErr_Occurred()) /* a length that is no number of C's */
            PyErr_Clear();
        return size >= 0 && MOST_ITEM * size < (double)least;
    case AS_REPEATED:
        size = n < 2 ? -1 : repeated_size(values[0], values[1]);
        if (PyErr_Occurred())
            PyErr_Clear();
        return given->nbytes < least && size >= 0 && size * (double)PyArray_ITEMSIZE((PyArrayObject *)values[0]) < (double)least;
    default:
        return given->nbytes < least;
    }
}

/* Whether a result shows an argument's memory: what sees that is made in Python. */
static int
is_view_of(PyObject *found, PyObject **values, Py_ssize_t n)
{
    PyObject *base = PyArray_CheckExact(found) ? PyArray_BASE((PyArrayObject *)found) : NULL;
    for (Py_ssize_t i = 0; base != NULL && i < n; i++)
        if (values[i] == base || (PyArray_CheckExact(values[i]) && PyArray_BASE((PyArrayObject *)values[i]) == base))
            return 1;
    return 0;
}

/* Whether what was made holds objects, whose first values are not numbers' zeros. */
static int
holds_objects(PyObject *found)
{
    return PyArray_CheckExact(found) && PyDataType_REFCHK(PyArray_DESCR((PyArrayObject *)found));
}

/* What NumPy's function gives for all arguments, those of keywords last; NULL, also without an error, where Python is
 * to see to it. */
static PyObject *
at_once(Shortcut *f, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *values[MOST_GIVEN + 1] = {NULL}, *found = NULL, *all = NULL;
    Py_ssize_t total = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names)), i = 0;
    Given given = {.size = 1, .alike = 1};
    for (; i < total; i++) {
        values[i + 1] = given_value(args[i], DEEPEST, &given);
        if (values[i + 1] == NULL)
            goto done;
    }
    if (!are_few(f, &given, args, values + 1, n))
        goto done;
    found = PyObject_Vectorcall(f->numpys, values + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
    if (found == NULL) {
        if (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_TypeError)
            || PyErr_ExceptionMatches(PyExc_LookupError)) /* ours name the shapes */
            PyErr_Clear();
        goto done;
    }
    if (is_view_of(found, values + 1, total) || (f->size == AS_SHAPE && holds_objects(found))) {
        Py_CLEAR(found);
        goto done;
    }
    all = PyTuple_New(total);
    for (i = 0; all != NULL && i < total; i++)
        PyTuple_SET_ITEM(all, i, Py_NewRef(args[i]));
    if (all == NULL)
        Py_CLEAR(found);
    else
        found = settled(found, all, values + 1, total);
done:
    Py_XDECREF(all);
    for (i = 1; i <= total && values[i] != NULL; i++)
        Py_DECREF(values[i]);
    return found;
}

/* A fold of a small array; NULL, also without an error, where it is none that is plain. */
static PyObject *
fold_at_once(Shortcut *f, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyArrayObject *a = Py_TYPE(args[0]) == known.array ? value_of((Handle *)args[0]) : of_numbers(args[0]);
    if (a == NULL || PyArray_NBYTES(a) >= small_bytes())
        return NULL;
    Py_INCREF(a);
    PyObject *found = fold_called(f->fold, f->is_mean, a, args, n, names);
    Py_DECREF(a);
    return found == NULL ? NULL : wrapped(found);
}

static PyObject *array_of(PyObject *listed, PyObject *dtype);

/* A view of an array of NumPy's own, as of one of ours that reads it; NULL, also without an error, where Python is to see
 * to it. */
static PyObject *
view_of_numpys(Shortcut *f, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *all[MOST_GIVEN], *array = borrowed_from((PyArrayObject *)args[0]);
    if (array == NULL)
        return NULL;
    memcpy(all, args, (n + (names == NULL ? 0 : PyTuple_GET_SIZE(names))) * sizeof(PyObject *));
    all[0] = array;
    PyObject *found = view_of(f->numpys, f->ours, &f->lenses, all, n, names);
    Py_DECREF(array);
    return found;
}

static PyObject *
shortcut_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names)
{
    Shortcut *f = (Shortcut *)self;
    Py_ssize_t n = PyVectorcall_NARGS(flags), more = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    int is_plain = known.array != NULL && n > 0 && n <= f->most && n + more <= MOST_GIVEN;
    PyObject *together = f->numpys == known.where && n == 3 && more == 0 ? joined(self, f->numpys, args, flags) : NULL;
    if (together != NULL || PyErr_Occurred() || settle_all() < 0)
        return together;
    for (Py_ssize_t i = 0; is_plain && i < more; i++)
        is_plain = PySet_Contains(f->names, PyTuple_GET_ITEM(names, i)) == 1;
    if (f->size == AS_ITSELF) {
        int is_array = n == 1 && more == 0 && Py_TYPE(args[0]) == known.array && shown_of((Handle *)args[0]) != NULL;
        if (is_array && !cell_of((Handle *)args[0])->frozen)
            return Py_NewRef(args[0]);
        if (n == 1 && more == 0 && of_numbers(args[0]) != NULL)
            return borrowed_from((PyArrayObject *)args[0]);
        PyObject *found = n == 1 && more == 0 && Py_TYPE(args[0]) != known.array ? array_of(args[0], NULL) : NULL;
        if (found != NULL)
            return found;
    }
    else if (f->size == AS_COPY) {
        PyObject *found = is_plain && n + more <= 2 ? array_of(args[0], n + more == 2 ? args[1] : NULL) : NULL;
        if (found != NULL)
            return found;
    }
    else if (is_plain) {
        PyObject *found = NULL;
        if (f->lenses.by_call != NULL)
            found = of_numbers(args[0]) != NULL ? view_of_numpys(f, args, n, more ? names : NULL)
                                                : view_of(f->numpys, f->ours, &f->lenses, args, n, more ? names : NULL);
        else if (f->size == AS_DRAWN)
            found = drawn_at_once(f->numpys, f->most - 1, args, n, more ? names : NULL);
        else if (f->size == AS_PYTHONS)
            found = told_of(f->numpys, args, n, more ? names : NULL);
        else {
            if (f->fold != NULL)
                found = fold_at_once(f, args, n, names);
            else if (f->numpys == known.dot && n + more == 2)
                found = quick_product(f->numpys, args[0], args[1]);
            if (found == NULL && !PyErr_Occurred())
                found = at_once(f, args, n, more ? names : NULL);
        }
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    return PyObject_Vectorcall(f->ours, args, flags, names);
}

/* All but what makes it one: a shortcut's name, its text, its signature are the function's. */
static PyObject *
shortcut_getattr(PyObject *self, PyObject *name)
{
    int own = PyUnicode_Check(name)
              && (PyUnicode_CompareWithASCIIString(name, "__class__") == 0
                  || PyUnicode_CompareWithASCIIString(name, "__reduce__") == 0
                  || PyUnicode_CompareWithASCIIString(name, "__reduce_ex__") == 0
                  || PyUnicode_CompareWithASCIIString(name, "__get__") == 0
                  || PyUnicode_CompareWithASCIIString(name, "__call__") == 0);
    return own ? PyObject_GenericGetAttr(self, name) : PyObject_GetAttr(((Shortcut *)self)->ours, name);
}

static int
shortcut_setattr(PyObject *self, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(((Shortcut *)self)->ours, name, value);
}

static PyObject *
shortcut_get(PyObject *self, PyObject *of, PyObject *type)
{
    return of == NULL || of == Py_None ? Py_NewRef(self) : PyMethod_New(self, of);
}

static PyObject *
shortcut_repr(PyObject *self)
{
    return PyObject_Repr(((Shortcut *)self)->ours);
}

static PyObject *
shortcut_reduce(PyObject *self, PyObject *unused)
{
    return PyObject_GetAttrString(((Shortcut *)self)->ours, "__qualname__");
}

static int
shortcut_traverse(PyObject *self, visitproc visit, void *arg)
{
    Shortcut *f = (Shortcut *)self;
    Py_VISIT(f->ours);
    Py_VISIT(f->numpys);
    Py_VISIT(f->names);
    Py_VISIT(f->fold);
    Py_VISIT(f->lenses.by_call);
    Py_VISIT(f->lenses.last_call);
    Py_VISIT(f->lenses.last);
    return 0;
}

static int
shortcut_clear(PyObject *self)
{
    Shortcut *f = (Shortcut *)self;
    Py_CLEAR(f->ours);
    Py_CLEAR(f->numpys);
    Py_CLEAR(f->names);
    Py_CLEAR(f->fold);
    Py_CLEAR(f->lenses.by_call);
    Py_CLEAR(f->lenses.last_call);
    Py_CLEAR(f->lenses.last);
    return 0;
}

static void
shortcut_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    shortcut_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef shortcut_methods[] = {
    {"__reduce__", shortcut_reduce, METH_NOARGS, "The function's name: it is found, not copied."},
    {NULL},
};

static PyTypeObject ShortcutType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spartan_ng.api.core._quick.Shortcut",
    .tp_basicsize = sizeof(Shortcut),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_doc = "A function of ours, behind the plain case of its calls.",
    .tp_vectorcall_offset = offsetof(Shortcut, call),
    .tp_call = PyVectorcall_Call,
    .tp_getattro = shortcut_getattr,
    .tp_setattro = shortcut_setattr,
    .tp_descr_get = shortcut_get,
    .tp_repr = shortcut_repr,
    .tp_methods = shortcut_methods,
    .tp_traverse = shortcut_traverse,
    .tp_clear = shortcut_clear,
    .tp_dealloc = shortcut_dealloc,
};

/* `in_front(ours, numpys, names, most, size, fold=None, is_mean=False)`: `ours`, but NumPy's function at once where all
 * arguments are small arrays of numbers, numbers, words, or lists of them, at most `most` by their places, and others by
 * `names`; `fold` is the function of two that it folds by. */
static PyObject *
in_front(PyObject *module, PyObject *args)
{
    PyObject *ours, *numpys, *names, *fold = Py_None;
    Py_ssize_t most;
    int size, is_mean = 0;
    if (!PyArg_ParseTuple(args, "OOO!ni|Op:in_front", &ours, &numpys, &PyFrozenSet_Type, &names, &most, &size, &fold,
                          &is_mean))
        return NULL;
    if (size < 0 || size >= SIZES) {
        PyErr_SetString(PyExc_ValueError, "in_front: no such size");
        return NULL;
    }
    Shortcut *f = (Shortcut *)ShortcutType.tp_alloc(&ShortcutType, 0);
    if (f != NULL) {
        f->call = shortcut_call;
        f->ours = Py_NewRef(ours);
        f->numpys = Py_NewRef(numpys);
        f->names = Py_NewRef(names);
        f->fold = fold == Py_None ? NULL : Py_NewRef(fold);
        f->is_mean = is_mean;
        f->most = most;
        f->size = size;
        f->lenses.turns = size == AS_TURNED;
        if ((size == AS_VIEW || size == AS_TURNED) && (f->lenses.by_call = PyDict_New()) == NULL)
            Py_CLEAR(f);
    }
    return (PyObject *)f;
}
