# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Algorithm 1 for the problems of one Gram matrix, each at its own pace: the compiled part of `engine`.

A problem is (Gram matrix S, target q, alpha), scaled so that S has a unit diagonal. A step of the loop solves
one of two forms of the same system, with P = S^-1 and tau_j = 1 / P_jj:

    primal  (S + D) b = q                           dual  (P + D^-1) f = P q = b_ols,   b = D^-1 f

by conjugate gradients in the textbook's letters (x, r, z, p, Ap), preconditioned by a diagonal, tau_j + d_j or
1 / tau_j + 1 / d_j, or, where columns are strongly correlated, by an exact Cholesky factor of the *hard* columns
(d_j < 1 in the primal, d_j > tau_j in the dual) and the diagonal elsewhere. The form with fewer hard columns is taken. With nearly
all columns hard, the preconditioner is (S + level I)^-1 by eigenvectors if the penalties are nearly alike, as
in a ridge regression; else the step is a direct solve. `e` is the diagonal added to the matrix: d, or 1 / d.

The force f = q - S b lies in the range of S. So if columns are dependent, P is the pseudo-inverse, and conjugate
gradients in the dual stay in the range of S, as with any linear constraint (Gould, Hribar and Nocedal, 2001).

Differences from the textbook:

- The vectors p of all unfinished problems are multiplied by the matrix at once; each problem then advances
  by itself: to its next iteration, step or gamma, or to its end.
- A step starts from the last x and its known residual, r + (e_old - e) x, which needs no product; in the other
  form, from zero.
- In the primal tau_j takes the place of the diagonal of S, which is 1: what column j adds to the others. Columns with
  a component in common need fewer iterations, and z is as large as the error of b.
- Iterations stop once what is left to correct in b, z in the primal and r in the dual, is small enough for
  what the loop still remembers of it.
- Where that allows, products are in single precision. `drift` bounds the error of b that they leave; when it
  counts, r is computed anew in double precision.

`err` bounds the error that each coefficient carries from step to step, and passes on to others. A problem whose bound grows beyond
DOUBT is doubtful, and starts again with the next, stricter tolerance, beside those that go on. See `docs/mathematics.md`.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, fmax, fmin, sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from scipy.linalg.cython_blas cimport dgemv
from scipy.linalg.cython_lapack cimport dpotrf, dpotri, dtrtri

cdef extern from "kernels.h" nogil:
    int PANEL
    void multiply(const double *, const double *, double *, int, int)
    void multiply_single(const float *, const float *, float *, int, int)
    double curvature(int, const double *, const double *, const double *, double *)
    double curvature_single(int, const double *, const double *, const float *, double *)
    double iterate(int, int, double, const double *, const double *, const double *, double *, double *, double *, double *)
    double product(int, int, const double *, const double *, double *)
    double dot(int, const double *, const double *)
    void add(int, double, const double *, double *)
    void subtract(int, double, const double *, double *)
    double penalties(int, double, double, double, const double *, const double *, const double *, const double *,
                     const double *, double *, double *)
    double new_system(int, int, const double *, const double *, double *, double *, double *, double *)
    void dual_coefficients(int, const double *, const double *, const double *, const double *, double *)
    double carry_error(int, int, double, const double *, const double *, const double *, const double *,
                       const double *, double *)
    double add_error(int, int, double, double, double, const double *, const double *, const double *, const double *,
                     double *)
    void narrow(int, const double *, float *)
    void substitute(int, const double *, double *)

cdef enum:
    PRIMAL = 0
    DUAL = 1

cdef enum:  # the state of a problem
    RUNNING = 0
    DONE = 1
    DOUBTFUL = 2

cdef enum:  # the product that a problem waits for
    NOTHING = 0
    RESIDUAL = 1          # of the matrix and x, for r
    CURVATURE = 2         # of the matrix and p, for the next iteration
    ROTATED = 3           # V'r, for the spectral preconditioner ...
    CORRECTION = 4        # ... and z = V (its quotients)
    ERRORS = 5            # of the squares of errors, for those that they make in other coefficients

cdef enum:
    SINGLE = 4            # the first of the products in single precision
    MOST_ITERATIONS = 80  # after so many iterations the steps at this gamma are direct solves

cdef double MOST = 0.7        # with more than this share of hard columns a step is a direct solve
cdef double SPREAD = 2.0       # eigenvalues so many times as large as the differences of penalties hardly feel them
cdef double SOME_TRUST = 1e-9 # smallest eigenvalue of S from which on P has the digits of a step ...
cdef double TRUST = 1e-6      # ... and of an answer
cdef double IN_RATIO = 4.0    # selected: |b_j| > IN_RATIO gamma and d_j < IN_WEIGHT tau_j
cdef double IN_WEIGHT = 0.05
cdef double OUT_RATIO = 0.4   # not selected: |b_j| < OUT_RATIO times the next gamma and d_j > OUT_WEIGHT
cdef double OUT_WEIGHT = 4.0
cdef double AGREE = 0.1       # relative distance of b_j to least squares on the support
cdef double DOUBT = 0.05      # error carried, relative to |b_j| + gamma, that may turn a decision around
# So many times as large as the coefficients, gamma penalizes them alike, more or less; so many
# times as large as the penalties, eigenvalues leave least squares.
cdef double ABOVE = 8.0
cdef double REMEMBERED = 1e-3 # share of the tolerance that the loop may remember of a late start
cdef double DIGITS = 1e-9     # relative error of an answer
cdef double DRIFT = 2e-8      # rounding of a product in single precision
cdef double EPS = 2.2e-16

