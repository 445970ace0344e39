/* The stable order of numbers, which NumPy has vector code for only where equal ones may change
   places. Numbers become unsigned keys that ascend as they do: -0 is 0, and every NaN is the
   greatest. A row of keys that ascend already is its own order. Of few keys the places are counted
   (each is the number of those before it), which has no branches; more are put by 8 or 11 bits at a
   time, the lowest first, leaving out bits that all keys share. */

#define KEYS(name, number, bits, key_of)                                                           \
    WIDEST static void name(const number *x, npy_intp n, bits *out) {                              \
        for (npy_intp i = 0; i < n; i++)                                                           \
            out[i] = key_of;                                                                       \
    }

/* Of a float's bits v, whose last ones are `low`: negative ones are turned round. */
#define FLOAT_KEY(v, sign, infinity)                                                               \
    (((v) & ~(sign)) > (infinity) ? (sign) + ((sign)-1)                                            \
     : ((v) & ~(sign)) == 0       ? (sign)                                                         \
     : (v) & (sign)               ? (sign) + ((sign)-1) - (v)                                      \
                                  : (v) | (sign))

#define TOP_32 (1u << 31)
#define TOP_64 ((uint64_t)1 << 63)
KEYS(keys_f2, uint16_t, uint32_t, FLOAT_KEY((uint32_t)x[i], 0x8000u, 0x7c00u))
KEYS(keys_f4, uint32_t, uint32_t, FLOAT_KEY(x[i], TOP_32, 0x7f800000u))
KEYS(keys_f8, uint64_t, uint64_t, FLOAT_KEY(x[i], TOP_64, (uint64_t)0x7ff0000000000000u))
KEYS(keys_i1, int8_t, uint32_t, (uint32_t)x[i] ^ TOP_32)
KEYS(keys_i2, int16_t, uint32_t, (uint32_t)x[i] ^ TOP_32)
KEYS(keys_i4, int32_t, uint32_t, (uint32_t)x[i] ^ TOP_32)
KEYS(keys_i8, int64_t, uint64_t, (uint64_t)x[i] ^ TOP_64)
KEYS(keys_u1, uint8_t, uint32_t, x[i])
KEYS(keys_u2, uint16_t, uint32_t, x[i])
KEYS(keys_u4, uint32_t, uint32_t, x[i])
KEYS(keys_u8, uint64_t, uint64_t, x[i])

/* Of complex numbers, the real part above the imaginary part. */
static void keys_c8(const uint32_t *x, npy_intp n, uint64_t *out) {
    keys_f4(x, 2 * n, (uint32_t *)out);
    for (npy_intp i = 0; i < n; i++) {
        const uint32_t *two = (const uint32_t *)(out + i);
        out[i] = (uint64_t)two[0] << 32 | two[1];
    }
}

enum { COUNTED = 64, BYTES = 256, SHORT_DIGIT = 8, LONG_DIGIT = 11, LONG_ROW = 4096 };

/* Keys lie in whole vectors, behind them the greatest. Whether all ascend already, and of others
   which bits differ, after the least key was taken from all. */
#define SURVEY(name, bits)                                                                         \
    WIDEST static int name(bits *keys, npy_intp n, bits *differ) {                                 \
        bits falls = 0, least = keys[0], vary = 0;                                                 \
        for (npy_intp i = 1; i < n; i++) {                                                         \
            falls |= keys[i] < keys[i - 1];                                                        \
            least = keys[i] < least ? keys[i] : least;                                             \
        }                                                                                          \
        for (npy_intp i = 0; falls && i < n; i++)                                                  \
            vary |= keys[i] -= least;                                                              \
        *differ = vary;                                                                            \
        return falls != 0;                                                                         \
    }

SURVEY(survey_32, uint32_t)
SURVEY(survey_64, uint64_t)

