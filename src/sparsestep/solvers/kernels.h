/* Loops over the columns of one problem, apart from the engine's logic so that they vectorize.
   Each is compiled for several lengths of vectors where the compiler can choose at run time. */
#include <math.h>
#include <string.h>

#if defined(__linux__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES
#define KERNEL __attribute__((target_clones("avx512f", "avx2", "default"))) static
#else
#define KERNEL static
#endif
#define ABS(a) ((a) < 0 ? -(a) : (a))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))


/* Ap <- Mp + e p, given the product of the matrix and p in either precision; returns p'Ap. */
#define CURVATURE(name, real)                                                                     \
  KERNEL double name(int m, const double *restrict e, const double *restrict p, const real *Mp,   \
                     double *Ap) {                                                                \
    double pAp = 0.0;                                                                             \
    _Pragma("omp simd reduction(+ : pAp)") for (int j = 0; j < m; j++) {                          \
      Ap[j] = Mp[j] + e[j] * p[j];                                                                \
      pAp += p[j] * Ap[j];                                                                        \
    }                                                                                             \
    return pAp;                                                                                   \
  }
CURVATURE(curvature, double)
CURVATURE(curvature_single, float)

/* x <- x + a p, r <- r - a Ap, z <- r / diag; returns r'z, and in `most` what is left to correct in b:
   the largest |z_j| or, in the dual, |r_j|. */
KERNEL double iterate(int m, int dual, double a, const double *restrict p,
                      const double *restrict Ap, const double *restrict inverse,
                      double *restrict x, double *restrict r, double *restrict z, double *most) {
  double rz = 0.0, largest = 0.0;
#pragma omp simd reduction(+ : rz) reduction(max : largest)
  for (int j = 0; j < m; j++) {
    x[j] += a * p[j];
    double rj = r[j] - a * Ap[j], zj = inverse[j] * rj, size = ABS(dual ? rj : zj);
    r[j] = rj;
    z[j] = zj;
    rz += rj * zj;
    largest = MAX(size, largest);
  }
  *most = largest;
  return rz;
}

/* r'z, and in `most` what is left to correct in b, as above. */
KERNEL double product(int m, int dual, const double *restrict r, const double *restrict z,
                      double *most) {
  double rz = 0.0, largest = 0.0;
#pragma omp simd reduction(+ : rz) reduction(max : largest)
  for (int j = 0; j < m; j++) {
    double size = ABS(dual ? r[j] : z[j]);
    rz += r[j] * z[j];
    largest = MAX(size, largest);
  }
  *most = largest;
  return rz;
}

/* x'y. */
KERNEL double dot(int m, const double *restrict x, const double *restrict y) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (int j = 0; j < m; j++) sum += x[j] * y[j];
  return sum;
}

/* y <- x + a y. */
KERNEL void add(int m, double a, const double *restrict x, double *restrict y) {
#pragma omp simd
  for (int j = 0; j < m; j++) y[j] = x[j] + a * y[j];
}

/* y <- y - a x. */
KERNEL void subtract(int m, double a, const double *restrict x, double *restrict y) {
#pragma omp simd
  for (int j = 0; j < m; j++) y[j] -= a * x[j];
}

/* The penalties d_j = alpha_j gamma_j^2 / (b_j^2 + gamma_j^2)^2, never quite zero. Returns the
   largest weight of an error of b_j; counts the columns that are hard in each form. */
KERNEL double penalties(int m, double alpha, double gamma, double tolerance,
                        const double *restrict factor, const double *restrict root,
                        const double *restrict tau, const double *restrict diagonal,
                        const double *restrict b, double *restrict d, double *n_hard) {
  double most = 0.0, primal = 0.0, dual = 0.0;
  /* Of an error that the loop remembers in full, and of one that it forgets. */
  double strict = tolerance > 0.0 ? 1.0 / tolerance : 0.0, loose = sqrt(strict);
#pragma omp simd reduction(max : most) reduction(+ : primal, dual)
  for (int j = 0; j < m; j++) {
    double gamma_j = gamma * root[j], c = gamma_j * gamma_j, s = 1.0 / (b[j] * b[j] + c);
    double dj = alpha * factor[j] * (c * s) * s + 1e-30, memory = MIN(8.0 * dj * diagonal[j], 1.0);
    double weight = (memory * memory * strict + loose) / (ABS(b[j]) + gamma_j);
    most = MAX(weight, most);
    primal += dj < 1.0 ? 1.0 : 0.0;
    dual += dj > tau[j] ? 1.0 : 0.0;
    d[j] = dj;
  }
  n_hard[0] = primal;
  n_hard[1] = dual;
  return most;
}

