/* How expressions are written down: what an operator is given, and whether it is the last one (`expressions.h`). */

/* A new expression without functions, and the array that is pending. */
static PyObject *
new_pending(int type, int axes, const npy_intp *shape)
{
    PyObject *array = again(known.array, &spare_arrays);
    Expression *e = array == NULL ? NULL : PyObject_New(Expression, &ExpressionType);
    if (e == NULL) {
        Py_XDECREF(array);
        return NULL;
    }
    e->type = type;
    e->axes = axes;
    memcpy(e->shape, shape, axes * sizeof *shape);
    e->places = e->count = 0;
    e->recurring = NULL;
    e->buffered = e->is_private = 1;
    e->array = array;
    e->found = NULL;
    e->thread = PyThread_get_thread_ident();
    e->before = last_pending;
    e->after = NULL;
    *(last_pending == NULL ? &all_pending : &last_pending->after) = e;
    last_pending = e;
    Handle *h = (Handle *)array;
    h->cell = (PyObject *)e;
    h->views = Py_NewRef(no_views);
    h->state = Py_NewRef(Py_None);
    Py_SET_TYPE(array, (PyTypeObject *)Py_NewRef(known.pending));
    Py_DECREF(known.array);
    return array;
}

static void
pending_dealloc(PyObject *self)
{
    Expression *e = expression_of(self);
    PyObject_GC_UnTrack(self); /* nobody finds it any more */
    if (e != NULL && e->thread != NOBODY)
        tell_of_dropped(e);
    Py_SET_TYPE(self, (PyTypeObject *)Py_NewRef(known.array));
    Py_DECREF(known.pending);
    array_dealloc(self);
}

static PyObject *
pending_attribute(PyObject *self, PyObject *name)
{
    return finish_pending(self) < 0 ? NULL : PyObject_GetAttr(self, name);
}

static int
set_pending_attribute(PyObject *self, PyObject *name, PyObject *value)
{
    return finish_pending(self) < 0 ? -1 : PyObject_SetAttr(self, name, value);
}

/* `learn_expressions(pending, ahead, raises, package, where, square, reciprocal, sqrt)`: what class arrays are of that are
 * pending, what reads code, what says whether errors may be seen at once, whose functions the code calls, and which of NumPy's
 * choose and are powers. */
static PyObject *
learn_expressions(PyObject *module, PyObject *args)
{
    PyTypeObject *type;
    PyObject *ahead, *raises, *package, *where, *square, *reciprocal, *sqrt;
    if (!PyArg_ParseTuple(args, "O!OOOOO!O!O!:learn_expressions", &PyType_Type, &type, &ahead, &raises, &package, &where, &PyUFunc_Type,
                          &square, &PyUFunc_Type, &reciprocal, &PyUFunc_Type, &sqrt))
        return NULL;
    if (known.array == NULL || type->tp_base != known.array || type->tp_basicsize != sizeof(Handle)) {
        PyErr_SetString(PyExc_TypeError, "learn_expressions: a class of another kind");
        return NULL;
    }
    type->tp_dealloc = pending_dealloc;
    type->tp_getattro = pending_attribute;
    type->tp_setattro = set_pending_attribute;
    PyType_Modified(type);
    Py_XSETREF(known.pending, (PyTypeObject *)Py_NewRef(type));
    Py_XSETREF(known.ahead, Py_NewRef(ahead));
    Py_XSETREF(known.raises, Py_NewRef(raises));
    Py_XSETREF(known.package, Py_NewRef(package));
    Py_XSETREF(known.where, Py_NewRef(where));
    Py_XSETREF(known.square, Py_NewRef(square));
    Py_XSETREF(known.reciprocal, Py_NewRef(reciprocal));
    Py_XSETREF(known.sqrt, Py_NewRef(sqrt));
    Py_RETURN_NONE;
}

/* Whether nobody's code runs where a reference to an array goes. */
static int
goes_silently(PyArrayObject *a)
{
    PyObject *base = PyArray_BASE(a);
    return Py_REFCNT(a) > 1
           || (((PyArrayObject_fields *)a)->weakreflist == NULL && base != NULL && PyArray_CheckExact(base) && Py_REFCNT(base) > 1);
}

