/* Polynomials, and functions of float32 that are made of them. */

/* So many vectors stay in registers from one coefficient to the next. GCC takes wider ones apart in
   memory where the CPU has none (16 times as long), and narrower ones lose nothing. */
enum { TOGETHER = 8, WIDTH = 32 };

#define POLYNOMIAL(NAME, number)                                                                   \
    typedef number vector_##NAME __attribute__((vector_size(WIDTH), aligned(sizeof(number))));     \
    WIDEST static void NAME(const number *row, npy_intp degree, const number *at, number *to,      \
                            npy_intp n) {                                                          \
        const npy_intp step = TOGETHER * WIDTH / sizeof(number);                                   \
        npy_intp i = 0;                                                                            \
        for (; i + step <= n; i += step) {                                                         \
            const vector_##NAME *x = (const vector_##NAME *)(at + i);                              \
            vector_##NAME sum[TOGETHER];                                                           \
            _Pragma("GCC unroll 8") for (int j = 0; j < TOGETHER; j++)                             \
                sum[j] = x[j] * row[0] + row[1];                                                   \
            for (npy_intp k = 2; k < degree; k++)                                                  \
                _Pragma("GCC unroll 8") for (int j = 0; j < TOGETHER; j++)                         \
                    sum[j] = sum[j] * x[j] + row[k];                                               \
            _Pragma("GCC unroll 8") for (int j = 0; j < TOGETHER; j++)                             \
                ((vector_##NAME *)(to + i))[j] = sum[j];                                           \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            number sum = at[i] * row[0] + row[1];                                                  \
            for (npy_intp k = 2; k < degree; k++)                                                  \
                sum = sum * at[i] + row[k];                                                        \
            to[i] = sum;                                                                           \
        }                                                                                          \
    }
POLYNOMIAL(polynomial, float)
POLYNOMIAL(polynomial_64, double)

/* horner(coefficients, x): a polynomial, highest degree first, of float64 if x is, else float32. */
static PyObject *horner(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "expected coefficients and an array");
        return NULL;
    }
    PyObject *of = PyArray_FROM_O(given[1]);
    if (of == NULL)
        return NULL;
    const int is_wide = PyArray_TYPE((PyArrayObject *)of) == NPY_FLOAT64;
    const int type = is_wide ? NPY_FLOAT64 : NPY_FLOAT32;
    PyArrayObject *c = (PyArrayObject *)PyArray_FROM_OTF(given[0], type, NPY_ARRAY_IN_ARRAY);
    PyArrayObject *x = (PyArrayObject *)PyArray_FROM_OTF(of, type, NPY_ARRAY_IN_ARRAY);
    PyArrayObject *out = NULL;
    Py_DECREF(of);
    if (c != NULL && PyArray_SIZE(c) < 2)
        PyErr_SetString(PyExc_ValueError, "expected two coefficients or more");
    else if (c != NULL && x != NULL)
        out = (PyArrayObject *)fresh_array(PyArray_DescrFromType(type), PyArray_NDIM(x),
                                           PyArray_DIMS(x));
    if (out != NULL && is_wide)
        polynomial_64(PyArray_DATA(c), PyArray_SIZE(c), PyArray_DATA(x), PyArray_DATA(out),
                      PyArray_SIZE(x));
    else if (out != NULL)
        polynomial(PyArray_DATA(c), PyArray_SIZE(c), PyArray_DATA(x), PyArray_DATA(out),
                   PyArray_SIZE(x));
    Py_XDECREF(c);
    Py_XDECREF(x);
    return (PyObject *)out;
}

/* What a function of float32 made of polynomials is given, and its memory, of the shape of the first
   operand: f(x, polynomial..., limit, exp). The exponential, or another function, is NumPy's. */
typedef struct {
    PyArrayObject *in[3], *made[3];
    float limit;
    PyObject *exp;
} parts;

static int take_parts(parts *p, PyObject *const *given, Py_ssize_t n, int operands) {
    *p = (parts){{NULL}};
    int good = n == operands + 2;
    if (good) {
        p->limit = (float)PyFloat_AsDouble(given[operands]);
        p->exp = given[operands + 1];
        good = !PyErr_Occurred();
    }
    for (int i = 0; good && i < operands; i++) {
        p->in[i] = (PyArrayObject *)PyArray_FROM_OTF(given[i], NPY_FLOAT32, NPY_ARRAY_IN_ARRAY);
        good = p->in[i] != NULL && (i == 0 || PyArray_SIZE(p->in[i]) > 1);
    }
    for (int i = 0; good && i < 3; i++) {
        p->made[i] = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(p->in[0]),
                                                        PyArray_DIMS(p->in[0]), NPY_FLOAT32);
        good = p->made[i] != NULL;
    }
    if (!good && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "expected an array, polynomials, a limit and exp");
    return good;
}

/* The exponential, or what stands in its place, of a part in its own memory. */
static int exp_of(const parts *p, int i) {
    PyObject *done = PyObject_CallFunctionObjArgs(p->exp, p->made[i], p->made[i], NULL);
    Py_XDECREF(done);
    return done != NULL;
}

/* The first part, of which the result is made, where all went well. */
static PyObject *leave_parts(parts *p, int good) {
    PyObject *out = good ? Py_NewRef(p->made[0]) : NULL;
    for (int i = 0; i < 3; i++) {
        Py_XDECREF(p->in[i]);
        Py_XDECREF(p->made[i]);
    }
    return out;
}

