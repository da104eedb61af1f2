/* Elements of short lines, put one after the other, and back: a loop over them all takes less than a call for each. */

#define GATHER(type)                                                                                          \
    static void gather_##type(char *to, const char *from, npy_intp lines, npy_intp length, npy_intp per_line, \
                              npy_intp per_one)                                                               \
    {                                                                                                         \
        for (npy_intp line = 0; line < lines; line++, to += length * sizeof(type), from += per_line)          \
            if (per_one == 0)                                                                                 \
                for (npy_intp i = 0; i < length; i++)                                                         \
                    memcpy(to + i * sizeof(type), from, sizeof(type));                                        \
            else if (per_one == sizeof(type))                                                                 \
                for (npy_intp i = 0; i < length; i++)                                                         \
                    memcpy(to + i * sizeof(type), from + i * sizeof(type), sizeof(type));                     \
            else                                                                                              \
                for (npy_intp i = 0; i < length; i++)                                                         \
                    memcpy(to + i * sizeof(type), from + i * per_one, sizeof(type));                          \
    }                                                                                                         \
    static void scatter_##type(char *to, const char *from, npy_intp lines, npy_intp length, npy_intp per_line, \
                               npy_intp per_one)                                                              \
    {                                                                                                         \
        for (npy_intp line = 0; line < lines; line++, from += length * sizeof(type), to += per_line)          \
            if (per_one == sizeof(type))                                                                      \
                for (npy_intp i = 0; i < length; i++)                                                         \
                    memcpy(to + i * sizeof(type), from + i * sizeof(type), sizeof(type));                     \
            else                                                                                              \
                for (npy_intp i = 0; i < length; i++)                                                         \
                    memcpy(to + i * per_one, from + i * sizeof(type), sizeof(type));                          \
    }
GATHER(npy_uint8)
GATHER(npy_uint16)
GATHER(npy_uint32)
GATHER(npy_uint64)
GATHER(npy_cdouble)

#define OF_SIZE(name, size)                                                                                   \
    ((size) == 1   ? name##_npy_uint8                                                                         \
     : (size) == 2 ? name##_npy_uint16                                                                        \
     : (size) == 4 ? name##_npy_uint32                                                                        \
     : (size) == 8 ? name##_npy_uint64                                                                        \
                   : name##_npy_cdouble)

/* Copy lines of few bytes, of which the two ends are all, from so far apart to so far apart. */
#define COPY_ENDS(type)                                                                                       \
    for (; lines > 0; lines--, to += to_step, from += from_step) {                                           \
        type first, last;                                                                                     \
        memcpy(&first, from, sizeof(type));                                                                   \
        memcpy(&last, from + bytes - sizeof(type), sizeof(type));                                             \
        memcpy(to, &first, sizeof(type));                                                                     \
        memcpy(to + bytes - sizeof(type), &last, sizeof(type));                                               \
    }
enum { MOST_FEW = 32 };
static void
copy_few(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp lines, npy_intp bytes)
{
    if (bytes >= 16)
        COPY_ENDS(npy_cdouble)
    else if (bytes >= 8)
        COPY_ENDS(npy_uint64)
    else if (bytes >= 4)
        COPY_ENDS(npy_uint32)
    else if (bytes >= 2)
        COPY_ENDS(npy_uint16)
    else
        COPY_ENDS(npy_uint8)
}

/* Put lines of elements, each of so many bytes, one after the other. They are copied as bytes: a complex number of
 * single precision lies where a number of its size need not. */
static void
gather(char *to, const char *from, npy_intp lines, npy_intp length, npy_intp per_line, npy_intp per_one, npy_intp size)
{
    if (per_one == size && length > 0 && length * size <= MOST_FEW)
        copy_few(to, length * size, from, per_line, lines, length * size);
    else
        OF_SIZE(gather, size)(to, from, lines, length, per_line, per_one);
}

/* Put elements that lie one after the other into such lines. */
static void
scatter(char *to, const char *from, npy_intp lines, npy_intp length, npy_intp per_line, npy_intp per_one, npy_intp size)
{
    if (per_one == size && length > 0 && length * size <= MOST_FEW)
        copy_few(to, per_line, from, length * size, lines, length * size);
    else
        OF_SIZE(scatter, size)(to, from, lines, length, per_line, per_one);
}
