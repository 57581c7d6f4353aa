/* Stream -> events. */
#include "internal.h"

#if TAPWORD_HAS_LISTENER
/* Mark words that are searched in windows of a second as wanted. Returns whether there are any. */
static int tapword_want_short(const tapword *t, tapword_listener *l)
{
    int any = 0;
    size_t k;
    for (k = 0; k < t->words; k++) {
        l->wanted[k] = !tapword_is_negative(t->names[k]) && !tapword_is_phrase(t, k);
        any = any || l->wanted[k];
    }
    return any;
}

/* The last point whose window is complete. */
static int64_t tapword_settled(const tapword_listener *l)
{
    return l->steps - TAPWORD_SEARCH_HALF - TAPWORD_SEARCH_LAG;
}

/* Score the window around a centre, or at an offset in steps. Returns 0 or an error. */
static int tapword_score_window(tapword *t, tapword_listener *l, int64_t centre, int64_t offset)
{
    int64_t point = centre + offset, start, end, sample = l->first + centre * TAPWORD_HOP;
    tapword_candidate candidate;
    int word;
    if (!tapword_is_loud(l, point - TAPWORD_SEARCH_HALF / 2, point + TAPWORD_SEARCH_HALF / 2)) {
        return 0;
    }
    l->busy = tapword_settled(l);
    if (tapword_in_refractory(l, sample) || !tapword_want_short(t, l)) {
        return 0;
    }
    word = tapword_score_second(t, l, point);
    if (word <= 0) {
        return word;
    }
    word = tapword_best_said(t, l, 0.0f);
    if (word >= 0) {
        tapword_loud_part(l, point, &start, &end);
        start = l->first + start * TAPWORD_HOP;
        tapword_name(t, word, start, l->first + end * TAPWORD_HOP, &candidate);
        if (tapword_decide_word(l, &candidate, sample)) {
            return 0;
        }
    }
#ifdef TAPWORD_BOARD
    if (word < 0 && (word = tapword_best_said(t, l, TAPWORD_CLOSE_SCORE)) >= 0) {
        tapword_name(t, word, 0, 0, &l->near_miss);
    }
#endif
    if (offset == 0 && tapword_best_said(t, l, TAPWORD_CLOSE_SCORE) >= 0) {
        tapword_unclear *unclear = &l->unclear[l->n_unclear++];
        unclear->centre = centre;
        unclear->since = tapword_settled(l);
        unclear->scored = 0;
    }
    return 0;
}

/* Find the window at an offset that is due first. Returns NULL if none is due at a point. */
static tapword_unclear *tapword_next_due(tapword_listener *l, int64_t point)
{
    int busy = point - l->busy < TAPWORD_SEARCH_OFFSET_SPACING;
    tapword_unclear *first = NULL;
    int64_t due = point - (busy ? TAPWORD_SEARCH_PATIENCE : 0);
    size_t i;
    for (i = 0; i < l->n_unclear; i++) {
        tapword_unclear *one = &l->unclear[i];
        int64_t its = one->since + (int64_t)(one->scored + 1) * TAPWORD_SEARCH_OFFSET_SPACING;
        if (its < due || (its == due && first == NULL)) {
            first = one;
            due = its;
        }
    }
    return first;
}

/* Score the windows at offsets that are due at a point, one after another so that the work is
   spread evenly. Returns 0 or an error. */
static int tapword_score_beside(tapword *t, tapword_listener *l, int64_t point)
{
    static const int offsets[TAPWORD_SEARCH_OFFSET_COUNT] = {TAPWORD_SEARCH_OFFSETS};
    tapword_unclear *one;
    int error = 0, failed;
    while ((one = tapword_next_due(l, point)) != NULL) {
        int64_t centre = one->centre;
        int offset = offsets[one->scored++];
        if (one->scored == TAPWORD_SEARCH_OFFSET_COUNT) {
            size_t after = (size_t)(l->unclear + --l->n_unclear - one);
            memmove(one, one + 1, after * sizeof *one);
        }
        if (tapword_has_neighbours(l, centre)) {
            failed = tapword_score_window(t, l, centre, offset);
            error = error != 0 ? error : failed;
        }
    }
    return error;
}

/* Score the windows that are complete with the last step. Returns 0 or an error. */
static int tapword_look_at_windows(tapword *t, tapword_listener *l)
{
    int64_t point = tapword_settled(l), near = point - TAPWORD_SEARCH_APART;
    int error = 0, failed;
    if (point < 0) {
        return 0;
    }
    tapword_follow_floor(l, point);
    if (tapword_is_centre(l, point, TAPWORD_HALF_WINDOW)) {
        error = tapword_score_window(t, l, point, 0);
        l->centre = point;
    }
    if (error == 0 && tapword_is_centre(l, near, TAPWORD_SEARCH_NEAR)) {
        int64_t apart = near > l->centre ? near - l->centre : l->centre - near;
        int has_neighbours =
            apart > TAPWORD_SEARCH_APART_CROWDED && tapword_has_neighbours(l, near);
        if (apart > TAPWORD_SEARCH_APART || has_neighbours) {
            error = tapword_score_window(t, l, near, 0);
        }
    }
    /* After an error too, so that what waits stays few. */
    failed = tapword_score_beside(t, l, point);
    return error != 0 ? error : failed;
}

