"""Numbers that are neither counted nor measured: what each means, its unit, and in brackets the benchmark to
run by whoever changes it.

They say how much longer one thing takes than another on any machine. What differs between machines is in the
profile. "(chosen)" says that no benchmark has set a number, and none is claimed.
"""

from __future__ import annotations

BLAS_SPEEDUP = 4
"""Operations of a dense product that BLAS does in the time of one of a loop over elements: it
vectorizes, and reads from the caches. (`benchmarks`: matmul 1000 to 4000 beside sums of maps)"""

SMALL_BLAS_SPEEDUP = 4.5
"""The same of products of some tens of rows, by which the profile is measured. (`benchmarks predictions`:
exp and sum, sorts, k-means step)"""

FEW_LINES = 8
"""Lines with which a product of matrices takes about as long as reading the larger one.
(`benchmarks.npbench`: mlp)"""

RESULT_FLOPS = 8
"""Operations that an element of a product's result takes the time of at least: BLAS writes it, the
next step reads it. (`benchmarks`: products of thin matrices)"""

PANEL_FLOPS = 5
"""Operations that an element of a matrix takes the time of which BLAS multiplies with another matrix: it is
copied into panels that fit the caches. Vectors are read as they lie. (`benchmarks predictions`: k-means
step)"""

AROUND_BYTES = 1 << 16
"""Bytes that are copied in about the time of asking an array of ours for its NumPy array. (Measured with
`numpy.asarray` of a view: 2.7 us for the view alone, 5.5 among so many bytes)"""

USER_FLOPS = 1_000
"""Operations that an element is taken to cost in a user's function: too much to compute it twice,
and enough to share a few thousand of them between workers. Nobody can count them. (chosen)"""

STEP_FLOPS = 4
"""Operations an element of a step that has no row in a table: it finds where the element lies, and
moves it. (chosen)"""

LINE_FLOPS = 200
"""Operations that a line takes the time of in which NumPy finds a place, besides its elements: it goes from
line to line by calls. (`benchmarks predictions`: k-means step)"""

LOOKUP_FLOPS = 96
"""Operations an element that is looked up: more often than not its line is in no cache. (`benchmarks
predictions`)"""

SEARCH_FLOPS = 480
"""Operations an element whose place among thousands is searched for. (Measured with `kernels.searches` on one
thread: 47 ns among 8,000 numbers, 57 among 65,000, 83 among a million)"""

NEAR_LOOKUP_FLOPS = 24
"""The same of an array whose lines a core's caches keep. (Measured with `np.take` on one thread: 1.4 ns of
half a megabyte, 3.4 of four, 7 of 32 and 11 of 256)"""

NEAR_BYTES = 1 << 22
"""Bytes of an array that they keep. (Measured as above)"""

MEET_FLOPS = 192
"""Operations that a pair of non-zeros takes the time of in a product of two sparse matrices: its place in the
result is found twice. (Measured with SciPy on one thread: 18 ns with 10 in a row, 37 with 50)"""

DISTINCT_FLOPS = 256
"""Operations that an index takes the time of which is sorted among others, to be asked for once.
(`benchmarks predictions`: lookup, on 4 workers)"""

TURNED = 3
"""Times that a byte counts which a pass reads against the order in which it lies. (`benchmarks
predictions`)"""

WRITTEN = 2
"""Times that a byte counts which a pass writes: the line that it lies in is read before. (`benchmarks
predictions`)"""

FRESH = 8
"""Times that a byte counts which is written to memory that the system hands out for it, page by page.
(`benchmarks cold`)"""

OUTSIDE = 4
"""Times that a byte counts which is read from outside, of a file or by a function: it is fetched or
made, often unpacked, and copied. (`benchmarks larger`: reading the file, warm)"""

ASIDE = 32
"""Times that a byte counts which is written to disk for want of memory. (Measured with 480 MB of doubles, put
aside in pieces of 1 MB: 1.3 to 12 ns a value of a processor, 8 to 85 until they are written)"""

CHAIN_STEPS = 64
"""Steps on small lazy arrays in a row, at most, before the last is evaluated where it stands: all of them are
planned again with every program that asks for something after them. (`benchmarks.small_programs`)"""

BACKLOG_NS, BACKLOG_STEPS = 2_000_000_000, 256
"""Nanoseconds of work for one thread on large lazy arrays, and steps in a row, from which on the last is
evaluated where it stands: a program that is stopped, or stops itself by the clock, has no more than that to
compute. (chosen)"""

