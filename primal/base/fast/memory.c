/* Memory of results, which is kept and given to later ones.

   A fresh page costs 1.4 us, which for big results is more than the work. What malloc gets back it
   hands out again only until the end of its heap is free, and never from 32 MB on: a step that
   returns six arrays of 1 MB took 1.4 ms, not 0.2, where they were dropped together. So memory of
   results is kept when its array dies. NumPy calls `room_free` once nobody refers to the array,
   views included; an array owns its memory as any other does (NEP 49). All of this needs the GIL.

   Data begin at a page, one behind what is known of them. CPUs compare loads with earlier stores by
   the last 12 bits of their addresses: where a result lies 48 bytes behind its operand in these, as
   one in the second line of a page behind a big array of NumPy's, loads wait for the stores before
   (400,000 floats: a tanh 135 us, now 104; x*2 + 1 48, now 34). */

#define LINE 64
#define POOLED (64 << 10)         /* bytes of a result from which it is kept */
#define MOST_KEPT ((size_t)512 << 20) /* bytes that are kept, or a sixteenth of the machine's memory */
#define OLDEST 256                /* frees after which memory that nobody asked for goes back */
#define LISTS 64
#define PAGE ((size_t)4096)
#define GREAT ((size_t)4 << 20)   /* bytes of a result from which its pages are of 2 MB */
#define NUMPY_DOMAIN 389047       /* of tracemalloc */

typedef struct Room {
    struct Room *older, *newer; /* of all that are free */
    struct Room *below, *above; /* of those in one list, the newest on top */
    size_t bytes;               /* mapped, this head included */
    uint64_t age;
} Room;

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
   or what the host of a virtual machine needs, if nobody had them before. The first x + 1 of 16 MB
   takes 2.4 ms instead of 7.6, later ones 0.69 instead of 0.89; of 4 MB the first 0.86 instead of
   1.68, later ones what they took. Parts of a page at the ends stay small: no result grows. */
static void room_pages(void *room, size_t bytes) {
#ifdef MADV_HUGEPAGE
    if (bytes >= GREAT)
        madvise(room, bytes, MADV_HUGEPAGE); /* Refused, it is as slow as it was. */
#endif
}

static void *room_new(size_t size) {
    size_t bytes = (size + 2 * PAGE - 1) / PAGE * PAGE;
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
    return (char *)room + PAGE;
}

static void room_free(void *nothing, void *data, size_t size) {
    if (data == NULL)
        return;
    Room *room = (Room *)((char *)data - PAGE), **list = room_list(room->bytes);
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
    size_t had = ((Room *)((char *)data - PAGE))->bytes - PAGE;
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

/* Whether x lies beside the columns of others, as transposed arrays do. */
static int is_turned(PyArrayObject *x) {
    return PyArray_NDIM(x) > 1 && PyArray_IS_F_CONTIGUOUS(x) && !PyArray_IS_C_CONTIGUOUS(x);
}

static PyArrayObject *in_order(PyObject *x, int turned) {
    return (PyArrayObject *)PyArray_FROM_OF(
        x, (turned ? NPY_ARRAY_IN_FARRAY : NPY_ARRAY_IN_ARRAY) | NPY_ARRAY_NOTSWAPPED);
}

/* Memory for a result of x's shape, whose elements lie as x's do: in rows, or turned in columns. */
static PyObject *kept_order(PyArray_Descr *descr, PyArrayObject *x, int turned) {
    const int nd = PyArray_NDIM(x);
    npy_intp dims[NPY_MAXDIMS];
    for (int i = 0; i < nd; i++)
        dims[i] = PyArray_DIM(x, turned ? nd - 1 - i : i);
    PyObject *out = fresh_array(descr, nd, dims);
    if (turned && out != NULL)
        Py_SETREF(out, PyArray_Transpose((PyArrayObject *)out, NULL));
    return out;
}
