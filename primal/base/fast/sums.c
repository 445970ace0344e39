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

/* sum_rows(x): sums along the last axis of float32 numbers that lie in order, as NumPy adds them;
   None for others, and for less than four rows. */
static PyObject *sum_rows(PyObject *self, PyObject *given) {
    PyArrayObject *x = (PyArrayObject *)given;
    int nd = PyArray_CheckExact(given) ? PyArray_NDIM(x) : 0;
    npy_intp n = nd ? PyArray_DIM(x, nd - 1) : 0, m = n ? PyArray_SIZE(x) / n : 0;
    if (m < ROWS || PyArray_TYPE(x) != NPY_FLOAT32 || !PyArray_ISCARRAY_RO(x))
        Py_RETURN_NONE;
    PyArrayObject *out =
        (PyArrayObject *)PyArray_SimpleNew(nd - 1, PyArray_DIMS(x), NPY_FLOAT32);
    if (out == NULL)
        return NULL;
    const float *rows = PyArray_DATA(x);
    float *sums = PyArray_DATA(out);
    Py_BEGIN_ALLOW_THREADS
    for (npy_intp i = 0; i < m; i += ROWS) {
        npy_intp at = i + ROWS <= m ? i : m - ROWS;
        sum_pairs(rows + at * n, n, n, sums + at);
        for (int r = 0; r < ROWS; r++)
            sums[at + r] += 0.0f; /* NumPy begins with 0: a sum is never -0 */
    }
    Py_END_ALLOW_THREADS
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
