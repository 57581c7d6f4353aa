/* Vector -> statistic: counts, means and the scatter within words. */
#include "internal.h"

void tapword_start(tapword *t)
{
#if TAPWORD_WORDS
    size_t k;
#endif
    memset(t, 0, sizeof *t);
    t->sensitivity = TAPWORD_SENSITIVITY;
#if TAPWORD_WORDS
    t->words = TAPWORD_WORDS;
    t->samples = TAPWORD_SAMPLES;
    for (k = 0; k < TAPWORD_WORDS; k++) {
        strcpy(t->names[k], tapword_taught_names[k]);
    }
    memcpy(t->counts, tapword_taught_counts, sizeof tapword_taught_counts);
    memcpy(t->lengths, tapword_taught_lengths, sizeof tapword_taught_lengths);
    memcpy(t->sensitivities, tapword_taught_sensitivities, sizeof tapword_taught_sensitivities);
    memcpy(t->means, tapword_taught_means, sizeof tapword_taught_means);
#if TAPWORD_SCATTER
    memcpy(t->scatter, tapword_taught_scatter, sizeof tapword_taught_scatter);
#endif
#if TAPWORD_COHORT
    memcpy(t->tails, tapword_taught_tails, sizeof tapword_taught_tails);
#endif
#endif
    tapword_update_thresholds(t);
}

int tapword_find(const tapword *t, const char *word)
{
    size_t k;
    for (k = 0; k < t->words; k++) {
        if (strcmp(t->names[k], word) == 0) {
            return (int)k;
        }
    }
    return TAPWORD_UNKNOWN;
}

#if TAPWORD_SCATTER
/* Samples of forgotten words that are still in the scatter: new samples replace them. */
static uint32_t tapword_forgotten(const tapword *t)
{
    uint32_t n = t->samples;
    size_t k;
    for (k = 0; k < t->words; k++) {
        n -= t->counts[k] < n ? t->counts[k] : n;
    }
    return n;
}

static void tapword_add_outer(tapword *t, const float *e, float weight)
{
    size_t first, i, j;
    float *scatter = t->scatter;
    for (first = 0; first < TAPWORD_DIM; first += TAPWORD_BLOCK) {
        size_t end = TAPWORD_DIM - first < TAPWORD_BLOCK ? TAPWORD_DIM : first + TAPWORD_BLOCK;
        for (j = first; j < end; j++) {
            float scaled = weight * e[j];
            for (i = j; i < end; i++) {
                *scatter++ += e[i] * scaled;
            }
        }
    }
}
#endif

/* Number of a word to learn, t->words for a new one; or an error. */
TAPWORD_PRIVATE int tapword_number(const tapword *t, const char *word)
{
    int known = tapword_find(t, word);
    if (TAPWORD_WEIGHTS_MISSING) {
        return TAPWORD_NO_WEIGHTS;
    }
    if (!tapword_is_word(word)) {
        return TAPWORD_BAD_WORD;
    }
    if (known < 0 && tapword_is_negative(word) &&
        tapword_find(t, word + TAPWORD_NEGATIVE_BYTES) < 0) {
        return TAPWORD_UNKNOWN;
    }
    if ((known < 0 && t->words == TAPWORD_MAX_WORDS) || t->samples == UINT32_MAX ||
        (known >= 0 && t->counts[known] == UINT32_MAX)) {
        return TAPWORD_FULL;
    }
    return known < 0 ? (int)t->words : known;
}

/* Whether a vector has no NaN, infinite or too large numbers. */
TAPWORD_PRIVATE int tapword_is_vector(const float *vector)
{
    double squares = 0.0;
    size_t d;
    for (d = 0; d < TAPWORD_DIM; d++) {
        squares += (double)vector[d] * (double)vector[d];
    }
    return squares <= TAPWORD_LARGEST_SQUARE;
}

/* Learn a vector of a clip of `length` samples. */
TAPWORD_PRIVATE int tapword_learn_vector(tapword *t, const float *vector, size_t length,
                                         const char *word)
{
    int number = tapword_number(t, word);
    size_t d, k = (size_t)number;
    double apart;
    float n;
    if (number < 0) {
        return number;
    }
    if (!tapword_is_vector(vector)) {
        return TAPWORD_BAD_VECTOR;
    }
    if (k == t->words) {
        strcpy(t->names[k], word);
        t->counts[k] = 0;
        t->sensitivities[k] = t->sensitivity;
        memset(t->lengths[k], 0, sizeof t->lengths[k]);
        memset(t->means[k], 0, sizeof t->means[k]);
        t->words++;
    }
    n = (float)t->counts[k] + 1.0f;
#if TAPWORD_SCATTER
    if (tapword_forgotten(t) == 0) {
        float *e = t->weights[k]; /* free until they are solved again */
        double before = TAPWORD_REFERENCE ? (double)t->samples : (double)t->counts[k];
        for (d = 0; d < TAPWORD_DIM; d++) {
            e[d] = vector[d] - t->means[k][d];
        }
        if (before > 0.0) {
            tapword_add_outer(t, e, (float)(before / (before + 1.0)));
        }
        t->samples++;
    }
#else
    t->samples++;
#endif
    for (d = 0; d < TAPWORD_DIM; d++) {
        t->means[k][d] += (vector[d] - t->means[k][d]) / n;
    }
    if (!tapword_is_negative(word)) {
        apart = log((double)length / TAPWORD_CLIP) - (double)t->lengths[k][0];
        t->lengths[k][1] += (float)((double)t->counts[k] / (double)n * apart * apart);
        t->lengths[k][0] += (float)(apart / (double)n);
    }
    t->counts[k]++;
    t->solved = 0;
    tapword_update_tail(t, k);
    tapword_update_thresholds(t);
    return number;
}

