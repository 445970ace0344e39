/* LAPACK on stacks of matrices, and its packed vectors as complex ones. */

enum { MOST_ARGUMENTS = 18 };
typedef void Routine(void *, void *, void *, void *, void *, void *, void *, void *, void *,
                     void *, void *, void *, void *, void *, void *, void *, void *, void *);

/* call_each(address, count, arguments): call a routine of Fortran's `count` times. Its arguments
   are arrays, of which those of two dimensions and more move by one along the first from a call to
   the next; whole numbers; letters; and (bytes,), room to work in. The last one, `info`, is added
   here: a list of them is returned, or None where all are 0. A routine takes no notice of what
   stands after its last argument. */
static PyObject *call_each(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    if (n != 3 || !PyTuple_Check(given[2]) || PyTuple_GET_SIZE(given[2]) >= MOST_ARGUMENTS) {
        PyErr_SetString(PyExc_TypeError, "expected an address, a count and arguments");
        return NULL;
    }
    Routine *routine = (Routine *)PyLong_AsVoidPtr(given[0]);
    Py_ssize_t count = PyLong_AsSsize_t(given[1]), steps[MOST_ARGUMENTS] = {0};
    Py_ssize_t rooms[MOST_ARGUMENTS] = {0}, total = 0, last = PyTuple_GET_SIZE(given[2]);
    char *at[MOST_ARGUMENTS] = {NULL};
    int whole[MOST_ARGUMENTS];
    for (Py_ssize_t i = 0; i < last; i++) {
        PyObject *x = PyTuple_GET_ITEM(given[2], i);
        if (PyArray_Check(x)) {
            at[i] = PyArray_BYTES((PyArrayObject *)x);
            if (PyArray_NDIM((PyArrayObject *)x) > 1)
                steps[i] = PyArray_STRIDE((PyArrayObject *)x, 0);
        } else if (PyLong_Check(x)) {
            long value = PyLong_AsLong(x);
            whole[i] = (int)value;
            at[i] = (char *)&whole[i];
            if (whole[i] != value && !PyErr_Occurred())
                PyErr_Format(PyExc_OverflowError, "LAPACK counts in 32 bits, got %ld", value);
        } else if (PyUnicode_Check(x))
            at[i] = (char *)PyUnicode_AsUTF8(x);
        else if (PyTuple_Check(x) && PyTuple_GET_SIZE(x) == 1) {
            rooms[i] = (PyLong_AsSsize_t(PyTuple_GET_ITEM(x, 0)) + 79) & -64;
            total += rooms[i];
        } else
            PyErr_SetString(PyExc_TypeError, "expected arrays, numbers, letters or rooms");
        if (PyErr_Occurred())
            return NULL;
    }
    char *room = PyMem_RawMalloc(total + count * sizeof(int) + 64);
    if (room == NULL)
        return PyErr_NoMemory();
    char *next = (char *)(((uintptr_t)room + 63) & ~(uintptr_t)63);
    for (Py_ssize_t i = 0; i < last; i++)
        if (rooms[i]) {
            at[i] = next;
            next += rooms[i];
        }
    int *infos = (int *)next, failed = 0;
    at[last] = next;
    steps[last] = sizeof(int);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t c = 0; c < count; c++) {
        infos[c] = 0;
        routine(at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], at[9], at[10],
                at[11], at[12], at[13], at[14], at[15], at[16], at[17]);
        failed |= infos[c];
        for (int i = 0; i <= last; i++)
            at[i] += steps[i];
    }
    Py_END_ALLOW_THREADS
    PyObject *out = failed ? PyList_New(count) : Py_NewRef(Py_None);
    for (Py_ssize_t c = 0; failed && out != NULL && c < count; c++)
        PyList_SET_ITEM(out, c, PyLong_FromLong(infos[c]));
    PyMem_RawFree(room);
    return out;
}

/* x with a x = b by elimination, rows as they lie: a[n, n] and b[n, m] are overwritten. As LAPACK, it
   leaves a column of zeros as it is, and divides by its pivot in the end: inf and nan. A NaN in such
   a column, which is not greater than 0, spreads. */
