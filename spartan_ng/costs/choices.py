"""From how much on another way of computing is taken: numbers that choose between two ways by their speed.

Each has its unit, its meaning, and in brackets the benchmark or the measurement that set it. "(chosen)" says
that none has: whoever changes one measures both ways first.
"""

from __future__ import annotations

from typing import Any

# --- when kernels are compiled --------------------------------------------------------------------

HOT_S = 0.02
"""Seconds of interpreting after which a stage is compiled. (chosen)"""

MISSED = 5
"""Times `HOT_S` that kernels would have saved stages of a program, all together, until a process is started
that compiles them: a third of what it takes to start, as some processors may be idle. (`benchmarks cold`: X.T
@ (X @ v), 2e4 × 5000)"""

STREAMED_SAVED = 1 / 3
"""The part of its time that loops save of a product whose operands BLAS waits for: they read them once for
all steps. (Measured: X.T @ (X @ v), 2e4 × 5000, takes .65 to .75 of the interpreter's time)"""

SOON_S = 0.02
"""Seconds of a run on its threads that are worth loading kernels that lie on disk. (chosen)"""

LONG_RUN_S = 0.2
"""Seconds of a first run whose stage is compiled at once. (chosen)"""

COMPILED_ROWS = 200
"""Rows of a body beyond which compiling takes too long for what it brings. (chosen)"""

COMPILED_SCAN_ROWS = 60
"""The same of a scan. (chosen)"""

COMPILE_SHARE = 4
"""What is done without kernels waits for the compiler for no longer than one part in so many of its time.
(chosen)"""

RECURRING = float(1 << 22)
"""Operations on elements that expressions alike have taken when a kernel for them is asked for first, about a
millisecond. (chosen)"""

WARM = 8
"""A part in so many of the work that a kernel is worth being compiled for is worth loading it. (chosen)"""

WINDOW_ELEMENTS = 32
"""Elements of a window up to which it is folded by steps over slices: a pass over more slices takes longer
to compile than windows to make. (chosen)"""

SLAB_BYTES = 1 << 18
"""Bytes of windows' elements that NumPy copies at a time. (Measured with windows of 4 to 256 and 5 by 5
doubles and complex numbers, 40 to 64 MB of them: products by BLAS .1 to .6 of NumPy's time of processors,
variances .4 to 1; of twice as many bytes BLAS has its threads wait for each other at every slab of complex
numbers, from eight times as many on of doubles, too, which takes ten times as long; of half as many calls
take longer)"""

WINDOW_LOOPS = 2
"""How often NumPy's loops go over the elements of the largest operand before products by BLAS are faster."""

# --- where elements are read ----------------------------------------------------------------------

LOAN_READS = 8
"""Times that calls read an array where it lies in somebody else's memory which take as long as copying it: 3
where pages are there, 40 where a host has yet to give them. What a call writes that it would not have to
takes as long as a copy of it. (`benchmarks cold`: entered)"""

# --- from what size on a compiled loop is worth its call ------------------------------------------

BETWEEN_ELEMENTS = 1 << 14
"""Elements from which a compiled look for what lies between bounds is worth its call. (chosen)"""

DEVIATION_ELEMENTS = 1 << 12
"""Elements of a block from which compiled deviations are. (chosen)"""

DICTIONARY_LOOKUPS = 1 << 12
"""Look-ups, or elements, from which loops over dictionaries are. (chosen)"""

GROUP_SUM_ELEMENTS = 1 << 14
"""Elements of a block from which compiled sums by labels are. (chosen)"""

PREFIX_ELEMENTS = 1 << 15
"""Elements of a line from which compiled extremes of prefix sums are. (chosen)"""

SCAN_ELEMENTS = 1 << 16
"""Elements from which compiled scans are. (chosen)"""

SPARSE_PRODUCTS = 1 << 20
"""Multiplications from which a compiled product of a sparse array is. (chosen)"""

STRIP_NONZEROS = 1 << 14
"""Non-zeros of 65,536 rows in as many columns from which all these rows' sums are added to for each strip of
columns: two for each line of the cache that they lie in. (chosen)"""

STRIP_PRODUCTS = 3
"""Products of a matrix with vectors before it is put in order for more, which takes as long as two, and makes
each take half as long. (chosen)"""