cdef struct Gram:  # what the problems share
    int m, n_gammas, t_max
    double gamma_step, epsilon
    double mu               # lower bound on the smallest eigenvalue of S
    double lowest           # and on the smallest that P inverts
    int n_null              # how many are zero
    double leak             # the errors of all others that reach one coefficient, over the largest of them
    bint mild               # the columns are not strongly correlated: the diagonal is preconditioner enough
    int n_rows              # rows of X, for direct solves that S alone has not the digits for; mostly none
    const double *X
    const double *S
    const double *P         # the inverse of S; if columns are dependent, the pseudo-inverse
    const double *null      # orthonormal rows that span the null space of S
    const double *diagonal  # that of P
    const double *tau       # what the other columns leave of each: 1 / P_jj
    const double *V         # eigenvectors of S in the metric of the penalty, by rows and by columns; NULL if mild
    const double *V_t
    const double *w         # their eigenvalues, smallest first
    const double *metric    # d_j in that metric, over d_j
    const double *gamma
    const double *factor    # penalty factors
    const double *tolerance # of each attempt at a problem; 0 stands for the literal loop
    int n_attempts

cdef struct Problem:
    double alpha
    const double *q
    const double *ols
    const double *y         # of G.X
    const double *root      # gamma times root_j is gamma in the units of b_j
    # The attempt at it.
    int attempt
    double tolerance
    bint literal            # every step of the loop, by direct solves
    bint bounded            # `err` says whether the answer is vouched for
    bint single             # products in single precision
    int g, t, steps         # position: gamma, step at it, steps so far
    bint from_zero          # the step before this one was left out
    bint ending             # decided; the last gammas show in the answer
    double *b
    double *err             # bound on the error of b
    double carried          # the largest error that the step has carried on
    # The system of a step, and where conjugate gradients stand.
    int form
    bint direct             # every step at this gamma is a direct solve
    bint exact              # this one is
    bint spectral           # the preconditioner is spectral in this one
    int asked               # the product that it waits for, and the vector of it
    const double *operand
    int iterations
    double rz               # r'z
    double weight           # of a correction of b; below 1 / weight it is small enough
    double neglected        # the largest correction of b that is left out
    double drift            # bound on the error of b that the error of r makes
    double *x
    double *r
    double *p
    double *e               # the diagonal added to the matrix
    double *inverse         # of the diagonal of the system
    # The preconditioner: hard columns and the factor of their block.
    int h, capacity
    int *hard
    double *L
    double level            # of the spectral one, the penalty
    double *null            # of dependent columns, in the dual: the rows of G.null over the preconditioner,
    double *C               # ... and the factor of their products with G.null

cdef struct Scratch:
    double *z
    double *force
    double *tmp
    int *support


ctypedef fused real:
    float
    double


cdef void pack(const double[:, ::1] M, real *panels) noexcept nogil:
    """The columns of M in panels, each stored by rows and padded with zeros, for `multiply`."""
    cdef int i, j, first = 0, columns = PANEL // <int>sizeof(real), m = <int>M.shape[0]
    while first < m:
        for i in range(m):
            for j in range(columns):
                panels[j] = <real>M[i, first + j] if first + j < m else 0
            panels += columns
        first += columns


cdef inline size_t panels_size(int m, size_t bytes) noexcept nogil:
    """Numbers of so many bytes in the panels of a matrix."""
    cdef size_t columns = PANEL // bytes
    return (m + columns - 1) // columns * columns * m


cdef bint cholesky(double *A, int n) noexcept nogil:
    """A <- L with L L' = A, by rows of the lower triangle; False if A is not positive definite."""
    cdef int info = 0
    if n > 0:
        dpotrf(b"U", &n, A, &n, &info)
    return info == 0


cdef bint reserve(Problem *k, int n) noexcept nogil:
    """Room for a factor of n columns; False if there is no memory for it."""
    if n > k.capacity:
        free(k.L)
        k.L = <double *>malloc(<size_t>n * n * sizeof(double))
        k.capacity = n if k.L != NULL else 0
    return n <= k.capacity


cdef bint factorize(Problem *k, const double *M, const double *shift, int m) noexcept nogil:
    """The Cholesky factor of the columns k.hard of M + diag(shift); False if they are dependent."""
    cdef int i, j, h = k.h
    cdef double *L
    cdef const double *row
    if not reserve(k, h):
        return False
    for i in range(h):
        row = M + <size_t>k.hard[i] * m
        L = k.L + <size_t>i * h
        for j in range(i + 1):
            L[j] = row[k.hard[j]]
        if shift != NULL:
            L[i] += shift[k.hard[i]]
    if not cholesky(k.L, h):
        return False
    for i in range(h):
        j = k.hard[i]
        # Nearer to dependent than that, the oracle's own rounding decides.
        if not k.L[<size_t>i * h + i] ** 2 > 10 * h * EPS * (M[<size_t>j * m + j] + (shift[j] if shift != NULL else 0)):
            return False
    return True