/* Whether an array, or a number, is what an expression has at a place. */
static int
is_at_place(const Expression *e, int i, PyArrayObject *array, const double *number)
{
    PyArrayObject *other = e->arrays[i];
    return array == NULL ? other == NULL && memcmp(e->numbers[i], number, sizeof e->numbers[i]) == 0
                         : other != NULL && PyArray_TYPE(other) == PyArray_TYPE(array) && is_same(other, array)
                               && goes_silently(array);
}

/* The place of an array, whose reference is taken, or of a number: that of the same one, if it is there. */
static int
place_in(Expression *e, PyArrayObject *array, const double *number)
{
    for (int i = 0; i < e->places; i++)
        if (is_at_place(e, i, array, number)) {
            Py_XDECREF(array);
            return i;
        }
    e->arrays[e->places] = array;
    memcpy(e->numbers[e->places], number, sizeof e->numbers[e->places]);
    return e->places++;
}

/* How many places an expression would get by another one's. */
static int
further_places(const Expression *e, const Expression *other)
{
    int found = 0;
    for (int k = 0; k < other->places; k++) {
        int is_there = 0;
        for (int i = 0; i < e->places && !is_there; i++)
            is_there = is_at_place(e, i, other->arrays[k], other->numbers[k]);
        found += !is_there;
    }
    return found;
}

/* Move what another expression has to the end of this one. */
static void
append_expression(Expression *e, Expression *other)
{
    int places[MOST_SHARED];
    for (int i = 0; i < other->places; i++)
        places[i] = place_in(e, other->arrays[i], other->numbers[i]);
    for (int k = 0; k < other->count; k++) {
        Called *to = &e->called[e->count + k];
        *to = other->called[k];
        for (int i = 0; i < to->n; i++)
            to->operands[i] = to->operands[i] >= 0 ? places[to->operands[i]] : ~(~to->operands[i] + e->count);
    }
    e->is_private = e->is_private && other->is_private;
    e->count += other->count;
    other->places = other->count = 0;
    other->thread = NOBODY;
}

/* Whether nobody but this package has an array's memory. */
static int
is_private(PyObject *a)
{
    Cell *cell = Py_TYPE(a) == known.array ? cell_of((Handle *)a) : NULL;
    return cell != NULL && !cell->shared && !cell->borrowed && cell->lent == 0;
}

static int
is_large_enough(const Operand *o)
{
    return o->array != NULL && PyArray_SIZE(o->array) >= LEAST_PENDING;
}

/* What a function is given; how large the expression becomes by it, in places, functions and buffers; the bytes of the largest
 * array, or of what has been read ahead of, where that is pending. */
typedef struct {
    Operand operands[MOST_TAKEN];
    int n, places, count, buffered, is_pending, is_large, is_private;
    npy_intp bytes;
} Offered;

/* Learn what is given: 0 where an operand is none of an expression's, or it would be too large. */
static int
learn_given(Offered *all, PyObject *const *given, int n)
{
    const Expression *first = NULL;
    *all = (Offered){.n = n, .count = 1, .is_private = 1};
    for (int i = 0; i < n; i++) {
        Operand *o = &all->operands[i];
        o->pending = expression_of(given[i]);
        if (o->pending != NULL) {
            if (Py_REFCNT(given[i]) != 1 || o->pending->found != NULL)
                return 0;
            all->places += first == NULL ? o->pending->places : further_places(first, o->pending);
            first = first == NULL ? o->pending : first;
            all->count += o->pending->count;
            all->is_pending = 1;
            all->bytes = (npy_intp)read_after_bytes;
            all->is_private = all->is_private && o->pending->is_private;
            continue;
        }
        PyObject *plain = operand_of(given[i]);
        if (plain == NULL)
            return 0;
        if (PyArray_CheckExact(plain))
            o->array = (PyArrayObject *)plain;
        else
            o->number = plain;
        all->is_private = all->is_private && (o->array == NULL || is_private(given[i]));
        all->is_large = all->is_large || is_large_enough(o);
        all->bytes = o->array == NULL ? all->bytes : Py_MAX(all->bytes, PyArray_NBYTES(o->array));
        all->places++;
    }
    return (all->is_pending || all->is_large) && all->places <= MOST_SHARED && all->count <= MOST_OPERATORS;
}

/* Have operands be of a type that the function takes, but numbers; 0 where one has no loop for that, or the expression
 * would be too large. */
