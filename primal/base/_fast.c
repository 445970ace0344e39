/* The hot paths in C: ambient state, calls of jitted functions, eager operations.

   Everything here exists in Python as well and means the same there; what this file does not know
   it hands to that Python. It knows no layer of the package: classes and functions are handed over
   by `install`. Objects of Python classes are read through the offsets of their slots, so that an
   array is the same class with and without the extension. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>
#include <fenv.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#define VERSION 20 /* native.py asks for the same number: a stale build is not used */

/* --- what `install` hands over ---------------------------------------------------------------- */

static PyTypeObject *Array_type; /* concrete arrays: slots aval, host, buffer, placement */
static Py_ssize_t aval_at, host_at, buffer_at, placement_at;
static PyTypeObject *Literal_type; /* scalars of programs: slots host, aval */
static Py_ssize_t literal_host_at, literal_aval_at;
static PyObject *settings_var;   /* the context variable of the settings */
static PyObject *leaf_mark;      /* LEAF of tree specs */
static PyObject *take_apart;     /* (node, type) -> (children, metadata) of registered types */
static PyObject *unflatten_slow; /* (spec, leaves) -> tree, for registered types */
static PyObject *has_own_rules;  /* type -> bool */
static PyObject *error_state;    /* NumPy's context variable of the error state, or NULL */
static PyObject *quiet;          /* its value that ignores everything */
static PyObject *filter_error;   /* (error) -> error without frames of the library */

static PyObject *s_key, *s_slowly, *s_impl, *s_eager, *s_process, *s_kind, *s_memory, *s_qualname;
static PyObject *s_eager_key;
static PyObject *s_dtype, *s_shape, *s_with_shape;

#define SLOT(object, at) (*(PyObject **)((char *)(object) + (at)))

/* --- state of the thread ---------------------------------------------------------------------- */

static _Thread_local PyObject *tls_trace;    /* NULL: the root, as in a thread that does nothing */
static _Thread_local PyObject *tls_axes;     /* NULL: () */
static _Thread_local PyObject *tls_location; /* NULL: None */
static _Thread_local PyObject *tls_observer; /* NULL: None */
static PyObject *root_trace;
static PyObject *no_axes;

static PyObject *state_get(PyObject *self, void *which) {
    PyObject *found;
    switch ((intptr_t)which) {
    case 0: found = tls_trace ? tls_trace : root_trace; break;
    case 1: found = tls_axes ? tls_axes : no_axes; break;
    case 2: found = tls_location ? tls_location : Py_None; break;
    default: found = tls_observer ? tls_observer : Py_None;
    }
    return Py_NewRef(found);
}

static int state_set(PyObject *self, PyObject *value, void *which) {
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "the state of a thread cannot be deleted");
        return -1;
    }
    PyObject **place, *normal;
    switch ((intptr_t)which) {
    case 0: place = &tls_trace; normal = root_trace; break;
    case 1: place = &tls_axes; normal = no_axes; break;
    case 2: place = &tls_location; normal = Py_None; break;
    default: place = &tls_observer; normal = Py_None;
    }
    /* The normal value is stored as NULL: a thread that ends normally leaves nothing behind. */
    PyObject *old = *place;
    int is_normal = value == normal ||
                    ((intptr_t)which == 1 && PyTuple_CheckExact(value) && !PyTuple_GET_SIZE(value));
    *place = is_normal ? NULL : Py_NewRef(value);
    Py_XDECREF(old);
    return 0;
}

static PyGetSetDef state_members[] = {
    {"trace", state_get, state_set, "The transformation in progress.", (void *)0},
    {"axes", state_get, state_set, "Named axes, the innermost last.", (void *)1},
    {"location", state_get, state_set, "The source location being replayed.", (void *)2},
    {"observer", state_get, state_set, "Told of every step that the reference runs.", (void *)3},
    {NULL},
};

static PyObject *install_root(PyObject *self, PyObject *trace) {
    Py_XSETREF(root_trace, Py_NewRef(trace));
    Py_RETURN_NONE;
}

static PyTypeObject State_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "primal.base._fast.State",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_getset = state_members,
    .tp_new = PyType_GenericNew,
    .tp_doc = "What is ambient in a thread.",
};

/* --- arrays ----------------------------------------------------------------------------------- */

/* A new array of the class; steals `host`. */
static PyObject *box(PyObject *aval, PyObject *host) {
    PyObject *made = Array_type->tp_alloc(Array_type, 0);
    if (made == NULL) {
        Py_DECREF(host);
        return NULL;
    }
    SLOT(made, aval_at) = Py_NewRef(aval);
    SLOT(made, host_at) = host;
    SLOT(made, buffer_at) = Py_NewRef(Py_None);
    SLOT(made, placement_at) = Py_NewRef(Py_None);
    return made;
}

static inline int is_plain_array(PyObject *x) {
    return Py_TYPE(x) == Array_type && SLOT(x, placement_at) == Py_None;
}

/* --- trees: a spec compiled to nodes in preorder ------------------------------------------------ */

enum { LEAF, TUPLE, LIST, DICT, NONE, NAMED, CUSTOM };

typedef struct {
    int kind;
    Py_ssize_t n;   /* children */
    PyObject *type; /* of the node */
    PyObject *aux;  /* its metadata: the keys of a dictionary */
    PyObject *spec; /* of a node of a registered type, for unflattening */
    Py_ssize_t end; /* the node after its last descendant */
    Py_ssize_t leaves; /* how many are below */
} Node;

typedef struct {
    Node *nodes;
    Py_ssize_t n, room, leaves;
} Tree;

#define DEEPEST 100

static void tree_clear(Tree *tree) {
    Py_ssize_t n = tree->n;
    tree->n = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_CLEAR(tree->nodes[i].type);
        Py_CLEAR(tree->nodes[i].aux);
        Py_CLEAR(tree->nodes[i].spec);
    }
    PyMem_Free(tree->nodes);
    tree->nodes = NULL;
}

static int tree_traverse(Tree *tree, visitproc visit, void *arg) {
    for (Py_ssize_t i = 0; i < tree->n; i++) {
        Py_VISIT(tree->nodes[i].type);
        Py_VISIT(tree->nodes[i].aux);
        Py_VISIT(tree->nodes[i].spec);
    }
    return 0;
}

static int tree_add(Tree *tree, PyObject *spec, int depth) {
    if (depth > DEEPEST) {
        PyErr_SetString(PyExc_ValueError, "tree too deep for the fast path");
        return -1;
    }
    if (tree->n == tree->room) {
        Py_ssize_t room = tree->room ? 2 * tree->room : 8;
        Node *nodes = PyMem_Realloc(tree->nodes, room * sizeof(Node));
        if (nodes == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        tree->nodes = nodes;
        tree->room = room;
    }
    Py_ssize_t at = tree->n++;
    Node node = {LEAF, 0, NULL, NULL, NULL, at + 1, 1};
    tree->nodes[at] = node;
    if (spec == leaf_mark) {
        tree->leaves++;
        return 0;
    }
    if (!PyTuple_CheckExact(spec) || PyTuple_GET_SIZE(spec) < 2) {
        PyErr_SetString(PyExc_TypeError, "expected the spec of a tree");
        return -1;
    }
    PyObject *type = PyTuple_GET_ITEM(spec, 0);
    node.n = PyTuple_GET_SIZE(spec) - 2;
    node.type = Py_NewRef(type);
    node.aux = Py_NewRef(PyTuple_GET_ITEM(spec, 1));
    node.spec = Py_NewRef(spec);
    tree->nodes[at] = node;
    if (type == (PyObject *)&PyTuple_Type)
        node.kind = TUPLE;
    else if (type == (PyObject *)&PyList_Type)
        node.kind = LIST;
    else if (type == (PyObject *)&PyDict_Type)
        node.kind = DICT;
    else if (type == (PyObject *)Py_TYPE(Py_None))
        node.kind = NONE;
    else {
        PyObject *own = PyObject_CallOneArg(has_own_rules, type);
        if (own == NULL)
            return -1;
        node.kind = own == Py_True ? CUSTOM : NAMED;
        Py_DECREF(own);
    }
    Py_ssize_t before = tree->leaves;
    for (Py_ssize_t i = 0; i < node.n; i++)
        if (tree_add(tree, PyTuple_GET_ITEM(spec, i + 2), depth + 1) < 0)
            return -1;
    node.end = tree->n;
    node.leaves = tree->leaves - before;
    tree->nodes[at] = node;
    return 0;
}

/* The tree of nodes[*at] around leaves[*next]...; new references. */
static PyObject *tree_build(Tree *tree, Py_ssize_t *at, PyObject **leaves, Py_ssize_t *next) {
    Node *node = &tree->nodes[(*at)++];
    PyObject *made = NULL, *children, *child;
    switch (node->kind) {
    case LEAF: return Py_NewRef(leaves[(*next)++]);
    case NONE: Py_RETURN_NONE;
    case TUPLE:
    case NAMED:
        if ((children = PyTuple_New(node->n)) == NULL)
            return NULL;
        for (Py_ssize_t i = 0; i < node->n; i++) {
            if ((child = tree_build(tree, at, leaves, next)) == NULL) {
                Py_DECREF(children);
                return NULL;
            }
            PyTuple_SET_ITEM(children, i, child);
        }
        if (node->kind == TUPLE)
            return children;
        made = PyObject_Call(node->type, children, NULL);
        Py_DECREF(children);
        return made;
    case LIST:
        if ((made = PyList_New(node->n)) == NULL)
            return NULL;
        for (Py_ssize_t i = 0; i < node->n; i++) {
            if ((child = tree_build(tree, at, leaves, next)) == NULL) {
                Py_DECREF(made);
                return NULL;
            }
            PyList_SET_ITEM(made, i, child);
        }
        return made;
    case DICT:
        if ((made = PyDict_New()) == NULL)
            return NULL;
        for (Py_ssize_t i = 0; i < node->n; i++) {
            child = tree_build(tree, at, leaves, next);
            int failed = child == NULL ||
                         PyDict_SetItem(made, PyTuple_GET_ITEM(node->aux, i), child) < 0;
            Py_XDECREF(child);
            if (failed) {
                Py_DECREF(made);
                return NULL;
            }
        }
        return made;
    }
    if ((children = PyList_New(node->leaves)) == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < node->leaves; i++)
        PyList_SET_ITEM(children, i, Py_NewRef(leaves[(*next)++]));
    *at = node->end;
    made = PyObject_CallFunctionObjArgs(unflatten_slow, node->spec, children, NULL);
    Py_DECREF(children);
    return made;
}

/* --- memory of results --------------------------------------------------------------------------- */

/* A fresh page costs 1.4 us, which for big results is more than the work. What malloc gets back it
   hands out again only until the end of its heap is free, and never from 32 MB on: a step that
   returns six arrays of 1 MB took 1.4 ms, not 0.2, where they were dropped together. So memory of
   results is kept when its array dies. NumPy calls `room_free` once nobody refers to the array,
   views included; an array owns its memory as any other does (NEP 49). All of this needs the GIL. */

#define LINE 64
#define POOLED (64 << 10)         /* bytes of a result from which it is kept */
#define MOST_KEPT ((size_t)512 << 20) /* bytes that are kept, or a sixteenth of the machine's memory */
#define OLDEST 256                /* frees after which memory that nobody asked for goes back */
#define LISTS 64
#define PAGE ((size_t)4096)
#define GREAT ((size_t)32 << 20)  /* bytes of a result from which its pages are of 2 MB */
#define NUMPY_DOMAIN 389047       /* of tracemalloc */

typedef struct Room {
    struct Room *older, *newer; /* of all that are free */
    struct Room *below, *above; /* of those in one list, the newest on top */
    size_t bytes;               /* mapped, this head included */
    uint64_t age;
} Room;

_Static_assert(sizeof(Room) <= LINE, "the head of a buffer is one line");

static Room *room_lists[LISTS], *oldest_room, *newest_room;
static size_t kept_bytes, most_kept;
static uint64_t frees;

static inline Room **room_list(size_t bytes) { return &room_lists[bytes / PAGE % LISTS]; }

static void room_unlink(Room *room) {
    *(room->newer ? &room->newer->older : &newest_room) = room->older;
    *(room->older ? &room->older->newer : &oldest_room) = room->newer;
    *(room->above ? &room->above->below : room_list(room->bytes)) = room->below;
    if (room->below)
        room->below->above = room->above;
    kept_bytes -= room->bytes;
}

/* Give back what is kept, the oldest first, until at most `most` bytes are. */
static void rooms_drop(size_t most, uint64_t before) {
    while (oldest_room && (kept_bytes > most || oldest_room->age < before)) {
        Room *room = oldest_room;
        room_unlink(room);
        munmap(room, room->bytes);
    }
}

/* Pages of 4 KB are more than the CPU knows places of: a sum of 64 million floats takes 12.8 ms there,
   7.8 in pages of 2 MB, as NumPy's arrays have them; to get 256 MB ready takes 31 ms instead of 97,
   or what the host of a virtual machine needs, if nobody had them before. 16 MB gained nothing. */
static void room_pages(void *room, size_t bytes) {
#ifdef MADV_HUGEPAGE
    if (bytes >= GREAT)
        madvise(room, bytes, MADV_HUGEPAGE); /* Refused, it is as slow as it was. */
#endif
}

static void *room_new(size_t size) {
    size_t bytes = (size + LINE + PAGE - 1) / PAGE * PAGE;
    if (bytes < size)
        return NULL;
    Room *room = *room_list(bytes);
    while (room && room->bytes != bytes)
        room = room->below;
    if (room)
        room_unlink(room);
    else {
        room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED && kept_bytes) {
            rooms_drop(0, 0);
            room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        }
        if (room == MAP_FAILED)
            return NULL;
        room_pages(room, bytes);
        room->bytes = bytes;
    }
    return (char *)room + LINE;
}

static void room_free(void *nothing, void *data, size_t size) {
    if (data == NULL)
        return;
    Room *room = (Room *)((char *)data - LINE), **list = room_list(room->bytes);
    frees++;
    if (room->bytes > most_kept) {
        munmap(room, room->bytes);
        return;
    }
    room->age = frees;
    room->newer = NULL;
    room->older = newest_room;
    *(newest_room ? &newest_room->newer : &oldest_room) = room;
    newest_room = room;
    room->above = NULL;
    room->below = *list;
    if (*list)
        (*list)->above = room;
    *list = room;
    kept_bytes += room->bytes;
    rooms_drop(most_kept, frees > OLDEST ? frees - OLDEST : 0);
}

