/* What programs of many tiny operations do by the million, without Python in between: elements, views and places
 * read and written, operators, products, functions of few arrays, numbers carried through loops.
 *
 * `Quick` stands in front of the class whose methods decide everything (`quick.py` says where). It answers the
 * plain case: arrays of this package whose elements are a NumPy array of numbers on the driver, that are small
 * or have only an element or a view asked of them; basic keys, lists of a few integers; numbers. Of texts, times, records
 * and objects it knows elements and views, and how texts and times compare. NumPy's own functions then do the work.
 * Whatever is anything else, or fails as our methods would say in other words, goes to the methods, which find it
 * as it was: nothing here remembers what was decided, or says what an error is.
 *
 * Every question that is asked here is one of those that the methods ask first, of the objects that `connect`
 * was given: there is no second threshold and no second table.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stddef.h>
#include <structmember.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <numpy/ufuncobject.h>

/* A part knows those before it. */
#include "plain/fields.h"
#include "plain/known.h"
#include "plain/spares.h"
#include "plain/values.h"
#include "plain/lists.h"
#include "plain/gathering.h"
#include "plain/casting.h"
#include "plain/scalars.h"
#include "plain/loops.h"
#include "plain/helpers.h"
#include "plain/lines.h"
#include "plain/sharing.h"
#include "plain/turning.h"
#include "plain/callers.h"
#include "plain/temporaries.h"
#include "plain/ahead.h"
#include "plain/recurring.h"
#include "plain/expressions.h"
#include "plain/choosing.h"
#include "plain/operands.h"
#include "plain/pending.h"
#include "plain/folds.h"
#include "plain/places.h"
#include "plain/masks.h"
#include "plain/groups.h"
#include "plain/bins.h"
#include "plain/elements.h"
#include "plain/basic.h"
#include "plain/keys.h"
#include "plain/rows.h"
#include "plain/operators.h"
#include "plain/powers.h"
#include "plain/calls.h"
#include "plain/shown.h"
#include "plain/letters.h"
#include "plain/sizes.h"
#include "plain/given.h"
#include "plain/draws.h"
#include "plain/functions.h"
#include "plain/constants.h"
#include "plain/shortcuts.h"
#include "plain/protocols.h"
#include "plain/filled.h"
#include "plain/listed.h"
#include "plain/methods.h"
#include "plain/numbers.h"
#include "plain/lent.h"
#include "plain/buffers.h"

/* --- the class ------------------------------------------------------------------------------------------- */

static PyNumberMethods as_number = {
#define SLOT(name, ...) .nb_##name = name##_slot,
    BINARY(SLOT) INPLACE(SLOT) UNARY(SLOT)
#undef SLOT
    .nb_power = power,
    .nb_divmod = divided,
    .nb_matrix_multiply = matrix_product,
    .nb_index = as_index,
};

static PyMappingMethods as_mapping = {
    .mp_length = length,
    .mp_subscript = getitem,
    .mp_ass_subscript = setitem,
};

static PyMethodDef quick_methods[] = {
    {"__array_ufunc__", (PyCFunction)(void (*)(void))array_ufunc, METH_FASTCALL | METH_KEYWORDS,
     "__array_ufunc__($self, function, method, /, *inputs, **keywords)\n--\n\n"
     "NumPy's ufuncs of our arrays are ours (NEP 13)."},
    {"__array_function__", (PyCFunction)(void (*)(void))array_function, METH_FASTCALL | METH_KEYWORDS,
     "__array_function__($self, /, func, types, args, kwargs)\n--\n\n"
     "NumPy's functions of our arrays are ours (NEP 18); those we lack gather their operands."},
    {"__array__", (PyCFunction)(void (*)(void))array, METH_FASTCALL | METH_KEYWORDS,
     "__array__($self, /, dtype=None, copy=None)\n--\n\n"
     "The elements where they lie, which is the array's memory and the caller's from then on, or a copy."},
    {"copy", (PyCFunction)(void (*)(void))copy, METH_FASTCALL | METH_KEYWORDS,
     "copy($self, /, order='C')\n--\n\nThe same elements in an array of their own."},
    {NULL},
};

