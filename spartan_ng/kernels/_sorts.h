/* Sorts of keys of WIDTH bits: `_sorts.c` includes this once for each width.
 *
 * A key is an unsigned integer in the order of elements, and tells all of an element's bits (`Code`). A line that
 * the caches hold is sorted by digits, the last one first (`sort`): by no more of the first ones than set most
 * neighbours apart, as a few samples tell; the few that are still alike are put in order at the end. A longer one
 * is first spread over ranges of keys (`spread`).
 *
 * Knuth, "The Art of Computer Programming", volume 3, section 5.2.5.
 */
#define JOINED(name, width) name##width
#define NAMED(name, width) JOINED(name, width)
#define NAME(name) NAMED(name, WIDTH)
#define KEY NAMED(uint, NAMED(WIDTH, _t))

/* How elements become keys, and keys elements: `flip` turns the sign's bit, `turn` all bits of negative numbers,
 * and `less` is what the least key is before it is taken off. */
typedef struct {
    KEY flip, turn, less;
} NAME(Code);

static inline KEY
NAME(key_of)(KEY bits, NAME(Code) code)
{
    KEY is_negative = (KEY)0 - (KEY)(bits >> (WIDTH - 1));
    return (KEY)((bits ^ (code.flip | (is_negative & code.turn))) - code.less);
}

static inline KEY
NAME(bits_of)(KEY key, NAME(Code) code)
{
    key = (KEY)(key + code.less);
    KEY was_negative = (KEY)((KEY)(key >> (WIDTH - 1)) - (KEY)1);
    return (KEY)(key ^ (code.flip | (was_negative & code.turn)));
}

/* `bits` of mantissa, if they are floating-point numbers: keys of those that are no numbers come last, as NaT. */
static NAME(Code)
NAME(code_for)(char kind, int mantissa)
{
    KEY sign = (KEY)((KEY)1 << (WIDTH - 1)), all = (KEY)~(KEY)0;
    if (kind == 'f')
        return (NAME(Code)){sign, all, (KEY)(((KEY)1 << mantissa) - (KEY)1)};
    return (NAME(Code)){kind == 'u' ? (KEY)0 : sign, (KEY)0, kind == 'm' ? (KEY)1 : (KEY)0};
}

static inline int
NAME(length_of)(KEY key)
{
    return key ? 64 - __builtin_clzll((unsigned long long)key) : 0;
}

/* The least and the greatest key, the bits in which some differ, and whether they go up, or down, all the way. */
typedef struct {
    KEY least, most, apart;
    int goes_up, goes_down;
} NAME(Ends);

/* Tell of the keys of elements, and put them into `keys` unless that is NULL: what others write into the line from
 * then on changes none. */
static inline NAME(Ends)
NAME(ends_of)(const KEY *line, size_t n, NAME(Code) code, KEY *keys)
{
    KEY least = NAME(key_of)(line[0], code), most = least, before = least, apart = 0;
    size_t ups = 0, downs = 0;
    for (size_t i = 0; i < n; i++) {
        KEY key = NAME(key_of)(line[i], code);
        if (keys)
            keys[i] = key;
        least = key < least ? key : least;
        most = key > most ? key : most;
        apart |= key ^ before;
        ups += key > before;
        downs += key < before;
        before = key;
    }
    return (NAME(Ends)){least, most, apart, !downs, !ups};
}

