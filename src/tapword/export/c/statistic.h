/* Vector -> statistic: counts, means and the scatter within words. */

void tapword_start(tapword *t)
{
#if TAPWORD_WORDS
    size_t k;
#endif
    memset(t, 0, sizeof *t);
#if TAPWORD_WORDS
    t->words = TAPWORD_WORDS;
    t->samples = TAPWORD_SAMPLES;
    for (k = 0; k < TAPWORD_WORDS; k++) {
        strcpy(t->names[k], tapword_taught_names[k]);
    }
    memcpy(t->counts, tapword_taught_counts, sizeof tapword_taught_counts);
    memcpy(t->thresholds, tapword_taught_thresholds, sizeof tapword_taught_thresholds);
    memcpy(t->lengths, tapword_taught_lengths, sizeof tapword_taught_lengths);
    memcpy(t->means, tapword_taught_means, sizeof tapword_taught_means);
#if TAPWORD_SCATTER
    memcpy(t->scatter, tapword_taught_scatter, sizeof tapword_taught_scatter);
#endif
#endif
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
/* Samples of forgotten words that are still in the scatter: later ones take their places. */
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

int tapword_learn(tapword *t, const float vector[TAPWORD_DIM], const char *word)
{
    size_t d, k, length = strlen(word);
    double squares = 0.0;
    float n;
    int known = tapword_find(t, word);
    if (length == 0 || length >= TAPWORD_NAME_BYTES) {
        return TAPWORD_BAD_WORD;
    }
    if (known < 0 && t->words == TAPWORD_MAX_WORDS) {
        return TAPWORD_FULL;
    }
    for (d = 0; d < TAPWORD_DIM; d++) {
        squares += (double)vector[d] * (double)vector[d];
    }
    if (!(squares <= TAPWORD_LARGEST_SQUARE)) {
        return TAPWORD_BAD_VECTOR;
    }
    k = known < 0 ? t->words : (size_t)known;
    if (known < 0) {
        strcpy(t->names[k], word);
        t->counts[k] = 0;
        t->thresholds[k] = TAPWORD_THRESHOLD;
        memset(t->lengths[k], 0, sizeof t->lengths[k]);
        memset(t->means[k], 0, sizeof t->means[k]);
        t->words++;
    }
    n = (float)(t->counts[k] + 1);
#if TAPWORD_SCATTER
    if (tapword_forgotten(t) == 0) {
        float *e = t->weights[k]; /* free until they are solved anew */
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
    t->counts[k]++;
    t->solved = 0;
    return (int)k;
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
    memmove(&t->thresholds[k], &t->thresholds[k + 1], rest * sizeof t->thresholds[0]);
    memmove(t->lengths[k], t->lengths[k + 1], rest * sizeof t->lengths[0]);
    memmove(t->means[k], t->means[k + 1], rest * sizeof t->means[0]);
    /* What words share goes with the last of them, and no name or mean is left behind the rest. */
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

/* The word that a row holds negatives of; NULL where it is a word itself. */
static const char *tapword_rejected(const tapword *t, size_t k)
{
    const size_t sign = sizeof TAPWORD_NOT - 1;
    return strncmp(t->names[k], TAPWORD_NOT, sign) == 0 ? t->names[k] + sign : NULL;
}

int tapword_forget(tapword *t, const char *word)
{
    int found = tapword_find(t, word), negatives = TAPWORD_UNKNOWN;
    size_t k;
    if (found < 0) {
        return TAPWORD_UNKNOWN;
    }
    for (k = 0; k < t->words; k++) {
        const char *rejected = tapword_rejected(t, k);
        if (rejected != NULL && strcmp(rejected, word) == 0) {
            negatives = (int)k;
        }
    }
    /* The later row first, so that the other keeps its number. */
    tapword_remove(t, (size_t)(negatives > found ? negatives : found));
    if (negatives >= 0) {
        tapword_remove(t, (size_t)(negatives > found ? found : negatives));
    }
    return 0;
}

/* Whether a word scores higher than its negatives. */
static int tapword_is_taken(const tapword *t, const float *scores, size_t k)
{
    size_t other;
    for (other = 0; other < t->words; other++) {
        const char *word = tapword_rejected(t, other);
        if (word != NULL && strcmp(word, t->names[k]) == 0) {
            return scores[k] > scores[other];
        }
    }
    return 1;
}

int tapword_decide(const tapword *t, const float scores[TAPWORD_MAX_WORDS], int reject)
{
    int best = TAPWORD_UNKNOWN;
    size_t k;
    for (k = 0; k < t->words; k++) {
        int said = tapword_rejected(t, k) == NULL;
        if (said && reject) {
            said = scores[k] >= t->thresholds[k] && tapword_is_taken(t, scores, k);
        }
        if (said && (best < 0 || scores[k] > scores[best])) {
            best = (int)k;
        }
    }
    return best;
}
