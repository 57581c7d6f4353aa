/* The rule of ncm: minus the squared distance to each word's mean. */
#include "internal.h"

#if TAPWORD_NCM
int tapword_scores(tapword *t, const float vector[TAPWORD_DIM], size_t length,
                   float scores[TAPWORD_MAX_WORDS])
{
    size_t k, d;
    (void)length;
    if (!tapword_is_vector(vector)) {
        return TAPWORD_BAD_VECTOR;
    }
    for (k = 0; k < t->words; k++) {
        double sum = 0.0;
        for (d = 0; d < TAPWORD_DIM; d++) {
            double e = (double)vector[d] - (double)t->means[k][d];
            sum += e * e;
        }
        scores[k] = (float)-sum;
    }
    return 0;
}
#endif
