/* Programs that run without Python, on the memory of arrays. */

typedef struct {
    int nd;
    npy_intp dims[NPY_MAXDIMS];
    PyArray_Descr *descr;
} Type;

enum { IN, OUT, ARENA, NEW, CONST, DONATED, OWN };

typedef struct {
    int kind;
    int n;
    PyObject *value; /* of a constant */
    int nd;
    npy_intp *dims;
} Place;

typedef struct Running {
    char *context;
    struct Running *next;
} Running;

typedef struct {
    PyObject_HEAD
    Running *running;  /* runs in progress */
    int32_t (*run)(void **, int64_t, int64_t, void *, int64_t, void *);
    void *table;
    int64_t words;
    PyObject *keep;
    PyObject *cancelled; /* the error class of a run that was told to stop */
    Py_ssize_t n_slots, n_in, n_new, n_out;
    Place *slots;      /* IN n, OUT n, ARENA, CONST, OWN: set by the program */
    Place *ins;        /* IN: the n-th leaf, CONST */
    Place *outs;       /* NEW n, IN n, CONST, DONATED n, with their shapes */
    Type *in_types;    /* what `ins` must be */
    Type *news;
    char *written;     /* per input: whether its memory is written */
    Py_ssize_t arena;
    void *spare;       /* an arena that nobody uses */
    PyObject *lent;    /* the array in which the first one lies, from runs in Python; or NULL */
    char *context;
    Py_ssize_t context_size;
} Native;

static void *arena_new(Py_ssize_t size) {
    void *made = NULL;
    return posix_memalign(&made, size < POOLED ? LINE : PAGE, size + LINE) ? NULL : made;
}

static void arena_free(Native *self, void *arena) {
    if (arena != NULL && self->lent != NULL && PyArray_DATA((PyArrayObject *)self->lent) == arena)
        Py_CLEAR(self->lent);
    else
        free(arena);
}

static void places_free(Place *places, Py_ssize_t n) {
    if (places == NULL)
        return;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_XDECREF(places[i].value);
        PyMem_Free(places[i].dims);
    }
    PyMem_Free(places);
}

static void types_free(Type *types, Py_ssize_t n) {
    if (types == NULL)
        return;
    for (Py_ssize_t i = 0; i < n; i++)
        Py_XDECREF(types[i].descr);
    PyMem_Free(types);
}

static void native_dealloc(Native *self) {
    Py_CLEAR(self->keep);
    Py_CLEAR(self->cancelled);
    places_free(self->slots, self->n_slots);
    places_free(self->ins, self->n_in);
    places_free(self->outs, self->n_out);
    types_free(self->in_types, self->n_in);
    types_free(self->news, self->n_new);
    PyMem_Free(self->written);
    PyMem_Free(self->context);
    arena_free(self, self->spare);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* [(shape, dtype)] */
static Type *read_types(PyObject *list, Py_ssize_t *n) {
    *n = 0;
    Py_ssize_t count = PyList_Size(list);
    if (count < 0)
        return NULL;
    Type *types = PyMem_Calloc(count ? count : 1, sizeof(Type));
    if (types == NULL)
        return (Type *)PyErr_NoMemory();
    *n = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *shape, *dtype;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "OO!", &shape, &PyArrayDescr_Type, &dtype) ||
            read_shape(shape, &types[i].nd, types[i].dims) < 0)
            return types; /* with an error set; freed by the owner */
        types[i].descr = (PyArray_Descr *)Py_NewRef(dtype);
    }
    return types;
}

