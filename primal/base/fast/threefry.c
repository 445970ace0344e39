/* The hash of random numbers. */

#define ROUND(r) a += b; b = (b << r | b >> (32 - r)) ^ a;
#define FOUR(r, s, t, u, p, q, i) ROUND(r) ROUND(s) ROUND(t) ROUND(u) a += p; b += q + i;

typedef struct {
    const uint32_t *k, *l;
    uint32_t *x, *y;
    npy_intp keys, n, words; /* how many words are counted, or 0 */
} Hashed;

static inline __attribute__((always_inline)) void encrypt(const uint32_t *k, const uint32_t *l,
                                                          npy_intp key_step, uint32_t *x,
                                                          uint32_t *y, npy_intp n, int counted,
                                                          uint32_t low, uint32_t high) {
    _Pragma("GCC ivdep") for (npy_intp at = 0; at < n; at++) {
        uint32_t p = k[at * key_step], q = l[at * key_step], o = p ^ q ^ 0x1BD11BDAu;
        uint32_t a = (counted ? low + (uint32_t)at : x[at]) + p;
        uint32_t b = (counted ? high + (uint32_t)at : y[at]) + q;
        FOUR(13, 15, 26, 6, q, o, 1)
        FOUR(17, 29, 16, 24, o, p, 2)
        FOUR(13, 15, 26, 6, p, q, 3)
        FOUR(17, 29, 16, 24, q, o, 4)
        FOUR(13, 15, 26, 6, o, p, 5)
        x[at] = a;
        y[at] = b;
    }
}

/* A step that is known makes a vector loop. */
WIDEST static void encrypt_some(void *what, npy_intp unit) {
    const Hashed *h = what;
    const npy_intp at = unit * OF_A_UNIT, left = h->n - at, n = left < OF_A_UNIT ? left : OF_A_UNIT;
    if (h->words) {
        encrypt(h->k, h->l, 0, h->x + at, h->y + at, n, 1, (uint32_t)at, (uint32_t)(h->n + at));
        if (h->words % 2 && at + n == h->n) /* the last one's second counter is 0 */
            encrypt(h->k, h->l, 0, h->x + h->n - 1, h->y + h->n - 1, 1, 1, (uint32_t)h->n - 1, 0);
    } else if (h->keys == 1)
        encrypt(h->k, h->l, 0, h->x + at, h->y + at, n, 0, 0, 0);
    else
        encrypt(h->k + at, h->l + at, 1, h->x + at, h->y + at, n, 0, 0, 0);
}

/* threefry(k1, k2, x, y): hash pairs of uint32 in place, all under one key or each under its own.
   Arrays lie one by one in memory; those of keys have one element or as many as x. With a number of
   words the buffers become the hashes of 0, ..., words - 1, half of them beside the others. */
static PyObject *threefry(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < 4; i++)
        if (n < 4 || n > 5 || !PyArray_Check(given[i]) ||
            PyArray_TYPE((PyArrayObject *)given[i]) != NPY_UINT32 ||
            !(i < 2 ? PyArray_ISCARRAY_RO((PyArrayObject *)given[i])
                    : PyArray_ISCARRAY((PyArrayObject *)given[i]))) {
            PyErr_SetString(PyExc_TypeError, "expected two keys and two buffers of uint32");
            return NULL;
        }
    PyArrayObject *k = (PyArrayObject *)given[0], *l = (PyArrayObject *)given[1];
    PyArrayObject *x = (PyArrayObject *)given[2], *y = (PyArrayObject *)given[3];
    npy_intp size = PyArray_SIZE(x), keys = PyArray_SIZE(k);
    const npy_intp words = n == 5 ? PyLong_AsSsize_t(given[4]) : 0;
    if (words == -1 && PyErr_Occurred())
        return NULL;
    if (n == 5 && (words < 1 || keys != 1 || size != words / 2 + words % 2)) {
        PyErr_SetString(PyExc_ValueError, "expected one key and room for as many words");
        return NULL;
    }
    if (PyArray_SIZE(y) != size || PyArray_SIZE(l) != keys || (keys != 1 && keys != size)) {
        PyErr_SetString(PyExc_ValueError, "expected as many pairs as keys, or one key");
        return NULL;
    }
    Hashed h = {.k = PyArray_DATA(k), .l = PyArray_DATA(l), .x = PyArray_DATA(x),
                .y = PyArray_DATA(y), .keys = keys, .n = size, .words = words};
    Py_BEGIN_ALLOW_THREADS
    do_units(encrypt_some, &h, (size + OF_A_UNIT - 1) / OF_A_UNIT, size * COST);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}