static void *room_calloc(void *nothing, size_t n, size_t size) {
    void *made = size && n > SIZE_MAX / size ? NULL : room_new(n * size);
    return made ? memset(made, 0, n * size) : NULL;
}

static void *room_malloc(void *nothing, size_t size) { return room_new(size); }

/* For `ndarray.resize`. */
static void *room_realloc(void *nothing, void *data, size_t size) {
    void *made = room_new(size);
    if (made == NULL || data == NULL)
        return made;
    size_t had = ((Room *)((char *)data - LINE))->bytes - LINE;
    memcpy(made, data, had < size ? had : size);
    room_free(NULL, data, had);
    return made;
}

static PyDataMem_Handler rooms = {
    "primal_results", 1, {NULL, room_malloc, room_calloc, room_realloc, room_free}};
static PyObject *rooms_capsule;

static int rooms_ready(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
    most_kept = pages > 0 && page > 0 ? (size_t)pages * page / 16 : MOST_KEPT;
    if (most_kept > MOST_KEPT)
        most_kept = MOST_KEPT;
    rooms_capsule = PyCapsule_New(&rooms, "mem_handler", NULL);
    return rooms_capsule == NULL ? -1 : 0;
}

/* An array whose elements nobody has set; steals `descr`. */
static PyObject *fresh_array(PyArray_Descr *descr, int nd, npy_intp *dims) {
    size_t size = (size_t)PyDataType_ELSIZE(descr);
    for (int i = 0; i < nd; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(size, (size_t)dims[i], &size))
            size = 0; /* NumPy's error */
    if (size < POOLED || size > SIZE_MAX / 4 || PyDataType_REFCHK(descr))
        return PyArray_NewFromDescr(&PyArray_Type, descr, nd, dims, NULL, NULL, 0, NULL);
    void *data = room_new(size);
    if (data == NULL) {
        Py_DECREF(descr);
        return PyErr_NoMemory();
    }
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, descr, nd, dims, NULL, data,
                                          NPY_ARRAY_CARRAY, NULL);
    if (made == NULL) {
        room_free(NULL, data, size);
        return NULL;
    }
    PyTraceMalloc_Track(NUMPY_DOMAIN, (uintptr_t)data, size);
    ((PyArrayObject_fields *)made)->mem_handler = Py_NewRef(rooms_capsule);
    PyArray_ENABLEFLAGS((PyArrayObject *)made, NPY_ARRAY_OWNDATA);
    return made;
}

static int read_shape(PyObject *shape, int *nd, npy_intp *dims) {
    if (!PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) > NPY_MAXDIMS) {
        PyErr_SetString(PyExc_ValueError, "expected a shape that NumPy can have");
        return -1;
    }
    *nd = (int)PyTuple_GET_SIZE(shape);
    for (int i = 0; i < *nd; i++) {
        dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        if (dims[i] == -1 && PyErr_Occurred())
            return -1;
    }
    return 0;
}

/* empty(shape, dtype): as NumPy's, in memory that is used again. */
static PyObject *empty(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    int nd;
    npy_intp dims[NPY_MAXDIMS];
    if (n != 2 || !PyArray_DescrCheck(given[1])) {
        PyErr_SetString(PyExc_TypeError, "expected a shape and a dtype");
        return NULL;
    }
    if (read_shape(given[0], &nd, dims) < 0)
        return NULL;
    return fresh_array((PyArray_Descr *)Py_NewRef(given[1]), nd, dims);
}

/* drop_memory(): give back what is kept of dead results; returns the bytes. */
static PyObject *drop_memory(PyObject *self, PyObject *none) {
    size_t kept = kept_bytes;
    rooms_drop(0, 0);
    return PyLong_FromSize_t(kept);
}

/* --- programs that run without Python ------------------------------------------------------------ */

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
    return posix_memalign(&made, LINE, size + LINE) ? NULL : made;
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

/* --- what a jitted function remembers of one signature -------------------------------------------- */

typedef struct {
    PyObject_HEAD
    PyObject *key;        /* the settings under which it was made */
    Tree args, kwargs, out;
    PyObject *avals;      /* tuple: of the leaves */
    PyObject *scalars;    /* dict: type of a Python scalar -> aval under these settings */
    PyObject *fixed;      /* tuple: None, or (value,) of a static argument, per position; or None */
    PyObject *run;        /* (leaves) -> list of arrays */
    PyObject *native;     /* or None */
    PyObject *out_avals;  /* tuple */
    PyObject *donated;    /* tuple of numbers of leaves */
    Py_ssize_t n_leaves, n_out;
    Py_ssize_t *dead;     /* donated, as numbers */
    Py_ssize_t n_dead;
} Entry;

static int entry_traverse(Entry *self, visitproc visit, void *arg) {
    Py_VISIT(self->key);
    Py_VISIT(self->avals);
    Py_VISIT(self->scalars);
    Py_VISIT(self->fixed);
    Py_VISIT(self->run);
    Py_VISIT(self->native);
    Py_VISIT(self->out_avals);
    Py_VISIT(self->donated);
    if (tree_traverse(&self->args, visit, arg) || tree_traverse(&self->kwargs, visit, arg))
        return -1;
    return tree_traverse(&self->out, visit, arg);
}

/* Trees are not cleared here: a call in progress reads them, and specs refer to no entry. */
static int entry_clear(Entry *self) {
    Py_CLEAR(self->run);
    return 0;
}

static void entry_dealloc(Entry *self) {
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->key);
    Py_CLEAR(self->avals);
    Py_CLEAR(self->scalars);
    Py_CLEAR(self->fixed);
    Py_CLEAR(self->run);
    Py_CLEAR(self->native);
    Py_CLEAR(self->out_avals);
    Py_CLEAR(self->donated);
    tree_clear(&self->args);
    tree_clear(&self->kwargs);
    tree_clear(&self->out);
    PyMem_Free(self->dead);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *entry_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"key", "args", "kwargs", "out", "avals", "scalars", "fixed", "run",
                            "native", "out_avals", "donated", NULL};
    PyObject *key, *args_spec, *kwargs_spec, *out, *avals, *scalars, *fixed, *run, *native;
    PyObject *out_avals, *donated;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOO!O!OOOO!O!:Entry", names, &key, &args_spec,
                                     &kwargs_spec, &out, &PyTuple_Type, &avals, &PyDict_Type,
                                     &scalars, &fixed, &run, &native, &PyTuple_Type, &out_avals,
                                     &PyTuple_Type, &donated))
        return NULL;
    if ((native != Py_None && Py_TYPE(native) != &Native_type) ||
        (fixed != Py_None && !PyTuple_CheckExact(fixed))) {
        PyErr_SetString(PyExc_TypeError, "expected a Native or None, and a tuple or None");
        return NULL;
    }
    Entry *self = (Entry *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->key = Py_NewRef(key);
    self->avals = Py_NewRef(avals);
    self->scalars = Py_NewRef(scalars);
    self->fixed = Py_NewRef(fixed);
    self->run = Py_NewRef(run);
    self->native = Py_NewRef(native);
    self->out_avals = Py_NewRef(out_avals);
    self->donated = Py_NewRef(donated);
    self->n_leaves = PyTuple_GET_SIZE(avals);
    self->n_out = PyTuple_GET_SIZE(out_avals);
    self->n_dead = PyTuple_GET_SIZE(donated);
    self->dead = PyMem_Calloc(self->n_dead + 1, sizeof(Py_ssize_t));
    if (self->dead == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    for (Py_ssize_t i = 0; i < self->n_dead; i++) {
        Py_ssize_t n = PyLong_AsSsize_t(PyTuple_GET_ITEM(donated, i));
        if (n < 0 || n >= self->n_leaves) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "expected numbers of leaves as donated");
            goto failed;
        }
        self->dead[i] = n;
    }
    if (tree_add(&self->args, args_spec, 0) < 0 || tree_add(&self->kwargs, kwargs_spec, 0) < 0 ||
        tree_add(&self->out, out, 0) < 0)
        goto failed;
    if (self->args.nodes[0].kind != TUPLE || self->kwargs.nodes[0].kind != DICT ||
        self->args.leaves + self->kwargs.leaves != self->n_leaves ||
        self->out.leaves != self->n_out) {
        PyErr_SetString(PyExc_ValueError, "expected as many avals as leaves");
        goto failed;
    }
    if (native != Py_None) {
        Native *n = (Native *)native;
        if (n->n_out != self->n_out || check_numbers(n->ins, n->n_in, IN, self->n_leaves) < 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "expected a program of these leaves");
            goto failed;
        }
    }
    return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

static PyTypeObject Entry_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "primal.base._fast.Entry",
    .tp_basicsize = sizeof(Entry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = entry_new,
    .tp_dealloc = (destructor)entry_dealloc,
    .tp_traverse = (traverseproc)entry_traverse,
    .tp_clear = (inquiry)entry_clear,
    .tp_doc = "How a jitted function runs for one signature.",
};

/* Is x a leaf of the aval? 1 or 0. */
static inline int leaf_matches(Entry *entry, PyObject *x, PyObject *aval) {
    PyTypeObject *type = Py_TYPE(x);
    if (type == Array_type)
        return SLOT(x, aval_at) == aval && SLOT(x, placement_at) == Py_None;
    if (entry->native == Py_None)
        return 0; /* whoever runs the program wants arrays */
    if (type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type ||
        type == &PyComplex_Type)
        return PyDict_GetItemWithError(entry->scalars, (PyObject *)type) == aval;
    int is_array = PyArray_CheckExact(x);
    if (!is_array && !PyArray_IsScalar(x, Generic))
        return 0;
    /* Shape, dtype, and the wider dtype that is converted to it, for NumPy's values of this aval. */
    PyObject *found = PyDict_GetItemWithError(entry->scalars, (PyObject *)aval);
    if (found == NULL)
        return 0;
    PyObject *shape = PyTuple_GET_ITEM(found, 0);
    int nd = is_array ? PyArray_NDIM((PyArrayObject *)x) : 0;
    if (nd != PyTuple_GET_SIZE(shape))
        return 0;
    for (int i = 0; i < nd; i++)
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) != PyArray_DIM((PyArrayObject *)x, i))
            return 0;
    PyArray_Descr *descr = is_array ? PyArray_DESCR((PyArrayObject *)x) : PyArray_DescrFromScalar(x);
    int good = descr == (PyArray_Descr *)PyTuple_GET_ITEM(found, 1) ||
               descr == (PyArray_Descr *)PyTuple_GET_ITEM(found, 2);
    if (!is_array)
        Py_XDECREF(descr);
    return good;
}

typedef struct {
    Entry *entry;
    PyObject **leaves; /* references held */
    Py_ssize_t n;
} Gather;

/* 1: the tree is as the nodes say, its leaves are gathered; 0: it is not; -1: error. */
static int gather(Gather *into, Tree *tree, Py_ssize_t *at, PyObject *x) {
    Node *node = &tree->nodes[(*at)++];
    int good;
    switch (node->kind) {
    case LEAF:
        if (!leaf_matches(into->entry, x, PyTuple_GET_ITEM(into->entry->avals, into->n)))
            return PyErr_Occurred() ? -1 : 0;
        into->leaves[into->n++] = Py_NewRef(x);
        return 1;
    case NONE: return x == Py_None;
    case TUPLE:
    case NAMED:
        if ((PyObject *)Py_TYPE(x) != node->type || PyTuple_GET_SIZE(x) != node->n)
            return 0;
        for (Py_ssize_t i = 0; i < node->n; i++)
            if ((good = gather(into, tree, at, PyTuple_GET_ITEM(x, i))) != 1)
                return good;
        return 1;
    case LIST:
        if (!PyList_CheckExact(x) || PyList_GET_SIZE(x) != node->n)
            return 0;
        for (Py_ssize_t i = 0; i < node->n; i++) {
            if (PyList_GET_SIZE(x) != node->n) /* code of a registered type ran in between */
                return 0;
            PyObject *child = Py_NewRef(PyList_GET_ITEM(x, i));
            good = gather(into, tree, at, child);
            Py_DECREF(child);
            if (good != 1)
                return good;
        }
        return 1;
    case DICT:
        if (!PyDict_CheckExact(x) || PyDict_GET_SIZE(x) != node->n)
            return 0;
        for (Py_ssize_t i = 0; i < node->n; i++) {
            PyObject *child = PyDict_GetItemWithError(x, PyTuple_GET_ITEM(node->aux, i));
            if (child == NULL)
                return PyErr_Occurred() ? -1 : 0;
            Py_INCREF(child);
            good = gather(into, tree, at, child);
            Py_DECREF(child);
            if (good != 1)
                return good;
        }
        return 1;
    }
    if ((PyObject *)Py_TYPE(x) != node->type)
        return 0;
    PyObject *parts = PyObject_CallFunctionObjArgs(take_apart, x, node->type, NULL);
    if (parts == NULL)
        return -1;
    PyObject *children = PyTuple_GET_ITEM(parts, 0);
    good = PyObject_RichCompareBool(PyTuple_GET_ITEM(parts, 1), node->aux, Py_EQ);
    if (good == 1 && PyTuple_GET_SIZE(children) != node->n)
        good = 0;
    for (Py_ssize_t i = 0; good == 1 && i < node->n; i++)
        good = gather(into, tree, at, PyTuple_GET_ITEM(children, i));
    Py_DECREF(parts);
    return good;
}

static int gather_call(Gather *into, PyObject *args, PyObject *kwargs) {
    Entry *entry = into->entry;
    Tree *tree = &entry->args;
    Py_ssize_t at = 1, given = PyTuple_GET_SIZE(args);
    int good;
    if (entry->fixed == Py_None) {
        if (given != tree->nodes[0].n)
            return 0;
        for (Py_ssize_t i = 0; i < given; i++)
            if ((good = gather(into, tree, &at, PyTuple_GET_ITEM(args, i))) != 1)
                return good;
    } else {
        if (given != PyTuple_GET_SIZE(entry->fixed))
            return 0;
        for (Py_ssize_t i = 0; i < given; i++) {
            PyObject *x = PyTuple_GET_ITEM(args, i), *fixed = PyTuple_GET_ITEM(entry->fixed, i);
            if (fixed == Py_None)
                good = gather(into, tree, &at, x);
            else {
                PyObject *value = PyTuple_GET_ITEM(fixed, 0);
                good = Py_TYPE(x) == Py_TYPE(value);
                if (good)
                    good = PyObject_RichCompareBool(value, x, Py_EQ);
            }
            if (good != 1)
                return good;
        }
    }
    Py_ssize_t named = kwargs == NULL ? 0 : PyDict_GET_SIZE(kwargs);
    if (named != entry->kwargs.nodes[0].n)
        return 0;
    at = 0;
    return named ? gather(into, &entry->kwargs, &at, kwargs) : 1;
}

