/* Scores from which words count as said, by how high they score in running speech. */

#if TAPWORD_WINDOWS
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

/* Whether a word is longer than a second; negatives are of no length. */
static int tapword_is_phrase(const tapword *t, size_t k)
{
    return !tapword_is_negative(t->names[k]) && (double)t->lengths[k][0] > TAPWORD_PHRASE;
}

/* Where the tail of a word's scores in windows of running speech lies. */
static void tapword_tail(tapword *t, size_t k)
{
    int is_long = TAPWORD_LONG_WINDOWS > 0 && tapword_is_phrase(t, k);
    size_t start = is_long ? TAPWORD_WINDOWS : 0, n = is_long ? TAPWORD_LONG_WINDOWS : TAPWORD_WINDOWS;
    size_t first = is_long ? TAPWORD_LONG_PLACED : TAPWORD_PLACED, row, i;
    size_t end = is_long ? TAPWORD_LONG_PLACED_END : TAPWORD_PLACED_END;
    float *scores = t->work.windows;
    double place = 0.0;
    float room[TAPWORD_SIGHT ? TAPWORD_SEEN : 1], size;
    const float *seen = tapword_see(t->means[k], room, &size);
    for (i = 0; i < n; i++) {
        row = start + i;
        scores[i] = tapword_near(seen, size, row) - tapword_background_levels[row];
    }
    tapword_sort(scores, n);
    for (i = first; i < end; i++) {
        place += (double)scores[i] / (double)(end - first);
    }
    t->tails[k] = (float)place;
}

/* All words together may raise so many false alarms in an hour; a sensitivity allows more or
   fewer. */
static void tapword_limit(tapword *t)
{
    double words = 0.0;
    size_t k;
    for (k = 0; k < t->words; k++) {
        words += tapword_is_negative(t->names[k]) ? 0.0 : 1.0;
    }
    for (k = 0; k < t->words; k++) {
        double more = (2.0 * (double)t->sensitivities[k] - 1.0) * log(TAPWORD_SENSITIVITY_REACH);
        double allowed = log(TAPWORD_FALSE_ALARMS / words) + more;
        double beyond = TAPWORD_TAIL_REACH - TAPWORD_TAIL_FEWER * allowed;
        t->thresholds[k] = (float)((double)t->tails[k] + beyond);
    }
}
#else
/* How running speech scores is not known: the best word always counts. */
static void tapword_tail(tapword *t, size_t k) { t->thresholds[k] = -FLT_MAX; }

static void tapword_limit(tapword *t)
{
    size_t k;
    for (k = 0; k < t->words; k++) {
        t->thresholds[k] = -FLT_MAX;
    }
}
#endif
