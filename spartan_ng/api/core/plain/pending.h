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
    e->buffered = e->is_private = 1;
    e->array = array;
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

/* `learn_expressions(pending, ahead)`: what class arrays are of that are pending, and what reads code. */
static PyObject *
learn_expressions(PyObject *module, PyObject *args)
{
    PyTypeObject *type;
    PyObject *ahead;
    if (!PyArg_ParseTuple(args, "O!O:learn_expressions", &PyType_Type, &type, &ahead))
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
    Py_RETURN_NONE;
}

/* An operand: pending, an array, or a number. */
typedef struct {
    Expression *pending;
    PyArrayObject *array;
    PyObject *number;
    double value[2];
} Operand;

/* Whether all operands can take part, and what of: the type of the elements, the shape that arrays are broadcast to; the
 * number of axes, or -1. */
static int
fitting(Operand *operands, int n, int *type, npy_intp *shape, npy_intp *bytes)
{
    PyArrayObject *arrays[2] = {NULL};
    Expression *pending = NULL;
    *type = NPY_NOTYPE;
    for (int i = 0; i < n; i++) {
        Operand *o = &operands[i];
        if (o->number != NULL)
            continue;
        int own = o->pending != NULL ? o->pending->type : PyArray_TYPE(o->array);
        if ((*type != NPY_NOTYPE && own != *type) || (o->array != NULL && !is_in_order(o->array)))
            return -1;
        *type = own;
        arrays[i] = o->array;
        if (o->pending != NULL && pending != NULL
            && (o->pending->axes != pending->axes
                || !PyArray_CompareLists(o->pending->shape, pending->shape, pending->axes)))
            return -1;
        pending = o->pending != NULL ? o->pending : pending;
        npy_intp itemsize = o->array != NULL ? PyArray_ITEMSIZE(o->array) : *type == NPY_FLOAT ? 4 : *type == NPY_DOUBLE ? 8 : 16;
        *bytes += itemsize * (o->array != NULL ? PyArray_SIZE(o->array) : PyArray_MultiplyList(pending->shape, pending->axes));
    }
    if (*type != NPY_DOUBLE && *type != NPY_FLOAT && *type != NPY_CDOUBLE)
        return -1;
    if (pending == NULL)
        return common_shape(arrays, n, shape);
    memcpy(shape, pending->shape, pending->axes * sizeof *shape);
    for (int i = 0; i < n; i++)
        if (arrays[i] != NULL) {
            int missing = pending->axes - PyArray_NDIM(arrays[i]);
            if (missing < 0)
                return -1;
            for (int axis = missing; axis < pending->axes; axis++) {
                npy_intp length = PyArray_DIM(arrays[i], axis - missing);
                if (length != 1 && length != shape[axis])
                    return -1;
            }
        }
    return pending->axes;
}

