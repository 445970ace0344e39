/* Functions of several operations: calls like one that was met before run its program. */

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
                out = call_quietly(program, found.hosts, found.n_hosts, NULL);
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

/* The function as it was written; `fun` is what was made of it. */
static PyObject *remembered_wrapped(Remembered *self) {
    PyObject *wrapped = PyObject_GetAttrString((PyObject *)self, "__wrapped__");
    if (wrapped != NULL)
        return wrapped;
    PyErr_Clear();
    return Py_NewRef(self->fun);
}

static PyObject *remembered_repr(Remembered *self) {
    PyObject *wrapped = remembered_wrapped(self);
    PyObject *text = PyObject_Repr(wrapped);
    Py_DECREF(wrapped);
    return text;
}

/* Pickled and copied as functions are: by name. */
static PyObject *remembered_reduce(PyObject *self, PyObject *none) {
    return PyObject_GetAttr(self, s_qualname);
}

static PyMethodDef remembered_methods[] = {
    {"__reduce__", remembered_reduce, METH_NOARGS, "The name under which it is found."},
    {NULL},
};

/* What looks for functions, as `inspect.isfunction`, finds one, as it does without the extension. */
static PyObject *remembered_class(PyObject *self, void *none) {
    PyObject *wrapped = remembered_wrapped((Remembered *)self);
    PyObject *type = Py_NewRef((PyObject *)Py_TYPE(wrapped));
    Py_DECREF(wrapped);
    return type;
}

static PyObject *remembered_part(PyObject *self, void *name) {
    PyObject *wrapped = remembered_wrapped((Remembered *)self);
    PyObject *part = PyObject_GetAttrString(wrapped, name);
    Py_DECREF(wrapped);
    return part;
}

static PyGetSetDef remembered_members[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {"__class__", remembered_class, NULL, NULL, NULL},
    {"__code__", remembered_part, NULL, NULL, "__code__"},
    {"__globals__", remembered_part, NULL, NULL, "__globals__"},
    {"__closure__", remembered_part, NULL, NULL, "__closure__"},
    {"__defaults__", remembered_part, NULL, NULL, "__defaults__"},
    {"__kwdefaults__", remembered_part, NULL, NULL, "__kwdefaults__"},
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
