/* Ufuncs of operands with sizes of 1 where others have more. NumPy's iterator calls a ufunc's loop
   row by row, and each call takes it 5 to 200 ns: 333,333 x 3 float32 minus a row take 1,900 us.
   Here rows that are short are put into blocks, of which the loop, NumPy's own, sees one piece:
   narrow operands are repeated in memory that stays in the cache (100 us). */

#define SPREAD_BLOCK 2048 /* elements of a block */
#define SPREAD_ROW 256    /* from which on a row is a piece of its own */
#define SPREAD_DIMS 8
/* Bytes of a repeated operand, which is written in whole vectors. */
#define SPREAD_FILLED (SPREAD_BLOCK * 16 + 64)

/* Each of `n` elements `times` times. Two to four are known to the compiler, which shuffles vectors;
   of more, vectors are written whole, and what lies beyond is written again by the next element. */
#define REPEAT(name, type)                                                                         \
    WIDEST static void name(type *restrict out, const type *restrict x, npy_intp n,                \
                            npy_intp times) {                                                      \
        enum { lanes = sizeof(type) < 64 ? 64 / sizeof(type) : 1 };                                \
        if (times == 2)                                                                            \
            for (npy_intp i = 0; i < n; i++)                                                       \
                out[2 * i] = out[2 * i + 1] = x[i];                                                \
        else if (times == 3)                                                                       \
            for (npy_intp i = 0; i < n; i++)                                                       \
                out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = x[i];                               \
        else if (times == 4)                                                                       \
            for (npy_intp i = 0; i < n; i++)                                                       \
                out[4 * i] = out[4 * i + 1] = out[4 * i + 2] = out[4 * i + 3] = x[i];              \
        else                                                                                       \
            for (npy_intp i = 0; i < n; i++, out += times) {                                       \
                const type only = x[i];                                                            \
                for (npy_intp j = 0; j < times; j += lanes)                                        \
                    for (int q = 0; q < lanes; q++)                                                \
                        out[j + q] = only;                                                         \
            }                                                                                      \
    }
typedef struct { uint64_t parts[2]; } Sixteen;
REPEAT(repeat_8, uint8_t)
REPEAT(repeat_16, uint16_t)
REPEAT(repeat_32, uint32_t)
REPEAT(repeat_64, uint64_t)
REPEAT(repeat_128, Sixteen)

static void repeat_each(char *out, const char *x, npy_intp n, npy_intp times, npy_intp item) {
    switch (item) {
    case 1: repeat_8((uint8_t *)out, (const uint8_t *)x, n, times); break;
    case 2: repeat_16((uint16_t *)out, (const uint16_t *)x, n, times); break;
    case 4: repeat_32((uint32_t *)out, (const uint32_t *)x, n, times); break;
    case 8: repeat_64((uint64_t *)out, (const uint64_t *)x, n, times); break;
    default: repeat_128((Sixteen *)out, (const Sixteen *)x, n, times);
    }
}

typedef struct {
    const char *data;
    npy_intp item, step[SPREAD_DIMS]; /* bytes; 0 where it has a size of 1 */
    char *filled;
} Narrow;

typedef struct {
    PyUFuncGenericFunction loop;
    void *data;
    int nin, nd;
    npy_intp size[SPREAD_DIMS], item; /* of the result */
    char *out;
    Narrow x[3];
} Spreading;

/* The last two dimensions, from the operands' places `at` on. */
static void spread_plane(const Spreading *s, const char *const *at, char *out) {
    const npy_intp n = s->size[s->nd - 2], m = s->size[s->nd - 1];
    const npy_intp rows = m < SPREAD_ROW ? Py_MIN(n, SPREAD_BLOCK / m) : 1;
    const npy_intp wide = m < SPREAD_ROW ? m : SPREAD_BLOCK;
    char *args[4];
    npy_intp steps[4];
    for (int i = 0; i < s->nin; i++) {
        const Narrow *x = &s->x[i];
        const npy_intp down = x->step[s->nd - 2], along = x->step[s->nd - 1];
        steps[i] = down || along ? x->item : 0;
        if (rows == 1 && !along && s->nin == 2)
            steps[i] = 0; /* of two operands loops take a number in vectors */
        else if (rows > 1 && along && !down)
            for (npy_intp r = 0; r < rows; r++)
                memcpy(x->filled + r * m * x->item, at[i], m * x->item);
    }
    steps[s->nin] = s->item;
    for (npy_intp r = 0; r < n; r += rows) {
        const npy_intp now = Py_MIN(rows, n - r);
        for (npy_intp c = 0; c < m; c += wide) {
            const npy_intp width = Py_MIN(wide, m - c);
            for (int i = 0; i < s->nin; i++) {
                const Narrow *x = &s->x[i];
                const npy_intp down = x->step[s->nd - 2], along = x->step[s->nd - 1];
                const char *here = at[i] + r * down + c * along;
                if (steps[i] && !along) {
                    repeat_each(x->filled, here, now, width, x->item);
                    here = x->filled;
                } else if (steps[i] && !down && rows > 1)
                    here = x->filled;
                args[i] = (char *)here;
            }
            args[s->nin] = out + (r * m + c) * s->item;
            const npy_intp count = now * width;
            s->loop(args, &count, steps, s->data);
        }
    }
}

