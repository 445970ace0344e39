/* Polynomials of float32, and functions that are made of them. */

/* So many numbers at a time stay in registers from one coefficient to the next. */
enum { AT_ONCE = 64 };
typedef float many __attribute__((vector_size(4 * AT_ONCE), aligned(4)));

WIDEST static void polynomial(const float *row, npy_intp degree, const float *at, float *to,
                              npy_intp n) {
    npy_intp i = 0;
    for (; i + AT_ONCE <= n; i += AT_ONCE) {
        const many x = *(const many *)(at + i);
        many sum = x * row[0] + row[1];
        for (npy_intp k = 2; k < degree; k++)
            sum = sum * x + row[k];
        *(many *)(to + i) = sum;
    }
    for (; i < n; i++) {
        float sum = at[i] * row[0] + row[1];
        for (npy_intp k = 2; k < degree; k++)
            sum = sum * at[i] + row[k];
        to[i] = sum;
    }
}

/* horner(coefficients, x): a polynomial of float32, highest degree first. */
static PyObject *horner(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "expected coefficients and an array");
        return NULL;
    }
    PyArrayObject *c = (PyArrayObject *)PyArray_FROM_OTF(given[0], NPY_FLOAT32, NPY_ARRAY_IN_ARRAY);
    PyArrayObject *x = (PyArrayObject *)PyArray_FROM_OTF(given[1], NPY_FLOAT32, NPY_ARRAY_IN_ARRAY);
    PyArrayObject *out = NULL;
    if (c != NULL && PyArray_SIZE(c) < 2)
        PyErr_SetString(PyExc_ValueError, "expected two coefficients or more");
    else if (c != NULL && x != NULL)
        out = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(x), PyArray_DIMS(x), NPY_FLOAT32);
    if (out != NULL) {
        enum { BLOCK = 1024 };
        const float *row = PyArray_DATA(c), *at = PyArray_DATA(x);
        float *to = PyArray_DATA(out);
        npy_intp degree = PyArray_SIZE(c), size = PyArray_SIZE(x);
        for (npy_intp start = 0; start < size; start += BLOCK) {
            npy_intp n = size - start < BLOCK ? size - start : BLOCK;
            polynomial(row, degree, at + start, to + start, n);
        }
    }
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

/* erf(x, p, q, flat, exp): x + x p(x^2) where |x| < 1, 1 - exp(q(min(|x|, flat))) with the sign of x
   elsewhere. */
static PyObject *erf_32(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    parts p;
    int good = take_parts(&p, given, n, 3);
    if (good) {
        const float *x = PyArray_DATA(p.in[0]), flat = p.limit;
        float *inside = PyArray_DATA(p.made[0]), *outside = PyArray_DATA(p.made[1]);
        float *at = PyArray_DATA(p.made[2]);
        const npy_intp size = PyArray_SIZE(p.in[0]);
        for (npy_intp i = 0; i < size; i++)
            at[i] = x[i] * x[i];
        of_part(&p, 1, at, inside);
        for (npy_intp i = 0; i < size; i++)
            at[i] = fabsf(x[i]) > flat ? flat : fabsf(x[i]);
        of_part(&p, 2, at, outside);
        good = exp_of(&p, 1);
        for (npy_intp i = 0; i < size; i++) {
            float near = inside[i] * x[i] + x[i], far = copysignf(1 - outside[i], x[i]);
            inside[i] = one_of(x[i] * x[i] < 1, near, far);
        }
    }
    return leave_parts(&p, good);
}

/* erfc(x, p, end, exp): exp(-x^2) p((x - 2)/(x + 2)) / (1 + 2x) of min(|x|, end), 2 less that below
   0. x^2 is near^2, which is a float, and a rest, whose exponential is a series: rounded, x^2 would
   leave five digits. */
static PyObject *erfc_32(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    parts p;
    int good = take_parts(&p, given, n, 2);
    if (good) {
        const float *x = PyArray_DATA(p.in[0]), end = p.limit;
        float *body = PyArray_DATA(p.made[0]), *power = PyArray_DATA(p.made[1]);
        float *at = PyArray_DATA(p.made[2]);
        const npy_intp size = PyArray_SIZE(p.in[0]);
        for (npy_intp i = 0; i < size; i++) {
            float far = fabsf(x[i]) > end ? end : fabsf(x[i]);
            at[i] = (far - 2) / (far + 2);
        }
        of_part(&p, 1, at, body);
        for (npy_intp i = 0; i < size; i++) {
            float far = fabsf(x[i]) > end ? end : fabsf(x[i]);
            /* To 64ths: adding 3 2^16 rounds there, as far is less than 2^15. */
            float near = (far + 196608.0f) - 196608.0f, r = (near - far) * (near + far);
            float grown = r * (1 + r * (0.5f + r * (1 / 6.0f + r * (1 / 24.0f + r / 120.0f))));
            body[i] /= 1 + (far + far);
            body[i] += body[i] * grown;
            power[i] = -(near * near);
        }
        good = exp_of(&p, 1);
        for (npy_intp i = 0; i < size; i++) {
            float beyond = body[i] * power[i];
            body[i] = one_of(x[i] < 0, 2 - beyond, beyond);
        }
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
