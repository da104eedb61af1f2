/* What happens to who reads a mapped file behind its end, since somebody has made it shorter meanwhile.
 *
 * The system ends a process that does (SIGBUS). Here, a range of addresses that is guarded gets zeros where the
 * file has nothing more, it is spoiled from then on, and whoever works on it is told, so that nobody takes those
 * zeros for elements:
 *
 * - who works inside of `enter` and `leave` asks `is_spoiled` behind its work;
 * - a thread that has said that it reads (`reads`) has an error raised in it as soon as it is back in Python, as
 *   at Ctrl-C; so has the one that said so last, for the threads that help it.
 *
 * Where nobody could be told, the process ends as it would have. The signal comes from an instruction that reads
 * an element, and from nowhere else: no lock of Python's or of the C library's is held there, other than the
 * interpreter's by a thread that has one.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif
#define MANY 256
#define OTHERS 8

typedef struct {
    _Atomic(uintptr_t) low, high; /* no addresses: a free place */
    atomic_int is_spoiled;
} Range;

typedef struct Ranges {
    Range ranges[MANY];
    _Atomic(struct Ranges *) next;
} Ranges;

static Ranges ranges; /* and those behind it, which are never let go of */
static atomic_int spoiled, entered;
static atomic_int is_to_raise; /* whether Python has been asked to call `raise_here`: it keeps few such calls */
static atomic_ulong reader; /* the thread that said last that it reads */
static _Thread_local volatile int depth;
static _Thread_local volatile int reads_at = -1; /* how deep this thread was when it last said so */
static PyObject *error;                          /* the class of what is raised */
static unsigned long main_thread;
static struct sigaction others[OTHERS];
static atomic_int other;  /* how many had the signal when we took it, which may think that we had it before */
static uintptr_t page_size;

static Range *
range_of(uintptr_t address)
{
    for (Ranges *some = &ranges; some; some = atomic_load(&some->next))
        for (int i = 0; i < MANY; i++)
            if (address >= atomic_load(&some->ranges[i].low) && address < atomic_load(&some->ranges[i].high))
                return &some->ranges[i];
    return NULL;
}

static int
raise_here(void *unused)
{
    (void)unused;
    atomic_store(&is_to_raise, 0);
    PyThreadState_SetAsyncExc(main_thread, NULL); /* it has read besides: one error, not two */
    PyErr_SetNone(error);
    return -1;
}

/* Tell whoever reads, and say whether somebody will hear of it. */
static int
told(void)
{
    int is_reader = reads_at == depth;
    if (!is_reader && (depth || atomic_load(&entered) > 0))
        return 1; /* work that asks: this thread's, or that of others whom it helps */
    unsigned long thread = is_reader ? PyThread_get_thread_ident() : atomic_load(&reader);
    if (!thread || !error)
        return 0;
    if (PyGILState_GetThisThreadState()) {
        PyGILState_STATE state = PyGILState_Ensure();
        int is_there = PyThreadState_SetAsyncExc(thread, error);
        PyGILState_Release(state);
        return is_there;
    }
    /* A thread of BLAS, say, for which somebody waits who may hold the interpreter's lock. */
    if (thread != main_thread)
        return 0;
    int is_asked = atomic_exchange(&is_to_raise, 1) || !Py_AddPendingCall(raise_here, NULL);
    if (!is_asked)
        atomic_store(&is_to_raise, 0);
    return is_asked;
}

static void
handle(int number, siginfo_t *info, void *unused)
{
    (void)unused;
    int kept = errno;
    uintptr_t address = (uintptr_t)info->si_addr & ~(page_size - 1);
    Range *range = info->si_code == BUS_ADRERR ? range_of(address) : NULL;
    if (range && told()) {
        size_t size = atomic_load(&range->high) - address;
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
        atomic_store(&range->is_spoiled, 1);
        atomic_fetch_add(&spoiled, 1);
        if (mmap((void *)address, size, PROT_READ, flags, -1, 0) != MAP_FAILED) {
            errno = kept;
            return;
        }
    }
    int last = atomic_fetch_sub(&other, 1) - 1; /* it comes again, and is whoever's it was */
    if (last >= 0)
        sigaction(number, &others[last], NULL);
    else
        signal(number, SIG_DFL);
}

