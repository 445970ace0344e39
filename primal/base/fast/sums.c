/* Sums of rows and running sums, in several chains that do not wait for each other. */

/* Sums of rows of float32, in the order in which NumPy adds: 8 sums side by side over 128 numbers,
   then in pairs. NumPy waits for each addition; four rows at a time do not. */
#if defined(__x86_64__) && defined(__GLIBC__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

enum { ROWS = 4, LANES = 8, PAIRED = 128 };
typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));

WIDE static void sum_pieces(const float *x, npy_intp step, npy_intp n, float *out) {
    lanes s[ROWS];
    npy_intp i = 0;
    for (int r = 0; r < ROWS; r++)
        out[r] = -0.0f;
    if (n >= LANES) {
        for (int r = 0; r < ROWS; r++)
            s[r] = *(const lanes *)(x + r * step);
        for (i = LANES; i + LANES <= n; i += LANES)
            for (int r = 0; r < ROWS; r++)
                s[r] += *(const lanes *)(x + r * step + i);
        for (int r = 0; r < ROWS; r++)
            out[r] = ((s[r][0] + s[r][1]) + (s[r][2] + s[r][3])) +
                     ((s[r][4] + s[r][5]) + (s[r][6] + s[r][7]));
    }
    for (; i < n; i++)
        for (int r = 0; r < ROWS; r++)
            out[r] += x[r * step + i];
}

static void sum_pairs(const float *x, npy_intp step, npy_intp n, float *out) {
    if (n <= PAIRED) {
        sum_pieces(x, step, n, out);
        return;
    }
    npy_intp half = n / 2 / LANES * LANES;
    float rest[ROWS];
    sum_pairs(x, step, half, out);
    sum_pairs(x + half, step, n - half, rest);
    for (int r = 0; r < ROWS; r++)
        out[r] += rest[r];
}

/* Sums of rows, and of columns, that threads share. */
typedef struct {
    const void *x;
    void *out, *parts;
    npy_intp n, m, block;  /* numbers of a row, rows; rows that are added before others */
    npy_intp pieces, each; /* strips of blocks, of columns; rows of a unit, or pieces */
} Sums;

enum { UNIT_BYTES = 1 << 16 };

static void sum_some_rows(void *what, npy_intp unit) {
    const Sums *s = what;
    const npy_intp first = unit * s->each;
    const npy_intp end = s->m - first < s->each ? s->m : first + s->each;
    for (npy_intp i = first; i < end; i += ROWS) {
        const npy_intp at = i + ROWS <= s->m ? i : s->m - ROWS;
        float sums[ROWS];
        sum_pairs((const float *)s->x + at * s->n, s->n, s->n, sums);
        for (int r = (int)(i - at); r < ROWS; r++)
            ((float *)s->out)[at + r] = sums[r] + 0.0f; /* NumPy begins with 0: a sum is never -0 */
    }
}

/* A long row in the pieces that halving it again and again leaves: how many, and where each ends. */
enum { HALVED = 1 << 14 };

static npy_intp cut(npy_intp at, npy_intp n, npy_intp *ends) {
    if (n <= HALVED) {
        *ends = at + n;
        return 1;
    }
    const npy_intp half = n / 2 / LANES * LANES, many = cut(at, half, ends);
    return many + cut(at + half, n - half, ends + many);
}

static float joined(npy_intp n, const float **sums) {
    if (n <= HALVED)
        return *(*sums)++;
    const npy_intp half = n / 2 / LANES * LANES;
    const float first = joined(half, sums);
    return first + joined(n - half, sums);
}

typedef struct {
    const float *x;
    float *sums;
    const npy_intp *ends;
} Pieces;

static void sum_piece(void *what, npy_intp unit) {
    const Pieces *p = what;
    const npy_intp at = unit ? p->ends[unit - 1] : 0;
    float sums[ROWS]; /* of one row four times: its additions wait for each other, not these */
    sum_pairs(p->x + at, 0, p->ends[unit] - at, sums);
    p->sums[unit] = sums[0];
}

static int sum_row(const float *x, npy_intp n, float *out) {
    const npy_intp most = n / (HALVED / 4) + 1;
    npy_intp *ends = PyMem_RawMalloc(most * (sizeof(npy_intp) + sizeof(float)));
    if (ends == NULL)
        return -1;
    const float *sums = (float *)(ends + most);
    Pieces pieces = {x, (float *)(ends + most), ends};
    do_units(sum_piece, &pieces, cut(0, n, ends), n * sizeof(float));
    *out = joined(n, &sums) + 0.0f;
    PyMem_RawFree(ends);
    return 0;
}