/* Move what another expression has to the end of this one; how far its functions are then from where they were. */
static void
append_expression(Expression *e, Expression *other)
{
    for (int k = 0; k < other->count; k++) {
        Called *to = &e->called[e->count + k];
        *to = other->called[k];
        for (int i = 0; i < 2; i++)
            to->operands[i] = to->operands[i] >= 0 ? to->operands[i] + e->places : ~(~to->operands[i] + e->count);
    }
    memcpy(&e->arrays[e->places], other->arrays, other->places * sizeof *other->arrays);
    memcpy(&e->numbers[e->places], other->numbers, other->places * sizeof *other->numbers);
    e->is_private = e->is_private && other->is_private;
    e->places += other->places;
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

/* What an operator is given; how large the expression becomes by it, in places, functions and buffers. */
typedef struct {
    Operand operands[2];
    int n, places, count, buffered, is_pending, is_large, is_private;
} Offered;

/* Learn what is given: 0 where an operand is none of an expression's, or it would be too large. */
static int
learn_given(Offered *all, PyObject *const *given, int n)
{
    *all = (Offered){.n = n, .count = 1, .buffered = 1, .is_private = 1};
    for (int i = 0; i < n; i++) {
        Operand *o = &all->operands[i];
        o->pending = expression_of(given[i]);
        if (o->pending != NULL) {
            if (Py_REFCNT(given[i]) != 1)
                return 0;
            all->buffered = Py_MAX(all->buffered, o->pending->buffered + all->is_pending);
            all->places += o->pending->places;
            all->count += o->pending->count;
            all->is_pending = 1;
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
        all->places++;
    }
    return (all->is_pending || all->is_large) && all->places <= MOST_SHARED && all->count <= MOST_OPERATORS
           && all->buffered <= MOST_BUFFERED;
}

/* Add a function of what is given to the expression of an operand, or to a new one; the array that is pending (a new
 * reference). */
static PyObject *
with_function(Called called, PyObject *const *given, Offered *all, int type, int axes, const npy_intp *shape)
{
    Operand *operands = all->operands;
    PyObject *array = operands[0].pending != NULL   ? Py_NewRef(given[0])
                      : operands[1].pending != NULL ? Py_NewRef(given[1])
                                                    : new_pending(type, axes, shape);
    if (array == NULL)
        return NULL;
    Expression *e = (Expression *)((Handle *)array)->cell;
    for (int i = 0; i < all->n; i++) {
        Operand *o = &operands[i];
        if (o->pending != NULL) {
            if (o->pending != e)
                append_expression(e, o->pending);
            called.operands[i] = ~(e->count - 1);
            continue;
        }
        called.operands[i] = e->places;
        e->arrays[e->places] = (PyArrayObject *)Py_XNewRef((PyObject *)o->array);
        memcpy(e->numbers[e->places++], o->value, sizeof o->value);
    }
    e->called[e->count++] = called;
    e->buffered = all->buffered;
    e->is_private = all->is_private;
    return array;
}

/* What an operator gives, that the interpreter has called, as an array that is pending, or of all functions that its
 * operands are (a new reference); NULL without an error where it is done by itself. */
static PyObject *
in_expression(const Operator *op, PyObject *const *given, int n, const char *callers)
{
    Offered all;
    PyUFuncObject *f = (PyUFuncObject *)op->numpys;
    if (known.pending == NULL || f == NULL || !learn_given(&all, given, n) || !Py_IS_TYPE(f, &PyUFunc_Type)
        || f->nin != n || f->nout != 1)
        return NULL;
    if (!all.is_pending && (callers == NULL || !is_called_by_interpreter(op, callers)))
        return NULL;
    Whereabouts here = whereabouts();
    if (here.has_attributes && !all.is_private)
        here.next = 0;
    for (int i = 0; i < n; i++)
        if (all.operands[i].pending != NULL && !is_taker(all.operands[i].pending, here))
            return NULL;
    if (here.next == 0 && !all.is_pending)
        return NULL;
    npy_intp shape[MOST_AXES], bytes = 0;
    int type, axes = fitting(all.operands, n, &type, shape, &bytes), loop = axes < 0 ? -1 : loop_for(f, type);
    int found = loop < 0 ? NPY_NOTYPE : f->types[loop * f->nargs + n];
    if (loop < 0 || bytes > small_bytes() || PyArray_MultiplyList(shape, axes) < LEAST_PENDING
        || (found != type && (here.next != 0 || !PyTypeNum_ISBOOL(found))))
        return NULL;
    for (int i = 0; i < n; i++)
        if (all.operands[i].number != NULL
            && !as_element(all.operands[i].number, type, (char *)all.operands[i].value))
            return NULL;
    PyObject *array = with_function((Called){f, loop}, given, &all, type, axes, shape);
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

/* Write what is pending, and has been taken from the stack, into memory that has room for it: 1, 0 where it is to be made
 * first, -1 with an error. */
static int
done_into(Expression *e, PyArrayObject *target)
{
    if (e->count == 0 || !fits_into(e, target, e->type))
        return 0;
    e->thread = NOBODY;
    PyArrayObject *found = done_together(e, target);
    Py_XDECREF(found);
    return found == NULL ? -1 : 1;
}

/* Write what an operator gives for memory and what is pending over the memory; as `done_into` says. */
static int
taken_into(const Operator *op, PyArrayObject *target, Expression *e)
{
    PyUFuncObject *f = (PyUFuncObject *)op->numpys;
    int loop = f != NULL && Py_IS_TYPE(f, &PyUFunc_Type) && f->nin == 2 && f->nout == 1 ? loop_for(f, e->type) : -1;
    if (loop < 0 || e->count == 0 || e->count == MOST_OPERATORS || e->places == MOST_SHARED
        || f->types[loop * f->nargs + 2] != e->type || !fits_into(e, target, e->type))
        return 0;
    e->called[e->count] = (Called){f, loop, {e->places, ~(e->count - 1)}};
    e->arrays[e->places++] = (PyArrayObject *)Py_NewRef((PyObject *)target);
    e->count++;
    e->thread = NOBODY;
    PyArrayObject *found = done_together(e, target);
    Py_XDECREF(found);
    return found == NULL ? -1 : 1;
}
