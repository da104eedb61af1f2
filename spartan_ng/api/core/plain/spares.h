/* Memory of arrays and cells that have gone, for the next ones: most live for one operation. */

typedef struct {
    int n;
    PyObject *objects[64];
} Spares;

static Spares spare_arrays, spare_cells;

/* A new object of a class whose fields are zeros. */
static PyObject *
again(PyTypeObject *type, Spares *spares)
{
    if (spares->n == 0)
        return type->tp_alloc(type, 0);
    PyObject *self = spares->objects[--spares->n];
    Py_SET_REFCNT(self, 1);
    Py_INCREF(type);
    PyObject_GC_Track(self);
    return self;
}

/* End an object, whose fields `clear` lets go of; keep its memory, if it is of `kept`, and there is room. */
static void
end(PyObject *self, PyObject *weakrefs, inquiry clear, PyTypeObject *kept, Spares *spares)
{
    PyTypeObject *type = Py_TYPE(self);
    if (weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    clear(self);
    if (type == kept && spares->n < (int)Py_ARRAY_LENGTH(spares->objects)) {
        memset((char *)self + sizeof(PyObject), 0, type->tp_basicsize - sizeof(PyObject));
        spares->objects[spares->n++] = self;
    }
    else
        type->tp_free(self);
    Py_DECREF(type);
}

static void
array_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, array_dealloc)
    end(self, ((Handle *)self)->weakrefs, handle_clear, known.array, &spare_arrays);
    Py_TRASHCAN_END
}

static void
plain_cell_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, plain_cell_dealloc)
    end(self, ((Cell *)self)->weakrefs, cell_clear, known.cell, &spare_cells);
    Py_TRASHCAN_END
}

/* Have the classes of plain arrays and cells keep their memory. */
static void
keep_spares(void)
{
    if (known.array->tp_dealloc == array_dealloc)
        return;
    assert(known.array->tp_basicsize == sizeof(Handle) && known.cell->tp_basicsize == sizeof(Cell));
    known.array->tp_dealloc = array_dealloc;
    known.cell->tp_dealloc = plain_cell_dealloc;
}
