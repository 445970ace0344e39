/* Sorts signed integers of one width by vectors of AVX-512; `sorts.c` includes it per width.

   Numbers are parted by one of them in place. A vector is put in order of its two parts and stored
   whole at both ends of a gap, which is kept open by eight vectors held in registers at the start:
   what of it does not belong there is written over later. NumPy's code stores the parts alone, by an
   instruction that takes Zen 4 a hundred cycles (a million float32 31 ms, so 5). Few numbers are
   sorted in registers, by networks. */

#define VECTOR NAMED(vector)
typedef __m512i VECTOR;

enum { NAMED(LANES) = 64 / sizeof(KEY), NAMED(FEW) = 16 * NAMED(LANES) };

AVX512 static INLINE VECTOR NAMED(load)(const KEY *x) { return _mm512_loadu_si512(x); }

AVX512 static INLINE void NAMED(store)(KEY *x, VECTOR v) { _mm512_storeu_si512(x, v); }

/* Places of elements, which lane i takes from lane i ^ with. */
AVX512 static INLINE VECTOR NAMED(crossed)(int with) {
    return V(xor)(_mm512_loadu_si512(NAMED(places)), V(set1)(with));
}

/* Each lane with the one at its place crossed: the greater to the lane with the bit `high`. */
AVX512 static INLINE VECTOR NAMED(exchange)(VECTOR v, int with, int high) {
    const VECTOR other = V(permutexvar)(NAMED(crossed)(with), v);
    const MASK up = V_MASK(test)(_mm512_loadu_si512(NAMED(places)), V(set1)(high));
    return V(mask_max)(V(min)(v, other), up, v, other);
}

/* In order, where the lanes rise and then fall, or fall and then rise. */
AVX512 static INLINE VECTOR NAMED(merged)(VECTOR v) {
#pragma GCC unroll 4
    for (int high = NAMED(LANES) / 2; high; high /= 2)
        v = NAMED(exchange)(v, high, high);
    return v;
}

AVX512 static INLINE VECTOR NAMED(ordered)(VECTOR v) {
#pragma GCC unroll 4
    for (int high = 1; high < NAMED(LANES); high *= 2) {
        v = NAMED(exchange)(v, 2 * high - 1, high);
#pragma GCC unroll 4
        for (int nearer = high / 2; nearer; nearer /= 2)
            v = NAMED(exchange)(v, nearer, nearer);
    }
    return v;
}

/* So many vectors, a power of two, in order. */
AVX512 static INLINE void NAMED(network)(VECTOR *v, int many) {
#pragma GCC unroll 16
    for (int i = 0; i < many; i++)
        v[i] = NAMED(ordered)(v[i]);
#pragma GCC unroll 4
    for (int half = 1; half < many; half *= 2) {
#pragma GCC unroll 16
        for (int i = 0; i < many; i++)
            if (!(i & half)) {
                VECTOR *low = v + i, *high = v + (i ^ (2 * half - 1));
                const VECTOR back = V(permutexvar)(NAMED(crossed)(NAMED(LANES) - 1), *high);
                *high = V(max)(*low, back);
                *low = V(min)(*low, back);
            }
#pragma GCC unroll 4
        for (int near = half / 2; near; near /= 2)
#pragma GCC unroll 16
            for (int i = 0; i < many; i++)
                if (!(i & near)) {
                    const VECTOR least = V(min)(v[i], v[i + near]);
                    v[i + near] = V(max)(v[i], v[i + near]);
                    v[i] = least;
                }
#pragma GCC unroll 16
        for (int i = 0; i < many; i++)
            v[i] = NAMED(merged)(v[i]);
    }
}

AVX512 static INLINE MASK NAMED(within)(npy_intp left) {
    return left >= NAMED(LANES) ? (MASK)-1 : left <= 0 ? 0 : (MASK)((1u << left) - 1);
}

#define FEW_OF(many)                                                                               \
    AVX512 static __attribute__((noinline)) void NAMED(few_##many)(KEY *x, npy_intp n) {             \
        VECTOR v[many];                                                                            \
        const VECTOR greatest = V(set1)(GREATEST);                                                 \
        for (int i = 0; i < many; i++)                                                             \
            v[i] = V(mask_loadu)(greatest, NAMED(within)(n - i * NAMED(LANES)),                    \
                                 x + i * NAMED(LANES));                                            \
        NAMED(network)(v, many);                                                                   \
        for (int i = 0; i < many; i++)                                                             \
            V(mask_storeu)(x + i * NAMED(LANES), NAMED(within)(n - i * NAMED(LANES)), v[i]);       \
    }

