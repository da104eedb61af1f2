/* Lists and tuples of few numbers among operands, as the arrays that NumPy makes of them. */

enum { MOST_LISTED = 1 << 12, DEEPEST_LISTED = 2 };

/* Whether the class of each item of a list or a tuple is among some, or, `within`, of what lists and tuples in it
 * hold; -1 with an error. Items of one class, as most are that follow each other, are asked about once. */
static int
holds(PyObject *items, PyObject *classes, int within)
{
    PyTypeObject *last = NULL; /* known to the set */
    int is_known = 1;
    for (Py_ssize_t i = 0; is_known > 0 && i < PySequence_Fast_GET_SIZE(items); i++) { /* asking may run any code */
        PyObject *item = PySequence_Fast_GET_ITEM(items, i);
        if (Py_TYPE(item) == last)
            continue;
        if (within && (PyList_CheckExact(item) || PyTuple_CheckExact(item))) {
            if (Py_EnterRecursiveCall(" in lists of lists"))
                return -1;
            is_known = holds(Py_NewRef(item), classes, within);
            Py_DECREF(item);
            Py_LeaveRecursiveCall();
            continue;
        }
        PyTypeObject *class = (PyTypeObject *)Py_NewRef(Py_TYPE(item));
        is_known = PySet_Contains(classes, (PyObject *)class);
        Py_DECREF(class);
        last = class;
    }
    return is_known;
}

/* `are_of(items, classes, within=False)` */
static PyObject *
are_of(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count < 2 || count > 3 || !PyFrozenSet_CheckExact(args[1])
        || !(PyList_Check(args[0]) || PyTuple_Check(args[0]))) {
        PyErr_SetString(PyExc_TypeError, "are_of takes a list or a tuple, and a frozenset of classes");
        return NULL;
    }
    int found = holds(args[0], args[1], count == 3 && args[2] == Py_True);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

/* How many numbers a list or a tuple has, and lists in it, so deep; -1 where it is none, has anything else, or many. */
static Py_ssize_t
counted(PyObject *listed, int depth)
{
    if (depth < 1 || (!PyList_CheckExact(listed) && !PyTuple_CheckExact(listed)))
        return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(listed), count = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(listed, i);
        Py_ssize_t found = is_number(item) ? 1 : counted(item, depth - 1);
        count += found;
        if (found < 0 || count > MOST_LISTED)
            return -1;
    }
    return count;
}

/* Whether all that a list or a tuple has are numbers. */
static int
is_of_numbers(PyObject *listed)
{
    return counted(listed, 1) > 0;
}

/* Operands with arrays instead of lists (new references), where there are lists, and all of them have few numbers; else
 * 0, and no error. */
static int
unlisted(PyObject *const *given, Py_ssize_t n, PyObject **all)
{
    int lists = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        int is_list = PyList_CheckExact(given[i]) || PyTuple_CheckExact(given[i]);
        if (is_list && counted(given[i], DEEPEST_LISTED) < 1)
            return 0;
        lists |= is_list;
    }
    for (Py_ssize_t i = 0; lists && i < n; i++) {
        int is_list = PyList_CheckExact(given[i]) || PyTuple_CheckExact(given[i]);
        all[i] = is_list ? PyArray_FROM_O(given[i]) : Py_NewRef(given[i]);
        if (all[i] == NULL) { /* lists of unlike lengths, of which ours says the same */
            PyErr_Clear();
            while (i-- > 0)
                Py_DECREF(all[i]);
            return 0;
        }
    }
    return lists;
}

static void
let_go(PyObject **all, Py_ssize_t n)
{
    while (n-- > 0)
        Py_DECREF(all[n]);
}
