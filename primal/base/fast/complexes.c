/* Functions of finite complex64 by their parts in double precision, rounded once: the formulas of
   ops/elementwise/complexes.py, in one pass. */

typedef struct {
    double re, im;
} Parts;

#define FORMULA static inline __attribute__((always_inline))

FORMULA double clipped(double x) {
    const double low = either(x < -300, -300, x); /* the LARGE of complexes.py */
    return either(low > 300, 300, low);
}

FORMULA double root(double x) { return x * inverse_root(x); }

typedef struct {
    double e, less_one;
} Power;

/* e^x and e^x - 1 of |x| <= 700. */
FORMULA Power power_of_e(double x) {
    static const double row[] = {
        0.5000000000000001,    0.16666666666666669,   0.04166666666662413,  0.008333333333330062,
        0.0013888888917213717, 0.00019841269863053618, 2.4801521295954376e-05,
        2.7557268459997064e-06, 2.7620088445409746e-07, 2.510038549551032e-08,
    };
    const double shifted = x * 1.4426950408889634 + 0x1.8p52, k = shifted - 0x1.8p52;
    const double r = (x - k * 0.6931471805592082) - k * 7.371002565167799e-13;
    const double rest = r + r * r * series(r, row, 10);
    uint64_t bits;
    double scale;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 52) + ((uint64_t)1023 << 52);
    memcpy(&scale, &bits, sizeof scale);
    const double part = scale * rest;
    return (Power){scale + part, either(x == 0, x, part + (scale - 1))};
}

typedef struct {
    double sinh, cosh;
} Hyperbolic;

FORMULA Hyperbolic hyperbolic(double x) {
    const Power p = power_of_e(fabs(clipped(x)));
    const double inverse = 1 / p.e;
    const double sinh = 0.5 * (p.less_one + p.less_one * inverse);
    return (Hyperbolic){copysign(sinh, x), 0.5 * (p.e + inverse)};
}

FORMULA double log1p_of(double t) {
    const double u = 1 + t, lost = either(t < 1, t - (u - 1), 1 - (u - t));
    const double level = log_of(u) + lost / u;
    return either(t < INFINITY, either(u > 0, either(t == 0, t, level), -INFINITY), t);
}

FORMULA double asinh_of(double x) {
    const double size = fabs(x), square = size * size;
    return copysign(log1p_of(size + square / (1 + root(1 + square))), x);
}

FORMULA double angle_of(double y, double x) {
    static const double row[] = {
        -0.3333333333333333,  0.19999999999995516,  -0.14285714284665682, 0.11111111015187018,
        -0.0909090457530649,  0.07692183125376892,  -0.06664510525508936, 0.05858140904866328,
        -0.050854078345894844, 0.03923044778479309, -0.019175404711104935,
    };
    const double p = fabs(x), q = fabs(y);
    const int steep = q > p;
    const double high = either(steep, q, p), low = either(steep, p, q);
    const int diagonal = low > 0.41421356237309503 * high;
    const double over = either(diagonal, low - high, low);
    const double under = either(diagonal, low + high, high);
    const double t = over / either(high == 0, 1, under), z = t * t;
    double out = t + t * z * series(z, row, 11) + either(diagonal, 0.78539816339744831, 0);
    out = either(steep, 1.5707963267948966 - out, out);
    out = either(copysign(1, x) < 0, 3.1415926535897931 - out, out);
    return copysign(out, y);
}

/* Beyond, products with pi/2's parts are not exact: those numbers are the C library's. */
#define NEAR_ANGLE 0x1p20