/* --- jitted functions ------------------------------------------------------------------------------ */

#define MOST 64

typedef struct {
    PyObject_HEAD
    Entry *entries[MOST];
    int n;
} Dispatcher;

static int dispatcher_traverse(Dispatcher *self, visitproc visit, void *arg) {
    for (int i = 0; i < self->n; i++)
        Py_VISIT((PyObject *)self->entries[i]);
    return 0;
}

static int dispatcher_clear(Dispatcher *self) {
    while (self->n) {
        PyObject *last = (PyObject *)self->entries[--self->n];
        Py_DECREF(last);
    }
    return 0;
}

static void dispatcher_dealloc(Dispatcher *self) {
    PyObject_GC_UnTrack(self);
    dispatcher_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *finish(Entry *entry, PyObject **results) {
    if (entry->out.nodes[0].kind == LEAF)
        return Py_NewRef(results[0]);
    Py_ssize_t at = 0, next = 0;
    return tree_build(&entry->out, &at, results, &next);
}

/* Is each donated array given once? Marks them in a slot that is None for every array here, as
   comparing each with each takes too long where a training step has a thousand. */
static int given_once(Entry *entry, PyObject **leaves) {
    static PyObject mark;
    int once = 1;
    for (Py_ssize_t k = 0; k < entry->n_dead; k++) {
        PyObject *x = leaves[entry->dead[k]];
        if (Py_TYPE(x) == Array_type) {
            once &= SLOT(x, placement_at) == Py_None;
            SLOT(x, placement_at) = &mark;
        }
    }
    Py_ssize_t marked = 0, donated = 0;
    for (Py_ssize_t i = 0; i < entry->n_leaves; i++)
        marked += Py_TYPE(leaves[i]) == Array_type && SLOT(leaves[i], placement_at) == &mark;
    for (Py_ssize_t k = 0; k < entry->n_dead; k++) {
        PyObject *x = leaves[entry->dead[k]];
        if (Py_TYPE(x) == Array_type) {
            donated++;
            SLOT(x, placement_at) = Py_None;
        }
    }
    return once && marked == donated;
}

/* 1: ran, *result is new; 0: not for this path; -1: error. */
static int run_entry(Entry *entry, PyObject **leaves, PyObject **result) {
    *result = NULL;
    if (entry->native != Py_None && (entry->n_dead == 0 || given_once(entry, leaves))) {
        PyObject *few[FEW], **outs = few;
        if (entry->n_out > FEW) {
            outs = PyMem_Malloc(entry->n_out * sizeof(PyObject *));
            if (outs == NULL) {
                PyErr_NoMemory();
                return -1;
            }
        }
        int done = native_run((Native *)entry->native, leaves, outs);
        if (done == 1) {
            Py_ssize_t i = 0;
            for (; i < entry->n_out; i++) {
                PyObject *made = box(PyTuple_GET_ITEM(entry->out_avals, i), outs[i]);
                if (made == NULL)
                    break;
                outs[i] = made;
            }
            if (i < entry->n_out) {
                for (Py_ssize_t k = 0; k < entry->n_out; k++)
                    if (k != i)
                        Py_DECREF(outs[k]);
                done = -1;
            } else {
                for (Py_ssize_t k = 0; k < entry->n_dead; k++) {
                    PyObject *x = leaves[entry->dead[k]];
                    if (Py_TYPE(x) == Array_type) {
                        PyObject *host = SLOT(x, host_at), *buffer = SLOT(x, buffer_at);
                        SLOT(x, host_at) = Py_NewRef(Py_None);
                        SLOT(x, buffer_at) = Py_NewRef(Py_None);
                        Py_XDECREF(host);
                        Py_XDECREF(buffer);
                    }
                }
                *result = finish(entry, outs);
                if (*result == NULL)
                    done = -1;
                for (i = 0; i < entry->n_out; i++)
                    Py_DECREF(outs[i]);
            }
        }
        if (outs != few)
            PyMem_Free(outs);
        if (done)
            return done;
    }
    if (entry->native != Py_None)
        for (Py_ssize_t i = 0; i < entry->n_leaves; i++)
            if (Py_TYPE(leaves[i]) != Array_type)
                return 0;
    PyObject *list = PyList_New(entry->n_leaves);
    if (list == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < entry->n_leaves; i++)
        PyList_SET_ITEM(list, i, Py_NewRef(leaves[i]));
    PyObject *run = entry->run;
    if (run == NULL) {
        Py_DECREF(list);
        return 0;
    }
    Py_INCREF(run);
    PyObject *results = PyObject_CallFunctionObjArgs(run, list, Py_None, NULL);
    Py_DECREF(run);
    Py_DECREF(list);
    if (results == NULL)
        return -1;
    if (!PyList_CheckExact(results) || PyList_GET_SIZE(results) != entry->n_out) {
        PyErr_SetString(PyExc_SystemError, "a program gave another number of results");
        Py_DECREF(results);
        return -1;
    }
    *result = finish(entry, ((PyListObject *)results)->ob_item);
    Py_DECREF(results);
    return *result == NULL ? -1 : 1;
}

/* One of the keys of the present settings; None where nothing may be remembered. New reference.
   By way of the instance alone: Python's `__getattr__`, which only tells of misspelt flags, would
   take half as long again. */
static PyObject *present(PyObject *which) {
    PyObject *settings = NULL;
    if (settings_var != NULL && PyContextVar_Get(settings_var, NULL, &settings) < 0)
        return NULL;
    if (settings == NULL) {
        PyErr_SetString(PyExc_LookupError, "no settings");
        return NULL;
    }
    PyObject *key = PyObject_GenericGetAttr(settings, which);
    Py_DECREF(settings);
    return key;
}

/* 1: done; 0: unknown; -1: error. */
static int call_fast(Dispatcher *self, PyObject *args, PyObject *kwargs, PyObject **result) {
    PyObject *key = present(s_key);
    if (key == NULL)
        return -1;
    int done = 0;
    for (int i = 0; !done && i < self->n; i++) {
        Entry *entry = self->entries[i];
        if (entry->key != key) {
            int same = PyObject_RichCompareBool(entry->key, key, Py_EQ);
            if (same < 0) {
                done = -1;
                break;
            }
            if (!same || i >= self->n || self->entries[i] != entry)
                continue;
            Py_SETREF(entry->key, Py_NewRef(key)); /* found by identity next time */
        }
        PyObject *few[2 * FEW];
        Gather found = {entry, few, 0};
        if (entry->n_leaves > 2 * FEW) {
            found.leaves = PyMem_Malloc(entry->n_leaves * sizeof(PyObject *));
            if (found.leaves == NULL) {
                PyErr_NoMemory();
                done = -1;
                break;
            }
        }
        Py_INCREF(entry);
        int good = gather_call(&found, args, kwargs);
        if (good < 0) {
            /* What a tree's own code raises comes again, and with its context, on the slow path. */
            if (PyErr_ExceptionMatches(PyExc_Exception))
                PyErr_Clear();
            else
                done = -1;
        } else if (good == 1) {
            if (i > 2 && i < self->n && self->entries[i] == entry) {
                self->entries[i] = self->entries[0];
                self->entries[0] = entry;
            }
            done = run_entry(entry, found.leaves, result);
            good = done ? good : 2;
        }
        while (found.n)
            Py_DECREF(found.leaves[--found.n]);
        if (found.leaves != few)
            PyMem_Free(found.leaves);
        Py_DECREF(entry);
        if (good == 2)
            break;
    }
    Py_DECREF(key);
    return done;
}

/* Take the library's frames out of the traceback of the error that is set. */
static void without_frames(void) {
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback != NULL)
        PyException_SetTraceback(error, traceback);
    Py_XDECREF(traceback);
    if (PyErr_GivenExceptionMatches(type, PyExc_Exception)) {
        PyObject *same = PyObject_CallOneArg(filter_error, error);
        if (same == NULL)
            PyErr_Clear();
        Py_XDECREF(same);
    }
    traceback = PyException_GetTraceback(error);
    PyErr_Restore(type, error, traceback);
}

static PyObject *dispatcher_call(Dispatcher *self, PyObject *args, PyObject *kwargs) {
    int failed = 0;
    if (self->n && tls_trace == NULL && tls_axes == NULL) {
        PyObject *result = NULL;
        int done = call_fast(self, args, kwargs, &result);
        if (done == 1)
            return result;
        failed = done < 0;
    }
    if (failed) {
        without_frames();
        return NULL;
    }
    PyObject *named = kwargs == NULL ? PyDict_New() : Py_NewRef(kwargs);
    if (named == NULL)
        return NULL;
    PyObject *result = PyObject_CallMethodObjArgs((PyObject *)self, s_slowly, args, named, NULL);
    Py_DECREF(named);
    if (result == NULL)
        without_frames();
    return result;
}

static PyObject *dispatcher_get(PyObject *self, PyObject *instance, PyObject *owner) {
    if (instance == NULL || instance == Py_None)
        return Py_NewRef(self);
    return PyMethod_New(self, instance);
}

static PyObject *dispatcher_remember(Dispatcher *self, PyObject *entry) {
    if (Py_TYPE(entry) != &Entry_type) {
        PyErr_SetString(PyExc_TypeError, "expected an Entry");
        return NULL;
    }
    PyObject *dropped = NULL;
    if (self->n == MOST)
        dropped = (PyObject *)self->entries[--self->n];
    memmove(self->entries + 1, self->entries, self->n * sizeof(Entry *));
    self->entries[0] = (Entry *)Py_NewRef(entry);
    self->n++;
    Py_XDECREF(dropped);
    Py_RETURN_NONE;
}

static PyObject *dispatcher_forget(Dispatcher *self, PyObject *none) {
    dispatcher_clear(self);
    Py_RETURN_NONE;
}

static PyMethodDef dispatcher_methods[] = {
    {"_remember", (PyCFunction)dispatcher_remember, METH_O, "Run an Entry's calls without Python."},
    {"_forget", (PyCFunction)dispatcher_forget, METH_NOARGS, "Drop all entries."},
    {NULL},
};

static PyTypeObject Dispatcher_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "primal.base._fast.Dispatcher",
    .tp_basicsize = sizeof(Dispatcher),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = (destructor)dispatcher_dealloc,
    .tp_traverse = (traverseproc)dispatcher_traverse,
    .tp_clear = (inquiry)dispatcher_clear,
    .tp_call = (ternaryfunc)dispatcher_call,
    .tp_descr_get = dispatcher_get,
    .tp_methods = dispatcher_methods,
    .tp_doc = "Base of jitted functions: calls that were met before, without Python.",
};

/* --- operations that run at once -------------------------------------------------------------------- */

static PyObject *eager_slow; /* (op, args, params): what runs operations that were not met before */

/* The result of an `impl` as an array; steals it. */
static PyObject *box_result(PyObject *aval, PyObject *out) {
    if (!PyArray_CheckExact(out)) {
        PyObject *array = PyArray_FromAny(out, NULL, 0, 0, NPY_ARRAY_ENSUREARRAY, NULL);
        Py_DECREF(out);
        if ((out = array) == NULL)
            return NULL;
    }
    return box(aval, out);
}

/* An op on arrays of avals that it has met where arrays go now: its `impl` on their memory. NULL
   without an error: not for this path. */
static PyObject *eager_run(PyObject *op, PyObject *const *args, Py_ssize_t n, PyObject *params) {
    PyObject *few[8], **hosts = few, *made = NULL;
    if (n > 8 || eager_slow == NULL)
        return NULL;
    PyObject *where = present(s_eager_key);
    if (where == NULL)
        return NULL;
    Py_ssize_t named = params == NULL ? 0 : PyDict_GET_SIZE(params);
    PyObject *avals = where == Py_None ? NULL : PyTuple_New(n + 1);
    if (avals == NULL) {
        Py_DECREF(where);
        return NULL;
    }
    PyTuple_SET_ITEM(avals, n, where);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = args[i], *aval, *host;
        if (Py_TYPE(x) == Array_type) {
            aval = SLOT(x, aval_at);
            host = SLOT(x, host_at);
        } else if (Py_TYPE(x) == Literal_type) {
            aval = SLOT(x, literal_aval_at);
            host = SLOT(x, literal_host_at);
        } else
            aval = host = NULL;
        if (aval == NULL || host == NULL || host == Py_None) {
            Py_DECREF(avals);
            return NULL;
        }
        PyTuple_SET_ITEM(avals, i, Py_NewRef(aval));
        hosts[i] = host;
    }
    PyObject *key = avals;
    if (named) {
        /* ((*avals, where), *params.items()) */
        key = PyTuple_New(1 + named);
        if (key == NULL) {
            Py_DECREF(avals);
            return NULL;
        }
        PyTuple_SET_ITEM(key, 0, avals);
        PyObject *name, *value;
        Py_ssize_t at = 0, i = 1;
        while (PyDict_Next(params, &at, &name, &value)) {
            PyObject *pair = PyTuple_Pack(2, name, value);
            if (pair == NULL) {
                Py_DECREF(key);
                return NULL;
            }
            PyTuple_SET_ITEM(key, i++, pair);
        }
    }
    PyObject *table = PyObject_GetAttr(op, s_eager), *out_aval = NULL, *impl = NULL;
    if (table == NULL || !PyDict_CheckExact(table))
        goto ended;
    out_aval = PyDict_GetItemWithError(table, key);
    if (out_aval == NULL)
        goto ended; /* also where a parameter has no hash: Python says so */
    Py_INCREF(out_aval);
    if ((impl = PyObject_GetAttr(op, s_impl)) == NULL)
        goto ended;
    PyObject *token = PyContextVar_Set(error_state, quiet);
    if (token == NULL)
        goto ended;
    PyObject *out;
    for (Py_ssize_t i = 0; i < n; i++)
        Py_INCREF(hosts[i]);
    if (named) {
        PyObject *given = PyTuple_New(n);
        if (given == NULL)
            out = NULL;
        else {
            for (Py_ssize_t i = 0; i < n; i++)
                PyTuple_SET_ITEM(given, i, Py_NewRef(hosts[i]));
            out = PyObject_Call(impl, given, params);
            Py_DECREF(given);
        }
    } else
        out = PyObject_Vectorcall(impl, hosts, n, NULL);
    for (Py_ssize_t i = 0; i < n; i++)
        Py_DECREF(hosts[i]);
    PyObject *type = NULL, *error = NULL, *traceback = NULL;
    if (out == NULL)
        PyErr_Fetch(&type, &error, &traceback);
    int reset = PyContextVar_Reset(error_state, token);
    Py_DECREF(token);
    if (out == NULL) {
        PyErr_Clear();
        PyErr_Restore(type, error, traceback);
        goto ended;
    }
    if (reset < 0) {
        Py_DECREF(out);
        goto ended;
    }
    if (!PyTuple_CheckExact(out_aval)) {
        made = box_result(out_aval, out);
        goto ended;
    }
    PyObject *outs = PySequence_Fast(out, "expected the results of an operation");
    Py_DECREF(out);
    if (outs == NULL)
        goto ended;
    Py_ssize_t count = PyTuple_GET_SIZE(out_aval);
    if (PySequence_Fast_GET_SIZE(outs) != count)
        PyErr_Format(PyExc_ValueError, "%R gave another number of results than its type says", op);
    else if ((made = PyList_New(count)) != NULL)
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *x = box_result(PyTuple_GET_ITEM(out_aval, i),
                                     Py_NewRef(PySequence_Fast_GET_ITEM(outs, i)));
            if (x == NULL) {
                Py_CLEAR(made);
                break;
            }
            PyList_SET_ITEM(made, i, x);
        }
    Py_DECREF(outs);