int tapword_learn(tapword *t, const float vector[TAPWORD_DIM], const char *word)
{
    return tapword_learn_vector(t, vector, TAPWORD_CLIP, word);
}

/* Remove a row: a word, or the negatives of one. */
static void tapword_remove(tapword *t, size_t k)
{
    size_t rest;
#if !TAPWORD_SCATTER
    t->samples -= t->counts[k];
#endif
    t->words--;
    rest = t->words - k;
    memmove(t->names[k], t->names[k + 1], rest * sizeof t->names[0]);
    memmove(&t->counts[k], &t->counts[k + 1], rest * sizeof t->counts[0]);
    memmove(&t->sensitivities[k], &t->sensitivities[k + 1], rest * sizeof t->sensitivities[0]);
    memmove(t->lengths[k], t->lengths[k + 1], rest * sizeof t->lengths[0]);
#if TAPWORD_COHORT
    memmove(&t->tails[k], &t->tails[k + 1], rest * sizeof t->tails[0]);
#endif
    memmove(t->means[k], t->means[k + 1], rest * sizeof t->means[0]);
    /* Shared statistics go with the last word, and no name or mean stays behind the rest. */
    memset(t->names[t->words], 0, sizeof t->names[0]);
    memset(t->means[t->words], 0, sizeof t->means[0]);
#if TAPWORD_SCATTER
    memset(t->weights, 0, sizeof t->weights);
    if (t->words == 0) {
        t->samples = 0;
        memset(t->scatter, 0, sizeof t->scatter);
    }
#endif
    t->solved = 0;
}

/* Number of a word's negatives, or TAPWORD_UNKNOWN. */
TAPWORD_PRIVATE int tapword_negatives(const tapword *t, const char *word)
{
    size_t k;
    for (k = 0; k < t->words; k++) {
        if (tapword_is_negative(t->names[k]) &&
            strcmp(t->names[k] + TAPWORD_NEGATIVE_BYTES, word) == 0) {
            return (int)k;
        }
    }
    return TAPWORD_UNKNOWN;
}

int tapword_forget(tapword *t, const char *word)
{
    int found = tapword_find(t, word), negatives = tapword_negatives(t, word);
    if (found < 0) {
        return TAPWORD_UNKNOWN;
    }
    /* The later row first, so the other keeps its number. */
    tapword_remove(t, (size_t)(negatives > found ? negatives : found));
    if (negatives >= 0) {
        tapword_remove(t, (size_t)(negatives > found ? found : negatives));
    }
    tapword_update_thresholds(t);
    return 0;
}

int tapword_set_sensitivity(tapword *t, const char *word, float value)
{
    int found = word == NULL ? 0 : tapword_find(t, word);
    size_t k;
    if (!(value >= 0.0f && value <= 1.0f)) {
        return TAPWORD_BAD_NUMBER;
    }
    if (found < 0) {
        return TAPWORD_UNKNOWN;
    }
    if (word != NULL) {
        t->sensitivities[found] = value;
    } else {
        t->sensitivity = value;
        for (k = 0; k < t->words; k++) {
            t->sensitivities[k] = value;
        }
    }
    tapword_update_thresholds(t);
    return 0;
}

/* Whether a sound is closer to a word than to its negatives. */
TAPWORD_PRIVATE int tapword_not_rejected(const tapword *t, const float *scores, size_t k)
{
    int negatives = tapword_negatives(t, t->names[k]);
    return negatives < 0 || scores[k] > scores[negatives];
}

int tapword_decide(const tapword *t, const float scores[TAPWORD_MAX_WORDS], int reject)
{
    int best = TAPWORD_UNKNOWN;
    size_t k;
    for (k = 0; k < t->words; k++) {
        int said = !tapword_is_negative(t->names[k]);
        if (said && reject) {
            said = scores[k] >= t->thresholds[k] && tapword_not_rejected(t, scores, k);
        }
        if (said && (best < 0 || scores[k] > scores[best])) {
            best = (int)k;
        }
    }
    return best;
}