static void spread_planes(const Spreading *s) {
    npy_intp planes = 1, place[SPREAD_DIMS] = {0};
    for (int d = 0; d < s->nd - 2; d++)
        planes *= s->size[d];
    const npy_intp bytes = s->size[s->nd - 2] * s->size[s->nd - 1] * s->item;
    const char *at[3];
    for (int i = 0; i < s->nin; i++)
        at[i] = s->x[i].data;
    for (npy_intp p = 0; p < planes; p++) {
        spread_plane(s, at, s->out + p * bytes);
        for (int d = s->nd - 3; d >= 0; d--) {
            const int over = ++place[d] == s->size[d];
            for (int i = 0; i < s->nin; i++)
                at[i] += s->x[i].step[d] * (over ? 1 - s->size[d] : 1);
            if (!over)
                break;
            place[d] = 0;
        }
    }
}

/* The loop for operands of these types; a ufunc of another kind has none here. */
static int find_loop(PyUFuncObject *ufunc, PyObject *const *xs, int nin, Spreading *s) {
    for (int i = 0; i < ufunc->ntypes; i++) {
        const char *types = ufunc->types + i * (nin + 1);
        int same = ufunc->functions[i] != NULL;
        for (int k = 0; k < nin; k++)
            same &= types[k] == PyArray_TYPE((PyArrayObject *)xs[k]);
        if (same) {
            s->loop = ufunc->functions[i];
            s->data = ufunc->data == NULL ? NULL : ufunc->data[i];
            return types[nin];
        }
    }
    return -1;
}

/* Whether numbers lie in rows (1), in columns (2) or either way (3). */
static int order_of_numbers(PyObject *given) {
    if (!PyArray_CheckExact(given))
        return 0;
    PyArrayObject *x = (PyArrayObject *)given;
    const int type = PyArray_TYPE(x);
    if (!(PyTypeNum_ISNUMBER(type) || type == NPY_BOOL) || PyArray_ITEMSIZE(x) > 16 ||
        !PyArray_ISALIGNED(x) || PyArray_ISBYTESWAPPED(x) || PyArray_NDIM(x) > SPREAD_DIMS)
        return 0;
    return (PyArray_IS_C_CONTIGUOUS(x) ? 1 : 0) | (PyArray_IS_F_CONTIGUOUS(x) ? 2 : 0);
}

/* Sizes and steps from the outermost dimension on, neighbours that all operands go through alike as
   one dimension. Whether there are two dimensions and more, and planes that are worth it. */
static int go_through(Spreading *s, PyObject *const *xs, int nd, const npy_intp *dims, int turned) {
    npy_intp steps[3][SPREAD_DIMS];
    for (int i = 0; i < s->nin; i++) {
        PyArrayObject *x = (PyArrayObject *)xs[i];
        const int missing = nd - PyArray_NDIM(x);
        npy_intp whole = s->x[i].item;
        for (int k = nd - 1; k >= 0; k--) {
            const int d = (turned ? nd - 1 - k : k) - missing;
            const npy_intp size = d < 0 ? 1 : PyArray_DIM(x, d);
            steps[i][k] = size == 1 ? 0 : whole;
            whole *= size;
        }
    }
    for (int k = 0; k < nd; k++) {
        const npy_intp size = dims[turned ? nd - 1 - k : k];
        if (size == 1)
            continue;
        int alike = s->nd > 0;
        for (int i = 0; alike && i < s->nin; i++)
            alike = (steps[i][k] == 0) == (s->x[i].step[s->nd - 1] == 0);
        if (!alike)
            s->size[s->nd++] = 1;
        s->size[s->nd - 1] *= size;
        for (int i = 0; i < s->nin; i++)
            s->x[i].step[s->nd - 1] = steps[i][k];
    }
    return s->nd >= 2 && s->size[s->nd - 2] * s->size[s->nd - 1] >= SPREAD_ROW;
}

