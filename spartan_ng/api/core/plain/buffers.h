/* An array's memory by Python's buffer protocol: for files, sockets, codecs, hashes, and loops that Cython compiled.
 *
 * Who asks to be given all that a buffer may be, and says not whether to write, is refused, but for classes that are
 * called for it, as `memoryview` is (`callers.h`): NumPy asks so before it asks for `__array__`, whose errors it passes
 * on, and which knows whether a copy is wanted. So is who asks for any order of elements: `numpy.ndarray(..., buffer=a)`
 * gives the buffer back and keeps its address, which is ours to change. */

static PyObject *no_such_buffer; /* what is said then, once for all: NumPy does not read it */

static NOT_INLINE int
buffer_for(PyObject *self, Py_buffer *buffer, int flags, const char *callers)
{
    int is_for_all = (flags & PyBUF_INDIRECT) == PyBUF_INDIRECT && (flags & PyBUF_WRITABLE) != PyBUF_WRITABLE;
    int is_asked = is_for_all && callers != NULL && way_among(&askers, callers) != NULL;
    buffer->obj = NULL;
    if ((is_for_all && !is_asked) || (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS) {
        PyErr_SetObject(PyExc_BufferError, no_such_buffer);
        return -1;
    }
    PyObject *writes = is_asked ? Py_None : (flags & PyBUF_WRITABLE) == PyBUF_WRITABLE ? Py_True : Py_False;
    PyObject *memory = PyObject_CallFunctionObjArgs(known.exported, self, writes, NULL);
    if (memory == NULL)
        return -1;
    int status = PyObject_GetBuffer(memory, buffer, flags); /* which keeps it until the buffer is given back */
    Py_DECREF(memory);
    return status;
}

static int
get_buffer(PyObject *self, Py_buffer *buffer, int flags)
{
    return buffer_for(self, buffer, flags, CALLERS);
}

/* Nobody calls this, since buffers are those of NumPy's arrays. `numpy.frombuffer` keeps a buffer, not an address, of
 * what has it. */
static void
release_buffer(PyObject *self, Py_buffer *buffer)
{
}

static PyBufferProcs as_buffer = {.bf_getbuffer = get_buffer, .bf_releasebuffer = release_buffer};

static PyObject *interface_name, *struct_name;

/* `__array_interface__` and `__array_struct__`: where the elements lie, for who works by that (Pillow). NumPy asks for them
 * before `__array__`, and keeps the array alone; it is told that there are none, as is everybody where nobody knows who
 * asks: of classes with a `__getattr__` (numbers), say. */
static NOT_INLINE PyObject *
address_for(PyObject *self, PyObject *name, const char *callers)
{
    if (callers == NULL || Py_TYPE(self)->tp_getattro != PyObject_GenericGetAttr || !is_asked_by_others(callers)) {
        PyErr_SetObject(PyExc_AttributeError, name);
        return NULL;
    }
    PyObject *memory = PyObject_CallOneArg(known.addressed, self);
    PyObject *found = memory == NULL ? NULL : PyObject_GetAttr(memory, name);
    Py_XDECREF(memory);
    return found;
}

static PyObject *
get_address(PyObject *self, void *name)
{
    return address_for(self, *(PyObject **)name, CALLERS);
}
