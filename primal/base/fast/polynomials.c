/* Polynomials of float32, and functions that are made of them. */

static void polynomial(const float *row, npy_intp degree, const float *at, float *to, npy_intp n) {
    for (npy_intp i = 0; i < n; i++)
        to[i] = at[i] * row[0] + row[1];
    for (npy_intp k = 2; k < degree; k++)
        for (npy_intp i = 0; i < n; i++)
            to[i] = to[i] * at[i] + row[k];
}

/* horner(coefficients, x): a polynomial of float32, highest degree first. */
static PyObject *horner(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "expected coefficients and an array");
        return NULL;
    }
    PyArrayObject *c = (PyArrayObject *)PyArray_FROM_OTF(given[0], NPY_FLOAT32, NPY_ARRAY_IN_ARRAY);
    PyArrayObject *x = (PyArrayObject *)PyArray_FROM_OTF(given[1], NPY_FLOAT32, NPY_ARRAY_IN_ARRAY);
    PyArrayObject *out = NULL;
    if (c != NULL && PyArray_SIZE(c) < 2)
        PyErr_SetString(PyExc_ValueError, "expected two coefficients or more");
    else if (c != NULL && x != NULL)
        out = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(x), PyArray_DIMS(x), NPY_FLOAT32);
    if (out != NULL) {
        enum { BLOCK = 1024 };
        const float *row = PyArray_DATA(c), *at = PyArray_DATA(x);
        float *to = PyArray_DATA(out);
        npy_intp degree = PyArray_SIZE(c), size = PyArray_SIZE(x);
        for (npy_intp start = 0; start < size; start += BLOCK) {
            npy_intp n = size - start < BLOCK ? size - start : BLOCK;
            polynomial(row, degree, at + start, to + start, n);
        }
    }
    Py_XDECREF(c);
    Py_XDECREF(x);
    return (PyObject *)out;
}

/* erf(x, p, q, flat, exp): x + x p(x^2) where |x| < 1, 1 - exp(q(min(|x|, flat))) with the sign of x
   elsewhere, of float32. The exponential is NumPy's. */
static PyObject *erf_32(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    PyArrayObject *in[3] = {NULL}, *made[3] = {NULL};
    PyObject *done = NULL;
    float flat = n == 5 ? (float)PyFloat_AsDouble(given[3]) : 0;
    int good = n == 5 && !PyErr_Occurred();
    for (int i = 0; good && i < 3; i++) {
        in[i] = (PyArrayObject *)PyArray_FROM_OTF(given[i], NPY_FLOAT32, NPY_ARRAY_IN_ARRAY);
        good = in[i] != NULL && (i == 0 || PyArray_SIZE(in[i]) > 1);
    }
    for (int i = 0; good && i < 3; i++) {
        made[i] = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(in[0]), PyArray_DIMS(in[0]),
                                                     NPY_FLOAT32);
        good = made[i] != NULL;
    }
    if (good) {
        const float *x = PyArray_DATA(in[0]);
        float *inside = PyArray_DATA(made[0]), *outside = PyArray_DATA(made[1]);
        float *at = PyArray_DATA(made[2]);
        npy_intp size = PyArray_SIZE(in[0]);
        for (npy_intp i = 0; i < size; i++)
            at[i] = x[i] * x[i];
        polynomial(PyArray_DATA(in[1]), PyArray_SIZE(in[1]), at, inside, size);
        for (npy_intp i = 0; i < size; i++)
            at[i] = fabsf(x[i]) > flat ? flat : fabsf(x[i]);
        polynomial(PyArray_DATA(in[2]), PyArray_SIZE(in[2]), at, outside, size);
        done = PyObject_CallFunctionObjArgs(given[4], made[1], made[1], NULL);
        for (npy_intp i = 0; done != NULL && i < size; i++) {
            float near = inside[i] * x[i] + x[i], far = copysignf(1 - outside[i], x[i]);
            inside[i] = x[i] * x[i] < 1 ? near : far;
        }
    } else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "expected an array, two polynomials, a limit and exp");
    PyObject *out = done == NULL ? NULL : Py_NewRef(made[0]);
    Py_XDECREF(done);
    for (int i = 0; i < 3; i++) {
        Py_XDECREF(in[i]);
        Py_XDECREF(made[i]);
    }
    return out;
}

/* erfc(x, p, end, exp): exp(-x^2) p((x - 2)/(x + 2)) / (1 + 2x) of min(|x|, end), 2 less that below
   0, of float32. x^2 is near^2, which is a float, and a rest, whose exponential is a series: rounded,
   x^2 would leave five digits. */
static PyObject *erfc_32(PyObject *self, PyObject *const *given, Py_ssize_t n) {
    PyArrayObject *in[2] = {NULL}, *made[3] = {NULL};
    PyObject *done = NULL;
    float end = n == 4 ? (float)PyFloat_AsDouble(given[2]) : 0;
    int good = n == 4 && !PyErr_Occurred();
    for (int i = 0; good && i < 2; i++) {
        in[i] = (PyArrayObject *)PyArray_FROM_OTF(given[i], NPY_FLOAT32, NPY_ARRAY_IN_ARRAY);
        good = in[i] != NULL && (i == 0 || PyArray_SIZE(in[i]) > 1);
    }
    for (int i = 0; good && i < 3; i++) {
        made[i] = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(in[0]), PyArray_DIMS(in[0]),
                                                     NPY_FLOAT32);
        good = made[i] != NULL;
    }
    if (good) {
        const float *x = PyArray_DATA(in[0]);
        float *body = PyArray_DATA(made[0]), *power = PyArray_DATA(made[1]);
        float *at = PyArray_DATA(made[2]);
        npy_intp size = PyArray_SIZE(in[0]);
        for (npy_intp i = 0; i < size; i++) {
            float far = fabsf(x[i]) > end ? end : fabsf(x[i]);
            at[i] = (far - 2) / (far + 2);
        }
        polynomial(PyArray_DATA(in[1]), PyArray_SIZE(in[1]), at, body, size);
        for (npy_intp i = 0; i < size; i++) {
            float far = fabsf(x[i]) > end ? end : fabsf(x[i]);
            /* To 64ths: adding 3 2^16 rounds there, as far is less than 2^15. */
            float near = (far + 196608.0f) - 196608.0f, r = (near - far) * (near + far);
            float grown = r * (1 + r * (0.5f + r * (1 / 6.0f + r * (1 / 24.0f + r / 120.0f))));
            body[i] /= 1 + (far + far);
            body[i] += body[i] * grown;
            power[i] = -(near * near);
        }
        done = PyObject_CallFunctionObjArgs(given[3], made[1], made[1], NULL);
        for (npy_intp i = 0; done != NULL && i < size; i++) {
            float beyond = body[i] * power[i];
            body[i] = x[i] < 0 ? 2 - beyond : beyond;
        }
    } else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "expected an array, a polynomial, a limit and exp");
    PyObject *out = done == NULL ? NULL : Py_NewRef(made[0]);
    Py_XDECREF(done);
    for (int i = 0; i < 2; i++)
        Py_XDECREF(in[i]);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(made[i]);
    return out;
}