#define COUNT_PLACES(name, bits, many, target)                                                     \
    typedef bits name##_keys __attribute__((vector_size(sizeof(bits) * many), aligned(8)));        \
    target static void name(bits *keys, int n, npy_intp *out) {                                    \
        name##_keys lane;                                                                          \
        for (int i = 0; i < many; i++)                                                             \
            lane[i] = i;                                                                           \
        for (int i = n; i % many; i++)                                                             \
            keys[i] = ~(bits)0;                                                                    \
        for (int start = 0; start < n; start += many) {                                            \
            const name##_keys mine = *(const name##_keys *)(keys + start);                         \
            name##_keys place = {0};                                                               \
            int j = 0;                                                                             \
            for (; j < start; j++)                                                                 \
                place -= (name##_keys)(keys[j] <= mine);                                           \
            for (; j < start + many && j < n; j++)                                                 \
                place -= (name##_keys)((keys[j] < mine) |                                          \
                                       ((keys[j] == mine) & ((bits)(j - start) < lane)));          \
            for (; j < n; j++)                                                                     \
                place -= (name##_keys)(keys[j] < mine);                                            \
            for (int i = 0; i < many && start + i < n; i++)                                        \
                out[place[i]] = start + i;                                                         \
        }                                                                                          \
    }

#ifdef __x86_64__
COUNT_PLACES(count_wide_32, uint32_t, 16, __attribute__((target("avx512f"))))
COUNT_PLACES(count_wide_64, uint64_t, 8, __attribute__((target("avx512f"))))
#endif
COUNT_PLACES(count_any_32, uint32_t, 4, )
COUNT_PLACES(count_any_64, uint64_t, 2, )

static void count_places_32(uint32_t *keys, int n, npy_intp *out) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        count_wide_32(keys, n, out);
        return;
    }
#endif
    count_any_32(keys, n, out);
}

static void count_places_64(uint64_t *keys, int n, npy_intp *out) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        count_wide_64(keys, n, out);
        return;
    }
#endif
    count_any_64(keys, n, out);
}

/* Pairs of a key above and a place below, put in the order of the keys' bits that differ; what is
   in `pairs` or, after an odd number of passes, in `room`. */
static uint64_t *by_digits(uint64_t *pairs, uint64_t *room, npy_intp n, uint32_t differ) {
    const int digit = n < LONG_ROW ? SHORT_DIGIT : LONG_DIGIT;
    while (differ) {
        const int low = __builtin_ctz(differ), shift = 32 + low;
        const uint32_t mask = (1u << digit) - 1;
        uint32_t starts[1 << LONG_DIGIT];
        memset(starts, 0, sizeof *starts << digit);
        for (npy_intp i = 0; i < n; i++)
            starts[pairs[i] >> shift & mask]++;
        for (uint32_t at = 0, d = 0; d <= mask; d++) {
            uint32_t many = starts[d];
            starts[d] = at;
            at += many;
        }
        for (npy_intp i = 0; i < n; i++)
            room[starts[pairs[i] >> shift & mask]++] = pairs[i];
        uint64_t *other = pairs;
        pairs = room;
        room = other;
        differ = low + digit < 32 ? differ >> (low + digit) << (low + digit) : 0;
    }
    return pairs;
}

static void order_32(const uint32_t *keys, uint32_t differ, npy_intp n, uint64_t *room,
                     npy_intp *out) {
    for (npy_intp i = 0; i < n; i++)
        room[i] = (uint64_t)keys[i] << 32 | (uint64_t)i;
    room = by_digits(room, room + n, n, differ);
    for (npy_intp i = 0; i < n; i++)
        out[i] = (npy_intp)(uint32_t)room[i];
}

