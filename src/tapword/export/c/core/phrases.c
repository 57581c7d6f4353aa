/* Stream -> segments: where a taught phrase may have been said.

   A phrase among other speech has no audible beginning. So the network's frames of the stream
   are computed once, and every segment of a likely length is scored by them. Without
   TAPWORD_STREAMS, segments close to their threshold are scored again as a clip. */
#include "internal.h"

#if TAPWORD_HAS_LISTENER
#if TAPWORD_PHRASE_HOPS
/* Shortest and longest segment for a phrase, in seconds. */
static void tapword_span(const tapword *t, size_t k, double *shortest, double *longest)
{
    double prior = TAPWORD_PHRASE_PRIOR, seconds = exp((double)t->lengths[k][0]);
    double expected = prior * TAPWORD_PHRASE_SPREAD * TAPWORD_PHRASE_SPREAD;
    double spread = sqrt(((double)t->lengths[k][1] + expected) / ((double)t->counts[k] + prior));
    double ratio = exp(TAPWORD_PHRASE_SIGMAS * spread);
    ratio = ratio > TAPWORD_PHRASE_MIN_RATIO ? ratio : TAPWORD_PHRASE_MIN_RATIO;
    *shortest = seconds / ratio > TAPWORD_CLIP_S ? seconds / ratio : TAPWORD_CLIP_S;
    *longest = seconds * ratio;
    *longest = *longest < TAPWORD_PHRASE_LONGEST_S ? *longest : TAPWORD_PHRASE_LONGEST_S;
}

/* Longest segment for any phrase; 0 if there is none. */
static double tapword_longest_phrase(const tapword *t)
{
    double shortest, longest, most = 0.0;
    size_t k;
    for (k = 0; k < t->words; k++) {
        if (tapword_is_phrase(t, k)) {
            tapword_span(t, k, &shortest, &longest);
            most = longest > most ? longest : most;
        }
    }
    return most;
}

/* Mark the phrases that may have this many hops as wanted. Returns whether there are any. */
static int tapword_want_phrases(const tapword *t, tapword_listener *l, size_t hops)
{
    double seconds = (double)(hops * TAPWORD_EAR_HOP) / TAPWORD_SAMPLE_RATE, shortest, longest;
    int any = 0;
    size_t k;
    for (k = 0; k < t->words; k++) {
        l->wanted[k] = 0;
        if (tapword_is_phrase(t, k)) {
            tapword_span(t, k, &shortest, &longest);
            l->wanted[k] = shortest <= seconds && seconds <= longest;
        }
        any = any || l->wanted[k];
    }
    return any;
}

static float tapword_product(const float *x, const float *y)
{
    float sum = 0.0f;
    size_t d;
    for (d = 0; d < TAPWORD_DIM; d++) {
        sum += x[d] * y[d];
    }
    return sum;
}

/* Margin of the best wanted phrase over its threshold in a segment, by the frames of the stream
   and before normalisation; -FLT_MAX if there is none. */
static float tapword_segment_margin(tapword *t, const tapword_listener *l, int64_t start,
                                    size_t hops)
{
    float length, best = -FLT_MAX;
    size_t k;
    tapword_pool_hops(t, l, start, hops);
    if (tapword_is_noise(t->vector)) {
        return best;
    }
    length = tapword_product(t->vector, t->vector);
    for (k = 0; k < t->words; k++) {
        const float *mean = t->means[k];
        float lengths = length * tapword_product(mean, mean);
        t->scores[k] = lengths > 0.0f ? tapword_product(t->vector, mean) / sqrtf(lengths) : 0.0f;
    }
    for (k = 0; k < t->words; k++) {
        if (l->wanted[k] && t->scores[k] - t->thresholds[k] > best &&
            tapword_not_rejected(t, t->scores, k)) {
            best = t->scores[k] - t->thresholds[k];
        }
    }
    return best;
}

/* First hop of a segment. */
static int64_t tapword_first_start(const tapword_listener *l)
{
#if TAPWORD_STREAMS
    return l->begun > l->from ? l->begun : l->from;
#else
    return l->from;
#endif
}

/* The segment ending in the last step that is most likely a phrase, if it is likely enough to be
   scored as a clip. Returns its hops, or 0. Its phrases are wanted. */
static size_t tapword_best_segment(tapword *t, tapword_listener *l, int64_t *start)
{
    float most = -FLT_MAX;
    size_t best = 0, i;
    int64_t end, last = tapword_last_end(l);
    for (i = 0; i < TAPWORD_SEGMENTS && tapword_segment_hops[i] <= TAPWORD_PHRASE_HOPS; i++) {
        size_t hops = tapword_segment_hops[i];
        if (!tapword_want_phrases(t, l, hops)) {
            continue;
        }
        end = last - TAPWORD_SEGMENT_STEP + TAPWORD_SEGMENT_APART;
        for (; end <= last; end += TAPWORD_SEGMENT_APART) {
            int64_t first = end - (int64_t)hops;
            float margin = first < tapword_first_start(l)
                               ? -FLT_MAX
                               : tapword_segment_margin(t, l, first, hops);
            if (margin > most) {
                most = margin;
                best = hops;
                *start = first;
            }
        }
    }
    if (best > 0) {
        tapword_want_phrases(t, l, best);
        most = tapword_segment_margin(t, l, *start, best);
        most -= tapword_cohort_score(t->vector, best * TAPWORD_EAR_HOP);
    }
    return most < -TAPWORD_SEGMENT_SCORE ? 0 : best;
}

static double tapword_middle(const tapword_candidate *candidate)
{
    return (candidate->start + candidate->end) / 2.0;
}