static void of_part(const parts *p, int which, const float *at, float *to) {
    polynomial(PyArray_DATA(p->in[which]), PyArray_SIZE(p->in[which]), at, to,
               PyArray_SIZE(p->in[0]));
}

/* One of two numbers, without a jump that is taken for every other x: 4 ns. */
static inline float one_of(int first, float x, float y) {
    union { float real; uint32_t bits; } a = {x}, b = {y}, out;
    const uint32_t mask = -(uint32_t)first;
    out.bits = (a.bits & mask) | (b.bits & ~mask);
    return out.real;
}

WIDEST static void squares(const float *x, float *to, npy_intp n) {
    for (npy_intp i = 0; i < n; i++)
        to[i] = x[i] * x[i];
}

WIDEST static void sizes_to(const float *x, float end, float *to, npy_intp n) {
    for (npy_intp i = 0; i < n; i++)
        to[i] = fabsf(x[i]) > end ? end : fabsf(x[i]);
}

WIDEST static void join_erf(const float *x, float *inside, const float *outside, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        float near = inside[i] * x[i] + x[i], far = copysignf(1 - outside[i], x[i]);
        inside[i] = one_of(x[i] * x[i] < 1, near, far);
    }
}

/* erf(x, p, q, flat, exp): x + x p(x^2) where |x| < 1, 1 - exp(q(min(|x|, flat))) with the sign of x
   elsewhere. */
static PyObject *erf_32(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    parts p;
    int good = take_parts(&p, given, n, 3);
    if (good) {
        const float *x = PyArray_DATA(p.in[0]);
        float *inside = PyArray_DATA(p.made[0]), *outside = PyArray_DATA(p.made[1]);
        float *at = PyArray_DATA(p.made[2]);
        const npy_intp size = PyArray_SIZE(p.in[0]);
        squares(x, at, size);
        of_part(&p, 1, at, inside);
        sizes_to(x, p.limit, at, size);
        of_part(&p, 2, at, outside);
        good = exp_of(&p, 1);
        join_erf(x, inside, outside, size);
    }
    return leave_parts(&p, good);
}

WIDEST static void places_of_erfc(const float *x, float end, float *to, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        float far = fabsf(x[i]) > end ? end : fabsf(x[i]);
        to[i] = (far - 2) / (far + 2);
    }
}

WIDEST static void grow_erfc(const float *x, float end, float *body, float *power, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        float far = fabsf(x[i]) > end ? end : fabsf(x[i]);
        /* To 64ths: adding 3 2^16 rounds there, as far is less than 2^15. */
        float near = (far + 196608.0f) - 196608.0f, r = (near - far) * (near + far);
        float grown = r * (1 + r * (0.5f + r * (1 / 6.0f + r * (1 / 24.0f + r / 120.0f))));
        body[i] /= 1 + (far + far);
        body[i] += body[i] * grown;
        power[i] = -(near * near);
    }
}

WIDEST static void join_erfc(const float *x, float *body, const float *power, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        float beyond = body[i] * power[i];
        body[i] = one_of(x[i] < 0, 2 - beyond, beyond);
    }
}

/* erfc(x, p, end, exp): exp(-x^2) p((x - 2)/(x + 2)) / (1 + 2x) of min(|x|, end), 2 less that below
   0. x^2 is near^2, which is a float, and a rest, whose exponential is a series: rounded, x^2 would
   leave five digits. */
static PyObject *erfc_32(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    parts p;
    int good = take_parts(&p, given, n, 2);
    if (good) {
        const float *x = PyArray_DATA(p.in[0]);
        float *body = PyArray_DATA(p.made[0]), *power = PyArray_DATA(p.made[1]);
        const npy_intp size = PyArray_SIZE(p.in[0]);
        places_of_erfc(x, p.limit, PyArray_DATA(p.made[2]), size);
        of_part(&p, 1, PyArray_DATA(p.made[2]), body);
        grow_erfc(x, p.limit, body, power, size);
        good = exp_of(&p, 1);
        join_erfc(x, body, power, size);
    }
    return leave_parts(&p, good);
}

/* erf_inv(x, centre, tail, from, log1p): x p(w) of w = -log1p(-x^2), p(w) = centre(w - 2.5) below
   `from`, tail(sqrt(w) - 3) there and beyond; infinite at 1 and -1. */
static PyObject *erf_inv_32(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    parts p;
    int good = take_parts(&p, given, n, 3);
    if (good) {
        const float *x = PyArray_DATA(p.in[0]), *tail = PyArray_DATA(p.in[2]);
        float *out = PyArray_DATA(p.made[0]), *w = PyArray_DATA(p.made[1]);
        float *at = PyArray_DATA(p.made[2]);
        const npy_intp size = PyArray_SIZE(p.in[0]), degree = PyArray_SIZE(p.in[2]);
        for (npy_intp i = 0; i < size; i++)
            w[i] = -(x[i] * x[i]);
        good = exp_of(&p, 1);
        for (npy_intp i = 0; i < size; i++)
            at[i] = -w[i] - 2.5f;
        if (good)
            of_part(&p, 1, at, out);
        for (npy_intp i = 0; good && i < size; i++) {
            if (-w[i] >= p.limit) {
                const float far = sqrtf(-w[i]) - 3;
                polynomial(tail, degree, &far, out + i, 1);
            }
            out[i] = (fabsf(x[i]) == 1 ? INFINITY : out[i]) * x[i];
        }
    }
    return leave_parts(&p, good);
}
