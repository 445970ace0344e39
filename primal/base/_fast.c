/* The hot paths in C: ambient state, calls of jitted functions, eager operations.

   Everything here exists in Python as well and means the same there; what this does not know it
   hands to that Python. It knows no layer of the package: classes and functions are handed over by
   `install`. Objects of Python classes are read through the offsets of their slots, so that an
   array is the same class with and without the extension.

   The themes are files in `fast/`, included below, each after those that it uses: one translation
   unit, so that what one calls of another is inlined and only the entry of the module is exported. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>
#include <complex.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif
#ifdef __x86_64__
#include <cpuid.h>
#endif

#define VERSION 78 /* native.py asks for the same number: a stale build is not used */

/* Functions in versions for several CPUs, of which the loader takes one. */
#if defined(__x86_64__) && defined(__GLIBC__)
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

#include "fast/handed.c"
#include "fast/state.c"
#include "fast/arrays.c"
#include "fast/trees.c"
#include "fast/memory.c"
#include "fast/programs.c"
#include "fast/entries.c"
#include "fast/dispatch.c"
#include "fast/eager.c"
#include "fast/remembered.c"
#include "fast/lapack.c"
#include "fast/signs.c"
#include "fast/polynomials.c"
#include "fast/shared.c"
#include "fast/sums.c"
#include "fast/functions.c"
#include "fast/complexes.c"
#include "fast/products.c"
#include "fast/extrema.c"
#include "fast/choices.c"
#include "fast/broadcasts.c"
#include "fast/orders.c"
#include "fast/sorts.c"
#include "fast/searches.c"
#include "fast/casts.c"
#include "fast/divisions.c"
#include "fast/threefry.c"

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

