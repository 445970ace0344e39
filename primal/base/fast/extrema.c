/* The greater and the lesser of floats as `extrema.py` says: NaN wins, and -0 is below 0, where
   NumPy's loops return either. They become ufuncs, so that shapes, strides, buffers, `out` and axes
   are NumPy's work. */

/* Take back the flag of NaN: isgreater raises none, but GCC's vectors of it do. */
static inline void take_back_flag(void) {
#ifdef __SSE2__
    __asm__ volatile("" ::: "memory"); /* the results are stored before */
    const unsigned flags = _mm_getcsr();
    if (flags & _MM_EXCEPT_INVALID)
        _mm_setcsr(flags & ~_MM_EXCEPT_INVALID);
#else
    feclearexcept(FE_INVALID);
#endif
}

/* Equal numbers have equal bits, but for zeros of two signs: of these the greater has the sign that
   both have, the lesser the one that either has. */
#define PICK(name, real, bits, beyond, both)                                                       \
    static inline __attribute__((always_inline)) real name(real x, real y) {                       \
        bits a, b;                                                                                 \
        memcpy(&a, &x, sizeof a);                                                                  \
        memcpy(&b, &y, sizeof b);                                                                  \
        bits chosen = beyond(x, y) ? a : b; /* y, where that is NaN */                             \
        chosen = x == y ? (a both b) : chosen;                                                     \
        chosen = x != x ? a : chosen;                                                              \
        real one;                                                                                  \
        memcpy(&one, &chosen, sizeof one);                                                         \
        return one;                                                                                \
    }

PICK(greater_32, float, uint32_t, isgreater, &)
PICK(lesser_32, float, uint32_t, isless, |)
PICK(greater_64, double, uint64_t, isgreater, &)
PICK(lesser_64, double, uint64_t, isless, |)

/* Along one row, by the bits as whole numbers, for these wait for less than `PICK` does: signed ones
   order floats without a sign and put them above the others, unsigned ones order those with a sign,
   the other way round, and put them above. Of NaNs, one of the greatest magnitude wins. Vectors
   that lie across two lines of the cache, each of which is read three times, take twice as long. */
#define EXTREME(name, bits, whole, infinity)                                                       \
    WIDEST static void name(bits *out, const char *at, npy_intp step, npy_intp n, int greatest) {  \
        const whole *x = (const whole *)at;                                                        \
        whole high = (whole)*out, low = high;                                                      \
        bits far = *out;                                                                           \
        npy_intp i = 0, apart = n;                                                                 \
        if (step == sizeof(bits)) /* the numbers before the first line of the cache */             \
            apart = (npy_intp)(-(uintptr_t)at % LINE / sizeof(bits));                              \
        for (; i < n && i < apart; i++) {                                                          \
            whole v = *(const whole *)(at + i * step);                                             \
            high = v > high ? v : high;                                                            \
            low = v < low ? v : low;                                                               \
            far = (bits)v > far ? (bits)v : far;                                                   \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            high = x[i] > high ? x[i] : high;                                                      \
            low = x[i] < low ? x[i] : low;                                                         \
            far = (bits)x[i] > far ? (bits)x[i] : far;                                             \
        }                                                                                          \
        if (high > (whole)infinity)                                                                \
            *out = (bits)high;                                                                     \
        else if (far > ((bits)1 << (8 * sizeof(bits) - 1) | infinity))                             \
            *out = far;                                                                            \
        else if (greatest)                                                                         \
            *out = (bits)(high >= 0 ? high : low);                                                 \
        else                                                                                       \
            *out = (whole)far < 0 ? far : (bits)low;                                               \
    }

EXTREME(extreme_32, uint32_t, int32_t, 0x7f800000u)
EXTREME(extreme_64, uint64_t, int64_t, 0x7ff0000000000000u)

static int disjoint(const char *x, npy_intp p, const char *y, npy_intp q, npy_intp n, size_t one) {
    const char *x_end = x + (n - 1) * p, *y_end = y + (n - 1) * q;
    const char *x_low = p < 0 ? x_end : x, *x_high = p < 0 ? x : x_end;
    const char *y_low = q < 0 ? y_end : y, *y_high = q < 0 ? y : y_end;
    return x_high + one <= y_low || y_high + one <= x_low;
}

enum { TILE = 512 };

/* Where results begin one after an operand, as in accumulations, each is the operand of the next.
   Otherwise elements are loaded before their results are stored: operands may be the results' own
   memory, and those that lie apart are moved together first, which takes a third of the time of
   working on them one by one. */