FEW_OF(1)
FEW_OF(2)
FEW_OF(4)
FEW_OF(8)
FEW_OF(16)
#undef FEW_OF

AVX512 static void NAMED(few)(KEY *x, npy_intp n) {
    if (n <= NAMED(LANES))
        NAMED(few_1)(x, n);
    else if (n <= 2 * NAMED(LANES))
        NAMED(few_2)(x, n);
    else if (n <= 4 * NAMED(LANES))
        NAMED(few_4)(x, n);
    else if (n <= 8 * NAMED(LANES))
        NAMED(few_8)(x, n);
    else
        NAMED(few_16)(x, n);
}

/* One vector into both ends of the gap from *begin to *end, which has room for two. */
AVX512 static INLINE void NAMED(put)(KEY *x, VECTOR v, VECTOR by, npy_intp *begin, npy_intp *end) {
    const MASK low = V_MASK(cmplt)(v, by);
    const int many = __builtin_popcount(low);
    const VECTOR high = V(maskz_compress)((MASK)~low, v);
    NAMED(store)(x + *begin, V(maskz_compress)(low, v));
    /* From the last lane down: a permutation counts lanes modulo their number. */
    NAMED(store)(x + *end - NAMED(LANES),
                 V(permutexvar)(V(sub)(_mm512_loadu_si512(NAMED(places)), V(set1)(many)), high));
    *begin += many;
    *end -= NAMED(LANES) - many;
}

/* Put those below `by` first; how many they are. More than FEW. */
AVX512 static npy_intp NAMED(parted)(KEY *x, npy_intp n, KEY by) {
    enum { LANES = NAMED(LANES), HELD = 8, STEP = HELD * LANES };
    const npy_intp rest = n % LANES, whole = n - rest;
    npy_intp left = STEP, right = whole - STEP, begin = 0, end = n;
    const VECTOR limit = V(set1)(by);
    VECTOR ends[2 * HELD], v[HELD];
    KEY last[2 * LANES];
    memcpy(last + LANES, x + whole, rest * sizeof(KEY));
    for (int i = 0; i < HELD; i++) {
        ends[i] = NAMED(load)(x + i * LANES);
        ends[HELD + i] = NAMED(load)(x + right + i * LANES);
    }
    while (right - left >= STEP) {
        /* From where less is free, so that afterwards either end has room for all of them. */
        const int back = end - right < left - begin;
        right -= back ? STEP : 0;
        const KEY *from = x + (back ? right : left);
        left += back ? 0 : STEP;
        for (int i = 0; i < HELD; i++)
            v[i] = NAMED(load)(from + i * LANES);
        for (int i = 0; i < HELD; i++)
            NAMED(put)(x, v[i], limit, &begin, &end);
    }
    const int more = (int)((right - left) / LANES);
    for (int i = 0; i < more; i++)
        v[i] = NAMED(load)(x + left + i * LANES);
    for (int i = 0; i < more; i++)
        NAMED(put)(x, v[i], limit, &begin, &end);
    for (int i = 0; i < 2 * HELD - 1; i++)
        NAMED(put)(x, ends[i], limit, &begin, &end);
    NAMED(store)(last, ends[2 * HELD - 1]);
    for (int i = 0; i < LANES + rest; i++)
        if (last[i] < by)
            x[begin++] = last[i];
        else
            x[--end] = last[i];
    return begin;
}

/* The middle of some, from places that no pattern of the numbers follows. */
AVX512 static KEY NAMED(middle)(const KEY *x, npy_intp n, uint64_t *random) {
    KEY some[NAMED(LANES)];
    for (int i = 0; i < NAMED(LANES); i++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        some[i] = x[(npy_intp)(((*random >> 32) * (uint64_t)n) >> 32)];
    }
    NAMED(store)(some, NAMED(ordered)(NAMED(load)(some)));
    return some[NAMED(LANES) / 2];
}

AVX512 static void NAMED(sort)(KEY *x, npy_intp n, uint64_t *random) {
    while (n > NAMED(FEW)) {
        const KEY by = NAMED(middle)(x, n, random);
        npy_intp low = NAMED(parted)(x, n, by);
        if (low == 0) { /* nothing is less: those that are equal are done */
            if (by == GREATEST)
                return;
            low = NAMED(parted)(x, n, by + 1);
        } else if (low > n - low) { /* the stack holds the logarithm of n */
            NAMED(sort)(x + low, n - low, random);
            n = low;
            continue;
        } else
            NAMED(sort)(x, low, random);
        x += low;
        n -= low;
    }
    NAMED(few)(x, n);
}

#undef VECTOR
#undef KEY
#undef MASK
#undef GREATEST
#undef NAMED
#undef V
#undef V_MASK