/* By the upper halves of the keys first: among numbers that are drawn, few of these are equal. */
static void order_64(const uint64_t *keys, uint64_t differ, npy_intp n, uint64_t *room,
                     npy_intp *out) {
    for (npy_intp i = 0; i < n; i++)
        room[i] = (keys[i] >> 32) << 32 | (uint64_t)i;
    uint64_t *pairs = by_digits(room, room + n, n, (uint32_t)(differ >> 32));
    uint64_t *other = pairs == room ? room + n : room;
    if ((uint32_t)differ)
        for (npy_intp i = 0, end; i < n; i = end) {
            const uint64_t upper = pairs[i] >> 32;
            for (end = i + 1; end < n && pairs[end] >> 32 == upper;)
                end++;
            if (end - i == 1)
                continue;
            uint32_t vary = 0;
            for (npy_intp k = i; k < end; k++) {
                const uint64_t place = (uint32_t)pairs[k], lower = (uint32_t)keys[place];
                vary |= (uint32_t)lower ^ (uint32_t)keys[(uint32_t)pairs[i]];
                pairs[k] = lower << 32 | place;
            }
            if (end - i <= COUNTED)
                for (npy_intp k = i + 1; k < end; k++) { /* places ascend: pairs are distinct */
                    const uint64_t one = pairs[k];
                    npy_intp at = k;
                    for (; at > i && pairs[at - 1] > one; at--)
                        pairs[at] = pairs[at - 1];
                    pairs[at] = one;
                }
            else {
                uint64_t *found = by_digits(pairs + i, other + i, end - i, vary);
                if (found != pairs + i)
                    memcpy(pairs + i, found, (end - i) * sizeof *pairs);
            }
        }
    for (npy_intp i = 0; i < n; i++)
        out[i] = (npy_intp)(uint32_t)pairs[i];
}

