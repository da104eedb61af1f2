/* The lines of arrays alike, as a universal function's loop goes along them: where each begins, one after the other. */

enum { MOST_AXES = 6, MOST_SHARED = 32, MOST_BUFFERED = 8, MOST_TAKEN = 3 };
enum { GATHERED = 1 << 13, BUFFER = 1 << 13, CACHE_LINE = 64 };  /* bytes of several lines, of results; bytes */

/* What a thread has for short lines that it gathers, and for results that other loops read: more than the stack of some
 * threads has room for. */
#if defined(_MSC_VER)
static __declspec(thread)
#else
static _Thread_local
#endif
struct {
    _Alignas(CACHE_LINE) char gathered[MOST_SHARED + 1][GATHERED], buffers[MOST_BUFFERED][BUFFER];
} scratch;

/* One loop of several: places that it reads, and the one it writes to; the results of others lie in buffers, `~` their
 * number, as so many bytes each. */
typedef struct {
    PyUFuncGenericFunction loop;
    void *data;
    int n, places[MOST_TAKEN + 1];
    npy_intp sizes[MOST_TAKEN + 1];
    Flags told;
} Step;

/* All loops of a program as one, compiled (`recurring.h`): it is given a table's address, lines and columns, after places for
 * a result and an error that it has no use for. A line has how many lines of the arrays there are and how long they are;
 * then for each place where it begins, and how far its lines and its elements lie from each other. */
typedef int32_t (*Kernel)(void *result, void *error, int64_t table, int64_t lines, int64_t columns);

typedef struct {
    PyUFuncGenericFunction loop;       /* the only one, */
    void *data;
    Step *program;                     /* or all of them, in their order, unless this is NULL, */
    int count;
    Kernel kernel;                     /* which may be compiled, */
    int is_written_over;               /* whether the result lies where an operand does */
    Flags refused;                     /* and whether the kernel came upon errors, whose functions it does not know */
    npy_intp block;                    /* and elements that they are called for at a time */
    int n, axes;                       /* places, the result's last; axes, the last of which the loop goes along */
    npy_intp shape[MOST_AXES];
    npy_intp steps[MOST_SHARED + 1][MOST_AXES];
    char *places[MOST_SHARED + 1];
    npy_intp part;                     /* elements of a line that the loop gets at a time */
    npy_intp parts, units, per_piece;  /* of a line; of all lines; of those that a piece has */
    npy_intp together;                 /* short lines that the loop gets at a time, 0 where they are long */
    npy_intp sizes[MOST_SHARED + 1];   /* bytes of elements */
    Flags told;                        /* what floating-point operations have to tell */
} Shared;

/* Where a thread is: in which part of which line, and where that begins. */
typedef struct {
    npy_intp at[MOST_AXES], part;
    char *lines[MOST_SHARED + 1];
} Place;

static Place
place_at(const Shared *job, npy_intp unit)
{
    Place here = {.part = unit % job->parts};
    npy_intp line = unit / job->parts;
    memcpy(here.lines, job->places, sizeof here.lines);
    for (int axis = job->axes - 2; axis >= 0; axis--) {
        here.at[axis] = line % job->shape[axis];
        line /= job->shape[axis];
        for (int i = 0; i < job->n; i++)
            here.lines[i] += here.at[axis] * job->steps[i][axis];
    }
    return here;
}

static void
go_on(const Shared *job, Place *here)
{
    if (++here->part < job->parts)
        return;
    here->part = 0;
    for (int axis = job->axes - 2; axis >= 0; axis--) {
        int is_over = ++here->at[axis] == job->shape[axis];
        for (int i = 0; i < job->n; i++)
            here->lines[i] += job->steps[i][axis] * (is_over ? 1 - job->shape[axis] : 1);
        if (!is_over)
            return;
        here->at[axis] = 0;
    }
}

/* Go on by some lines, of which the axis before the last one has as many left. */
static void
pass_lines(const Shared *job, Place *here, npy_intp lines)
{
    int before = job->axes - 2;
    here->at[before] += lines - 1;
    for (int i = 0; i < job->n; i++)
        here->lines[i] += (lines - 1) * job->steps[i][before];
}

/* Call all loops, for some elements after the others: what lies between them stays in the cache. */
static void
call_program(const Shared *job, char *const *places, npy_intp count, const npy_intp *steps)
{
    char (*buffers)[BUFFER] = scratch.buffers;
    for (npy_intp from = 0; from < count; from += job->block) {
        npy_intp n = Py_MIN(job->block, count - from);
        for (Step *step = job->program; step < job->program + job->count; step++) {
            char *at[MOST_TAKEN + 1];
            npy_intp by[MOST_TAKEN + 1];
            for (int i = 0; i <= step->n; i++) {
                int place = step->places[i];
                at[i] = place < 0 ? buffers[~place] : places[place] + from * steps[place];
                by[i] = place < 0 ? step->sizes[i] : steps[place];
            }
            step->loop(at, &n, by, step->data);
            int told = fetestexcept(TOLD);
            if (told) {
                set_flags(&step->told, told);
                feclearexcept(TOLD);
            }
        }
    }
}