LAUNCH_NS = 50_000
"""Nanoseconds that a stage takes besides its work: its tasks are handed to threads, its blocks are
cut. (`benchmarks planning`)"""

STEP_NS = 1_000
"""Nanoseconds of the same for one operator of a stage, and for one operand. (`benchmarks planning`)"""

TASK_NS = 5_000
"""Nanoseconds of the master's and a worker's time that one more worker in a stage costs.
(`benchmarks`: a loop's step on 4 workers)"""

PART_NS = 1_500_000
"""Nanoseconds of a processor that a worker's part of a job takes besides its work: messages are read, threads
woken, caches filled again that others have used. (`benchmarks predictions`: on 4 workers; the processors'
time of all workers for a job, less that of one process with as many threads as there are processors)"""

NETWORK_BYTES_S = 1_000_000_000
"""Bytes a second that a worker is taken to receive of others, until that is measured. (chosen)"""

LENDING_S = 0.002
"""Seconds that a task is on its way to another worker and back, besides its bytes. (chosen)"""

WORTH = 2.0
"""A task is lent where it takes so many times as long as its way. (chosen)"""

PATIENCE = 4.0
"""After so many times a task's usual seconds, and its way, one that was lent is done by its owner,
too. (chosen)"""

SLOW = 3.0
"""What its owner has been at for so many times the usual seconds, and its way, others do, too. (chosen)"""

MESSAGE_NS = 100_000
"""Nanoseconds until the first byte of a remote read arrives. (`benchmarks network`)"""

ENGINE_TASK_NS, ENGINE_MESSAGE_NS = 2_000_000, 1_000_000
"""Nanoseconds of a rank more in a stage (its task, and those that cut out what it reads), and until the first
byte of a remote read, on an engine whose scheduler is a Python process. (chosen)"""

LENT_FLOPS = 1 << 26
"""Operations of a worker's share from which on its tasks are lent to those who have none: asking takes
a few messages. (`benchmarks skew`)"""

BACKED_S = 0.004
"""A worker's share of a stage that is expected to take so long may be run by another one as well, where its
worker is slow: it runs on a thread of its own, which takes about 0.05 ms. (chosen)"""

DIRECT_FLOPS = 1 << 22
"""Operations of a step up to which NumPy does it at once, on one thread: half a millisecond, beyond
which threads bring more than they cost. (`benchmarks cold`)"""

INTERPRETED_FLOPS_S = 500_000_000
"""Operations a second that a thread of the interpreter does, which goes over its blocks once for each.
(`benchmarks functions`)"""

COMPILER_S = 0.35
"""Seconds until the compiler's process has begun with a program's first kernel. (`benchmarks cold`)"""

COMPILE_S = 0.06
"""Seconds that a kernel takes to compile. (`benchmarks cold`)"""

KERNELS_S = 0.04
"""Seconds that what makes the sources of kernels takes to be imported. (Measured: 0.026 to 0.05)"""

RECURRING_S = 3e-10
"""Seconds that NumPy's loop of an arithmetical function takes for an element in the cache. (Measured: 0.2 to
0.4 ns)"""

BEGIN_S = 0.1
"""Seconds that the optimizer, the kernels and the workers take to be imported. (Measured: 0.05 of a processor
that does nothing else, 0.075 of one that others use; `benchmarks cold`)"""

AGAIN_S = 0.04
"""The same without what makes plans, where earlier starts of the program have left its own. (Measured: 0.025
to 0.04; `benchmarks cold`)"""

DRAW_NS = 10
"""Nanoseconds that NumPy takes to draw a number: 4 for doubles, 14 for normal ones, up to 30 for others.
(Measured: 3, 13 and, of gamma, 21)"""

STATES_BYTES = 1 << 27
"""Bytes that the states of all blocks of a sparse tile may take together. (chosen)"""

SMALL_FLOPS = 1 << 20
"""Operations of a task below which it is done on one thread. (`benchmarks cold`)"""

THREAD_BYTES_S = 13_000_000_000
"""Bytes a second that a thread of an embedded worker is taken to stream in compiled loops, until the machine
is measured. (`benchmarks functions`: medians of sums and maps)"""

THREAD_FLOPS_S = 10_000_000_000
"""Operations a second of the same, as the tables of functions count them. (`benchmarks functions`)"""

COUNTED = 8
"""Bytes that a block takes which is counted by places, for each of its state's, which has an element for each
place: making and adding a state takes about as long as counting four elements for each of its own, of sixteen
bytes with their weights. (Measured with `numpy.bincount` of 12.5 million weights in 1.25 million places: .3 s
of two processors in blocks of 390,000, .07 in four blocks)"""
