/* Universal functions as objects: called for few small arrays or numbers, and for where the result goes. */

/* What a universal function has of its own; see `ufunc`. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *numpys;
    int nin, nout;
    char takes_place; /* the place of the result, after the operands */
} Function;

static PyObject *called_name, *out_name, *accumulate_name, *at_name, *reduce_name, *reduceat_name, *outer_name;

static PyTypeObject QuickFunction;

static int
joins(PyObject *function)
{
    if (PyObject_TypeCheck(function, &QuickFunction))
        return ((Function *)function)->nout == 1;
    return chooses(function);
}

static PyMemberDef function_members[] = {
    {"np", T_OBJECT_EX, offsetof(Function, numpys), 0, NULL},
    {"nin", T_INT, offsetof(Function, nin), 0, NULL},
    {"nout", T_INT, offsetof(Function, nout), 0, NULL},
    {"takes_place", T_BOOL, offsetof(Function, takes_place), 0, NULL},
    {NULL},
};

/* What is computed, or written where it goes; NULL, also without an error where the method has to do it. */
static PyObject *
applied(Function *f, PyObject *const *args, Py_ssize_t n, PyObject *place)
{
    PyObject *plain[MOST_OPERANDS], *all[MOST_OPERANDS], *found = NULL;
    if (n <= MOST_OPERANDS && unlisted(args, n, all)) {
        found = applied(f, all, n, place);
        let_go(all, n);
        return found;
    }
    if (place == NULL) {
        int kind = few_given((PyUFuncObject *)f->numpys, args, n, plain);
        if (!kind || (kind == OF_NUMBERS && n > 2))
            return NULL;
        found = for_few(f->numpys, plain, n, NULL);
        if (found != NULL)
            return kind == OF_NUMBERS ? found : wrapped(found);
    }
    else {
        PyArrayObject *target = Py_TYPE(place) == known.array ? open_of((Handle *)place) : NULL;
        if (target != NULL && PyArray_NBYTES(target) <= small_bytes() && few_operands(args, n, plain))
            found = for_few(f->numpys, plain, n, target);
        Py_XDECREF(target);
        if (found != NULL) {
            Py_DECREF(found);
            return Py_NewRef(place);
        }
    }
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_ValueError)) /* read-only memory is copied; ours name the shapes */
        PyErr_Clear();
    return NULL;
}

/* Whether a function is one of NumPy's, which runs nobody's code. */
static int
is_numpys(PyObject *self)
{
    PyObject *numpys = ((Function *)self)->numpys;
    return known.array != NULL && numpys != NULL && PySet_Contains(known.ufuncs, numpys) == 1;
}

/* What NumPy's function gives for few values of any kind, also where keywords say of which dtype, or an array where it
 * goes, also by a mask; NULL, also without an error, where the method has to see to it. */
static PyObject *
applied_as_asked(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    Function *f = (Function *)self;
    PyObject *all[MOST_GIVEN], *place = NULL;
    Py_ssize_t more = names == NULL ? 0 : PyTuple_GET_SIZE(names), masks = 0;
    if (n != f->nin || n + more > MOST_GIVEN || !is_numpys(self))
        return NULL;
    memcpy(all, args, (n + more) * sizeof *args);
    for (Py_ssize_t i = 0; i < more; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        int is_out = PyUnicode_Compare(name, out_name) == 0, is_mask = PyUnicode_CompareWithASCIIString(name, "where") == 0;
        masks += is_mask;
        if (is_out && f->nout == 1 && Py_TYPE(args[n + i]) == known.array)
            place = args[n + i];
        else if (!is_mask && PyUnicode_CompareWithASCIIString(name, "dtype") != 0
                 && PyUnicode_CompareWithASCIIString(name, "casting") != 0)
            return NULL;
    }
    if (masks > 0 && place == NULL) /* other elements are zeros here */
        return NULL;
    PyArrayObject *target = place == NULL ? NULL : open_of((Handle *)place);
    if (place != NULL && (target == NULL || PyArray_NBYTES(target) > small_bytes() || !PyArray_ISWRITEABLE(target))) {
        Py_XDECREF(target);
        return NULL;
    }
    PyObject *found = at_once(f->numpys, AS_BROADCAST, all, n, names);
    Py_XDECREF(target);
    return found;
}

