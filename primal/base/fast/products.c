/* Products of matrices in pieces of rows or columns, of which helpers take their part.

   A piece is one call of an OpenBLAS that has one thread: threads of its own wait for each other in
   every call, a time slice of 4 ms and more where other work has the CPUs. The pieces are the
   problem's, so that threads change no bit. */

typedef void Gemm(const char *, const char *, const int *, const int *, const int *, const void *,
                  const void *, const int *, const void *, const int *, const void *, void *,
                  const int *);
typedef void Gemv(const char *, const int *, const int *, const void *, const void *, const int *,
                  const void *, const int *, const void *, void *, const int *);

/* A piece has NARROW rows or columns at least, as it reads the whole other matrix (256 x 256 x 256 in
   pieces of 32 take a fifth longer), and terms of so many bytes that to take it is nothing; beside a
   vector, whose terms are read once, of fewer bytes, and a sum is of LONG_PIECE terms. */
enum { NARROW = 48, MOST_PIECES = 8, PIECE_WORK = 1 << 21, VECTOR_WORK = 1 << 19,
       LONG_PIECE = 1 << 16 };

typedef struct {
    union {
        Gemm *gemm;
        Gemv *gemv;
    };
    char *at[3];                       /* x, y and their product */
    npy_intp step[3], next[3];         /* bytes to the next matrix; to the next row or column */
    npy_intp stack, matrices;          /* in all, of a unit */
    npy_intp cut, each, pieces;        /* rows or columns of a matrix, of a piece; its pieces */
    int by_columns, is_half;           /* half: of rows, what lies up to their diagonal */
    int sizes[3], leads[3];            /* rows, terms, columns; numbers to the next row or column */
    char turned[2];
    const void *one, *zero;
    int item;
} Product;

static void multiply_piece(void *what, npy_intp unit) {
    const Product *p = what;
    const npy_intp first = unit % p->pieces * p->each, start = unit / p->pieces * p->matrices;
    const npy_intp end = p->stack - start < p->matrices ? p->stack : start + p->matrices;
    int sizes[2] = {p->sizes[0], p->sizes[2]};
    sizes[p->by_columns] = (int)(p->cut - first < p->each ? p->cut - first : p->each);
    if (p->is_half)
        sizes[1] = (int)first + sizes[0];
    for (npy_intp i = start; i < end; i++) {
        char *at[3];
        for (int k = 0; k < 3; k++)
            at[k] = p->at[k] + i * p->step[k] + first * p->next[k];
        /* By columns, in which Fortran has matrices, each of them is its transpose. */
        p->gemm(p->turned + 1, p->turned, sizes + 1, sizes, p->sizes + 1, p->one, at[1],
                p->leads + 1, at[0], p->leads, p->zero, at[2], p->leads + 2);
    }
}

/* A matrix of BLAS, at[0], times vectors, at[1]: `cut` of its rows, or of its columns where it is
   turned, or of the terms of one sum. */
static void multiply_vectors(void *what, npy_intp unit) {
    const Product *p = what;
    const npy_intp first = unit % p->pieces * p->each, start = unit / p->pieces * p->matrices;
    const npy_intp end = p->stack - start < p->matrices ? p->stack : start + p->matrices;
    const int some = (int)(p->cut - first < p->each ? p->cut - first : p->each), one = 1;
    const int *rows = p->turned[0] == 'T' ? p->sizes + 1 : &some;
    const int *columns = p->turned[0] == 'T' ? &some : p->sizes + 1;
    for (npy_intp i = start; i < end; i++) {
        char *at[3];
        for (int k = 0; k < 3; k++)
            at[k] = p->at[k] + i * p->step[k] + first * p->next[k];
        p->gemv(p->turned, rows, columns, p->one, at[0], p->leads, at[1], p->leads + 1, p->zero,
                at[2], &one);
    }
}

/* Terms of one sum: at[2] has place for as many partial sums. */
static void multiply_terms(void *what, npy_intp unit) {
    const Product *p = what;
    const npy_intp first = unit * p->each;
    const int some = (int)(p->cut - first < p->each ? p->cut - first : p->each), one = 1;
    p->gemv("T", &some, &one, p->one, p->at[0] + first * p->item, &some, p->at[1] + first * p->item,
            &one, p->zero, p->at[2] + unit * p->item, &one);
}

#define MIRROR(type)                                                                               \
    for (npy_intp j = first; j < n; j += BLOCK)                                                    \
        for (npy_intp r = first; r < end; r++)                                                     \
            for (npy_intp c = j > r ? j : r + 1; c < j + BLOCK && c < n; c++)                      \
                ((type *)out)[r * n + c] = ((const type *)out)[c * n + r];