FORMULA void angles(const double *x, double *sine, double *cosine, npy_intp n) {
    static const double of_sin[] = {
        -0.16666666666666666, 0.008333333333330948, -0.00019841269836756774,
        2.7557316101617874e-06, -2.505113165023518e-08, 1.5918115263265974e-10,
    };
    static const double of_cos[] = {
        0.041666666666666664, -0.0013888888888887398, 2.480158729876456e-05,
        -2.7557317271145144e-07, 2.087614614655861e-09, -1.1382623647474604e-11,
    };
    int far = 0;
    for (npy_intp i = 0; i < n; i++) {
        const double v = x[i], shifted = v * 0.6366197723675814 + 0x1.8p52, k = shifted - 0x1.8p52;
        const double more = (v - k * 0x1.921fb544p+0) - k * 0x1.0b4611a6p-34;
        const double r = more - k * 0x1.3198a2e037073p-69;
        const double z = r * r, s = r * (1 + z * series(z, of_sin, 6));
        const double c = 1 - z * (0.5 - z * series(z, of_cos, 6));
        uint64_t turns;
        memcpy(&turns, &shifted, sizeof turns);
        const double first = either(turns & 1, c, s), second = either(turns & 1, s, c);
        sine[i] = either((turns >> 1) & 1, -first, first);
        cosine[i] = either(((turns + 1) >> 1) & 1, -second, second);
        far |= fabs(v) > NEAR_ANGLE;
    }
    if (far)
        for (npy_intp i = 0; i < n; i++)
            if (fabs(x[i]) > NEAR_ANGLE && fabs(x[i]) < INFINITY) {
                sine[i] = sin(x[i]);
                cosine[i] = cos(x[i]);
            }
}

typedef void OfPairs(const void *of, const void *and, void *made, npy_intp n);