#define PICK_ROWS(name, real, pick, extreme, greatest)                                             \
    WIDEST static void name(char **args, const npy_intp *sizes, const npy_intp *steps,             \
                            void *nothing) {                                                       \
        const npy_intp n = sizes[0], p = steps[0], q = steps[1], r = steps[2], one = sizeof(real); \
        if (n < 1)                                                                                 \
            return;                                                                                \
        if (args[0] == args[2] && p == 0 && r == 0)                                                \
            extreme((void *)args[2], args[1], q, n, greatest);                                     \
        else if ((args[0] != args[2] || p != r) && !disjoint(args[0], p, args[2], r, n, one))      \
            for (npy_intp i = 0; i < n; i++)                                                       \
                *(real *)(args[2] + i * r) =                                                       \
                    pick(*(const real *)(args[0] + i * p), *(const real *)(args[1] + i * q));      \
        else if (p == one && q == 0 && r == one) {                                                 \
            const real *x = (const real *)args[0], y = *(const real *)args[1];                     \
            real *out = (real *)args[2];                                                           \
            _Pragma("GCC ivdep") for (npy_intp i = 0; i < n; i++) out[i] = pick(x[i], y);          \
        } else if (p == 0 && q == one && r == one) {                                               \
            const real x = *(const real *)args[0], *y = (const real *)args[1];                     \
            real *out = (real *)args[2];                                                           \
            _Pragma("GCC ivdep") for (npy_intp i = 0; i < n; i++) out[i] = pick(x, y[i]);          \
        } else                                                                                     \
            for (npy_intp start = 0; start < n; start += TILE) {                                   \
                const npy_intp m = n - start < TILE ? n - start : TILE;                            \
                const char *x = args[0] + start * p, *y = args[1] + start * q;                     \
                char *to = args[2] + start * r;                                                    \
                real a[TILE], b[TILE];                                                             \
                if (p == 2 * one) /* every other one, which is a shuffle of vectors */             \
                    for (npy_intp i = 0; i < m; i++)                                               \
                        a[i] = ((const real *)x)[2 * i];                                           \
                else if (p != one)                                                                 \
                    for (npy_intp i = 0; i < m; i++)                                               \
                        a[i] = *(const real *)(x + i * p);                                         \
                for (npy_intp i = 0; q != one && i < m; i++)                                       \
                    b[i] = *(const real *)(y + i * q);                                             \
                const real *first = p == one ? (const real *)x : a;                                \
                const real *second = q == one ? (const real *)y : b;                               \
                real *out = r == one ? (real *)to : a;                                             \
                _Pragma("GCC ivdep") for (npy_intp i = 0; i < m; i++) out[i] =                     \
                    pick(first[i], second[i]);                                                     \
                for (npy_intp i = 0; r != one && i < m; i++)                                       \
                    *(real *)(to + i * r) = a[i];                                                  \
            }                                                                                      \
        take_back_flag();                                                                          \
    }

PICK_ROWS(maximum_32, float, greater_32, extreme_32, 1)
PICK_ROWS(minimum_32, float, lesser_32, extreme_32, 0)
PICK_ROWS(maximum_64, double, greater_64, extreme_64, 1)
PICK_ROWS(minimum_64, double, lesser_64, extreme_64, 0)

