/* Products of matrices in pieces of rows or columns, of which helpers take their part.

   A piece is one call of an OpenBLAS that has one thread: threads of its own wait for each other in
   every call, a time slice of 4 ms and more where other work has the CPUs. The pieces are the
   problem's, so that threads change no bit. */

typedef void Gemm(const char *, const char *, const int *, const int *, const int *, const void *,
                  const void *, const int *, const void *, const int *, const void *, void *,
                  const int *);

/* A piece has NARROW rows or columns at least, as it reads the whole other matrix (256 x 256 x 256 in
   pieces of 32 take a fifth longer), and terms of so many bytes that to take it is nothing. */
enum { NARROW = 48, MOST_PIECES = 8, PIECE_WORK = 1 << 21 };

typedef struct {
    Gemm *gemm;
    char *at[3];                       /* x, y and their product */
    npy_intp step[3], next[3];         /* bytes to the next matrix; to the next row or column */
    npy_intp stack, matrices;          /* in all, of a unit */
    npy_intp cut, each, pieces;        /* rows or columns of a matrix, of a piece; its pieces */
    int by_columns;
    int sizes[3], leads[3];            /* rows, terms, columns; numbers to the next row or column */
    char turned[2];
    const void *one, *zero;
} Product;

static void multiply_piece(void *what, npy_intp unit) {
    const Product *p = what;
    const npy_intp first = unit % p->pieces * p->each, start = unit / p->pieces * p->matrices;
    const npy_intp end = p->stack - start < p->matrices ? p->stack : start + p->matrices;
    int sizes[2] = {p->sizes[0], p->sizes[2]};
    sizes[p->by_columns] = (int)(p->cut - first < p->each ? p->cut - first : p->each);
    for (npy_intp i = start; i < end; i++) {
        char *at[3];
        for (int k = 0; k < 3; k++)
            at[k] = p->at[k] + i * p->step[k] + first * p->next[k];
        /* By columns, in which Fortran has matrices, each of them is its transpose. */
        p->gemm(p->turned + 1, p->turned, sizes + 1, sizes, p->sizes + 1, p->one, at[1],
                p->leads + 1, at[0], p->leads, p->zero, at[2], p->leads + 2);
    }
}

/* Whether BLAS can read matrices: rows ("N") or columns ("T") of numbers beside each other. */
static int is_for_blas(PyArrayObject *x, char *turned, int *lead) {
    const npy_intp size = PyArray_ITEMSIZE(x), *dims = PyArray_DIMS(x) + PyArray_NDIM(x) - 2;
    const npy_intp *steps = PyArray_STRIDES(x) + PyArray_NDIM(x) - 2;
    for (int i = 0; i < 2; i++)
        if (steps[!i] == size && steps[i] % size == 0 && steps[i] >= dims[!i] * size &&
            steps[i] / size <= INT_MAX) {
            *turned = "NT"[i];
            *lead = (int)(steps[i] / size);
            return PyArray_ISBEHAVED_RO(x);
        }
    return 0;
}

/* Whether matrices lie at equal distances. */
static int is_one_stack(PyArrayObject *x) {
    for (int i = 0; i + 3 < PyArray_NDIM(x); i++)
        if (PyArray_STRIDE(x, i) != PyArray_STRIDE(x, i + 1) * PyArray_DIM(x, i + 1))
            return 0;
    return 1;
}

/* multiply(gemm, x, y): x @ y of matrices of floats or stacks of as many, by the routine of BLAS for
   their dtype, which is at that address; None where it cannot read them as they lie. */
static PyObject *multiply(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    static const float single[][2] = {{0, 0}, {1, 0}};
    static const double wide[][2] = {{0, 0}, {1, 0}};
    if (count != 3 || !PyArray_Check(given[1]) || !PyArray_Check(given[2])) {
        PyErr_SetString(PyExc_TypeError, "expected an address and two arrays");
        return NULL;
    }
    PyArrayObject *x = (PyArrayObject *)given[1], *y = (PyArrayObject *)given[2];
    Product p = {.gemm = (Gemm *)PyLong_AsVoidPtr(given[0])};
    const int nd = PyArray_NDIM(x), type = PyArray_TYPE(x);
    if (p.gemm == NULL || nd < 2 || nd != PyArray_NDIM(y) || type != PyArray_TYPE(y) ||
        !is_for_blas(x, p.turned, p.leads) || !is_for_blas(y, p.turned + 1, p.leads + 1) ||
        !is_one_stack(x) || !is_one_stack(y))
        goto no;
    npy_intp dims[NPY_MAXDIMS];
    memcpy(dims, PyArray_DIMS(x), nd * sizeof *dims);
    dims[nd - 1] = PyArray_DIM(y, nd - 1);
    p.stack = PyArray_MultiplyList(dims, nd - 2);
    const npy_intp rows = dims[nd - 2], terms = PyArray_DIM(x, nd - 1), columns = dims[nd - 1];
    if (!PyArray_CompareLists(dims, PyArray_DIMS(y), nd - 2) || terms != PyArray_DIM(y, nd - 2) ||
        rows < 2 || columns < 2 || terms < 1 || rows > INT_MAX || terms > INT_MAX ||
        columns > INT_MAX)
        goto no;
    /* Of a matrix and its transpose NumPy forms half. */
    if (PyArray_DATA(x) == PyArray_DATA(y) && p.turned[0] != p.turned[1] && p.leads[0] == p.leads[1])
        goto no;
    PyArrayObject *out = (PyArrayObject *)fresh_array(PyArray_DescrFromType(type), nd, dims);
    if (out == NULL)
        return NULL;
    PyArrayObject *all[] = {x, y, out};
    p.by_columns = columns > rows;
    for (int k = 0; k < 3; k++) {
        p.at[k] = PyArray_BYTES(all[k]);
        p.step[k] = nd > 2 ? PyArray_STRIDE(all[k], nd - 3) : 0;
        p.next[k] = k == !p.by_columns ? 0 : PyArray_STRIDE(all[k], nd - 2 + p.by_columns);
    }
    p.sizes[0] = (int)rows;
    p.sizes[1] = (int)terms;
    p.sizes[2] = p.leads[2] = (int)columns;
    const int is_single = type == NPY_FLOAT || type == NPY_CFLOAT;
    p.one = is_single ? (const void *)single[1] : wide[1];
    p.zero = is_single ? (const void *)single[0] : wide[0];
    p.cut = p.by_columns ? columns : rows;
    const double work = (double)rows * columns * terms * PyArray_ITEMSIZE(x) / PIECE_WORK;
    const npy_intp most = p.cut / NARROW < MOST_PIECES ? p.cut / NARROW : MOST_PIECES;
    const npy_intp pieces = work < 1 || most < 1 ? 1 : work < most ? (npy_intp)work : most;
    p.each = (p.cut + pieces - 1) / pieces;
    p.pieces = (p.cut + p.each - 1) / p.each;
    p.matrices = work < 1 ? (npy_intp)(1 / work) : 1;
    Py_BEGIN_ALLOW_THREADS
    do_units(multiply_piece, &p, (p.stack + p.matrices - 1) / p.matrices * p.pieces, WORTH);
    Py_END_ALLOW_THREADS
    return (PyObject *)out;
no:
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}
