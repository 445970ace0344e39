/* Functions that are computed in double precision in one pass, and for float32 rounded once. */

/* One of two numbers; GCC makes jumps of other ways to say it, and no vectors. */
static inline __attribute__((always_inline)) double either(int first, double x, double y) {
    const uint64_t mask = -(uint64_t)first;
    uint64_t a, b;
    double out;
    memcpy(&a, &x, sizeof x);
    memcpy(&b, &y, sizeof y);
    a = (a & mask) | (b & ~mask);
    memcpy(&out, &a, sizeof out);
    return out;
}

static inline __attribute__((always_inline)) double series(double x, const double *row, int n) {
    double out = row[n - 1];
    _Pragma("GCC unroll 64") for (int i = n - 2; i >= 0; i--) out = out * x + row[i];
    return out;
}

/* log of positive normal numbers: x = 2^e m with m around 1, and log m = 2 atanh((m - 1)/(m + 1)). */
static inline __attribute__((always_inline)) double log_of(double x) {
    static const double row[] = {
        0.666666666666666, 0.4000000000005695, 0.2857142855576785, 0.2222222430285343,
        0.18181665512129372, 0.15391123371030968, 0.1317341295983214, 0.13844271036959882,
    };
    const uint64_t half_root = 0x3fe6a09e667f3bcdu, one = 0x3ff0000000000000u, two_52 = 0x433u;
    uint64_t bits, shift;
    memcpy(&bits, &x, sizeof x);
    shift = (bits + (one - half_root)) >> 52; /* e + 1023 */
    bits = bits + one - (shift << 52);
    double m, e;
    memcpy(&m, &bits, sizeof m);
    shift |= two_52 << 52;
    memcpy(&e, &shift, sizeof e);
    e -= 0x1p52 + 1023;
    const double h = m - 1, s = h / (h + 2), z = s * s, square = 0.5 * h * h;
    const double small = s * (square + series(z, row, 8) * z) + e * 1.9082149292705877e-10;
    return e * 0.6931471803691238 - ((square - small) - h);
}

/* The distance from the nearest whole number, with the sign of what lies above it. */
static inline __attribute__((always_inline)) double apart(double x) {
    const double size = fabs(x), from = size - ((size + 0x1p52) - 0x1p52);
    return copysign(1, x) * either(size < 0x1p52, from, 0);
}

/* sin(pi r)/r and cos(pi r) of |r| <= 1/2. */
static inline __attribute__((always_inline)) double sin_pi_over(double r) {
    static const double row[] = {
        3.141592653589793,     -5.16771278004997,      2.550164039877345,
        -0.5992645293207921,   0.08214588661112823,    -0.00737043094571435,
        0.0004663028057676125, -2.1915353447830217e-5, 7.952054001475513e-7,
        -2.2948428997269873e-8,
    };
    return series(r * r, row, 10);
}

static inline __attribute__((always_inline)) double cos_pi(double r) {
    const double rest = 0.5 - fabs(r);
    return rest * sin_pi_over(rest);
}

/* Numbers of a pass, whose parts lie in the cache, and of a unit; bytes that are read in the time that
   one takes (2 ns). */
enum { SOME = 256, OF_A_UNIT = 8192, COST = 64 };

typedef void OfNumbers(const double *x, double *out, npy_intp n, const double *near,
                       const double *far);

typedef struct {
    const void *x;
    void *out;
    npy_intp n;
    OfNumbers *function;
    const double *near, *far;
} Numbers;

static void some_doubles(void *what, npy_intp unit) {
    const Numbers *f = what;
    const npy_intp end = f->n - unit * OF_A_UNIT < OF_A_UNIT ? f->n : (unit + 1) * OF_A_UNIT;
    for (npy_intp at = unit * OF_A_UNIT; at < end; at += SOME)
        f->function((const double *)f->x + at, (double *)f->out + at,
                    end - at < SOME ? end - at : SOME, f->near, f->far);
}

WIDEST static void some_floats(void *what, npy_intp unit) {
    const Numbers *f = what;
    const npy_intp end = f->n - unit * OF_A_UNIT < OF_A_UNIT ? f->n : (unit + 1) * OF_A_UNIT;
    double wide[SOME], made[SOME];
    for (npy_intp at = unit * OF_A_UNIT; at < end; at += SOME) {
        const npy_intp n = end - at < SOME ? end - at : SOME;
        const float *x = (const float *)f->x + at;
        float *out = (float *)f->out + at;
        for (npy_intp i = 0; i < n; i++)
            wide[i] = x[i];
        f->function(wide, made, n, f->near, f->far);
        for (npy_intp i = 0; i < n; i++)
            out[i] = (float)made[i];
    }
}

