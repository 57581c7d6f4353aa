/* Scored windows and segments -> events, one for each utterance.

   Words are decided window by window. A phrase is seen through a row of segments, and the best
   of them is the event. A word inside a phrase is suppressed. */
#include "internal.h"

#if TAPWORD_HAS_LISTENER
/* Best of the wanted words that score higher than their negatives and at most `by` below their
   thresholds. */
TAPWORD_PRIVATE int tapword_best_said(const tapword *t, const tapword_listener *l, float by)
{
    int best = TAPWORD_UNKNOWN;
    size_t k;
    for (k = 0; k < t->words; k++) {
        if (l->wanted[k] && t->scores[k] >= t->thresholds[k] - by &&
            tapword_not_rejected(t, t->scores, k) && (best < 0 || t->scores[k] > t->scores[best])) {
            best = (int)k;
        }
    }
    return best;
}

TAPWORD_PRIVATE double tapword_seconds(int64_t samples)
{
    return (double)samples / TAPWORD_SAMPLE_RATE;
}

/* Make a candidate of a scored word, from one sample of the stream to another. */
TAPWORD_PRIVATE void tapword_name(const tapword *t, int word, int64_t start, int64_t end,
                                  tapword_candidate *candidate)
{
    candidate->start = tapword_seconds(start);
    candidate->end = tapword_seconds(end);
    candidate->score = t->scores[word];
    candidate->confidence = tapword_confidence(t, t->scores, word);
    candidate->phrase = 0;
    memcpy(candidate->word, t->names[word], sizeof candidate->word);
}

/* Whether a word is part of the last phrase: it shares much of its sound, or half of its own. */
static int tapword_in_phrase(const tapword_listener *l, const tapword_candidate *word)
{
    const tapword_candidate *phrase = &l->phrase;
    double first = phrase->start > word->start ? phrase->start : word->start;
    double last = phrase->end < word->end ? phrase->end : word->end;
    double half = (word->end - word->start) / 2.0;
    double least = half < TAPWORD_PHRASE_SHARED_S ? half : TAPWORD_PHRASE_SHARED_S;
    return phrase->word[0] != 0 && last - first >= least;
}

/* Whether a centre is in the refractory period after the last word. */
TAPWORD_PRIVATE int tapword_in_refractory(const tapword_listener *l, int64_t centre)
{
    int64_t apart = centre - l->last_centre;
    int soon = apart <= 0 || (double)apart < TAPWORD_REFRACTORY_S * TAPWORD_SAMPLE_RATE;
    return l->last.word[0] != 0 && soon;
}

/* Whether a word is the last word's utterance, seen through another window. Two utterances have
   at least as much sound as there is between their centres. */
static int tapword_repeats(const tapword_listener *l, const tapword_candidate *candidate,
                           int64_t centre)
{
    const tapword_candidate *last = &l->last;
    double start = candidate->start < last->start ? candidate->start : last->start;
    double end = candidate->end > last->end ? candidate->end : last->end;
    if (last->word[0] == 0 || candidate->start >= last->end || candidate->end <= last->start) {
        return 0;
    }
    if ((end - start) * TAPWORD_SAMPLE_RATE < (double)(centre - l->last_centre)) {
        return 1;
    }
    return strcmp(candidate->word, last->word) == 0 &&
           candidate->score - last->score >= TAPWORD_RISE_SCORE;
}

/* Append to a row of TAPWORD_WAITING candidates; if it is full, drop the oldest. */
static void tapword_append(tapword_candidate *row, uint32_t *count,
                           const tapword_candidate *candidate)
{
    if (*count == TAPWORD_WAITING) {
        memmove(row, row + 1, --*count * sizeof *row);
    }
    row[(*count)++] = *candidate;
}

TAPWORD_PRIVATE void tapword_drop(tapword_candidate *row, uint32_t *count, size_t at)
{
    --*count;
    memmove(row + at, row + at + 1, (*count - at) * sizeof *row);
}

/* Decide on a word in the window around a centre. Returns whether it is an event, which then
   waits. */
TAPWORD_PRIVATE int tapword_decide_word(tapword_listener *l, const tapword_candidate *candidate,
                                        int64_t centre)
{
    int repeats = tapword_repeats(l, candidate, centre), inside = tapword_in_phrase(l, candidate);
    l->last = *candidate;
    l->last_centre = centre;
    if (repeats || inside) {
        return 0;
    }
    tapword_append(l->waiting, &l->n_waiting, candidate);
    return 1;
}

/* Drop waiting words inside the last phrase. */
TAPWORD_PRIVATE void tapword_suppress(tapword_listener *l)
{
    size_t i;
    for (i = l->n_waiting; i-- > 0;) {
        if (!l->waiting[i].phrase && tapword_in_phrase(l, &l->waiting[i])) {
            tapword_drop(l->waiting, &l->n_waiting, i);
        }
    }
}

/* Accept the phrase in progress, which then waits. Returns whether there is one. */
TAPWORD_PRIVATE int tapword_finalize(tapword_listener *l)
{
    if (l->rising.word[0] == 0) {
        return 0;
    }
    l->phrase = l->rising;
    tapword_suppress(l);
    tapword_append(l->waiting, &l->n_waiting, &l->phrase);
    l->rising.word[0] = 0;
    return 1;
}

/* Move waiting candidates that no phrase of this length can contain any more to the ready ones,
   in the order of their start. */
TAPWORD_PRIVATE void tapword_pop_ready(tapword_listener *l, double now, double longest)
{
    for (;;) {
        size_t i, next = l->n_waiting;
        for (i = 0; i < l->n_waiting; i++) {
            const tapword_candidate *candidate = &l->waiting[i];
            if ((candidate->phrase || now >= candidate->end + longest) &&
                (next == l->n_waiting || candidate->start < l->waiting[next].start)) {
                next = i;
            }
        }
        if (next == l->n_waiting) {
            return;
        }
        tapword_append(l->ready, &l->n_ready, &l->waiting[next]);
        tapword_drop(l->waiting, &l->n_waiting, next);
    }
}
#endif