static PyObject *
function_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names)
{
    Function *f = (Function *)self;
    Py_ssize_t n = PyVectorcall_NARGS(flags);
    int none = names == NULL || PyTuple_GET_SIZE(names) == 0;
    if (f->numpys != NULL && known.array != NULL && is_of_parts(f->numpys)) {
        PyObject *found = settle_all() < 0 || !none || n != 2 ? NULL : quick_product(f->numpys, args[0], args[1]);
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    else if (f->nout == 1 && f->numpys != NULL && known.array != NULL) {
        PyObject *found = none && n == f->nin ? joined(self, f->numpys, args, flags) : NULL;
        if (found != NULL || PyErr_Occurred() || settle_all() < 0)
            return found;
        if (none && n == f->nin)
            found = applied(f, args, n, NULL);
        else if (none && n == f->nin + 1 && f->takes_place)
            found = applied(f, args, n - 1, args[n - 1]);
        else if (!none && n == f->nin && PyTuple_GET_SIZE(names) == 1
                 && PyUnicode_Compare(PyTuple_GET_ITEM(names, 0), out_name) == 0)
            found = applied(f, args, n, args[n]);
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    PyObject *asked = known.array == NULL || settle_all() < 0 ? NULL : applied_as_asked(self, args, n, names);
    if (asked != NULL || PyErr_Occurred())
        return asked;
    PyObject *method = PyObject_GetAttr(self, called_name);
    if (method == NULL)
        return NULL;
    PyObject *found = PyObject_Vectorcall(method, args, n, names);
    Py_DECREF(method);
    return found;
}

/* What the methods say that the class behind has. */
static PyObject *
by_class_behind(PyObject *self, PyObject *name, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *behind = PyObject_CallFunctionObjArgs((PyObject *)&PySuper_Type, &QuickFunction, self, NULL);
    PyObject *method = behind == NULL ? NULL : PyObject_GetAttr(behind, name);
    PyObject *found = method == NULL ? NULL : PyObject_Vectorcall(method, args, n, names);
    Py_XDECREF(method);
    Py_XDECREF(behind);
    return found;
}

static int
is_refused(void) /* ours say why */
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_TypeError)
        && !PyErr_ExceptionMatches(PyExc_LookupError))
        return 0;
    PyErr_Clear();
    return 1;
}

/* What a method of NumPy's function gives for few values, at most so many by their places, as the next is where it goes,
 * by keywords that say what is to be done. */
static PyObject *
by_few(PyObject *self, PyObject *name, int size, Py_ssize_t most, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    static const char *const asking[] = {"axis", "keepdims", "dtype", "where", "initial"};
    int is_plain = is_numpys(self) && n > 0 && n <= most && n + (names == NULL ? 0 : PyTuple_GET_SIZE(names)) <= MOST_GIVEN;
    Py_ssize_t place = is_plain ? place_asked(args, n, names) : -1;
    for (Py_ssize_t i = 0; is_plain && names != NULL && i < PyTuple_GET_SIZE(names); i++) {
        size_t k = 0;
        while (n + i != place && k < Py_ARRAY_LENGTH(asking) && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), asking[k]) != 0)
            k++;
        is_plain = k < Py_ARRAY_LENGTH(asking);
    }
    if (settle_all() < 0)
        return NULL;
    PyObject *method = is_plain ? PyObject_GetAttr(((Function *)self)->numpys, name) : NULL;
    PyObject *found = method == NULL                           ? NULL
                      : place >= 0 && args[place] != Py_None ? placed_at_once(method, place, args, n, names)
                                                              : at_once(method, size, args, n, names);
    Py_XDECREF(method);
    return found != NULL || PyErr_Occurred() ? found : by_class_behind(self, name, args, n, names);
}

static PyObject *
reduce(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    return by_few(self, reduce_name, AS_GIVEN, 3, args, n, names);
}

