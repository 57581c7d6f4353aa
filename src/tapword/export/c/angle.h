/* The rule of cosine without a covariance: angles to the words' means. */
static float tapword_length(const float *x)
{
    double squares = 0.0;
    size_t d;
    for (d = 0; d < TAPWORD_DIM; d++) {
        squares += (double)x[d] * (double)x[d];
    }
    return (float)(squares > 1e-24 ? sqrt(squares) : 1e-12);
}

#if TAPWORD_WINDOWS
/* What the nearest windows of running speech take off a score. */
static float tapword_level(const float *x, float length)
{
    float nearest[TAPWORD_NEAREST], sum = 0.0f;
    size_t row, d, i;
    for (i = 0; i < TAPWORD_NEAREST; i++) {
        nearest[i] = -1.0f;
    }
    for (row = 0; row < TAPWORD_WINDOWS; row++) {
        float cosine = 0.0f;
        for (d = 0; d < TAPWORD_DIM; d++) {
            cosine += x[d] * (float)tapword_background[row][d];
        }
        cosine /= length * tapword_background_lengths[row];
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
    return TAPWORD_SHARE * sum / (float)TAPWORD_NEAREST;
}
#endif

int tapword_scores(tapword *t, const float vector[TAPWORD_DIM], float scores[TAPWORD_MAX_WORDS])
{
    float length = tapword_length(vector), level = 0.0f;
    size_t k, d;
#if TAPWORD_WINDOWS
    level = tapword_level(vector, length);
#endif
    for (k = 0; k < t->words; k++) {
        double sum = 0.0;
        for (d = 0; d < TAPWORD_DIM; d++) {
            sum += (double)vector[d] * (double)t->means[k][d];
        }
        scores[k] = (float)sum / (length * tapword_length(t->means[k])) - level;
    }
    return 0;
}
