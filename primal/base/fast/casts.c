/* Casts: floats as integers, float16 as float32 and back. */

/* Floats cut off behind the point; what is beyond the range becomes its end, and NaN 0. The halves of
   unsigned integers of 32 bits are cut off as signed ones, which all CPUs have vectors for; the ends
   that float32 does not have are set afterwards. To narrow ones numbers are cut off by their bits:
   as signed integers those of positive floats ascend, as unsigned ones those of negative floats come
   last and descend. */
#define NARROW(name, real, bits, least, greatest, whole)                                           \
    WIDEST static void name(const real *x, whole *out, npy_intp n) {                               \
        const real ends[] = {least, greatest};                                                     \
        bits low, high;                                                                            \
        memcpy(&low, ends, sizeof low);                                                            \
        memcpy(&high, ends + 1, sizeof high);                                                      \
        for (npy_intp start = 0; start < n; start += TILE) {                                       \
            const npy_intp m = n - start < TILE ? n - start : TILE;                                \
            int32_t cut[TILE] __attribute__((aligned(64)));                                        \
            for (npy_intp i = 0; i < m; i++) {                                                     \
                u##bits v;                                                                         \
                memcpy(&v, x + start + i, sizeof v);                                               \
                v = (bits)v > high ? (u##bits)high : v;                                            \
                v = v > (u##bits)low ? (u##bits)low : v;                                           \
                real within;                                                                       \
                memcpy(&within, &v, sizeof v);                                                     \
                const int32_t inside = (int32_t)within;                                            \
                cut[i] = x[start + i] == x[start + i] ? inside : 0;                                \
            }                                                                                      \
            for (npy_intp i = 0; i < m; i++)                                                       \
                out[start + i] = (whole)cut[i];                                                    \
        }                                                                                          \
    }

#define WIDER(name, real)                                                                    \
    WIDEST static void name##_i4(const real *x, int32_t *out, npy_intp n) {                        \
        for (npy_intp i = 0; i < n; i++) {                                                         \
            real v = x[i];                                                                         \
            v = isless(v, (real)INT32_MIN) ? (real)INT32_MIN : v;                                  \
            const int32_t cut = (int32_t)(isless(v, (real)TOP_32) ? v : 0);                        \
            out[i] = isgreaterequal(v, (real)TOP_32) ? INT32_MAX : cut;                            \
        }                                                                                          \
    }                                                                                              \
    WIDEST static void name##_u4(const real *x, uint32_t *out, npy_intp n) {                       \
        for (npy_intp i = 0; i < n; i++) {                                                         \
            const real top = (real)TOP_32, v = x[i];                                               \
            const real half = isgreaterequal(v, top) ? v - top : v;                                \
            const real rest = isgreater(half, (real)0) ? half : 0;                                 \
            uint32_t cut = (uint32_t)(int32_t)(isless(rest, top) ? rest : 0);                      \
            cut |= isgreaterequal(v, top) ? TOP_32 : 0;                                            \
            out[i] = isgreaterequal(v, 2 * top) ? UINT32_MAX : cut;                                \
        }                                                                                          \
    }