static PyGetSetDef quick_attributes[] = {
    {"shape", get_shape, set_property, "Lengths of the axes; a filtered array counts its elements now.", &known.shape},
    {"ndim", get_ndim, set_property, "Number of axes.", &known.ndim},
    {"size", get_size, set_property, "Number of elements.", &known.size},
    {"itemsize", get_itemsize, set_property, "Bytes of one element.", &known.itemsize},
    {"nbytes", get_nbytes, set_property, "Bytes of the dense elements.", &known.nbytes},
    {"dtype", get_dtype, set_property, "The type of the elements.", &known.dtype},
    {"T", get_transposed, set_property, "The axes reversed.", &known.transposed},
    {"mT", get_shown, set_shown, "The last two axes swapped.", &shown_attributes[shown_mT]},
    {"real", get_shown, set_shown, "The real part; writing to it writes to the array.", &shown_attributes[shown_real]},
    {"imag", get_shown, set_shown, "The imaginary part; writing to it writes to the array.", &shown_attributes[shown_imag]},
    {"__array_interface__", get_address, NULL, "Where the elements lie, of which kind and shape they are.", &interface_name},
    {"__array_struct__", get_address, NULL, "The same for C, in a capsule.", &struct_name},
    {NULL},
};

static PyTypeObject Quick = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spartan_ng.api.core._quick.Quick",
    .tp_basicsize = sizeof(Handle),
    .tp_base = &HandleFields,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "The plain case of what arrays do, in front of the methods that know all others.",
    .tp_as_number = &as_number,
    .tp_as_mapping = &as_mapping,
    .tp_as_buffer = &as_buffer,
    .tp_richcompare = compare,
    .tp_iter = iterate,
    .tp_methods = quick_methods,
    .tp_getset = quick_attributes,
};

/* --- the module ------------------------------------------------------------------------------------------ */

/* Learn the properties whose views NumPy makes. */
static int
learned_shown(PyObject *methods)
{
    for (Shown *attribute = shown_attributes; attribute < shown_attributes + shown_count; attribute++) {
        if (kept(&attribute->property, methods, attribute->name) < 0
            || kept(&attribute->asked, attribute->property, "fget") < 0)
            return -1;
        Py_XSETREF(attribute->word, PyUnicode_InternFromString(attribute->name));
        Py_XSETREF(attribute->lenses.by_call, PyDict_New());
        if (attribute->word == NULL || attribute->lenses.by_call == NULL)
            return -1;
    }
    return 0;
}

/* Where an option stands in the object that has them. */
static int
slot_of(PyObject *config, const char *name, Py_ssize_t *offset)
{
    PyObject *option = PyObject_GetAttrString((PyObject *)Py_TYPE(config), name);
    int is_slot = option != NULL && Py_IS_TYPE(option, &PyMemberDescr_Type);
    if (is_slot)
        *offset = ((PyMemberDescrObject *)option)->d_member->offset;
    else if (option != NULL)
        PyErr_Format(PyExc_TypeError, "connect: %s is no slot", name);
    Py_XDECREF(option);
    return is_slot ? 0 : -1;
}

