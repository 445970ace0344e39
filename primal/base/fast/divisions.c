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

/* The whole part of numbers that are not negative, for which C's function makes GCC take no vectors;
   of numbers from 2^52 on, or 2^23, some number near. */
static inline __attribute__((always_inline)) double cut_off(double x) {
    const double near = (x + 0x1p52) - 0x1p52;
    return near - (near > x);
}

static inline __attribute__((always_inline)) float cut_off_32(float x) {
    const float near = (x + 0x1p23f) - 0x1p23f;
    return near - (near > x);
}

/* x - y trunc(x / y). Of floats of two bytes a quotient below 2^44 differs from whole numbers by 2^-11 of
   itself or 2^-8 or more, or is one; of float32 one below 2^28 by 2^-24 of itself. So a double's whole
   part is right, and its product with y has 53 bits at most: the remainder is exact. Returns whether
   some quotient is larger, which float16 has none of. */
WIDEST static int near_rests(const float *x, const float *y, float *rest, npy_intp n, double most) {
    int far = 0;
    for (npy_intp i = 0; i < n; i++) {
        const double a = fabs(x[i]), b = fabs(y[i]);
        const float r = copysignf((float)(a - cut_off(a / b) * b), x[i]);
        rest[i] = one_of((b == INFINITY) & (a < INFINITY), x[i], r);
        far |= (b != 0) & (a < INFINITY) & (a >= b * most);
    }
    return far;
}

static void rests(const float *x, const float *y, float *rest, npy_intp n, double most) {
    if (near_rests(x, y, rest, n, most))
        for (npy_intp i = 0; i < n; i++)
            if (fabs((double)x[i]) >= fabs((double)y[i]) * most)
                rest[i] = fmodf(x[i], y[i]);
}

/* x without its remainder; all of it where y is 0. */
WIDEST static void multiples(const float *x, const float *y, const float *rest, float *num,
                             npy_intp n) {
    for (npy_intp i = 0; i < n; i++)
        num[i] = one_of(y[i] == 0, x[i], x[i] - rest[i]);
}

WIDEST static void divided(const float *num, const float *y, float *out, npy_intp n) {
    for (npy_intp i = 0; i < n; i++)
        out[i] = num[i] / y[i];
}

/* Where a remainder is not of y's sign it is larger by y, and the quotient less by 1. */
WIDEST static void rounded_down(const float *y, float *out, float *rest, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        const float r = rest[i], q = out[i];
        const int same = (r > 0) & (y[i] > 0), both = (r < 0) & (y[i] < 0);
        const int wrong = (r != 0) & !(same | both);
        rest[i] = one_of(wrong, r + y[i], r);
        out[i] = one_of(wrong, q - 1, q);
    }
}

/* To the nearest whole number, from which roundings have moved it. 0 keeps the sign of y, which it has as
   +0 over y. */
WIDEST static void wholes(float *out, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        const float up = fabsf(out[i]) + 0x1.fffffep-2f;
        out[i] = copysignf(one_of(up < 0x1p23f, cut_off_32(up), up), out[i]);
    }
}

enum { DIVISORS = 1, REST = 2, QUOTIENT = 4 };

/* Rows of ufuncs of float32: remainders with the signs of x or of the DIVISORS, quotients rounded down,
   or both. NumPy divides number by number, bit by bit (100,000 take 2 ms, so 0.1). */
static inline void division_rows(char **args, const npy_intp *sizes, const npy_intp *steps,
                                 int wanted) {
    for (npy_intp start = 0; start < sizes[0]; start += TILE) {
        const npy_intp n = sizes[0] - start < TILE ? sizes[0] - start : TILE;
        float rooms[2][TILE], rest[TILE], quotient[TILE];
        const float *in[2];
        for (int k = 0; k < 2; k++)
            in[k] = gathered(args[k] + start * steps[k], steps[k], n, rooms[k]);
        rests(in[0], in[1], rest, n, 0x1p28);
        if (wanted & DIVISORS) {
            multiples(in[0], in[1], rest, quotient, n);
            divided(quotient, in[1], quotient, n);
            rounded_down(in[1], quotient, rest, n);
            wholes(quotient, n);
        }
        const float *made[] = {wanted & QUOTIENT ? quotient : rest, rest};
        for (int k = 0; k <= ((wanted & QUOTIENT) && (wanted & REST)); k++)
            scattered(made[k], args[2 + k] + start * steps[2 + k], steps[2 + k], n);
    }
}

#define DIVISION(name, wanted)                                                                     \
    static void name(char **args, const npy_intp *sizes, const npy_intp *steps, void *nothing) {   \
        division_rows(args, sizes, steps, wanted);                                                 \
    }

DIVISION(fmod_rows, REST)
DIVISION(remainder_rows, DIVISORS | REST)
DIVISION(floor_divide_rows, DIVISORS | QUOTIENT)
DIVISION(divmod_rows, DIVISORS | QUOTIENT | REST)
static PyUFuncGenericFunction of_two[] = {hypot_rows, fmod_rows, remainder_rows,
                                          floor_divide_rows, divmod_rows};

static int add_of_two(PyObject *module) {
    static const char types[] = {NPY_FLOAT, NPY_FLOAT, NPY_FLOAT, NPY_FLOAT};
    static const char *names[] = {"hypot", "fmod", "remainder", "floor_divide", "divmod"};
    for (int i = 0; i < 5; i++) {
        PyObject *ufunc = PyUFunc_FromFuncAndData(of_two + i, no_data, types, 1, 2, 1 + i / 4,
                                                  PyUFunc_None, names[i], "Of float32.", 0);
        const int bad = ufunc == NULL || PyModule_AddObjectRef(module, names[i], ufunc) < 0;
        Py_XDECREF(ufunc);
        if (bad)
            return -1;
    }
    return 0;
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
            rests(a, b, c, m, 0x1p44);
            if (quotients) {
                multiples(a, b, c, d, m);
                as_halves(upper, d, q + at, m);
                as_wide(upper, q + at, d, m);
                divided(d, b, d, m);
                as_halves(upper, d, q + at, m);
                as_wide(upper, q + at, d, m);
                rounded_down(b, d, c, m);
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
