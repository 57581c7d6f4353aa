/* The rule of slda: linear discriminants, the covariance shrunk towards the identity. */
#include "internal.h"

#if TAPWORD_SLDA
TAPWORD_PRIVATE double tapword_between_words(const tapword *t, size_t k)
{
    (void)t;
    (void)k;
    return 0.0;
}

TAPWORD_PRIVATE int tapword_rule(tapword *t)
{
    double samples = (double)t->samples + TAPWORD_STRENGTH;
    double share = (1.0 - TAPWORD_EPS) / (samples > 1.0 ? samples : 1.0);
    size_t d, k;
#if TAPWORD_VARIANCES
    tapword_variances(t);
#endif
    for (d = 0; d < TAPWORD_DIM; d++) {
#if !TAPWORD_VARIANCES
        t->work.solving.extra[d] = 1.0;
#endif
        t->work.solving.extra[d] *= share * TAPWORD_STRENGTH;
        t->work.solving.extra[d] += TAPWORD_EPS;
        t->work.solving.centre[d] = 0.0;
    }
    if (!tapword_solve(t, share)) {
        return 0;
    }
    for (k = 0; k < t->words; k++) {
        t->biases[k] = -0.5 * t->factors[k];
        t->factors[k] = 1.0;
    }
    return 1;
}
#endif