static void
NAME(insert)(KEY *keys, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        KEY key = keys[i];
        size_t j = i;
        for (; j && keys[j - 1] > key; j--)
            keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

static void
NAME(put_keys)(const KEY *line, size_t n, NAME(Code) code, uint64_t *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = NAME(key_of)(line[i], code);
}

/* How many last bits of keys tell apart few neighbours: what lies between neighbours among few samples says how near
 * to each other those of the whole line are where they are dense. */
static int
NAME(needless_bits)(const KEY *keys, size_t n)
{
    KEY some[SAMPLES], gaps[SAMPLES];
    size_t found = 0, samples = n < LONG ? SAMPLES / 4 : SAMPLES, step = n / samples;
    for (size_t i = 0; i < samples; i++)
        some[i] = keys[i * step + i * 7919 % step];
    NAME(insert)(some, samples);
    for (size_t i = 1; i < samples; i++)
        if (some[i] != some[i - 1])
            gaps[found++] = (KEY)(some[i] - some[i - 1]);
    if (!found)
        return WIDTH;
    NAME(insert)(gaps, found);
    int needless = NAME(length_of)(gaps[found / 4]) - NAME(length_of)((KEY)step) - APART;
    return needless > 0 ? needless : 0;
}

static KEY *NAME(sort_keys)(KEY *keys, KEY *spare, size_t n);

/* Put in order what the digits behind `shift` bits have left alike. */
static void
NAME(settle)(KEY *keys, KEY *spare, size_t n, KEY least, int shift)
{
    for (size_t i = 1; i < n; i++) {
        if (keys[i] >= keys[i - 1])
            continue;
        size_t first = i - 1, end = i + 1;
        KEY digits = (KEY)((KEY)(keys[i] - least) >> shift);
        while (first && (KEY)((KEY)(keys[first - 1] - least) >> shift) == digits)
            first--;
        while (end < n && (KEY)((KEY)(keys[end] - least) >> shift) == digits)
            end++;
        KEY *sorted = NAME(sort_keys)(keys + first, spare + first, end - first);
        if (sorted != keys + first)
            memcpy(keys + first, sorted, (end - first) * sizeof(KEY));
        i = end;
    }
}

/* Sort n keys, fewer than 2 ** 32, which are in the order of some last bits, by as many digits as they need; where
 * they are then, of the two. */
static KEY *
NAME(sort_by_digits)(KEY *keys, KEY *spare, size_t n, KEY least, KEY most, int in_order)
{
    uint32_t places[MOST_DIGITS][1 << MOST_BITS];
    least = (KEY)(least >> in_order << in_order);
    int bits = NAME(length_of)((KEY)(most - least)), widest = n < LONG ? FEW_BITS : MOST_BITS, shift = 0;
    if (bits > widest && n >= 2 * SAMPLES) {
        shift = NAME(needless_bits)(keys, n);
        shift = shift < bits - widest ? shift : bits - widest;
    }
    shift = in_order > shift && in_order < bits ? in_order : shift;
    int digits = (bits - shift + widest - 1) / widest, width = (bits - shift + digits - 1) / digits;
    shift = bits > digits * width ? bits - digits * width : 0;
    KEY mask = (KEY)(((KEY)1 << width) - (KEY)1);
    for (int d = 0; d < digits; d++)
        memset(places[d], 0, sizeof(uint32_t) << width);
    for (size_t i = 0; i < n; i++) {
        KEY key = (KEY)((KEY)(keys[i] - least) >> shift);
        for (int d = 0; d < digits; d++, key = (KEY)(key >> width))
            places[d][key & mask]++;
    }
    for (int d = 0; d < digits; d++) {
        uint32_t *place = places[d], sum = 0;
        int is_alike = 0;
        for (size_t j = 0; j <= mask; j++) {
            uint32_t count = place[j];
            is_alike |= count == n;
            place[j] = sum;
            sum += count;
        }
        if (is_alike)
            continue;
        int at = shift + d * width;
        for (size_t i = 0; i < n; i++) {
            KEY key = keys[i];
            spare[place[((KEY)(key - least) >> at) & mask]++] = key;
        }
        KEY *kept = keys;
        keys = spare;
        spare = kept;
    }
    if (shift)
        NAME(settle)(keys, spare, n, least, shift);
    return keys;
}

/* The same of keys of which nothing is known. */
static KEY *
NAME(sort_keys)(KEY *keys, KEY *spare, size_t n)
{
    if (n <= SHORT) {
        NAME(insert)(keys, n);
        return keys;
    }
    NAME(Ends) ends = NAME(ends_of)(keys, n, (NAME(Code)){0, 0, 0}, NULL);
    return ends.goes_up ? keys : NAME(sort_by_digits)(keys, spare, n, ends.least, ends.most, 0);
}

/* Sort elements that have few values, by how many there are of each; 0 where some samples or others say that they have
 * more. */
static int
NAME(sort_few)(const KEY *from, KEY *to, size_t n, NAME(Code) code)
{
    KEY values[FEW_SAMPLES];
    size_t few = 1, step = n / FEW_SAMPLES, counts[FEW][FEW] = {{0}};
    for (size_t i = 0; i < FEW_SAMPLES; i++)
        values[i] = NAME(key_of)(from[i * step + i * 7919 % step], code);
    NAME(insert)(values, FEW_SAMPLES);
    for (size_t i = 1; i < FEW_SAMPLES && few <= FEW; i++)
        if (values[i] != values[few - 1])
            values[few++] = values[i];
    if (few > FEW)
        return 0;
    for (size_t i = few; i < FEW; i++)
        values[i] = values[few - 1];
    for (size_t first = 0, end; first < n; first = end) {
        KEY others = 0;
        end = n - first < FEW_BLOCK ? n : first + FEW_BLOCK;
        for (size_t i = first; i < end; i++) {
            KEY key = NAME(key_of)(from[i], code);
            size_t j = (size_t)(key > values[3]) * 4;
            j += (size_t)(key > values[j + 1]) * 2;
            j += key > values[j];
            others |= key ^ values[j];
            counts[i % FEW][j]++;
        }
        if (others)
            return 0;
    }
    for (size_t j = 0, at = 0; j < few; j++) {
        size_t count = 0;
        KEY bits = NAME(bits_of)(values[j], code);
        for (size_t i = 0; i < FEW; i++)
            count += counts[i][j];
        for (size_t end = at + count; at < end; at++)
            to[at] = bits;
    }
    return 1;
}

/* Sort n elements, fewer than 2 ** 32, into `to`, where they may already be; `spare` has room for as many. They may be
 * in the order of their keys' last bits. */
static void
NAME(sort)(const KEY *from, KEY *to, KEY *spare, size_t n, NAME(Code) code, int in_order)
{
    if (n >= FEW_BLOCK && NAME(sort_few)(from, to, n, code))
        return;
    NAME(Ends) ends = NAME(ends_of)(from, n, code, to);
    KEY *keys = to;
    if (ends.goes_down)
        for (size_t i = 0, j = n - 1; i < j; i++, j--) {
            KEY key = keys[i];
            keys[i] = keys[j];
            keys[j] = key;
        }
    else if (n <= SHORT)
        NAME(insert)(keys, n);
    else if (!ends.goes_up)
        keys = NAME(sort_by_digits)(keys, spare, n, ends.least, ends.most, in_order);
    for (size_t i = 0; i < n; i++)
        to[i] = NAME(bits_of)(keys[i], code);
}

/* Of a range of keys a few of the first bits say which part of it they are in, or of which parts (`table`): the
 * number of the first part and, in the last eight bits, by how many of the other `rest` bits these are told apart. */
static inline size_t
NAME(part_of)(KEY key, const uint32_t *table, size_t entries, int rest, KEY last)
{
    size_t first = (size_t)(key >> rest);
    uint32_t entry = table[first < entries ? first : entries - 1];
    return (entry >> 8) + (size_t)((KEY)(key & last) >> (entry & 255));
}

static void
NAME(count)(const KEY *line, size_t n, NAME(Code) code, const uint32_t *table, size_t entries, int rest, int64_t *counts)
{
    KEY last = (KEY)(((KEY)1 << rest) - (KEY)1);
    for (size_t i = 0; i < n; i++)
        counts[NAME(part_of)(NAME(key_of)(line[i], code), table, entries, rest, last)]++;
}

/* Copy elements to their parts, from `places` on, a line of the cache at a time; `lines` has room for one of each.
 * Nothing is written behind `most` elements, whatever others write into the line meanwhile. */
static void
NAME(spread)(const KEY *line, size_t n, NAME(Code) code, const uint32_t *table, size_t entries, int rest, size_t parts,
             int64_t *places, KEY *to, size_t most, KEY *lines, int64_t *firsts)
{
    enum { EACH = LINE_BYTES / sizeof(KEY) };
    size_t ahead = (uintptr_t)to % LINE_BYTES / sizeof(KEY); /* of the first element in its line */
    KEY last = (KEY)(((KEY)1 << rest) - (KEY)1);
    for (size_t part = 0; part < parts; part++)
        firsts[part] = places[part] += (int64_t)ahead;
    for (size_t i = 0; i < n; i++) {
        size_t part = NAME(part_of)(NAME(key_of)(line[i], code), table, entries, rest, last);
        size_t place = (size_t)places[part]++;
        lines[part * EACH + place % EACH] = line[i];
        if (place % EACH == EACH - 1) {
            size_t start = place - (EACH - 1);
            if (place - ahead >= most)
                continue;
            if ((int64_t)start >= firsts[part])
                memcpy(to + (start - ahead), lines + part * EACH, LINE_BYTES);
            else
                for (size_t j = (size_t)firsts[part]; j <= place; j++)
                    to[j - ahead] = lines[part * EACH + j % EACH];
        }
    }
    for (size_t part = 0; part < parts; part++) {
        size_t end = (size_t)places[part] < most + ahead ? (size_t)places[part] : most + ahead;
        size_t start = end / EACH * EACH;
        for (size_t j = start > (size_t)firsts[part] ? start : (size_t)firsts[part]; j < end; j++)
            to[j - ahead] = lines[part * EACH + j % EACH];
        places[part] -= (int64_t)ahead;
    }
}

/* One key for zeros of both signs, and one for all that is no number: for equal elements the same one. */
static inline KEY
NAME(alike)(KEY key, NAME(Code) code)
{
    if (!code.turn)
        return key;
    KEY zero = NAME(key_of)((KEY)0, code), no_number = (KEY)(zero + (code.flip - code.less));
    key = (KEY)(key + (key == (KEY)(zero - 1)));
    return key < no_number ? key : no_number;
}

/* The keys of elements from `less` on, equal ones of equal elements, without their last bits (`without`) in front of
 * the elements' places in `digits` bits; these begin anew in each line of `length`. */
static void
NAME(pack)(const KEY *line, size_t n, NAME(Code) code, KEY less, int without, int digits, size_t place, size_t length,
           uint64_t *to)
{
    for (size_t first = 0; first < n; first += length)
        for (size_t i = 0; i < length; i++) {
            KEY key = NAME(alike)(NAME(key_of)(line[first + i], code), code);
            to[first + i] = (uint64_t)(KEY)(key - less) >> without << digits | (place + i);
        }
}

#undef KEY
#undef NAME
#undef NAMED
#undef JOINED
#undef WIDTH