#define ORDER_ROW(width)                                                                           \
    static void order_row_##width(uint##width##_t *keys, npy_intp n, uint64_t *room,               \
                                  npy_intp *out) {                                                 \
        uint##width##_t differ;                                                                    \
        if (n <= COUNTED)                                                                          \
            count_places_##width(keys, (int)n, out);                                               \
        else if (survey_##width(keys, n, &differ))                                                 \
            order_##width(keys, differ, n, room, out);                                             \
        else                                                                                       \
            for (npy_intp i = 0; i < n; i++)                                                       \
                out[i] = i;                                                                        \
    }

ORDER_ROW(32)
ORDER_ROW(64)

/* Of bytes all are counted at once, without pairs of a key and a place. In memory of our own, as keys
   are: where another thread writes to the user's, places would lie behind the row. */
static void order_bytes(const uint8_t *row, uint8_t turned, npy_intp n, uint8_t *x, npy_intp *out) {
    npy_intp starts[256] = {0};
    memcpy(x, row, n);
    for (npy_intp i = 0; i < n; i++)
        starts[x[i] ^ turned]++;
    for (npy_intp at = 0, many, d = 0; d < 256; d++, at += many) {
        many = starts[d];
        starts[d] = at;
    }
    for (npy_intp i = 0; i < n; i++)
        out[starts[x[i] ^ turned]++] = i;
}

#define ORDER_ROWS(type, width, keys_of)                                                           \
    case type:                                                                                     \
        for (npy_intp r = 0; r < rows; r++) {                                                      \
            keys_of((const void *)(from + r * n * size), n, (void *)keys);                         \
            order_row_##width((void *)keys, n, keys + whole, to + r * n);                          \
        }                                                                                          \
        break;

/* order(x): the places of numbers along the last axis, in ascending order, equal ones in the order
   they have; None for other dtypes. */
static PyObject *order(PyObject *self, PyObject *given) {
    if (!PyArray_CheckExact(given) || PyArray_NDIM((PyArrayObject *)given) < 1)
        Py_RETURN_NONE;
    PyArrayObject *x = (PyArrayObject *)given;
    const int type = PyArray_TYPE(x), nd = PyArray_NDIM(x);
    const npy_intp n = PyArray_DIM(x, nd - 1), rows = n ? PyArray_SIZE(x) / n : 0;
    if (!(PyTypeNum_ISINTEGER(type) || type == NPY_BOOL || type == NPY_HALF ||
          type == NPY_FLOAT || type == NPY_DOUBLE || type == NPY_CFLOAT) || n > INT32_MAX)
        Py_RETURN_NONE;
    x = (PyArrayObject *)PyArray_FROM_OF(given, NPY_ARRAY_IN_ARRAY | NPY_ARRAY_NOTSWAPPED);
    if (x == NULL)
        return NULL;
    const npy_intp size = PyArray_ITEMSIZE(x);
    PyArrayObject *out = (PyArrayObject *)fresh_array(PyArray_DescrFromType(NPY_INTP), nd,
                                                      PyArray_DIMS(x));
    const npy_intp whole = (n + 15) & ~(npy_intp)15; /* vectors of keys */
    const int by_bytes = size == 1 && n > BYTES;
    uint64_t *keys =
        rows ? PyMem_RawMalloc(by_bytes ? n : (whole + 2 * n) * (npy_intp)sizeof *keys) : NULL;
    if (out == NULL || (rows && keys == NULL)) {
        Py_DECREF(x);
        Py_XDECREF(out);
        PyMem_RawFree(keys);
        return out == NULL ? NULL : PyErr_NoMemory();
    }
    const char *from = PyArray_DATA(x);
    npy_intp *to = PyArray_DATA(out);
    Py_BEGIN_ALLOW_THREADS
    if (by_bytes)
        for (npy_intp r = 0; r < rows; r++)
            order_bytes((const uint8_t *)from + r * n, type == NPY_BYTE ? 0x80 : 0, n,
                        (uint8_t *)keys, to + r * n);
    else switch (type) {
        ORDER_ROWS(NPY_BOOL, 32, keys_u1)
        ORDER_ROWS(NPY_HALF, 32, keys_f2)
        ORDER_ROWS(NPY_FLOAT, 32, keys_f4)
        ORDER_ROWS(NPY_DOUBLE, 64, keys_f8)
        ORDER_ROWS(NPY_CFLOAT, 64, keys_c8)
    default:
        switch (PyTypeNum_ISSIGNED(type) ? -size : size) {
            ORDER_ROWS(-1, 32, keys_i1)
            ORDER_ROWS(-2, 32, keys_i2)
            ORDER_ROWS(-4, 32, keys_i4)
            ORDER_ROWS(-8, 64, keys_i8)
            ORDER_ROWS(1, 32, keys_u1)
            ORDER_ROWS(2, 32, keys_u2)
            ORDER_ROWS(4, 32, keys_u4)
            ORDER_ROWS(8, 64, keys_u8)
        }
    }
    Py_END_ALLOW_THREADS
    PyMem_RawFree(keys);
    Py_DECREF(x);
    return (PyObject *)out;
}

enum { PIECE = 64, SEARCHED = 4096 };

/* Zeros of two signs are equal, and keep the order that they have in x. NumPy's vectors may also
   make two of one sign out of them, so that x alone says which there are. Zeros are copied by the
   whole piece of x where all of it are, and a piece without any is passed over. Should x have
   changed since it was sorted (of memory of the user's, while NumPy sorts without the GIL), nothing
   beside the zeros of `out` is written. Most arrays have no -0: a search for one costs less than to
   look at each of 12,500 rows of 8 (250 us). */
#define ZEROS_IN_ORDER(name, bits, infinity)                                                       \
    WIDEST static int name##_matter(const bits *x, npy_intp n) {                                   \
        int some = 0;                                                                              \
        for (npy_intp i = 0; i < n && !some; i += SEARCHED)                                        \
            for (npy_intp k = i; k < n && k < i + SEARCHED; k++)                                   \
                some |= x[k] == (bits)1 << (8 * sizeof(bits) - 1);                                 \
        return some;                                                                               \
    }                                                                                              \
    WIDEST static void name(char *out, npy_intp step, const char *x, npy_intp from, npy_intp n) {  \
        const bits sign = (bits)1 << (8 * sizeof(bits) - 1), size = (bits)~sign, inf = infinity;   \
        npy_intp begin = 0, end;                                                                   \
        for (npy_intp high = n; begin < high;) {                                                   \
            const npy_intp mid = begin + (high - begin) / 2;                                       \
            const bits v = *(const bits *)(out + mid * step);                                      \
            if (v & sign && (v & size) && (v & size) <= inf)                                       \
                begin = mid + 1;                                                                   \
            else                                                                                   \
                high = mid;                                                                        \
        }                                                                                          \
        end = begin;                                                                               \
        for (npy_intp high = n; end < high;) {                                                     \
            const npy_intp mid = end + (high - end) / 2;                                           \
            if (*(const bits *)(out + mid * step) & size)                                          \
                high = mid;                                                                        \
            else                                                                                   \
                end = mid + 1;                                                                     \
        }                                                                                          \
        for (npy_intp i = 0, m; begin < end && i < n; i += m) {                                    \
            m = n - i < PIECE ? n - i : PIECE;                                                     \
            npy_intp zeros = -1;                                                                   \
            const bits *v = (const bits *)(x + i * from);                                          \
            if (m == PIECE && from == sizeof(bits) && step == sizeof(bits)) {                      \
                bits many = 0;                                                                     \
                for (int k = 0; k < PIECE; k++)                                                    \
                    many += (v[k] & size) == 0;                                                    \
                zeros = (npy_intp)many;                                                            \
            }                                                                                      \
            if (zeros == PIECE && end - begin >= PIECE) {                                          \
                memcpy(out + begin * step, v, sizeof(bits) * PIECE);                               \
                begin += PIECE;                                                                    \
            } else if (zeros)                                                                      \
                for (npy_intp k = 0; k < m && begin < end; k++) {                                  \
                    const bits one = *(const bits *)((const char *)v + k * from);                  \
                    if ((one & size) == 0)                                                         \
                        *(bits *)(out + begin++ * step) = one;                                     \
                }                                                                                  \
        }                                                                                          \
    }