/* Complex numbers by their real, then by their imaginary parts, as NumPy orders them one by one. */
#define PICK_PAIRS(name, real, beyond, beyond_or_equal)                                            \
    static inline __attribute__((always_inline)) int is_##name(real a, real b, real c, real d) {   \
        const int known = (b == b) & (d == d), odd = (a != a) | (b != b);                          \
        return odd | (beyond(a, c) & known) | ((a == c) & beyond_or_equal(b, d));                  \
    }                                                                                              \
    static void fold_##name(real *out, const char *at, npy_intp step, npy_intp n) {                \
        real a = out[0], b = out[1];                                                               \
        for (npy_intp i = 0; i < n; i++) {                                                         \
            const real *x = (const real *)(at + i * step);                                         \
            if (__builtin_expect(!is_##name(a, b, x[0], x[1]), 0)) {                               \
                a = x[0];                                                                          \
                b = x[1];                                                                          \
            }                                                                                      \
        }                                                                                          \
        out[0] = a;                                                                                \
        out[1] = b;                                                                                \
    }                                                                                              \
    WIDEST static void name(char **args, const npy_intp *sizes, const npy_intp *steps,             \
                            void *nothing) {                                                       \
        const npy_intp p = steps[0], q = steps[1], r = steps[2], one = 2 * sizeof(real);           \
        const int apart = (args[0] == args[2] && p == r && r) ||                                   \
                          disjoint(args[0], p, args[2], r, sizes[0], one);                         \
        if (args[0] == args[2] && p == 0 && r == 0) {                                              \
            fold_##name((real *)args[2], args[1], q, sizes[0]);                                    \
            take_back_flag();                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (npy_intp start = 0; start < sizes[0]; start += apart ? TILE : 1) {                    \
            const npy_intp left = sizes[0] - start, most = apart ? TILE : 1;                       \
            const npy_intp n = left < most ? left : most;                                          \
            const real *x = (const real *)(args[0] + start * p);                                   \
            const real *y = (const real *)(args[1] + start * q);                                   \
            real *out = (real *)(args[2] + start * r), rooms[3][2 * TILE];                         \
            for (npy_intp i = 0; p != one && i < n; i++)                                           \
                for (int k = 0; k < 2; k++)                                                        \
                    rooms[0][2 * i + k] = ((const real *)((const char *)x + i * p))[k];            \
            for (npy_intp i = 0; q != one && i < n; i++)                                           \
                for (int k = 0; k < 2; k++)                                                        \
                    rooms[1][2 * i + k] = ((const real *)((const char *)y + i * q))[k];            \
            x = p == one ? x : rooms[0];                                                           \
            y = q == one ? y : rooms[1];                                                           \
            real *to = r == one ? out : rooms[2];                                                  \
            _Pragma("GCC ivdep") for (npy_intp i = 0; i < n; i++) {                                \
                const real a = x[2 * i], b = x[2 * i + 1], c = y[2 * i], d = y[2 * i + 1];         \
                const int first = is_##name(a, b, c, d);                                           \
                to[2 * i] = first ? a : c;                                                         \
                to[2 * i + 1] = first ? b : d;                                                     \
            }                                                                                      \
            for (npy_intp i = 0; r != one && i < n; i++)                                           \
                for (int k = 0; k < 2; k++)                                                        \
                    ((real *)((char *)out + i * r))[k] = to[2 * i + k];                            \
        }                                                                                          \
        take_back_flag();                                                                          \
    }

PICK_PAIRS(maximum_c32, float, isgreater, isgreaterequal)
PICK_PAIRS(minimum_c32, float, isless, islessequal)
PICK_PAIRS(maximum_c64, double, isgreater, isgreaterequal)
PICK_PAIRS(minimum_c64, double, isless, islessequal)

/* clamp(low, x, high): min(max(x, low), high) */
#define CLAMP_ROWS(name, real, maximum, minimum)                                                   \
    static void name(char **args, const npy_intp *sizes, const npy_intp *steps, void *nothing) {   \
        const npy_intp first[] = {steps[1], steps[0], sizeof(real)};                               \
        const npy_intp second[] = {sizeof(real), steps[2], steps[3]};                              \
        for (npy_intp start = 0; start < sizes[0]; start += TILE) {                                \
            const npy_intp m = sizes[0] - start < TILE ? sizes[0] - start : TILE;                  \
            real t[TILE];                                                                          \
            char *low = args[0] + start * steps[0], *x = args[1] + start * steps[1];               \
            char *high = args[2] + start * steps[2], *out = args[3] + start * steps[3];            \
            maximum((char *[]){x, low, (char *)t}, &m, first, NULL);                               \
            minimum((char *[]){(char *)t, high, out}, &m, second, NULL);                           \
        }                                                                                          \
    }

CLAMP_ROWS(clamp_32, float, maximum_32, minimum_32)
CLAMP_ROWS(clamp_64, double, maximum_64, minimum_64)
CLAMP_ROWS(clamp_c32, float _Complex, maximum_c32, minimum_c32)
CLAMP_ROWS(clamp_c64, double _Complex, maximum_c64, minimum_c64)

/* As the language has them: the other one where one is NaN, and of two zeros the second. */
#define SKIP(name, fold, real, beyond)                                                             \
    static inline __attribute__((always_inline)) real name(real x, real y) {                       \
        return (beyond(x, y) || y != y) ? x : y;                                                   \
    }                                                                                              \
    static void fold(real *out, const char *at, npy_intp step, npy_intp n, int greatest) {         \
        for (npy_intp i = 0; i < n; i++)                                                           \
            *out = name(*out, *(const real *)(at + i * step));                                     \
    }

SKIP(above_32, fold_above_32, float, isgreater)
SKIP(below_32, fold_below_32, float, isless)
SKIP(above_64, fold_above_64, double, isgreater)
SKIP(below_64, fold_below_64, double, isless)
PICK_ROWS(fmax_32, float, above_32, fold_above_32, 1)
PICK_ROWS(fmin_32, float, below_32, fold_below_32, 0)
PICK_ROWS(fmax_64, double, above_64, fold_above_64, 1)
PICK_ROWS(fmin_64, double, below_64, fold_below_64, 0)

/* -1 or 1, and zeros and NaN as they are; NumPy's has no vector code and makes -0 of the one 0. */
#define SIGN_ROWS(name, real)                                                                      \
    static inline __attribute__((always_inline)) real one_##name(real x) {                         \
        const real one = isgreater(x, 0) ? 1 : x;                                                  \
        return isless(x, 0) ? -1 : one;                                                            \
    }                                                                                              \
    WIDEST static void name(char **args, const npy_intp *sizes, const npy_intp *steps,             \
                            void *nothing) {                                                       \
        const npy_intp n = sizes[0], p = steps[0], q = steps[1];                                   \
        if (p == sizeof(real) && q == sizeof(real)) {                                              \
            const real *x = (const real *)args[0];                                                 \
            real *out = (real *)args[1];                                                           \
            _Pragma("GCC ivdep") for (npy_intp i = 0; i < n; i++) out[i] = one_##name(x[i]);       \
        } else                                                                                     \
            for (npy_intp start = 0; start < n; start += TILE) {                                   \
                const npy_intp m = n - start < TILE ? n - start : TILE;                            \
                const char *x = args[0] + start * p;                                               \
                char *to = args[1] + start * q;                                                    \
                real a[TILE];                                                                      \
                for (npy_intp i = 0; i < m; i++)                                                   \
                    a[i] = *(const real *)(x + i * p);                                             \
                for (npy_intp i = 0; i < m; i++)                                                   \
                    a[i] = one_##name(a[i]);                                                       \
                for (npy_intp i = 0; i < m; i++)                                                   \
                    *(real *)(to + i * q) = a[i];                                                  \
            }                                                                                      \
        take_back_flag();                                                                          \
    }

