/* Operands as NumPy takes them, and what its results become. */

/* The object as a NumPy array of numbers, or NULL; no reference is taken, here and below. */
static PyArrayObject *
of_numbers(PyObject *value)
{
    if (value == NULL || !PyArray_CheckExact(value))
        return NULL;
    int kind = PyArray_TYPE((PyArrayObject *)value);
    return PyTypeNum_ISNUMBER(kind) || PyTypeNum_ISBOOL(kind) ? (PyArrayObject *)value : NULL;
}

/* An array's cell, unless it is one of another class, which has ways of its own. */
static Cell *
cell_of(Handle *array)
{
    PyObject *cell = array->cell;
    return cell != NULL && Py_TYPE(cell) == known.cell ? (Cell *)cell : NULL;
}

/* What an array shows, if that is known, whatever its elements are. */
static PyArrayObject *
value_of(Handle *array)
{
    Cell *cell = cell_of(array);
    if (cell == NULL || array->views == NULL || !PyTuple_CheckExact(array->views))
        return NULL;
    PyObject *value = cell->value;
    if (PyTuple_GET_SIZE(array->views) > 0)
        value = value != NULL && value != Py_None && array->state == value ? array->shown : NULL;
    return value != NULL && PyArray_CheckExact(value) ? (PyArrayObject *)value : NULL;
}

/* What an array shows, if that is known and numbers. */
static PyArrayObject *
shown_of(Handle *array)
{
    return of_numbers((PyObject *)value_of(array));
}

static PyTypeObject *mapped_files; /* NumPy's class of them */

/* Whether an object is of a class derived from NumPy's arrays that has rules of its own (`kinds.is_subclass`). */
static int
is_derived(PyObject *a)
{
    return PyArray_Check(a) && !PyArray_CheckExact(a) && !PyObject_TypeCheck(a, mapped_files);
}

/* The elements of an array of a class derived from NumPy's that says nothing itself of what functions give (a new
 * reference); NULL, without an error, of others. */
static PyObject *
elements_beside(PyObject *a)
{
    PyObject *own = PyObject_GetAttr((PyObject *)Py_TYPE(a), array_ufunc_name);
    PyObject *numpys = PyObject_GetAttr((PyObject *)&PyArray_Type, array_ufunc_name);
    PyObject *found = own != NULL && own == numpys ? PyArray_View((PyArrayObject *)a, NULL, &PyArray_Type) : NULL;
    Py_XDECREF(own);
    Py_XDECREF(numpys);
    PyErr_Clear();
    if (found != NULL && of_numbers(found) == NULL)
        Py_CLEAR(found);
    return found;
}

/* Whether elements are numbers, texts or times. */
static int
is_plain_kind(PyArrayObject *a)
{
    int type = PyArray_TYPE(a);
    return PyTypeNum_ISNUMBER(type) || PyTypeNum_ISBOOL(type) || PyTypeNum_ISDATETIME(type) || PyTypeNum_ISSTRING(type);
}

static int settle_all(void);

/* What an array shows as memory to write to, if nobody else has a claim on it (a new reference), else NULL; as `_open`
 * of the methods finds it out. What is pending may be made of it, and is made first. */
static PyArrayObject *
opened(Handle *array, PyArrayObject *shown)
{
    Cell *cell = cell_of(array);
    if (settle_all() < 0)
        return NULL;
    if (shown == NULL || cell == NULL || (cell->node != NULL && cell->node != Py_None))
        return NULL;
    if (!cell->settled && (cell->borrowed || cell->frozen || cell->blank))
        return NULL;
    cell->settled = 1;
    cell->tests = 0;
    Py_INCREF(shown);
    return shown;
}

static PyArrayObject *
open_of(Handle *array)
{
    return opened(array, shown_of(array));
}

/* Whether an object's class is in a set. */
static int
is_among(PyObject *classes, PyObject *a)
{
    int is_in = PySet_Contains(classes, (PyObject *)Py_TYPE(a));
    if (is_in < 0) /* a class whose own class has an odd `__hash__` */
        PyErr_Clear();
    return is_in == 1;
}

static int
is_number(PyObject *a)
{
    return PyFloat_CheckExact(a) || PyLong_CheckExact(a) || is_among(known.numbers, a);
}

/* The numbers of an array, ours or NumPy's own; else NULL. */
static PyArrayObject *
numbers_of(PyObject *a)
{
    return Py_TYPE(a) == known.array ? shown_of((Handle *)a) : of_numbers(a);
}

/* An operand as NumPy takes it: an array's elements, or a number; else NULL. */
static PyObject *
operand_of(PyObject *a)
{
    if (Py_TYPE(a) == known.array || PyArray_CheckExact(a))
        return (PyObject *)numbers_of(a);
    return is_number(a) ? a : NULL;
}

/* A class of our numbers, and the class of NumPy's that it is derived from, which has the same fields. */
typedef struct {
    PyTypeObject *ours, *numpys;
} NumberKind;