/* Whether one phrase contains the middle of another. */
static int tapword_holds(const tapword_candidate *one, const tapword_candidate *other)
{
    double middle = tapword_middle(other);
    return one->word[0] != 0 && one->start <= middle && middle <= one->end;
}

/* Whether two phrases are one utterance: one contains the middle of the other, or it comes too
   soon. */
static int tapword_is_same(const tapword_candidate *a, const tapword_candidate *b,
                           double refractory)
{
    return tapword_holds(a, b) || tapword_holds(b, a) ||
           fabs(tapword_middle(a) - tapword_middle(b)) < refractory;
}

/* Whether a phrase is new: said later than the last one, or a longer one around it. */
static int tapword_is_new(const tapword_candidate *candidate, const tapword_candidate *last)
{
    int longer = strcmp(candidate->word, last->word) != 0 &&
                 candidate->end >= last->end + TAPWORD_PHRASE_BEYOND_S;
    return last->word[0] == 0 || longer || !tapword_is_same(last, candidate, TAPWORD_REFRACTORY_S);
}

/* Decide on a segment: the phrase in it or NULL, and whether later ends were less likely.
   Returns whether there is an event, which then waits. */
static int tapword_decide_phrase(tapword_listener *l, const tapword_candidate *candidate, int over)
{
    int better =
        candidate != NULL && l->rising.word[0] != 0 && tapword_is_same(&l->rising, candidate, 0.0);
    int settled;
    if (better) {
        if (!(candidate->score > l->rising.score)) {
            return tapword_finalize(l);
        }
        l->rising = *candidate;
        return over && tapword_finalize(l);
    }
    settled = tapword_finalize(l);
    if (candidate != NULL && tapword_is_new(candidate, &l->phrase)) {
        l->rising = *candidate;
    } else if (candidate != NULL && candidate->end > l->phrase.end) {
        l->phrase.end = candidate->end;
    }
    /* One event at a time: if both are ready, the second follows in the next step. */
    return settled || (over && tapword_finalize(l));
}

/* Look for a phrase that has ended. Returns 1 if one has, which then waits; 0 or an error. */
static int tapword_find_phrase(tapword *t, tapword_listener *l)
{
    const int64_t second = TAPWORD_SAMPLE_RATE / TAPWORD_HOP;
    int64_t start = 0, first, end;
    tapword_candidate candidate;
    size_t hops;
    int word;
    if (!tapword_is_loud(l, l->steps - second, l->steps)) {
        return tapword_finalize(l);
    }
#if !TAPWORD_STREAMS
    tapword_make_frames(t, l);
#endif
    hops = tapword_best_segment(t, l, &start);
    if (hops == 0) {
        return tapword_finalize(l);
    }
    word = tapword_score_hops(t, l, start, hops);
    if (word < 0) {
        return word;
    }
    if (word == 0) {
        return tapword_finalize(l);
    }
    word = tapword_best_said(t, l, 0.0f);
    end = start + (int64_t)hops;
    if (word >= 0) {
        first = l->anchor + start * TAPWORD_EAR_HOP + TAPWORD_MARGIN;
        tapword_name(t, word, first, l->anchor + end * TAPWORD_EAR_HOP - TAPWORD_MARGIN,
                     &candidate);
        candidate.phrase = 1;
    }
    return tapword_decide_phrase(l, word >= 0 ? &candidate : NULL, end < tapword_last_end(l));
}

/* Enough samples came for a phrase to have ended. Returns 0 or an error. */
TAPWORD_PRIVATE int tapword_look_for_phrases(tapword *t, tapword_listener *l)
{
    double now, longest = tapword_longest_phrase(t) - 2.0 * TAPWORD_PHRASE_MARGIN_S;
    int found, quiet;
#if !TAPWORD_STREAMS
    l->missing = TAPWORD_SEGMENT_STEP * TAPWORD_EAR_HOP;
    l->hops += TAPWORD_SEGMENT_STEP;
#endif
    found = tapword_find_phrase(t, l);
    tapword_suppress(l);
    /* Silence ends the wait, unless a phrase is still being said or its end was not searched. */
    quiet = !tapword_is_loud(l, l->steps - TAPWORD_PHRASE_SILENCE, l->steps);
    if (found > 0 || (quiet && l->rising.word[0] == 0)) {
        tapword_pop_ready(l, HUGE_VAL, 0.0);
    } else {
        now = tapword_seconds(l->anchor + l->hops * TAPWORD_EAR_HOP) - TAPWORD_PHRASE_LATE_S;
        tapword_pop_ready(l, now, longest);
    }
    return found < 0 ? found : 0;
}
#endif

/* Start to look for phrases if there are any, or stop if there are none. */
TAPWORD_PRIVATE void tapword_follow_phrases(const tapword *t, tapword_listener *l)
{
#if TAPWORD_PHRASE_HOPS
    int wanted = tapword_longest_phrase(t) > TAPWORD_CLIP_S;
    if (l->phrases && !wanted) {
        tapword_finalize(l);
    }
    if (wanted && !l->phrases) {
#if TAPWORD_STREAMS
        l->begun = l->hops / TAPWORD_SEGMENT_STEP * TAPWORD_SEGMENT_STEP;
#else
        l->anchor = tapword_now(l);
        l->hops = 0;
        l->ear_started = 0;
        l->missing = TAPWORD_SEGMENT_STEP * TAPWORD_EAR_HOP;
#endif
    }
    l->phrases = (uint32_t)wanted;
#else
    (void)t;
    (void)l;
#endif
}
#endif