/* [(kind, number or array[, shape])] */
static Place *read_places(PyObject *list, Py_ssize_t *n) {
    *n = 0;
    Py_ssize_t count = PyList_Size(list);
    if (count < 0)
        return NULL;
    Place *places = PyMem_Calloc(count ? count : 1, sizeof(Place));
    if (places == NULL)
        return (Place *)PyErr_NoMemory();
    *n = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        const char *kind;
        PyObject *value, *shape = NULL;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "sO|O", &kind, &value, &shape))
            return places;
        static const char *names[] = {"in",    "out",     "arena", "new",
                                      "const", "donated", "own"};
        int found = -1;
        for (int k = IN; k <= OWN; k++)
            if (strcmp(kind, names[k]) == 0)
                found = k;
        if (found < 0) {
            PyErr_Format(PyExc_ValueError, "unknown kind of place %s", kind);
            return places;
        }
        places[i].kind = found;
        if (found == CONST) {
            if (!PyArray_CheckExact(value) || !PyArray_ISCARRAY_RO((PyArrayObject *)value)) {
                PyErr_SetString(PyExc_TypeError, "expected a row-major NumPy array as constant");
                return places;
            }
            places[i].value = Py_NewRef(value);
        } else {
            places[i].n = (int)PyLong_AsLong(value);
            if (PyErr_Occurred())
                return places;
        }
        if (shape != NULL) {
            npy_intp dims[NPY_MAXDIMS];
            if (read_shape(shape, &places[i].nd, dims) < 0)
                return places;
            places[i].dims = PyMem_Malloc((places[i].nd + 1) * sizeof(npy_intp));
            if (places[i].dims == NULL) {
                PyErr_NoMemory();
                return places;
            }
            memcpy(places[i].dims, dims, places[i].nd * sizeof(npy_intp));
        }
    }
    return places;
}

static int check_numbers(Place *places, Py_ssize_t n, int kind, Py_ssize_t below) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (places[i].kind == kind && (places[i].n < 0 || places[i].n >= below)) {
            PyErr_Format(PyExc_ValueError, "expected a number below %zd, got %d", below,
                         places[i].n);
            return -1;
        }
    return 0;
}

static PyObject *native_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"run", "table", "words", "keep", "slots", "ins", "in_types", "news",
                            "outs", "arena", "context", "cancelled", "lent", NULL};
    Py_ssize_t run, table, words, arena;
    PyObject *keep, *slots, *ins, *in_types, *news, *outs, *context, *cancelled, *lent = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nnnOO!O!O!O!O!nSO|O:Native", names, &run, &table,
                                     &words, &keep, &PyList_Type, &slots, &PyList_Type, &ins,
                                     &PyList_Type, &in_types, &PyList_Type, &news, &PyList_Type,
                                     &outs, &arena, &context,
                                     &cancelled, &lent))
        return NULL;
    if (lent != Py_None && (!PyArray_CheckExact(lent) ||
                            PyArray_NBYTES((PyArrayObject *)lent) < arena ||
                            (uintptr_t)PyArray_DATA((PyArrayObject *)lent) % LINE)) {
        PyErr_SetString(PyExc_ValueError, "expected an arena that is big enough, at a line");
        return NULL;
    }
    Native *self = (Native *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->run = (void *)run;
    self->table = (void *)table;
    self->words = words;
    self->keep = Py_NewRef(keep);
    self->cancelled = Py_NewRef(cancelled);
    self->arena = arena;
    if (lent != Py_None && arena) {
        self->lent = Py_NewRef(lent);
        self->spare = PyArray_DATA((PyArrayObject *)lent);
    }
    Py_ssize_t n_types = 0;
    if ((self->slots = read_places(slots, &self->n_slots)) == NULL || PyErr_Occurred() ||
        (self->outs = read_places(outs, &self->n_out)) == NULL || PyErr_Occurred() ||
        (self->news = read_types(news, &self->n_new)) == NULL || PyErr_Occurred() ||
        (self->ins = read_places(ins, &self->n_in)) == NULL || PyErr_Occurred())
        goto failed;
    self->in_types = read_types(in_types, &n_types);
    if (self->in_types == NULL || n_types != self->n_in) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "expected one type per input");
        types_free(self->in_types, n_types);
        self->in_types = NULL;
        goto failed;
    }
    if (PyErr_Occurred() || check_numbers(self->slots, self->n_slots, IN, self->n_in) < 0 ||
        check_numbers(self->slots, self->n_slots, OUT, self->n_new) < 0 ||
        check_numbers(self->outs, self->n_out, NEW, self->n_new) < 0 ||
        check_numbers(self->outs, self->n_out, IN, self->n_in) < 0 ||
        check_numbers(self->outs, self->n_out, DONATED, self->n_in) < 0)
        goto failed;
    for (Py_ssize_t i = 0; i < self->n_out; i++)
        if (self->outs[i].dims == NULL && self->outs[i].kind != CONST) {
            PyErr_SetString(PyExc_ValueError, "expected the shape of every output");
            goto failed;
        }
    self->context_size = PyBytes_GET_SIZE(context);
    self->context = PyMem_Malloc(self->context_size + 8);
    self->written = PyMem_Calloc(self->n_in + 1, 1);
    if (self->context == NULL || self->written == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    memcpy(self->context, PyBytes_AS_STRING(context), self->context_size);
    for (Py_ssize_t i = 0; i < self->n_out; i++)
        if (self->outs[i].kind == DONATED)
            self->written[self->outs[i].n] = 1;
    return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

/* cancel(status): the runs in progress find the status at their next step, and stop. */
static PyObject *native_cancel(Native *self, PyObject *status) {
    long value = PyLong_AsLong(status);
    if (value == -1 && PyErr_Occurred())
        return NULL;
    for (Running *run = self->running; run != NULL; run = run->next)
        *(volatile int32_t *)run->context = (int32_t)value;
    Py_RETURN_NONE;
}

static PyMethodDef native_methods[] = {
    {"cancel", (PyCFunction)native_cancel, METH_O, "Stop the runs in progress with a status."},
    {NULL},
};

static PyTypeObject Native_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "primal.base._fast.Native",
    .tp_basicsize = sizeof(Native),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = native_new,
    .tp_dealloc = (destructor)native_dealloc,
    .tp_methods = native_methods,
    .tp_doc = "A compiled program that runs on the memory of arrays.",
};