SIGN_ROWS(sign_32, float)
SIGN_ROWS(sign_64, double)

static PyUFuncGenericFunction sign_loops[] = {sign_32, sign_64};
static PyUFuncGenericFunction fmax_loops[] = {fmax_32, fmax_64};
static PyUFuncGenericFunction fmin_loops[] = {fmin_32, fmin_64};
static PyUFuncGenericFunction nextafter_loops[] = {nextafter_32, nextafter_64};
static PyUFuncGenericFunction maximum_loops[] = {maximum_32, maximum_64, maximum_c32, maximum_c64};
static PyUFuncGenericFunction minimum_loops[] = {minimum_32, minimum_64, minimum_c32, minimum_c64};
static PyUFuncGenericFunction clamp_loops[] = {clamp_32, clamp_64, clamp_c32, clamp_c64};
static void *no_data[] = {NULL, NULL, NULL, NULL};
#define THREE(type) type, type, type
#define FOUR(type) type, type, type, type
static const char types_of_one[] = {NPY_FLOAT, NPY_FLOAT, NPY_DOUBLE, NPY_DOUBLE};
static const char types_of_two[] = {THREE(NPY_FLOAT), THREE(NPY_DOUBLE), THREE(NPY_CFLOAT),
                                    THREE(NPY_CDOUBLE)};
static const char types_of_three[] = {FOUR(NPY_FLOAT), FOUR(NPY_DOUBLE), FOUR(NPY_CFLOAT),
                                      FOUR(NPY_CDOUBLE)};
#undef THREE
#undef FOUR

static int add_ufuncs(PyObject *module) {
    struct {
        const char *name;
        PyUFuncGenericFunction *loops;
        const char *types;
        int number, operands, identity;
    } made[] = {
        {"maximum", maximum_loops, types_of_two, 4, 2, PyUFunc_ReorderableNone},
        {"minimum", minimum_loops, types_of_two, 4, 2, PyUFunc_ReorderableNone},
        {"fmax", fmax_loops, types_of_two, 2, 2, PyUFunc_None},
        {"fmin", fmin_loops, types_of_two, 2, 2, PyUFunc_None},
        {"nextafter", nextafter_loops, types_of_two, 2, 2, PyUFunc_None},
        {"clamp", clamp_loops, types_of_three, 4, 3, PyUFunc_None},
        {"sign", sign_loops, types_of_one, 2, 1, PyUFunc_None},
    };
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        PyObject *ufunc = PyUFunc_FromFuncAndData(
            made[i].loops, no_data, made[i].types, made[i].number, made[i].operands, 1,
            made[i].identity, made[i].name, "Of floats of four and eight bytes.", 0);
        if (ufunc == NULL || PyModule_AddObjectRef(module, made[i].name, ufunc) < 0) {
            Py_XDECREF(ufunc);
            return -1;
        }
        Py_DECREF(ufunc);
    }
    return 0;
}
