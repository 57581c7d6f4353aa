/* Scored windows and stretches -> words that were said, once for each utterance.

   Words are decided on window by window. A phrase is seen through a row of stretches, one better
   than the other, and the best of them is the event. Where a word lies inside a phrase, the phrase
   is. */

/* Score what began so many samples ago and lasts for so many hops: 1, 0 where it is noise alone, or
   an error. */
static int tapword_score_kept(tapword *t, tapword_listener *l, size_t ago, size_t hops)
{
    float *frame = t->work.hearing.frames, *samples = t->work.hearing.samples;
    const float *frames[1];
    size_t hop;
    int error;
    frames[0] = frame;
    tapword_ear_start(&t->work.hearing.ear);
    for (hop = 0; hop < hops + TAPWORD_EAR_LATE; hop++) {
        if (hop < hops) {
            tapword_kept(l, ago - hop * TAPWORD_EAR_HOP, TAPWORD_EAR_HOP, samples);
        } else {
            memset(samples, 0, TAPWORD_EAR_HOP * sizeof *samples);
        }
        /* The first are of nothing, and the clip's own take their place. */
        tapword_ear_hear(&t->work.hearing.ear, samples, frame);
        frame += hop < TAPWORD_EAR_LATE ? 0 : TAPWORD_FRAME;
    }
    tapword_vector(frames, &hops, t->vector);
    if (tapword_is_noise(t->vector)) {
        return 0;
    }
    error = tapword_scores(t, t->vector, hops * TAPWORD_EAR_HOP, t->scores);
    return error != 0 ? error : 1;
}

/* Best of the wanted words that score higher than their negatives, and no more than `by` below
   their thresholds. */
static int tapword_best_said(const tapword *t, const tapword_listener *l, float by)
{
    int best = TAPWORD_UNKNOWN;
    size_t k;
    for (k = 0; k < t->words; k++) {
        if (l->wanted[k] && t->scores[k] >= t->thresholds[k] - by &&
            tapword_is_taken(t, t->scores, k) && (best < 0 || t->scores[k] > t->scores[best])) {
            best = (int)k;
        }
    }
    return best;
}

static double tapword_seconds(int64_t samples) { return (double)samples / TAPWORD_SAMPLE_RATE; }

/* A word that was scored, from one sample of the stream to another. */
static void tapword_name(const tapword *t, int word, int64_t start, int64_t end,
                         tapword_said *said)
{
    said->start = tapword_seconds(start);
    said->end = tapword_seconds(end);
    said->score = t->scores[word];
    said->phrase = 0;
    memcpy(said->word, t->names[word], sizeof said->word);
}

/* Whether a word is part of the last phrase: it shares much sound with it, or half of its own. */
static int tapword_in_phrase(const tapword_listener *l, const tapword_said *word)
{
    const tapword_said *phrase = &l->phrase;
    double first = phrase->start > word->start ? phrase->start : word->start;
    double last = phrase->end < word->end ? phrase->end : word->end;
    double half = (word->end - word->start) / 2.0;
    double least = half < TAPWORD_PHRASE_SHARED_S ? half : TAPWORD_PHRASE_SHARED_S;
    return phrase->word[0] != 0 && last - first >= least;
}

/* Whether a sound comes too soon after the last word to be one. */
static int tapword_pauses(const tapword_listener *l, int64_t centre)
{
    int64_t apart = centre - l->last_centre;
    int soon = apart <= 0 || (double)apart < TAPWORD_REFRACTORY_S * TAPWORD_SAMPLE_RATE;
    return l->last.word[0] != 0 && soon;
}

/* Whether a word is the last one's utterance, seen through another window. Two utterances need at
   least as much sound as lies between their centres. */
static int tapword_repeats(const tapword_listener *l, const tapword_said *said, int64_t centre)
{
    const tapword_said *last = &l->last;
    double start = said->start < last->start ? said->start : last->start;
    double end = said->end > last->end ? said->end : last->end;
    if (last->word[0] == 0 || said->start >= last->end || said->end <= last->start) {
        return 0;
    }
    if ((end - start) * TAPWORD_SAMPLE_RATE < (double)(centre - l->last_centre)) {
        return 1;
    }
    return strcmp(said->word, last->word) == 0 && said->score - last->score >= TAPWORD_RISE_SCORE;
}

/* Append to a row of TAPWORD_WAITING; of more than that the oldest is lost. */
static void tapword_append(tapword_said *row, uint32_t *count, const tapword_said *said)
{
    if (*count == TAPWORD_WAITING) {
        memmove(row, row + 1, --*count * sizeof *row);
    }
    row[(*count)++] = *said;
}

static void tapword_drop(tapword_said *row, uint32_t *count, size_t at)
{
    --*count;
    memmove(row + at, row + at + 1, (*count - at) * sizeof *row);
}

/* Decide on a word in the window around a centre; whether it is an event, which then waits. */
static int tapword_decide_word(tapword_listener *l, const tapword_said *said, int64_t centre)
{
    int repeats = tapword_repeats(l, said, centre), inside = tapword_in_phrase(l, said);
    l->last = *said;
    l->last_centre = centre;
    if (repeats || inside) {
        return 0;
    }
    tapword_append(l->waiting, &l->waits, said);
    return 1;
}

/* Words that lie inside the last phrase are none. */
static void tapword_cover(tapword_listener *l)
{
    size_t i;
    for (i = l->waits; i-- > 0;) {
        if (!l->waiting[i].phrase && tapword_in_phrase(l, &l->waiting[i])) {
            tapword_drop(l->waiting, &l->waits, i);
        }
    }
}

/* The phrase that was being said will not be better: it waits to be given. Whether there is one. */
static int tapword_settle(tapword_listener *l)
{
    if (l->rising.word[0] == 0) {
        return 0;
    }
    l->phrase = l->rising;
    tapword_cover(l);
    tapword_append(l->waiting, &l->waits, &l->phrase);
    l->rising.word[0] = 0;
    return 1;
}

/* What waits, and no phrase of this length can hold any more, is due: in order of its start. */
static void tapword_make_due(tapword_listener *l, double now, double longest)
{
    for (;;) {
        size_t i, next = l->waits;
        for (i = 0; i < l->waits; i++) {
            const tapword_said *said = &l->waiting[i];
            if ((said->phrase || now >= said->end + longest) &&
                (next == l->waits || said->start < l->waiting[next].start)) {
                next = i;
            }
        }
        if (next == l->waits) {
            return;
        }
        tapword_append(l->due, &l->dues, &l->waiting[next]);
        tapword_drop(l->waiting, &l->waits, next);
    }
}
