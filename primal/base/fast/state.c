/* What is ambient in a thread: the transformation in progress, its axes, the place in the source. */

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

/* A call without NumPy's floating-point warnings; `kwargs` may be NULL. */
static PyObject *call_quietly(PyObject *program, PyObject *const *args, Py_ssize_t n,
                              PyObject *kwargs) {
    if (error_state == NULL)
        return PyObject_VectorcallDict(program, args, n, kwargs);
    PyObject *token = PyContextVar_Set(error_state, quiet);
    if (token == NULL)
        return NULL;
    PyObject *out = PyObject_VectorcallDict(program, args, n, kwargs);
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
