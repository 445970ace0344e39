/* What `install` hands over, and the names of attributes that are asked for. */

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

static PyObject *s_key, *s_slowly, *s_impl, *s_eager, *s_process, *s_kind, *s_memory, *s_qualname,
    *s_wrapped;
static PyObject *s_eager_key;
static PyObject *s_dtype, *s_shape, *s_with_shape;

#define SLOT(object, at) (*(PyObject **)((char *)(object) + (at)))
