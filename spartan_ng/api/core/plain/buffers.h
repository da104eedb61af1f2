/* An array's memory by Python's buffer protocol: for files, sockets, codecs, hashes, and loops that Cython compiled.
 *
 * Who asks to be given all that a buffer may be, and says not whether to write, is refused, but for classes that are
 * called for it, as `memoryview` is (`callers.h`): NumPy asks so before it asks for `__array__`, whose errors it passes
 * on, and which knows whether a copy is wanted. So is who asks for any order of elements: `numpy.ndarray(..., buffer=a)`
 * gives the buffer back and keeps its address, which is ours to change. */

static NOT_INLINE int
buffer_for(PyObject *self, Py_buffer *buffer, int flags, const char *callers)
{
    int is_for_all = (flags & PyBUF_INDIRECT) == PyBUF_INDIRECT && (flags & PyBUF_WRITABLE) != PyBUF_WRITABLE;
    int is_asked = is_for_all && callers != NULL && way_among(&askers, callers) != NULL;
    buffer->obj = NULL;
    if ((is_for_all && !is_asked) || (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS) {
        PyErr_SetString(PyExc_BufferError,
                        "an array of spartan_ng is no such buffer here: take a.data to read its elements, "
                        "or numpy.asarray(a) to write to them");
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