#define WHOLES(name, real, bits)                                                                   \
    NARROW(name##_i1, real, bits, -128, 127, int8_t)                                               \
    NARROW(name##_i2, real, bits, -32768, 32767, int16_t)                                          \
    NARROW(name##_u1, real, bits, (real)-0.0, 255, uint8_t)                                        \
    NARROW(name##_u2, real, bits, (real)-0.0, 65535, uint16_t)                                     \
    WIDER(name, real)

WHOLES(whole_32, float, int32_t)
WHOLES(whole_64, double, int64_t)

/* Real parts, for which NumPy copies one number after the other. */
#define REAL_PARTS(name, real)                                                                     \
    WIDEST static void name(const real *x, real *out, npy_intp n) {                                \
        for (npy_intp i = 0; i < n; i++)                                                           \
            out[i] = x[2 * i];                                                                     \
    }

REAL_PARTS(reals_32, float)
REAL_PARTS(reals_64, double)

static int is_plain_complex(PyObject *x) {
    PyArrayObject *array = (PyArrayObject *)x;
    return PyArray_CheckExact(x) && PyArray_ISONESEGMENT(array) && PyArray_ISBEHAVED_RO(array) &&
           (PyArray_TYPE(array) == NPY_CFLOAT || PyArray_TYPE(array) == NPY_CDOUBLE);
}

/* reals(x): the real parts of complex numbers without gaps, as these lie; None for others. */
static PyObject *reals(PyObject *self, PyObject *x) {
    if (!is_plain_complex(x))
        Py_RETURN_NONE;
    PyArrayObject *array = (PyArrayObject *)x;
    const int single = PyArray_TYPE(array) == NPY_CFLOAT;
    PyArrayObject *out = (PyArrayObject *)kept_order(
        PyArray_DescrFromType(single ? NPY_FLOAT : NPY_DOUBLE), array, is_turned(array));
    if (out == NULL)
        return NULL;
    const void *from = PyArray_DATA(array);
    void *made = PyArray_DATA(out);
    const npy_intp many = PyArray_SIZE(array);
    Py_BEGIN_ALLOW_THREADS
    if (single)
        reals_32(from, made, many);
    else
        reals_64(from, made, many);
    Py_END_ALLOW_THREADS
    return (PyObject *)out;
}

enum { REALS = 2048 };

/* whole(x, dtype): floats of 32 or 64 bits, or the real parts of complex numbers without gaps, as
   integers of at most 32, which lie as x does; None for other dtypes. */
static PyObject *whole(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    if (n != 2 || !PyArray_CheckExact(given[0]) || !PyArray_DescrCheck(given[1]))
        Py_RETURN_NONE;
    PyArray_Descr *descr = (PyArray_Descr *)given[1];
    const int is_complex = is_plain_complex(given[0]), to = descr->type_num;
    int type = PyArray_TYPE((PyArrayObject *)given[0]);
    if (is_complex)
        type = type == NPY_CFLOAT ? NPY_FLOAT : NPY_DOUBLE;
    const int size = PyTypeNum_ISINTEGER(to) ? (int)PyDataType_ELSIZE(descr) : 0;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || size < 1 || size > 4)
        Py_RETURN_NONE;
    const int turned = is_turned((PyArrayObject *)given[0]);
    PyArrayObject *x = in_order(given[0], turned);
    if (x == NULL)
        return NULL;
    PyArrayObject *out =
        (PyArrayObject *)kept_order((PyArray_Descr *)Py_NewRef(given[1]), x, turned);
    if (out != NULL) {
        const npy_intp all = PyArray_SIZE(x), piece = is_complex ? REALS : all;
        union {
            float f[REALS];
            double d[REALS];
        } parts;
#define CUT(one, name)                                                                             \
    case one:                                                                                      \
        type == NPY_FLOAT ? whole_32_##name(from, made, many) : whole_64_##name(from, made, many);             \
        break;
        Py_BEGIN_ALLOW_THREADS
        for (npy_intp start = 0; start < all; start += piece) {
            const npy_intp many = all - start < piece ? all - start : piece;
            const void *from = PyArray_BYTES(x) + start * PyArray_ITEMSIZE(x);
            void *made = PyArray_BYTES(out) + start * size;
            if (is_complex) {
                if (type == NPY_FLOAT)
                    reals_32(from, parts.f, many);
                else
                    reals_64(from, parts.d, many);
                from = &parts;
            }
            switch (PyTypeNum_ISSIGNED(to) ? -size : size) {
                CUT(-1, i1)
                CUT(-2, i2)
                CUT(-4, i4)
                CUT(1, u1)
                CUT(2, u2)
                CUT(4, u4)
            }
        }
        Py_END_ALLOW_THREADS
    }
    Py_DECREF(x);
    return (PyObject *)out;
}

/* NumPy converts between float16 and float32 number by number. */
#ifdef __x86_64__
#define BY_EIGHTS(name, from, to, one)                                                             \
    __attribute__((target("avx,f16c"))) static void name(const from *x, to *out, npy_intp n) {     \
        npy_intp i = 0;                                                                            \
        for (; i + 8 <= n; i += 8)                                                                 \
            one(x + i, out + i);                                                                   \
        if (i < n) {                                                                               \
            from last[8] = {0};                                                                    \
            to made[8];                                                                            \
            memcpy(last, x + i, (n - i) * sizeof *x);                                              \
            one(last, made);                                                                       \
            memcpy(out + i, made, (n - i) * sizeof *out);                                          \
        }                                                                                          \
    }

#define WIDEN(x, out) _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(x))))
#define NARROW_8(x, out)                                                                           \
    _mm_storeu_si128((void *)(out), _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT))

BY_EIGHTS(widen, npy_half, float, WIDEN)
BY_EIGHTS(narrow, float, npy_half, NARROW_8)
#endif

/* bfloat16 is the upper half of float32: rounded to even, and NaN becomes the quiet one of its sign. */
WIDEST static void widen_upper(const uint16_t *x, uint32_t *out, npy_intp n) {
    for (npy_intp i = 0; i < n; i++)
        out[i] = (uint32_t)x[i] << 16;
}

WIDEST static void narrow_upper(const uint32_t *x, uint16_t *out, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        const uint32_t v = x[i], even = v >> 16 & 1;
        const uint32_t near = (v + 0x7fff + even) >> 16, nan = (v >> 16 & 0x8000) | 0x7fc0;
        out[i] = (uint16_t)((v & 0x7fffffff) > 0x7f800000 ? nan : near);
    }
}

WIDEST static void round_upper(uint32_t *x, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) {
        const uint32_t v = x[i], near = (v + 0x7fff + (v >> 16 & 1)) & 0xffff0000u;
        x[i] = (v & 0x7fffffff) > 0x7f800000 ? (v & 0x80000000u) | 0x7fc00000 : near;
    }
}