/* sum_rows(x): sums along the last axis of float32 numbers that lie in order, as NumPy adds them;
   None for others, and for less than four rows that threads do not share. */
static PyObject *sum_rows(PyObject *self, PyObject *given) {
    PyArrayObject *x = (PyArrayObject *)given;
    int nd = PyArray_CheckExact(given) ? PyArray_NDIM(x) : 0;
    npy_intp n = nd ? PyArray_DIM(x, nd - 1) : 0, m = n ? PyArray_SIZE(x) / n : 0;
    if (m == 0 || PyArray_TYPE(x) != NPY_FLOAT32 || !PyArray_ISCARRAY_RO(x) ||
        (m < ROWS && (n * sizeof(float) < WORTH || crew.wanted == 0)))
        Py_RETURN_NONE;
    PyArrayObject *out =
        (PyArrayObject *)PyArray_SimpleNew(nd - 1, PyArray_DIMS(x), NPY_FLOAT32);
    if (out == NULL)
        return NULL;
    Sums sums = {.x = PyArray_DATA(x), .out = PyArray_DATA(out), .n = n, .m = m};
    const npy_intp rows = UNIT_BYTES / (npy_intp)sizeof(float) / n;
    sums.each = rows < ROWS ? ROWS : rows / ROWS * ROWS;
    int failed = 0;
    Py_BEGIN_ALLOW_THREADS
    for (npy_intp i = 0; m < ROWS && i < m; i++)
        failed |= sum_row((const float *)sums.x + i * n, n, (float *)sums.out + i);
    if (m >= ROWS)
        do_units(sum_some_rows, &sums, (m + sums.each - 1) / sums.each, n * m * sizeof(float));
    Py_END_ALLOW_THREADS
    if (failed) {
        Py_DECREF(out);
        return PyErr_NoMemory();
    }
    return (PyObject *)out;
}

enum { STRIP = 4096 };

/* Sums over the axis in the middle of three, [lead, m, n]: rows in blocks, then the blocks. A unit is
   strips of blocks, as many as 64 KB: to take one takes as long as to add 100 numbers. `add`:
   out[0..w) += each of so many rows, one after the other. */