/* Of all threads that work a fork has one. */
static void
forked(void)
{
    atomic_store(&entered, depth);
}

static int
install(void)
{
    struct sigaction now, ours = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (sigaction(SIGBUS, NULL, &now))
        return -1;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handle)
        return 0;
    int last = atomic_load(&other);
    if (last < 0 || last == OTHERS)
        return 0; /* somebody takes it again and again */
    others[last] = now; /* faulthandler's, say, which may have come behind ours */
    atomic_store(&other, last + 1);
    sigemptyset(&ours.sa_mask);
    return sigaction(SIGBUS, &ours, NULL);
}

static PyObject *
guard(PyObject *module, PyObject *args)
{
    unsigned long long address, size;
    if (!PyArg_ParseTuple(args, "KK", &address, &size))
        return NULL;
    if (install())
        return PyErr_SetFromErrno(PyExc_OSError);
    for (Ranges *some = &ranges;; some = atomic_load(&some->next)) {
        for (int i = 0; i < MANY; i++) {
            Range *range = &some->ranges[i];
            if (atomic_load(&range->high))
                continue;
            atomic_store(&range->is_spoiled, 0);
            atomic_store(&range->low, (uintptr_t)address);
            atomic_store(&range->high, (uintptr_t)(address + size));
            return PyLong_FromVoidPtr(range);
        }
        if (!atomic_load(&some->next)) {
            Ranges *more = PyMem_RawCalloc(1, sizeof(Ranges));
            if (!more)
                return PyErr_NoMemory();
            atomic_store(&some->next, more);
        }
    }
}

static PyObject *
release(PyObject *module, PyObject *range)
{
    Range *one = PyLong_AsVoidPtr(range);
    if (!one)
        return NULL;
    atomic_store(&one->high, 0);
    Py_RETURN_NONE;
}

static PyObject *
is_spoiled(PyObject *module, PyObject *range)
{
    Range *one = PyLong_AsVoidPtr(range);
    return one ? PyBool_FromLong(atomic_load(&one->is_spoiled)) : NULL;
}

static PyObject *
any_spoiled(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(atomic_load(&spoiled));
}

static PyObject *
enter(PyObject *module, PyObject *unused)
{
    depth++;
    atomic_fetch_add(&entered, 1);
    Py_RETURN_NONE;
}

static PyObject *
leave(PyObject *module, PyObject *unused)
{
    depth--;
    atomic_fetch_sub(&entered, 1);
    Py_RETURN_NONE;
}

static PyObject *
reads(PyObject *module, PyObject *unused)
{
    reads_at = depth;
    atomic_store(&reader, PyThread_get_thread_ident());
    Py_RETURN_NONE;
}

static PyObject *
raises(PyObject *module, PyObject *args)
{
    PyObject *class;
    if (!PyArg_ParseTuple(args, "Ok", &class, &main_thread))
        return NULL;
    Py_INCREF(class);
    Py_XSETREF(error, class);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"guard", guard, METH_VARARGS, "guard(address, size)\n--\n\nGuard whole pages; what names them from then on."},
    {"release", release, METH_O, "release(range)\n--\n\nGuard them no more; before they are another's."},
    {"is_spoiled", is_spoiled, METH_O, "is_spoiled(range)\n--\n\nWhether somebody has read what was not there."},
    {"any_spoiled", any_spoiled, METH_NOARGS, "any_spoiled()\n--\n\nWhether that has happened in this process."},
    {"enter", enter, METH_NOARGS, "enter()\n--\n\nThis thread asks `is_spoiled` behind what it reads."},
    {"leave", leave, METH_NOARGS, "leave()\n--\n\nAs before `enter`."},
    {"reads", reads, METH_NOARGS, "reads()\n--\n\nThis thread is told while it reads."},
    {"raises", raises, METH_VARARGS, "raises(error, main)\n--\n\nThe class of what is raised; Python's main thread."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_faults", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC
PyInit__faults(void)
{
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    pthread_atfork(NULL, NULL, forked);
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddIntConstant(module, "SOURCE", SOURCE)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
