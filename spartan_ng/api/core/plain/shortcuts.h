/* NumPy's functions that are ours, behind the plain case of their calls (`given.h`). */

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
static PyObject *as_it_is(PyObject *a, PyObject *dtype);

/* A view of an array of NumPy's own, as of one of ours that reads it, or of what is made of a list; NULL, also without an
 * error, where Python is to see to it. */
static PyObject *
view_of_others(Shortcut *f, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *all[MOST_GIVEN];
    int is_list = f->size != AS_ROLLED && (PyList_CheckExact(args[0]) || PyTuple_CheckExact(args[0]));
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
        PyObject *dtype = n == 2 && more == 0 ? args[1] : only_keyword("dtype", args, n, names);
        PyObject *found = n + more == 1 || (n + more == 2 && dtype != NULL) ? as_it_is(args[0], dtype) : NULL;
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
        if (f->lenses.by_call != NULL)
            found = Py_TYPE(args[0]) != known.array
                        ? view_of_others(f, args, n, more ? names : NULL)
                        : view_of(f->numpys, f->ours, &f->lenses, args, n, more ? names : NULL);
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
        else {
            if (f->fold != NULL)
                found = fold_at_once(f, args, n, names);
            else if (f->numpys == known.dot && n + more == 2)
                found = quick_product(f->numpys, args[0], args[1]);
            if (found == NULL && !PyErr_Occurred())
                found = at_once(f->numpys, f->size, args, n, more ? names : NULL);
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
        f->lenses.turns = size == AS_TURNED || size == AS_ROLLED;
        if ((size == AS_VIEW || f->lenses.turns) && (f->lenses.by_call = PyDict_New()) == NULL)
            Py_CLEAR(f);
    }
    return (PyObject *)f;
}