/* Of types that NumPy does not know itself, bfloat16 alone has two bytes. */
static int is_upper(PyArray_Descr *descr) {
    return descr->type_num >= NPY_USERDEF && PyDataType_ELSIZE(descr) == 2;
}

/* Whether the CPU has the instructions for float16. GCC before 11 knows no
   `__builtin_cpu_supports("f16c")`, and would not compile the file. */
static int has_halves;

static void look_for_halves(void) {
#ifdef __x86_64__
    unsigned a, b, c, d;
    has_halves = __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
#endif
}

/* by_eights(): whether float16 is widened and narrowed faster than by NumPy. */
static PyObject *by_eights(PyObject *self, PyObject *none) { return PyBool_FromLong(has_halves); }

/* From float32 to another float, or back; NumPy's cast where nothing is faster. */
static PyObject *converted(PyArrayObject *given, PyArray_Descr *narrow_type, int narrowing) {
    PyArray_Descr *wide = PyArray_DescrFromType(NPY_FLOAT);
    const int upper = is_upper(narrow_type), turned = is_turned(given);
    narrow_type = PyArray_DescrFromType(narrow_type->type_num); /* in the machine's order of bytes */
    PyArray_Descr *from = narrowing ? wide : narrow_type, *to = narrowing ? narrow_type : wide;
    /* Takes the reference to the type. */
    PyArrayObject *x = (PyArrayObject *)PyArray_FromArray(
        given, from,
        (turned ? NPY_ARRAY_IN_FARRAY : NPY_ARRAY_IN_ARRAY) | NPY_ARRAY_NOTSWAPPED |
            NPY_ARRAY_FORCECAST);
    if (x == NULL) {
        Py_DECREF(to);
        return NULL;
    }
    if (!upper && !(narrow_type->type_num == NPY_HALF && has_halves)) {
        PyObject *out = PyArray_CastToType(x, to, 0);
        Py_DECREF(x);
        return out;
    }
    PyArrayObject *out = (PyArrayObject *)kept_order(to, x, turned);
    if (out != NULL) {
        const npy_intp n = PyArray_SIZE(x);
        void *in = PyArray_DATA(x), *made = PyArray_DATA(out);
        Py_BEGIN_ALLOW_THREADS
        if (upper)
            narrowing ? narrow_upper(in, made, n) : widen_upper(in, made, n);
#ifdef __x86_64__
        else
            narrowing ? narrow(in, made, n) : widen(in, made, n);
#endif
        Py_END_ALLOW_THREADS
    }
    Py_DECREF(x);
    return (PyObject *)out;
}

static int is_narrow(PyArray_Descr *descr) {
    return descr->type_num == NPY_HALF || is_upper(descr);
}

/* float32 as a float type of two bytes; NULL without an error for other values and types. */
static PyObject *as_narrow(PyObject *x, PyArray_Descr *descr) {
    const int wanted = is_narrow(descr) && PyArray_CheckExact(x);
    return wanted && PyArray_TYPE((PyArrayObject *)x) == NPY_FLOAT
               ? converted((PyArrayObject *)x, descr, 1)
               : NULL;
}