typedef double OfRight(double y, const double *near, const double *far);

/* A function at x, or at 1 - x of negative numbers; whether there are any. */
static inline __attribute__((always_inline)) int to_the_right(const double *x, double *level,
                                                              npy_intp n, const double *near,
                                                              const double *far, OfRight *right) {
    int left = 0;
    for (npy_intp i = 0; i < n; i++) {
        const double v = x[i], size = fabs(v);
        level[i] = right(either(v < 0, 1 + size, size), near, far);
        left |= v < 0;
    }
    return left;
}

#define HALF_LOG_2PI 0.91893853320467274178
enum { NEXT_TO_TWO = 20, STIRLING = 9, UPWARDS = 8 };

/* log |Gamma(y)|, y >= 0. Up or down to 2 + d, next to which both zeros are those of d and of one
   logarithm; Stirling's series from 8 on. */
static inline __attribute__((always_inline)) double right_lgamma(double y, const double *near,
                                                                 const double *far) {
    const int low = y < 0.5, up = y < 1.5, small = y < UPWARDS;
    double d = either(low, y, either(up, y - 1, y - 2));
    double product = either(low, y * (y + 1), either(up, y, 1));
    _Pragma("GCC unroll 8") for (int i = 1; i < UPWARDS - 1; i++) {
        const int beyond = y >= i + 1.5;
        d = either(beyond, y - (i + 2), d);
        product = either(beyond, product * (y - i), product);
    }
    const double level = log_of(either(small, product, y)), inverse = 1 / either(small, 8, y);
    const double close = series(d, near, NEXT_TO_TWO) * d + either(up, -level, level);
    const double more = series(inverse * inverse, far, STIRLING) * inverse + (HALF_LOG_2PI - 0.5);
    const double rest = (y - 0.5) * (level - 1) + more;
    return either(small, close, rest);
}

/* Sizes below which parts of the formulas are subnormal: those numbers take a function's first term. */
#define TINY 1e-300

WIDEST static void lgamma_of(const double *x, double *out, npy_intp n, const double *near,
                             const double *far) {
    double level[SOME];
    if (to_the_right(x, level, n, near, far, right_lgamma))
        for (npy_intp i = 0; i < n; i++) {
            const double v = x[i], r = apart(v);
            const double across = log_of(fabs(r * sin_pi_over(r)));
            const double mirrored = 1.1447298858494002 - across - level[i];
            level[i] = either(v < 0, either(r == 0, INFINITY, mirrored), level[i]);
        }
    int tiny = 0;
    for (npy_intp i = 0; i < n; i++) {
        const double v = x[i], known = either(v == v, level[i], v);
        out[i] = either((v == 0) | (fabs(v) == INFINITY), INFINITY, known);
        tiny |= fabs(v) < TINY;
    }
    for (npy_intp i = 0; tiny && i < n; i++)
        if (fabs(x[i]) < TINY)
            out[i] = -log(fabs(x[i]));
}

enum { NEXT_TO_ZERO = 22, FAR_PSI = 9 };

/* psi(y), y >= 0. Up or down to [1, 2] by a sum of inverses, the logarithmic derivative of a product:
   psi there is a polynomial times the distance from its zero. */
static inline __attribute__((always_inline)) double right_psi(double y, const double *near,
                                                              const double *far) {
    const int low = y < 1, small = y < UPWARDS;
    double at = either(low, y + 1, y), product = either(low, y, 1), slope = either(low, -1, 0);
    _Pragma("GCC unroll 8") for (int i = 1; i < UPWARDS - 1; i++) {
        const int beyond = y >= i + 1;
        const double factor = y - i;
        at = either(beyond, factor, at);
        slope = either(beyond, slope * factor + product, slope);
        product = either(beyond, product * factor, product);
    }
    const double off = (at - 1.4616321449683622) - 9.549995429965697e-17, t = at - 1.5;
    const double inverse = 1 / either(small, 8, y), z = inverse * inverse;
    const double close = off * series(t, near, NEXT_TO_ZERO) + slope / product;
    const double rest = log_of(either(small, 8, y)) - (z * series(z, far, FAR_PSI) + inverse * 0.5);
    return either(small, close, rest);
}

WIDEST static void psi_of(const double *x, double *out, npy_intp n, const double *near,
                          const double *far) {
    double level[SOME];
    if (to_the_right(x, level, n, near, far, right_psi))
        for (npy_intp i = 0; i < n; i++) {
            const double v = x[i], r = apart(v);
            const double mirrored = level[i] - 3.141592653589793 * cos_pi(r) / (r * sin_pi_over(r));
            level[i] = either(v < 0, mirrored, level[i]);
        }
    for (npy_intp i = 0; i < n; i++) {
        const double v = x[i], found = either(v < INFINITY, level[i], v);
        const double known = either(fabs(v) < TINY, -1 / v, found);
        out[i] = either((v <= 0) & (apart(v) == 0), NAN, known);
    }
}

