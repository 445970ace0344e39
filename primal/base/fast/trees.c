/* Trees: a spec compiled to nodes in preorder. */

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
