/* The rule of ridge: least squares on one-hot words, with a prior as strong as the oracle
   approximating shrinkage of the correlations makes it. */
#include "internal.h"

#if TAPWORD_RIDGE
static double tapword_all(const tapword *t)
{
    double n = 0.0;
    size_t k;
    for (k = 0; k < t->words; k++) {
        n += (double)t->counts[k];
    }
    return n;
}

/* Weight of a word, in samples. */
TAPWORD_PRIVATE double tapword_between_words(const tapword *t, size_t k)
{
    return TAPWORD_BALANCED ? tapword_all(t) / (double)t->words : (double)t->counts[k];
}

static double tapword_prior_samples(const double *total, const double *variance, double n)
{
    double squares = 0.0, dim = TAPWORD_DIM, spread, share;
    size_t i, j, p = 0;
    if (TAPWORD_LAM > 0.0) {
        return TAPWORD_LAM;
    }
    if (TAPWORD_DIM == 1 || n < 2.0) {
        return n;
    }
    for (j = 0; j < TAPWORD_DIM; j++) {
        for (i = j; i < TAPWORD_DIM; i++, p++) {
            double r = total[p] / (n * sqrt(variance[j]) * sqrt(variance[i]));
            squares += (i == j ? 1.0 : 2.0) * r * r;
        }
    }
    spread = squares - dim;
    if (spread <= 0.0) {
        return TAPWORD_OAS_TIMES * n;
    }
    share = ((1.0 - 2.0 / dim) * squares + dim * dim) / ((n + 1.0 - 2.0 / dim) * spread);
    return TAPWORD_OAS_TIMES * n * share /
           (1.0 - (share < TAPWORD_MAX_SHRINKAGE ? share : TAPWORD_MAX_SHRINKAGE));
}

TAPWORD_PRIVATE int tapword_rule(tapword *t)
{
    double n = tapword_all(t), share = n / (t->samples > 0 ? (double)t->samples : 1.0), prior;
    size_t d, k, p;
    for (d = 0; d < TAPWORD_DIM; d++) {
        t->work.solving.centre[d] = 0.0;
        for (k = 0; k < t->words; k++) {
            t->work.solving.centre[d] += tapword_between_words(t, k) * (double)t->means[k][d] / n;
        }
    }
    tapword_fill(t, t->scatter, TAPWORD_DIM, share);
    for (d = 0, p = 0; d < TAPWORD_DIM; p += TAPWORD_DIM - d, d++) {
        double variance = t->work.solving.factor[p] / n;
        t->work.solving.extra[d] = variance > 0.0 ? variance : 1.0;
    }
    prior = tapword_prior_samples(t->work.solving.factor, t->work.solving.extra, n);
    for (d = 0; d < TAPWORD_DIM; d++) {
        t->work.solving.extra[d] *= prior;
    }
    if (!tapword_solve(t, share)) {
        return 0;
    }
    for (k = 0; k < t->words; k++) {
        t->factors[k] = tapword_between_words(t, k);
        t->biases[k] = t->factors[k] / n - t->factors[k] * t->biases[k];
    }
    return 1;
}
#endif