/* The system of the new penalties: d becomes e, in the dual 1/d; the residual of x; and the inverse of
   the diagonal of the whole matrix. Returns the largest |e_j x_j|. */
KERNEL double new_system(int m, int dual, const double *restrict diagonal, const double *restrict x,
                         double *restrict d, double *restrict e, double *restrict r,
                         double *restrict inverse) {
  double most = 0.0;
  if (dual) {
#pragma omp simd
    for (int j = 0; j < m; j++) d[j] = 1.0 / d[j];
  }
#pragma omp simd reduction(max : most)
  for (int j = 0; j < m; j++) {
    double size = ABS(d[j] * x[j]);
    r[j] += (e[j] - d[j]) * x[j];
    e[j] = d[j];
    inverse[j] = 1.0 / (diagonal[j] + d[j]);
    most = MAX(size, most);
  }
  return most;
}

/* The coefficients b = e x of the dual iterate, with the correction that z = r / diag would be. Where e
   is large that is e x + r = b_ols - P x. */
KERNEL void dual_coefficients(int m, const double *restrict e, const double *restrict x,
                              const double *restrict r, const double *restrict inverse,
                              double *restrict b) {
#pragma omp simd
  for (int j = 0; j < m; j++) b[j] = e[j] * (x[j] + inverse[j] * r[j]);
}

/* err <- gain err, where a step multiplies an error of b_j by
   gain_j = 4 |b_j b_j'| / (b_j^2 + gamma_j^2) * d_j / (tau_j + d_j); e is d, or 1 / d in the dual.
   Returns the largest err_j. */
KERNEL double carry_error(int m, int dual, double gamma, const double *restrict root,
                          const double *restrict tau, const double *restrict e,
                          const double *restrict b, const double *restrict new_b,
                          double *restrict err) {
  double most = 0.0;
#pragma omp simd reduction(max : most)
  for (int j = 0; j < m; j++) {
    double gamma_j = gamma * root[j], moved = ABS(b[j] * new_b[j]);
    double above = dual ? moved : moved * e[j], below = dual ? 1.0 + tau[j] * e[j] : tau[j] + e[j];
    double error = 4.0 * above / ((b[j] * b[j] + gamma_j * gamma_j) * below) * err[j];
    most = MAX(error, most);
    err[j] = error;
  }
  return most;
}

/* err <- err + left + spread / (1 + d). Returns how far an error is above its limit, doubt times
   |b_j| + gamma_j, or 0. */
KERNEL double add_error(int m, int dual, double gamma, double left, double doubt,
                        const double *restrict spread, const double *restrict e,
                        const double *restrict root, const double *restrict b,
                        double *restrict err) {
  double most = 0.0;
#pragma omp simd reduction(max : most)
  for (int j = 0; j < m; j++) {
    double error = err[j] + left + spread[j] * (dual ? e[j] : 1.0) / (1.0 + e[j]);
    double above = error - doubt * (ABS(b[j]) + gamma * root[j]);
    most = MAX(above, most);
    err[j] = error;
  }
  return most;
}

/* Y <- X M for the n rows of X, and M in panels of columns: PANEL bytes a row, padded with zeros. A tile
   of TILE rows of Y, two vectors wide, stays in registers. Not by the BLAS, which copies its factors
   first, as long as a product of this size takes, and has no long vectors for processors it does not know. */
