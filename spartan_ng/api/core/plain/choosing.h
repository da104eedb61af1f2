/* The loop of `where`: elements of the second operand where the first is true, else of the third. Both are read, whichever is
 * taken, and no branch depends on it; a number's step is 0. */

#define CHOOSE(type, words)                                                                                   \
    static inline void choose_##type##_##words(const char *flags, npy_intp by, const char *x, npy_intp of_x, const char *y, \
                                               npy_intp of_y, char *out, npy_intp of_out, npy_intp n)         \
    {                                                                                                         \
        for (npy_intp i = 0; i < n; i++)                                                                      \
            for (int word = 0; word < words; word++) {                                                        \
                type keep = -(type)(flags[i * by] != 0);                                                      \
                type one = ((const type *)(x + i * of_x))[word], other = ((const type *)(y + i * of_y))[word]; \
                ((type *)(out + i * of_out))[word] = (one & keep) | (other & ~keep);                          \
            }                                                                                                 \
    }                                                                                                         \
    static void choosing_##type##_##words(char **at, const npy_intp *n, const npy_intp *steps, void *unused)  \
    {                                                                                                         \
        enum { SIZE = words * sizeof(type) };                                                                 \
        int lie = steps[0] == 1 && steps[3] == SIZE;                                                          \
        if (lie && steps[1] == SIZE && steps[2] == SIZE)                                                      \
            choose_##type##_##words(at[0], 1, at[1], SIZE, at[2], SIZE, at[3], SIZE, *n);                     \
        else if (lie && steps[1] == SIZE && steps[2] == 0)                                                    \
            choose_##type##_##words(at[0], 1, at[1], SIZE, at[2], 0, at[3], SIZE, *n);                        \
        else if (lie && steps[1] == 0 && steps[2] == SIZE)                                                    \
            choose_##type##_##words(at[0], 1, at[1], 0, at[2], SIZE, at[3], SIZE, *n);                        \
        else                                                                                                  \
            choose_##type##_##words(at[0], steps[0], at[1], steps[1], at[2], steps[2], at[3], steps[3], *n);  \
    }
CHOOSE(npy_uint8, 1)
CHOOSE(npy_uint16, 1)
CHOOSE(npy_uint32, 1)
CHOOSE(npy_uint64, 1)
CHOOSE(npy_uint32, 2)
CHOOSE(npy_uint64, 2)

/* The loop for elements of a type, of so many bytes. Complex ones are looked at by their parts, as they lie. */
static PyUFuncGenericFunction
choosing(int type, npy_intp bytes)
{
    return type == NPY_CFLOAT ? choosing_npy_uint32_2
         : bytes == 1 ? choosing_npy_uint8_1 : bytes == 2 ? choosing_npy_uint16_1 : bytes == 4 ? choosing_npy_uint32_1
         : bytes == 8 ? choosing_npy_uint64_1 : bytes == 16 ? choosing_npy_uint64_2 : NULL;
}