/* Whether an array is of a type; its dtype may be another object of the same meaning. */
static inline int is_of(PyArrayObject *x, const Type *type) {
    if (PyArray_NDIM(x) != type->nd)
        return 0;
    npy_intp *dims = PyArray_DIMS(x);
    for (int i = 0; i < type->nd; i++)
        if (dims[i] != type->dims[i])
            return 0;
    return PyArray_DESCR(x) == type->descr || PyArray_EquivTypes(PyArray_DESCR(x), type->descr);
}

/* A Python scalar as an array without dimensions, or NULL (without an error: not representable). */
static PyObject *scalar_array(PyObject *x, const Type *type) {
    union { npy_bool b; int32_t i; int64_t l; float f; double d; float c[2]; double z[2]; } word;
    if (type->nd)
        return NULL;
    PyTypeObject *kind = Py_TYPE(x);
    int number = type->descr->type_num;
    if (kind == &PyFloat_Type) {
        double value = PyFloat_AS_DOUBLE(x);
        if (number == NPY_FLOAT)
            word.f = (float)value;
        else if (number == NPY_DOUBLE)
            word.d = value;
        else
            return NULL;
    } else if (kind == &PyBool_Type) {
        if (number != NPY_BOOL)
            return NULL;
        word.b = x == Py_True;
    } else if (kind == &PyLong_Type) {
        int overflow;
        long long value = PyLong_AsLongLongAndOverflow(x, &overflow);
        if (overflow)
            return NULL;
        if (PyArray_EquivTypenums(number, NPY_INT32)) {
            if (value < INT32_MIN || value > INT32_MAX)
                return NULL;
            word.i = (int32_t)value;
        } else if (PyArray_EquivTypenums(number, NPY_INT64))
            word.l = value;
        else
            return NULL;
    } else if (kind == &PyComplex_Type) {
        Py_complex value = PyComplex_AsCComplex(x);
        if (number == NPY_CFLOAT) {
            word.c[0] = (float)value.real;
            word.c[1] = (float)value.imag;
        } else if (number == NPY_CDOUBLE) {
            word.z[0] = value.real;
            word.z[1] = value.imag;
        } else
            return NULL;
    } else
        return NULL;
    Py_INCREF(type->descr);
    PyObject *made =
        PyArray_NewFromDescr(&PyArray_Type, type->descr, 0, NULL, NULL, NULL, 0, NULL);
    if (made == NULL) {
        PyErr_Clear();
        return NULL;
    }
    memcpy(PyArray_DATA((PyArrayObject *)made), &word, PyArray_ITEMSIZE((PyArrayObject *)made));
    return made;
}