cdef void inverse_diagonal(Problem *k, double *out) noexcept nogil:
    """The diagonal of the inverse of the hard block, in the place of its factor, which is lost."""
    cdef int i, j, h = k.h, info
    cdef const double *row
    if h == 0:
        return
    dtrtri(b"U", b"N", &h, k.L, &h, &info)
    memset(out, 0, h * sizeof(double))
    for i in range(h):
        row = k.L + <size_t>i * h
        for j in range(i + 1):
            out[j] += row[j] * row[j]


cdef void enter(const Gram *G, Problem *k, const double[:] largest) noexcept nogil:
    """Start at the latest gamma that the loop allows, from least squares or from b = 0.

    While gamma is far above every coefficient, a step is a ridge regression with the penalties alpha_j / gamma_j^2;
    while these are far below the smallest eigenvalue, it is least squares. Either way a step keeps of an error no
    more than

        4 min(1, (b / gamma)^2) min(1, penalty / eigenvalue).

    The steps from the start on must keep no more than REMEMBERED of the tolerance. `largest` bounds the coefficients at
    each gamma.
    """
    cdef int j, g, n_ridge = 0
    cdef bint from_ols = False
    cdef double strain, ratio, kept, after_first, later = 1.0, steepest = 0.0, remembered = REMEMBERED * k.tolerance
    for j in range(G.m):
        steepest = fmax(steepest, k.alpha * G.factor[j] / (k.root[j] * k.root[j]))
    # Once coefficients are not small beside gamma, ridge regressions say nothing of them.
    while n_ridge < G.n_gammas and largest[n_ridge] * ABOVE < G.gamma[n_ridge]:
        n_ridge += 1
    k.g, k.t, k.steps, k.form, k.asked = 0, 0, 0, -1, NOTHING
    k.direct, k.from_zero, k.ending = k.literal or G.n_rows > 0, False, False
    for g in range(G.n_gammas - 2, 0, -1):
        strain = steepest / (G.gamma[g] * G.gamma[g]) / G.mu
        ratio = (largest[g] / G.gamma[g]) ** 2 if g < n_ridge else 1.0
        kept = fmin(4 * ratio * fmin(strain, 1.0), 1.0)
        # From zero the first step makes the error, and those after it forget.
        after_first = later
        for j in range(G.t_max - 1):
            after_first *= kept
        later = after_first * kept
        from_ols = strain * ABOVE < 1.0 and strain * later <= remembered
        if from_ols or (g < n_ridge and 2 * ratio * fmin(strain, 1.0) * after_first <= remembered):
            k.g, k.from_zero = g, not from_ols
            break
    for j in range(G.m):
        k.b[j] = k.err[j] = 0.0
        if from_ols:
            k.b[j] = k.ols[j]
            k.err[j] = (1.0 + G.leak) * fabs(k.b[j]) * penalty(G, k, j, k.b[j], k.g - 1) / G.tau[j]


cdef inline int ask(Problem *k, int what, const double *operand) noexcept nogil:
    """Wait for a product."""
    k.asked, k.operand = what, operand
    return RUNNING


cdef bint start_step(const Gram *G, Problem *k) noexcept nogil:
    """Set up the system of the next step; False if it cannot be factorized."""
    cdef int j, m = G.m, form = k.form
    cdef double largest
    cdef double n_hard[2]
    cdef double *d = k.p
    cdef bint nearly_all
    # 1) The penalties, and how small a correction has to be before it is left out.
    k.weight = penalties(m, k.alpha, G.gamma[k.g], k.tolerance, G.factor, k.root, G.tau, G.diagonal, k.b, d, n_hard)
    if k.ending or k.g + 1 == G.n_gammas:
        for j in range(m):
            k.weight = fmax(k.weight, 100 / (DIGITS * (fabs(k.b[j]) + 1e-3 * G.epsilon * k.root[j]) + 1e-300))
    # 2) The form with fewer hard columns; a change of form starts anew, so it must pay.
    if k.direct or G.lowest <= (TRUST if k.ending else SOME_TRUST):
        form = PRIMAL
    elif form < 0:
        form = DUAL if n_hard[DUAL] < n_hard[PRIMAL] else PRIMAL
    elif 2 * n_hard[1 - form] < n_hard[form]:
        form = 1 - form
    # 3) The way to solve it: the diagonal, a factor of the hard columns, eigenvectors, or a factor of all columns.
    nearly_all = not G.mild and n_hard[form] > MOST * m
    k.spectral = nearly_all and not k.direct and nearly_alike(G, k, d)
    k.exact = k.direct or (nearly_all and not k.spectral)
    if k.exact or k.spectral:
        form = PRIMAL
    # 4) The system, and the residual of the last x; in another form x starts at zero.
    if form != k.form:
        memset(k.x, 0, m * sizeof(double))
        memcpy(k.r, k.q if form == PRIMAL else k.ols, m * sizeof(double))
        k.form, k.drift = form, 0.0
    k.h = 0
    if k.exact or not (G.mild or k.spectral):
        for j in range(m):
            if k.exact or (d[j] < 1.0 if form == PRIMAL else d[j] > G.tau[j]):
                k.hard[k.h] = j
                k.h += 1
    largest = new_system(m, form == DUAL, G.tau if form == PRIMAL else G.diagonal, k.x, d, k.e, k.r, k.inverse)
    k.iterations, k.rz = 0, 0.0
    if form == DUAL:
        # Where d_j falls by many powers of ten, the rounding of x_j / d_j is that of r.
        k.drift += EPS * largest
    if k.h > 0 and not factorize(k, G.S if form == PRIMAL else G.P, k.e, m):
        return False
    if form == PRIMAL or G.n_null == 0 or precondition_null_space(G, k):
        return True
    k.direct = True
    return start_step(G, k)