static PyObject *
accumulate(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    return by_few(self, accumulate_name, AS_GIVEN, 3, args, n, names);
}

static PyObject *
reduceat(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    return by_few(self, reduceat_name, AS_GIVEN, 4, args, n, names);
}

static PyObject *
outer(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    return by_few(self, outer_name, AS_OUTER, 2, args, n, names);
}

/* Update a small array at places that an array of integers names, by NumPy. */
static PyObject *
at_places(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *where = n == 3 && names == NULL && Py_TYPE(args[0]) == known.array ? operand_of(args[1]) : NULL;
    PyObject *by = where != NULL && PyArray_CheckExact(where) ? operand_of(args[2]) : NULL;
    PyArrayObject *target = by == NULL || !is_numpys(self) || !PyTypeNum_ISINTEGER(PyArray_TYPE((PyArrayObject *)where)) ? NULL : open_of((Handle *)args[0]);
    npy_intp bytes = target == NULL ? 0 : PyArray_NBYTES((PyArrayObject *)where);
    bytes += target != NULL && PyArray_CheckExact(by) ? PyArray_NBYTES((PyArrayObject *)by) : 0;
    if (target != NULL && PyArray_NBYTES(target) <= small_bytes() && bytes <= small_bytes()) {
        PyObject *given[4] = {((Function *)self)->numpys, (PyObject *)target, Py_NewRef(where), plain_of(by)};
        PyObject *found = given[3] == NULL ? NULL : PyObject_VectorcallMethod(at_name, given, 4, NULL);
        Py_XDECREF(given[3]);
        Py_DECREF(where);
        Py_DECREF(target);
        if (found != NULL || !is_refused())
            return found;
    }
    else
        Py_XDECREF(target);
    return PyErr_Occurred() ? NULL : by_class_behind(self, at_name, args, n, names);
}

static PyMethodDef function_methods[] = {
    {"reduce", (PyCFunction)(void (*)(void))reduce, METH_FASTCALL | METH_KEYWORDS,
     "reduce($self, /, array, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=True)\n--\n\n"
     "Fold along `axis`."},
    {"reduceat", (PyCFunction)(void (*)(void))reduceat, METH_FASTCALL | METH_KEYWORDS,
     "reduceat($self, /, array, indices, axis=0, dtype=None, out=None)\n--\n\nFolds of the slices that `indices` begin."},
    {"outer", (PyCFunction)(void (*)(void))outer, METH_FASTCALL | METH_KEYWORDS,
     "outer($self, A, B, /, **keywords)\n--\n\nThe function of every pair of elements."},
    {"accumulate", (PyCFunction)(void (*)(void))accumulate, METH_FASTCALL | METH_KEYWORDS,
     "accumulate($self, /, array, axis=0, dtype=None, out=None)\n--\n\nThe cumulative fold along `axis`."},
    {"at", (PyCFunction)(void (*)(void))at_places, METH_FASTCALL | METH_KEYWORDS,
     "at($self, a, indices, b=None, /)\n--\n\nApply in place at `indices`, repeated indices one after the other."},
    {NULL},
};

static PyObject *
function_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
#if PY_VERSION_HEX < 0x030C0000 /* later ones do so where a class has no `__call__` of its own */
    if (type->tp_call == PyVectorcall_Call)
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
#endif
    PyObject *self = type->tp_alloc(type, 0);
    if (self != NULL)
        ((Function *)self)->call = function_call;
    return self;
}

static int
function_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Function *)self)->numpys);
    return 0;
}

static int
function_clear(PyObject *self)
{
    Py_CLEAR(((Function *)self)->numpys);
    return 0;
}

static void
function_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    function_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject QuickFunction = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spartan_ng.api.core._quick.QuickFunction",
    .tp_basicsize = sizeof(Function),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "The plain case of calls of a universal function, in front of the method that knows all others.",
    .tp_members = function_members,
    .tp_methods = function_methods,
    .tp_vectorcall_offset = offsetof(Function, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = function_new,
    .tp_traverse = function_traverse,
    .tp_clear = function_clear,
    .tp_dealloc = function_dealloc,
};