static int
are_cast(Offered *all, int first, int type)
{
    int held = 0;
    for (int i = 0; i < all->n; i++) {
        Operand *o = &all->operands[i];
        if (i >= first && o->number == NULL && o->type != type) {
            o->cast = casting(o->type, type);
            if (o->cast == NULL)
                return 0;
            all->count++;
        }
        if (o->pending != NULL)
            all->buffered = Py_MAX(all->buffered, o->pending->buffered + held);
        held += o->pending != NULL || o->cast != NULL;
    }
    all->buffered = Py_MAX(all->buffered, held + 1); /* for what is cast, or the result */
    return all->count <= MOST_OPERATORS && all->buffered <= MOST_BUFFERED;
}

/* Add a function of what is given to the expression of an operand, or to a new one; the array that is pending (a new
 * reference). */
static PyObject *
with_function(Called called, PyObject *const *given, Offered *all, int type, int axes, const npy_intp *shape)
{
    PyObject *array = NULL;
    for (int i = 0; array == NULL && i < all->n; i++)
        array = all->operands[i].pending != NULL ? Py_NewRef(given[i]) : NULL;
    if (array == NULL)
        array = new_pending(called.type, axes, shape);
    if (array == NULL)
        return NULL;
    Expression *e = (Expression *)((Handle *)array)->cell;
    int own = e->count - 1;
    for (int i = 0; i < all->n; i++) {
        Operand *o = &all->operands[i];
        if (o->pending != NULL && o->pending != e)
            append_expression(e, o->pending);
        int at = o->pending == e      ? ~own
                 : o->pending != NULL ? ~(e->count - 1)
                                      : place_in(e, (PyArrayObject *)Py_XNewRef((PyObject *)o->array), o->value);
        if (o->cast != NULL) {
            e->called[e->count] = (Called){.name = called.name, .loop = o->cast, .n = 1, .type = type, .at = called.at, .operands = {at},
                                               .is_cast = 1};
            at = ~e->count++;
        }
        called.operands[i] = at;
    }
    e->called[e->count++] = called;
    e->type = called.type;
    e->buffered = all->buffered;
    e->is_private = all->is_private;
    return array;
}

/* Whether a result is large enough to be worked on with others, and small enough to be made at once. */
static int
is_of_some_size(const npy_intp *shape, int axes, npy_intp itemsize)
{
    double size = 1;
    for (int axis = 0; axis < axes; axis++)
        size *= (double)shape[axis];
    return size >= LEAST_PENDING && size * itemsize <= (double)small_bytes();
}

/* Whether an operand is better stretched by NumPy (`stretches_few`). */
static int
any_stretches_few(const Offered *all, const npy_intp *shape, int axes)
{
    for (int i = 0; i < all->n; i++) {
        const Operand *o = &all->operands[i];
        int ndim = o->pending != NULL ? o->pending->axes : o->array != NULL ? PyArray_NDIM(o->array) : 0;
        if (stretches_few(o->pending != NULL ? o->pending->shape : o->array != NULL ? PyArray_DIMS(o->array) : NULL, ndim, shape, axes))
            return 1;
    }
    return 0;
}

/* What a function of NumPy's gives, as an array that is pending, or of all functions that its operands are made by (a new
 * reference); NULL without an error where it is done by itself. The interpreter has called it, or
 * this operator, if that is not NULL. */
static PyObject *
in_expression(PyObject *function, PyObject *const *given, int n, const Operator *op, const char *callers)
{
    Offered all;
    int is_where = function == known.where;
    PyUFuncObject *f = (PyUFuncObject *)function;
    if (known.pending == NULL || function == NULL || n > MOST_TAKEN || !learn_given(&all, given, n))
        return NULL;
    if (!is_where && (!Py_IS_TYPE(function, &PyUFunc_Type) || f->nin != n || f->nout != 1 || f->core_enabled))
        return NULL;
    if (!all.is_pending && op != NULL && !is_given_to_interpreter(op, callers))
        return NULL;
    Whereabouts here;
    if (find_whereabouts(&here, all.bytes, all.is_private) < 0)
        return NULL;
    for (int i = 0; i < n; i++)
        if (all.operands[i].pending != NULL && !is_taker(all.operands[i].pending, here))
            return NULL;
    if (here.next == 0 && !all.is_pending && !is_where)
        return NULL;
    Called called;
    npy_intp shape[MOST_AXES], bytes = 0;
    int type, axes = fitting(all.operands, n, is_where, &type, shape, &bytes);
    if (axes < 0 || bytes > small_bytes() || !called_for(function, all.operands, n, &type, &called) || !are_cast(&all, is_where, type)
        || !is_of_some_size(shape, axes, bytes_of(called.type)) || any_stretches_few(&all, shape, axes))
        return NULL;
    for (int i = 0; i < n; i++)
        if (all.operands[i].number != NULL
            && !as_element(all.operands[i].number, type, (char *)all.operands[i].value))
            return NULL;
    called.at = here.at;
    PyObject *array = with_function(called, given, &all, type, axes, shape);
    if (array == NULL)
        return NULL;
    Expression *e = (Expression *)((Handle *)array)->cell;
    e->awaited = here;
    if (here.next != 0)
        return array;
    e->thread = NOBODY;
    PyArrayObject *made = settle_all() < 0 ? NULL : done_together(e, written_over_by(e)); /* those before it have to warn before it */
    Py_DECREF(array);
    return made == NULL ? NULL : wrapped((PyObject *)made);
}