/* Of one part h and an angle's sine s and cosine c; the angle is the other part by a factor. */
#define OF_ANGLE(name, part, by, ...)                                                              \
    WIDEST static void name##_pairs(const void *of, const void *and, void *made, npy_intp n) {     \
        const float *x = of;                                                                       \
        float *out = made;                                                                         \
        double angle[SOME], sine[SOME], cosine[SOME];                                              \
        for (npy_intp i = 0; i < n; i++)                                                           \
            angle[i] = x[2 * i + 1 - part] * by;                                                   \
        angles(angle, sine, cosine, n);                                                            \
        for (npy_intp i = 0; i < n; i++) {                                                         \
            const double h = x[2 * i + part], s = sine[i], c = cosine[i];                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

#define GIVE(re, im) out[2 * i] = (float)(re), out[2 * i + 1] = (float)(im);

OF_ANGLE(exp, 0, 1.0, const double size = power_of_e(clipped(h)).e; GIVE(size * c, size * s))
OF_ANGLE(exp2, 0, 0x1.62e42fefa39efp-1,
         const double size = power_of_e(clipped(h * 0x1.62e42fefa39efp-1)).e;
         GIVE(size * c, size * s))
OF_ANGLE(sin, 1, 1.0, const Hyperbolic p = hyperbolic(h); GIVE(s * p.cosh, c * p.sinh))
OF_ANGLE(cos, 1, 1.0, const Hyperbolic p = hyperbolic(h); GIVE(c * p.cosh, -(s * p.sinh)))
OF_ANGLE(sinh, 0, 1.0, const Hyperbolic p = hyperbolic(h); GIVE(p.sinh * c, p.cosh * s))
OF_ANGLE(cosh, 0, 1.0, const Hyperbolic p = hyperbolic(h); GIVE(p.cosh * c, p.sinh * s))
OF_ANGLE(tanh, 0, 1.0, const Hyperbolic p = hyperbolic(h);
         const double scale = 1 / (p.sinh * p.sinh + c * c);
         GIVE(p.sinh * p.cosh * scale, s * c * scale))
OF_ANGLE(tan, 1, 1.0, const Hyperbolic p = hyperbolic(h);
         const double scale = 1 / (p.sinh * p.sinh + c * c);
         GIVE(s * c * scale, p.sinh * p.cosh * scale))

/* 1 - c, and with -c 1 + c, without a difference of what is alike. */
FORMULA double one_less(double c, double s) { return either(c > 0, s * s / (1 + fabs(c)), 1 - c); }

/* What float32 does not hold takes no sign from a zero. */
OF_ANGLE(expm1, 0, 1.0, const Power p = power_of_e(clipped(h)); const double less = one_less(c, s);
         GIVE(p.less_one * c - either(less < 0x1p-151, 0, less), p.e * s))
OF_ANGLE(logistic, 0, 1.0, const double v = clipped(h); const Power p = power_of_e(v);
         const double e = either(v < 0, 1 / p.e, p.e), more = one_less(-c, s);
         const double square = fabs(p.less_one) * either(v < 0, e, 1);
         const double scale = 1 / (square * square / e + 2 * more);
         GIVE((p.less_one + more) * scale, s * scale + 0.0))

/* The root on the right; its parts are the Parts of complexes.py's sqrt. */
FORMULA Parts root_of(double a, double b) {
    const double large = root((root(a * a + b * b) + fabs(a)) * 0.5);
    const double twice = large + large, small = b / either(twice == 0, 1, twice);
    return (Parts){either(a < 0, fabs(small), large), either(a < 0, copysign(large, b), small)};
}

FORMULA Parts log_of_parts(double a, double b) {
    const double p = fabs(a), q = fabs(b), high = either(p > q, p, q), low = either(p > q, q, p);
    const double square = high * high + low * low, off = (high - 1) * (high + 1) + low * low;
    const int near = (square > 0.5) & (square < 2);
    const double size = either(near, log1p_of(off), log_of(square)) * 0.5;
    return (Parts){either(high == 0, -INFINITY, size), angle_of(b, a)};
}

/* log|1 + z| = log1p(a^2 + 2a + b^2)/2, with what the sum loses; next to -1 1 + a is exact. */
FORMULA Parts log1p_of_parts(double a, double b) {
    const double square = a * a, twice = a + a, total = square + twice, part = total - twice;
    const double lost = (twice - (total - part)) + (square - part);
    const double moved = a + 1, size = moved * moved + b * b;
    const double close = either(size > 0, log_of(size), -INFINITY);
    const double level = either(size < 0.5, close, log1p_of((total + b * b) + lost));
    return (Parts){level * 0.5, angle_of(b, moved)};
}

FORMULA Parts rsqrt_of(double a, double b) {
    const double square = a * a + b * b, inverse = inverse_root(square);
    const Parts r = root_of(a, b);
    return (Parts){either(square > 0, r.re * inverse, INFINITY),
                   either(square > 0, -r.im * inverse, NAN)};
}

/* Of z in the first quadrant, or of all with a positive imaginary part: Kahan's. */
FORMULA Parts asin_of(double a, double b) {
    const double x = fabs(a), y = fabs(b);
    const Parts p = root_of(1 - x, -y), r = root_of(1 + x, y);
    const double re = angle_of(x, p.re * r.re - p.im * r.im);
    const double im = asinh_of(p.re * r.im - p.im * r.re);
    return (Parts){copysign(re, a), copysign(im, b)};
}

FORMULA Parts acos_of(double a, double b) {
    const double y = fabs(b);
    const Parts p = root_of(1 - a, -y), r = root_of(1 + a, y);
    return (Parts){angle_of(p.re, r.re) * 2,
                   -copysign(asinh_of(p.re * r.im - p.im * r.re), b)};
}

FORMULA Parts atanh_of(double a, double b) {
    const double x = fabs(a), y = fabs(b), less = 1 - x, square = y * y;
    const double re = log1p_of(4 * x / (less * less + square)) * 0.25;
    return (Parts){copysign(re, a), copysign(angle_of(y + y, less * (1 + x) - square) * 0.5, b)};
}

#define OF_BOTH(name, ...)                                                                         \
    WIDEST static void name##_pairs(const void *of, const void *and, void *made, npy_intp n) {     \
        const float *x = of;                                                                       \
        float *out = made;                                                                         \
        for (npy_intp i = 0; i < n; i++) {                                                         \
            const double a = x[2 * i], b = x[2 * i + 1];                                           \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

OF_BOTH(sqrt, const Parts p = root_of(a, b); GIVE(p.re, p.im))
OF_BOTH(rsqrt, const Parts p = rsqrt_of(a, b); GIVE(p.re, p.im))
OF_BOTH(log, const Parts p = log_of_parts(a, b); GIVE(p.re, p.im))
OF_BOTH(log1p, const Parts p = log1p_of_parts(a, b); GIVE(p.re, p.im))
OF_BOTH(asin, const Parts p = asin_of(a, b); GIVE(p.re, p.im))
OF_BOTH(asinh, const Parts p = asin_of(b, a); GIVE(p.im, p.re))
OF_BOTH(acos, const Parts p = acos_of(a, b); GIVE(p.re, p.im))
OF_BOTH(acosh, const Parts p = acos_of(a, b); GIVE(fabs(p.im), copysign(p.re, b)))
OF_BOTH(atanh, const Parts p = atanh_of(a, b); GIVE(p.re, p.im))
OF_BOTH(atan, const Parts p = atanh_of(b, a); GIVE(p.im, p.re))

WIDEST static void pow_pairs(const void *of, const void *and, void *made, npy_intp n) {
    const float *x = of, *y = and;
    float *out = made;
    double size[SOME], angle[SOME], sine[SOME], cosine[SOME];
    for (npy_intp i = 0; i < n; i++) {
        const double c = y[2 * i], d = y[2 * i + 1];
        const Parts p = log_of_parts(x[2 * i], x[2 * i + 1]);
        size[i] = c * p.re - d * p.im;
        angle[i] = c * p.im + d * p.re;
    }
    angles(angle, sine, cosine, n);
    int far = 0;
    for (npy_intp i = 0; i < n; i++) {
        const double e = power_of_e(clipped(size[i])).e;
        GIVE(e * cosine[i], e * sine[i])
        far |= fabs(angle[i]) > NEAR_ANGLE;
    }
    /* Of such an angle, which is rounded here, few digits are left: the C library's are kept. */
    for (npy_intp i = 0; far && i < n; i++)
        if (fabs(angle[i]) > NEAR_ANGLE) {
            const double _Complex base = CMPLX(x[2 * i], x[2 * i + 1]);
            const double _Complex v = cpow(base, CMPLX(y[2 * i], y[2 * i + 1]));
            GIVE(creal(v), cimag(v))
        }
}

WIDEST static void div_pairs(const void *of, const void *and, void *made, npy_intp n) {
    const float *x = of, *y = and;
    float *out = made;
    for (npy_intp i = 0; i < n; i++) {
        const double a = x[2 * i], b = x[2 * i + 1], c = y[2 * i], d = y[2 * i + 1];
        /* With the sign of the divisor's larger part taken out, zeros have those of its quotient
           with the other part (R. L. Smith, Comm. ACM 5, 1962), as XLA's and NumPy's. */
        const double sign = copysign(1, either(fabs(c) >= fabs(d), c, d));
        const double p = c * sign, q = d * sign;
        const double scale = sign / (c * c + d * d);
        GIVE((a * p + b * q) * scale, (b * p - a * q) * scale)
    }
}

/* Of complex128 by Smith's method, whose squares do not overflow: NumPy's operations, which it does
   number by number. */
WIDEST static void div_double_pairs(const void *of, const void *and, void *made, npy_intp n) {
    const double *x = of, *y = and;
    double *out = made;
    for (npy_intp i = 0; i < n; i++) {
        const double a = x[2 * i], b = x[2 * i + 1], c = y[2 * i], d = y[2 * i + 1];
        const int wide = fabs(c) >= fabs(d);
        const double more = either(wide, c, d), less = either(wide, d, c);
        const double ratio = less / more, scale = 1 / (more + less * ratio);
        const double u = a * ratio, v = b * ratio;
        out[2 * i] = (either(wide, a, b) + either(wide, v, u)) * scale;
        out[2 * i + 1] = (either(wide, b, v) - either(wide, u, a)) * scale;
    }
}

static const struct {
    const char *name;
    OfPairs *function;
    int operands;
} pairs_by_name[] = {
    {"exp", exp_pairs, 1}, {"exp2", exp2_pairs, 1}, {"expm1", expm1_pairs, 1}, {"log", log_pairs, 1},
    {"log1p", log1p_pairs, 1}, {"sqrt", sqrt_pairs, 1}, {"rsqrt", rsqrt_pairs, 1},
    {"sin", sin_pairs, 1}, {"cos", cos_pairs, 1}, {"tan", tan_pairs, 1}, {"asin", asin_pairs, 1},
    {"acos", acos_pairs, 1}, {"atan", atan_pairs, 1}, {"sinh", sinh_pairs, 1},
    {"cosh", cosh_pairs, 1}, {"tanh", tanh_pairs, 1}, {"asinh", asinh_pairs, 1},
    {"acosh", acosh_pairs, 1}, {"atanh", atanh_pairs, 1}, {"logistic", logistic_pairs, 1},
    {"div", div_pairs, 2}, {"pow", pow_pairs, 2},
};

typedef struct {
    const char *x, *y;
    char *out;
    npy_intp n, width;
    OfPairs *function;
    int one; /* y is one number of all, SOME times */
} Pairs;

static void some_pairs(void *what, npy_intp unit) {
    const Pairs *f = what;
    const npy_intp end = f->n - unit * OF_A_UNIT < OF_A_UNIT ? f->n : (unit + 1) * OF_A_UNIT;
    for (npy_intp at = unit * OF_A_UNIT; at < end; at += SOME) {
        const npy_intp n = end - at < SOME ? end - at : SOME;
        const npy_intp place = at * f->width;
        f->function(f->x + place, f->one ? f->y : f->y + place, f->out + place, n);
    }
}

/* by_parts(name, x) and by_parts("pow", x, y): of complex64 of one shape, or y of one number. "div"
   is of complex128 too. */
static PyObject *by_parts(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    OfPairs *function = NULL;
    int operands = 0;
    for (size_t i = 0; n > 0 && i < sizeof pairs_by_name / sizeof *pairs_by_name; i++)
        if (PyUnicode_Check(given[0]) &&
            PyUnicode_CompareWithASCIIString(given[0], pairs_by_name[i].name) == 0) {
            function = pairs_by_name[i].function;
            operands = pairs_by_name[i].operands;
        }
    int good = function != NULL && n == 1 + operands && PyArray_Check(given[1]) &&
               PyArray_Check(given[n - 1]);
    PyArrayObject *x = good ? (PyArrayObject *)given[1] : NULL, *out = NULL;
    PyArrayObject *y = good ? (PyArrayObject *)given[n - 1] : NULL;
    const int type = good ? PyArray_TYPE(x) : 0, one = good && PyArray_SIZE(y) == 1;
    const int wide = type == NPY_CDOUBLE && PyUnicode_CompareWithASCIIString(given[0], "div") == 0;
    if (!(wide || type == NPY_CFLOAT) || PyArray_TYPE(y) != type ||
        !(one || PyArray_SAMESHAPE(x, y))) {
        PyErr_SetString(PyExc_TypeError, "expected a function's name and complex64 of one shape");
        return NULL;
    }
    const int turned = is_turned(x);
    npy_cdouble again[SOME];
    x = in_order(given[1], turned);
    y = x == NULL ? NULL : in_order(given[n - 1], turned);
    if (y != NULL)
        out = (PyArrayObject *)kept_order(PyArray_DescrFromType(type), x, turned);
    if (out != NULL) {
        Pairs f = {.x = PyArray_DATA(x), .y = PyArray_DATA(y), .out = PyArray_DATA(out),
                   .n = PyArray_SIZE(x), .width = PyArray_ITEMSIZE(x),
                   .function = wide ? div_double_pairs : function};
        if (one && f.n > 1) {
            for (npy_intp i = 0; i < SOME && i < f.n; i++)
                memcpy((char *)again + i * f.width, f.y, (size_t)f.width);
            f.one = 1;
            f.y = (char *)again;
        }
        Py_BEGIN_ALLOW_THREADS
        do_units(some_pairs, &f, (f.n + OF_A_UNIT - 1) / OF_A_UNIT, f.n * 4 * COST);
        Py_END_ALLOW_THREADS
    }
    Py_XDECREF(x);
    Py_XDECREF(y);
    return (PyObject *)out;
}
