/* Jitted functions: the entry that a call fits is run; other calls go to Python. */

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