/* The same of a function of ours that is called. */
static PyObject *
joined(PyObject *self, PyObject *function, PyObject *const *args, size_t flags)
{
    Py_ssize_t n = PyVectorcall_NARGS(flags);
    if (n > MOST_TAKEN || !is_called_at_call(self, args, flags))
        return NULL;
    return in_expression(function, args, (int)n, NULL, NULL);
}

/* Whether an expression's results may be written where `target` lies, while what it is made of is read. */
static int
fits_into(const Expression *e, PyArrayObject *target, int type)
{
    if (PyArray_TYPE(target) != type || PyArray_NDIM(target) != e->axes || !PyArray_ISBEHAVED(target) || !is_in_order(target)
        || !PyArray_CompareLists(PyArray_DIMS(target), e->shape, e->axes) || !is_spread(target))
        return 0;
    for (int i = 0; i < e->places; i++)
        if (e->arrays[i] != NULL && !is_apart(target, e->arrays[i]))
            return 0;
    return 1;
}

/* Whether memory has to keep what it has until an error that comes before a result is written to it has been seen; -1 with an
 * error. */
static int
errors_come_first(void)
{
    PyObject *said = PyObject_CallNoArgs(known.raises);
    int is_so = said == NULL ? -1 : said == Py_True;
    Py_XDECREF(said);
    return is_so;
}

/* Write what is pending, and has been taken from the stack, into memory that has room for it: 1, 0 where it is to be made
 * first, -1 with an error. */
static int
done_into(Expression *e, PyArrayObject *target)
{
    if (e->count == 0 || e->found != NULL || !fits_into(e, target, e->type))
        return 0;
    int is_later = errors_come_first();
    if (is_later < 0)
        return -1;
    e->thread = NOBODY;
    PyArrayObject *found = done_together(e, is_later ? NULL : target);
    int failed = found == NULL || (is_later && copied_to(target, found) < 0);
    Py_XDECREF(found);
    return failed ? -1 : 1;
}

/* Write what an operator gives for memory and what is pending over the memory; as `done_into` says. */
static int
taken_into(const Operator *op, PyArrayObject *target, Expression *e)
{
    PyUFuncObject *f = (PyUFuncObject *)op->numpys;
    Called called;
    int type = e->type;
    if (f == NULL || !Py_IS_TYPE(f, &PyUFunc_Type) || f->nin != 2 || f->nout != 1 || e->count == 0
        || e->found != NULL || e->count == MOST_OPERATORS || e->places == MOST_SHARED || !called_for(op->numpys, NULL, 2, &type, &called)
        || type != e->type || called.type != e->type || !fits_into(e, target, e->type))
        return 0;
    int is_later = errors_come_first();
    if (is_later) {
        e->thread = NOBODY;
        PyArrayObject *found = is_later < 0 ? NULL : done_together(e, NULL);
        PyObject *all[3] = {(PyObject *)target, (PyObject *)found, (PyObject *)target};
        PyObject *done = found == NULL ? NULL : PyObject_Vectorcall(op->numpys, all, 3, NULL);
        Py_XDECREF(found);
        Py_XDECREF(done);
        return done == NULL ? -1 : 1;
    }
    called.at = -1;
    called.operands[0] = e->places;
    called.operands[1] = ~(e->count - 1);
    e->called[e->count] = called;
    e->arrays[e->places++] = (PyArrayObject *)Py_NewRef((PyObject *)target);
    e->count++;
    e->thread = NOBODY;
    PyArrayObject *found = done_together(e, target);
    Py_XDECREF(found);
    return found == NULL ? -1 : 1;
}