SCATTERED_STRIPS = 4
"""Strips of 65,536 elements from which no core's cache holds a vector, and, asked by a few rows that follow
each other, from which it is looked up in vain. (chosen)"""

FEW_LINES_ELEMENTS = 1 << 20
"""Elements of a matrix from which its product with few lines is worth a kernel: no core's caches hold them.
(chosen)"""

FEW_LINES_WIDTH = 256
"""Elements that a row of that matrix has at least. (chosen)"""

FEW_LINES_HOT_BYTES = 1 << 31
"""Bytes of matrices that such products have read before their kernel is asked for: a fifth of a second.
(chosen)"""

NARROW_WIDTH = 16
"""Numbers of a row from which its product with few columns is worth a kernel. (Measured with 4,096 rows of
doubles: rows of 16 take .6 to .9 of BLAS's time, of 32 to 250 .4 to .8; of 8 .6 to 1.2)"""

NARROW_SINGLE = 3
"""Times as many bytes as in double precision that a row of the few columns has at least in single precision,
for which BLAS has loops of its own. (Measured with 4,096 rows: with 8 columns the kernel takes 1.1 to 1.3 of
BLAS's time, with 24 .8 to 1, with 32 .6 to .8)"""

NARROW_TURNED_BYTES = 192
"""What a row takes at most of such a product that is turned behind it. (chosen)"""

NARROW_TALL = 8
"""Times as many rows as a row has numbers there are at least. (chosen)"""

DEEP = 64
"""Lines of a product's reduced dimension from which multiplying them takes longer than adding what they come
to: with fewer, operands that lie outside are copied to disk first. (measured: `x.T @ x` of HDF5 files under
16 MiB, 1000 columns 5.9 s with 29 lines at a time, 1.5 s from disk)"""

WIDE_STATE_BYTES = 1 << 20
"""Bytes of such a result from which adding is more than the caches keep. (measured: at 500 columns 1.7 s and
1.1)"""

ABREAST = 4
"""Lines that a compiled loop of folds goes along side by side. (measured: eight take 4 to 7 % less of a
processor for `X.T @ (X @ v)`, and twice the text)"""

ABREAST_LENGTH = 128
"""Elements that such lines have at least; shorter ones go one by one. (measured: `X.T @ (X @ v)` takes 13 to
25 % more of a processor with rows of 50 side by side, 5 to 10 % with rows of 16, and 5 to 30 % less with rows
of 250 and more)"""

NARROW_HOT_BYTES = 1 << 29
"""Bytes of rows and results that such products have gone over before their kernel is asked for: a tenth of a
second. (chosen)"""

TALL_BYTES, TALL_WIDTH = 128, 160
"""Bytes that a row has at least, and numbers that it has at most, in a compiled product of many short rows:
with less of them BLAS waits for memory as well, and more fill its panels. (chosen)"""

TALL_SHAPE = 8
"""Times as many rows as numbers in one that matrices of a compiled product of many short rows have at
least. (chosen)"""

TALL_FLOPS = 1 << 21
"""Operations of such a product: with less of them BLAS is done before the kernel is called. (chosen)"""

TALL_HOT_FLOPS = 1 << 34
"""Operations that such products have taken before their kernel is asked for: a fifth of a second.
(chosen)"""

SCIPY_S = 0.15
"""Seconds that SciPy takes to be imported, by which sums may be made without. (Measured: 0.13 to 0.14 of a
processor)"""

# --- from what size on threads share work ---------------------------------------------------------

RUN_FLOPS = 1 << 16
"""Operations of a run of rows at non-zeros at least, some microseconds' work: handing it to a thread takes
as long. (chosen)"""

NONZERO_ROW_FLOPS = 16
"""Operations that a row of the body is taken for at a non-zero there: between a sum and a logarithm.
(chosen)"""

STACKED_PRODUCT = 1 << 18
"""Multiplications of one of a stack of products from which it is not a block's among others. (chosen: as many
as matrices of 64 by 64 take, which a core's cache holds)"""

STACKED_FLOPS = 1 << 26
"""Operations of a step along a stack of such products, at least. (chosen: some milliseconds' work)"""

SORT_ELEMENTS = 1 << 17
"""Elements of a line from which several threads sort it. (chosen)"""

DIGIT_LINE = 1 << 10
"""Elements of a line from which a sort by digits is worth being tried. (Measured: of 300 doubles, it takes
1.7 times as long as NumPy's by vectors, of 1,000 .7, of 10,000 .3)"""