static void
call_loops(const Shared *job, char **places, npy_intp count, const npy_intp *steps)
{
    if (job->program == NULL)
        job->loop(places, &count, steps, job->data);
    else
        call_program(job, places, count, steps);
}

/* Have the kernel go through some lines' elements from one on; 0 where it came upon errors, and nothing has been written over. */
static int
do_by_kernel(const Shared *job, const Place *here, npy_intp lines, npy_intp from, npy_intp count)
{
    int64_t table[2 + 3 * (MOST_SHARED + 1)] = {lines, count};
    char *nowhere[2], *aside = job->is_written_over ? scratch.gathered[0] : NULL;
    int last = job->axes - 1, out = job->n - 1;
    npy_intp size = job->sizes[out], step = job->steps[out][last], per_line = last > 0 ? job->steps[out][last - 1] : 0;
    for (int i = 0; i < job->n; i++) {
        int64_t *of = table + 2 + 3 * i;
        of[0] = (int64_t)(intptr_t)(here->lines[i] + from * job->steps[i][last]);
        of[1] = last > 0 ? job->steps[i][last - 1] : 0;
        of[2] = job->steps[i][last];
        if (i == out && aside != NULL) {
            of[0] = (int64_t)(intptr_t)aside;
            of[1] = count * size;
            of[2] = size;
        }
    }
    job->kernel(nowhere, nowhere + 1, (int64_t)(intptr_t)table, 1, 2 + 3 * job->n);
    if (fetestexcept(TOLD)) {
        feclearexcept(TOLD);
        return 0;
    }
    for (npy_intp line = 0; aside != NULL && line < lines; line++) {
        char *to = here->lines[out] + line * per_line + from * step;
        if (step == size)
            memcpy(to, aside + line * count * size, count * size);
        else
            for (npy_intp i = 0; i < count; i++)
                memcpy(to + i * step, aside + (line * count + i) * size, size);
    }
    return 1;
}

/* The same, for as many lines of a piece as there are from a unit on; how many units that were, 0 where it came upon errors. */
static npy_intp
units_by_kernel(Shared *job, Place *here, npy_intp units)
{
    int last = job->axes - 1;
    npy_intp from = here->part * job->part, count = Py_MIN(job->shape[last] - from, job->part), lines = 1;
    if (job->parts == 1 && last > 0)
        lines = Py_MIN(units, job->shape[last - 1] - here->at[last - 1]);
    if (job->is_written_over) {
        npy_intp room = sizeof scratch.gathered / (count * job->sizes[job->n - 1]);
        lines = Py_MAX(1, Py_MIN(lines, room));
    }
    if (!do_by_kernel(job, here, lines, from, count)) {
        set_flags(&job->refused, 1);
        return 0;
    }
    if (lines > 1)
        pass_lines(job, here, lines);
    return lines;
}

/* Whether some lines of an operand lie one after the other: along one axis, or along all of them. */
static int
lies_together(const Shared *job, int i, int is_one_run)
{
    for (int axis = job->axes - 1; axis > 0; axis--) {
        if (job->steps[i][axis - 1] != job->steps[i][axis] * job->shape[axis])
            return 0;
        if (is_one_run)
            break;
    }
    return 1;
}

/* Some short lines, one after the other: as one line; `here` is at the last one then. The result's come last. */
static void
do_lines(const Shared *job, Place *here, npy_intp lines)
{
    char (*gathered)[GATHERED] = scratch.gathered;
    int last = job->axes - 1, out = job->n - 1;
    npy_intp length = job->shape[last], steps[MOST_SHARED + 1], run = Py_MIN(lines, job->shape[last - 1] - here->at[last - 1]);
    char *places[MOST_SHARED + 1];
    for (int i = 0; i < job->n; i++) {
        int lies = lies_together(job, i, run == lines);
        places[i] = lies ? here->lines[i] : gathered[i];
        steps[i] = lies ? job->steps[i][last] : job->sizes[i];
    }
    Place first = *here;
    for (npy_intp done = 0; done < lines; done += run) {
        if (done)
            go_on(job, here);
        run = Py_MIN(lines - done, job->shape[last - 1] - here->at[last - 1]);
        for (int i = 0; i < out; i++)
            if (places[i] == gathered[i])
                gather(places[i] + done * length * job->sizes[i], here->lines[i], run, length, job->steps[i][last - 1],
                       job->steps[i][last], job->sizes[i]);
        pass_lines(job, here, run);
    }
    call_loops(job, places, lines * length, steps);
    for (npy_intp done = 0; places[out] == gathered[out] && done < lines; done += run) {
        if (done)
            go_on(job, &first);
        run = Py_MIN(lines - done, job->shape[last - 1] - first.at[last - 1]);
        scatter(first.lines[out], places[out] + done * length * job->sizes[out], run, length, job->steps[out][last - 1],
                job->steps[out][last], job->sizes[out]);
        pass_lines(job, &first, run);
    }
}
