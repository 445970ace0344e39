/* What a jitted function remembers of one signature, and whether a call has it. */

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