ended:
    Py_XDECREF(impl);
    Py_XDECREF(out_aval);
    Py_XDECREF(table);
    Py_DECREF(key);
    return made;
}

/* process(op, args, params): that of the eager trace. */
static PyObject *process(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    if (n != 3 || !PyDict_Check(given[2])) {
        PyErr_SetString(PyExc_TypeError, "expected an op, its operands and its parameters");
        return NULL;
    }
    PyObject *args = given[1], *made = NULL;
    if (PyTuple_CheckExact(args))
        made = eager_run(given[0], ((PyTupleObject *)args)->ob_item, PyTuple_GET_SIZE(args),
                         given[2]);
    else if (PyList_CheckExact(args)) {
        /* The list may change while user code runs. */
        PyObject *fixed = PyList_AsTuple(args);
        if (fixed == NULL)
            return NULL;
        made = eager_run(given[0], ((PyTupleObject *)fixed)->ob_item, PyTuple_GET_SIZE(fixed),
                         given[2]);
        Py_DECREF(fixed);
    }
    if (made != NULL || PyErr_Occurred())
        return made;
    return PyObject_Vectorcall(eager_slow, given, 3, NULL);
}

/* The base of Op: calling the record asks the ambient trace. */
static PyObject *op_call(PyObject *self, PyObject *args, PyObject *kwargs) {
    PyObject *trace = tls_trace;
    if (trace == NULL) {
        PyObject *made = eager_run(self, ((PyTupleObject *)args)->ob_item, PyTuple_GET_SIZE(args),
                                   kwargs);
        if (made != NULL || PyErr_Occurred())
            return made;
        trace = root_trace;
    }
    /* Traces keep the dictionary: it must not be the caller's. */
    PyObject *params = kwargs == NULL ? PyDict_New() : PyDict_Copy(kwargs);
    if (params == NULL)
        return NULL;
    Py_INCREF(trace);
    PyObject *made = PyObject_CallMethodObjArgs(trace, s_process, self, args, params, NULL);
    Py_DECREF(trace);
    Py_DECREF(params);
    return made;
}

static PyTypeObject Callable_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "primal.base._fast.Callable",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_call = op_call,
    .tp_doc = "Base of operations: called, they ask the ambient trace.",
};

/* --- functions of several operations ------------------------------------------------------------------ */

/* A function that skips its decisions where it was called with the same avals and static arguments:
   `memo` has what runs then, on the memory of the arrays, or None; `meet` is asked about the rest.
   `lift` makes NumPy's arrays ours; what it refuses is for the function itself. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *fun, *memo, *meet, *lift, *dict, *weak;
} Remembered;

static PyTypeObject Remembered_type;

typedef struct {
    PyObject *few_items[24], *few_hosts[8];
    PyObject **items, **hosts; /* references held */
    Py_ssize_t n, room, n_hosts, room_hosts;
    PyObject *lift;
} Signature;

static int push(PyObject ***items, PyObject **few, Py_ssize_t *n, Py_ssize_t *room, PyObject *x) {
    if (*n == *room) {
        PyObject **more = PyMem_Malloc(2 * *room * sizeof(PyObject *));
        if (more == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        memcpy(more, *items, *n * sizeof(PyObject *));
        if (*items != few)
            PyMem_Free(*items);
        *items = more;
        *room *= 2;
    }
    (*items)[(*n)++] = Py_NewRef(x);
    return 0;
}

static inline int push_item(Signature *to, PyObject *x) {
    return push(&to->items, to->few_items, &to->n, &to->room, x);
}

static void signature_clear(Signature *of) {
    while (of->n)
        Py_DECREF(of->items[--of->n]);
    while (of->n_hosts)
        Py_DECREF(of->hosts[--of->n_hosts]);
    if (of->items != of->few_items)
        PyMem_Free(of->items);
    if (of->hosts != of->few_hosts)
        PyMem_Free(of->hosts);
}

/* 1: what x is was added; 0: calls with it are not remembered; -1: error. */
static int describe(Signature *to, PyObject *x, int depth) {
    PyTypeObject *type = Py_TYPE(x);
    if (type == Array_type) {
        PyObject *host = SLOT(x, host_at);
        if (host == NULL || host == Py_None)
            return 0;
        if (push_item(to, SLOT(x, aval_at)) < 0 ||
            push(&to->hosts, to->few_hosts, &to->n_hosts, &to->room_hosts, host) < 0)
            return -1;
        return 1;
    }
    if (push_item(to, (PyObject *)type) < 0)
        return -1;
    if (type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBool_Type || x == Py_None)
        return push_item(to, x) < 0 ? -1 : 1;
    if (type == &PyFloat_Type) {
        double value = PyFloat_AS_DOUBLE(x);
        /* 0.0 == -0.0, and no number equals None. */
        return push_item(to, value == 0.0 && signbit(value) ? Py_None : x) < 0 ? -1 : 1;
    }
    if (type == &PyComplex_Type) {
        Py_complex value = PyComplex_AsCComplex(x);
        PyObject *parts = Py_BuildValue("(dd)", value.real, value.imag);
        int good = parts == NULL ? -1 : describe(to, parts, depth);
        Py_XDECREF(parts);
        return good;
    }
    if (type == &PyTuple_Type || type == &PyList_Type) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(x);
        PyObject *count = PyLong_FromSsize_t(n);
        int bad = count == NULL || push_item(to, count) < 0;
        Py_XDECREF(count);
        if (bad)
            return -1;
        if (depth > DEEPEST)
            return 0;
        for (Py_ssize_t i = 0; i < n; i++) {
            /* Python code runs for NumPy's arrays: another thread may make a list shorter. */
            if (i >= PySequence_Fast_GET_SIZE(x))
                return 0;
            PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(x, i));
            int good = describe(to, item, depth + 1);
            Py_DECREF(item);
            if (good != 1)
                return good;
        }
        return 1;
    }
    if (type == &PyArray_Type) {
        PyObject *made = PyObject_CallOneArg(to->lift, x);
        if (made == NULL) {
            if (!PyErr_ExceptionMatches(PyExc_Exception))
                return -1; /* Ctrl-C */
            PyErr_Clear(); /* the function itself says what it does not take */
        }
        int good = made != NULL && Py_TYPE(made) == Array_type ? describe(to, made, depth) : 0;
        Py_XDECREF(made);
        return good;
    }
    if (PyType_Check(x) || PyArray_DescrCheck(x) || type == &Remembered_type)
        return push_item(to, x) < 0 ? -1 : 1;
    return 0;
}

static int describe_call(Signature *to, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    int good = 1;
    for (Py_ssize_t i = 0; i < n && good == 1; i++)
        good = describe(to, args[i], 0);
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < named && good == 1; i++) {
        if (push_item(to, PyTuple_GET_ITEM(names, i)) < 0)
            return -1;
        good = describe(to, args[n + i], 0);
    }
    return good;
}

/* meet(key, args, kwargs): a call that has no program yet. */
static PyObject *remembered_meet(Remembered *self, PyObject *key, PyObject *const *args,
                                 Py_ssize_t n, PyObject *names) {
    PyObject *made = NULL, *kwargs = PyDict_New(), *given = PyTuple_New(n);
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    if (kwargs == NULL || given == NULL)
        goto ended;
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(given, i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; i < named; i++)
        if (PyDict_SetItem(kwargs, PyTuple_GET_ITEM(names, i), args[n + i]) < 0)
            goto ended;
    made = PyObject_CallFunctionObjArgs(self->meet, key, given, kwargs, NULL);
ended:
    Py_XDECREF(kwargs);
    Py_XDECREF(given);
    return made;
}

/* A call without NumPy's floating-point warnings. */
static PyObject *call_quietly(PyObject *program, PyObject *const *args, Py_ssize_t n) {
    if (error_state == NULL)
        return PyObject_Vectorcall(program, args, n, NULL);
    PyObject *token = PyContextVar_Set(error_state, quiet);
    if (token == NULL)
        return NULL;
    PyObject *out = PyObject_Vectorcall(program, args, n, NULL);
    PyObject *type = NULL, *error = NULL, *traceback = NULL;
    if (out == NULL)
        PyErr_Fetch(&type, &error, &traceback);
    int reset = PyContextVar_Reset(error_state, token);
    Py_DECREF(token);
    if (out == NULL) {
        PyErr_Clear();
        PyErr_Restore(type, error, traceback);
    } else if (reset < 0)
        Py_CLEAR(out);
    return out;
}

static PyObject *remembered_call(Remembered *self, PyObject *const *args, size_t nargsf,
                                 PyObject *names) {
    if (tls_trace != NULL)
        return PyObject_Vectorcall(self->fun, args, nargsf, names);
    PyObject *kind = present(s_kind);
    if (kind == NULL)
        return NULL;
    if (kind == Py_None) {
        Py_DECREF(kind);
        return PyObject_Vectorcall(self->fun, args, nargsf, names);
    }
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    Signature found;
    found.items = found.few_items;
    found.hosts = found.few_hosts;
    found.n = found.n_hosts = 0;
    found.lift = self->lift;
    found.room = sizeof found.few_items / sizeof(PyObject *);
    found.room_hosts = sizeof found.few_hosts / sizeof(PyObject *);
    found.items[found.n++] = kind;
    PyObject *out = NULL;
    int good = describe_call(&found, args, n, names);
    if (good == 1) {
        PyObject *key = PyTuple_New(found.n);
        if (key == NULL)
            good = -1;
        else {
            for (Py_ssize_t i = 0; i < found.n; i++)
                PyTuple_SET_ITEM(key, i, found.items[i]);
            found.n = 0;
            PyObject *program = PyDict_GetItemWithError(self->memo, key);
            if (program == NULL)
                out = PyErr_Occurred() ? NULL : remembered_meet(self, key, args, n, names);
            else if (program == Py_None)
                good = 0;
            else {
                Py_INCREF(program);
                out = call_quietly(program, found.hosts, found.n_hosts);
                Py_DECREF(program);
            }
            Py_DECREF(key);
        }
    }
    signature_clear(&found);
    return good ? out : PyObject_Vectorcall(self->fun, args, nargsf, names);
}

static PyObject *remembered_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *fun, *memo, *meet, *lift;
    if (!PyArg_ParseTuple(args, "OO!OO:Remembered", &fun, &PyDict_Type, &memo, &meet, &lift))
        return NULL;
    Remembered *self = (Remembered *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = (vectorcallfunc)remembered_call;
    self->fun = Py_NewRef(fun);
    self->memo = Py_NewRef(memo);
    self->meet = Py_NewRef(meet);
    self->lift = Py_NewRef(lift);
    return (PyObject *)self;
}

static int remembered_traverse(Remembered *self, visitproc visit, void *arg) {
    Py_VISIT(self->fun);
    Py_VISIT(self->memo);
    Py_VISIT(self->meet);
    Py_VISIT(self->lift);
    Py_VISIT(self->dict);
    return 0;
}

/* Cycles lead through the dictionary: the rest may be in use by a call. */
static int remembered_clear(Remembered *self) {
    Py_CLEAR(self->dict);
    return 0;
}

static void remembered_dealloc(Remembered *self) {
    PyObject_GC_UnTrack(self);
    if (self->weak != NULL)
        PyObject_ClearWeakRefs((PyObject *)self);
    Py_CLEAR(self->fun);
    Py_CLEAR(self->memo);
    Py_CLEAR(self->meet);
    Py_CLEAR(self->lift);
    Py_CLEAR(self->dict);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *remembered_repr(Remembered *self) { return PyObject_Repr(self->fun); }

/* Pickled and copied as functions are: by name. */
static PyObject *remembered_reduce(PyObject *self, PyObject *none) {
    return PyObject_GetAttr(self, s_qualname);
}

static PyMethodDef remembered_methods[] = {
    {"__reduce__", remembered_reduce, METH_NOARGS, "The name under which it is found."},
    {NULL},
};

static PyGetSetDef remembered_members[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL},
};

static PyTypeObject Remembered_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "primal.base._fast.Remembered",
    .tp_basicsize = sizeof(Remembered),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = remembered_new,
    .tp_dealloc = (destructor)remembered_dealloc,
    .tp_traverse = (traverseproc)remembered_traverse,
    .tp_clear = (inquiry)remembered_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Remembered, vectorcall),
    .tp_dictoffset = offsetof(Remembered, dict),
    .tp_weaklistoffset = offsetof(Remembered, weak),
    .tp_descr_get = dispatcher_get,
    .tp_repr = (reprfunc)remembered_repr,
    .tp_methods = remembered_methods,
    .tp_getset = remembered_members,
    .tp_doc = "Remembered(fun, memo, meet, lift): a function that skips its decisions.",
};

/* boxed(aval, out): the result of an `impl` as an array. */
static PyObject *boxed(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "expected an aval and a value");
        return NULL;
    }
    return box_result(given[0], Py_NewRef(given[1]));
}