DIGIT_ALONE = 1 << 23
"""Bytes of a line up to which one thread sorts it at once by digits. (Measured: a million doubles take 10 to
13 ns each so, and 13 to 15 in pieces)"""

DIGIT_PIECE = 1 << 19
"""Bytes of the pieces that a longer line is spread over first. (Measured: 20 million doubles take 14 ns each
in pieces of 256 KiB to 1 MiB, 16 to 25 in others)"""

PACKED_ELEMENTS = 1 << 12
"""Elements of a line from which one thread sorts its indices behind the digits of values. (chosen)"""

PACKED_LINE = 8
"""Elements of each of several lines from which their indices are sorted behind the digits of values.
(Measured with a million doubles: in lines of 3 they take twice as long as NumPy's stable sort, of 10 .8, of
50 .4, of 4,000 .2)"""

PACKED_TOGETHER = 1 << 20
"""Elements of one of several lines from which its indices are put in order block by block, which makes keys
three times, and has one array beside them, not three. (Measured: lines of 100,000 doubles take half as long
again)"""

SCAN_PIECE = 1 << 17
"""Elements of a piece of a scanned tile, at least: fewer are not worth a call of NumPy's. (chosen)"""

PIECE_FLOPS = 1 << 25
"""Operations of a piece of a dense product, at least: about a millisecond's work. (chosen)"""

ALONE_PAIRS = 1 << 13
"""Pairs of non-zeros that one thread multiplies sooner than several. (chosen)"""

QUICK_BYTES = 1 << 18
"""Bytes of a region that the loop's own thread copies: another one takes as long to wake. (chosen)"""

# --- which of two ways a step is done -------------------------------------------------------------

TINY_BYTES = 1 << 16
"""Bytes of arrays up to which a step is not counted when it is asked whether NumPy should do a program at
once. (chosen)"""

SPARSE_S = 0.001
"""Seconds of steps over CSR arrays up to which a plan takes longer: it cuts blocks, and waits for kernels.
(chosen)"""

FEW_THREADS = 2
"""Threads that read memory hardly faster than one does. (chosen)"""

BLAS_SIDE = 64
"""Rows and columns from which a product of matrices keeps BLAS and its threads at work on arithmetic.
(chosen)"""

LONG_SUM, LONG_SUM_FLOPS = 16, 1 << 28
"""A product is long that adds so many times its sides, in so many operations: BLAS's threads wait for each
other at every panel. (`benchmarks larger`)"""

LOOPED_LINE, LOOPED_MATRIX = 8, 64
"""Elements of a line, or of each matrix, from which on and up to which one loop over a stack of matrices
takes no longer than a product of each with its vector. (Measured with 6 million doubles on one thread: lines
of 3 in matrices of 90,000 take three times as long, 3 x 2 matrices 0.6, 8 x 8 to 250 x 250 0.9 to 1.1 without
the copy of the result)"""


def is_one_loop(matrices: Any, stacked: int) -> bool:
    """Whether one loop over a stack of so many matrices takes no longer than a product of each."""
    nearest = min(range(matrices.ndim), key=lambda i: (matrices.shape[i] == 1, abs(matrices.strides[i])))
    return bool(matrices.shape[nearest] >= LOOPED_LINE or matrices.size <= LOOPED_MATRIX * stacked)


STACKED_PRODUCTS, STACKED_LINE = 128, 32
"""Multiplications for each element of a stack of products that lies along the last axes of both operands up
to which, and elements of it from which on, one loop along it takes no longer than a product of each.
(Measured with doubles on one thread: 3 x 3 matrices in lines of 64 to 8,000 take 0.7 to 0.2, 4 x 4 0.9 to
0.4, 6 x 6 1.3 to 0.8, in lines of 8 1.2 to 2)"""


def is_stack_of_lines(products: int, stacked: int) -> bool:
    """Whether one loop along a stack takes no longer than so many products, together, one after the other."""
    return stacked >= STACKED_LINE and products <= STACKED_PRODUCTS * stacked


FLAT = 64
"""Times its bytes that the matrix has beside which a vector is nothing. (chosen)"""