/* What lies beyond the diagonal of rows, from what lies before it. */
static void mirror_piece(void *what, npy_intp unit) {
    enum { BLOCK = 16 };
    const Product *p = what;
    const npy_intp n = p->cut, start = unit / p->pieces * p->matrices;
    const npy_intp last = p->stack - start < p->matrices ? p->stack : start + p->matrices;
    for (npy_intp i = start; i < last; i++) {
        char *out = p->at[2] + i * p->step[2];
        const npy_intp from = unit % p->pieces * p->each, to = n - from < p->each ? n : from + p->each;
        for (npy_intp first = from; first < to; first += BLOCK) {
            const npy_intp end = first + BLOCK < to ? first + BLOCK : to;
            if (p->item == 4) {
                MIRROR(uint32_t)
            } else if (p->item == 8) {
                MIRROR(uint64_t)
            } else {
                MIRROR(npy_cdouble)
            }
        }
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

/* Whether BLAS can read vectors whose numbers lie so many bytes apart. */
static int is_vector(PyArrayObject *x, int axis, int *lead) {
    const npy_intp step = PyArray_STRIDE(x, axis), size = PyArray_ITEMSIZE(x);
    if (step < size || step % size || step / size > INT_MAX || !PyArray_ISBEHAVED_RO(x))
        return 0;
    *lead = (int)(step / size);
    return 1;
}

static void cut_into_pieces(Product *p, npy_intp cut, double work) {
    const npy_intp most = cut / NARROW < MOST_PIECES ? cut / NARROW : MOST_PIECES;
    const npy_intp pieces = work < 1 || most < 1 ? 1 : work < most ? (npy_intp)work : most;
    p->cut = cut;
    p->each = (cut + pieces - 1) / pieces;
    p->pieces = (cut + p->each - 1) / p->each;
    p->matrices = work < 1 ? (npy_intp)(1 / work) : 1;
}

static void do_pieces(Work *work, Product *p, double bytes) {
    const npy_intp units = (p->stack + p->matrices - 1) / p->matrices * p->pieces;
    do_units(work, p, units, (size_t)bytes);
}

/* x @ y where one of them, y if `is_last`, is a vector; 0 where BLAS cannot read them. */
static int by_vectors(Product *p, PyArrayObject *x, PyArrayObject *y, PyArrayObject *out,
                      int is_last) {
    PyArrayObject *matrix = is_last ? x : y, *vector = is_last ? y : x;
    const int nd = PyArray_NDIM(x), along = nd - 1 - is_last; /* terms of the vector */
    if (!is_vector(vector, along, p->leads + 1) || !is_for_blas(matrix, p->turned, p->leads))
        return 0;
    /* Rows of numbers beside each other are columns to BLAS: sums, if the vector comes last. */
    p->turned[0] = (p->turned[0] == 'N') == is_last ? 'T' : 'N';
    PyArrayObject *all[] = {matrix, vector, out};
    for (int k = 0; k < 3; k++) {
        p->at[k] = PyArray_BYTES(all[k]);
        p->step[k] = nd > 2 ? PyArray_STRIDE(all[k], nd - 3) : 0;
        p->next[k] = k == 0 ? PyArray_STRIDE(matrix, along) : k == 1 ? 0 : p->item;
    }
    const npy_intp cut = PyArray_DIM(matrix, along);
    const double bytes = (double)cut * p->sizes[1] * p->item;
    cut_into_pieces(p, cut, bytes / VECTOR_WORK);
    Py_BEGIN_ALLOW_THREADS
    do_pieces(multiply_vectors, p, bytes * p->stack);
    Py_END_ALLOW_THREADS
    return 1;
}

/* One sum of many terms. Partial sums of float32 are added in double precision. */
static int by_terms(Product *p, PyArrayObject *x, PyArrayObject *y, PyArrayObject *out) {
    const int type = PyArray_TYPE(x);
    if (!PyArray_ISBEHAVED_RO(x) || !PyArray_ISBEHAVED_RO(y))
        return 0;
    const npy_intp pieces = (p->sizes[1] + LONG_PIECE - 1) / LONG_PIECE;
    PyArrayObject *all[] = {PyArray_GETCONTIGUOUS(x), PyArray_GETCONTIGUOUS(y)};
    char *parts = PyMem_Malloc(pieces * p->item);
    const int ready = all[0] != NULL && all[1] != NULL && parts != NULL;
    if (ready) {
        p->at[0] = PyArray_BYTES(all[0]);
        p->at[1] = PyArray_BYTES(all[1]);
        p->at[2] = parts;
        p->cut = p->sizes[1];
        p->each = LONG_PIECE;
        Py_BEGIN_ALLOW_THREADS
        do_units(multiply_terms, p, pieces, 2 * (size_t)p->cut * p->item);
        Py_END_ALLOW_THREADS
    } else
        PyErr_NoMemory();
    Py_XDECREF(all[0]);
    Py_XDECREF(all[1]);
    if (!ready) {
        PyMem_Free(parts);
        return -1;
    }
    const int is_complex = type == NPY_CFLOAT || type == NPY_CDOUBLE;
    for (int part = 0; part <= is_complex; part++) {
        const int width = 1 + is_complex;
        double sum = 0;
        if (p->item / width == 4) {
            for (npy_intp i = 0; i < pieces; i++)
                sum += ((float *)parts)[width * i + part];
            ((float *)PyArray_DATA(out))[part] = (float)sum;
        } else {
            for (npy_intp i = 0; i < pieces; i++)
                sum += ((double *)parts)[width * i + part];
            ((double *)PyArray_DATA(out))[part] = sum;
        }
    }
    PyMem_Free(parts);
    return 1;
}

/* x @ y of matrices; 0 where BLAS cannot read them as they lie. */
static int by_matrices(Product *p, PyArrayObject *x, PyArrayObject *y, PyArrayObject *out) {
    PyArrayObject *all[] = {x, y, out};
    const int nd = PyArray_NDIM(x);
    if (!is_for_blas(x, p->turned, p->leads) || !is_for_blas(y, p->turned + 1, p->leads + 1))
        return 0;
    p->by_columns = p->sizes[2] > p->sizes[0];
    for (int k = 0; k < 3; k++) {
        p->at[k] = PyArray_BYTES(all[k]);
        p->step[k] = nd > 2 ? PyArray_STRIDE(all[k], nd - 3) : 0;
        p->next[k] = k == !p->by_columns ? 0 : PyArray_STRIDE(all[k], nd - 2 + p->by_columns);
    }
    p->leads[2] = p->sizes[2];
    /* A matrix times its own transpose. */
    p->is_half = p->at[0] == p->at[1] && p->turned[0] != p->turned[1] && p->step[0] == p->step[1] &&
                 p->leads[0] == p->leads[1] && p->sizes[0] == p->sizes[2];
    const double bytes = (double)p->sizes[0] * p->sizes[1] * p->sizes[2] * p->item;
    cut_into_pieces(p, p->sizes[!p->by_columns ? 0 : 2], bytes / (PIECE_WORK >> p->is_half));
    Py_BEGIN_ALLOW_THREADS
    do_pieces(multiply_piece, p, WORTH);
    if (p->is_half)
        do_pieces(mirror_piece, p, (double)PyArray_NBYTES(out));
    Py_END_ALLOW_THREADS
    return 1;
}

/* multiply((gemm, gemv), x, y): x @ y of matrices of floats or stacks of as many, by the routines of
   BLAS for their dtype, which are at those addresses; None where they cannot read them as they lie. */
static PyObject *multiply(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    static const float single[][2] = {{0, 0}, {1, 0}};
    static const double wide[][2] = {{0, 0}, {1, 0}};
    if (count != 3 || !PyTuple_Check(given[0]) || PyTuple_GET_SIZE(given[0]) != 2 ||
        !PyArray_Check(given[1]) || !PyArray_Check(given[2])) {
        PyErr_SetString(PyExc_TypeError, "expected two addresses and two arrays");
        return NULL;
    }
    void *gemm = PyLong_AsVoidPtr(PyTuple_GET_ITEM(given[0], 0));
    void *gemv = PyErr_Occurred() ? NULL : PyLong_AsVoidPtr(PyTuple_GET_ITEM(given[0], 1));
    if (PyErr_Occurred())
        return NULL;
    PyArrayObject *x = (PyArrayObject *)given[1], *y = (PyArrayObject *)given[2];
    const int nd = PyArray_NDIM(x), type = PyArray_TYPE(x);
    if (gemm == NULL || gemv == NULL || nd < 2 || nd != PyArray_NDIM(y) ||
        type != PyArray_TYPE(y) || !is_one_stack(x) || !is_one_stack(y))
        Py_RETURN_NONE;
    npy_intp dims[NPY_MAXDIMS];
    memcpy(dims, PyArray_DIMS(x), nd * sizeof *dims);
    dims[nd - 1] = PyArray_DIM(y, nd - 1);
    const npy_intp rows = dims[nd - 2], terms = PyArray_DIM(x, nd - 1), columns = dims[nd - 1];
    if (!PyArray_CompareLists(dims, PyArray_DIMS(y), nd - 2) || terms != PyArray_DIM(y, nd - 2) ||
        rows < 1 || columns < 1 || terms < 1 || rows > INT_MAX || terms > INT_MAX ||
        columns > INT_MAX)
        Py_RETURN_NONE;
    const int is_single = type == NPY_FLOAT || type == NPY_CFLOAT, vectors = (rows == 1) + (columns == 1);
    Product p = {
        .stack = PyArray_MultiplyList(dims, nd - 2),
        .sizes = {(int)rows, (int)terms, (int)columns},
        .one = is_single ? (const void *)single[1] : wide[1],
        .zero = is_single ? (const void *)single[0] : wide[0],
        .item = (int)PyArray_ITEMSIZE(x),
    };
    if (vectors == 2 && nd > 2)
        Py_RETURN_NONE;
    PyArrayObject *out = (PyArrayObject *)fresh_array(PyArray_DescrFromType(type), nd, dims);
    if (out == NULL)
        return NULL;
    int done;
    if (vectors) {
        p.gemv = (Gemv *)gemv;
        done = vectors == 2 ? by_terms(&p, x, y, out) : by_vectors(&p, x, y, out, columns == 1);
    } else {
        p.gemm = (Gemm *)gemm;
        done = by_matrices(&p, x, y, out);
    }
    if (done > 0)
        return (PyObject *)out;
    Py_DECREF(out);
    return done < 0 ? NULL : Py_NewRef(Py_None);
}
