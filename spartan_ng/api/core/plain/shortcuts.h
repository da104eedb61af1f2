/* NumPy's functions that are ours, behind the plain case of their calls (`given.h`). */

/* A function of ours; see `in_front`. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *ours, *numpys;
    PyObject *whole;  /* NumPy's function, where `numpys` may be a method that does it sooner for arrays, or NULL */
    PyObject *names;  /* keywords that say what is to be done */
    PyObject *fold;   /* what it folds by, or NULL */
    PyObject *value;  /* what it fills arrays with, None where the second argument says it, or NULL */
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

static PyObject *filled_from(PyObject *listed, const PyArray_Descr *type);

/* A fold of a small array, or of what a list has; NULL, also without an error, where it is none that is plain. */
static PyObject *
fold_at_once(Shortcut *f, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyArrayObject *a = Py_TYPE(args[0]) == known.array ? value_of((Handle *)args[0]) : of_numbers(args[0]);
    a = a != NULL ? (PyArrayObject *)Py_NewRef(a) : (PyArrayObject *)filled_from(args[0], NULL);
    int is_few = a != NULL && PyArray_NBYTES(a) < small_bytes();
    PyObject *found = is_few ? fold_called(f->fold, f->is_mean, a, args, n, names) : NULL;
    Py_XDECREF(a);
    return found == NULL ? NULL : wrapped(found);
}

static PyObject *array_of(PyObject *listed, PyObject *dtype);
static PyObject *as_it_is(PyObject *a, PyObject *dtype);

/* A view of an array of NumPy's own, as of one of ours that reads it, of a number, of what is made of a list, or of an array
 * of a class derived from NumPy's; NULL, also without an error, where Python is to see to it. */
static PyObject *
view_of_others(Shortcut *f, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *all[MOST_GIVEN];
    int is_list = f->size != AS_ROLLED && (PyList_CheckExact(args[0]) || PyTuple_CheckExact(args[0]));
    if (f->size != AS_ROLLED && f->whole != NULL && is_number(args[0]))
        return view_of_number(f->whole, f->ours, &f->lenses, args, n, names);
    if (f->whole != NULL && is_derived(args[0]))
        return view_of_derived(f->whole, args, n, names);
    PyObject *array = of_numbers(args[0]) != NULL ? borrowed_from((PyArrayObject *)args[0])
                      : is_list                   ? array_of(args[0], NULL)
                                                  : NULL;
    if (array == NULL)
        return NULL;
    memcpy(all, args, (n + (names == NULL ? 0 : PyTuple_GET_SIZE(names))) * sizeof(PyObject *));
    all[0] = array;
    PyObject *found = view_of(f->numpys, f->ours, &f->lenses, all, n, names);
    Py_DECREF(array);
    return found;
}

/* The keyword of a call that has one, if it has this name; NULL of others. */
static PyObject *
only_keyword(const char *name, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    int is_it = names != NULL && PyTuple_GET_SIZE(names) == 1
                && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), name) == 0;
    return is_it ? args[n] : NULL;
}

/* The view that Einstein's sum of one small array makes, its letters before it: whatever the call gives that adds nothing.
 * NULL, also without an error, where it is none, or Python is to see to it. */
static PyObject *
view_of_letters(Shortcut *f, PyObject *const *args)
{
    PyArrayObject *shown = PyUnicode_CheckExact(args[0]) && Py_TYPE(args[1]) == known.array ? value_of((Handle *)args[1]) : NULL;
    if (shown == NULL || !is_plain_kind(shown) || !is_few_bytes(shown))
        return NULL;
    PyObject *places[2] = {args[1], args[0]};
    Py_INCREF(shown);
    PyObject *found = call_two(f->numpys, args[0], (PyObject *)shown);
    if (found != NULL && PyArray_CheckExact(found) && PyArray_BASE((PyArrayObject *)found) != NULL)
        found = shown_as((Handle *)args[1], shown, 0, found, f->ours, &f->lenses, places, 2, NULL);
    else
        Py_CLEAR(found);
    Py_DECREF(shown);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) /* ours name the shapes */
        PyErr_Clear();
    return found;
}

/* Whether a call of Einstein's sum is the last that was a view. */
static int
is_last_of_letters(Shortcut *f, PyObject *const *args)
{
    PyArrayObject *shown = Py_TYPE(args[1]) == known.array ? value_of((Handle *)args[1]) : NULL;
    PyObject *places[2] = {args[1], args[0]};
    return shown != NULL && is_call(f->lenses.last_call, shown, places, 2, NULL, 0);
}

