/* Thresholds of words, by their scores in running speech. */
#include "internal.h"

#if TAPWORD_COHORT
/* Sort from high to low, in place. */
static void tapword_sort(float *x, size_t n)
{
    size_t gap, i, j;
    for (gap = n / 2; gap > 0; gap /= 2) {
        for (i = gap; i < n; i++) {
            float value = x[i];
            for (j = i; j >= gap && x[j - gap] < value; j -= gap) {
                x[j] = x[j - gap];
            }
            x[j] = value;
        }
    }
}

/* Whether a word is longer than a second; negatives have no length. */
TAPWORD_PRIVATE int tapword_is_phrase(const tapword *t, size_t k)
{
    return !tapword_is_negative(t->names[k]) && (double)t->lengths[k][0] > TAPWORD_PHRASE;
}

/* Mean of the tail of a word's scores in the cohort. */
TAPWORD_PRIVATE void tapword_update_tail(tapword *t, size_t k)
{
    int is_long = TAPWORD_LONG_COHORT > 0 && tapword_is_phrase(t, k);
    size_t start = is_long ? TAPWORD_COHORT : 0, n = is_long ? TAPWORD_LONG_COHORT : TAPWORD_COHORT;
    size_t first = is_long ? TAPWORD_LONG_TAIL_FIRST : TAPWORD_TAIL_FIRST, row, i;
    size_t end = is_long ? TAPWORD_LONG_TAIL_END : TAPWORD_TAIL_END;
    float *scores = t->work.cohort;
    double tail_mean = 0.0;
    float room[TAPWORD_PROJECTION ? TAPWORD_PROJECTED : 1], size;
    const float *projected = tapword_project(t->means[k], room, &size);
    for (i = 0; i < n; i++) {
        row = start + i;
        scores[i] = tapword_cohort_cosine(projected, size, row) - tapword_cohort_scores[row];
    }
    tapword_sort(scores, n);
    for (i = first; i < end; i++) {
        tail_mean += (double)scores[i] / (double)(end - first);
    }
    t->tails[k] = (float)tail_mean;
}

/* threshold = share * tail_mean + offset - slope * ln(rate). The words share TAPWORD_FALSE_ALARMS
   per hour; a sensitivity allows more or fewer. */
TAPWORD_PRIVATE void tapword_update_thresholds(tapword *t)
{
    double words = 0.0;
    size_t k;
    for (k = 0; k < t->words; k++) {
        words += tapword_is_negative(t->names[k]) ? 0.0 : 1.0;
    }
    for (k = 0; k < t->words; k++) {
        double more = (2.0 * (double)t->sensitivities[k] - 1.0) * log(TAPWORD_MAX_RATE_RATIO);
        double rate = log(TAPWORD_FALSE_ALARMS / words) + more;
        double above = TAPWORD_TAIL_OFFSET - TAPWORD_TAIL_SLOPE * rate;
        t->thresholds[k] = (float)(TAPWORD_TAIL_SHARE * (double)t->tails[k] + above);
    }
}

int tapword_confidence(const tapword *t, const float scores[TAPWORD_MAX_WORDS], int word)
{
    double needed, exponent;
    int negatives, found, said;
    if (word < 0 || (uint32_t)word >= t->words || tapword_is_negative(t->names[word])) {
        return TAPWORD_UNKNOWN;
    }
    negatives = tapword_negatives(t, t->names[word]);
    needed = (double)t->thresholds[word];
    if (negatives >= 0 && (double)scores[negatives] > needed) {
        needed = (double)scores[negatives];
    }
    exponent = (needed - (double)scores[word]) / TAPWORD_CONFIDENCE_WIDTH;
    if (exponent > TAPWORD_CONFIDENCE_MAX_EXPONENT) {
        exponent = TAPWORD_CONFIDENCE_MAX_EXPONENT;
    }
    /* Rounded down, so that 50 is reached at the threshold and not just before it. */
    found = (int)(100.0 / (1.0 + exp(exponent)));
    /* However small the difference, a word that does not count stays below 50. */
    said = scores[word] >= t->thresholds[word] && tapword_not_rejected(t, scores, (size_t)word);
    return said || found < TAPWORD_UNSURE ? found : TAPWORD_UNSURE;
}
#else
/* Without a cohort the best word always counts. */
TAPWORD_PRIVATE void tapword_update_tail(tapword *t, size_t k) { t->thresholds[k] = -FLT_MAX; }

TAPWORD_PRIVATE void tapword_update_thresholds(tapword *t)
{
    size_t k;
    for (k = 0; k < t->words; k++) {
        t->thresholds[k] = -FLT_MAX;
    }
}

int tapword_confidence(const tapword *t, const float scores[TAPWORD_MAX_WORDS], int word)
{
    (void)t;
    (void)scores;
    (void)word;
    return TAPWORD_UNKNOWN;
}
#endif