cdef bint precondition_null_space(const Gram *G, Problem *k) noexcept nogil:
    """M^-1 N' for the null space N of S, and the factor of N M^-1 N'; False if rounding decides in the null space."""
    cdef int i, j, l, n = G.n_null, m = G.m
    cdef double largest = 0.0
    if k.null == NULL:
        k.null = <double *>malloc(<size_t>n * (m + n) * sizeof(double))
        if k.null == NULL:
            return False
        k.C = k.null + <size_t>n * m
    for i in range(n):
        for j in range(m):
            k.null[<size_t>i * m + j] = k.inverse[j] * G.null[<size_t>i * m + j]
        solve_hard(k, G.null + <size_t>i * m, k.null + <size_t>i * m, k.p)
    for i in range(n):
        for l in range(i + 1):
            k.C[i * n + l] = dot(m, G.null + <size_t>l * m, k.null + <size_t>i * m)
    if not cholesky(k.C, n):
        return False
    # N x is zero but for the rounding of x, and C turns that into an error of b.
    for j in range(m):
        largest = fmax(largest, fabs(k.x[j]))
    for i in range(n):
        if not 10 * EPS * largest * k.weight <= k.C[i * n + i] ** 2:
            return False
    return True


cdef bint nearly_alike(const Gram *G, Problem *k, const double *d) noexcept nogil:
    """Whether the eigenvalues of S + level I are large beside the differences of the penalties from it."""
    cdef int j
    cdef double least = INFINITY, most = 0.0
    for j in range(G.m):
        least, most = fmin(least, d[j] * G.metric[j]), fmax(most, d[j] * G.metric[j])
    k.level = 0.5 * (least + most)
    return G.w[0] + k.level > SPREAD * (most - k.level)


cdef void solve_hard(const Problem *k, const double *r, double *z, double *tmp) noexcept nogil:
    """Put the exact solution of the hard columns, if any, into z."""
    cdef int i
    for i in range(k.h):
        tmp[i] = r[k.hard[i]]
    substitute(k.h, k.L, tmp)
    for i in range(k.h):
        z[k.hard[i]] = tmp[i]


cdef double precondition(const Gram *G, Problem *k, Scratch *w) noexcept nogil:
    """Complete z = M^-1 r, which is r over the diagonal so far; r'z, and what is left to correct into k.neglected.

    In the dual of dependent columns x stays in the range of S, where r is known but for its part in the null space
    N: that part is chosen so that N z = 0.
    """
    cdef int i, n = G.n_null if k.form == DUAL else 0
    solve_hard(k, k.r, w.z, w.tmp)
    for i in range(n):
        w.tmp[i] = dot(G.m, G.null + <size_t>i * G.m, w.z)
    substitute(n, k.C, w.tmp)
    for i in range(n):
        subtract(G.m, w.tmp[i], G.null + <size_t>i * G.m, k.r)
        subtract(G.m, w.tmp[i], k.null + <size_t>i * G.m, w.z)
    return product(G.m, k.form == DUAL, k.r, w.z, &k.neglected)


