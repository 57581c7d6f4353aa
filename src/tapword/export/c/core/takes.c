/* Several takes of one word in a recording. As Python's tapword.spotter.takes. */
#include "internal.h"

#if TAPWORD_HAS_LESSON
/* Cut out each span of speech with a margin, which ends in the middle between two. Returns whether
   each is short enough for a word. */
static int tapword_cut_spans(tapword_sound *sounds, const tapword_endpointer *e, size_t n)
{
    size_t low = 0, high, start, end, next, ignored, i;
    int are_short = 1;
    for (i = 0; i < e->n_spans; i++) {
        tapword_span_samples(e->spans[i], &start, &end);
        high = n;
        if (i + 1 < e->n_spans) {
            tapword_span_samples(e->spans[i + 1], &next, &ignored);
            high = (end + next) / 2;
        }
        sounds[i].start = start;
        sounds[i].first = start > low + TAPWORD_TAKE_MARGIN ? start - TAPWORD_TAKE_MARGIN : low;
        sounds[i].end = end + TAPWORD_TAKE_MARGIN < high ? end + TAPWORD_TAKE_MARGIN : high;
        are_short &= sounds[i].end - sounds[i].first <= TAPWORD_MAX_SOUND;
        low = high;
    }
    return are_short;
}

/* Encode sounds into vectors of length 1: 0 or an error. */
static int tapword_encode_sounds(tapword_takes *takes, size_t count, tapword *t, const float *audio)
{
    size_t i, d, length;
    for (i = 0; i < count; i++) {
        const tapword_sound *sound = &takes->sounds[i];
        float *x = takes->vectors[i];
        double squares = 0.0;
        int error = tapword_encode(t, audio + sound->first, sound->end - sound->first, x, &length);
        if (error != 0) {
            return error;
        }
        for (d = 0; d < TAPWORD_DIM; d++) {
            squares += (double)x[d] * (double)x[d];
        }
        for (d = 0; d < TAPWORD_DIM; d++) {
            x[d] = (float)((double)x[d] / fmax(sqrt(squares), 1e-12));
        }
    }
    return 0;
}

/* Whether most sounds are similar to most of the others. A take is not unlike them. */
static int tapword_are_takes(tapword_takes *takes, size_t count, tapword_endpointer *e)
{
    size_t i, j, d, n, similar = 0;
    for (i = 0; i < count; i++) {
        double median;
        for (j = 0, n = 0; j < count; j++) {
            double cosine = 0.0;
            if (j == i) {
                continue;
            }
            for (d = 0; d < TAPWORD_DIM; d++) {
                cosine += (double)takes->vectors[i][d] * (double)takes->vectors[j][d];
            }
            e->sorted[n++] = (tapword_level)cosine;
        }
        median = tapword_quantile(e, n, 0.5);
        takes->sounds[i].is_take = median >= TAPWORD_TAKES_UNLIKE;
        similar += median >= TAPWORD_TAKES_SIMILAR;
    }
    return 2 * similar > count;
}

int tapword_find_takes(tapword_takes *takes, tapword_endpointer *e, tapword *t, const float *audio,
                       size_t n)
{
    static const double pauses_ms[] = {TAPWORD_ENDPOINT_GAP_MS, TAPWORD_ENDPOINT_PAUSE_MS};
    size_t i;
    int error = tapword_measure_recording(e, audio, n);
    for (i = 0; error == 0 && n > TAPWORD_CLIP && i < 2; i++) {
        /* Parts of a phrase are not similar: longer pauses separate them. */
        tapword_find_speech(e, pauses_ms[i]);
        if (e->n_spans < 2 || !tapword_cut_spans(takes->sounds, e, n)) {
            continue;
        }
        error = tapword_encode_sounds(takes, e->n_spans, t, audio);
        if (error == 0 && tapword_are_takes(takes, e->n_spans, e)) {
            return (int)e->n_spans;
        }
    }
    return error;
}
#endif