#define PANEL 128
#define TILE 4
#define MULTIPLY(name, real, bytes)                                                               \
  static void name(const real *panel, const real *X, real *Y, int m, int n) {                     \
    typedef real vector __attribute__((vector_size(bytes), aligned(sizeof(real)), may_alias));    \
    const int columns = PANEL / sizeof(real), length = bytes / sizeof(real);                      \
    for (int first = 0; first < m; first += columns, panel += (size_t)m * columns)                \
      for (int i = 0; i < n; i += TILE)                                                           \
        for (int v = 0; v < columns && first + v < m; v += 2 * length) {                          \
          const real *M = panel + v, *x[TILE];                                                    \
          vector y[TILE][2];                                                                      \
          _Pragma("GCC unroll 4") for (int t = 0; t < TILE; t++) {                                \
            x[t] = X + (size_t)MIN(i + t, n - 1) * m;                                             \
            y[t][0] = y[t][1] = (vector){0};                                                      \
          }                                                                                       \
          for (int j = 0; j < m; j++, M += columns)                                               \
            _Pragma("GCC unroll 4") for (int t = 0; t < TILE; t++) {                              \
              y[t][0] += x[t][j] * *(const vector *)M;                                            \
              y[t][1] += x[t][j] * *(const vector *)(M + length);                                 \
            }                                                                                     \
          for (int t = 0; t < MIN(TILE, n - i); t++)                                              \
            memcpy(Y + (size_t)(i + t) * m + first + v, y[t],                                     \
                   MIN(2 * length, m - first - v) * sizeof(real));                                \
        }                                                                                         \
  }
#ifdef CLONES
#define MULTIPLY_CLONES(name, real)                                                               \
  __attribute__((target("avx512f"))) MULTIPLY(name##_512, real, 64)                               \
  __attribute__((target("avx2,fma"))) MULTIPLY(name##_256, real, 32)                              \
  MULTIPLY(name##_128, real, 16)                                                                  \
  static void name(const real *panels, const real *X, real *Y, int m, int n) {                    \
    if (__builtin_cpu_supports("avx512f"))                                                        \
      name##_512(panels, X, Y, m, n);                                                             \
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))                     \
      name##_256(panels, X, Y, m, n);                                                             \
    else                                                                                          \
      name##_128(panels, X, Y, m, n);                                                             \
  }
MULTIPLY_CLONES(multiply, double)
MULTIPLY_CLONES(multiply_single, float)
#else
MULTIPLY(multiply, double, 16)
MULTIPLY(multiply_single, float, 16)
#endif

/* To single precision. */
KERNEL void narrow(int m, const double *restrict x, float *restrict y) {
#pragma omp simd
  for (int j = 0; j < m; j++) y[j] = (float)x[j];
}

/* v <- (L L')^-1 v, for the lower triangle L by rows; two rows at a time, because each waits for the
   one before. Not by the BLAS, whose dtrsv takes a lock that threads wait for. */
KERNEL void substitute(int n, const double *restrict L, double *restrict v) {
  int i = 0;
  for (; i < n - 1; i += 2) {
    const double *a = L + (size_t)i * n, *b = a + n;
    double s = 0.0, t = 0.0;
#pragma omp simd reduction(+ : s, t)
    for (int j = 0; j < i; j++) {
      s += a[j] * v[j];
      t += b[j] * v[j];
    }
    v[i] = (v[i] - s) / a[i];
    v[i + 1] = (v[i + 1] - (t + b[i] * v[i])) / b[i + 1];
  }
  if (i < n) {
    const double *a = L + (size_t)i * n;
    v[i] = (v[i] - dot(i, a, v)) / (a[i] * a[i]);
    subtract(i, v[i], a, v);
  }
  for (i -= 2; i >= 0; i -= 2) {
    const double *a = L + (size_t)i * n, *b = a + n;
    double t = v[i + 1] / b[i + 1], s = (v[i] - t * b[i]) / a[i];
#pragma omp simd
    for (int j = 0; j < i; j++) v[j] -= s * a[j] + t * b[j];
    v[i] = s;
    v[i + 1] = t;
  }
}