/* Write events that are ready, as far as there is room; forgotten words are dropped. */
static size_t tapword_hand_out(const tapword *t, tapword_listener *l, tapword_event *events,
                               size_t room)
{
    size_t given = 0;
    while (l->n_ready > 0 && given < room) {
        const tapword_candidate *candidate = &l->ready[0];
        events[given].word = tapword_find(t, candidate->word);
        events[given].score = candidate->score;
        events[given].confidence = candidate->confidence;
        events[given].start = candidate->start;
        events[given].end = candidate->end;
        given += events[given].word >= 0;
        tapword_drop(l->ready, &l->n_ready, 0);
    }
    return given;
}

/* Push a sample. Returns 0 or an error. */
static int tapword_push_sample(tapword *t, tapword_listener *l, float sample)
{
    int error = 0;
#if TAPWORD_STREAMS
    int hop = tapword_stream_sample(l, sample);
    (void)hop;
#endif
    if (tapword_keep_sample(l, sample)) {
        error = tapword_look_at_windows(t, l);
    }
#if TAPWORD_PHRASE_HOPS
#if TAPWORD_STREAMS
    if (l->phrases && hop && l->hops % TAPWORD_SEGMENT_STEP == 0) {
#else
    if (l->phrases && --l->missing == 0) {
#endif
        int failed = tapword_look_for_phrases(t, l);
        error = error != 0 ? error : failed;
    }
#endif
    if (!l->phrases) {
        tapword_pop_ready(l, HUGE_VAL, 0.0);
    }
    return error;
}

/* Push n samples, silence if audio is NULL. Returns the number of events, or an error if there
   is none. */
static int tapword_push_all(tapword *t, tapword_listener *l, const float *audio, size_t n,
                            tapword_event *events, size_t room)
{
    size_t i, given = tapword_hand_out(t, l, events, room);
    int error = 0;
    for (i = 0; i < n; i++) {
        int failed = tapword_push_sample(t, l, audio == NULL ? 0.0f : audio[i]);
        error = error != 0 ? error : failed;
        given += tapword_hand_out(t, l, events + given, room - given);
    }
    return given > 0 ? (int)given : error;
}

/* Start at a sample of the stream; waiting candidates stay. */
static void tapword_begin(tapword_listener *l, int64_t first)
{
#if !TAPWORD_STREAMS
    memset(l->sound, 0, sizeof l->sound);
#endif
    memset(l->energy, 0, sizeof l->energy);
    l->last.word[0] = l->rising.word[0] = l->phrase.word[0] = 0;
    l->first = first;
    l->steps = 0;
    l->centre = l->busy = -TAPWORD_SEARCH_HALF;
    l->step_energy = 0.0;
    l->floor_db = HUGE_VAL;
    l->phrases = l->filled = l->place = l->step_place = l->n_unclear = 0;
#if TAPWORD_STREAMS
    tapword_stream_begin(l);
#endif
}

void tapword_listener_start(tapword_listener *l)
{
    memset(l, 0, sizeof *l);
    tapword_begin(l, 0);
}

void tapword_listener_gap(tapword_listener *l, uint32_t samples)
{
    tapword_finalize(l);
    tapword_begin(l, tapword_now(l) + (int64_t)samples);
}

int tapword_listener_push(tapword *t, tapword_listener *l, const float *audio, size_t n,
                          tapword_event *events, size_t room)
{
    size_t i;
    if (TAPWORD_WEIGHTS_MISSING) {
        return TAPWORD_NO_WEIGHTS;
    }
    for (i = 0; i < n; i++) {
        if (!(fabsf(audio[i]) <= TAPWORD_PEAK)) {
            return TAPWORD_BAD_AUDIO;
        }
    }
    if (n > 0) {
        tapword_follow_phrases(t, l);
    }
    return tapword_push_all(t, l, audio, n, events, room);
}

int tapword_listener_flush(tapword *t, tapword_listener *l, tapword_event *events, size_t room)
{
    size_t silence = TAPWORD_SEARCH_FLUSH, given;
    int found;
    if (TAPWORD_WEIGHTS_MISSING) {
        return TAPWORD_NO_WEIGHTS;
    }
    tapword_follow_phrases(t, l);
#if TAPWORD_PHRASE_HOPS
    silence += l->phrases ? TAPWORD_SEGMENT_STEP * TAPWORD_EAR_HOP : 0;
#endif
    found = tapword_push_all(t, l, NULL, silence, events, room);
    given = found > 0 ? (size_t)found : 0;
    tapword_finalize(l);
    tapword_pop_ready(l, HUGE_VAL, 0.0);
    given += tapword_hand_out(t, l, events + given, room - given);
    return given > 0 ? (int)given : found;
}
#endif
