/* Arrays: values of NumPy's as ours, views of them, and the types of nested lists. */

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

/* boxed(aval, out): the result of an `impl` as an array. */
static PyObject *boxed(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "expected an aval and a value");
        return NULL;
    }
    return box_result(given[0], Py_NewRef(given[1]));
}

static PyObject *as_narrow(PyObject *x, PyArray_Descr *descr);

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
    PyArrayObject *out = (PyArrayObject *)as_narrow(given[1], (PyArray_Descr *)dtype);
    if (out != NULL || PyErr_Occurred())
        Py_DECREF(dtype);
    else
        out = (PyArrayObject *)PyArray_FromAny(
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

/* The buffer protocol, which classes in Python cannot have before 3.12. */
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
