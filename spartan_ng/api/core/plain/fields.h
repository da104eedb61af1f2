/* What a cell and an array have, and their classes. */

/* What a cell has; see `Cell`. Zeros are None, False and 0. */
typedef struct {
    PyObject_HEAD
    PyObject *value, *node, *masked, *order, *lender, *source, *owner;
    int picks, lent, rent, tests;
    char frozen, borrowed, blank, shared, settled;
    PyObject *weakrefs;
} Cell;

/* What an array has; see `Handle`. */
typedef struct {
    PyObject_HEAD
    PyObject *cell, *views, *state, *shown;
    PyObject *weakrefs;
} Handle;

static PyMemberDef cell_members[] = {
    {"value", T_OBJECT_EX, offsetof(Cell, value), 0, NULL},
    {"masked", T_OBJECT, offsetof(Cell, masked), 0, NULL},
    {"frozen", T_BOOL, offsetof(Cell, frozen), 0, NULL},
    {"borrowed", T_BOOL, offsetof(Cell, borrowed), 0, NULL},
    {"blank", T_BOOL, offsetof(Cell, blank), 0, NULL},
    {"picks", T_INT, offsetof(Cell, picks), 0, NULL},
    {"lent", T_INT, offsetof(Cell, lent), 0, NULL},
    {"rent", T_INT, offsetof(Cell, rent), 0, NULL},
    {"tests", T_INT, offsetof(Cell, tests), 0, NULL},
    {"order", T_OBJECT, offsetof(Cell, order), 0, NULL},
    {"shared", T_BOOL, offsetof(Cell, shared), 0, NULL},
    {"lender", T_OBJECT, offsetof(Cell, lender), 0, NULL},
    {"source", T_OBJECT, offsetof(Cell, source), 0, NULL},
    {"owner", T_OBJECT, offsetof(Cell, owner), 0, NULL},
    {"settled", T_BOOL, offsetof(Cell, settled), 0, NULL},
    {"_node", T_OBJECT, offsetof(Cell, node), 0, NULL},
    {NULL},
};

static PyMemberDef handle_members[] = {
    {"_cell", T_OBJECT_EX, offsetof(Handle, cell), 0, NULL},
    {"_views", T_OBJECT_EX, offsetof(Handle, views), 0, NULL},
    {"_state", T_OBJECT_EX, offsetof(Handle, state), 0, NULL},
    {"_shown", T_OBJECT_EX, offsetof(Handle, shown), 0, NULL},
    {NULL},
};

static int
cell_traverse(PyObject *self, visitproc visit, void *arg)
{
    Cell *c = (Cell *)self;
    Py_VISIT(c->value);
    Py_VISIT(c->node);
    Py_VISIT(c->masked);
    Py_VISIT(c->order);
    Py_VISIT(c->lender);
    Py_VISIT(c->source);
    Py_VISIT(c->owner);
    return 0;
}

static int
cell_clear(PyObject *self)
{
    Cell *c = (Cell *)self;
    Py_CLEAR(c->value);
    Py_CLEAR(c->node);
    Py_CLEAR(c->masked);
    Py_CLEAR(c->order);
    Py_CLEAR(c->lender);
    Py_CLEAR(c->source);
    Py_CLEAR(c->owner);
    return 0;
}

static void
cell_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (((Cell *)self)->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    cell_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static int
handle_traverse(PyObject *self, visitproc visit, void *arg)
{
    Handle *h = (Handle *)self;
    Py_VISIT(h->cell);
    Py_VISIT(h->views);
    Py_VISIT(h->state);
    Py_VISIT(h->shown);
    return 0;
}

static int
handle_clear(PyObject *self)
{
    Handle *h = (Handle *)self;
    Py_CLEAR(h->cell);
    Py_CLEAR(h->views);
    Py_CLEAR(h->state);
    Py_CLEAR(h->shown);
    return 0;
}

static void
handle_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (((Handle *)self)->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    handle_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject CellFields = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spartan_ng.api.core._quick.CellFields",
    .tp_basicsize = sizeof(Cell),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What a cell has.",
    .tp_members = cell_members,
    .tp_weaklistoffset = offsetof(Cell, weakrefs),
    .tp_traverse = cell_traverse,
    .tp_clear = cell_clear,
    .tp_dealloc = cell_dealloc,
};

static PyTypeObject HandleFields = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spartan_ng.api.core._quick.HandleFields",
    .tp_basicsize = sizeof(Handle),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What an array has.",
    .tp_members = handle_members,
    .tp_weaklistoffset = offsetof(Handle, weakrefs),
    .tp_traverse = handle_traverse,
    .tp_clear = handle_clear,
    .tp_dealloc = handle_dealloc,
};
