/* Arrays of what lists have: numbers, or arrays alike, whose elements are put one after the other.
 *
 * NumPy looks at a list twice, and at each item for all that may be an array. Here it is numbers that `as_element` knows,
 * or arrays of one type and shape; whatever is anything else is NumPy's to look at. */

typedef struct {
    int depth, type;                  /* of lists in lists; of the elements */
    npy_intp lengths[DEEPEST_LISTED]; /* of lists, -1 where nobody has seen one */
    PyArrayObject *like;              /* the first array, NULL where there are numbers */
} Contents;

/* Learn what a list so deep in others has; 0 where NumPy is to look at it. */
static int
learn_contents(Contents *all, PyObject *listed, int level)
{
    Py_ssize_t n = PySequence_Fast_GET_SIZE(listed);
    if (n == 0 || (all->lengths[level] >= 0 && all->lengths[level] != n))
        return 0;
    all->lengths[level] = n;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *a = PySequence_Fast_GET_ITEM(listed, i);
        if (is_listed(a)) {
            if (level + 1 == DEEPEST_LISTED || all->depth == level + 1 || !learn_contents(all, a, level + 1))
                return 0;
            continue;
        }
        PyArrayObject *array = numbers_of(a);
        int type = array != NULL ? PyArray_TYPE(array) : type_in_list(a), is_first = all->depth == 0;
        if (type == NPY_NOTYPE || (!is_first && (all->depth != level + 1 || (array == NULL) != (all->like == NULL))))
            return 0;
        if (array != NULL && !(PyArray_ISBEHAVED_RO(array) && (PyArray_NDIM(array) == 1 || PyArray_IS_C_CONTIGUOUS(array))))
            return 0;
        if (array != NULL && !is_first && (type != all->type || !PyArray_SAMESHAPE(array, all->like)))
            return 0;
        all->type = is_first ? type : promoted(all->type, type);
        all->like = is_first ? array : all->like;
        all->depth = level + 1;
        if (!is_of_loops(all->type))
            return 0;
    }
    return 1;
}

/* Put what a list has where its elements are to lie, so many bytes each; 0 where a number has no place in the type. */
static int
put_contents(const Contents *all, PyObject *listed, char **place, npy_intp size)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(listed); i++) {
        PyObject *a = PySequence_Fast_GET_ITEM(listed, i);
        if (is_listed(a)) {
            if (!put_contents(all, a, place, size))
                return 0;
            continue;
        }
        PyArrayObject *array = numbers_of(a);
        if (array == NULL) {
            if (!as_element(a, all->type, *place))
                return 0;
        }
        else if (PyArray_IS_C_CONTIGUOUS(array))
            memcpy(*place, PyArray_DATA(array), PyArray_NBYTES(array));
        else
            gather(*place, PyArray_BYTES(array), 1, PyArray_DIM(array, 0), 0, PyArray_STRIDE(array, 0), size);
        *place += array == NULL ? size : PyArray_NBYTES(array);
    }
    return 1;
}

/* NumPy's array of what a list has, of a type, unless that is NULL (a new reference); NULL, without an error, where NumPy is
 * to make it. */
static PyObject *
filled_from(PyObject *listed, const PyArray_Descr *type)
{
    Contents all = {.type = NPY_NOTYPE, .lengths = {-1, -1}};
    npy_intp shape[NPY_MAXDIMS], count = 1;
    if (!is_listed(listed) || !learn_contents(&all, listed, 0))
        return NULL;
    if (type != NULL && all.like == NULL && promoted(all.type, type->type_num) == type->type_num && is_of_loops(type->type_num))
        all.type = type->type_num;
    if (type != NULL && (all.type != type->type_num || !PyArray_ISNBO(type->byteorder)))
        return NULL;
    int axes = all.like == NULL ? 0 : PyArray_NDIM(all.like);
    for (int level = 0; level < all.depth; level++)
        count *= shape[level] = all.lengths[level];
    for (int axis = 0; axis < axes; axis++)
        shape[all.depth + axis] = PyArray_DIM(all.like, axis);
    double bytes = all.like == NULL ? 0 : (double)count * (double)PyArray_NBYTES(all.like);
    if (all.depth + axes > NPY_MAXDIMS || (all.like != NULL && bytes > (double)small_bytes()))
        return NULL;
    PyObject *found = PyArray_SimpleNew(all.depth + axes, shape, all.type);
    char *place = found == NULL ? NULL : PyArray_BYTES((PyArrayObject *)found);
    if (found == NULL || !put_contents(&all, listed, &place, PyArray_ITEMSIZE((PyArrayObject *)found)))
        Py_CLEAR(found);
    PyErr_Clear();
    return found;
}