/* 1/sqrt(x) of positive normal numbers, by Newton's steps: C's root reports errors, which no vector
   does. */
static inline __attribute__((always_inline)) double inverse_root(double x) {
    uint64_t bits;
    double out;
    memcpy(&bits, &x, sizeof x);
    bits = 0x5fe6eb50c7b537a9u - (bits >> 1);
    memcpy(&out, &bits, sizeof out);
    _Pragma("GCC unroll 4") for (int i = 0; i < 3; i++)
        out = out * (1.5 - 0.5 * x * out * out);
    return out + out * (0.5 - 0.5 * x * out * out);
}

enum { BESSEL_32 = 21, BESSEL_64 = 45 };

/* e^-|x| I(x) of order 0 or 1: a polynomial in (|x| - 6)/(|x| + 6), over powers of sqrt(1 + |x|). */
static inline __attribute__((always_inline)) void bessel_of(const double *x, double *out,
                                                            npy_intp n, const double *row,
                                                            int degree, int order) {
    for (npy_intp i = 0; i < n; i++) {
        const double v = x[i], size = fabs(v), inside = either(size < INFINITY, size, 0);
        const double level = series((inside - 6) / (inside + 6), row, degree);
        const double root = inverse_root(1 + inside), level_0 = level * root;
        const double level_1 = level_0 * (root * v) * root, end = copysign(0, order ? v : 1);
        const double last = either(size == INFINITY, end, v);
        out[i] = either(size < INFINITY, order ? level_1 : level_0, last);
    }
}

#define BESSEL(name, row, degree, order)                                                           \
    WIDEST static void name(const double *x, double *out, npy_intp n, const double *near,          \
                            const double *far) {                                                   \
        bessel_of(x, out, n, row, degree, order);                                                  \
    }

BESSEL(bessel_0, near, BESSEL_32, 0)
BESSEL(bessel_0_wide, far, BESSEL_64, 0)
BESSEL(bessel_1, near, BESSEL_32, 1)
BESSEL(bessel_1_wide, far, BESSEL_64, 1)

WIDEST static void hypotenuses(const float *x, const float *y, float *out, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        const double a = x[i], b = y[i], square = a * a + b * b;
        const double found = square * inverse_root(square);
        out[i] = (float)either((fabs(a) == INFINITY) | (fabs(b) == INFINITY), INFINITY, found);
    }
}

/* Bits of a float that is not negative ascend with it. */
#define NEIGHBOURS(name, real, bits)                                                               \
    static inline __attribute__((always_inline)) real one_##name(real x, real y) {                 \
        bits a, b, sum;                                                                            \
        const real both = x + y;                                                                   \
        memcpy(&a, &x, sizeof a);                                                                  \
        memcpy(&b, &y, sizeof b);                                                                  \
        memcpy(&sum, &both, sizeof sum);                                                           \
        const bits inward = -(bits)((x > y) == (x > 0)), next = a + (inward | 1);                  \
        const bits least = (b & ((bits)1 << (8 * sizeof b - 1))) | 1;                              \
        const bits zero = -(bits)(x == 0), same = -(bits)(x == y);                                 \
        const bits odd = -(bits)((x != x) | (y != y));                                             \
        const bits from = (zero & least) | (~zero & next), made = (same & b) | (~same & from);     \
        const bits out = (odd & sum) | (~odd & made);                                              \
        real found;                                                                                \
        memcpy(&found, &out, sizeof found);                                                        \
        return found;                                                                              \
    }                                                                                              \
    WIDEST static void name(char **args, const npy_intp *sizes, const npy_intp *steps,             \
                            void *nothing) {                                                       \
        const npy_intp n = sizes[0], p = steps[0], q = steps[1], r = steps[2], one = sizeof(real); \
        const real *x = (const real *)args[0], *y = (const real *)args[1];                         \
        real *out = (real *)args[2];                                                               \
        if (n > 0 && p == one && q == 0 && r == one) {                                             \
            const real only = *y;                                                                  \
            _Pragma("GCC ivdep") for (npy_intp i = 0; i < n; i++) out[i] = one_##name(x[i], only); \
        } else if (p == one && q == one && r == one)                                               \
            _Pragma("GCC ivdep") for (npy_intp i = 0; i < n; i++) out[i] = one_##name(x[i], y[i]); \
        else                                                                                       \
            for (npy_intp i = 0; i < n; i++)                                                       \
                *(real *)(args[2] + i * r) = one_##name(*(const real *)(args[0] + i * p),          \
                                                        *(const real *)(args[1] + i * q));         \
    }

