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

/* The number that a share of sorted numbers lies above, between two of them by its distance. */
static double tapword_above(const float *x, size_t n, double share)
{
    double place = share * (double)(n - 1);
    size_t i = (size_t)place;
    double next = i + 1 < n ? (double)x[i + 1] : (double)x[i];
    return (double)x[i] + (place - (double)i) * (next - (double)x[i]);
}

/* Whether a word is longer than a second; negatives are of no length. */
static int tapword_is_phrase(const tapword *t, size_t k)
{
    return !tapword_is_negative(t->names[k]) && (double)t->lengths[k][0] > TAPWORD_PHRASE;
}

/* The tail of a word's scores in windows of running speech: where it lies and how wide it is. */
static void tapword_tail(tapword *t, size_t k)
{
    int is_long = TAPWORD_LONG_WINDOWS > 0 && tapword_is_phrase(t, k);
    size_t start = is_long ? TAPWORD_WINDOWS : 0, n = is_long ? TAPWORD_LONG_WINDOWS : TAPWORD_WINDOWS;
    size_t first = is_long ? TAPWORD_LONG_PLACED : TAPWORD_PLACED, row, i;
    size_t end = is_long ? TAPWORD_LONG_PLACED_END : TAPWORD_PLACED_END;
    float *scores = t->work.windows;
    double place = 0.0, width;
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
    width = tapword_above(scores, n, TAPWORD_TWENTIETH) - tapword_above(scores, n, TAPWORD_MEDIAN);
    t->tails[k][0] = (float)place;
    t->tails[k][1] = (float)(width > TAPWORD_NARROWEST ? width : TAPWORD_NARROWEST);
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
        t->thresholds[k] = (float)((double)t->tails[k][0] + (double)t->tails[k][1] * beyond);
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
