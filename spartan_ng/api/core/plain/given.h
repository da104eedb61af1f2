/* What a function of NumPy's gives at once where all that it is given is small, or no array. */

enum { DEEPEST = 3, MOST_ITEM = 16 };
/* Results are about as large as operands; as these broadcast together; as all of their products; as what loops over all
 * letters of the first argument make; as the first argument says, a shape; as the arguments say, a range; as the second
 * says how often there is each of the first; or are the only argument itself; a view of the first; Python's own objects;
 * numbers of a generator, as many as the last argument says; a copy of the first; or a view of it that is the same step
 * whatever its lengths are. Or as `num` or the third argument says, fifty without it; as the square of what the first says,
 * or is long, and the second adds; as the first as often as the second says. Or nothing is given, and the first written;
 * some of what a generator is given, in an order of its, or all of it, where it lies. Or a view of the first, no list. Or
 * two arrays are summed over axes of both, as the third argument says; or there are as many as the first has. */
enum { AS_GIVEN, AS_BROADCAST, AS_OUTER, AS_LOOPS, AS_SHAPE, AS_RANGE, AS_REPEATED, AS_ITSELF, AS_VIEW, AS_PYTHONS, AS_DRAWN, AS_COPY, AS_TURNED,
       AS_COUNTED, AS_SQUARE, AS_TILED, AS_WRITTEN, AS_CHOSEN, AS_SHUFFLED, AS_ROLLED, AS_CONTRACTED, AS_LIKE, SIZES };

/* What is given in a call. */
typedef struct {
    Py_ssize_t nbytes;
    double size; /* of what is broadcast together, at most */
    double listed; /* arrays, of those in lists, for each of another list */
    PyArrayObject *first;
    int alike;
    int derived; /* arrays of classes derived from NumPy's, -1 where none is taken */
} Given;
#define NOTHING_GIVEN ((Given){.size = 1, .listed = 1, .alike = 1, .derived = -1})
#define NOTHING_GIVEN_YET ((Given){.size = 1, .listed = 1, .alike = 1})

/* Whether an object is a text, or a date or a duration of NumPy's. */
static int
is_text_or_time(PyObject *a)
{
    return PyUnicode_CheckExact(a) || Py_IS_TYPE(a, &PyDatetimeArrType_Type) || Py_IS_TYPE(a, &PyTimedeltaArrType_Type)
           || Py_IS_TYPE(a, &PyUnicodeArrType_Type) || PyBytes_CheckExact(a) || Py_IS_TYPE(a, &PyStringArrType_Type);
}

static int
is_word(PyObject *a)
{
    return a == Py_None || is_number(a) || is_text_or_time(a);
}

static PyObject *given_value(PyObject *a, int depth, Given *given);