ZEROS_IN_ORDER(zeros_in_order_16, uint16_t, 0x7c00u)
ZEROS_IN_ORDER(zeros_in_order_32, uint32_t, 0x7f800000u)
ZEROS_IN_ORDER(zeros_in_order_64, uint64_t, 0x7ff0000000000000u)

/* zeros_in_order(out, x, axis): give zeros of `out`, which is x sorted, the order that they have in
   x, in place. */
static PyObject *zeros_in_order(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    int axis = n == 3 ? (int)PyLong_AsLong(given[2]) : -1;
    PyArrayObject *out = n == 3 && PyArray_CheckExact(given[0]) ? (PyArrayObject *)given[0] : NULL;
    PyArrayObject *x = n == 3 && PyArray_CheckExact(given[1]) ? (PyArrayObject *)given[1] : NULL;
    if (out == NULL || x == NULL || axis < 0 || axis >= PyArray_NDIM(x) ||
        PyArray_TYPE(x) != PyArray_TYPE(out) || !PyArray_SAMESHAPE(x, out) ||
        !PyArray_ISBEHAVED(out) || !PyArray_ISBEHAVED_RO(x)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "expected two arrays of one shape and dtype, an axis");
        return NULL;
    }
    void (*run)(char *, npy_intp, const char *, npy_intp, npy_intp) = NULL;
    const npy_intp near = PyArray_ISONESEGMENT(x) ? PyArray_SIZE(x) : 0;
    int matter = PyArray_SIZE(x) != 0;
#define SOME_ZEROS(type, bits)                                                                     \
    case type:                                                                                     \
        run = zeros_in_order_##bits;                                                               \
        matter &= !near || zeros_in_order_##bits##_matter(PyArray_DATA(x), near);                  \
        break;
    switch (PyArray_TYPE(x)) {
        SOME_ZEROS(NPY_HALF, 16)
        SOME_ZEROS(NPY_FLOAT, 32)
        SOME_ZEROS(NPY_DOUBLE, 64)
    }
    if (run == NULL || !matter)
        Py_RETURN_NONE;
    PyArrayIterObject *to = (PyArrayIterObject *)PyArray_IterAllButAxis(given[0], &axis);
    PyArrayIterObject *from = (PyArrayIterObject *)PyArray_IterAllButAxis(given[1], &axis);
    if (to == NULL || from == NULL) {
        Py_XDECREF(to);
        Py_XDECREF(from);
        return NULL;
    }
    for (; PyArray_ITER_NOTDONE(to); ) {
        run(PyArray_ITER_DATA(to), PyArray_STRIDE(out, axis), PyArray_ITER_DATA(from),
            PyArray_STRIDE(x, axis), PyArray_DIM(x, axis));
        PyArray_ITER_NEXT(to);
        PyArray_ITER_NEXT(from);
    }
    Py_DECREF(to);
    Py_DECREF(from);
    Py_RETURN_NONE;
}
