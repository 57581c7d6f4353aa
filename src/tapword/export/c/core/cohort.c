/* Score normalisation by a cohort: windows of running speech. */
#include "internal.h"

#if TAPWORD_COHORT
static float tapword_cosine(const float *x, const float *y)
{
    double product = 0.0, one = 0.0, other = 0.0;
    size_t d;
    for (d = 0; d < TAPWORD_DIM; d++) {
        product += (double)x[d] * (double)y[d];
        one += (double)x[d] * (double)x[d];
        other += (double)y[d] * (double)y[d];
    }
    return (float)(product / (sqrt(one * other) + 1e-24));
}

/* Project a vector to the directions of the cohort, into `projected`, or give it as it is; `length`
   becomes its length there. */
TAPWORD_PRIVATE const float *tapword_project(const float *x, float *projected, float *length)
{
    double squares = 0.0;
    size_t d;
#if TAPWORD_PROJECTION
    size_t row;
    for (row = 0; row < TAPWORD_PROJECTED; row++) {
        projected[row] = 0.0f;
        for (d = 0; d < TAPWORD_DIM; d++) {
            projected[row] += x[d] * (float)tapword_projection[row][d];
        }
    }
    x = projected;
#else
    (void)projected;
#endif
    for (d = 0; d < TAPWORD_PROJECTED; d++) {
        squares += (double)x[d] * (double)x[d];
    }
    *length = (float)sqrt(squares + 1e-24);
    return x;
}

/* Cosine of a projected vector of some length with a window of the cohort. */
TAPWORD_PRIVATE float tapword_cohort_cosine(const float *projected, float length, size_t window)
{
    float cosine = 0.0f;
    int32_t squares = 0;
    size_t d;
    for (d = 0; d < TAPWORD_PROJECTED; d++) {
        cosine += projected[d] * (float)tapword_cohort[window][d];
        squares += tapword_cohort[window][d] * tapword_cohort[window][d];
    }
    return cosine / (length * sqrtf((float)squares));
}

/* What is subtracted from a cosine: the weighted mean of the nearest windows, of a second, or of
   the longer ones after them. */
TAPWORD_PRIVATE float tapword_cohort_score(const float *x, size_t length)
{
    int is_long = TAPWORD_LONG_COHORT > 0 && length > TAPWORD_CLIP;
    size_t row = is_long ? TAPWORD_COHORT : 0, i;
    size_t end = is_long ? TAPWORD_COHORT + TAPWORD_LONG_COHORT : TAPWORD_COHORT;
    float nearest[TAPWORD_NEAREST], sum = 0.0f, room[TAPWORD_PROJECTION ? TAPWORD_PROJECTED : 1],
                                    size;
    const float *projected = tapword_project(x, room, &size);
    for (i = 0; i < TAPWORD_NEAREST; i++) {
        nearest[i] = -1.0f;
    }
    for (; row < end; row++) {
        float cosine = tapword_cohort_cosine(projected, size, row);
        if (cosine <= nearest[TAPWORD_NEAREST - 1]) {
            continue; /* so many nearer ones are rarely moved */
        }
        for (i = 0; i < TAPWORD_NEAREST; i++) {
            if (cosine > nearest[i]) {
                float other = nearest[i];
                nearest[i] = cosine;
                cosine = other;
            }
        }
    }
    for (i = 0; i < TAPWORD_NEAREST; i++) {
        sum += nearest[i];
    }
    return TAPWORD_COHORT_WEIGHT * sum / (float)TAPWORD_NEAREST;
}

/* The best word's score becomes its cosine less its cohort score; the others keep their distance.
 */
TAPWORD_PRIVATE void tapword_normalize(const tapword *t, const float *vector, size_t length,
                                       float *scores)
{
    int best = tapword_decide(t, scores, 0);
    float more;
    size_t k;
    if (best < 0) {
        return;
    }
    more = tapword_cosine(vector, t->means[best]) - tapword_cohort_score(vector, length) -
           scores[best];
    for (k = 0; k < t->words; k++) {
        scores[k] += more;
    }
}
#endif