cdef int advance(const Gram *G, Problem *k, double *Ap, const float *Ap_s, Scratch *w) noexcept nogil:
    """Take the product that the problem waited for, and go on until it needs the next one.

    One call is mostly one iteration of conjugate gradients:

        a = r'z / p'Ap,   x += a p,   r -= a Ap,   z = M^-1 r,   p = z + (new r'z / old r'z) p.

    Once z is small enough, so is the error of x: the step is finished and the next system set up, whose
    residual follows from r. Nothing but rounding asks for r = right - A x.
    A product in single precision is in `Ap_s`, and `Ap` is where it goes in double.
    """
    cdef int j, m = G.m, state, asked = k.asked
    cdef double pAp, rz = 0.0
    cdef const double *right = k.q if k.form == PRIMAL else k.ols
    if asked == RESIDUAL:
        for j in range(m):
            k.r[j] = right[j] - Ap[j] - k.e[j] * k.x[j]
        k.drift = k.rz = 0.0
    elif asked == CURVATURE:
        pAp = curvature(m, k.e, k.p, Ap, Ap) if Ap_s == NULL else curvature_single(m, k.e, k.p, Ap_s, Ap)
        if not pAp > 0.0:
            return DOUBTFUL
        rz = iterate(m, k.form == DUAL, k.rz / pAp, k.p, Ap, k.inverse, k.x, k.r, w.z, &k.neglected)
        if k.single and not k.ending:
            k.drift += DRIFT * k.rz / sqrt(pAp * G.mu) * (1.0 if k.form == DUAL else 1.0 / G.mu)
    elif asked == ROTATED:
        for j in range(m):
            k.inverse[j] = Ap[j] / (G.w[j] + k.level)
        return ask(k, CORRECTION, k.inverse)
    elif asked == CORRECTION:
        memcpy(w.z, Ap, m * sizeof(double))
    elif asked == ERRORS:
        asked = NOTHING
        state = next_step(G, k, Ap_s, w)
        if state != RUNNING:
            return state
    while True:
        if asked <= RESIDUAL:
            # The residual is known: an iteration of length 0 turns it into z.
            rz = iterate(m, k.form == DUAL, 0.0, k.b, k.b, k.inverse, k.x, k.r, w.z, &k.neglected)
        if k.exact:
            memcpy(k.x, k.q, m * sizeof(double))
            substitute(m, k.L, k.x)
            if G.n_rows > 0 and not refine(G, k, w):
                return DOUBTFUL
            memset(k.r, 0, m * sizeof(double))
            k.neglected = k.drift = 0.0
        else:
            # z is r over the diagonal so far.
            if k.spectral and asked != CORRECTION:
                return ask(k, ROTATED, k.r)
            if not G.mild:
                rz = precondition(G, k, w)
            if not k.neglected * k.weight <= 1.0:
                if k.iterations < MOST_ITERATIONS and rz < INFINITY:
                    add(m, rz / k.rz if k.rz > 0.0 else 0.0, w.z, k.p)
                    k.rz = rz
                    k.iterations += 1
                    return ask(k, CURVATURE, k.p)
                k.direct = True
                if not start_step(G, k):
                    return DOUBTFUL
                continue
            # x solves the system of r; whether r is still the residual of x is another matter.
            if k.drift * k.weight > 1.0:
                k.iterations += 1
                return ask(k, RESIDUAL, k.x)
        if finish_step(G, k, w):
            return ask(k, ERRORS, k.p)
        state = next_step(G, k, NULL, w)
        if state != RUNNING:
            return state
        asked = NOTHING


cdef bint refine(const Gram *G, Problem *k, Scratch *w) noexcept nogil:
    """Give x the digits that a QR decomposition of the rows has; False if S has none of them.

    These are the corrected seminormal equations (Björck, 1987): each round adds as many digits as the factor has.
    """
    cdef int j, m = G.m, n = G.n_rows, step = 1
    cdef double one = 1.0, minus = -1.0, zero = 0.0, size, most, last = INFINITY
    while True:
        memcpy(w.tmp, k.y, n * sizeof(double))
        dgemv(b"T", &m, &n, &minus, <double *>G.X, &m, k.x, &step, &one, w.tmp, &step)
        dgemv(b"N", &m, &n, &one, <double *>G.X, &m, w.tmp, &step, &zero, w.z, &step)
        for j in range(m):
            w.z[j] -= k.e[j] * k.x[j]
        substitute(m, k.L, w.z)
        size = most = 0.0
        for j in range(m):
            size = fmax(size, fabs(w.z[j]) * sqrt(1.0 + k.e[j]))
            most = fmax(most, fabs(k.x[j]) * sqrt(1.0 + k.e[j]))
        if not size < 0.5 * last:
            return last <= DIGITS * most
        for j in range(m):
            k.x[j] += w.z[j]
        if size <= 10 * EPS * most:
            return True
        last = size


cdef bint finish_step(const Gram *G, Problem *k, Scratch *w) noexcept nogil:
    """The coefficients after a step, and the errors that they carry on; whether to ask which others these reach."""
    cdef int j, m = G.m
    cdef const double *b = k.x
    if k.form == DUAL:
        dual_coefficients(m, k.e, k.x, k.r, k.inverse, w.tmp)
        b = w.tmp
    if k.from_zero:
        # The steps before were not far from this one, and not at zero: half of the gain on all of b.
        for j in range(m):
            k.b[j] = b[j]
            k.err[j] = 0.5 * fabs(b[j])
        k.from_zero = False
    if k.bounded:
        k.carried = carry_error(m, k.form == DUAL, G.gamma[k.g], k.root, G.tau, k.e, k.b, b, k.err)
    memcpy(k.b, b, m * sizeof(double))
    # Less than a solve may leave is not worth a product.
    if not k.bounded or G.leak * k.carried * k.weight <= 1.0:
        return False
    for j in range(m):
        k.p[j] = (k.err[j] / k.carried) ** 2
    return True


