/* Quotients: of whole numbers by 0, and of floats of two bytes. */

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

/* The quotients rounded down and the remainders of float16 and bfloat16, each step rounded to these as
   those of programs are. A quotient below 2^44 differs from whole numbers by 2^-11 of itself or 2^-8
   or more, or is one, so a double's whole part is right, and its product with y has 53 bits at most:
   the first remainder is exact. Returns whether some quotient is larger, which float16 has none of. */
WIDEST static int half_rests(const float *x, const float *y, float *rest, npy_intp n) {
    int far = 0;
    for (npy_intp i = 0; i < n; i++) {
        const double a = x[i], b = y[i];
        const float r = copysignf((float)(a - trunc(a / b) * b), x[i]);
        rest[i] = isinf(y[i]) && isfinite(x[i]) ? x[i] : r;
        far |= (b != 0) & (fabs(a) < INFINITY) & (fabs(a) >= fabs(b) * 0x1p44);
    }
    return far;
}

static void narrow_rests(const float *x, const float *y, float *rest, npy_intp n) {
    if (half_rests(x, y, rest, n))
        for (npy_intp i = 0; i < n; i++)
            rest[i] = fmodf(x[i], y[i]);
}

WIDEST static void half_wholes(const float *x, const float *y, const float *rest, float *num,
                               npy_intp n) {
    for (npy_intp i = 0; i < n; i++)
        num[i] = y[i] == 0 ? x[i] : x[i] - rest[i];
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

static void as_wide(int upper, const npy_uint16 *x, float *out, npy_intp n) {
#ifdef __x86_64__
    if (!upper)
        widen(x, out, n);
#endif
    if (upper)
        widen_upper(x, (uint32_t *)out, n);
}

static void as_halves(int upper, const float *x, npy_uint16 *out, npy_intp n) {
#ifdef __x86_64__
    if (!upper)
        narrow(x, out, n);
#endif
    if (upper)
        narrow_upper((const uint32_t *)x, out, n);
}

/* Whether two arrays of one shape are of bfloat16 rather than of float16; -1 and an error for others,
   and for types that the CPU has no instructions for. */
static int are_upper(PyObject *const *given, Py_ssize_t n) {
    if (n == 2 && PyArray_CheckExact(given[0]) && PyArray_CheckExact(given[1]) &&
        PyArray_TYPE((PyArrayObject *)given[0]) == PyArray_TYPE((PyArrayObject *)given[1]) &&
        PyArray_SAMESHAPE((PyArrayObject *)given[0], (PyArrayObject *)given[1])) {
        PyArray_Descr *descr = PyArray_DESCR((PyArrayObject *)given[0]);
        if (is_upper(descr) || (descr->type_num == NPY_HALF && has_halves))
            return is_upper(descr);
    }
    PyErr_SetString(PyExc_TypeError, "expected two arrays of one shape, of floats of two bytes that "
                                     "the CPU has instructions for");
    return -1;
}

/* Remainders with the signs of x, or, with `quotients`, these rounded down and remainders with the signs
   of y. */
static PyObject *divide_halves(PyObject *const *given, Py_ssize_t n, int quotients) {
    const int upper = are_upper(given, n);
    if (upper < 0)
        return NULL;
    const int turned = is_turned((PyArrayObject *)given[0]);
    PyArrayObject *x = in_order(given[0], turned), *y = in_order(given[1], turned);
    PyObject *out = NULL, *rest = NULL, *found = NULL;
    if (x != NULL && y != NULL) {
        rest = kept_order(PyArray_DescrFromType(PyArray_TYPE(x)), x, turned);
        if (quotients)
            out = kept_order(PyArray_DescrFromType(PyArray_TYPE(x)), x, turned);
    }
    if (rest != NULL && (out != NULL || !quotients)) {
        const npy_intp all = PyArray_SIZE(x);
        const npy_uint16 *over = PyArray_DATA(x), *under = PyArray_DATA(y);
        npy_uint16 *q = quotients ? PyArray_DATA((PyArrayObject *)out) : NULL;
        npy_uint16 *r = PyArray_DATA((PyArrayObject *)rest);
        float a[TILE], b[TILE], c[TILE], d[TILE];
        Py_BEGIN_ALLOW_THREADS
        for (npy_intp at = 0; at < all; at += TILE) {
            const npy_intp m = all - at < TILE ? all - at : TILE;
            as_wide(upper, over + at, a, m);
            as_wide(upper, under + at, b, m);
            narrow_rests(a, b, c, m);
            if (quotients) {
                half_wholes(a, b, c, d, m);
                as_halves(upper, d, q + at, m);
                as_wide(upper, q + at, d, m);
                half_shares(d, b, d, m);
                as_halves(upper, d, q + at, m);
                as_wide(upper, q + at, d, m);
                half_down(b, d, c, m);
                as_halves(upper, d, q + at, m);
                as_wide(upper, q + at, d, m);
                half_whole(d, m);
                as_halves(upper, d, q + at, m);
            }
            as_halves(upper, c, r + at, m);
        }
        Py_END_ALLOW_THREADS
        found = quotients ? PyTuple_Pack(2, out, rest) : Py_NewRef(rest);
    }
    Py_XDECREF(x);
    Py_XDECREF(y);
    Py_XDECREF(out);
    Py_XDECREF(rest);
    return found;
}

/* half_rem(x, y), half_divmod(x, y) */
static PyObject *half_rem(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    return divide_halves(given, n, 0);
}

static PyObject *half_divmod(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    return divide_halves(given, n, 1);
}
