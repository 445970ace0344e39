/* Work on big arrays of which helpers take their part.

   One core reads 4 MB in 130 us, whatever it does with them; two cores, each with half of them in a
   cache of its own, in 45. The units of a job are fixed by the problem and write nothing of one
   another's, so that results do not depend on who does them. As in the pool of the cpu engine, which
   only programs load, a word has the job's number and how many units were taken from the front, by
   the caller, and from the back, by helpers; who takes one adds to it by compare-and-swap, so that
   nobody takes one of a job that is over, and the caller does all that nobody began. */

typedef void Work(void *what, npy_intp unit);

enum { MOST_HELPERS = 3, LOOKS = 500, PATIENCE = 200000, ALONE = 30000000, MOST_UNITS = 1 << 20 };
#define WORTH ((size_t)2 << 20) /* bytes: less lies in a cache of the core that wrote it */
#define UNIT_BITS 20

static struct {
    _Atomic uint64_t claim; /* the job's number, units taken from the back, units left */
    char apart[LINE];
    _Atomic npy_intp done;
    char apart_too[LINE];
    _Atomic int asleep;
    Work *work;
    void *what;
    npy_intp units;
    pthread_mutex_t busy, sleeping;
    pthread_cond_t wake;
    _Atomic int wanted;
    int helpers;
    int64_t alone; /* the time until which callers do their jobs so */
} crew = {.busy = PTHREAD_MUTEX_INITIALIZER, .sleeping = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER};

/* In nanoseconds, as PATIENCE and ALONE are. */
static int64_t time_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static inline void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* The next unit of the job from one end, or -1. Who has one may read what stands beside the word:
   the job is not over before all units are done. */
static npy_intp next_unit(int back) {
    uint64_t now = atomic_load_explicit(&crew.claim, memory_order_acquire);
    for (;;) {
        const npy_intp left = now & (MOST_UNITS - 1), behind = now >> UNIT_BITS & (MOST_UNITS - 1);
        if (left == 0)
            return -1;
        const uint64_t then = now - 1 + (back ? (uint64_t)1 << UNIT_BITS : 0);
        if (atomic_compare_exchange_weak(&crew.claim, &now, then))
            return back ? crew.units - 1 - behind : crew.units - behind - left;
    }
}

static void take_units(int back) {
    npy_intp unit;
    while ((unit = next_unit(back)) >= 0) {
        crew.work(crew.what, unit);
        atomic_fetch_add_explicit(&crew.done, 1, memory_order_release);
    }
}

static void *help(void *number) {
    for (uint64_t seen = 0;;) {
        uint64_t now = seen;
        for (int i = 0; i < LOOKS && now >> 2 * UNIT_BITS == seen >> 2 * UNIT_BITS; i++) {
            pause_briefly();
            now = atomic_load_explicit(&crew.claim, memory_order_acquire);
        }
        if (now >> 2 * UNIT_BITS == seen >> 2 * UNIT_BITS) {
            pthread_mutex_lock(&crew.sleeping);
            atomic_fetch_add(&crew.asleep, 1);
            while ((now = atomic_load(&crew.claim)) >> 2 * UNIT_BITS == seen >> 2 * UNIT_BITS)
                pthread_cond_wait(&crew.wake, &crew.sleeping);
            atomic_fetch_sub(&crew.asleep, 1);
            pthread_mutex_unlock(&crew.sleeping);
        }
        seen = now;
        if ((intptr_t)number < crew.wanted)
            take_units(1);
    }
    return NULL;
}

/* A forked child has no helpers, and perhaps the middle of a job. */
static void crew_forked(void) {
    pthread_mutex_init(&crew.busy, NULL);
    pthread_mutex_init(&crew.sleeping, NULL);
    pthread_cond_init(&crew.wake, NULL);
    atomic_store(&crew.asleep, 0);
    crew.helpers = 0;
}

static void crew_start(void) {
    static int watched;
    pthread_attr_t attributes;
    if (!watched && pthread_atfork(NULL, NULL, crew_forked) != 0)
        return;
    watched = 1;
    if (pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t all, before;
    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (pthread_t made; crew.helpers < crew.wanted; crew.helpers++)
        if (pthread_create(&made, &attributes, help, (void *)(intptr_t)crew.helpers) != 0)
            break;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

static void do_alone(Work *work, void *what, npy_intp units) {
    for (npy_intp i = 0; i < units; i++)
        work(what, i);
}

/* Do all units of a job that reads so many bytes; without the GIL. */
static void do_units(Work *work, void *what, npy_intp units, size_t bytes) {
    if (crew.wanted == 0 || bytes < WORTH || units < 2 || units >= MOST_UNITS ||
        pthread_mutex_trylock(&crew.busy)) {
        do_alone(work, what, units);
        return;
    }
    const int64_t begun = time_now();
    if (begun < crew.alone) {
        pthread_mutex_unlock(&crew.busy);
        do_alone(work, what, units);
        return;
    }
    if (crew.helpers < crew.wanted)
        crew_start();
    crew.work = work;
    crew.what = what;
    crew.units = units;
    atomic_store(&crew.done, 0);
    const uint64_t number = (atomic_load(&crew.claim) >> 2 * UNIT_BITS) + 1;
    atomic_store(&crew.claim, number << 2 * UNIT_BITS | (uint64_t)units);
    if (atomic_load(&crew.asleep)) {
        pthread_mutex_lock(&crew.sleeping);
        pthread_cond_broadcast(&crew.wake);
        pthread_mutex_unlock(&crew.sleeping);
    }
    take_units(0);
    const int64_t since = time_now();
    for (int i = 0; atomic_load_explicit(&crew.done, memory_order_acquire) < units; i++)
        if (i < LOOKS)
            pause_briefly();
        else {
            /* The last unit of a helper took longer than all of the caller's: it has no CPU. Where
               others compute as well, one thread is faster than two. */
            const int64_t now = time_now();
            if (now - since > PATIENCE + since - begun)
                crew.alone = now + ALONE;
            sched_yield();
        }
    pthread_mutex_unlock(&crew.busy);
}

/* share_among(n): how many threads take part, the caller's among them. */
static PyObject *share_among(PyObject *self, PyObject *given) {
    const long n = PyLong_AsLong(given);
    if (n == -1 && PyErr_Occurred())
        return NULL;
    crew.wanted = n < 1 ? 0 : n - 1 > MOST_HELPERS ? MOST_HELPERS : (int)n - 1;
    Py_RETURN_NONE;
}
