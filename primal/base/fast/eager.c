/* Operations that run at once. */

static PyObject *eager_slow; /* (op, args, params): what runs operations that were not met before */

static PyObject *by_float32;   /* (ufunc, *operands): many floats of two bytes in float32 */
static PyObject *same_as_wide; /* the ufuncs that NumPy and ml_dtypes compute so, one by one */
static int is_narrow(PyArray_Descr *descr);
enum { FEW_NARROW = 256 };

/* Whether a ufunc of one or two operands takes longer than the way through float32. */
static int is_wide_sooner(PyObject *impl, PyObject *const *hosts, Py_ssize_t n) {
    if (by_float32 == NULL || Py_TYPE(impl) != &PyUFunc_Type)
        return 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (PyArray_CheckExact(hosts[i]) && PyArray_SIZE((PyArrayObject *)hosts[i]) > FEW_NARROW)
            return is_narrow(PyArray_DESCR((PyArrayObject *)hosts[i])) &&
                   PySet_Contains(same_as_wide, impl) == 1;
    return 0;
}

/* The ufunc that an impl in Python is of such operands, if it says so (`instead_of`): 0.1 us less. */
static PyObject *sooner(PyObject *impl, PyObject *const *hosts, Py_ssize_t n) {
    if (!PyFunction_Check(impl) || n == 0 || !PyArray_CheckExact(hosts[0]))
        return impl;
    const int type = PyArray_TYPE((PyArrayObject *)hosts[0]);
    PyObject *named = ((PyFunctionObject *)impl)->func_dict;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || named == NULL)
        return impl;
    PyObject *ufunc = PyDict_GetItemWithError(named, s_wrapped);
    return ufunc != NULL && Py_TYPE(ufunc) == &PyUFunc_Type ? ufunc : impl;
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
    for (Py_ssize_t i = 0; i < n; i++)
        Py_INCREF(hosts[i]);
    PyObject *out;
    if (!named)
        Py_SETREF(impl, Py_NewRef(sooner(impl, hosts, n)));
    if (!named && n <= 2 && is_wide_sooner(impl, hosts, n)) {
        PyObject *given[3] = {impl, hosts[0], n == 2 ? hosts[1] : NULL};
        out = call_quietly(by_float32, given, n + 1, NULL);
    } else
        out = call_quietly(impl, hosts, n, params);
    for (Py_ssize_t i = 0; i < n; i++)
        Py_DECREF(hosts[i]);
    if (out == NULL)
        goto ended;
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
