/* Loops that give elements another type, which all of them have a value in: as NumPy does before a function of operands of
 * several types. */

#define TO_PLAIN(from, to, name)                                                                              \
    static void as_##name(char **at, const npy_intp *n, const npy_intp *steps, void *unused)                  \
    {                                                                                                         \
        npy_intp count = *n, of_x = steps[0], of_out = steps[1];                                              \
        const char *x = at[0];                                                                                \
        char *out = at[1];                                                                                    \
        if (of_x == sizeof(from) && of_out == sizeof(to)) {                                                   \
            const from *given = (const from *)x;                                                     \
            to *made = (to *)out;                                                                    \
            for (npy_intp i = 0; i < count; i++)                                                              \
                made[i] = (to)given[i];                                                                       \
        }                                                                                                     \
        else                                                                                                  \
            for (npy_intp i = 0; i < count; i++)                                                              \
                *(to *)(out + i * of_out) = (to) * (const from *)(x + i * of_x);                              \
    }
#define TO_COMPLEX(from, part, name)                                                                          \
    static void as_##name(char **at, const npy_intp *n, const npy_intp *steps, void *unused)                  \
    {                                                                                                         \
        npy_intp count = *n, of_x = steps[0], of_out = steps[1];                                              \
        const char *x = at[0];                                                                                \
        char *out = at[1];                                                                                    \
        for (npy_intp i = 0; i < count; i++) {                                                                \
            part *made = (part *)(out + i * of_out);                                                          \
            made[0] = (part) * (const from *)(x + i * of_x);                                                  \
            made[1] = 0;                                                                                      \
        }                                                                                                     \
    }
/* From what, to what, by which loop; a truth value is 0 or 1. */
#define CASTS(X, Y)                                                                                           \
    X(BOOL, npy_bool, INT, npy_int) X(BYTE, npy_byte, INT, npy_int) X(UBYTE, npy_ubyte, INT, npy_int)         \
    X(SHORT, npy_short, INT, npy_int) X(USHORT, npy_ushort, INT, npy_int)                                     \
    X(BOOL, npy_bool, LONG, npy_long) X(BYTE, npy_byte, LONG, npy_long) X(UBYTE, npy_ubyte, LONG, npy_long)   \
    X(SHORT, npy_short, LONG, npy_long) X(USHORT, npy_ushort, LONG, npy_long)                                 \
    X(INT, npy_int, LONG, npy_long) X(UINT, npy_uint, LONG, npy_long)                                         \
    X(BOOL, npy_bool, FLOAT, npy_float) X(BYTE, npy_byte, FLOAT, npy_float)                                   \
    X(UBYTE, npy_ubyte, FLOAT, npy_float) X(SHORT, npy_short, FLOAT, npy_float)                               \
    X(USHORT, npy_ushort, FLOAT, npy_float)                                                                   \
    X(BOOL, npy_bool, DOUBLE, npy_double) X(BYTE, npy_byte, DOUBLE, npy_double)                               \
    X(UBYTE, npy_ubyte, DOUBLE, npy_double) X(SHORT, npy_short, DOUBLE, npy_double)                           \
    X(USHORT, npy_ushort, DOUBLE, npy_double) X(INT, npy_int, DOUBLE, npy_double)                             \
    X(UINT, npy_uint, DOUBLE, npy_double) X(LONG, npy_long, DOUBLE, npy_double)                               \
    X(ULONG, npy_ulong, DOUBLE, npy_double) X(FLOAT, npy_float, DOUBLE, npy_double)                           \
    Y(BOOL, npy_bool, CDOUBLE, npy_double) Y(INT, npy_int, CDOUBLE, npy_double)                               \
    Y(LONG, npy_long, CDOUBLE, npy_double) Y(FLOAT, npy_float, CDOUBLE, npy_double)                           \
    Y(DOUBLE, npy_double, CDOUBLE, npy_double) Y(FLOAT, npy_float, CFLOAT, npy_float)

#define PLAIN_CAST(from, of, to, as) TO_PLAIN(of, as, from##_##to)
#define COMPLEX_CAST(from, of, to, as) TO_COMPLEX(of, as, from##_##to)
CASTS(PLAIN_CAST, COMPLEX_CAST)

/* The loop from one type to another; NULL where there is none here. */
static PyUFuncGenericFunction
casting(int from, int to)
{
#define CAST(a, of, b, as)                                                                                    \
    if (from == NPY_##a && to == NPY_##b)                                                                     \
        return as_##a##_##b;
    CASTS(CAST, CAST)
    return NULL;
}