/* install(**objects): hand over what the files work with. */
static PyObject *install(PyObject *self, PyObject *args, PyObject *kwargs) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    struct { const char *name; PyObject **place; } plain[] = {
        {"settings_var", &settings_var}, {"leaf", &leaf_mark}, {"take_apart", &take_apart},
        {"unflatten", &unflatten_slow}, {"has_own_rules", &has_own_rules},
        {"error_state", &error_state}, {"quiet", &quiet}, {"filter_error", &filter_error},
        {"eager_slow", &eager_slow}, {"by_float32", &by_float32}, {"same_as_wide", &same_as_wide},
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
    {"solved", (PyCFunction)(void (*)(void))solved, METH_FASTCALL,
     "solved(a, b): x with a x = b for small matrices of float32."},
    {"minors", minors, METH_O, "Determinants of 3 x 3 floats."},
    {"zeros_like", (PyCFunction)(void (*)(void))zeros_like, METH_FASTCALL,
     "zeros_like(out, x): zeros with the signs of x; whether all of out is finite."},
    {"spread", (PyCFunction)(void (*)(void))spread, METH_FASTCALL,
     "spread(x, shape, places): an array repeated along new dimensions, as a view."},
    {"broadcast", (PyCFunction)(void (*)(void))broadcast, METH_FASTCALL | METH_KEYWORDS,
     "broadcast(ufunc, *operands, out=None): of operands with sizes of 1, in blocks of rows."},
    {"threefry", (PyCFunction)(void (*)(void))threefry, METH_FASTCALL,
     "threefry(k1, k2, x, y[, words]): hash pairs of uint32 in place."},
    {"horner", (PyCFunction)(void (*)(void))horner, METH_FASTCALL,
     "horner(coefficients, x): a polynomial of float32 or float64."},
    {"in_order", in_order_along, METH_O, "Numbers sorted along the last axis, or None."},
    {"places", (PyCFunction)(void (*)(void))places, METH_FASTCALL,
     "places(row, x, right): where numbers would go in a row that ascends, or None."},
    {"order", order, METH_O, "The stable order of numbers along the last axis."},
    {"zeros_in_order", (PyCFunction)(void (*)(void))zeros_in_order, METH_FASTCALL,
     "zeros_in_order(out, x, axis): zeros of x sorted, in the order of those of x."},
    {"over_zero", (PyCFunction)(void (*)(void))over_zero, METH_FASTCALL,
     "over_zero(out, x, y): quotients by 0 into those of whole numbers; whether it did."},
    {"half_divmod", (PyCFunction)(void (*)(void))half_divmod, METH_FASTCALL,
     "half_divmod(x, y): quotients rounded down and remainders of floats of two bytes."},
    {"rounded", (PyCFunction)(void (*)(void))rounded, METH_FASTCALL,
     "rounded(x, dtype): float32 as the numbers of floats of two bytes, in place."},
    {"half_rem", (PyCFunction)(void (*)(void))half_rem, METH_FASTCALL,
     "half_rem(x, y): remainders of floats of two bytes."},
    {"whole", (PyCFunction)(void (*)(void))whole, METH_FASTCALL,
     "whole(x, dtype): floats cut off as integers, within their range."},
    {"reals", reals, METH_O, "The real parts of complex numbers in rows."},
    {"ramp", (PyCFunction)(void (*)(void))ramp, METH_FASTCALL,
     "ramp(out, low, high, whole, scale): fill a row with numbers between two."},
    {"recurrence", (PyCFunction)(void (*)(void))recurrence, METH_FASTCALL,
     "What factors and terms along the last axis come to."},
    {"running_sums", running_sums, METH_O, "Sums so far along the last axis, in blocks."},
    {"by_eights", by_eights, METH_NOARGS, "Whether float16 is widened and narrowed in vectors."},
    {"widened", widened, METH_O, "Narrow floats as float32."},
    {"narrowed", (PyCFunction)(void (*)(void))narrowed, METH_FASTCALL,
     "narrowed(x, dtype): float32 as narrow floats."},
    {"multiply", (PyCFunction)(void (*)(void))multiply, METH_FASTCALL,
     "multiply((gemm, gemv), x, y): products of matrices in pieces that threads share, or None."},
    {"sum_rows", sum_rows, METH_O, "Sums of float32 along the last axis, as NumPy adds."},
    {"sum_columns", (PyCFunction)(void (*)(void))sum_columns, METH_FASTCALL,
     "sum_columns(x, axis, block): sums along another axis, in blocks."},
    {"erf", (PyCFunction)(void (*)(void))erf_32, METH_FASTCALL,
     "erf(x, p, q, flat, exp): the error function of float32 by two polynomials."},
    {"erf_inv", (PyCFunction)(void (*)(void))erf_inv_32, METH_FASTCALL,
     "erf_inv(x, centre, tail, from, log1p): of float32."},
    {"erfc", (PyCFunction)(void (*)(void))erfc_32, METH_FASTCALL,
     "erfc(x, p, end, exp): the complementary error function of float32."},
    {"lgamma", (PyCFunction)(void (*)(void))lgamma_of_array, METH_FASTCALL,
     "lgamma(x, near, far): log |Gamma| of float32 and float64."},
    {"digamma", (PyCFunction)(void (*)(void))psi_of_array, METH_FASTCALL,
     "digamma(x, near, far): the derivative of log Gamma."},
    {"bessel_i0e", (PyCFunction)(void (*)(void))bessel_i0e, METH_FASTCALL,
     "bessel_i0e(x, row, row_64): e^-|x| times Bessel's I of order 0, of float32 and float64."},
    {"bessel_i1e", (PyCFunction)(void (*)(void))bessel_i1e, METH_FASTCALL,
     "bessel_i1e(x, row, row_64): of order 1."},
    {"by_parts", (PyCFunction)(void (*)(void))by_parts, METH_FASTCALL,
     "by_parts(name, *xs): a function of finite complex64, in double precision."},
    {"join", (PyCFunction)(void (*)(void))join, METH_FASTCALL,
     "join(sign, packed): complex vectors out of packed pairs."},
    {"share_among", share_among, METH_O, "How many threads sums of big arrays have."},
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
        {&s_shape, "shape"}, {&s_with_shape, "with_shape"}, {&s_wrapped, "__wrapped__"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((*names[i].place = PyUnicode_InternFromString(names[i].text)) == NULL)
            return NULL;
    look_for_halves();
    seed_sorts();
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
    if (PyModule_AddIntConstant(made, "VERSION", VERSION) < 0 ||
        PyModule_AddIntConstant(made, "FEW_NARROW", FEW_NARROW) < 0 || add_ufuncs(made) < 0 ||
        add_choose(made) < 0 || add_of_two(made) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