enum { MOST_KINDS = 24 };
static NumberKind number_kinds[MOST_KINDS];
static int kinds_count;

/* What kind of numbers a class of ours has; NULL for another class. */
static NumberKind *
kind_of(PyTypeObject *type)
{
    for (NumberKind *kind = number_kinds; kind < number_kinds + kinds_count; kind++)
        if (kind->ours == type)
            return kind;
    return NULL;
}

/* A number in a class of the other kind, of the same fields. */
static PyObject *
number_as(PyTypeObject *type, PyObject *a)
{
    PyObject *number = type->tp_alloc(type, 0);
    if (number != NULL)
        memcpy((char *)number + sizeof(PyObject), (char *)a + sizeof(PyObject), type->tp_basicsize - sizeof(PyObject));
    return number;
}

/* An operand as NumPy is given it (a new reference): it looks for long at a class that it does not know. */
static PyObject *
plain_of(PyObject *x)
{
    NumberKind *kind = PyArray_CheckExact(x) ? NULL : kind_of(Py_TYPE(x));
    return kind == NULL ? Py_NewRef(x) : number_as(kind->numpys, x);
}

/* Elements of what two arrays are broadcast to, or more, if they are not. */
static double
broadcast_size(PyArrayObject *a, PyArrayObject *b)
{
    int of_a = PyArray_NDIM(a), of_b = PyArray_NDIM(b);
    double size = 1;
    for (int i = 1; i <= Py_MAX(of_a, of_b); i++) {
        npy_intp x = i <= of_a ? PyArray_DIM(a, of_a - i) : 1, y = i <= of_b ? PyArray_DIM(b, of_b - i) : 1;
        size *= (double)Py_MAX(x, y);
    }
    return size;
}

/* Whether operands are small, and what is made of them is, however they broadcast. */
static int
stay_small(PyObject *x, PyObject *y)
{
    PyArrayObject *a = PyArray_CheckExact(x) ? (PyArrayObject *)x : NULL;
    PyArrayObject *b = PyArray_CheckExact(y) ? (PyArrayObject *)y : NULL;
    Py_ssize_t of_a = a == NULL ? 0 : PyArray_NBYTES(a), of_b = b == NULL ? 0 : PyArray_NBYTES(b);
    if (of_a + of_b >= small_bytes())
        return 0;
    return a == NULL || b == NULL || of_a * PyArray_SIZE(b) <= known.surely || PyArray_SAMESHAPE(a, b)
           || 8 * broadcast_size(a, b) < (double)small_bytes();
}

/* A further array over a cell; the cell's, the views' and the element's references are taken. */
static PyObject *
made(PyObject *cell, PyObject *views, PyObject *state, PyObject *shown)
{
    PyObject *array = again(known.array, &spare_arrays);
    if (array == NULL) {
        Py_DECREF(cell);
        Py_DECREF(views);
        Py_XDECREF(shown);
        return NULL;
    }
    Handle *h = (Handle *)array;
    h->cell = cell;
    h->views = views;
    h->state = Py_NewRef(state);
    h->shown = shown;
    return array;
}

/* NumPy's number as one of ours, which has the same fields; NULL without an error if it is no number. */
static PyObject *
numbered(PyObject *found)
{
    if (Py_TYPE(found) == known.number)
        return Py_NewRef(found);
    PyObject *ours = PyDict_GetItemWithError(known.ours, (PyObject *)Py_TYPE(found));
    if (ours == NULL || ours == (PyObject *)Py_TYPE(found))
        return ours == NULL ? NULL : Py_NewRef(found);
    return number_as((PyTypeObject *)ours, found);
}

/* What `wrap` makes of a result, whose reference is taken. */
static PyObject *
wrapped(PyObject *found)
{
    if (PyArray_CheckExact(found)) {
        PyObject *cell = again(known.cell, &spare_cells);
        if (cell == NULL) {
            Py_DECREF(found);
            return NULL;
        }
        ((Cell *)cell)->value = found;
        return made(cell, Py_NewRef(no_views), Py_None, NULL);
    }
    PyObject *number = numbered(found);
    if (number == NULL && !PyErr_Occurred())
        number = call_one(known.wrap, found);
    Py_DECREF(found);
    return number;
}

/* An array of ours that reads one of NumPy's own where it lies (a new reference), as `as_handle` makes it. */
static PyObject *
borrowed_from(PyArrayObject *a)
{
    PyObject *array = wrapped(Py_NewRef((PyObject *)a));
    if (array != NULL)
        ((Cell *)((Handle *)array)->cell)->borrowed = 1;
    return array;
}

/* What a function's result becomes, whose reference is taken: an operand that is given back stays the array that
 * it is, and what is a view of something is copied. */