/* Whether an array lies in the order that is asked for. */
static int
lies_so(PyObject *a, PyObject *order)
{
    PyArrayObject *shown = Py_TYPE(a) == known.array ? value_of((Handle *)a) : NULL;
    int is_c = PyUnicode_CheckExact(order) && PyUnicode_CompareWithASCIIString(order, "C") == 0;
    return shown != NULL && is_c && PyArray_IS_C_CONTIGUOUS(shown);
}

/* Whether the keywords of a call say a dtype, or an order that an array has, if anything. */
static int
says_dtype_alone(PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **dtype)
{
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (PyUnicode_CompareWithASCIIString(name, "dtype") == 0 && *dtype == NULL)
            *dtype = args[n + i];
        else if (PyUnicode_CompareWithASCIIString(name, "order") != 0
                 || (args[n + i] != Py_None && !(lies_so(args[0], args[n + i]))))
            return 0;
    }
    return 1;
}

/* What is called of NumPy's for a first argument: its array's own method, or the function, which takes anything. */
static PyObject *
called_of(const Shortcut *f, PyObject *first)
{
    return f->whole == NULL || Py_TYPE(first) == known.array || PyArray_CheckExact(first) ? f->numpys : f->whole;
}

static PyObject *
shortcut_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names)
{
    Shortcut *f = (Shortcut *)self;
    Py_ssize_t n = PyVectorcall_NARGS(flags), more = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    int is_plain = known.array != NULL && (n > 0 || f->value != NULL) && n <= f->most && n + more <= MOST_GIVEN;
    PyObject *together = f->numpys == known.where && n == 3 && more == 0 ? joined(self, f->numpys, args, flags) : NULL;
    if (together != NULL || PyErr_Occurred() || settle_all() < 0)
        return together;
    Py_ssize_t place = is_plain && (f->size == AS_GIVEN || f->size == AS_BROADCAST) ? place_asked(args, n, names) : -1;
    for (Py_ssize_t i = 0; is_plain && i < more; i++)
        is_plain = n + i == place || PySet_Contains(f->names, PyTuple_GET_ITEM(names, i)) == 1;
    if (f->size == AS_ITSELF) {
        PyObject *dtype = n == 2 ? args[1] : NULL;
        if (n == 1 && more == 0 && is_derived(args[0])) {
            PyObject *same = call_one(f->numpys, args[0]);
            if (same == NULL || is_derived(same))
                return same;
            Py_DECREF(same);
        }
        PyObject *found = (n == 1 || n == 2) && says_dtype_alone(args, n, names, &dtype) ? as_it_is(args[0], dtype) : NULL;
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    else if (f->size == AS_COPY) {
        int is_copy = n == 1 && only_keyword("copy", args, n, names) == Py_True;
        PyObject *dtype = n + more == 2 && !is_copy ? args[1] : NULL;
        PyObject *found = (is_plain && n + more <= 2) || is_copy ? array_of(args[0], dtype) : NULL;
        if (found != NULL)
            return found;
    }
    else if (is_plain) {
        PyObject *found = NULL;
        int is_of_letters = f->size == AS_LOOPS && n == 2 && more == 0;
        if (is_of_letters && is_last_of_letters(f, args))
            found = view_of_letters(f, args);
        else if (f->size != AS_LOOPS && f->lenses.by_call != NULL)
            found = Py_TYPE(args[0]) != known.array
                        ? view_of_others(f, args, n, more ? names : NULL)
                        : view_of(more && f->whole != NULL ? f->whole : f->numpys, f->ours, &f->lenses, args, n, more ? names : NULL);
        else if (f->size == AS_DRAWN)
            found = drawn_at_once(f->numpys, f->most - 1, 0, args, n, more ? names : NULL);
        else if (f->size == AS_CHOSEN)
            found = drawn_at_once(f->numpys, 2, 1, args, n, more ? names : NULL);
        else if (f->size == AS_SHUFFLED)
            found = shuffled_at_once(f->numpys, args, n, more ? names : NULL);
        else if (f->size == AS_WRITTEN)
            found = written_at_once(f->numpys, args, n, more ? names : NULL);
        else if (f->size == AS_PYTHONS)
            found = told_of(f->numpys, args, n, more ? names : NULL);
        else if (place >= 0 && args[place] != Py_None)
            found = n > 0 ? placed_at_once(called_of(f, args[0]), place, args, n, names) : NULL;
        else {
            if (f->fold != NULL)
                found = fold_at_once(f, args, n, names);
            else if (f->value != NULL)
                found = constant_at_once(f->size, f->value, args, n, names);
            else if (f->numpys == known.dot && n + more == 2)
                found = quick_product(f->numpys, args[0], args[1]);
            if (found == NULL && n > 0 && !PyErr_Occurred())
                found = at_once(called_of(f, args[0]), f->size, args, n, more ? names : NULL);
            if (found == NULL && is_of_letters && !PyErr_Occurred())
                found = view_of_letters(f, args);
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
    Py_VISIT(f->whole);
    Py_VISIT(f->names);
    Py_VISIT(f->fold);
    Py_VISIT(f->value);
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
    Py_CLEAR(f->whole);
    Py_CLEAR(f->names);
    Py_CLEAR(f->fold);
    Py_CLEAR(f->value);
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

#define SHORTCUTS(...)                                                                                        \
    {                                                                                                         \
        PyVarObject_HEAD_INIT(NULL, 0)                                                                        \
        .tp_basicsize = sizeof(Shortcut),                                                                     \
        .tp_doc = "A function of ours, behind the plain case of its calls.",                                  \
        .tp_vectorcall_offset = offsetof(Shortcut, call),                                                     \
        .tp_call = PyVectorcall_Call,                                                                         \
        .tp_getattro = shortcut_getattr,                                                                      \
        .tp_setattro = shortcut_setattr,                                                                      \
        .tp_repr = shortcut_repr,                                                                             \
        .tp_methods = shortcut_methods,                                                                       \
        .tp_traverse = shortcut_traverse,                                                                     \
        .tp_clear = shortcut_clear,                                                                           \
        .tp_dealloc = shortcut_dealloc,                                                                       \
        __VA_ARGS__                                                                                           \
    }
enum { OF_SHORTCUTS = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL };

static PyTypeObject ShortcutType = SHORTCUTS(.tp_name = "spartan_ng.api.core._quick.Shortcut",
                                             .tp_flags = OF_SHORTCUTS | Py_TPFLAGS_METHOD_DESCRIPTOR,
                                             .tp_descr_get = shortcut_get);

/* Of a function that as an attribute of a class becomes no method, as NumPy's own in C do not. */
static PyTypeObject BuiltinType = SHORTCUTS(.tp_name = "spartan_ng.api.core._quick.Builtin", .tp_flags = OF_SHORTCUTS);

/* `in_front(ours, numpys, names, most, size, fold=None, is_mean=False, whole=None, value=NULL)`: `ours`, but NumPy's function at once where all
 * arguments are small arrays of numbers, numbers, words, or lists of them, at most `most` by their places, and others by
 * `names`; `fold` is the function of two that it folds by, `value` what it fills arrays with. */
static PyObject *
in_front(PyObject *module, PyObject *args)
{
    PyObject *ours, *numpys, *names, *fold = Py_None, *whole = Py_None, *value = NULL;
    Py_ssize_t most;
    int size, is_mean = 0;
    if (!PyArg_ParseTuple(args, "OOO!ni|OpOO:in_front", &ours, &numpys, &PyFrozenSet_Type, &names, &most, &size, &fold,
                          &is_mean, &whole, &value))
        return NULL;
    if (size < 0 || size >= SIZES) {
        PyErr_SetString(PyExc_ValueError, "in_front: no such size");
        return NULL;
    }
    PyTypeObject *type = PyCFunction_CheckExact(numpys) ? &BuiltinType : &ShortcutType;
    Shortcut *f = (Shortcut *)type->tp_alloc(type, 0);
    if (f != NULL) {
        f->call = shortcut_call;
        f->ours = Py_NewRef(ours);
        f->numpys = Py_NewRef(numpys);
        f->names = Py_NewRef(names);
        f->fold = fold == Py_None ? NULL : Py_NewRef(fold);
        f->value = Py_XNewRef(value);
        f->is_mean = is_mean;
        f->most = most;
        f->size = size;
        f->lenses.turns = size == AS_TURNED || size == AS_ROLLED;
        f->whole = whole == Py_None ? NULL : Py_NewRef(whole);
        if ((size == AS_VIEW || f->lenses.turns || size == AS_LOOPS) && (f->lenses.by_call = PyDict_New()) == NULL)
            Py_CLEAR(f);
    }
    return (PyObject *)f;
}