#define COLUMNS(name, add, real)                                                                   \
    WIDEST static void add(const real *x, npy_intp step, npy_intp rows, npy_intp w, real *out) {   \
        npy_intp r = 0;                                                                            \
        for (; r + 4 <= rows; r += 4, x += 4 * step)                                               \
            for (npy_intp j = 0; j < w; j++)                                                       \
                out[j] = (((out[j] + x[j]) + x[step + j]) + x[2 * step + j]) + x[3 * step + j];    \
        for (; r < rows; r++, x += step)                                                           \
            for (npy_intp j = 0; j < w; j++)                                                       \
                out[j] += x[j];                                                                    \
    }                                                                                              \
    static void name(void *what, npy_intp unit) {                                                  \
        const Sums *s = what;                                                                      \
        const npy_intp strips = (s->n + STRIP - 1) / STRIP;                                        \
        const npy_intp blocks = (s->m + s->block - 1) / s->block;                                  \
        npy_intp piece = unit * s->each, strip = piece % strips;                                   \
        npy_intp k = piece / strips % blocks, lead = piece / strips / blocks;                      \
        const npy_intp end = s->pieces - piece < s->each ? s->pieces : piece + s->each;            \
        for (; piece < end; piece++) {                                                             \
            const npy_intp first = strip * STRIP, at = k * s->block;                               \
            const npy_intp w = s->n - first < STRIP ? s->n - first : STRIP;                        \
            real *out = (real *)s->parts + (lead * blocks + k) * s->n + first;                     \
            memset(out, 0, w * sizeof(real));                                                      \
            add((const real *)s->x + (lead * s->m + at) * s->n + first, s->n,                      \
                s->m - at < s->block ? s->m - at : s->block, w, out);                              \
            if (++strip == strips) {                                                               \
                strip = 0;                                                                         \
                if (++k == blocks) {                                                               \
                    k = 0;                                                                         \
                    lead++;                                                                        \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

COLUMNS(columns_f4, add_f4, float)
COLUMNS(columns_f8, add_f8, double)
COLUMNS(columns_u4, add_u4, uint32_t)
COLUMNS(columns_u8, add_u8, uint64_t)

static void sum_blocks(Work *work, Sums *s, npy_intp lead, int size) {
    const npy_intp blocks = (s->m + s->block - 1) / s->block, strips = (s->n + STRIP - 1) / STRIP;
    const npy_intp rows = s->m < s->block ? s->m : s->block, w = s->n < STRIP ? s->n : STRIP;
    s->pieces = lead * blocks * strips;
    s->each = UNIT_BYTES / (rows * w * size) + 1;
    do_units(work, s, (s->pieces + s->each - 1) / s->each, lead * s->m * s->n * size);
}

/* sum_columns(x, axis, block): sums of numbers of 4 and 8 bytes that lie in order along an axis that
   is not the last one, in blocks of so many terms, added in order; None for others. */
static PyObject *sum_columns(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "expected an array, an axis and a size");
        return NULL;
    }
    PyArrayObject *x = (PyArrayObject *)given[0];
    const int nd = PyArray_CheckExact(given[0]) ? PyArray_NDIM(x) : 0;
    const npy_intp axis = PyLong_AsSsize_t(given[1]), block = PyLong_AsSsize_t(given[2]);
    if (PyErr_Occurred())
        return NULL;
    if (axis < 0 || axis >= nd - 1 || block < 1 || !PyArray_ISCARRAY_RO(x) || !PyArray_SIZE(x))
        Py_RETURN_NONE;
    const int type = PyArray_TYPE(x), size = (int)PyArray_ITEMSIZE(x), real = PyTypeNum_ISFLOAT(type);
    if ((size != 4 && size != 8) || !(real || PyTypeNum_ISINTEGER(type)))
        Py_RETURN_NONE;
    npy_intp dims[NPY_MAXDIMS], lead = 1, n = 1;
    for (int i = 0, k = 0; i < nd; i++) {
        if (i != axis)
            dims[k++] = PyArray_DIM(x, i);
        *(i < axis ? &lead : &n) *= i == axis ? 1 : PyArray_DIM(x, i);
    }
    if (n == 1)
        Py_RETURN_NONE; /* one row, which NumPy adds in pairs */
    Sums sums = {.x = PyArray_DATA(x), .n = n, .m = PyArray_DIM(x, axis), .block = block};
    const npy_intp blocks = (sums.m + block - 1) / block;
    PyArrayObject *out = (PyArrayObject *)fresh_array(PyArray_DescrFromType(type), nd - 1, dims);
    if (out == NULL)
        return NULL;
    sums.out = PyArray_DATA(out);
    sums.parts = blocks > 1 ? PyMem_RawMalloc(lead * blocks * n * size) : sums.out;
    if (sums.parts == NULL) {
        Py_DECREF(out);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    Work *work = size == 4 ? real ? columns_f4 : columns_u4 : real ? columns_f8 : columns_u8;
    sum_blocks(work, &sums, lead, size);
    if (blocks > 1) {
        /* Of the blocks the same; the last one may be shorter and is added last, as all are. */
        Sums whole = {.x = sums.parts, .parts = sums.out, .n = n, .m = blocks, .block = blocks};
        sum_blocks(work, &whole, lead, size);
    }
    Py_END_ALLOW_THREADS
    if (blocks > 1)
        PyMem_RawFree(sums.parts);
    return (PyObject *)out;
}

/* Running sums in blocks, each of which begins with 0 and then has the sum of those before added,
   kept in double precision. NumPy waits for each addition; several blocks at a time do not. */
enum { SPAN = 1024, CHAINS = 8 };

#define RUNNING(name, real)                                                                        \
    static void name(const real *x, real *out, npy_intp n, const int parts) {                      \
        double before[2] = {0, 0};                                                                 \
        for (npy_intp start = 0, many; start < n; start += many * SPAN) {                          \
            many = n - start >= CHAINS * SPAN ? CHAINS : 1;                                        \
            const npy_intp m = n - start < SPAN ? n - start : SPAN, step = (npy_intp)SPAN * parts; \
            for (int part = 0; part < parts; part++) {                                             \
                const real *from = x + start * parts + part;                                       \
                real *to = out + start * parts + part;                                             \
                if (many == CHAINS) {                                                              \
                    real s[CHAINS];                                                                \
                    for (int k = 0; k < CHAINS; k++)                                               \
                        to[k * step] = s[k] = from[k * step];                                      \
                    for (npy_intp i = parts; i < step; i += parts)                                 \
                        for (int k = 0; k < CHAINS; k++)                                           \
                            to[k * step + i] = s[k] += from[k * step + i];                         \
                } else {                                                                           \
                    real s = to[0] = from[0];                                                      \
                    for (npy_intp i = parts; i < m * parts; i += parts)                            \
                        to[i] = s += from[i];                                                      \
                }                                                                                  \
            }                                                                                      \
            for (npy_intp k = 0; k < many; k++) {                                                  \
                real *row = out + (start + k * SPAN) * parts;                                      \
                const real add[2] = {(real)before[0], (real)before[1]};                            \
                before[0] += row[(m - 1) * parts];                                                 \
                before[1] += row[m * parts - 1];                                                   \
                for (npy_intp i = 0; i < m; i++)                                                   \
                    for (int part = 0; part < parts; part++)                                       \
                        row[i * parts + part] += add[part];                                        \
            }                                                                                      \
        }                                                                                          \
    }

RUNNING(running_32, float)
RUNNING(running_64, double)

/* running_sums(x): of floats or complex numbers of NumPy's, along the last axis. */
static PyObject *running_sums(PyObject *self, PyObject *given) {
    const int type = PyArray_CheckExact(given) ? PyArray_TYPE((PyArrayObject *)given) : -1;
    const int parts = type == NPY_CFLOAT || type == NPY_CDOUBLE ? 2 : 1;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE && parts == 1) ||
        PyArray_NDIM((PyArrayObject *)given) < 1) {
        PyErr_SetString(PyExc_TypeError, "expected rows of floats or complex numbers");
        return NULL;
    }
    PyArrayObject *x =
        (PyArrayObject *)PyArray_FROM_OF(given, NPY_ARRAY_IN_ARRAY | NPY_ARRAY_NOTSWAPPED);
    if (x == NULL)
        return NULL;
    const int nd = PyArray_NDIM(x);
    const npy_intp n = PyArray_DIM(x, nd - 1), rows = n ? PyArray_SIZE(x) / n : 0;
    PyArrayObject *out =
        (PyArrayObject *)fresh_array(PyArray_DescrFromType(type), nd, PyArray_DIMS(x));
    if (out != NULL) {
        const char *from = PyArray_DATA(x);
        char *to = PyArray_DATA(out);
        const npy_intp row = n * PyArray_ITEMSIZE(x);
        Py_BEGIN_ALLOW_THREADS
        for (npy_intp r = 0; r < rows; r++)
            if (type == NPY_FLOAT || type == NPY_CFLOAT)
                running_32((const float *)(from + r * row), (float *)(to + r * row), n, parts);
            else
                running_64((const double *)(from + r * row), (double *)(to + r * row), n, parts);
        Py_END_ALLOW_THREADS
    }
    Py_DECREF(x);
    return (PyObject *)out;
}

/* out[k] = a[k] * out[k - 1] + b[k] from b[0] on; `late`: a[k - 1]. FOUR rows at a time: one waits
   for each of its own numbers. */
#define RECURRENCE(name, real, factor, term)                                                       \
    WIDEST static void name(const factor *a, const real *b, real *out, npy_intp n, npy_intp rows) {\
        npy_intp r = 0;                                                                            \
        for (; r + 4 <= rows; r += 4) {                                                            \
            real s[4];                                                                             \
            for (int q = 0; q < 4; q++)                                                            \
                out[(r + q) * n] = s[q] = b[(r + q) * n];                                          \
            for (npy_intp i = 1; i < n; i++)                                                       \
                for (int q = 0; q < 4; q++) {                                                      \
                    const npy_intp k = (r + q) * n + i;                                            \
                    out[k] = s[q] = term(a[k], s[q]) + b[k];                                       \
                }                                                                                  \
        }                                                                                          \
        for (; r < rows; r++) {                                                                    \
            real s = out[r * n] = b[r * n];                                                        \
            for (npy_intp k = r * n + 1; k < (r + 1) * n; k++)                                     \
                out[k] = s = term(a[k], s) + b[k];                                                 \
        }                                                                                          \
    }
#define TIMES(a, s) ((a) * (s))
#define KEPT(a, s) ((a) ? (s) : 0)
/* In two roundings for each part, as NumPy and programs multiply; C's own `*` mends infinities. */
#define PAIRED(name, pair, real, made, fused)                                                      \
    static inline pair name(pair x, pair y) {                                                      \
        const real a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y;                 \
        return made(fused(a, c, -(b * d)), fused(a, d, b * c));                                    \
    }
PAIRED(times_pair_32, float _Complex, float, CMPLXF, fmaf)
PAIRED(times_pair_64, double _Complex, double, CMPLX, fma)

RECURRENCE(recurrence_32, float, float, TIMES)
RECURRENCE(recurrence_64, double, double, TIMES)
RECURRENCE(recurrence_kept_32, float, npy_bool, KEPT)
RECURRENCE(recurrence_kept_64, double, npy_bool, KEPT)
RECURRENCE(recurrence_pair_32, float _Complex, float _Complex, times_pair_32)
RECURRENCE(recurrence_pair_64, double _Complex, double _Complex, times_pair_64)
RECURRENCE(recurrence_kept_pair_32, float _Complex, npy_bool, KEPT)
RECURRENCE(recurrence_kept_pair_64, double _Complex, npy_bool, KEPT)

/* recurrence(a, b, late): of NumPy's floats and complex numbers, along the last axis; a of b's dtype
   or bool. */
static PyObject *recurrence(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    if (given != 3 || !PyArray_Check(args[0]) || !PyArray_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "expected two arrays and a flag");
        return NULL;
    }
    const int factors = PyArray_TYPE((PyArrayObject *)args[0]);
    const int type = PyArray_TYPE((PyArrayObject *)args[1]);
    const int nd = PyArray_NDIM((PyArrayObject *)args[1]), late = PyObject_IsTrue(args[2]);
    const int known =
        type == NPY_FLOAT || type == NPY_DOUBLE || type == NPY_CFLOAT || type == NPY_CDOUBLE;
    if (!known || (factors != type && factors != NPY_BOOL) || nd < 1 ||
        !PyArray_SAMESHAPE((PyArrayObject *)args[0], (PyArrayObject *)args[1])) {
        PyErr_SetString(PyExc_TypeError, "expected factors and inexact numbers of one shape");
        return NULL;
    }
    if (late < 0)
        return NULL;
    PyArrayObject *a =
        (PyArrayObject *)PyArray_FROM_OF(args[0], NPY_ARRAY_IN_ARRAY | NPY_ARRAY_NOTSWAPPED);
    PyArrayObject *b =
        (PyArrayObject *)PyArray_FROM_OF(args[1], NPY_ARRAY_IN_ARRAY | NPY_ARRAY_NOTSWAPPED);
    PyArrayObject *out = NULL;
    if (a != NULL && b != NULL)
        out = (PyArrayObject *)fresh_array(PyArray_DescrFromType(type), nd, PyArray_DIMS(b));
    if (out != NULL) {
        const npy_intp n = PyArray_DIM(b, nd - 1), rows = n ? PyArray_SIZE(b) / n : 0;
        const char *by = (const char *)PyArray_DATA(a) - late * PyArray_ITEMSIZE(a);
        const void *from = PyArray_DATA(b);
        void *to = PyArray_DATA(out);
        Py_BEGIN_ALLOW_THREADS
        if (factors == NPY_BOOL && type == NPY_FLOAT)
            recurrence_kept_32((const npy_bool *)by, from, to, n, rows);
        else if (factors == NPY_BOOL && type == NPY_DOUBLE)
            recurrence_kept_64((const npy_bool *)by, from, to, n, rows);
        else if (factors == NPY_BOOL && type == NPY_CFLOAT)
            recurrence_kept_pair_32((const npy_bool *)by, from, to, n, rows);
        else if (factors == NPY_BOOL)
            recurrence_kept_pair_64((const npy_bool *)by, from, to, n, rows);
        else if (type == NPY_FLOAT)
            recurrence_32((const float *)by, from, to, n, rows);
        else if (type == NPY_DOUBLE)
            recurrence_64((const double *)by, from, to, n, rows);
        else if (type == NPY_CFLOAT)
            recurrence_pair_32((const float _Complex *)by, from, to, n, rows);
        else
            recurrence_pair_64((const double _Complex *)by, from, to, n, rows);
        Py_END_ALLOW_THREADS
    }
    Py_XDECREF(a);
    Py_XDECREF(b);
    return (PyObject *)out;
}