/* typed(aval, value): NumPy's result as an array of that dtype, of another shape if it has one. */
static PyObject *typed(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    PyObject *dtype = n == 2 ? PyObject_GetAttr(given[0], s_dtype) : NULL;
    if (dtype == NULL || !PyArray_DescrCheck(dtype)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "expected an aval with a dtype of NumPy's, a value");
        Py_XDECREF(dtype);
        return NULL;
    }
    /* Takes the reference to the dtype. */
    PyArrayObject *out = (PyArrayObject *)PyArray_FromAny(
        given[1], (PyArray_Descr *)dtype, 0, 0, NPY_ARRAY_FORCECAST | NPY_ARRAY_ENSUREARRAY, NULL);
    PyObject *shape = out == NULL ? NULL : PyObject_GetAttr(given[0], s_shape);
    if (shape == NULL) {
        Py_XDECREF(out);
        return NULL;
    }
    int same = PyArray_NDIM(out) == PyTuple_GET_SIZE(shape);
    for (int i = 0; same && i < PyArray_NDIM(out); i++)
        same = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) == PyArray_DIM(out, i);
    Py_DECREF(shape);
    if (same)
        return box(given[0], (PyObject *)out);
    PyObject *made = NULL, *aval = NULL, *found = PyArray_IntTupleFromIntp(PyArray_NDIM(out),
                                                                           PyArray_DIMS(out));
    if (found != NULL)
        aval = PyObject_CallMethodObjArgs(given[0], s_with_shape, found, NULL);
    if (aval != NULL)
        made = box(aval, Py_NewRef(out));
    Py_XDECREF(found);
    Py_XDECREF(aval);
    Py_DECREF(out);
    return made;
}

static int add_leaf_types(PyObject *value, PyObject *found, int depth) {
    PyTypeObject *last = NULL; /* mostly that of the next one too */
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++) {
        PyObject *x = PySequence_Fast_GET_ITEM(value, i);
        if ((PyList_CheckExact(x) || PyTuple_CheckExact(x)) && depth < NPY_MAXDIMS) {
            if (add_leaf_types(x, found, depth + 1) < 0)
                return -1;
        } else if (Py_TYPE(x) != last) {
            last = (PyTypeObject *)Py_NewRef(Py_TYPE(x));
            int bad = PySet_Add(found, (PyObject *)last);
            Py_DECREF(last);
            if (bad < 0)
                return -1;
        }
    }
    return 0;
}

/* leaf_types(value): the types of what nested lists and tuples hold. */
static PyObject *leaf_types(PyObject *self, PyObject *value) {
    if (!PyList_Check(value) && !PyTuple_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "expected a list or a tuple");
        return NULL;
    }
    PyObject *found = PySet_New(NULL);
    if (found != NULL && add_leaf_types(value, found, 0) < 0)
        Py_CLEAR(found);
    return found;
}

/* --- the buffer protocol, which classes in Python cannot have before 3.12 -------------------------------- */

static int memory_of(PyObject *self, Py_buffer *view, int flags) {
    view->obj = NULL;
    if (flags & PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "arrays are immutable: their memory is read only");
        return -1;
    }
    /* Some ask again with the error of a first attempt still set. */
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyObject *memory = PyObject_CallMethodNoArgs(self, s_memory);
    /* The NumPy array becomes the owner of the view, and keeps the memory. */
    int done = memory == NULL ? -1 : PyObject_GetBuffer(memory, view, flags);
    Py_XDECREF(memory);
    if (done == 0)
        PyErr_Restore(type, error, traceback);
    else {
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
    }
    return done;
}

static PyBufferProcs memory_procs = {memory_of, NULL};

static PyTypeObject Memory_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "primal.base._fast.Memory",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_as_buffer = &memory_procs,
    .tp_doc = "Base of arrays: others read the NumPy array that `_memory` gives.",
};

/* --- loops that NumPy does not have -------------------------------------------------------------- */

enum { MOST_ARGUMENTS = 18 };
typedef void Routine(void *, void *, void *, void *, void *, void *, void *, void *, void *,
                     void *, void *, void *, void *, void *, void *, void *, void *, void *);

/* call_each(address, count, arguments): call a routine of Fortran's `count` times. Its arguments
   are arrays, of which those of two dimensions and more move by one along the first from a call to
   the next; whole numbers; letters; and (bytes,), room to work in. The last one, `info`, is added
   here: a list of them is returned, or None where all are 0. A routine takes no notice of what
   stands after its last argument. */
static PyObject *call_each(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    if (n != 3 || !PyTuple_Check(given[2]) || PyTuple_GET_SIZE(given[2]) >= MOST_ARGUMENTS) {
        PyErr_SetString(PyExc_TypeError, "expected an address, a count and arguments");
        return NULL;
    }
    Routine *routine = (Routine *)PyLong_AsVoidPtr(given[0]);
    Py_ssize_t count = PyLong_AsSsize_t(given[1]), steps[MOST_ARGUMENTS] = {0};
    Py_ssize_t rooms[MOST_ARGUMENTS] = {0}, total = 0, last = PyTuple_GET_SIZE(given[2]);
    char *at[MOST_ARGUMENTS] = {NULL};
    int whole[MOST_ARGUMENTS];
    for (Py_ssize_t i = 0; i < last; i++) {
        PyObject *x = PyTuple_GET_ITEM(given[2], i);
        if (PyArray_Check(x)) {
            at[i] = PyArray_BYTES((PyArrayObject *)x);
            if (PyArray_NDIM((PyArrayObject *)x) > 1)
                steps[i] = PyArray_STRIDE((PyArrayObject *)x, 0);
        } else if (PyLong_Check(x)) {
            long value = PyLong_AsLong(x);
            whole[i] = (int)value;
            at[i] = (char *)&whole[i];
            if (whole[i] != value && !PyErr_Occurred())
                PyErr_Format(PyExc_OverflowError, "LAPACK counts in 32 bits, got %ld", value);
        } else if (PyUnicode_Check(x))
            at[i] = (char *)PyUnicode_AsUTF8(x);
        else if (PyTuple_Check(x) && PyTuple_GET_SIZE(x) == 1) {
            rooms[i] = (PyLong_AsSsize_t(PyTuple_GET_ITEM(x, 0)) + 79) & -64;
            total += rooms[i];
        } else
            PyErr_SetString(PyExc_TypeError, "expected arrays, numbers, letters or rooms");
        if (PyErr_Occurred())
            return NULL;
    }
    char *room = PyMem_RawMalloc(total + count * sizeof(int) + 64);
    if (room == NULL)
        return PyErr_NoMemory();
    char *next = (char *)(((uintptr_t)room + 63) & ~(uintptr_t)63);
    for (Py_ssize_t i = 0; i < last; i++)
        if (rooms[i]) {
            at[i] = next;
            next += rooms[i];
        }
    int *infos = (int *)next, failed = 0;
    at[last] = next;
    steps[last] = sizeof(int);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t c = 0; c < count; c++) {
        infos[c] = 0;
        routine(at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], at[9], at[10],
                at[11], at[12], at[13], at[14], at[15], at[16], at[17]);
        failed |= infos[c];
        for (int i = 0; i <= last; i++)
            at[i] += steps[i];
    }
    Py_END_ALLOW_THREADS
    PyObject *out = failed ? PyList_New(count) : Py_NewRef(Py_None);
    for (Py_ssize_t c = 0; failed && out != NULL && c < count; c++)
        PyList_SET_ITEM(out, c, PyLong_FromLong(infos[c]));
    PyMem_RawFree(room);
    return out;
}

#define JOIN(name, real)                                                                           \
    static void name(npy_intp vectors, npy_intp n, const real *sign, const real *in, real *out) {  \
        for (npy_intp i = 0; i < vectors; i++)                                                     \
            for (npy_intp j = 0; j < n; j++) {                                                     \
                npy_intp at = i * n + j;                                                           \
                out[2 * at] = sign[i] < 0 && i > 0 ? in[at - n] : in[at];                          \
                out[2 * at + 1] = sign[i] > 0 && i + 1 < vectors ? in[at + n]                      \
                                  : sign[i] < 0                  ? -in[at]                         \
                                                                 : 0;                              \
            }                                                                                      \
    }

JOIN(join_32, float)
JOIN(join_64, double)

/* join(sign, packed): complex vectors of n numbers, each of which has a sign: 0 for a real one. Two
   that are conjugates of each other, the first with a positive sign, the second with a negative
   one, are packed as their real part and their imaginary part. Where LAPACK did not converge, the
   signs are anything. */
static PyObject *join(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    PyArrayObject *sign = n == 2 && PyArray_Check(given[0]) ? (PyArrayObject *)given[0] : NULL;
    PyArrayObject *in = n == 2 && PyArray_Check(given[1]) ? (PyArrayObject *)given[1] : NULL;
    if (sign == NULL || in == NULL || !PyArray_IS_C_CONTIGUOUS(in) ||
        !PyArray_IS_C_CONTIGUOUS(sign) || PyArray_NDIM(in) < 1 ||
        PyArray_TYPE(in) != PyArray_TYPE(sign) ||
        (PyArray_TYPE(in) != NPY_FLOAT32 && PyArray_TYPE(in) != NPY_FLOAT64) ||
        PyArray_SIZE(in) != PyArray_SIZE(sign) * PyArray_DIM(in, PyArray_NDIM(in) - 1)) {
        PyErr_SetString(PyExc_TypeError, "expected signs and as many vectors");
        return NULL;
    }
    int single = PyArray_TYPE(in) == NPY_FLOAT32;
    PyArrayObject *out = (PyArrayObject *)PyArray_SimpleNew(
        PyArray_NDIM(in), PyArray_DIMS(in), single ? NPY_COMPLEX64 : NPY_COMPLEX128);
    if (out == NULL)
        return NULL;
    npy_intp vectors = PyArray_SIZE(sign), size = PyArray_DIM(in, PyArray_NDIM(in) - 1);
    if (single)
        join_32(vectors, size, PyArray_DATA(sign), PyArray_DATA(in), PyArray_DATA(out));
    else
        join_64(vectors, size, PyArray_DATA(sign), PyArray_DATA(in), PyArray_DATA(out));
    return (PyObject *)out;
}

#define ZEROS_LIKE(name, bits, infinity)                                                           \
    static int name(npy_intp n, void *zeros, void *like, npy_intp step) {                          \
        bits *out = zeros, sign = (bits)1 << (8 * sizeof(bits) - 1), odd = 0;                      \
        const bits *x = like, inf = infinity;                                                      \
        for (npy_intp i = 0; i < n; i++) {                                                         \
            bits size = out[i] & (bits)~sign;                                                      \
            out[i] = size == 0 ? x[i * step] & sign : out[i];                                      \
            odd |= size >= inf;                                                                    \
        }                                                                                          \
        return odd == 0;                                                                           \
    }

ZEROS_LIKE(zeros_like_32, uint32_t, 0x7f800000u)
ZEROS_LIKE(zeros_like_64, uint64_t, 0x7ff0000000000000u)

/* zeros_like(out, x): give the zeros of `out` the signs of x's elements, in place. Whether all of
   `out` is finite, or None where x is neither one number nor of the shape of `out`. */
static PyObject *zeros_like(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    PyArrayObject *out = n == 2 && PyArray_CheckExact(given[0]) ? (PyArrayObject *)given[0] : NULL;
    PyArrayObject *x = n == 2 && PyArray_CheckExact(given[1]) ? (PyArrayObject *)given[1] : NULL;
    if (out == NULL || x == NULL || PyArray_TYPE(out) != PyArray_TYPE(x) ||
        !(PyArray_SIZE(x) == 1 || PyArray_SAMESHAPE(out, x)) || !PyArray_ISCARRAY(out))
        Py_RETURN_NONE;
    int (*run)(npy_intp, void *, void *, npy_intp) = PyArray_TYPE(x) == NPY_FLOAT32   ? zeros_like_32
                                           : PyArray_TYPE(x) == NPY_FLOAT64 ? zeros_like_64
                                                                            : NULL;
    if (run == NULL)
        Py_RETURN_NONE;
    if ((x = (PyArrayObject *)PyArray_FROM_OF(given[1], NPY_ARRAY_IN_ARRAY |
                                                                 NPY_ARRAY_NOTSWAPPED)) == NULL)
        return NULL;
    int finite = run(PyArray_SIZE(out), PyArray_DATA(out), PyArray_DATA(x), PyArray_SIZE(x) != 1);
    Py_DECREF(x);
    return PyBool_FromLong(finite);
}

#if defined(__x86_64__) && defined(__GLIBC__)
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

#define FINITE(name, bits, whole, infinity)                                                        \
    WIDEST static int name(npy_intp n, const bits *x, int plain) {                                 \
        const bits sign = (bits)1 << (8 * sizeof(bits) - 1), inf = infinity;                       \
        bits most = 0;                                                                             \
        whole least = 0; /* as a whole number, -0 is the least */                                  \
        for (npy_intp i = 0; i < n; i++) {                                                         \
            const bits size = x[i] & (bits)~sign;                                                  \
            most = size > most ? size : most;                                                      \
            least = (whole)x[i] < least ? (whole)x[i] : least;                                     \
        }                                                                                          \
        return most < inf && !(plain && (bits)least == sign);                                      \
    }

FINITE(finite_32, uint32_t, int32_t, 0x7f800000u)
FINITE(finite_64, uint64_t, int64_t, 0x7ff0000000000000u)

static PyObject *all_finite(PyObject *given, int plain) {
    PyArrayObject *x = (PyArrayObject *)PyArray_FROM_O(given);
    if (x == NULL)
        return NULL;
    if (!PyArray_ISONESEGMENT(x) || !PyArray_ISALIGNED(x) || PyArray_ISBYTESWAPPED(x))
        Py_SETREF(x, (PyArrayObject *)PyArray_NewCopy(x, NPY_CORDER));
    if (x == NULL)
        return NULL;
    npy_intp n = PyArray_SIZE(x);
    PyObject *out = NULL;
    switch (PyArray_TYPE(x)) {
    case NPY_CFLOAT: n *= 2; /* fall through */
    case NPY_FLOAT: out = PyBool_FromLong(finite_32(n, PyArray_DATA(x), plain)); break;
    case NPY_CDOUBLE: n *= 2; /* fall through */
    case NPY_DOUBLE: out = PyBool_FromLong(finite_64(n, PyArray_DATA(x), plain)); break;
    default:
        if (PyArray_ISINTEGER(x) || PyArray_ISBOOL(x))
            out = Py_NewRef(Py_True);
        else
            PyErr_SetString(PyExc_TypeError, "expected numbers of 32 or 64 bits");
    }
    Py_DECREF(x);
    return out;
}

/* is_finite(x): whether no number of an array is inf or nan. NumPy takes two calls, 0.6 us. */
static PyObject *is_finite(PyObject *self, PyObject *x) { return all_finite(x, 0); }

