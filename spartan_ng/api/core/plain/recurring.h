/* Expressions that come again and again, with other arrays: what is known of them, and the loop that is compiled for them.
 *
 * An expression's functions are NumPy's loops, one after the other, each of which reads and writes the cache. Who comes
 * often is asked for as one loop (`spartan_ng.recurring`), which keeps what lies between its functions in registers. It has
 * to make the same bits a few times, beside the loops, before it takes their place. It does not know which function comes
 * upon errors: where any does, the loops do it again, from where nothing has been written over, and tell. */

enum { MOST_OPERATORS = 40 };
enum { MOST_RECURRING = 1 << 8, TRIED = 1 << 3 };  /* expressions that are known; places where one is looked for */
enum { PROOFS = 3, MOST_REFUSED = 8 };             /* times that a kernel has to prove itself, and is in vain */

/* A function of an expression, by its loop, the type of its results, where in the code it is called, -1 where the code
 * is, and the floating-point errors that somebody is to be told of; operands by their places, results of earlier ones by
 * `~` their number. */
typedef struct {
    const char *name;
    PyUFuncGenericFunction loop;
    void *data;
    int n, type, at, told, operands[MOST_TAKEN], is_cast;
} Called;

/* What is the same whenever an expression comes: its functions, types, and how elements lie along its lines: one after the
 * other ("c"), in even steps ("s"), or all at one place ("z"). */
typedef struct {
    int8_t count, places, types[MOST_SHARED + 1], letters[MOST_SHARED + 1];
    struct {
        PyUFuncGenericFunction loop;
        void *data;
        int8_t n, type, operands[MOST_TAKEN];
    } called[MOST_OPERATORS];
} Likeness;

typedef struct Recurring {
    size_t hash;              /* 0 where there is none */
    Likeness is;
    double done, asked;       /* operations on elements; so many from when on a kernel is asked for next */
    Kernel kernel;
    int proofs, refused, is_refused;
} Recurring;

static Recurring all_recurring[MOST_RECURRING];
static PyObject *kernel_for; /* asked for kernels; NULL as long as nobody has any */
static double least_recurring; /* operations from which one is asked for */

static size_t
hash_of(const Likeness *is)
{
    const uint64_t *words = (const uint64_t *)is;
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < sizeof *is / sizeof *words; i++)
        hash = (hash ^ words[i]) * 1099511628211u ^ hash >> 29;
    return hash == 0 ? 1 : hash;
}

static char
letter_of(const Shared *job, int i)
{
    npy_intp step = job->steps[i][job->axes - 1];
    return step == 0 ? 'z' : step == job->sizes[i] ? 'c' : 's';
}

/* What is known of an expression with such functions and arrays, as it is to be worked on; NULL where there is no room, or
 * nothing is to be compiled. */
static Recurring *
recurring_of(const Called *called, int count, PyArrayObject *const *arrays, const Shared *job)
{
    if (kernel_for == NULL || count < 2 || !are_kernels_wanted())
        return NULL;
    static Likeness is; /* with the interpreter's lock */
    memset(&is, 0, sizeof is);
    is.count = (int8_t)count;
    is.places = (int8_t)(job->n - 1);
    for (int i = 0; i < job->n; i++) {
        is.types[i] = (int8_t)(i == job->n - 1 ? called[count - 1].type : arrays[i] == NULL ? -1 : PyArray_TYPE(arrays[i]));
        is.letters[i] = letter_of(job, i);
    }
    for (int k = 0; k < count; k++) {
        is.called[k].loop = called[k].loop;
        is.called[k].data = called[k].data;
        is.called[k].n = (int8_t)called[k].n;
        is.called[k].type = (int8_t)called[k].type;
        for (int i = 0; i < called[k].n; i++)
            is.called[k].operands[i] = (int8_t)called[k].operands[i];
    }
    size_t hash = hash_of(&is);
    Recurring *least = NULL;
    for (int i = 0; i < TRIED; i++) {
        Recurring *one = &all_recurring[(hash + i) % MOST_RECURRING];
        if (one->hash == hash && memcmp(&one->is, &is, sizeof is) == 0)
            return one;
        if (one->kernel == NULL && !one->is_refused && (least == NULL || one->done < least->done))
            least = one;
    }
    if (least != NULL) {
        *least = (Recurring){.hash = hash, .asked = least_recurring, .proofs = PROOFS};
        memcpy(&least->is, &is, sizeof is);
    }
    return least;
}

/* What a kernel is told by: functions by name, with the types of their results and their operands;
 * types of places, None for numbers, and the result's last; letters of all of them. */
