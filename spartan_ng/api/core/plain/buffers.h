/* An array's memory by Python's buffer protocol: for files, sockets, codecs, hashes, and loops that Cython compiled.
 *
 * Who asks to be given all that a buffer may be, and only reads it, is refused: NumPy does, before it asks for
 * `__array__`, whose errors it passes on and whose array keeps who lends it. So is who asks for any order of
 * elements: `numpy.ndarray(..., buffer=a)` gives the buffer back and keeps its address, which is ours to change. */

static int
get_buffer(PyObject *self, Py_buffer *buffer, int flags)
{
    int writes = (flags & PyBUF_WRITABLE) == PyBUF_WRITABLE;
    buffer->obj = NULL;
    if ((!writes && (flags & PyBUF_INDIRECT) == PyBUF_INDIRECT)
        || (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS) {
        PyErr_SetString(PyExc_BufferError,
                        "an array of spartan_ng has no memoryview: take a.data to read its elements, "
                        "or numpy.asarray(a) to write to them");
        return -1;
    }
    PyObject *memory = PyObject_CallFunctionObjArgs(known.exported, self, writes ? Py_True : Py_False, NULL);
    if (memory == NULL)
        return -1;
    int status = PyObject_GetBuffer(memory, buffer, flags); /* which keeps it until the buffer is given back */
    Py_DECREF(memory);
    return status;
}

/* Nobody calls this, since buffers are those of NumPy's arrays. `numpy.frombuffer` keeps a buffer, not an address, of
 * what has it. */
static void
release_buffer(PyObject *self, Py_buffer *buffer)
{
}

static PyBufferProcs as_buffer = {.bf_getbuffer = get_buffer, .bf_releasebuffer = release_buffer};