NEIGHBOURS(nextafter_32, float, uint32_t)
NEIGHBOURS(nextafter_64, double, uint64_t)

/* Numbers of a ufunc's row side by side, in their own memory where they lie so. */
static const float *gathered(const char *from, npy_intp step, npy_intp n, float *room) {
    if (step == sizeof(float))
        return (const float *)from;
    for (npy_intp i = 0; i < n; i++)
        room[i] = *(const float *)(from + i * step);
    return room;
}

static void scattered(const float *from, char *to, npy_intp step, npy_intp n) {
    if (step == sizeof(float))
        memcpy(to, from, n * sizeof(float));
    else
        for (npy_intp i = 0; i < n; i++)
            *(float *)(to + i * step) = from[i];
}

#define ROWS_OF_TWO(name, function)                                                                \
    static void name(char **args, const npy_intp *sizes, const npy_intp *steps, void *nothing) {   \
        for (npy_intp at = 0; at < sizes[0]; at += SOME) {                                         \
            const npy_intp n = sizes[0] - at < SOME ? sizes[0] - at : SOME;                        \
            float rooms[2][SOME], out[SOME];                                                       \
            function(gathered(args[0] + at * steps[0], steps[0], n, rooms[0]),                     \
                     gathered(args[1] + at * steps[1], steps[1], n, rooms[1]), out, n);            \
            scattered(out, args[2] + at * steps[2], steps[2], n);                                  \
        }                                                                                          \
    }

ROWS_OF_TWO(hypot_rows, hypotenuses)

/* f(x, near, far): of float32 or float64, and rows of as many coefficients in float64, lowest power
   first. */
static PyObject *of_numbers(PyObject *const *given, Py_ssize_t n, OfNumbers *of_floats,
                            OfNumbers *of_doubles, int near, int far) {
    const int lengths[] = {near, far};
    PyArrayObject *rows[2] = {NULL}, *x = NULL, *out = NULL;
    int good = n == 3;
    for (int i = 0; good && i < 2; i++) {
        rows[i] = (PyArrayObject *)PyArray_FROM_OTF(given[1 + i], NPY_FLOAT64, NPY_ARRAY_IN_ARRAY);
        good = rows[i] != NULL && PyArray_SIZE(rows[i]) == lengths[i];
    }
    const int type = good && PyArray_Check(given[0]) ? PyArray_TYPE((PyArrayObject *)given[0]) : -1;
    const int turned = type >= 0 && is_turned((PyArrayObject *)given[0]);
    if (type == NPY_FLOAT32 || type == NPY_FLOAT64)
        x = in_order(given[0], turned);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "expected float32 or float64 and rows of coefficients");
    if (x != NULL)
        out = (PyArrayObject *)kept_order(PyArray_DescrFromType(type), x, turned);
    if (out != NULL) {
        const int is_wide = type == NPY_FLOAT64;
        Numbers f = {.x = PyArray_DATA(x), .out = PyArray_DATA(out), .n = PyArray_SIZE(x),
                     .function = is_wide ? of_doubles : of_floats, .near = PyArray_DATA(rows[0]),
                     .far = PyArray_DATA(rows[1])};
        Py_BEGIN_ALLOW_THREADS
        do_units(is_wide ? some_doubles : some_floats, &f, (f.n + OF_A_UNIT - 1) / OF_A_UNIT,
                 f.n * COST);
        Py_END_ALLOW_THREADS
    }
    Py_XDECREF(rows[0]);
    Py_XDECREF(rows[1]);
    Py_XDECREF(x);
    return (PyObject *)out;
}

#define OF_NUMBERS(name, of_floats, of_doubles, near, far)                                         \
    static PyObject *name(PyObject *self, PyObject *const *given, Py_ssize_t n) {                  \
        return of_numbers(given, n, of_floats, of_doubles, near, far);                             \
    }

OF_NUMBERS(lgamma_of_array, lgamma_of, lgamma_of, NEXT_TO_TWO, STIRLING)
OF_NUMBERS(psi_of_array, psi_of, psi_of, NEXT_TO_ZERO, FAR_PSI)
OF_NUMBERS(bessel_i0e, bessel_0, bessel_0_wide, BESSEL_32, BESSEL_64)
OF_NUMBERS(bessel_i1e, bessel_1, bessel_1_wide, BESSEL_32, BESSEL_64)
