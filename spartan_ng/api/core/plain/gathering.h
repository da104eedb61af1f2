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

/* Put lines of elements, each of so many bytes, one after the other. They are copied as bytes: a complex number of
 * single precision lies where a number of its size need not. */
static void
gather(char *to, const char *from, npy_intp lines, npy_intp length, npy_intp per_line, npy_intp per_one, npy_intp size)
{
    OF_SIZE(gather, size)(to, from, lines, length, per_line, per_one);
}

/* Put elements that lie one after the other into such lines. */
static void
scatter(char *to, const char *from, npy_intp lines, npy_intp length, npy_intp per_line, npy_intp per_one, npy_intp size)
{
    OF_SIZE(scatter, size)(to, from, lines, length, per_line, per_one);
}
