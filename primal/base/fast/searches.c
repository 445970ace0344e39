/* Places of many numbers in one row that ascends.

   NumPy looks for one after the other, and guesses each turn wrong half the time: 100,000 among as
   many take 12 ms. Here those of a group go on together, without jumps. */

enum { GROUP = 32 };

#define PLACES(name, real, before)                                                                 \
    WIDEST static void name(const real *row, int n, const real *x, npy_intp many, npy_intp *out) { \
        for (npy_intp start = 0; start < many; start += GROUP) {                                   \
            const int some = many - start < GROUP ? (int)(many - start) : GROUP;                   \
            real of[GROUP];                                                                        \
            int at[GROUP] = {0};                                                                   \
            for (int k = 0; k < GROUP; k++)                                                        \
                of[k] = x[start + (k < some ? k : 0)];                                             \
            for (int left = n; left; left -= left > 1 ? left / 2 : 1) {                            \
                const int half = left > 1 ? left / 2 : 1;                                          \
                for (int k = 0; k < GROUP; k++)                                                    \
                    at[k] += half & -(int)!(row[at[k] + half - 1] before of[k]);                   \
            }                                                                                      \
            for (int k = 0; k < some; k++)                                                         \
                out[start + k] = at[k];                                                            \
        }                                                                                          \
    }

#define BOTH_SIDES(code, real) PLACES(left_##code, real, >=) PLACES(right_##code, real, >)
BOTH_SIDES(f4, float)
BOTH_SIDES(f8, double)
BOTH_SIDES(i4, int32_t)
BOTH_SIDES(i8, int64_t)

/* places(row, x, right): where the numbers x would go in a row that ascends, before their equals or
   behind them; None for other dtypes, rows with nan, and what does not lie in order. */
static PyObject *places(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    if (count != 3 || !PyArray_Check(given[0]) || !PyArray_Check(given[1])) {
        PyErr_SetString(PyExc_TypeError, "expected two arrays and a side");
        return NULL;
    }
    PyArrayObject *row = (PyArrayObject *)given[0], *x = (PyArrayObject *)given[1];
    const int type = PyArray_TYPE(row), right = PyObject_IsTrue(given[2]);
    if (right < 0)
        return NULL;
    const npy_intp n = PyArray_SIZE(row);
    if (PyArray_NDIM(row) != 1 || type != PyArray_TYPE(x) || n > INT_MAX ||
        !PyArray_ISCARRAY_RO(row) || !PyArray_ISCARRAY_RO(x))
        Py_RETURN_NONE;
    void (*find)(const void *, int, const void *, npy_intp, npy_intp *) = NULL;
#define OF_TYPE(type, code)                                                                        \
    case type:                                                                                     \
        find = (void (*)(const void *, int, const void *, npy_intp, npy_intp *))(                  \
            right ? (void (*)(void))right_##code : (void (*)(void))left_##code);                   \
        break;
    switch (type) {
        OF_TYPE(NPY_FLOAT, f4)
        OF_TYPE(NPY_DOUBLE, f8)
        OF_TYPE(NPY_INT32, i4)
        OF_TYPE(NPY_INT64, i8)
    }
    const void *first = PyArray_DATA(row), *last = n ? PyArray_GETPTR1(row, n - 1) : NULL;
    if (find == NULL || (n && ((type == NPY_FLOAT && isnan(*(const float *)last)) ||
                               (type == NPY_DOUBLE && isnan(*(const double *)last)))))
        Py_RETURN_NONE;
    PyObject *out =
        fresh_array(PyArray_DescrFromType(NPY_INTP), PyArray_NDIM(x), PyArray_DIMS(x));
    if (out == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    find(first, (int)n, PyArray_DATA(x), PyArray_SIZE(x), PyArray_DATA((PyArrayObject *)out));
    Py_END_ALLOW_THREADS
    return out;
}
