/* Whether a sound is a word at all: how much nearer it is to one than to running speech. */

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

/* A vector as windows of running speech are compared with it: by its numbers in a few directions,
   for which there is room in `seen`, or as it is. And its length. */
static const float *tapword_see(const float *x, float *seen, float *length)
{
    double squares = 0.0;
    size_t d;
#if TAPWORD_SIGHT
    size_t row;
    for (row = 0; row < TAPWORD_SEEN; row++) {
        seen[row] = 0.0f;
        for (d = 0; d < TAPWORD_DIM; d++) {
            seen[row] += x[d] * (float)tapword_sight[row][d];
        }
    }
    x = seen;
#else
    (void)seen;
#endif
    for (d = 0; d < TAPWORD_SEEN; d++) {
        squares += (double)x[d] * (double)x[d];
    }
    *length = (float)sqrt(squares + 1e-24);
    return x;
}

/* Cosine of what is seen, of that length, with a window of running speech. */
static float tapword_near(const float *seen, float length, size_t window)
{
    float cosine = 0.0f;
    int32_t squares = 0;
    size_t d;
    for (d = 0; d < TAPWORD_SEEN; d++) {
        cosine += seen[d] * (float)tapword_background[window][d];
        squares += tapword_background[window][d] * tapword_background[window][d];
    }
    return cosine / (length * sqrtf((float)squares));
}

/* What the nearest windows of running speech take off a cosine: those of a second, or the longer
   ones behind them. */
static float tapword_level(const float *x, size_t length)
{
    int is_long = TAPWORD_LONG_WINDOWS > 0 && length > TAPWORD_CLIP;
    size_t row = is_long ? TAPWORD_WINDOWS : 0, i;
    size_t end = is_long ? TAPWORD_WINDOWS + TAPWORD_LONG_WINDOWS : TAPWORD_WINDOWS;
    float nearest[TAPWORD_NEAREST], sum = 0.0f, room[TAPWORD_SIGHT ? TAPWORD_SEEN : 1], size;
    const float *seen = tapword_see(x, room, &size);
    for (i = 0; i < TAPWORD_NEAREST; i++) {
        nearest[i] = -1.0f;
    }
    for (; row < end; row++) {
        float cosine = tapword_near(seen, size, row);
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

/* The best word's score becomes its cosine less that level; the others stay as far behind it. */
static void tapword_measure(const tapword *t, const float *vector, size_t length, float *scores)
{
    int best = tapword_decide(t, scores, 0);
    float more;
    size_t k;
    if (best < 0) {
        return;
    }
    more = tapword_cosine(vector, t->means[best]) - tapword_level(vector, length) - scores[best];
    for (k = 0; k < t->words; k++) {
        scores[k] += more;
    }
}