WIDEST static void eliminate(double *a, double *x, npy_intp n, npy_intp m) {
    for (npy_intp k = 0; k < n; k++) {
        npy_intp p = k;
        for (npy_intp i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[p * n + k]))
                p = i;
        const double pivot = a[p * n + k];
        if (p != k) {
            for (npy_intp j = k; j < n; j++) {
                const double t = a[k * n + j];
                a[k * n + j] = a[p * n + j];
                a[p * n + j] = t;
            }
            for (npy_intp j = 0; j < m; j++) {
                const double t = x[k * m + j];
                x[k * m + j] = x[p * m + j];
                x[p * m + j] = t;
            }
        }
        for (npy_intp i = k + 1; i < n; i++) {
            const double below = a[i * n + k], l = pivot == 0 && below == 0 ? 0 : below / pivot;
            for (npy_intp j = k + 1; j < n; j++)
                a[i * n + j] -= l * a[k * n + j];
            for (npy_intp j = 0; j < m; j++)
                x[i * m + j] -= l * x[k * m + j];
        }
    }
    for (npy_intp k = n; k-- > 0;) {
        const double pivot = a[k * n + k];
        for (npy_intp j = 0; j < m; j++)
            x[k * m + j] /= pivot;
        for (npy_intp i = 0; i < k; i++)
            for (npy_intp j = 0; j < m; j++)
                x[i * m + j] -= a[i * n + k] * x[k * m + j];
    }
}

/* solved(a, b): x with a x = b for stacks of float32, in double precision, rounded once.
   The calls of LAPACK take four times as long as to solve 4 equations. */