/* The shape that all broadcast to; 0 where they do not, or nothing is in it. */
static int common_dims(PyObject *const *xs, int n, int *nd, npy_intp *dims) {
    *nd = 0;
    for (int i = 0; i < n; i++)
        *nd = Py_MAX(*nd, PyArray_NDIM((PyArrayObject *)xs[i]));
    for (int d = 0; d < *nd; d++) {
        dims[d] = 1;
        for (int i = 0; i < n; i++) {
            const int own = d - *nd + PyArray_NDIM((PyArrayObject *)xs[i]);
            const npy_intp size = own < 0 ? 1 : PyArray_DIM((PyArrayObject *)xs[i], own);
            if (size == 0 || (size > 1 && dims[d] > 1 && size != dims[d]))
                return 0;
            if (size > 1)
                dims[d] = size;
        }
    }
    return 1;
}

static PyObject *place_of(PyObject *given, int type, int nd, npy_intp *dims, int turned) {
    if (given != NULL && given != Py_None) {
        PyArrayObject *x = (PyArrayObject *)given;
        const int fits = (order_of_numbers(given) & (turned ? 2 : 1)) && PyArray_TYPE(x) == type &&
                         PyArray_ISWRITEABLE(x) && PyArray_NDIM(x) == nd &&
                         PyArray_CompareLists(PyArray_DIMS(x), dims, nd);
        return fits ? Py_NewRef(given) : NULL;
    }
    npy_intp sizes[SPREAD_DIMS];
    for (int d = 0; d < nd; d++)
        sizes[d] = dims[turned ? nd - 1 - d : d];
    PyObject *out = fresh_array(PyArray_DescrFromType(type), nd, sizes);
    if (turned && out != NULL)
        Py_SETREF(out, PyArray_Transpose((PyArrayObject *)out, NULL));
    return out;
}

/* Whether the result's memory is apart from an operand's, or that operand's, element by element. */
static int may_write(const Spreading *s, const char *x, npy_intp bytes, npy_intp written) {
    return x + bytes <= s->out || s->out + written <= x || (x == s->out && bytes == written);
}

/* broadcast(ufunc, *operands, out=None): what the ufunc gives. */
static PyObject *broadcast(PyObject *self, PyObject *const *args, Py_ssize_t given, PyObject *names) {
    if (given < 1 || Py_TYPE(args[0]) != &PyUFunc_Type) {
        PyErr_SetString(PyExc_TypeError, "expected a ufunc and its operands");
        return NULL;
    }
    PyUFuncObject *ufunc = (PyUFuncObject *)args[0];
    PyObject *const *xs = args + 1, *out = NULL;
    const int nin = (int)given - 1, named = names == NULL ? 0 : (int)PyTuple_GET_SIZE(names);
    Spreading s = {.nin = nin};
    npy_intp dims[SPREAD_DIMS];
    int nd, order = 3;
    if ((nin == 2 || nin == 3) && ufunc->nin == nin && ufunc->nout == 1 && !ufunc->core_enabled &&
        (!named ||
         (named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out") == 0)))
        for (int i = 0; i < nin; i++)
            order &= order_of_numbers(xs[i]);
    else
        order = 0;
    if (order && common_dims(xs, nin, &nd, dims)) {
        const int turned = order == 2, type = find_loop(ufunc, xs, nin, &s);
        for (int i = 0; i < nin; i++) {
            s.x[i].item = PyArray_ITEMSIZE((PyArrayObject *)xs[i]);
            s.x[i].data = PyArray_BYTES((PyArrayObject *)xs[i]);
        }
        if (type >= 0 && type < NPY_OBJECT && go_through(&s, xs, nd, dims, turned)) {
            out = place_of(named ? args[given] : NULL, type, nd, dims, turned);
            if (out == NULL && PyErr_Occurred())
                return NULL;
        }
    }
    if (out != NULL) {
        s.out = PyArray_BYTES((PyArrayObject *)out);
        s.item = PyArray_ITEMSIZE((PyArrayObject *)out);
        for (int i = 0; i < nin && out != NULL; i++)
            if (!may_write(&s, s.x[i].data, PyArray_NBYTES((PyArrayObject *)xs[i]),
                           PyArray_NBYTES((PyArrayObject *)out)))
                Py_CLEAR(out);
    }
    if (out == NULL)
        return PyObject_Vectorcall(args[0], xs, (size_t)nin, names);
    char *filled = PyMem_Malloc((size_t)nin * SPREAD_FILLED);
    if (filled == NULL) {
        Py_DECREF(out);
        return PyErr_NoMemory();
    }
    for (int i = 0; i < nin; i++)
        s.x[i].filled = filled + i * SPREAD_FILLED;
    Py_BEGIN_ALLOW_THREADS
    spread_planes(&s);
    Py_END_ALLOW_THREADS
    PyMem_Free(filled);
    if (PyErr_Occurred()) /* a loop says so itself: integers to negative powers */
        Py_CLEAR(out);
    return out;
}