/* is_plain(x): whether none is -0 either. */
static PyObject *is_plain(PyObject *self, PyObject *x) { return all_finite(x, 1); }

/* spread(x, shape, places): x with dimension i at places[i] of a shape, repeated along the others;
   None for what is no array of NumPy's. np.broadcast_to takes 2.5 us. */
static PyObject *spread(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    if (n != 3 || !PyTuple_Check(given[1]) || !PyTuple_Check(given[2])) {
        PyErr_SetString(PyExc_TypeError, "expected an array, a shape and places");
        return NULL;
    }
    Py_ssize_t nd = PyTuple_GET_SIZE(given[1]);
    PyArrayObject *x = (PyArrayObject *)given[0];
    if (!PyArray_CheckExact(given[0]) || nd > NPY_MAXDIMS ||
        PyTuple_GET_SIZE(given[2]) != PyArray_NDIM(x))
        Py_RETURN_NONE;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    for (Py_ssize_t i = 0; i < nd; i++) {
        shape[i] = PyNumber_AsSsize_t(PyTuple_GET_ITEM(given[1], i), PyExc_OverflowError);
        strides[i] = 0;
    }
    for (int i = 0; i < PyArray_NDIM(x); i++) {
        Py_ssize_t at = PyNumber_AsSsize_t(PyTuple_GET_ITEM(given[2], i), PyExc_OverflowError);
        if (PyErr_Occurred())
            return NULL;
        if (at < 0 || at >= nd || (PyArray_DIM(x, i) != 1 && PyArray_DIM(x, i) != shape[at]))
            Py_RETURN_NONE;
        if (PyArray_DIM(x, i) == shape[at])
            strides[at] = PyArray_STRIDE(x, i);
    }
    if (PyErr_Occurred())
        return NULL;
    PyArray_Descr *type = PyArray_DESCR(x);
    Py_INCREF(type);
    PyArrayObject *out = (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, type, (int)nd, shape, strides, PyArray_DATA(x), 0, NULL);
    if (out == NULL || PyArray_SetBaseObject(out, Py_NewRef(given[0])) < 0) {
        Py_XDECREF(out);
        return NULL;
    }
    return (PyObject *)out;
}

static void polynomial(const float *row, npy_intp degree, const float *at, float *to, npy_intp n) {
    for (npy_intp i = 0; i < n; i++)
        to[i] = at[i] * row[0] + row[1];
    for (npy_intp k = 2; k < degree; k++)
        for (npy_intp i = 0; i < n; i++)
            to[i] = to[i] * at[i] + row[k];
}

/* horner(coefficients, x): a polynomial of float32, highest degree first. */
static PyObject *horner(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "expected coefficients and an array");
        return NULL;
    }
    PyArrayObject *c = (PyArrayObject *)PyArray_FROM_OTF(given[0], NPY_FLOAT32, NPY_ARRAY_IN_ARRAY);
    PyArrayObject *x = (PyArrayObject *)PyArray_FROM_OTF(given[1], NPY_FLOAT32, NPY_ARRAY_IN_ARRAY);
    PyArrayObject *out = NULL;
    if (c != NULL && PyArray_SIZE(c) < 2)
        PyErr_SetString(PyExc_ValueError, "expected two coefficients or more");
    else if (c != NULL && x != NULL)
        out = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(x), PyArray_DIMS(x), NPY_FLOAT32);
    if (out != NULL) {
        enum { BLOCK = 1024 };
        const float *row = PyArray_DATA(c), *at = PyArray_DATA(x);
        float *to = PyArray_DATA(out);
        npy_intp degree = PyArray_SIZE(c), size = PyArray_SIZE(x);
        for (npy_intp start = 0; start < size; start += BLOCK) {
            npy_intp n = size - start < BLOCK ? size - start : BLOCK;
            polynomial(row, degree, at + start, to + start, n);
        }
    }
    Py_XDECREF(c);
    Py_XDECREF(x);
    return (PyObject *)out;
}

/* erf(x, p, q, flat, exp): x + x p(x^2) where |x| < 1, 1 - exp(q(min(|x|, flat))) with the sign of x
   elsewhere, of float32. The exponential is NumPy's. */
static PyObject *erf_32(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    PyArrayObject *in[3] = {NULL}, *made[3] = {NULL};
    PyObject *done = NULL;
    float flat = n == 5 ? (float)PyFloat_AsDouble(given[3]) : 0;
    int good = n == 5 && !PyErr_Occurred();
    for (int i = 0; good && i < 3; i++) {
        in[i] = (PyArrayObject *)PyArray_FROM_OTF(given[i], NPY_FLOAT32, NPY_ARRAY_IN_ARRAY);
        good = in[i] != NULL && (i == 0 || PyArray_SIZE(in[i]) > 1);
    }
    for (int i = 0; good && i < 3; i++) {
        made[i] = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(in[0]), PyArray_DIMS(in[0]),
                                                     NPY_FLOAT32);
        good = made[i] != NULL;
    }
    if (good) {
        const float *x = PyArray_DATA(in[0]);
        float *inside = PyArray_DATA(made[0]), *outside = PyArray_DATA(made[1]);
        float *at = PyArray_DATA(made[2]);
        npy_intp size = PyArray_SIZE(in[0]);
        for (npy_intp i = 0; i < size; i++)
            at[i] = x[i] * x[i];
        polynomial(PyArray_DATA(in[1]), PyArray_SIZE(in[1]), at, inside, size);
        for (npy_intp i = 0; i < size; i++)
            at[i] = fabsf(x[i]) > flat ? flat : fabsf(x[i]);
        polynomial(PyArray_DATA(in[2]), PyArray_SIZE(in[2]), at, outside, size);
        done = PyObject_CallFunctionObjArgs(given[4], made[1], made[1], NULL);
        for (npy_intp i = 0; done != NULL && i < size; i++) {
            float near = inside[i] * x[i] + x[i], far = copysignf(1 - outside[i], x[i]);
            inside[i] = x[i] * x[i] < 1 ? near : far;
        }
    } else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "expected an array, two polynomials, a limit and exp");
    PyObject *out = done == NULL ? NULL : Py_NewRef(made[0]);
    Py_XDECREF(done);
    for (int i = 0; i < 3; i++) {
        Py_XDECREF(in[i]);
        Py_XDECREF(made[i]);
    }
    return out;
}

/* Sums of rows of float32, in the order in which NumPy adds: 8 sums side by side over 128 numbers,
   then in pairs. NumPy waits for each addition; four rows at a time do not. */
#if defined(__x86_64__) && defined(__GLIBC__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

enum { ROWS = 4, LANES = 8, PAIRED = 128 };
typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));

WIDE static void sum_pieces(const float *x, npy_intp step, npy_intp n, float *out) {
    lanes s[ROWS];
    npy_intp i = 0;
    for (int r = 0; r < ROWS; r++)
        out[r] = -0.0f;
    if (n >= LANES) {
        for (int r = 0; r < ROWS; r++)
            s[r] = *(const lanes *)(x + r * step);
        for (i = LANES; i + LANES <= n; i += LANES)
            for (int r = 0; r < ROWS; r++)
                s[r] += *(const lanes *)(x + r * step + i);
        for (int r = 0; r < ROWS; r++)
            out[r] = ((s[r][0] + s[r][1]) + (s[r][2] + s[r][3])) +
                     ((s[r][4] + s[r][5]) + (s[r][6] + s[r][7]));
    }
    for (; i < n; i++)
        for (int r = 0; r < ROWS; r++)
            out[r] += x[r * step + i];
}

static void sum_pairs(const float *x, npy_intp step, npy_intp n, float *out) {
    if (n <= PAIRED) {
        sum_pieces(x, step, n, out);
        return;
    }
    npy_intp half = n / 2 / LANES * LANES;
    float rest[ROWS];
    sum_pairs(x, step, half, out);
    sum_pairs(x + half, step, n - half, rest);
    for (int r = 0; r < ROWS; r++)
        out[r] += rest[r];
}

/* sum_rows(x): sums along the last axis of float32 numbers that lie in order, as NumPy adds them;
   None for others, and for less than four rows. */
static PyObject *sum_rows(PyObject *self, PyObject *given) {
    PyArrayObject *x = (PyArrayObject *)given;
    int nd = PyArray_CheckExact(given) ? PyArray_NDIM(x) : 0;
    npy_intp n = nd ? PyArray_DIM(x, nd - 1) : 0, m = n ? PyArray_SIZE(x) / n : 0;
    if (m < ROWS || PyArray_TYPE(x) != NPY_FLOAT32 || !PyArray_ISCARRAY_RO(x))
        Py_RETURN_NONE;
    PyArrayObject *out =
        (PyArrayObject *)PyArray_SimpleNew(nd - 1, PyArray_DIMS(x), NPY_FLOAT32);
    if (out == NULL)
        return NULL;
    const float *rows = PyArray_DATA(x);
    float *sums = PyArray_DATA(out);
    Py_BEGIN_ALLOW_THREADS
    for (npy_intp i = 0; i < m; i += ROWS) {
        npy_intp at = i + ROWS <= m ? i : m - ROWS;
        sum_pairs(rows + at * n, n, n, sums + at);
        for (int r = 0; r < ROWS; r++)
            sums[at + r] += 0.0f; /* NumPy begins with 0: a sum is never -0 */
    }
    Py_END_ALLOW_THREADS
    return (PyObject *)out;
}

/* Running sums in blocks, each of which begins with 0 and then has the sum of those before added,
   kept in double precision. NumPy waits for each addition; several blocks at a time do not. */
enum { SPAN = 1024, CHAINS = 8 };

#define RUNNING(name, real)                                                                        \
    static void name(const real *x, real *out, npy_intp n, const int parts) {                      \
        double before[2] = {0, 0};                                                                 \
        for (npy_intp start = 0, many; start < n; start += many * SPAN) {                          \
            many = n - start >= CHAINS * SPAN ? CHAINS : 1;                                        \
            const npy_intp m = n - start < SPAN ? n - start : SPAN, step = (npy_intp)SPAN * parts; \
            for (int part = 0; part < parts; part++) {                                             \
                const real *from = x + start * parts + part;                                       \
                real *to = out + start * parts + part;                                             \
                if (many == CHAINS) {                                                              \
                    real s[CHAINS];                                                                \
                    for (int k = 0; k < CHAINS; k++)                                               \
                        to[k * step] = s[k] = from[k * step];                                      \
                    for (npy_intp i = parts; i < step; i += parts)                                 \
                        for (int k = 0; k < CHAINS; k++)                                           \
                            to[k * step + i] = s[k] += from[k * step + i];                         \
                } else {                                                                           \
                    real s = to[0] = from[0];                                                      \
                    for (npy_intp i = parts; i < m * parts; i += parts)                            \
                        to[i] = s += from[i];                                                      \
                }                                                                                  \
            }                                                                                      \
            for (npy_intp k = 0; k < many; k++) {                                                  \
                real *row = out + (start + k * SPAN) * parts;                                      \
                const real add[2] = {(real)before[0], (real)before[1]};                            \
                before[0] += row[(m - 1) * parts];                                                 \
                before[1] += row[m * parts - 1];                                                   \
                for (npy_intp i = 0; i < m; i++)                                                   \
                    for (int part = 0; part < parts; part++)                                       \
                        row[i * parts + part] += add[part];                                        \
            }                                                                                      \
        }                                                                                          \
    }

RUNNING(running_32, float)
RUNNING(running_64, double)

/* running_sums(x): of floats or complex numbers of NumPy's, along the last axis. */
static PyObject *running_sums(PyObject *self, PyObject *given) {
    const int type = PyArray_CheckExact(given) ? PyArray_TYPE((PyArrayObject *)given) : -1;
    const int parts = type == NPY_CFLOAT || type == NPY_CDOUBLE ? 2 : 1;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE && parts == 1) ||
        PyArray_NDIM((PyArrayObject *)given) < 1) {
        PyErr_SetString(PyExc_TypeError, "expected rows of floats or complex numbers");
        return NULL;
    }
    PyArrayObject *x =
        (PyArrayObject *)PyArray_FROM_OF(given, NPY_ARRAY_IN_ARRAY | NPY_ARRAY_NOTSWAPPED);
    if (x == NULL)
        return NULL;
    const int nd = PyArray_NDIM(x);
    const npy_intp n = PyArray_DIM(x, nd - 1), rows = n ? PyArray_SIZE(x) / n : 0;
    PyArrayObject *out =
        (PyArrayObject *)fresh_array(PyArray_DescrFromType(type), nd, PyArray_DIMS(x));
    if (out != NULL) {
        const char *from = PyArray_DATA(x);
        char *to = PyArray_DATA(out);
        const npy_intp row = n * PyArray_ITEMSIZE(x);
        Py_BEGIN_ALLOW_THREADS
        for (npy_intp r = 0; r < rows; r++)
            if (type == NPY_FLOAT || type == NPY_CFLOAT)
                running_32((const float *)(from + r * row), (float *)(to + r * row), n, parts);
            else
                running_64((const double *)(from + r * row), (double *)(to + r * row), n, parts);
        Py_END_ALLOW_THREADS
    }
    Py_DECREF(x);
    return (PyObject *)out;
}

/* --- extrema -------------------------------------------------------------------------------------- */

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
        } else                                                                                     \
            for (npy_intp start = 0; start < n; start += TILE) {                                   \
                const npy_intp m = n - start < TILE ? n - start : TILE;                            \
                const char *x = args[0] + start * p, *y = args[1] + start * q;                     \
                char *to = args[2] + start * r;                                                    \
                real a[TILE], b[TILE];                                                             \
                for (npy_intp i = 0; p != one && i < m; i++)                                       \
                    a[i] = *(const real *)(x + i * p);                                             \
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

static PyUFuncGenericFunction maximum_loops[] = {maximum_32, maximum_64};
static PyUFuncGenericFunction fmax_loops[] = {fmax_32, fmax_64};
static PyUFuncGenericFunction fmin_loops[] = {fmin_32, fmin_64};
static PyUFuncGenericFunction minimum_loops[] = {minimum_32, minimum_64};
static PyUFuncGenericFunction clamp_loops[] = {clamp_32, clamp_64};
static void *no_data[] = {NULL, NULL};
static const char loop_types[] = {NPY_FLOAT, NPY_FLOAT, NPY_FLOAT, NPY_FLOAT,
                                  NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE};

static int add_ufuncs(PyObject *module) {
    struct {
        const char *name;
        PyUFuncGenericFunction *loops;
        int operands, identity;
    } made[] = {
        {"maximum", maximum_loops, 2, PyUFunc_ReorderableNone},
        {"minimum", minimum_loops, 2, PyUFunc_ReorderableNone},
        {"fmax", fmax_loops, 2, PyUFunc_None},
        {"fmin", fmin_loops, 2, PyUFunc_None},
        {"clamp", clamp_loops, 3, PyUFunc_None},
    };
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        /* From the second: as many of the one type as of the other around the middle. */
        PyObject *ufunc = PyUFunc_FromFuncAndData(
            made[i].loops, no_data, loop_types + (made[i].operands == 2 ? 1 : 0), 2,
            made[i].operands, 1, made[i].identity, made[i].name, "Of float32 and float64.", 0);
        if (ufunc == NULL || PyModule_AddObjectRef(module, made[i].name, ufunc) < 0) {
            Py_XDECREF(ufunc);
            return -1;
        }
        Py_DECREF(ufunc);
    }
    return 0;
}