/* Replace an array by a row-major copy. */
static int own_copy(PyObject **place) {
    PyObject *copy = PyArray_NewCopy((PyArrayObject *)*place, NPY_CORDER);
    if (copy == NULL)
        return -1;
    Py_SETREF(*place, copy);
    return 0;
}

#define FEW 16

/* Run on the leaves of a call: new references to results in `outs` (arrays of NumPy).
   1: done; 0: not for this path, and no error; -1: error. */
static int native_run(Native *self, PyObject **leaves, PyObject **outs) {
    PyObject *few_ins[FEW], *few_news[FEW], **ins = few_ins, **news = few_news;
    void *few_slots[2 * FEW], **slots = few_slots;
    _Alignas(16) char few_context[256];
    char *context = few_context;
    void *arena = NULL, *heap = NULL;
    Py_ssize_t n_ins = 0, n_news = 0, n_outs = 0;
    int done = 0;

    if (self->n_in > FEW || self->n_new > FEW || self->n_slots > 2 * FEW ||
        self->context_size > (Py_ssize_t)sizeof few_context) {
        size_t pointers = self->n_in + self->n_new + self->n_slots + 1;
        heap = PyMem_Malloc(pointers * sizeof(void *) + self->context_size);
        if (heap == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        ins = heap;
        news = ins + self->n_in;
        slots = (void **)(news + self->n_new);
        context = (char *)(slots + self->n_slots + 1);
    }
    for (; n_ins < self->n_in; n_ins++) {
        Place *place = &self->ins[n_ins];
        PyObject *x = place->kind == CONST ? place->value : leaves[place->n];
        PyObject *host;
        if (Py_TYPE(x) == Array_type) {
            host = SLOT(x, host_at);
            if (host == NULL || host == Py_None) {
                host = SLOT(x, buffer_at); /* deleted, or a buffer of another engine */
                goto ended;
            }
            Py_INCREF(host);
        } else if (PyArray_CheckExact(x) && is_of((PyArrayObject *)x, &self->in_types[n_ins]))
            host = Py_NewRef(x);
        else if (PyArray_CheckExact(x) || PyArray_IsScalar(x, Generic)) {
            PyArray_Descr *descr = self->in_types[n_ins].descr;
            Py_INCREF(descr);
            host = PyArray_FromAny(x, descr, 0, 0, NPY_ARRAY_CARRAY | NPY_ARRAY_FORCECAST, NULL);
            if (host == NULL) {
                done = -1;
                goto ended;
            }
        } else {
            host = scalar_array(x, &self->in_types[n_ins]);
            if (host == NULL)
                goto ended;
        }
        if (!PyArray_CheckExact(host) || !is_of((PyArrayObject *)host, &self->in_types[n_ins])) {
            Py_DECREF(host);
            goto ended;
        }
        int copy = !PyArray_ISCARRAY_RO((PyArrayObject *)host);
        ins[n_ins] = host;
        if (copy && own_copy(&ins[n_ins]) < 0) {
            n_ins++;
            done = -1;
            goto ended;
        }
        /* Kept: a broadcast array, jnp.ones say, would be written out by every call. */
        if (copy && Py_TYPE(x) == Array_type && !self->written[n_ins])
            Py_SETREF(SLOT(x, host_at), Py_NewRef(ins[n_ins]));
    }
    for (Py_ssize_t i = 0; i < n_ins; i++)
        if (self->written[i]) {
            /* Written in place only if nobody else can see the memory: it is referred to by the
               array that is donated and by `ins`, once each. */
            PyObject *x = self->ins[i].kind == IN ? leaves[self->ins[i].n] : Py_None;
            int lent = Py_TYPE(x) == Array_type && SLOT(x, host_at) == ins[i];
            int alone = Py_REFCNT(ins[i]) == (lent ? 2 : 1) &&
                        PyArray_CHKFLAGS((PyArrayObject *)ins[i],
                                         NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE);
            if (!alone && own_copy(&ins[i]) < 0) {
                done = -1;
                goto ended;
            }
        }
    for (; n_news < self->n_new; n_news++) {
        Type *type = &self->news[n_news];
        Py_INCREF(type->descr);
        news[n_news] = fresh_array(type->descr, type->nd, type->dims);
        if (news[n_news] == NULL) {
            done = -1;
            goto ended;
        }
    }
    if (self->arena) {
        arena = self->spare;
        self->spare = NULL;
        if (arena == NULL && (arena = arena_new(self->arena)) == NULL) {
            PyErr_NoMemory();
            done = -1;
            goto ended;
        }
    }
    for (Py_ssize_t i = 0; i < self->n_slots; i++) {
        Place *place = &self->slots[i];
        switch (place->kind) {
        case IN: slots[i] = PyArray_DATA((PyArrayObject *)ins[place->n]); break;
        case OUT: slots[i] = PyArray_DATA((PyArrayObject *)news[place->n]); break;
        case CONST: slots[i] = PyArray_DATA((PyArrayObject *)place->value); break;
        case ARENA: slots[i] = arena; break;
        default: slots[i] = NULL;
        }
    }
    memcpy(context, self->context, self->context_size);
    if (self->words) {
        Running running = {context, self->running};
        self->running = &running;
        /* A program that may run long gives up the GIL and looks for signals by itself. */
        int32_t status = self->run(slots, 0, 0, self->table, self->words, context);
        Running **link = &self->running;
        while (*link != &running)
            link = &(*link)->next;
        *link = running.next;
        if (status) {
            if (!PyErr_Occurred())
                PyErr_SetString(self->cancelled, "[cpu] the program was cancelled while it ran.");
            done = -1;
            goto ended;
        }
    }
    for (; n_outs < self->n_out; n_outs++) {
        Place *place = &self->outs[n_outs];
        PyObject *x;
        if (place->kind == CONST)
            x = Py_NewRef(place->value);
        else if (place->kind == NEW)
            x = Py_NewRef(news[place->n]);
        else {
            x = ins[place->n];
            Place *from = &self->ins[place->n];
            /* Memory of the caller's own NumPy array must not become an array's. */
            if (place->kind == IN && from->kind == IN && PyArray_CheckExact(leaves[from->n]))
                x = PyArray_NewCopy((PyArrayObject *)x, NPY_CORDER);
            else
                Py_INCREF(x);
        }
        if (x != NULL && place->dims != NULL) {
            int same = PyArray_NDIM((PyArrayObject *)x) == place->nd;
            for (int k = 0; same && k < place->nd; k++)
                same = PyArray_DIM((PyArrayObject *)x, k) == place->dims[k];
            if (!same) {
                PyArray_Dims wanted = {place->dims, place->nd};
                PyObject *view = PyArray_Newshape((PyArrayObject *)x, &wanted, NPY_CORDER);
                Py_DECREF(x);
                x = view;
            }
        }
        if (x == NULL) {
            done = -1;
            goto ended;
        }
        outs[n_outs] = x;
    }
    done = 1;
ended:
    if (done != 1)
        while (n_outs)
            Py_DECREF(outs[--n_outs]);
    if (arena != NULL) {
        if (self->spare == NULL)
            self->spare = arena;
        else
            arena_free(self, arena);
    }
    while (n_news)
        Py_DECREF(news[--n_news]);
    while (n_ins)
        Py_DECREF(ins[--n_ins]);
    PyMem_Free(heap);
    return done;
}