/* `connect(...)`: say which classes, methods and tables these are. */
static PyObject *
connect(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"array",  "methods", "cell",   "wrap",  "numbers", "integers", "ours", "ufuncs", "lacking", "functions",
                            "dot",    "finish",  "reversed", "config", "surely", "least",    "flops", "most_flops", "looped", "chain",  "cores",  "field", "learn", "unfitting", "temporaries", NULL};
    PyObject *array, *methods, *cell, *wrap, *numbers, *integers, *ours, *ufuncs, *lacking, *functions, *dot, *finish, *reversed,
        *config, *field, *learn, *unfitting;
    Py_ssize_t surely, least, flops, most_flops, looped, chain;
    int cores, temporaries;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "$O!OO!OOOOOOOOOO!OnnnnnniOOOp:connect", names, &PyType_Type, &array,
                                     &methods, &PyType_Type, &cell, &wrap, &numbers, &integers, &ours, &ufuncs,
                                     &lacking, &functions,
                                     &dot, &finish, &PyTuple_Type, &reversed, &config, &surely, &least, &flops, &most_flops, &looped, &chain, &cores,
                                     &field, &learn, &unfitting, &temporaries))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)array, &Quick) || !PyType_IsSubtype((PyTypeObject *)cell, &CellFields)
        || !PyAnySet_Check(numbers) || !PyAnySet_Check(integers) || !PyAnySet_Check(ufuncs)
        || !PyDict_Check(ours) || !PyAnySet_Check(lacking) || !PyDict_CheckExact(functions)) {
        PyErr_SetString(PyExc_TypeError, "connect: classes or tables of other kinds");
        return NULL;
    }
    if (slot_of(config, "small_bytes", &known.small_bytes) < 0 || slot_of(config, "threads", &known.threads) < 0
        || slot_of(config, "kernels", &known.kernels) < 0)
        return NULL;
    if (learned(operators, op_count, methods) < 0 || learned_shown(methods) < 0
        || kept(&known.shape, methods, "shape") < 0 || kept(&known.ndim, methods, "ndim") < 0
        || kept(&known.size, methods, "size") < 0 || kept(&known.itemsize, methods, "itemsize") < 0
        || kept(&known.nbytes, methods, "nbytes") < 0 || kept(&known.dtype, methods, "dtype") < 0
        || kept(&known.transposed, methods, "T") < 0
        || kept(&known.copy, methods, "copy") < 0
        || kept(&known.exported, methods, "_exported") < 0 || kept(&known.addressed, methods, "_addressed") < 0)
        return NULL;
    Py_XSETREF(known.array, (PyTypeObject *)Py_NewRef(array));
    Py_XSETREF(known.cell, (PyTypeObject *)Py_NewRef(cell));
    Py_XSETREF(known.wrap, Py_NewRef(wrap));
    Py_XSETREF(known.numbers, Py_NewRef(numbers));
    Py_XSETREF(known.integers, Py_NewRef(integers));
    Py_XSETREF(known.ours, Py_NewRef(ours));
    Py_XSETREF(known.ufuncs, Py_NewRef(ufuncs));
    Py_XSETREF(known.lacking, Py_NewRef(lacking));
    Py_XSETREF(known.functions, Py_NewRef(functions));
    Py_XSETREF(known.dot, Py_NewRef(dot));
    Py_XSETREF(known.finish, Py_NewRef(finish));
    Py_XSETREF(known.reversed, Py_NewRef(reversed));
    Py_XSETREF(known.config, Py_NewRef(config));
    Py_XSETREF(known.field, Py_NewRef(field));
    Py_XSETREF(known.learn, Py_NewRef(learn));
    Py_XSETREF(known.unfitting, Py_NewRef(unfitting));
    keep_spares();
    known.surely = surely;
    known.least = least;
    known.flops = flops;
    known.most_flops = most_flops;
    known.looped = looped;
    known.chain = chain;
    known.cores = cores;
    known.temporaries = temporaries;
    Py_RETURN_NONE;
}

/* The questions of `door.py`, which answers them itself where nothing is compiled. */
static PyObject *
threshold(void)
{
    if (known.config == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the door to eager work is asked before it knows the options");
        return NULL;
    }
    return *(PyObject **)((char *)known.config + known.small_bytes);
}

static PyObject *
is_small(PyObject *module, PyObject *nbytes)
{
    PyObject *most = threshold();
    return most == NULL ? NULL : PyObject_RichCompare(nbytes, most, Py_LE);
}

static PyObject *
is_open(PyObject *module, PyObject *unused)
{
    PyObject *most = threshold();
    return most == NULL ? NULL : PyBool_FromLong(small_bytes() > 0);
}

