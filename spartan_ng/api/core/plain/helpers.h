/* Threads that help with jobs in pieces, which whoever is free takes.
 *
 * A job's pieces are given out by one number: which job it is, how many pieces it has, and which is the next. Who
 * takes one has it of the job that is there, and the job stays until all of its pieces are done. The caller works,
 * too: where no helper comes in time, it has done everything itself, and has lost the microsecond of asking. Where
 * helpers were none, as when others want the processors, too, the next jobs are not shared. */
enum { MOST_PIECES = 1 << 15 };

typedef void (*Work)(void *job, int piece);

#ifdef _WIN32 /* has none of these: everybody works alone */

typedef int Flags;
#define set_flags(flags, more) ((void)(*(flags) |= (more)))

static void
be_ready_to_fork(void)
{
}

static void
do_together(Work work, void *job, int pieces, int threads)
{
    for (int piece = 0; piece < pieces; piece++)
        work(job, piece);
}

#else

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

enum { MOST_HELPERS = 7 };
enum { WATCHED = 1000, WAITED = 1000 };         /* times that a thread looks before it sleeps, or lets others run */
enum { ASKED_NS = 1000, MOST_ALONE = 1 << 10 }; /* that asking takes; jobs without helpers where they are no help */
enum { WOKEN_NS = 35000 };                      /* of work that is left, from where helpers are worth waking */

typedef atomic_int Flags; /* of a job, which all who work on it may set */
#define set_flags(flags, more) ((void)atomic_fetch_or(flags, more))

static struct {
    pthread_mutex_t busy, lock;  /* one job at a time; sleeping */
    pthread_cond_t woken;
    int started;                 /* helpers that there are, */
    atomic_int wanted, asleep;   /* that are to help, and that sleep */
    atomic_ullong ticket;        /* 16 bits each: how many pieces a job has, are taken from its end, and its start */
    atomic_int done;             /* pieces */
    Work work;
    void *job;
    int alone, bound;            /* jobs that will not be shared, and how many it is the next time */
} helping = {.busy = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .woken = PTHREAD_COND_INITIALIZER};

static void
rest(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Do one piece, if there is one that nobody has taken. Helpers take them from the end: in the next job, on the same
 * arrays, each finds in its processor's cache what it worked on in this one. */
static int
helped(int from_end)
{
    unsigned long long ticket = atomic_load(&helping.ticket);
    for (;;) {
        int pieces = (int)(ticket >> 32 & 0xffff), last = (int)(ticket >> 16 & 0xffff), first = (int)(ticket & 0xffff);
        if (first + last >= pieces)
            return 0;
        if (atomic_compare_exchange_weak(&helping.ticket, &ticket, ticket + (from_end ? 1 << 16 : 1))) {
            helping.work(helping.job, from_end ? pieces - 1 - last : first);
            atomic_fetch_add(&helping.done, 1);
            return 1;
        }
    }
}

static int
is_left(unsigned long long ticket)
{
    return (ticket & 0xffff) + (ticket >> 16 & 0xffff) < (ticket >> 32 & 0xffff);
}

/* Look out for pieces for as long as a program takes from one operation to the next, and then sleep. Who is woken
 * too late for a job looks out for the next ones. */
static void *
help(void *number)
{
    for (;;) {
        for (int watched = 0; watched < WATCHED; watched++) {
            if ((Py_ssize_t)number < atomic_load(&helping.wanted) && helped(1))
                watched = 0;
            rest();
        }
        pthread_mutex_lock(&helping.lock);
        atomic_fetch_add(&helping.asleep, 1);
        if (!((Py_ssize_t)number < atomic_load(&helping.wanted) && is_left(atomic_load(&helping.ticket))))
            pthread_cond_wait(&helping.woken, &helping.lock);
        atomic_fetch_sub(&helping.asleep, 1);
        pthread_mutex_unlock(&helping.lock);
    }
    return NULL;
}

/* In the child of a fork there are no other threads. */
static void
be_alone(void)
{
    pthread_mutex_init(&helping.busy, NULL);
    pthread_mutex_init(&helping.lock, NULL);
    pthread_cond_init(&helping.woken, NULL);
    helping.started = 0;
    atomic_store(&helping.asleep, 0);
    atomic_store(&helping.ticket, 0);
}

static void
be_ready_to_fork(void)
{
    pthread_atfork(NULL, NULL, be_alone);
}

/* Have so many helpers, which no signal disturbs; how many there are. What a thread brings about itself is no
 * disturbance: the system ends a process that does not hear of it, whoever handles it. */
static int
started(int wanted)
{
    static const int own[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (helping.started < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, help, (void *)(Py_ssize_t)helping.started) != 0)
            break;
        pthread_detach(thread);
        helping.started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return Py_MIN(helping.started, wanted);
}

static long long
now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Take note of what helpers have done, `others` pieces beside `own` ones in so many nanoseconds, and of the wait for
 * the last of them. */
static void
judge(int own, int others, long long worked_ns, long long waited_ns)
{
    if (own > 0 && others * (worked_ns / own) > waited_ns + ASKED_NS)
        helping.bound /= 2;
    else
        helping.alone = helping.bound = Py_MIN(2 * helping.bound + 1, MOST_ALONE);
}

/* Do a job with helpers, until all of its pieces are done. Its first piece tells how long the others take, and so
 * whether helpers that sleep are woken; a job that has left them asleep says nothing of them. */
static void
lead(Work work, void *job, int pieces, int helpers)
{
    long long begun = now_ns(), ended;
    unsigned long long number = (atomic_load(&helping.ticket) >> 48) + 1;
    helping.work = work;
    helping.job = job;
    atomic_store(&helping.done, 0);
    atomic_store(&helping.wanted, helpers);
    atomic_store(&helping.ticket, number << 48 | (unsigned long long)pieces << 32);
    int own = helped(0), asleep = atomic_load(&helping.asleep);
    int wakes = (now_ns() - begun) * (pieces - 1) > WOKEN_NS;
    if (asleep > 0 && wakes) {
        pthread_mutex_lock(&helping.lock);
        pthread_cond_broadcast(&helping.woken);
        pthread_mutex_unlock(&helping.lock);
    }
    while (helped(0))
        own++;
    ended = now_ns();
    for (int waited = 0; atomic_load(&helping.done) < pieces; waited++) {
        rest();
        if (waited >= WAITED)
            sched_yield();
    }
    if (asleep < helpers || wakes)
        judge(own, pieces - own, ended - begun, now_ns() - ended);
}

/* Have `pieces` of a job done by this thread, and by others where they are free; those that sleep are woken where that
 * pays. Needs no GIL. */
static void
do_together(Work work, void *job, int pieces, int threads)
{
    int helpers = 0, is_free = pieces > 1 && threads > 1 && pthread_mutex_trylock(&helping.busy) == 0;
    if (is_free && helping.alone > 0)
        helping.alone--;
    else if (is_free)
        helpers = started(Py_MIN(threads - 1, MOST_HELPERS));
    if (helpers > 0)
        lead(work, job, pieces, helpers);
    else
        for (int piece = 0; piece < pieces; piece++)
            work(job, piece);
    if (is_free)
        pthread_mutex_unlock(&helping.busy);
}

#endif
