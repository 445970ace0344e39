/* Signs of zeros, and whether numbers are finite. */

#define ZEROS_LIKE(name, bits, infinity)                                                           \
    static int name(npy_intp n, void *zeros, void *like, npy_intp step) {                          \
        bits *out = zeros, sign = (bits)1 << (8 * sizeof(bits) - 1), odd = 0;                      \
        const bits *x = like, inf = infinity;                                                      \
        for (npy_intp i = 0; i < n; i++) {                                                         \
            bits size = out[i] & (bits)~sign;                                                      \
            out[i] = size == 0 ? x[i * step] & sign : out[i];                                      \
            odd |= size >= inf;                                                                    \
        }                                                                                          \
        return odd == 0;                                                                           \
    }

ZEROS_LIKE(zeros_like_32, uint32_t, 0x7f800000u)
ZEROS_LIKE(zeros_like_64, uint64_t, 0x7ff0000000000000u)

/* zeros_like(out, x): give the zeros of `out` the signs of x's elements, in place. Whether all of
   `out` is finite, or None where x is neither one number nor of the shape of `out`. */
static PyObject *zeros_like(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    PyArrayObject *out = n == 2 && PyArray_CheckExact(given[0]) ? (PyArrayObject *)given[0] : NULL;
    PyArrayObject *x = n == 2 && PyArray_CheckExact(given[1]) ? (PyArrayObject *)given[1] : NULL;
    if (out == NULL || x == NULL || PyArray_TYPE(out) != PyArray_TYPE(x) ||
        !(PyArray_SIZE(x) == 1 || PyArray_SAMESHAPE(out, x)) ||
        !(PyArray_ISCARRAY(out) || PyArray_ISFARRAY(out)))
        Py_RETURN_NONE;
    int (*run)(npy_intp, void *, void *, npy_intp) = PyArray_TYPE(x) == NPY_FLOAT32   ? zeros_like_32
                                           : PyArray_TYPE(x) == NPY_FLOAT64 ? zeros_like_64
                                                                            : NULL;
    if (run == NULL)
        Py_RETURN_NONE;
    if ((x = in_order(given[1], is_turned(out))) == NULL)
        return NULL;
    int finite = run(PyArray_SIZE(out), PyArray_DATA(out), PyArray_DATA(x), PyArray_SIZE(x) != 1);
    Py_DECREF(x);
    return PyBool_FromLong(finite);
}

#define FINITE(name, bits, whole, infinity)                                                        \
    WIDEST static int name(npy_intp n, const bits *x, int plain) {                                 \
        const bits sign = (bits)1 << (8 * sizeof(bits) - 1), inf = infinity;                       \
        bits most = 0;                                                                             \
        whole least = 0; /* as a whole number, -0 is the least */                                  \
        for (npy_intp i = 0; i < n; i++) {                                                         \
            const bits size = x[i] & (bits)~sign;                                                  \
            most = size > most ? size : most;                                                      \
            least = (whole)x[i] < least ? (whole)x[i] : least;                                     \
        }                                                                                          \
        return most < inf && !(plain && (bits)least == sign);                                      \
    }

FINITE(finite_16, uint16_t, int16_t, 0x7c00u)
FINITE(finite_32, uint32_t, int32_t, 0x7f800000u)
FINITE(finite_64, uint64_t, int64_t, 0x7ff0000000000000u)

static PyObject *all_finite(PyObject *given, int plain) {
    PyArrayObject *x = (PyArrayObject *)PyArray_FROM_O(given);
    if (x == NULL)
        return NULL;
    if (!PyArray_ISONESEGMENT(x) || !PyArray_ISALIGNED(x) || PyArray_ISBYTESWAPPED(x))
        Py_SETREF(x, (PyArrayObject *)PyArray_NewCopy(x, NPY_CORDER));
    if (x == NULL)
        return NULL;
    npy_intp n = PyArray_SIZE(x);
    PyObject *out = NULL;
    switch (PyArray_TYPE(x)) {
    case NPY_HALF: out = PyBool_FromLong(finite_16(n, PyArray_DATA(x), plain)); break;
    case NPY_CFLOAT: n *= 2; /* fall through */
    case NPY_FLOAT: out = PyBool_FromLong(finite_32(n, PyArray_DATA(x), plain)); break;
    case NPY_CDOUBLE: n *= 2; /* fall through */
    case NPY_DOUBLE: out = PyBool_FromLong(finite_64(n, PyArray_DATA(x), plain)); break;
    default:
        if (PyArray_ISINTEGER(x) || PyArray_ISBOOL(x))
            out = Py_NewRef(Py_True);
        else
            PyErr_SetString(PyExc_TypeError, "expected numbers of NumPy's");
    }
    Py_DECREF(x);
    return out;
}

/* is_finite(x): whether no number of an array is inf or nan. NumPy takes two calls, 0.6 us. */
static PyObject *is_finite(PyObject *self, PyObject *x) { return all_finite(x, 0); }

/* is_plain(x): whether none is -0 either. */
static PyObject *is_plain(PyObject *self, PyObject *x) { return all_finite(x, 1); }