/* --- orders --------------------------------------------------------------------------------------- */

/* The stable order of numbers, which NumPy has vector code for only where equal ones may change
   places. Numbers become unsigned keys that ascend as they do: -0 is 0, and every NaN is the
   greatest. A row of keys that ascend already is its own order. Of few keys the places are counted
   (each is the number of those before it), which has no branches; more are put by 8 or 11 bits at a
   time, the lowest first, leaving out bits that all keys share. */

#define KEYS(name, number, bits, key_of)                                                           \
    WIDEST static void name(const number *x, npy_intp n, bits *out) {                              \
        for (npy_intp i = 0; i < n; i++)                                                           \
            out[i] = key_of;                                                                       \
    }

/* Of a float's bits v, whose last ones are `low`: negative ones are turned round. */
#define FLOAT_KEY(v, sign, infinity)                                                               \
    (((v) & ~(sign)) > (infinity) ? (sign) + ((sign)-1)                                            \
     : ((v) & ~(sign)) == 0       ? (sign)                                                         \
     : (v) & (sign)               ? (sign) + ((sign)-1) - (v)                                      \
                                  : (v) | (sign))

#define TOP_32 (1u << 31)
#define TOP_64 ((uint64_t)1 << 63)
KEYS(keys_f2, uint16_t, uint32_t, FLOAT_KEY((uint32_t)x[i], 0x8000u, 0x7c00u))
KEYS(keys_f4, uint32_t, uint32_t, FLOAT_KEY(x[i], TOP_32, 0x7f800000u))
KEYS(keys_f8, uint64_t, uint64_t, FLOAT_KEY(x[i], TOP_64, (uint64_t)0x7ff0000000000000u))
KEYS(keys_i1, int8_t, uint32_t, (uint32_t)x[i] ^ TOP_32)
KEYS(keys_i2, int16_t, uint32_t, (uint32_t)x[i] ^ TOP_32)
KEYS(keys_i4, int32_t, uint32_t, (uint32_t)x[i] ^ TOP_32)
KEYS(keys_i8, int64_t, uint64_t, (uint64_t)x[i] ^ TOP_64)
KEYS(keys_u1, uint8_t, uint32_t, x[i])
KEYS(keys_u2, uint16_t, uint32_t, x[i])
KEYS(keys_u4, uint32_t, uint32_t, x[i])
KEYS(keys_u8, uint64_t, uint64_t, x[i])

/* Of complex numbers, the real part above the imaginary part. */
static void keys_c8(const uint32_t *x, npy_intp n, uint64_t *out) {
    keys_f4(x, 2 * n, (uint32_t *)out);
    for (npy_intp i = 0; i < n; i++) {
        const uint32_t *two = (const uint32_t *)(out + i);
        out[i] = (uint64_t)two[0] << 32 | two[1];
    }
}

enum { COUNTED = 64, SHORT_DIGIT = 8, LONG_DIGIT = 11, LONG_ROW = 4096 };

/* Keys lie in whole vectors, behind them the greatest. Whether all ascend already, and of others
   which bits differ, after the least key was taken from all. */
#define SURVEY(name, bits)                                                                         \
    WIDEST static int name(bits *keys, npy_intp n, bits *differ) {                                 \
        bits falls = 0, least = keys[0], vary = 0;                                                 \
        for (npy_intp i = 1; i < n; i++) {                                                         \
            falls |= keys[i] < keys[i - 1];                                                        \
            least = keys[i] < least ? keys[i] : least;                                             \
        }                                                                                          \
        for (npy_intp i = 0; falls && i < n; i++)                                                  \
            vary |= keys[i] -= least;                                                              \
        *differ = vary;                                                                            \
        return falls != 0;                                                                         \
    }

SURVEY(survey_32, uint32_t)
SURVEY(survey_64, uint64_t)

#define COUNT_PLACES(name, bits, many, target)                                                     \
    typedef bits name##_keys __attribute__((vector_size(sizeof(bits) * many), aligned(8)));        \
    target static void name(bits *keys, int n, npy_intp *out) {                                    \
        name##_keys lane;                                                                          \
        for (int i = 0; i < many; i++)                                                             \
            lane[i] = i;                                                                           \
        for (int i = n; i % many; i++)                                                             \
            keys[i] = ~(bits)0;                                                                    \
        for (int start = 0; start < n; start += many) {                                            \
            const name##_keys mine = *(const name##_keys *)(keys + start);                         \
            name##_keys place = {0};                                                               \
            int j = 0;                                                                             \
            for (; j < start; j++)                                                                 \
                place -= (name##_keys)(keys[j] <= mine);                                           \
            for (; j < start + many && j < n; j++)                                                 \
                place -= (name##_keys)((keys[j] < mine) |                                          \
                                       ((keys[j] == mine) & ((bits)(j - start) < lane)));          \
            for (; j < n; j++)                                                                     \
                place -= (name##_keys)(keys[j] < mine);                                            \
            for (int i = 0; i < many && start + i < n; i++)                                        \
                out[place[i]] = start + i;                                                         \
        }                                                                                          \
    }

#ifdef __x86_64__
COUNT_PLACES(count_wide_32, uint32_t, 16, __attribute__((target("avx512f"))))
COUNT_PLACES(count_wide_64, uint64_t, 8, __attribute__((target("avx512f"))))
#endif
COUNT_PLACES(count_any_32, uint32_t, 4, )
COUNT_PLACES(count_any_64, uint64_t, 2, )

static void count_places_32(uint32_t *keys, int n, npy_intp *out) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        count_wide_32(keys, n, out);
        return;
    }
#endif
    count_any_32(keys, n, out);
}

static void count_places_64(uint64_t *keys, int n, npy_intp *out) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        count_wide_64(keys, n, out);
        return;
    }
#endif
    count_any_64(keys, n, out);
}

/* Pairs of a key above and a place below, put in the order of the keys' bits that differ; what is
   in `pairs` or, after an odd number of passes, in `room`. */
static uint64_t *by_digits(uint64_t *pairs, uint64_t *room, npy_intp n, uint32_t differ) {
    const int digit = n < LONG_ROW ? SHORT_DIGIT : LONG_DIGIT;
    while (differ) {
        const int low = __builtin_ctz(differ), shift = 32 + low;
        const uint32_t mask = (1u << digit) - 1;
        uint32_t starts[1 << LONG_DIGIT];
        memset(starts, 0, sizeof *starts << digit);
        for (npy_intp i = 0; i < n; i++)
            starts[pairs[i] >> shift & mask]++;
        for (uint32_t at = 0, d = 0; d <= mask; d++) {
            uint32_t many = starts[d];
            starts[d] = at;
            at += many;
        }
        for (npy_intp i = 0; i < n; i++)
            room[starts[pairs[i] >> shift & mask]++] = pairs[i];
        uint64_t *other = pairs;
        pairs = room;
        room = other;
        differ = low + digit < 32 ? differ >> (low + digit) << (low + digit) : 0;
    }
    return pairs;
}

static void order_32(const uint32_t *keys, uint32_t differ, npy_intp n, uint64_t *room,
                     npy_intp *out) {
    for (npy_intp i = 0; i < n; i++)
        room[i] = (uint64_t)keys[i] << 32 | (uint64_t)i;
    room = by_digits(room, room + n, n, differ);
    for (npy_intp i = 0; i < n; i++)
        out[i] = (npy_intp)(uint32_t)room[i];
}

/* By the upper halves of the keys first: among numbers that are drawn, few of these are equal. */
static void order_64(const uint64_t *keys, uint64_t differ, npy_intp n, uint64_t *room,
                     npy_intp *out) {
    for (npy_intp i = 0; i < n; i++)
        room[i] = (keys[i] >> 32) << 32 | (uint64_t)i;
    uint64_t *pairs = by_digits(room, room + n, n, (uint32_t)(differ >> 32));
    uint64_t *other = pairs == room ? room + n : room;
    if ((uint32_t)differ)
        for (npy_intp i = 0, end; i < n; i = end) {
            const uint64_t upper = pairs[i] >> 32;
            for (end = i + 1; end < n && pairs[end] >> 32 == upper;)
                end++;
            if (end - i == 1)
                continue;
            uint32_t vary = 0;
            for (npy_intp k = i; k < end; k++) {
                const uint64_t place = (uint32_t)pairs[k], lower = (uint32_t)keys[place];
                vary |= (uint32_t)lower ^ (uint32_t)keys[(uint32_t)pairs[i]];
                pairs[k] = lower << 32 | place;
            }
            if (end - i <= COUNTED)
                for (npy_intp k = i + 1; k < end; k++) { /* places ascend: pairs are distinct */
                    const uint64_t one = pairs[k];
                    npy_intp at = k;
                    for (; at > i && pairs[at - 1] > one; at--)
                        pairs[at] = pairs[at - 1];
                    pairs[at] = one;
                }
            else {
                uint64_t *found = by_digits(pairs + i, other + i, end - i, vary);
                if (found != pairs + i)
                    memcpy(pairs + i, found, (end - i) * sizeof *pairs);
            }
        }
    for (npy_intp i = 0; i < n; i++)
        out[i] = (npy_intp)(uint32_t)pairs[i];
}

#define ORDER_ROW(width)                                                                           \
    static void order_row_##width(uint##width##_t *keys, npy_intp n, uint64_t *room,               \
                                  npy_intp *out) {                                                 \
        uint##width##_t differ;                                                                    \
        if (n <= COUNTED)                                                                          \
            count_places_##width(keys, (int)n, out);                                               \
        else if (survey_##width(keys, n, &differ))                                                 \
            order_##width(keys, differ, n, room, out);                                             \
        else                                                                                       \
            for (npy_intp i = 0; i < n; i++)                                                       \
                out[i] = i;                                                                        \
    }

ORDER_ROW(32)
ORDER_ROW(64)

#define ORDER_ROWS(type, width, keys_of)                                                           \
    case type:                                                                                     \
        for (npy_intp r = 0; r < rows; r++) {                                                      \
            keys_of((const void *)(from + r * n * size), n, (void *)keys);                         \
            order_row_##width((void *)keys, n, keys + whole, to + r * n);                          \
        }                                                                                          \
        break;

/* order(x): the places of numbers along the last axis, in ascending order, equal ones in the order
   they have; None for other dtypes. */
static PyObject *order(PyObject *self, PyObject *given) {
    if (!PyArray_CheckExact(given) || PyArray_NDIM((PyArrayObject *)given) < 1)
        Py_RETURN_NONE;
    PyArrayObject *x = (PyArrayObject *)given;
    const int type = PyArray_TYPE(x), nd = PyArray_NDIM(x);
    const npy_intp n = PyArray_DIM(x, nd - 1), rows = n ? PyArray_SIZE(x) / n : 0;
    if (!(PyTypeNum_ISINTEGER(type) || type == NPY_BOOL || type == NPY_HALF ||
          type == NPY_FLOAT || type == NPY_DOUBLE || type == NPY_CFLOAT) || n > INT32_MAX)
        Py_RETURN_NONE;
    x = (PyArrayObject *)PyArray_FROM_OF(given, NPY_ARRAY_IN_ARRAY | NPY_ARRAY_NOTSWAPPED);
    if (x == NULL)
        return NULL;
    const npy_intp size = PyArray_ITEMSIZE(x);
    PyArrayObject *out = (PyArrayObject *)fresh_array(PyArray_DescrFromType(NPY_INTP), nd,
                                                      PyArray_DIMS(x));
    const npy_intp whole = (n + 15) & ~(npy_intp)15; /* vectors of keys */
    uint64_t *keys = rows ? PyMem_RawMalloc((whole + 2 * n) * sizeof *keys) : NULL;
    if (out == NULL || (rows && keys == NULL)) {
        Py_DECREF(x);
        Py_XDECREF(out);
        PyMem_RawFree(keys);
        return out == NULL ? NULL : PyErr_NoMemory();
    }
    const char *from = PyArray_DATA(x);
    npy_intp *to = PyArray_DATA(out);
    Py_BEGIN_ALLOW_THREADS
    switch (type) {
        ORDER_ROWS(NPY_BOOL, 32, keys_u1)
        ORDER_ROWS(NPY_HALF, 32, keys_f2)
        ORDER_ROWS(NPY_FLOAT, 32, keys_f4)
        ORDER_ROWS(NPY_DOUBLE, 64, keys_f8)
        ORDER_ROWS(NPY_CFLOAT, 64, keys_c8)
    default:
        switch (PyTypeNum_ISSIGNED(type) ? -size : size) {
            ORDER_ROWS(-1, 32, keys_i1)
            ORDER_ROWS(-2, 32, keys_i2)
            ORDER_ROWS(-4, 32, keys_i4)
            ORDER_ROWS(-8, 64, keys_i8)
            ORDER_ROWS(1, 32, keys_u1)
            ORDER_ROWS(2, 32, keys_u2)
            ORDER_ROWS(4, 32, keys_u4)
            ORDER_ROWS(8, 64, keys_u8)
        }
    }
    Py_END_ALLOW_THREADS
    PyMem_RawFree(keys);
    Py_DECREF(x);
    return (PyObject *)out;
}

enum { PIECE = 64 };

/* Zeros of two signs are equal, and keep the order that they have in x. NumPy's vectors may also
   make two of one sign out of them, so that x alone says which there are. Zeros are copied by the
   whole piece of x where all of it are, and a piece without any is passed over. */
#define ZEROS_IN_ORDER(name, bits, infinity)                                                       \
    WIDEST static void name(char *out, npy_intp step, const char *x, npy_intp from, npy_intp n) {  \
        const bits sign = (bits)1 << (8 * sizeof(bits) - 1), size = (bits)~sign, inf = infinity;   \
        npy_intp begin = 0, end;                                                                   \
        for (npy_intp high = n; begin < high;) {                                                   \
            const npy_intp mid = begin + (high - begin) / 2;                                       \
            const bits v = *(const bits *)(out + mid * step);                                      \
            if (v & sign && (v & size) && (v & size) <= inf)                                       \
                begin = mid + 1;                                                                   \
            else                                                                                   \
                high = mid;                                                                        \
        }                                                                                          \
        end = begin;                                                                               \
        for (npy_intp high = n; end < high;) {                                                     \
            const npy_intp mid = end + (high - end) / 2;                                           \
            if (*(const bits *)(out + mid * step) & size)                                          \
                high = mid;                                                                        \
            else                                                                                   \
                end = mid + 1;                                                                     \
        }                                                                                          \
        for (npy_intp i = 0, m; begin < end; i += m) {                                             \
            m = n - i < PIECE ? n - i : PIECE;                                                     \
            npy_intp zeros = -1;                                                                   \
            const bits *v = (const bits *)(x + i * from);                                          \
            if (m == PIECE && from == sizeof(bits) && step == sizeof(bits)) {                      \
                bits many = 0;                                                                     \
                for (int k = 0; k < PIECE; k++)                                                    \
                    many += (v[k] & size) == 0;                                                    \
                zeros = (npy_intp)many;                                                            \
            }                                                                                      \
            if (zeros == PIECE) {                                                                  \
                memcpy(out + begin * step, v, sizeof(bits) * PIECE);                               \
                begin += PIECE;                                                                    \
            } else if (zeros)                                                                      \
                for (npy_intp k = 0; k < m; k++) {                                                 \
                    const bits one = *(const bits *)((const char *)v + k * from);                  \
                    if ((one & size) == 0)                                                         \
                        *(bits *)(out + begin++ * step) = one;                                     \
                }                                                                                  \
        }                                                                                          \
    }

ZEROS_IN_ORDER(zeros_in_order_16, uint16_t, 0x7c00u)
ZEROS_IN_ORDER(zeros_in_order_32, uint32_t, 0x7f800000u)
ZEROS_IN_ORDER(zeros_in_order_64, uint64_t, 0x7ff0000000000000u)

/* zeros_in_order(out, x, axis): give zeros of `out`, which is x sorted, the order that they have in
   x, in place. */
static PyObject *zeros_in_order(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    int axis = n == 3 ? (int)PyLong_AsLong(given[2]) : -1;
    PyArrayObject *out = n == 3 && PyArray_CheckExact(given[0]) ? (PyArrayObject *)given[0] : NULL;
    PyArrayObject *x = n == 3 && PyArray_CheckExact(given[1]) ? (PyArrayObject *)given[1] : NULL;
    if (out == NULL || x == NULL || axis < 0 || axis >= PyArray_NDIM(x) ||
        PyArray_TYPE(x) != PyArray_TYPE(out) || !PyArray_SAMESHAPE(x, out) ||
        !PyArray_ISBEHAVED(out) || !PyArray_ISBEHAVED_RO(x)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "expected two arrays of one shape and dtype, an axis");
        return NULL;
    }
    void (*run)(char *, npy_intp, const char *, npy_intp, npy_intp) =
        PyArray_TYPE(x) == NPY_HALF     ? zeros_in_order_16
        : PyArray_TYPE(x) == NPY_FLOAT  ? zeros_in_order_32
        : PyArray_TYPE(x) == NPY_DOUBLE ? zeros_in_order_64
                                        : NULL;
    if (run == NULL || PyArray_SIZE(x) == 0)
        Py_RETURN_NONE;
    PyArrayIterObject *to = (PyArrayIterObject *)PyArray_IterAllButAxis(given[0], &axis);
    PyArrayIterObject *from = (PyArrayIterObject *)PyArray_IterAllButAxis(given[1], &axis);
    if (to == NULL || from == NULL) {
        Py_XDECREF(to);
        Py_XDECREF(from);
        return NULL;
    }
    for (; PyArray_ITER_NOTDONE(to); ) {
        run(PyArray_ITER_DATA(to), PyArray_STRIDE(out, axis), PyArray_ITER_DATA(from),
            PyArray_STRIDE(x, axis), PyArray_DIM(x, axis));
        PyArray_ITER_NEXT(to);
        PyArray_ITER_NEXT(from);
    }
    Py_DECREF(to);
    Py_DECREF(from);
    Py_RETURN_NONE;
}

