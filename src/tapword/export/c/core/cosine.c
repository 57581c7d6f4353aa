/* The rule of cosine: angles to the words' means; the prior counts for TAPWORD_STRENGTH samples. */
#include "internal.h"

#if TAPWORD_COSINE
TAPWORD_PRIVATE double tapword_between_words(const tapword *t, size_t k)
{
    (void)t;
    (void)k;
    return 0.0;
}

TAPWORD_PRIVATE int tapword_rule(tapword *t)
{
    double strength = TAPWORD_STRENGTH, share = 1.0 / ((double)t->samples + strength);
    double squares = 0.0, within = 0.0, typical, words = (double)t->words;
    size_t d, k;
#if TAPWORD_VARIANCES
    tapword_variances(t);
    for (d = 0; d < TAPWORD_DIM; d++) {
        double variance = t->work.solving.extra[d];
        t->work.solving.extra[d] = share * strength * (variance > 0.0 ? variance : 1.0);
        t->work.solving.centre[d] = 0.0;
        for (k = 0; t->words > 1 && k < t->words; k++) {
            t->work.solving.centre[d] += (double)t->means[k][d] / words;
        }
    }
#else
    for (d = 0; d < TAPWORD_DIM; d++) {
        t->work.solving.extra[d] = share * strength;
        t->work.solving.centre[d] = 0.0;
    }
#endif
    if (!tapword_solve(t, share)) {
        return 0;
    }
    for (k = 0; k < t->words; k++) {
        squares += t->factors[k] / words;
        within += (1.0 - 1.0 / (double)t->counts[k]) / words;
    }
    typical = sqrt(squares + TAPWORD_DIM * within);
    for (k = 0; k < t->words; k++) {
        double length = sqrt(t->factors[k] > 0.0 ? t->factors[k] : 0.0) * typical;
        t->factors[k] = length > 0.0 ? 1.0 / length : 1.0;
        t->biases[k] *= -t->factors[k];
    }
    return 1;
}
#endif
