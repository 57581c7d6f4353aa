/* Statistic -> weights: Cholesky's factors, block by block, in double. */
#include "internal.h"

#if TAPWORD_SCATTER
/* Fill the factor with share * scatter, plus the scatter of the means where the rule needs it. */
TAPWORD_PRIVATE void tapword_fill(tapword *t, const float *scatter, size_t n, double share)
{
    const double *centre = t->work.solving.centre;
    double *factor = t->work.solving.factor;
    size_t p, i, j, k, all = n * (n + 1) / 2;
    for (p = 0; p < all; p++) {
        factor[p] = share * (double)scatter[p];
    }
    for (k = 0; k < t->words; k++) {
        double weight = tapword_between_words(t, k);
        for (j = 0, p = 0; weight > 0.0 && j < n; j++) {
            double scaled = weight * ((double)t->means[k][j] - centre[j]);
            for (i = j; i < n; i++) {
                factor[p++] += scaled * ((double)t->means[k][i] - centre[i]);
            }
        }
    }
}

static int tapword_cholesky(double *a, size_t n)
{
    size_t j, k, i, column = 0;
    for (j = 0; j < n; column += n - j, j++) {
        size_t target = column + n - j;
        if (!(a[column] > 0.0)) {
            return 0;
        }
        a[column] = sqrt(a[column]);
        for (i = 1; i < n - j; i++) {
            a[column + i] /= a[column];
        }
        for (k = 1; k < n - j; k++) {
            for (i = k; i < n - j; i++) {
                a[target++] -= a[column + i] * a[column + k];
            }
        }
    }
    return 1;
}

/* Factor of a block; if rounding left it indefinite, its diagonal is raised a little. */
static int tapword_factor(tapword *t, const float *scatter, size_t first, size_t n, double share)
{
    static const double raises[] = {TAPWORD_RAISES};
    size_t attempt, j, p;
    for (attempt = 0; attempt < sizeof raises / sizeof raises[0]; attempt++) {
        tapword_fill(t, scatter, n, share);
        for (j = 0, p = 0; j < n; p += n - j, j++) {
            t->work.solving.factor[p] += t->work.solving.extra[first + j];
            t->work.solving.factor[p] *= 1.0 + raises[attempt];
        }
        if (tapword_cholesky(t->work.solving.factor, n)) {
            return 1;
        }
    }
    return 0;
}

static void tapword_solve_one(const double *a, size_t n, double *x)
{
    size_t j, i, column = 0;
    for (j = 0; j < n; column += n - j, j++) {
        x[j] /= a[column];
        for (i = 1; i < n - j; i++) {
            x[j + i] -= a[column + i] * x[j];
        }
    }
    for (j = n; j-- > 0;) {
        column -= n - j;
        for (i = 1; i < n - j; i++) {
            x[j] -= a[column + i] * x[j + i];
        }
        x[j] /= a[column];
    }
}

/* Solve (share * scatter + between words + diag(extra)) w_k = mean_k - centre for every word.
   factors get w_k.(mean_k - centre) and biases w_k.centre, of which the rule makes what scores are
   multiplied by and begin with. */
TAPWORD_PRIVATE int tapword_solve(tapword *t, double share)
{
    const float *scatter = t->scatter;
    size_t first, k, i;
    for (k = 0; k < t->words; k++) {
        t->factors[k] = t->biases[k] = 0.0;
    }
    for (first = 0; first < TAPWORD_DIM; first += TAPWORD_BLOCK) {
        size_t rest = TAPWORD_DIM - first, n = rest < TAPWORD_BLOCK ? rest : TAPWORD_BLOCK;
        if (!tapword_factor(t, scatter, first, n, share)) {
            return 0;
        }
        for (k = 0; k < t->words; k++) {
            const float *mean = t->means[k] + first;
            const double *centre = t->work.solving.centre + first;
            for (i = 0; i < n; i++) {
                t->work.solving.right[i] = (double)mean[i] - centre[i];
            }
            tapword_solve_one(t->work.solving.factor, n, t->work.solving.right);
            for (i = 0; i < n; i++) {
                t->factors[k] += t->work.solving.right[i] * ((double)mean[i] - centre[i]);
                t->biases[k] += t->work.solving.right[i] * centre[i];
                t->weights[k][first + i] = (float)t->work.solving.right[i];
            }
        }
        scatter += n * (n + 1) / 2;
    }
    return 1;
}

#if TAPWORD_VARIANCES
/* Variance of each feature over all samples, within words and between, into extra. */
TAPWORD_PRIVATE void tapword_variances(tapword *t)
{
    double n = 0.0, samples = t->samples > 0 ? (double)t->samples : 1.0;
    size_t d, k, p = 0;
    for (k = 0; k < t->words; k++) {
        n += (double)t->counts[k];
    }
    n = n > 0.0 ? n : 1.0;
    for (d = 0; d < TAPWORD_DIM; d++) {
        size_t end = d / TAPWORD_BLOCK * TAPWORD_BLOCK + TAPWORD_BLOCK;
        double mean = 0.0, between = 0.0;
        for (k = 0; k < t->words; k++) {
            mean += (double)t->counts[k] * (double)t->means[k][d] / n;
        }
        for (k = 0; k < t->words; k++) {
            double e = (double)t->means[k][d] - mean;
            between += (double)t->counts[k] * e * e;
        }
        t->work.solving.extra[d] = (double)t->scatter[p] / samples + between / n;
        p += (end < TAPWORD_DIM ? end : TAPWORD_DIM) - d;
    }
}
#endif

int tapword_scores(tapword *t, const float vector[TAPWORD_DIM], size_t length,
                   float scores[TAPWORD_MAX_WORDS])
{
    size_t k, d;
    if (TAPWORD_WEIGHTS_MISSING) {
        return TAPWORD_NO_WEIGHTS;
    }
    if (!tapword_is_vector(vector)) {
        return TAPWORD_BAD_VECTOR;
    }
    if (!t->solved && t->words > 0 && !tapword_rule(t)) {
        return TAPWORD_DEPENDENT;
    }
    t->solved = 1;
    for (k = 0; k < t->words; k++) {
        double sum = 0.0;
        for (d = 0; d < TAPWORD_DIM; d++) {
            sum += (double)t->weights[k][d] * (double)vector[d];
        }
        scores[k] = (float)(t->biases[k] + t->factors[k] * sum);
    }
#if TAPWORD_COHORT
    tapword_normalize(t, vector, length, scores);
#else
    (void)length;
#endif
    return 0;
}
#endif
