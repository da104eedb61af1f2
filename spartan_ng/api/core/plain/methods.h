/* Attributes and methods. */

/* What a property of the methods says. */
static PyObject *
property_of(PyObject *property, PyObject *self)
{
    if (property == NULL) {
        PyErr_SetString(PyExc_SystemError, "a property is asked for before its class is there");
        return NULL;
    }
    return Py_TYPE(property)->tp_descr_get(property, self, (PyObject *)Py_TYPE(self));
}

/* The getter of an attribute that NumPy's array has: of what is shown, or what the property says. */
#define OF_SHOWN(name, found)                                                                                 \
    static PyObject *get_##name(PyObject *self, void *closure)                                                \
    {                                                                                                         \
        PyArrayObject *shown = Py_TYPE(self) == known.array ? value_of((Handle *)self) : NULL;                \
        return shown == NULL ? property_of(known.name, self) : found;                                         \
    }
OF_SHOWN(shape, PyArray_IntTupleFromIntp(PyArray_NDIM(shown), PyArray_DIMS(shown)))
OF_SHOWN(ndim, PyLong_FromLong(PyArray_NDIM(shown)))
OF_SHOWN(size, PyLong_FromSsize_t(PyArray_SIZE(shown)))
OF_SHOWN(itemsize, PyLong_FromSsize_t(PyArray_ITEMSIZE(shown)))
OF_SHOWN(nbytes, PyLong_FromSsize_t(PyArray_NBYTES(shown)))
OF_SHOWN(dtype, Py_NewRef((PyObject *)PyArray_DESCR(shown)))

/* An array as Python's integer, which NumPy asks of each key: one with axes is none, in words that NumPy drops. */
static PyObject *
as_index(PyObject *self)
{
    const Operator *op = &operators[op_index];
    PyArrayObject *shown = Py_TYPE(self) == known.array ? value_of((Handle *)self) : NULL;
    if (shown != NULL && PyArray_NDIM(shown) > 0) {
        PyErr_SetString(PyExc_TypeError, "only integer scalar arrays can be converted to a scalar index");
        return NULL;
    }
    return method_of(op, op->method) == NULL ? NULL : call_one(op->method, self);
}

/* Set what a property sets; `closure` is where it is kept. */
static int
set_property(PyObject *self, PyObject *value, void *closure)
{
    PyObject *property = *(PyObject **)closure;
    if (property == NULL) {
        PyErr_SetString(PyExc_SystemError, "a property is set before its class is there");
        return -1;
    }
    return Py_TYPE(property)->tp_descr_set(property, self, value);
}

/* An attribute that is a view: what property it is, and what its views are, by shapes. */
typedef struct {
    const char *name;
    PyObject *property, *asked, *word; /* the property, the function it asks, its name, as Python has them */
    Lenses lenses;
} Shown;

enum { shown_mT, shown_real, shown_imag, shown_count };
static Shown shown_attributes[shown_count] = {{"mT"}, {"real"}, {"imag"}};

static PyObject *
get_shown(PyObject *self, void *closure)
{
    Shown *attribute = closure;
    PyArrayObject *shown = Py_TYPE(self) == known.array ? shown_of((Handle *)self) : NULL;
    int has_view = shown != NULL && (attribute != &shown_attributes[shown_mT] || PyArray_NDIM(shown) > 1)
                   && (attribute != &shown_attributes[shown_imag] || PyArray_ISCOMPLEX(shown));
    if (has_view) {
        Py_INCREF(shown);
        PyObject *found = PyObject_GetAttr((PyObject *)shown, attribute->word);
        if (found != NULL)
            found = shown_as((Handle *)self, shown, 0, found, attribute->asked, &attribute->lenses, &self, 1, NULL);
        Py_DECREF(shown);
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    return property_of(attribute->property, self);
}

static int
set_shown(PyObject *self, PyObject *value, void *closure)
{
    return set_property(self, value, &((Shown *)closure)->property);
}

static PyObject *
get_transposed(PyObject *self, void *closure)
{
    PyArrayObject *shown = Py_TYPE(self) == known.array ? shown_of((Handle *)self) : NULL;
    if (shown != NULL && PyArray_NDIM(shown) < PyTuple_GET_SIZE(known.reversed)) {
        PyObject *turned = PyArray_Transpose(shown, NULL);
        if (turned == NULL)
            return NULL;
        PyObject *found = seen((Handle *)self, PyTuple_GET_ITEM(known.reversed, PyArray_NDIM(shown)), turned);
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    return property_of(known.transposed, self);
}

static PyObject *
copy(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyArrayObject *shown = Py_TYPE(self) == known.array && n == 0 && names == NULL ? value_of((Handle *)self) : NULL;
    if (shown != NULL && PyArray_NBYTES(shown) < known.least && PyArray_NBYTES(shown) < small_bytes()) {
        PyObject *found = PyArray_NewCopy(shown, NPY_CORDER);
        return found == NULL ? NULL : wrapped(found);
    }
    PyObject *method = known.copy == NULL ? NULL : Py_TYPE(known.copy)->tp_descr_get(known.copy, self, (PyObject *)Py_TYPE(self));
    if (method == NULL)
        return NULL;
    PyObject *found = PyObject_Vectorcall(method, args, n, names);
    Py_DECREF(method);
    return found;
}