static PyMethodDef functions[] = {
    {"connect", (PyCFunction)(void (*)(void))connect, METH_VARARGS | METH_KEYWORDS,
     "Say which classes, methods and tables the plain case is that of."},
    {"connect_numbers", connect_numbers, METH_VARARGS, "Say which class our numbers of one of NumPy's have."},
    {"number_class", number_class, METH_O, "A class of NumPy's numbers with operators of ours in front of its own."},
    {"in_front", in_front, METH_VARARGS, "A function of ours, behind the plain case of its calls."},
    {"learn_recurring", learn_recurring, METH_VARARGS, "Say who has kernels for expressions that come again and again."},
    {"learn_expressions", learn_expressions, METH_VARARGS, "Say which class arrays are of that are pending."},
    {"read_after", read_after, METH_O, "Say after how many bytes of results code is read for what becomes of them."},
    {"settle_pending", settle_pending, METH_NOARGS, "Compute all arrays that are pending."},
    {"is_small", is_small, METH_O, "Whether so many bytes are NumPy's at once."},
    {"is_open", is_open, METH_NOARGS, "Whether NumPy does anything at once."},
    {"lend", lend, METH_O,
     "What NumPy is given of an array's memory, lent as long as that lives; None where others have a claim on it."},
    {"applied", (PyCFunction)(void (*)(void))applied_to, METH_FASTCALL,
     "What a function of NumPy's gives for NumPy's arrays and numbers, by all threads where that is sooner."},
    {"selected", (PyCFunction)(void (*)(void))selected_by, METH_FASTCALL,
     "What an array of NumPy's has where another one is true, or at its indices."},
    {"grouped", grouped, METH_O,
     "The least value of a line of integers, where the places of each value begin, and the places; or None."},
    {"taken_at", (PyCFunction)(void (*)(void))taken_at, METH_FASTCALL,
     "What an array of NumPy's has at places along its first axis."},
    {"put", (PyCFunction)(void (*)(void))put_by, METH_FASTCALL,
     "Write into an array of NumPy's by a key, where another one is true by all threads."},
    {"are_of", (PyCFunction)(void (*)(void))are_of, METH_FASTCALL,
     "Whether the class of each item of a list or a tuple is among some."},
    {"binned", (PyCFunction)(void (*)(void))binned, METH_FASTCALL,
     "How many doubles fall into each of some equally wide bins, or sums of weights; None where NumPy is to say it."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "spartan_ng.api.core._quick",
    .m_doc = "The plain case of what arrays do.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC
PyInit__quick(void)
{
    import_array();
    import_umath();
    PyObject *numpys_names = PyImport_ImportModule("numpy");
    mapped_files = numpys_names == NULL ? NULL : (PyTypeObject *)PyObject_GetAttrString(numpys_names, "memmap");
    Py_XDECREF(numpys_names);
    if (mapped_files == NULL || !PyType_Check(mapped_files))
        return NULL;
    no_views = PyTuple_New(0);
    call_name = PyUnicode_InternFromString("__call__");
    called_name = PyUnicode_InternFromString("_called");
    out_name = PyUnicode_InternFromString("out");
    accumulate_name = PyUnicode_InternFromString("accumulate");
    at_name = PyUnicode_InternFromString("at");
    reduce_name = PyUnicode_InternFromString("reduce");
    reduceat_name = PyUnicode_InternFromString("reduceat");
    following_name = PyUnicode_InternFromString("_following");
    read_flat_name = PyUnicode_InternFromString("_read_flat");
    write_flat_name = PyUnicode_InternFromString("_write_flat");
    outer_name = PyUnicode_InternFromString("outer");
    array_ufunc_name = PyUnicode_InternFromString("__array_ufunc__");
    numpy_name = PyUnicode_InternFromString("_numpy");
    size_name = PyUnicode_InternFromString("size");
    interface_name = PyUnicode_InternFromString("__array_interface__");
    struct_name = PyUnicode_InternFromString("__array_struct__");
    no_such_buffer = PyUnicode_FromString("an array of spartan_ng is no such buffer here: take a.data to read its elements, "
                                          "or numpy.asarray(a) to write to them");
    out_names = out_name == NULL ? NULL : PyTuple_Pack(1, out_name);
    be_ready_to_fork();
    ahead_place = CODE_EXTRA_PLACE(forget_readings);
    if (no_views == NULL || call_name == NULL || called_name == NULL || out_names == NULL
        || array_ufunc_name == NULL || numpy_name == NULL || size_name == NULL || interface_name == NULL || struct_name == NULL || no_such_buffer == NULL || accumulate_name == NULL || at_name == NULL
        || reduce_name == NULL || reduceat_name == NULL || outer_name == NULL || following_name == NULL
        || read_flat_name == NULL || write_flat_name == NULL)
        return NULL;
    CellFields.tp_new = HandleFields.tp_new = Quick.tp_new = PyBaseObject_Type.tp_new;
    Probe.tp_new = PyType_GenericNew;
    if (PyType_Ready(&CellFields) < 0 || PyType_Ready(&HandleFields) < 0 || PyType_Ready(&Quick) < 0
        || PyType_Ready(&QuickFunction) < 0 || PyType_Ready(&ShortcutType) < 0 || PyType_Ready(&BuiltinType) < 0
        || PyType_Ready(&Probe) < 0 || PyType_Ready(&KeeperType) < 0 || PyType_Ready(&RowsType) < 0 || PyType_Ready(&WalkerType) < 0
        || PyType_Ready(&ExpressionType) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    if (PyModule_AddObjectRef(module, "CellFields", (PyObject *)&CellFields) < 0
        || PyModule_AddObjectRef(module, "HandleFields", (PyObject *)&HandleFields) < 0
        || PyModule_AddObjectRef(module, "Quick", (PyObject *)&Quick) < 0
        || PyModule_AddObjectRef(module, "Walker", (PyObject *)&WalkerType) < 0
        || PyModule_AddObjectRef(module, "Probe", (PyObject *)&Probe) < 0
        || PyModule_AddObjectRef(module, "QuickFunction", (PyObject *)&QuickFunction) < 0
        || PyModule_AddIntConstant(module, "NAMES_LINES", names_lines) < 0
        || PyModule_AddIntConstant(module, "SOURCE", SOURCE) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