static PyObject *
in_words(const Called *called, const Likeness *is)
{
    PyObject *functions = PyTuple_New(is->count), *types = PyTuple_New(is->places + 1), *letters = NULL, *all = NULL;
    char text[MOST_SHARED + 1];
    for (int k = 0; functions != NULL && k < is->count; k++) {
        PyObject *operands = PyTuple_New(called[k].n), *one = NULL;
        for (int i = 0; operands != NULL && i < called[k].n; i++) {
            PyObject *number = PyLong_FromLong(called[k].operands[i]);
            if (number == NULL)
                Py_CLEAR(operands);
            else
                PyTuple_SET_ITEM(operands, i, number);
        }
        if (operands != NULL)
            one = Py_BuildValue("sNN", called[k].is_cast ? "cast" : called[k].name, PyArray_DescrFromType(called[k].type), operands);
        if (one == NULL)
            Py_CLEAR(functions);
        else
            PyTuple_SET_ITEM(functions, k, one);
    }
    for (int i = 0; types != NULL && i <= is->places; i++) {
        text[i] = (char)is->letters[i];
        PyTuple_SET_ITEM(types, i, is->types[i] < 0 ? Py_NewRef(Py_None) : (PyObject *)PyArray_DescrFromType(is->types[i]));
    }
    letters = PyUnicode_FromStringAndSize(text, is->places + 1);
    if (functions != NULL && types != NULL && letters != NULL)
        all = PyTuple_Pack(3, functions, types, letters);
    Py_XDECREF(functions);
    Py_XDECREF(types);
    Py_XDECREF(letters);
    return all;
}

/* Ask for an expression's kernel, or say that it `is_wrong`; -1 with an error, which is that of a signal's handler, or a
 * warning that is to be one. */
static int
ask_about(Recurring *one, const Called *called, int is_wrong)
{
    PyObject *all = in_words(called, &one->is), *found = NULL;
    size_t hash = one->hash;
    double done = one->done;
    if (all != NULL)
        found = PyObject_CallFunction(kernel_for, "Odi", all, done, is_wrong);
    Py_XDECREF(all);
    long long address = found == NULL ? 0 : PyLong_AsLongLong(found);
    Py_XDECREF(found);
    int failed = PyErr_Occurred() != NULL;
    if (one->hash == hash) { /* else other code has run, and has taken its place */
        one->asked = 1.25 * done + least_recurring;
        one->kernel = !failed && address > 0 && !is_wrong ? (Kernel)(intptr_t)address : NULL;
        one->is_refused = (!failed && address < 0) || is_wrong;
    }
    return failed ? -1 : 0;
}

/* Ask for the kernel of an expression that has come often enough; -1 with an error. */
static int
ask_for_kernel(Recurring *one, const Called *called)
{
    int is_asked = one != NULL && one->kernel == NULL && !one->is_refused && one->done >= one->asked;
    return is_asked ? ask_about(one, called, 0) : 0;
}

/* A kernel that has proved itself, NULL where there is none. */
static Kernel
trusted_kernel(const Recurring *one)
{
    return one != NULL && one->proofs == 0 ? one->kernel : NULL;
}

static int
is_to_prove_itself(const Recurring *one)
{
    return one != NULL && one->kernel != NULL && one->proofs > 0;
}

/* Leave an expression to the loops. */
static void
give_up(Recurring *one)
{
    one->kernel = NULL;
    one->is_refused = 1;
}

/* Note that a kernel came upon errors: after some times it is no help. */
static void
refuse(Recurring *one)
{
    if (one != NULL && ++one->refused >= MOST_REFUSED)
        give_up(one);
}

/* Whether two results have the same bits, but for those of NaN. */
static int
are_same_results(PyArrayObject *one, PyArrayObject *other)
{
    npy_intp size = PyArray_SIZE(one), bytes = PyArray_ITEMSIZE(one);
    const char *a = PyArray_BYTES(one), *b = PyArray_BYTES(other);
    int type = PyArray_TYPE(one), is_float = type == NPY_DOUBLE || type == NPY_FLOAT;
    if (memcmp(a, b, size * bytes) == 0)
        return 1;
    for (npy_intp i = 0; is_float && i < size; i++, a += bytes, b += bytes) {
        double x = type == NPY_DOUBLE ? *(const double *)a : *(const float *)a;
        double y = type == NPY_DOUBLE ? *(const double *)b : *(const float *)b;
        if (memcmp(a, b, bytes) != 0 && (x == x || y == y))
            return 0;
    }
    return is_float;
}

/* `learn_recurring(kernel_for, least)`: whom to ask for kernels, and from how many operations on elements on; what was known
 * is forgotten. */
static PyObject *
learn_recurring(PyObject *module, PyObject *args)
{
    PyObject *asked;
    double least;
    if (!PyArg_ParseTuple(args, "Od:learn_recurring", &asked, &least))
        return NULL;
    memset(all_recurring, 0, sizeof all_recurring);
    least_recurring = least;
    Py_XSETREF(kernel_for, asked == Py_None ? NULL : Py_NewRef(asked));
    Py_RETURN_NONE;
}