static PyObject *
finished(PyObject *found, PyObject *const *given, PyObject **values, Py_ssize_t n)
{
    if (PyArray_CheckExact(found) && PyArray_BASE((PyArrayObject *)found) == NULL && Py_REFCNT(found) == 1
        && PyArray_ISWRITEABLE((PyArrayObject *)found))
        return wrapped(found);
    for (Py_ssize_t i = 0; i < n; i++)
        if (values[i] == found) {
            Py_DECREF(found);
            return PyArray_CheckExact(given[i]) ? borrowed_from((PyArrayObject *)given[i]) : Py_NewRef(given[i]);
        }
    PyObject *made = numbered(found);
    if (made == NULL && !PyErr_Occurred()) {
        PyObject *all = PyTuple_New(n), *listed = PyList_New(n);
        for (Py_ssize_t i = 0; all != NULL && listed != NULL && i < n; i++) {
            PyTuple_SET_ITEM(all, i, Py_NewRef(given[i]));
            PyList_SET_ITEM(listed, i, Py_NewRef(values[i]));
        }
        made = all == NULL || listed == NULL ? NULL : call_three(known.finish, found, all, listed);
        Py_XDECREF(all);
        Py_XDECREF(listed);
    }
    Py_DECREF(found);
    return made;
}

/* A view of something as an array, its reference taken: with memory of its own, or with that of all of an array
 * that nobody else has. */
static PyObject *
owned(PyArrayObject *view)
{
    PyObject *base = PyArray_BASE(view);
    if (PyArray_CheckExact(base) && Py_REFCNT(base) == 1 && PyArray_BASE((PyArrayObject *)base) == NULL
        && PyArray_NBYTES((PyArrayObject *)base) == PyArray_NBYTES(view) && PyArray_NBYTES(view) > 0
        && PyArray_ISWRITEABLE(view))
        return wrapped((PyObject *)view);
    PyObject *copied = PyArray_NewCopy(view, NPY_KEEPORDER);
    Py_DECREF(view);
    return copied == NULL ? NULL : wrapped(copied);
}

/* A view of an array that NumPy has made, its reference taken, and what it is to us, step by step. NULL, also without an
 * error, where the methods have to make it. */
static PyObject *
seen_through(Handle *array, PyObject *const *steps, Py_ssize_t count, PyObject *element)
{
    Cell *cell = (Cell *)array->cell;
    Py_ssize_t n = PyTuple_GET_SIZE(array->views);
    PyObject *views = NULL;
    if (n >= known.chain || (n == 0 && cell->frozen))
        goto none;
    if (n == 0 && (cell->owner == NULL || cell->owner == Py_None)) {
        PyObject *owner = PyWeakref_NewRef((PyObject *)array, NULL);
        if (owner == NULL)
            goto none;
        Py_XSETREF(cell->owner, owner);
    }
    views = PyTuple_New(n + count);
    if (views == NULL)
        goto none;
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(views, i, Py_NewRef(PyTuple_GET_ITEM(array->views, i)));
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SET_ITEM(views, n + i, Py_NewRef(steps[i]));
    return made(Py_NewRef((PyObject *)cell), views, cell->value, element);
none:
    Py_DECREF(element);
    return NULL;
}

/* The same of one step, as a basic key is. */
static PyObject *
seen(Handle *array, PyObject *key, PyObject *element)
{
    return seen_through(array, &key, 1, element);
}

/* Whether a part of a key has no code of its own. */
static int
is_silent(PyObject *part)
{
    PySliceObject *slice = (PySliceObject *)part;
    if (!PySlice_Check(part))
        return 1;
    PyObject *bounds[3] = {slice->start, slice->stop, slice->step};
    for (int i = 0; i < 3; i++)
        if (bounds[i] != Py_None && !PyLong_CheckExact(bounds[i]))
            return 0;
    return 1;
}

/* Whether a key has no code of its own. */
static int
is_silent_key(PyObject *key)
{
    int all = is_silent(key);
    for (Py_ssize_t i = 0; all && PyTuple_CheckExact(key) && i < PyTuple_GET_SIZE(key); i++)
        all = is_silent(PyTuple_GET_ITEM(key, i));
    return all;
}

/* Whether a value is the view that the same key has made, as what `a[k] += b` ends with is: its memory is where it is to be
 * written. */
static int
is_own_view(Handle *array, PyObject *key, PyObject *value)
{
    Handle *view = (Handle *)value;
    if (Py_TYPE(value) != known.array || view->cell != array->cell || !PyTuple_CheckExact(array->views))
        return 0;
    PyArrayObject *shown = value_of(view);
    Py_ssize_t n = PyTuple_GET_SIZE(array->views);
    if (shown == NULL || !PyArray_ISWRITEABLE(shown) || !cell_of(array)->settled || PyTuple_GET_SIZE(view->views) != n + 1
        || PyTuple_GET_ITEM(view->views, n) != key || !is_silent_key(key))
        return 0;
    while (n > 0 && PyTuple_GET_ITEM(view->views, n - 1) == PyTuple_GET_ITEM(array->views, n - 1))
        n--;
    return n == 0;
}