static PyObject *widened(PyObject *self, PyObject *x) {
    PyArrayObject *found = (PyArrayObject *)PyArray_FROM_O(x);
    if (found == NULL)
        return NULL;
    PyObject *out = converted(found, PyArray_DESCR(found), 0);
    Py_DECREF(found);
    return out;
}

static PyObject *narrowed(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    PyArrayObject *x = NULL;
    if (n == 2 && PyArray_DescrCheck(given[1]))
        x = (PyArrayObject *)PyArray_FROM_O(given[0]);
    else
        PyErr_SetString(PyExc_TypeError, "expected an array and a type");
    if (x == NULL)
        return NULL;
    PyObject *out = converted(x, (PyArray_Descr *)given[1], 1);
    Py_DECREF(x);
    return out;
}

/* rounded(x, dtype): float32 as the numbers of a float type of two bytes, in x's memory, which is to be
   nobody else's, or in new memory where that lies otherwise. */
static PyObject *rounded(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    const int is_known = n == 2 && PyArray_DescrCheck(given[1]) &&
                         is_narrow((PyArray_Descr *)given[1]) &&
                         (is_upper((PyArray_Descr *)given[1]) || has_halves);
    PyArrayObject *x = is_known ? (PyArrayObject *)PyArray_FROM_O(given[0]) : NULL;
    if (!is_known || (x != NULL && PyArray_TYPE(x) != NPY_FLOAT)) {
        Py_XDECREF(x);
        PyErr_SetString(PyExc_TypeError, "expected float32 and a float type of two bytes");
        return NULL;
    }
    if (x != NULL && !(PyArray_ISCARRAY(x) || PyArray_ISFARRAY(x)))
        Py_SETREF(x, (PyArrayObject *)PyArray_NewCopy(x, NPY_CORDER));
    if (x == NULL)
        return NULL;
    const int upper = is_upper((PyArray_Descr *)given[1]);
    const npy_intp all = PyArray_SIZE(x);
    float *out = PyArray_DATA(x);
    Py_BEGIN_ALLOW_THREADS
    if (upper)
        round_upper((uint32_t *)out, all);
#ifdef __x86_64__
    else
        for (npy_intp at = 0; at < all; at += TILE) {
            const npy_intp many = all - at < TILE ? all - at : TILE;
            npy_half halves[TILE];
            narrow(out + at, halves, many);
            widen(halves, out + at, many);
        }
#endif
    Py_END_ALLOW_THREADS
    return (PyObject *)x;
}

/* Numbers between two: out[i] = ((whole - k) * low + k * high) / scale for k = i + 1. */
#define RAMP(name, real)                                                                           \
    WIDEST static void name(real *out, int32_t n, real low, real high, real whole, real scale) {   \
        for (int32_t i = 0; i < n; i++) {                                                          \
            const real k = (real)(i + 1);                                                          \
            out[i] = ((whole - k) * low + k * high) / scale;                                       \
        }                                                                                          \
    }

RAMP(ramp_32, float)
RAMP(ramp_64, double)

/* ramp(out, low, high, whole, scale): fill a row of float32 or float64. */
static PyObject *ramp(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    double v[4];
    if (n != 5 || !PyArray_CheckExact(given[0])) {
        PyErr_SetString(PyExc_TypeError, "expected an array and four numbers");
        return NULL;
    }
    PyArrayObject *out = (PyArrayObject *)given[0];
    const int type = PyArray_TYPE(out);
    const npy_intp size = PyArray_SIZE(out);
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !PyArray_ISCARRAY(out) || size >= INT32_MAX) {
        PyErr_SetString(PyExc_TypeError, "expected less than 2**31 floats of 32 or 64 bits");
        return NULL;
    }
    for (int i = 0; i < 4; i++) {
        v[i] = PyFloat_AsDouble(given[i + 1]);
        if (v[i] == -1 && PyErr_Occurred())
            return NULL;
    }
    void *made = PyArray_DATA(out);
    Py_BEGIN_ALLOW_THREADS
    if (type == NPY_FLOAT)
        ramp_32(made, (int32_t)size, (float)v[0], (float)v[1], (float)v[2], (float)v[3]);
    else
        ramp_64(made, (int32_t)size, v[0], v[1], v[2], v[3]);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}