cdef int next_step(const Gram *G, Problem *k, const float *squares, Scratch *w) noexcept nogil:
    """The errors after a step, and the start of the next; `squares` are of the errors that reach each coefficient."""
    cdef int j, m = G.m, state
    if k.bounded:
        for j in range(m):
            w.tmp[j] = k.carried * (G.leak if squares == NULL else sqrt(squares[j]))
        # The correction that is left out, of r / (tau_j + d_j), reaches other coefficients as well.
        if add_error(m, k.form == DUAL, G.gamma[k.g], (1.0 + G.leak) * (k.neglected + k.drift), DOUBT, w.tmp, k.e,
                     k.root, k.b, k.err) > 0.0:
            return DOUBTFUL
    k.steps += 1
    k.t += 1
    if k.t == G.t_max:
        k.t = 0
        k.direct = k.literal or G.n_rows > 0
        if k.g + 1 < G.n_gammas and not k.ending and not k.literal and decided(G, k, w):
            state = settle(G, k, w)
            if state != RUNNING:
                return state
        k.g += 1
        if k.g == G.n_gammas:
            # Without a bound on the error, only what was decided before has its digits.
            return last_step(G, k) if k.bounded or k.literal or k.ending else DOUBTFUL
    return RUNNING if start_step(G, k) else DOUBTFUL


cdef inline double gamma_of(const Gram *G, const Problem *k, int j, int g) noexcept nogil:
    """The g-th gamma in the units of b_j."""
    return G.gamma[g] * k.root[j]


cdef inline double penalty(const Gram *G, const Problem *k, int j, double b, int g) noexcept nogil:
    """d_j of a coefficient b at the g-th gamma."""
    cdef double c = gamma_of(G, k, j, g) ** 2, s = b * b + c
    return k.alpha * G.factor[j] * (c / s) / s


cdef bint decided(const Gram *G, const Problem *k, Scratch *w) noexcept nogil:
    """Whether each coefficient is above or below its gamma for good, it seems; w.support says which."""
    cdef int j
    cdef double gamma, a, b
    for j in range(G.m):
        gamma, a, b = gamma_of(G, k, j, k.g), k.alpha * G.factor[j], fabs(k.b[j])
        # tau_j is what all other columns leave of column j; if that is little, `settle` asks the selected ones.
        w.support[j] = a == 0.0 or (b > IN_RATIO * gamma
                                    and penalty(G, k, j, b, k.g) < IN_WEIGHT * (G.tau[j] if G.mild else 1.0))
        if not w.support[j] and not (b < OUT_RATIO * gamma / G.gamma_step and a > OUT_WEIGHT * gamma * gamma):
            return False
    return True


cdef bint least_squares(const Gram *G, Problem *k, Scratch *w, double *bhat, double *tau) noexcept nogil:
    """Least squares on w.support, the forces X'(y - Xb), and 1 / (S_AA^-1)_jj or a lower bound on it.

    With S, from the columns selected; or with P, from least squares on all columns by the others: the same
    equations with bhat and the forces in each other's place. Whichever columns are fewer.
    """
    cdef int i, j, m = G.m, n_selected = 0
    cdef bint dual
    for j in range(m):
        n_selected += w.support[j]
    dual = G.mild and 2 * n_selected > m
    cdef const double *M = G.P if dual else G.S
    cdef const double *right = k.ols if dual else k.q
    cdef double *inside = w.force if dual else bhat
    cdef double *outside = bhat if dual else w.force
    k.h = 0
    for j in range(m):
        if w.support[j] != dual:
            k.hard[k.h] = j
            k.h += 1
    if not factorize(k, M, NULL, m):
        return False
    for i in range(k.h):
        w.tmp[i] = right[k.hard[i]]
    substitute(k.h, k.L, w.tmp)
    memset(inside, 0, m * sizeof(double))
    memcpy(outside, right, m * sizeof(double))
    for i in range(k.h):
        subtract(m, w.tmp[i], M + <size_t>k.hard[i] * m, outside)
    for i in range(k.h):
        inside[k.hard[i]], outside[k.hard[i]] = w.tmp[i], 0.0
    memcpy(tau, G.tau, m * sizeof(double))
    if not G.mild:
        inverse_diagonal(k, w.tmp)
        for i in range(k.h):
            tau[k.hard[i]] = 1.0 / w.tmp[i]
    return True


