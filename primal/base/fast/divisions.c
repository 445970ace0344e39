/* Quotients: of whole numbers by 0, and of float16. */

/* Over 0 a quotient has all bits set, from which that of signed numbers but 0 is rounded down. */
#define OVER_ZERO(name, whole, is_signed)                                                          \
    WIDEST static void name(void *made, const void *over, const void *under, npy_intp n) {         \
        whole *out = made, zero = 0;                                                               \
        const whole *x = over, *y = under;                                                         \
        for (npy_intp i = 0; i < n; i++)                                                           \
            zero |= y[i] == 0;                                                                     \
        if (zero)                                                                                  \
            for (npy_intp i = 0; i < n; i++) {                                                     \
                const whole all = (whole)(-1 - (is_signed && x[i] != 0));                          \
                out[i] = y[i] == 0 ? all : out[i];                                                 \
            }                                                                                      \
    }

OVER_ZERO(over_zero_i8, int8_t, 1)
OVER_ZERO(over_zero_i16, int16_t, 1)
OVER_ZERO(over_zero_i32, int32_t, 1)
OVER_ZERO(over_zero_i64, int64_t, 1)
OVER_ZERO(over_zero_u8, uint8_t, 0)
OVER_ZERO(over_zero_u16, uint16_t, 0)
OVER_ZERO(over_zero_u32, uint32_t, 0)
OVER_ZERO(over_zero_u64, uint64_t, 0)

static PyArrayObject *in_order(PyObject *x, int turned) {
    return (PyArrayObject *)PyArray_FROM_OF(
        x, (turned ? NPY_ARRAY_IN_FARRAY : NPY_ARRAY_IN_ARRAY) | NPY_ARRAY_NOTSWAPPED);
}

/* over_zero(out, x, y): put what x / 0 is into the quotients of whole numbers x / y, in place.
   Whether it did: not where shapes or dtypes differ. */
static PyObject *over_zero(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    if (n != 3 || !PyArray_CheckExact(given[0]) || !PyArray_CheckExact(given[1]) ||
        !PyArray_CheckExact(given[2]))
        Py_RETURN_FALSE;
    PyArrayObject *out = (PyArrayObject *)given[0], *x = (PyArrayObject *)given[1],
                  *y = (PyArrayObject *)given[2];
    const int type = PyArray_TYPE(out), turned = is_turned(out);
    if (!PyTypeNum_ISINTEGER(type) || type != PyArray_TYPE(x) || type != PyArray_TYPE(y) ||
        !PyArray_SAMESHAPE(out, x) || !PyArray_SAMESHAPE(out, y) ||
        !(PyArray_ISCARRAY(out) || PyArray_ISFARRAY(out)))
        Py_RETURN_FALSE;
    if ((x = in_order(given[1], turned)) == NULL)
        return NULL;
    if ((y = in_order(given[2], turned)) == NULL) {
        Py_DECREF(x);
        return NULL;
    }
    void (*const of[2][4])(void *, const void *, const void *, npy_intp) = {
        {over_zero_u8, over_zero_u16, over_zero_u32, over_zero_u64},
        {over_zero_i8, over_zero_i16, over_zero_i32, over_zero_i64},
    };
    const int width = (int)PyArray_ITEMSIZE(out);
    of[PyTypeNum_ISSIGNED(type) != 0][width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : 3](
        PyArray_DATA(out), PyArray_DATA(x), PyArray_DATA(y), PyArray_SIZE(out));
    Py_DECREF(x);
    Py_DECREF(y);
    Py_RETURN_TRUE;
}

#ifdef __x86_64__
/* The quotients rounded down and the remainders of float16, each step rounded to float16 as those of
   programs are. The first remainder is exact: a quotient has at most 40 bits before the point and
   differs from whole numbers by 2^-11 or more, so a double's whole part is right, and its product
   with y has 51. */
WIDEST static void half_rests(const float *x, const float *y, float *rest, float *num, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        const double a = x[i], b = y[i];
        const float r = copysignf((float)(a - trunc(a / b) * b), x[i]);
        const float exact = isinf(y[i]) && isfinite(x[i]) ? x[i] : r;
        rest[i] = exact;
        num[i] = b == 0 ? x[i] : x[i] - exact;
    }
}

WIDEST static void half_shares(const float *num, const float *y, float *out, npy_intp n) {
    for (npy_intp i = 0; i < n; i++)
        out[i] = num[i] / y[i];
}

WIDEST static void half_down(const float *y, float *out, float *rest, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        const float r = rest[i];
        const int same = (r > 0) & (y[i] > 0), both = (r < 0) & (y[i] < 0);
        const int wrong = (r != 0) & !(same | both);
        rest[i] = wrong ? r + y[i] : r;
        out[i] = wrong ? out[i] - 1 : out[i];
    }
}

WIDEST static void half_whole(float *out, npy_intp n) {
    for (npy_intp i = 0; i < n; i++)
        out[i] = copysignf(truncf(fabsf(out[i]) + 0.5f), out[i]);
}
#endif

/* half_divmod(x, y): two arrays, of float16 of one shape, where `by_eights`. */
static PyObject *half_divmod(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    if (n != 2 || !PyArray_CheckExact(given[0]) || !PyArray_CheckExact(given[1]) ||
        PyArray_TYPE((PyArrayObject *)given[0]) != NPY_HALF ||
        PyArray_TYPE((PyArrayObject *)given[1]) != NPY_HALF ||
        !PyArray_SAMESHAPE((PyArrayObject *)given[0], (PyArrayObject *)given[1])) {
        PyErr_SetString(PyExc_TypeError, "expected two arrays of float16 of one shape");
        return NULL;
    }
    if (!has_halves) {
        PyErr_SetString(PyExc_RuntimeError, "expected a CPU with instructions for float16");
        return NULL;
    }
    const int turned = is_turned((PyArrayObject *)given[0]);
    PyArrayObject *x = in_order(given[0], turned), *y = in_order(given[1], turned);
    PyObject *out = x == NULL ? NULL : kept_order(PyArray_DescrFromType(NPY_HALF), x, turned);
    PyObject *rest = x == NULL ? NULL : kept_order(PyArray_DescrFromType(NPY_HALF), x, turned);
    PyObject *pair = NULL;
    if (y != NULL && out != NULL && rest != NULL) {
#ifdef __x86_64__
        const npy_intp all = PyArray_SIZE(x);
        const npy_half *over = PyArray_DATA(x), *under = PyArray_DATA(y);
        npy_half *q = PyArray_DATA((PyArrayObject *)out), *r = PyArray_DATA((PyArrayObject *)rest);
        float a[TILE], b[TILE], c[TILE], d[TILE];
        Py_BEGIN_ALLOW_THREADS
        for (npy_intp at = 0; at < all; at += TILE) {
            const npy_intp m = all - at < TILE ? all - at : TILE;
            widen(over + at, a, m);
            widen(under + at, b, m);
            half_rests(a, b, c, d, m);
            narrow(d, q + at, m);
            widen(q + at, d, m);
            half_shares(d, b, d, m);
            narrow(d, q + at, m);
            widen(q + at, d, m);
            half_down(b, d, c, m);
            narrow(c, r + at, m);
            narrow(d, q + at, m);
            widen(q + at, d, m);
            half_whole(d, m);
            narrow(d, q + at, m);
        }
        Py_END_ALLOW_THREADS
#endif
        pair = PyTuple_Pack(2, out, rest);
    }
    Py_XDECREF(x);
    Py_XDECREF(y);
    Py_XDECREF(out);
    Py_XDECREF(rest);
    return pair;
}