PAIR_FLOPS, GATHERED_PAIR_FLOPS = 4, 20
"""Operations that a pair of elements takes the time of in a dot product of two lines: compiled, and NumPy's
of lines that are gathered. (Measured on one thread with doubles in lines of 10 to 400: 0.26 to 0.65 ns, and
1.2 to 3.3; `benchmarks cold`: log-likelihood)"""

WHOLE_SHARE, GATHERED_SHARE = 1 / 4, 1 / 32
"""Share of non-zeros from which on a whole product costs less than such dot products. (Measured on one thread
as above: 1 / 4 to 1 / 3 with 8,000 rows, and 1 / 32 to 1 / 16)"""

SEARCH_ELEMENTS = 1 << 12
"""Elements of a line, and values searched for, from which sorting these first takes half the time.
(chosen)"""

LINES_ONE_BY_ONE = 16
"""Lines up to which a recurrence goes line by line: a step of a whole row costs as much as so many floats.
(chosen)"""

MERGED_PARTS = 4
"""Sorted parts up to which merging them, as NumPy's stable sort does, is faster than sorting numbers anew
by vectors; by digits, that is as fast for two. (Measured once: 192 parts of 4 million doubles, merged 147 ms,
sorted 33; by digits, two parts of 1 MiB 7.3 ns a double, merged 6.4, four 7.4 and 12)"""

PICKED_SHARE = 16
"""One in so many places of a sorted part is worth a selection, and more a sort. (chosen)"""

# --- which of two plans is made -------------------------------------------------------------------

PAYS = 1.25
"""Times more that a program must be predicted to cost than what replaces it: a product in another order is
rounded in another way, which is not worth a gain that predictions do not know for sure. (chosen)"""

GROUP_ROWS = 4
"""Rows that a group has at least, on average, where a product with an indicator becomes sums by group.
(chosen)"""

BOX_SLACK = 1.25
"""Times their elements that the box around boxes may have, to be computed as one. (chosen)"""

LATER = 8
"""One in so many arrays that outlive a program is read along its longest axis later, and only there.
(chosen; `benchmarks app_tilings` shows what it moves)"""

PRECISION = 8
"""Times that differ by less than one part in so many are alike: rates are not known any better. (chosen)"""

CHEAPER_ARITHMETIC = (1, 16, 1 << 20)
"""How many times cheaper operations are made in the search for tilings that move less and take no longer.
(chosen)"""

SAMPLED = 2.6
"""Of a line of n elements of which quantiles are asked for, so many times n to the power of 2/3 are
sampled: what a sample of s costs grows with s, and what is collected with n over the root of s.
(`benchmarks larger`: quantiles, 2 and 6 GB)"""

LOOKED_AGAIN = 1 << 18
"""Elements in memory from which few ranks of them are found by a sample and a look, and not by a sort.
(Measured: of 3.8 million doubles, ten ranks take 21 ms so, and a sort 68)"""

BLOCKED = 4.0
"""Times as much as one worker that all have to do in a time for a matrix to be worked on by panels: these do
that much more than LAPACK does of the whole matrix in one task. (Measured once, on a busy machine: `cholesky`
and `solve` of 2200 and 3200 rows on 4 workers of 2 processors take 1.6 to 1.9 times as long by panels as in
one task on one of the processors)"""

# --- when workers and engines do otherwise --------------------------------------------------------

STOPPING_S = 2.0
"""Seconds to stop a job, to hear what is left of it, to plan the rest, and to send that plan: workers that
join save more, or wait for the next job. (chosen)"""

SAVED_S = 1.0
"""Seconds of a run that is begun again where a worker dies: to plan anew around what is left of it, and to
put that together, takes about as long. (Measured with kills in jobs of 0.3 to 0.6 s: 1.05 s with what was
left, 0.9 anew)"""

BACKUP_S = 0.25
"""Seconds that a share has taken before it is run by another worker, too: what interrupts a worker for a
moment is soon over. (chosen)"""

LITTLE_OPERATIONS = 1 << 20
"""Operations of a task of an engine that its way to a worker takes as long as, about a millisecond.
(chosen)"""

AGAIN_OPERATIONS = 1 << 22
"""Operations that every task of an engine's step may do by itself, so that none waits for another's.
(chosen)"""

INTERRUPTIBLE_S = 0.1
"""Seconds that a plan is predicted to take to run on a thread that Ctrl-C can give up, which costs some 0.1
ms. (chosen)"""