static PyObject *solved(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    for (int i = 0; i < 2; i++)
        if (count != 2 || !PyArray_Check(given[i]) || PyArray_NDIM((PyArrayObject *)given[i]) < 2 ||
            PyArray_TYPE((PyArrayObject *)given[i]) != NPY_FLOAT32) {
            PyErr_SetString(PyExc_TypeError, "expected stacks of matrices of float32");
            return NULL;
        }
    PyArrayObject *a = in_order(given[0], 0), *b = in_order(given[1], 0), *out = NULL;
    if (a == NULL || b == NULL)
        goto end;
    const int nd = PyArray_NDIM(b);
    const npy_intp n = PyArray_DIM(b, nd - 2), m = PyArray_DIM(b, nd - 1);
    const npy_intp each = PyArray_SIZE(b) ? PyArray_SIZE(b) / (n * m) : 0;
    if (PyArray_DIM(a, PyArray_NDIM(a) - 1) != n || PyArray_SIZE(a) != each * n * n) {
        PyErr_SetString(PyExc_ValueError, "expected as many square matrices as right sides");
        goto end;
    }
    double *room = PyMem_RawMalloc(((size_t)n * n + (size_t)n * m + 1) * sizeof(double));
    if (room == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    out = (PyArrayObject *)fresh_array(PyArray_DescrFromType(NPY_FLOAT32), nd, PyArray_DIMS(b));
    if (out != NULL) {
        const float *from = PyArray_DATA(a), *side = PyArray_DATA(b);
        float *to = PyArray_DATA(out);
        Py_BEGIN_ALLOW_THREADS
        for (npy_intp k = 0; k < each; k++) {
            double *x = room + n * n;
            for (npy_intp i = 0; i < n * n; i++)
                room[i] = from[k * n * n + i];
            for (npy_intp i = 0; i < n * m; i++)
                x[i] = side[k * n * m + i];
            eliminate(room, x, n, m);
            for (npy_intp i = 0; i < n * m; i++)
                to[k * n * m + i] = (float)x[i];
        }
        Py_END_ALLOW_THREADS
    }
    PyMem_RawFree(room);
end:
    Py_XDECREF(a);
    Py_XDECREF(b);
    return (PyObject *)out;
}

#define MINORS(name, real)                                                                         \
    static void name(const real *m, real *out, npy_intp n) {                                       \
        for (npy_intp i = 0; i < n; i++, m += 9)                                                   \
            out[i] = m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +     \
                     m[2] * (m[3] * m[7] - m[4] * m[6]);                                           \
    }

MINORS(minors_32, float)
MINORS(minors_64, double)

/* minors(x): determinants of matrices of 3 x 3 floats by those of 2 x 2. */
static PyObject *minors(PyObject *self, PyObject *given) {
    const int nd = PyArray_Check(given) ? PyArray_NDIM((PyArrayObject *)given) : 0;
    const int type = nd ? PyArray_TYPE((PyArrayObject *)given) : -1;
    if (nd < 2 || (type != NPY_FLOAT && type != NPY_DOUBLE) ||
        PyArray_DIM((PyArrayObject *)given, nd - 1) != 3 ||
        PyArray_DIM((PyArrayObject *)given, nd - 2) != 3) {
        PyErr_SetString(PyExc_TypeError, "expected matrices of 3 x 3 floats");
        return NULL;
    }
    PyArrayObject *x = in_order(given, 0), *out = NULL;
    if (x != NULL)
        out = (PyArrayObject *)fresh_array(PyArray_DescrFromType(type), nd - 2, PyArray_DIMS(x));
    if (out != NULL && type == NPY_FLOAT)
        minors_32(PyArray_DATA(x), PyArray_DATA(out), PyArray_SIZE(out));
    else if (out != NULL)
        minors_64(PyArray_DATA(x), PyArray_DATA(out), PyArray_SIZE(out));
    Py_XDECREF(x);
    return (PyObject *)out;
}

#define JOIN(name, real)                                                                           \
    static void name(npy_intp vectors, npy_intp n, const real *sign, const real *in, real *out) {  \
        for (npy_intp i = 0; i < vectors; i++)                                                     \
            for (npy_intp j = 0; j < n; j++) {                                                     \
                npy_intp at = i * n + j;                                                           \
                out[2 * at] = sign[i] < 0 && i > 0 ? in[at - n] : in[at];                          \
                out[2 * at + 1] = sign[i] > 0 && i + 1 < vectors ? in[at + n]                      \
                                  : sign[i] < 0                  ? -in[at]                         \
                                                                 : 0;                              \
            }                                                                                      \
    }

JOIN(join_32, float)
JOIN(join_64, double)

/* join(sign, packed): complex vectors of n numbers, each of which has a sign: 0 for a real one. Two
   that are conjugates of each other, the first with a positive sign, the second with a negative
   one, are packed as their real part and their imaginary part. Where LAPACK did not converge, the
   signs are anything. */
static PyObject *join(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    PyArrayObject *sign = n == 2 && PyArray_Check(given[0]) ? (PyArrayObject *)given[0] : NULL;
    PyArrayObject *in = n == 2 && PyArray_Check(given[1]) ? (PyArrayObject *)given[1] : NULL;
    if (sign == NULL || in == NULL || !PyArray_IS_C_CONTIGUOUS(in) ||
        !PyArray_IS_C_CONTIGUOUS(sign) || PyArray_NDIM(in) < 1 ||
        PyArray_TYPE(in) != PyArray_TYPE(sign) ||
        (PyArray_TYPE(in) != NPY_FLOAT32 && PyArray_TYPE(in) != NPY_FLOAT64) ||
        PyArray_SIZE(in) != PyArray_SIZE(sign) * PyArray_DIM(in, PyArray_NDIM(in) - 1)) {
        PyErr_SetString(PyExc_TypeError, "expected signs and as many vectors");
        return NULL;
    }
    int single = PyArray_TYPE(in) == NPY_FLOAT32;
    PyArrayObject *out = (PyArrayObject *)PyArray_SimpleNew(
        PyArray_NDIM(in), PyArray_DIMS(in), single ? NPY_COMPLEX64 : NPY_COMPLEX128);
    if (out == NULL)
        return NULL;
    npy_intp vectors = PyArray_SIZE(sign), size = PyArray_DIM(in, PyArray_NDIM(in) - 1);
    if (single)
        join_32(vectors, size, PyArray_DATA(sign), PyArray_DATA(in), PyArray_DATA(out));
    else
        join_64(vectors, size, PyArray_DATA(sign), PyArray_DATA(in), PyArray_DATA(out));
    return (PyObject *)out;
}