cdef int settle(const Gram *G, Problem *k, Scratch *w) noexcept nogil:
    """DONE if the loop ends at least squares on w.support, and k.b is that; else RUNNING.

    It does if that contradicts no decision at the gamma where it was made, and if the last gamma is nil
    beside it. If the last gamma shows, the problem enters the last gammas from there.
    """
    cdef int i, j, m = G.m, last = G.n_gammas - 1
    cdef double gamma, a, b, last_gamma, c, rate = 0.0, kept, smallest = INFINITY
    cdef bint shows = False
    cdef double *bhat = w.z
    cdef double *tau = k.inverse
    if not least_squares(G, k, w, bhat, tau):
        return RUNNING
    for j in range(m):
        if w.support[j]:
            smallest = fmin(smallest, tau[j] * fabs(bhat[j]))
    for j in range(m):
        a = k.alpha * G.factor[j]
        if a == 0.0:
            continue
        gamma, last_gamma, b = gamma_of(G, k, j, k.g), gamma_of(G, k, j, last), fabs(bhat[j])
        if w.support[j]:
            if not (b > 0.5 * IN_RATIO * gamma and fabs(k.b[j] - bhat[j]) <= AGREE * b
                    and penalty(G, k, j, b, k.g) < IN_WEIGHT * tau[j]):
                return RUNNING
            rate = fmax(rate, penalty(G, k, j, b, last) / tau[j])
            shows |= not rate < DIGITS
        else:
            if not fabs(w.force[j]) * gamma < 0.5 * (gamma * gamma + a):
                return RUNNING
            # Its last value, and how much a step keeps of an error there.
            b = fabs(w.force[j]) * last_gamma ** 2 / (a + last_gamma ** 2)
            rate = fmax(rate, (G.gamma_step * G.gamma_step * b / last_gamma) ** 2)
            shows |= not (b < 0.5 * G.epsilon * k.root[j] and b < 0.1 * DIGITS * smallest)
    shows |= not rate < 0.01
    if not shows:
        memcpy(k.b, bhat, m * sizeof(double))
        memset(k.err, 0, m * sizeof(double))
        return last_step(G, k)
    # From here on a step keeps no more than `rate` of an error, and a gamma earlier gamma_step^2 times that.
    k.ending = True
    kept = 2.0 * rate * G.gamma_step * G.gamma_step
    rate *= 8.0
    while last > k.g + 1:
        for i in range(G.t_max):
            kept *= rate
        if kept < 0.01 * DIGITS:
            break
        rate *= G.gamma_step * G.gamma_step
        kept *= G.gamma_step * G.gamma_step
        last -= 1
    kept = 0.25 * rate * G.gamma_step * G.gamma_step
    if last > k.g + 1 and kept < 0.1:
        k.g, k.form = last - 1, -1
        for j in range(m):
            c = gamma_of(G, k, j, last - 1) ** 2
            k.b[j] = bhat[j] if w.support[j] else w.force[j] * c / (k.alpha * G.factor[j] + c)
            k.err[j] = kept * fabs(k.b[j])
    return RUNNING


cdef int last_step(const Gram *G, Problem *k) noexcept nogil:
    """Set coefficients below epsilon to zero; DONE if the error carried leaves the digits of all others."""
    cdef int j
    cdef double b, epsilon
    for j in range(G.m):
        b, epsilon = fabs(k.b[j]), G.epsilon * k.root[j]
        if not b < INFINITY:
            return DOUBTFUL
        if G.factor[j] == 0.0:
            epsilon = 0.0
        if k.bounded and ((k.err[j] > 0.0 and fabs(b - epsilon) <= k.err[j]) or (b >= epsilon and k.err[j] > DIGITS * b)):
            return DOUBTFUL
        if b < epsilon:
            k.b[j] = 0.0
    return DONE


cdef int attempt(const Gram *G, Problem *k, const double[:] largest, Scratch *w) noexcept nogil:
    """Start a problem with the next tolerance, and go on until it needs a product."""
    cdef int state = DOUBTFUL
    while state == DOUBTFUL and k.attempt < G.n_attempts:
        k.tolerance = G.tolerance[k.attempt]
        k.literal, k.bounded = k.tolerance == 0.0, G.mild and k.tolerance > 0.0
        # Coarser tolerances than the rounding of single precision allow it.
        k.single = k.bounded and k.tolerance > 10 * DRIFT
        k.attempt += 1
        enter(G, k, largest)
        if start_step(G, k):
            state = advance(G, k, k.p, NULL, w)
    return state


cdef inline int group(const Problem *k) noexcept nogil:
    """Which product a problem waits for: with S, P, V' or V, or in single precision with S, P or the spread of errors."""
    if k.asked >= ROTATED:
        return k.asked - ROTATED + 2 if k.asked < ERRORS else SINGLE + 2
    return k.form + (SINGLE if k.single and k.asked == CURVATURE and not k.ending else 0)


def inverse(const double[:, ::1] S, double[:, ::1] P):
    """P <- S^-1; False if S is not positive definite but for rounding."""
    cdef int n = <int>S.shape[0], info, i, j
    with nogil:
        P[:, :] = S
        dpotrf(b"L", &n, &P[0, 0], &n, &info)
        if info == 0:
            dpotri(b"L", &n, &P[0, 0], &n, &info)
        for i in range(n):
            for j in range(i):
                P[i, j] = P[j, i]
    return info == 0