/* --- floats as integers ----------------------------------------------------------------------------- */

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

/* whole(x, dtype): floats of 32 or 64 bits as integers of at most 32; None for other dtypes. */
static PyObject *whole(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    if (n != 2 || !PyArray_CheckExact(given[0]) || !PyArray_DescrCheck(given[1]))
        Py_RETURN_NONE;
    PyArray_Descr *descr = (PyArray_Descr *)given[1];
    const int type = PyArray_TYPE((PyArrayObject *)given[0]), to = descr->type_num;
    const int size = PyTypeNum_ISINTEGER(to) ? (int)PyDataType_ELSIZE(descr) : 0;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || size < 1 || size > 4)
        Py_RETURN_NONE;
    PyArrayObject *x =
        (PyArrayObject *)PyArray_FROM_OF(given[0], NPY_ARRAY_IN_ARRAY | NPY_ARRAY_NOTSWAPPED);
    if (x == NULL)
        return NULL;
    PyArrayObject *out = (PyArrayObject *)fresh_array((PyArray_Descr *)Py_NewRef(given[1]),
                                                      PyArray_NDIM(x), PyArray_DIMS(x));
    if (out != NULL) {
        const void *from = PyArray_DATA(x);
        void *made = PyArray_DATA(out);
        const npy_intp many = PyArray_SIZE(x);
#define CUT(one, name)                                                                             \
    case one:                                                                                      \
        type == NPY_FLOAT ? whole_32_##name(from, made, many) : whole_64_##name(from, made, many);             \
        break;
        Py_BEGIN_ALLOW_THREADS
        switch (PyTypeNum_ISSIGNED(to) ? -size : size) {
            CUT(-1, i1)
            CUT(-2, i2)
            CUT(-4, i4)
            CUT(1, u1)
            CUT(2, u2)
            CUT(4, u4)
        }
        Py_END_ALLOW_THREADS
    }
    Py_DECREF(x);
    return (PyObject *)out;
}

/* --- float16 ---------------------------------------------------------------------------------------- */

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

static PyObject *converted(PyObject *given, int from, int to) {
    PyArrayObject *x = (PyArrayObject *)PyArray_FROM_OTF(given, from, NPY_ARRAY_IN_ARRAY);
    if (x == NULL)
        return NULL;
    PyArrayObject *out = (PyArrayObject *)fresh_array(PyArray_DescrFromType(to), PyArray_NDIM(x),
                                                      PyArray_DIMS(x));
    if (out != NULL) {
        const npy_intp n = PyArray_SIZE(x);
        void *in = PyArray_DATA(x), *made = PyArray_DATA(out);
#ifdef __x86_64__
        Py_BEGIN_ALLOW_THREADS
        to == NPY_HALF ? narrow(in, made, n) : widen(in, made, n);
        Py_END_ALLOW_THREADS
#endif
    }
    Py_DECREF(x);
    return (PyObject *)out;
}

/* by_eights(): whether the CPU has the instructions for `widened` and `narrowed`. */
static PyObject *by_eights(PyObject *self, PyObject *none) {
#ifdef __x86_64__
    return PyBool_FromLong(__builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c"));
#else
    Py_RETURN_FALSE;
#endif
}

static PyObject *widened(PyObject *self, PyObject *x) { return converted(x, NPY_HALF, NPY_FLOAT); }

static PyObject *narrowed(PyObject *self, PyObject *x) { return converted(x, NPY_FLOAT, NPY_HALF); }

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

/* --- the module -------------------------------------------------------------------------------------- */

static int offset_of(PyObject *type, const char *name, Py_ssize_t *at) {
    PyObject *member = PyObject_GetAttrString(type, name);
    if (member == NULL)
        return -1;
    if (Py_TYPE(member) != &PyMemberDescr_Type) {
        PyErr_Format(PyExc_TypeError, "expected %s to be a slot", name);
        Py_DECREF(member);
        return -1;
    }
    *at = ((PyMemberDescrObject *)member)->d_member->offset;
    Py_DECREF(member);
    return 0;
}

/* install(**objects): hand over what this file works with. */
static PyObject *install(PyObject *self, PyObject *args, PyObject *kwargs) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    struct { const char *name; PyObject **place; } plain[] = {
        {"settings_var", &settings_var}, {"leaf", &leaf_mark}, {"take_apart", &take_apart},
        {"unflatten", &unflatten_slow}, {"has_own_rules", &has_own_rules},
        {"error_state", &error_state}, {"quiet", &quiet}, {"filter_error", &filter_error},
        {"eager_slow", &eager_slow},
    };
    while (kwargs != NULL && PyDict_Next(kwargs, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8(key);
        int known = 0;
        if (name == NULL)
            return NULL;
        for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
            if (strcmp(name, plain[i].name) == 0) {
                Py_XSETREF(*plain[i].place, Py_NewRef(value));
                known = 1;
            }
        if (strcmp(name, "array") == 0) {
            if (offset_of(value, "aval", &aval_at) < 0 || offset_of(value, "host", &host_at) < 0 ||
                offset_of(value, "buffer", &buffer_at) < 0 ||
                offset_of(value, "placement", &placement_at) < 0)
                return NULL;
            Array_type = (PyTypeObject *)Py_NewRef(value);
            known = 1;
        } else if (strcmp(name, "literal") == 0) {
            if (offset_of(value, "aval", &literal_aval_at) < 0 ||
                offset_of(value, "host", &literal_host_at) < 0)
                return NULL;
            Literal_type = (PyTypeObject *)Py_NewRef(value);
            known = 1;
        }
        if (!known)
            return PyErr_Format(PyExc_TypeError, "install does not know %U", key);
    }
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
    {"install", (PyCFunction)(void (*)(void))install, METH_VARARGS | METH_KEYWORDS,
     "Hand over classes and functions."},
    {"process", (PyCFunction)(void (*)(void))process, METH_FASTCALL,
     "process(op, args, params): run an operation at once."},
    {"boxed", (PyCFunction)(void (*)(void))boxed, METH_FASTCALL,
     "boxed(aval, value): an array of the value."},
    {"typed", (PyCFunction)(void (*)(void))typed, METH_FASTCALL,
     "typed(aval, value): an array of the value in that dtype, of the value's shape."},
    {"leaf_types", leaf_types, METH_O, "The types of what nested lists and tuples hold."},
    {"is_plain", is_plain, METH_O, "Whether no number of an array is inf, nan or -0."},
    {"is_finite", is_finite, METH_O, "Whether no number of an array is inf or nan."},
    {"empty", (PyCFunction)(void (*)(void))empty, METH_FASTCALL,
     "empty(shape, dtype): an array in memory that is used again."},
    {"drop_memory", drop_memory, METH_NOARGS, "Give back the memory of dead results."},
    {"call_each", (PyCFunction)(void (*)(void))call_each, METH_FASTCALL,
     "call_each(address, count, arguments): a routine of Fortran's on each of a stack."},
    {"zeros_like", (PyCFunction)(void (*)(void))zeros_like, METH_FASTCALL,
     "zeros_like(out, x): zeros with the signs of x; whether all of out is finite."},
    {"spread", (PyCFunction)(void (*)(void))spread, METH_FASTCALL,
     "spread(x, shape, places): an array repeated along new dimensions, as a view."},
    {"threefry", (PyCFunction)(void (*)(void))threefry, METH_FASTCALL,
     "threefry(k1, k2, x, y): hash pairs of uint32 in place."},
    {"horner", (PyCFunction)(void (*)(void))horner, METH_FASTCALL,
     "horner(coefficients, x): a polynomial of float32."},
    {"order", order, METH_O, "The stable order of numbers along the last axis."},
    {"zeros_in_order", (PyCFunction)(void (*)(void))zeros_in_order, METH_FASTCALL,
     "zeros_in_order(out, x, axis): zeros of x sorted, in the order of those of x."},
    {"whole", (PyCFunction)(void (*)(void))whole, METH_FASTCALL,
     "whole(x, dtype): floats cut off as integers, within their range."},
    {"running_sums", running_sums, METH_O, "Sums so far along the last axis, in blocks."},
    {"by_eights", by_eights, METH_NOARGS, "Whether the CPU can do the next two."},
    {"widened", widened, METH_O, "float16 as float32."},
    {"narrowed", narrowed, METH_O, "float32 as float16."},
    {"sum_rows", sum_rows, METH_O, "Sums of float32 along the last axis, as NumPy adds."},
    {"erf", (PyCFunction)(void (*)(void))erf_32, METH_FASTCALL,
     "erf(x, p, q, flat, exp): the error function of float32 by two polynomials."},
    {"join", (PyCFunction)(void (*)(void))join, METH_FASTCALL,
     "join(sign, packed): complex vectors out of packed pairs."},
    {"install_root", install_root, METH_O, "Set the trace of threads that transform nothing."},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "primal.base._fast",
    .m_doc = "The hot paths in C.",
    .m_size = -1,
    .m_methods = module_methods,
};

PyMODINIT_FUNC PyInit__fast(void) {
    import_array();
    import_umath();
    struct { PyObject **place; const char *text; } names[] = {
        {&s_key, "jit_key"}, {&s_eager_key, "eager_key"}, {&s_slowly, "_call_slowly"}, {&s_impl, "impl"},
        {&s_eager, "eager"}, {&s_process, "process"}, {&s_kind, "remembered"},
        {&s_memory, "_memory"}, {&s_qualname, "__qualname__"}, {&s_dtype, "dtype"},
        {&s_shape, "shape"}, {&s_with_shape, "with_shape"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((*names[i].place = PyUnicode_InternFromString(names[i].text)) == NULL)
            return NULL;
    if (rooms_ready() < 0)
        return NULL;
    root_trace = Py_NewRef(Py_None);
    if ((no_axes = PyTuple_New(0)) == NULL)
        return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made == NULL)
        return NULL;
    PyTypeObject *types[] = {&State_type, &Native_type, &Entry_type, &Dispatcher_type,
                             &Callable_type, &Remembered_type, &Memory_type};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyModule_AddType(made, types[i]) < 0) {
            Py_DECREF(made);
            return NULL;
        }
    if (PyModule_AddIntConstant(made, "VERSION", VERSION) < 0 || add_ufuncs(made) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