/* A list or a tuple with what NumPy takes instead of what it has: the same one where that is the same. */
static PyObject *
given_list(PyObject *listed, int depth, Given *given)
{
    Py_ssize_t n = PySequence_Fast_GET_SIZE(listed), i = 0;
    if (n > MOST_LISTED)
        return NULL;
    for (PyTypeObject *last = NULL; i < n; i++) { /* most that follow each other are of one class */
        PyObject *item = PySequence_Fast_GET_ITEM(listed, i);
        if (Py_TYPE(item) != last && (!is_word(item) || kind_of(Py_TYPE(item)) != NULL))
            break;
        last = Py_TYPE(item);
    }
    given->size *= n > 0 ? n : 1;
    if (i == n) {
        given->alike = 0;
        return Py_NewRef(listed);
    }
    given->listed *= n;
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
    int is_one_derived = depth == DEEPEST && given->derived >= 0 && is_derived(a);
    if (Py_TYPE(a) == known.array || PyArray_CheckExact(a) || is_one_derived) {
        PyArrayObject *shown = Py_TYPE(a) == known.array ? value_of((Handle *)a) : (PyArrayObject *)a;
        given->derived += is_one_derived;
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
    if (PyRange_Check(a)) {
        Py_ssize_t n = PySequence_Size(a);
        given->size *= n > 0 ? n : 1;
        given->alike = 0;
        PyErr_Clear(); /* of more than there can be */
        return n < 0 || n > MOST_LISTED ? NULL : Py_NewRef(a);
    }
    if (a == (PyObject *)&PyFloat_Type || a == (PyObject *)&PyLong_Type || a == (PyObject *)&PyBool_Type
        || a == (PyObject *)&PyComplex_Type || is_plain_dtype(a))
        return Py_NewRef(a);
    return NULL;
}

/* What results become, whose reference is taken: each of several by itself. */
static PyObject *
settled(PyObject *found, PyObject *const *given, PyObject **values, Py_ssize_t n)
{
    int is_list = PyList_CheckExact(found);
    if (PyBool_Check(found) || found == Py_None || PyLong_CheckExact(found) || PyArray_DescrCheck(found)
        || is_text_or_time(found))
        return found;
    if (PyArray_CheckExact(found) && PyArray_BASE((PyArrayObject *)found) != NULL && Py_REFCNT(found) == 1)
        return owned((PyArrayObject *)found);
    if ((!is_list && !PyTuple_Check(found)) || Py_REFCNT(found) != 1)
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

/* How many products each element of a contraction adds up, by the axes of the first array; 1 where nobody knows. */
static double
added_up(PyArrayObject *a, PyObject *axes)
{
    Py_ssize_t ndim = PyArray_NDIM(a), n = 2, from_end = axes == NULL || PyLong_CheckExact(axes);
    double products = 1;
    PyObject *first = from_end || !PyTuple_CheckExact(axes) || PyTuple_GET_SIZE(axes) != 2 ? axes : PyTuple_GET_ITEM(axes, 0);
    if (first == axes && !from_end)
        return 1;
    int is_one = !from_end && PyLong_CheckExact(first);
    if (axes != NULL && from_end)
        n = PyLong_AsSsize_t(axes);
    else if (!from_end && !is_one)
        n = PyTuple_CheckExact(first) || PyList_CheckExact(first) ? PySequence_Fast_GET_SIZE(first) : -1;
    else if (is_one)
        n = 1;
    for (Py_ssize_t i = 0; i < n && i < ndim; i++) {
        PyObject *axis = from_end || is_one ? first : PySequence_Fast_GET_ITEM(first, i);
        Py_ssize_t k = from_end ? ndim - 1 - i : PyLong_CheckExact(axis) ? PyLong_AsSsize_t(axis) : ndim;
        k += k < 0 ? ndim : 0;
        if (k < 0 || k >= ndim)
            return PyErr_Clear(), 1;
        products *= (double)PyArray_DIM(a, k);
    }
    PyErr_Clear(); /* a number of axes that is none of C's */
    return Py_MAX(products, 1);
}

/* Whether a contraction is NumPy's at once, as a product of matrices would be. */
static int
is_quick_contraction(PyObject *x, PyObject *y, PyObject *axes)
{
    if (!PyArray_CheckExact(x) || !PyArray_CheckExact(y))
        return 0;
    PyArrayObject *a = (PyArrayObject *)x, *b = (PyArrayObject *)y;
    double products = added_up(a, axes), small = (double)small_bytes();
    double flops = (double)PyArray_SIZE(a) * (double)PyArray_SIZE(b) / products;
    if (flops <= (double)known.flops && 8 * flops < small)
        return 1;
    double nbytes = (double)PyArray_NBYTES(a) + (double)PyArray_NBYTES(b);
    return flops <= (double)known.most_flops && nbytes <= small && 8 * flops / products <= small;
}

/* Whether what a function is given, and what it gives, is small; `values` are the arguments as NumPy is given them. */
static int
are_few(int kind, Given *given, PyObject *const *args, PyObject **values, Py_ssize_t n, PyObject *names)
{
    Py_ssize_t least = Py_MIN(known.least, small_bytes());
    double size;
    switch (kind) {
    case AS_LOOPS:
        size = PyUnicode_CheckExact(values[0]) ? loop_size(values[0], values + 1, n - 1) : listed_loop_size(values, n);
        if (size >= 0)
            return given->nbytes < least && size <= (double)known.looped;
        /* fall through */
    case AS_BROADCAST:
    case AS_OUTER:
        if (given->nbytes >= least)
            return 0;
        if (kind == AS_BROADCAST && given->alike && given->first != NULL
            && given->listed * (double)PyArray_NBYTES(given->first) < (double)least)
            return 1;
        return 8 * given->size <= (double)known.surely;
    case AS_CONTRACTED:
        return n >= 2 && is_quick_contraction(values[0], values[1], n > 2 || names != NULL ? values[2] : NULL);
    case AS_SHAPE:
    case AS_RANGE:
        size = kind == AS_SHAPE ? shape_size(args[0]) : range_size(args, n);
        if (PyErr_Occurred()) /* a length that is no number of C's */
            PyErr_Clear();
        return size >= 0 && MOST_ITEM * size < (double)least;
    case AS_COUNTED:
        size = counted_size(args, n, names) * given->size;
        return given->nbytes < least && size >= 0 && MOST_ITEM * size < (double)least;
    case AS_SQUARE:
        size = square_size(values, n);
        return given->nbytes < least && size >= 0 && MOST_ITEM * size < (double)least;
    case AS_TILED:
        size = n < 2 ? -1 : tiled_size(values[0], args[1]);
        return given->nbytes < least && size >= 0 && MOST_ITEM * size < 2 * (double)least;
    case AS_REPEATED:
        size = n < 2 ? -1 : repeated_size(values[0], values[1]);
        if (PyErr_Occurred())
            PyErr_Clear();
        return given->nbytes < least && size >= 0 && size * (double)PyArray_ITEMSIZE((PyArrayObject *)values[0]) < (double)least;
    default:
        return given->nbytes < least;
    }
}

/* Whether a result, which is no argument, shows an argument's memory: what sees that is made in Python. */
static int
is_view_of(PyObject *found, PyObject **values, Py_ssize_t n)
{
    PyObject *base = PyArray_CheckExact(found) ? PyArray_BASE((PyArrayObject *)found) : NULL;
    for (Py_ssize_t i = 0; base != NULL && i < n; i++)
        if (values[i] == found)
            return 0;
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

/* Whether an argument bounds the result by how many numbers it has, also as a list of them. */
static int
bounds_result(int size, Py_ssize_t place, PyObject *a)
{
    int takes = place == 0 ? size == AS_SQUARE || size == AS_TILED || size == AS_REPEATED : place == 1 && size == AS_REPEATED;
    int depth = size == AS_SQUARE ? 1 : DEEPEST_LISTED; /* the diagonal of a matrix is a view of it */
    return takes && (PyList_CheckExact(a) || PyTuple_CheckExact(a)) && counted(a, depth) > 0;
}

/* What a result becomes where some arguments' classes are derived from NumPy's array, and say what it is: nothing is asked
 * twice, as that may be a program's code. */
static PyObject *
settled_by_class(PyObject *found, PyObject *const *given, PyObject **values, Py_ssize_t n)
{
    int is_known = is_derived(found) || PyBool_Check(found) || found == Py_None || PyLong_CheckExact(found);
    return is_known ? found : finished(found, given, values, n);
}

/* What NumPy's function gives for all arguments, those of keywords last, where what it is given, and what it gives, is
 * small; NULL, also without an error, where Python is to see to it. */
static PyObject *
at_once(PyObject *numpys, int size, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *values[MOST_GIVEN + 1] = {NULL}, *found = NULL;
    Py_ssize_t total = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names)), i = 0;
    Given given = NOTHING_GIVEN_YET;
    for (; i < total; i++) {
        PyObject *a = bounds_result(size, i, args[i]) ? PyArray_FROM_O(args[i]) : Py_NewRef(args[i]);
        if (a == NULL) { /* lists of unlike lengths, of which ours says the same */
            PyErr_Clear();
            goto done;
        }
        values[i + 1] = given_value(a, DEEPEST, &given);
        Py_DECREF(a);
        if (values[i + 1] == NULL)
            goto done;
    }
    if (!are_few(size, &given, args, values + 1, n, names))
        goto done;
    found = PyObject_Vectorcall(numpys, values + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
    if (found == NULL) {
        if (given.derived == 0
            && (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_TypeError)
                || PyErr_ExceptionMatches(PyExc_LookupError))) /* ours name the shapes */
            PyErr_Clear();
        goto done;
    }
    if (given.derived == 0 && (is_view_of(found, values + 1, total) || ((size == AS_SHAPE || size == AS_LIKE) && holds_objects(found)))) {
        Py_CLEAR(found);
        goto done;
    }
    found = given.derived ? settled_by_class(found, args, values + 1, total) : settled(found, args, values + 1, total);
done:
    for (i = 1; i <= total && values[i] != NULL; i++)
        Py_DECREF(values[i]);
    return found;
}

/* Have NumPy's function write few values into the first argument, a small array that nobody else has a claim on; NULL, also
 * without an error, where Python is to see to it. */
static PyObject *
written_at_once(PyObject *numpys, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyArrayObject *target = Py_TYPE(args[0]) == known.array ? open_of((Handle *)args[0]) : NULL;
    int is_open = target != NULL && PyArray_ISWRITEABLE(target) && PyArray_NBYTES(target) <= small_bytes();
    PyObject *found = is_open ? at_once(numpys, AS_GIVEN, args, n, names) : NULL;
    Py_XDECREF(target);
    return found;
}

/* The first byte of an array, and the one behind its last, whatever way its axes go. */
static void
ends_of(PyArrayObject *a, char **first, char **end)
{
    *first = PyArray_BYTES(a);
    *end = *first + PyArray_ITEMSIZE(a);
    for (int axis = 0; axis < PyArray_NDIM(a); axis++) {
        npy_intp reached = (PyArray_DIM(a, axis) - 1) * PyArray_STRIDE(a, axis);
        reached < 0 ? (*first += reached) : (*end += reached);
    }
}

/* Whether no array of numbers that is an argument, or in a list that is one, lies where a result goes; of other arrays
 * nobody knows. */
static int
lies_beside(PyArrayObject *target, PyObject *a, int depth)
{
    if (PyList_CheckExact(a) || PyTuple_CheckExact(a)) {
        int is_beside = depth > 0;
        for (Py_ssize_t i = 0; is_beside && i < PySequence_Fast_GET_SIZE(a); i++)
            is_beside = lies_beside(target, PySequence_Fast_GET_ITEM(a, i), depth - 1);
        return is_beside;
    }
    if (Py_TYPE(a) != known.array && !PyArray_Check(a))
        return 1;
    PyArrayObject *shown = numbers_of(a);
    if (shown == NULL)
        return 0;
    char *first, *end, *start, *stop;
    ends_of(shown, &first, &end);
    ends_of(target, &start, &stop);
    return end <= start || stop <= first;
}

/* Where the keyword `out` of a call is among all arguments, if it says an array of ours or nothing; -1 of others. */
static Py_ssize_t
place_asked(PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    for (Py_ssize_t i = names == NULL ? -1 : PyTuple_GET_SIZE(names) - 1; i >= 0; i--)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "out") == 0)
            return args[n + i] == Py_None || Py_TYPE(args[n + i]) == known.array ? n + i : -1;
    return -1;
}

/* Have NumPy's function write what it gives into the small array that is the argument at `place`, which nobody else has a
 * claim on and no argument shows, and has no more axes than the first, as NumPy's scans do not look at more; NULL, also
 * without an error, where Python is to see to it. */
static PyObject *
placed_at_once(PyObject *numpys, Py_ssize_t place, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    Py_ssize_t total = n + PyTuple_GET_SIZE(names);
    PyArrayObject *target = open_of((Handle *)args[place]), *first = numbers_of(args[0]);
    int is_open = target != NULL && first != NULL && PyArray_NDIM(target) <= PyArray_NDIM(first)
                  && PyArray_ISWRITEABLE(target) && PyArray_NBYTES(target) <= small_bytes();
    for (Py_ssize_t i = 0; is_open && i < total; i++)
        is_open = i == place || lies_beside(target, args[i], DEEPEST);
    PyObject *found = is_open ? at_once(numpys, AS_GIVEN, args, n, names) : NULL;
    Py_XDECREF(target);
    if (found != NULL && found != args[place]) /* it forgets where its result goes */
        Py_CLEAR(found);
    return found;
}
