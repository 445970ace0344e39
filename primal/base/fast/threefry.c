/* The hash of random numbers. */

#define ROUND(r) a += b; b = (b << r | b >> (32 - r)) ^ a;
#define FOUR(r, s, t, u, p, q, i) ROUND(r) ROUND(s) ROUND(t) ROUND(u) a += p; b += q + i;

static inline void encrypt(const uint32_t *k, const uint32_t *l, npy_intp key_step, uint32_t *x,
                           uint32_t *y, npy_intp n) {
    for (npy_intp at = 0; at < n; at++) {
        uint32_t p = k[at * key_step], q = l[at * key_step], o = p ^ q ^ 0x1BD11BDAu;
        uint32_t a = x[at] + p, b = y[at] + q;
        FOUR(13, 15, 26, 6, q, o, 1)
        FOUR(17, 29, 16, 24, o, p, 2)
        FOUR(13, 15, 26, 6, p, q, 3)
        FOUR(17, 29, 16, 24, q, o, 4)
        FOUR(13, 15, 26, 6, o, p, 5)
        x[at] = a;
        y[at] = b;
    }
}

/* threefry(k1, k2, x, y): hash pairs of uint32 in place, all under one key or each under its own.
   Arrays lie one by one in memory; those of keys have one element or as many as x. */
static PyObject *threefry(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < 4; i++)
        if (n != 4 || !PyArray_Check(given[i]) ||
            PyArray_TYPE((PyArrayObject *)given[i]) != NPY_UINT32 ||
            !(i < 2 ? PyArray_ISCARRAY_RO((PyArrayObject *)given[i])
                    : PyArray_ISCARRAY((PyArrayObject *)given[i]))) {
            PyErr_SetString(PyExc_TypeError, "expected two keys and two buffers of uint32");
            return NULL;
        }
    PyArrayObject *k = (PyArrayObject *)given[0], *l = (PyArrayObject *)given[1];
    PyArrayObject *x = (PyArrayObject *)given[2], *y = (PyArrayObject *)given[3];
    npy_intp size = PyArray_SIZE(x), keys = PyArray_SIZE(k);
    if (PyArray_SIZE(y) != size || PyArray_SIZE(l) != keys || (keys != 1 && keys != size)) {
        PyErr_SetString(PyExc_ValueError, "expected as many pairs as keys, or one key");
        return NULL;
    }
    uint32_t *hashed = PyArray_DATA(x), *too = PyArray_DATA(y);
    const uint32_t *first = PyArray_DATA(k), *second = PyArray_DATA(l);
    Py_BEGIN_ALLOW_THREADS
    if (keys == 1) /* a step that is known makes a vector loop */
        encrypt(first, second, 0, hashed, too, size);
    else
        encrypt(first, second, 1, hashed, too, size);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}
