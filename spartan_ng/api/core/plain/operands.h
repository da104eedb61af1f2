/* What a function is given as part of an expression: of which types and shapes, by which of its loops. */

/* An operand: pending, an array, or a number. */
typedef struct {
    Expression *pending;
    PyArrayObject *array;
    PyObject *number;
    int type; /* of its elements, NOTYPE of a number */
    PyUFuncGenericFunction cast;
    double value[2];
} Operand;

/* Whether operands fit into elements of a type, as far as they are no numbers. */
static int
fit_into(const Operand *operands, int n, int type)
{
    for (int i = 0; i < n; i++)
        if (operands[i].number == NULL && !PyArray_CanCastSafely(operands[i].type, type))
            return 0;
    return 1;
}

/* A function of NumPy's as part of an expression, for operands of a type, or of the first one that it has a loop for and
 * that they fit into, each by itself; 0 where there is none, or one that raises errors. Without operands it is for the type. */
static int
called_for(PyObject *function, const Operand *operands, int n, int *type, Called *called)
{
    *called = (Called){.n = n, .type = *type, .name = "where"};
    if (function == known.where) {
        called->loop = choosing(*type, bytes_of(*type));
        return called->loop != NULL;
    }
    PyUFuncObject *f = (PyUFuncObject *)function;
    if (PyTypeNum_ISINTEGER(*type) && strcmp(f->name, "divide") == 0) {
        *type = NPY_DOUBLE; /* however short integers are, whatever they would fit into */
        for (int i = 0; operands != NULL && i < n; i++)
            if (operands[i].number != NULL && !PyLong_CheckExact(operands[i].number))
                return 0; /* whose type counts */
    }
    int loop = loop_for(f, *type);
    for (int i = 0; loop < 0 && operands != NULL && !PyTypeNum_ISBOOL(*type) && i < f->ntypes; i++) { /* truth values have functions refused */
        int taken = f->types[i * f->nargs];
        if (fit_into(operands, n, taken) && loop_for(f, taken) == i)
            loop = i;
    }
    if (loop < 0 || raises_errors(f, *type))
        return 0;
    *type = f->types[loop * f->nargs];
    called->name = f->name;
    called->loop = f->functions[loop];
    called->data = f->data == NULL ? NULL : (void *)f->data[loop];
    called->type = f->types[loop * f->nargs + n];
    return is_of_loops(*type) && is_of_loops(called->type);
}

/* Whether all operands can take part, the first of which says of all others which are taken if it `is_chosen_by`, and what
 * as: the type of the elements, the shape that arrays are broadcast to; the number of axes, or -1. */
static int
fitting(Operand *operands, int n, int is_chosen_by, int *type, npy_intp *shape, npy_intp *bytes)
{
    PyArrayObject *arrays[MOST_TAKEN] = {NULL};
    Expression *pending = NULL;
    *type = NPY_NOTYPE;
    for (int i = 0; i < n; i++) {
        Operand *o = &operands[i];
        o->type = o->number != NULL ? NPY_NOTYPE : o->pending != NULL ? o->pending->type : PyArray_TYPE(o->array);
        if (i == 0 && is_chosen_by && o->type != NPY_BOOL)
            return -1;
        if (o->number != NULL)
            continue;
        if (!is_of_loops(o->type) || (o->array != NULL && !is_in_order(o->array)))
            return -1;
        int before = *type;
        *type = i == 0 && is_chosen_by ? NPY_NOTYPE : promoted(before, o->type);
        if (before != NPY_NOTYPE && *type == NPY_NOTYPE)
            return -1;
        arrays[i] = o->array;
        if (o->pending != NULL && pending != NULL
            && (o->pending->axes != pending->axes
                || !PyArray_CompareLists(o->pending->shape, pending->shape, pending->axes)))
            return -1;
        pending = o->pending != NULL ? o->pending : pending;
        *bytes += bytes_of(o->type) * (o->array != NULL ? PyArray_SIZE(o->array) : PyArray_MultiplyList(pending->shape, pending->axes));
    }
    for (int i = 0; i < n && *type != NPY_NOTYPE; i++)
        *type = operands[i].number != NULL ? promoted_by(operands[i].number, *type) : *type;
    if (!is_of_loops(*type))
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
