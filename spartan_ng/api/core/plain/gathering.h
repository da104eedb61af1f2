/* Elements of short lines, put one after the other: a loop over them all takes less than a call for each line. */

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
    }
GATHER(npy_uint8)
GATHER(npy_uint16)
GATHER(npy_uint32)
GATHER(npy_uint64)
GATHER(npy_cdouble)

/* Put lines of elements, each of so many bytes, one after the other. They are copied as bytes: a complex number of
 * single precision lies where a number of its size need not. */
static void
gather(char *to, const char *from, npy_intp lines, npy_intp length, npy_intp per_line, npy_intp per_one, npy_intp size)
{
    (size == 1   ? gather_npy_uint8
     : size == 2 ? gather_npy_uint16
     : size == 4 ? gather_npy_uint32
     : size == 8 ? gather_npy_uint64
                 : gather_npy_cdouble)(to, from, lines, length, per_line, per_one);
}
