/* Learn from clips, and predict. */
#include "internal.h"

#if TAPWORD_HAS_BACKBONE
/* Encode a clip into t->vector, and pool it into t->taught. */
static int tapword_encode_clip(tapword *t, const float *audio, size_t n, tapword_clip *clip)
{
    int error = tapword_cut(t, audio, n, clip);
    if (TAPWORD_WEIGHTS_MISSING) {
        return TAPWORD_NO_WEIGHTS;
    }
    if (error != 0) {
        return error;
    }
    tapword_pool_copy(t, audio, n, *clip, 0, t->taught);
    memcpy(t->vector, t->taught, sizeof t->vector);
    tapword_whiten(t->vector);
    return 0;
}

/* Make the vector of a clip that was pooled into t->taught: the mean of it and its copies. */
TAPWORD_PRIVATE void tapword_add_copies(tapword *t, const float *audio, size_t n, tapword_clip clip)
{
    size_t copy, d;
    for (copy = 1; copy <= TAPWORD_COPIES; copy++) {
        tapword_pool_copy(t, audio, n, clip, copy, t->vector);
        for (d = 0; d < TAPWORD_DIM; d++) {
            t->taught[d] += t->vector[d];
        }
    }
    for (d = 0; d < TAPWORD_DIM; d++) {
        t->taught[d] /= (float)(TAPWORD_COPIES + 1);
    }
    tapword_whiten(t->taught);
}

/* Learn a clip that was encoded. */
static int tapword_learn_clip(tapword *t, const float *audio, size_t n, tapword_clip clip,
                              const char *word)
{
    tapword_add_copies(t, audio, n, clip);
    return tapword_learn_vector(t, t->taught, clip.length, word);
}

int tapword_teach(tapword *t, const float *audio, size_t n, const char *word)
{
    tapword_clip clip;
    int number = tapword_number(t, word), error;
    if (number < 0) {
        return number;
    }
    error = tapword_encode_clip(t, audio, n, &clip);
    if (error != 0) {
        return error;
    }
#if TAPWORD_COHORT
    if (tapword_is_noise(t->vector) && !tapword_is_negative(word)) {
        return TAPWORD_NOISE;
    }
#endif
    return tapword_learn_clip(t, audio, n, clip, word);
}

int tapword_reject(tapword *t, const float *audio, size_t n)
{
    char name[TAPWORD_NAME_BYTES];
    tapword_clip clip;
    int best = TAPWORD_UNKNOWN, error = tapword_encode_clip(t, audio, n, &clip);
    size_t k;
    if (error == 0) {
        error = tapword_scores(t, t->vector, clip.length, t->scores);
    }
    if (error != 0) {
        return error;
    }
    for (k = 0; k < t->words; k++) {
        if (!tapword_is_negative(t->names[k]) && tapword_not_rejected(t, t->scores, k) &&
            (best < 0 || t->scores[k] > t->scores[best])) {
            best = (int)k;
        }
    }
    /* If it is closer to the negatives of every word, the nearest word. */
    best = best < 0 ? tapword_decide(t, t->scores, 0) : best;
    if (best < 0) {
        return TAPWORD_UNKNOWN;
    }
    strcpy(name, TAPWORD_NEGATIVE);
    strcat(name, t->names[best]);
    error = tapword_learn_clip(t, audio, n, clip, name);
    return error < 0 ? error : best;
}

int tapword_predict(tapword *t, const float *audio, size_t n, int reject, float *score)
{
    size_t length;
    int best, error = tapword_encode(t, audio, n, t->vector, &length);
    if (error == 0) {
        error = tapword_scores(t, t->vector, length, t->scores);
    }
    if (error != 0) {
        return error;
    }
    best = tapword_decide(t, t->scores, 0);
    if (best >= 0 && score != NULL) {
        *score = t->scores[best];
    }
    if (!reject || best < 0) {
        return best;
    }
#if TAPWORD_COHORT
    if (tapword_is_noise(t->vector)) {
        return TAPWORD_UNKNOWN;
    }
#endif
    return tapword_decide(t, t->scores, 1);
}
#endif