def solve(
    scaled,
    schedule,
    const double[::1] alphas,
    const int[::1] targets,
    const double[:, :] largest,
    bint mild,
    const double[::1] tolerances,
    double[:, ::1] B,
    int[::1] done,
):
    """The coefficients of each problem into B, and whether they are vouched for into `done`.

    Returns the largest number of steps that a problem took. Problem i has the alpha ``alphas[i]`` and the
    target ``targets[i]``, a row of q, ols and root. `largest` bounds its coefficients at each gamma. `tolerances`, one for each
    attempt at a problem, are the error of a solve that the loop remembers, relative to |b_j| + gamma; the square root is
    that of any other. The next attempt is made if the bound on errors does not vouch for the answer. A tolerance of 0
    stands for the literal loop.
    """
    cdef const double[:, ::1] S = scaled.S, P = scaled.P, V = scaled.V, V_t = scaled.V_t, spread = scaled.spread
    cdef const double[:, ::1] q = scaled.q, ols = scaled.ols, root = scaled.root
    cdef const double[::1] tau = scaled.tau, w_V = scaled.w, metric = scaled.metric, factor = scaled.factor
    cdef const double[::1] gammas = schedule.gammas()
    cdef int m = <int>S.shape[0], R = <int>alphas.shape[0], i, s, n, n_next, which, state, steps = 0
    cdef Gram G
    G.m, G.n_gammas, G.t_max = m, <int>gammas.shape[0], schedule.t_max
    G.S, G.P, G.tau, G.mu, G.lowest = &S[0, 0], &P[0, 0], &tau[0], scaled.mu, scaled.lowest
    cdef const double[:, ::1] null = scaled.null, X = scaled.X, y = scaled.y
    G.n_null = <int>null.shape[0]
    if G.n_null > 0:
        G.null = &null[0, 0]
    G.n_rows = <int>X.shape[0]
    assert G.n_rows <= m
    if G.n_rows > 0:
        G.X = &X[0, 0]
    if not mild:
        G.V, G.V_t, G.w, G.metric = &V[0, 0], &V_t[0, 0], &w_V[0], &metric[0]
    G.gamma, G.gamma_step, G.epsilon, G.factor = &gammas[0], schedule.gamma_step, schedule.epsilon, &factor[0]
    G.mild, G.leak, G.tolerance, G.n_attempts = mild, scaled.leak, &tolerances[0], <int>tolerances.shape[0]
    # For each problem err, x, r, p, e, inverse and a row of the products; for all of them some more.
    cdef size_t size = <size_t>R * m, square = panels_size(m, sizeof(double)), square_s = panels_size(m, sizeof(float))
    cdef double[::1] memory = np.zeros(8 * size + 4 * m)
    cdef double[::1] panels = np.empty(square * (2 if mild else 4))
    cdef float[::1] singles = np.empty(3 * square_s + 2 * size if mild else 1, dtype=np.float32)
    cdef int[::1] indices = np.empty(size + R + m, dtype=np.int32)
    cdef double *operands = &memory[6 * size]
    cdef double *products = operands + size
    cdef double *rest = products + size
    cdef float *operands_s = &singles[0]
    cdef float *products_s = operands_s + size
    cdef float *panels_s = products_s + size
    cdef int *active = &indices[size]
    cdef int n_group[SINGLE + 3]
    cdef Scratch w
    cdef Problem *k
    cdef Problem *problems = <Problem *>calloc(max(R, 1), sizeof(Problem))
    if problems == NULL:
        raise MemoryError(f"{R} problems of {m} columns")
    w.support, w.z, w.force, w.tmp, G.diagonal = active + R, rest, rest + m, rest + 2 * m, rest + 3 * m
    with nogil:
        for i in range(m):
            rest[3 * m + i] = P[i, i]
        pack[double](S, &panels[0])
        pack[double](P, &panels[square])
        if mild:
            pack[float](S, panels_s)
            pack[float](P, panels_s + square_s)
            pack[float](spread, panels_s + 2 * square_s)
        else:
            pack[double](V, &panels[2 * square])
            pack[double](V_t, &panels[3 * square])
        n = 0
        for i in range(R):
            k = &problems[i]
            k.alpha, k.b, k.hard = alphas[i], &B[i, 0], &indices[<size_t>i * m]
            k.q, k.ols, k.root = &q[targets[i], 0], &ols[targets[i], 0], &root[targets[i], 0]
            if G.n_rows > 0:
                k.y = &y[targets[i], 0]
            k.err = &memory[6 * <size_t>i * m]
            k.x, k.r, k.p, k.e, k.inverse = k.err + m, k.err + 2 * m, k.err + 3 * m, k.err + 4 * m, k.err + 5 * m
            state = attempt(&G, k, largest[i], &w)
            done[i] = state == DONE
            if state == RUNNING:
                active[n] = i
                n += 1
        while n > 0:
            # One product for the form and precision that most problems ask for, the others wait: the larger
            # the block of vectors, the faster the product. Then each of these goes its own way.
            memset(n_group, 0, sizeof(n_group))
            for s in range(n):
                n_group[group(&problems[active[s]])] += 1
            which = 0
            for i in range(1, SINGLE + 3):
                if n_group[i] > n_group[which]:
                    which = i
            i = 0
            for s in range(n):
                k = &problems[active[s]]
                if group(k) == which:
                    if which >= SINGLE:
                        narrow(m, k.operand, operands_s + <size_t>i * m)
                    else:
                        memcpy(operands + <size_t>i * m, k.operand, m * sizeof(double))
                    i += 1
            if which >= SINGLE:
                multiply_single(panels_s + (which - SINGLE) * square_s, operands_s, products_s, m, i)
            else:
                multiply(&panels[which * square], operands, products, m, i)
            i = n_next = 0
            for s in range(n):
                k = &problems[active[s]]
                state = RUNNING
                if group(k) == which:
                    state = advance(&G, k, products + <size_t>i * m,
                                    products_s + <size_t>i * m if which >= SINGLE else NULL, &w)
                    if state == DOUBTFUL:
                        state = attempt(&G, k, largest[active[s]], &w)
                    done[active[s]] = state == DONE
                    i += 1
                if state == RUNNING:
                    active[n_next] = active[s]
                    n_next += 1
            n = n_next
        for i in range(R):
            steps = max(steps, problems[i].steps)
            free(problems[i].L)
            free(problems[i].null)
        free(problems)
    return steps
