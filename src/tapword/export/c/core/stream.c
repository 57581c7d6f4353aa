/* Candidates of a stream -> vectors and scores.

   With TAPWORD_STREAMS, the network runs once over the stream, and candidates are pooled from its
   frames. Without, each candidate passes the network from its beginning, as a clip does. */
#include "internal.h"

#if TAPWORD_HAS_LISTENER
/* Score the vector of a number of hops. Returns 1, 0 if it is only noise, or an error. */
static int tapword_score_vector(tapword *t, size_t hops)
{
    int error;
    if (tapword_is_noise(t->vector)) {
        return 0;
    }
    error = tapword_scores(t, t->vector, hops * TAPWORD_EAR_HOP, t->scores);
    return error != 0 ? error : 1;
}

#if TAPWORD_STREAMS
/* Begin with a new first hop, before which nothing was heard. The network starts with it: its
   weights may come later. */
TAPWORD_PRIVATE void tapword_stream_begin(tapword_listener *l)
{
    l->ear_started = 0;
    l->anchor = l->first;
    l->hops = l->from = l->until = l->begun = 0;
    l->final = l->missing = 0;
    l->skip = TAPWORD_EAR_LATENCY;
}

/* Take a sample. Returns whether a hop is complete, which then passed the network. */
TAPWORD_PRIVATE int tapword_stream_sample(tapword_listener *l, float sample)
{
    float frame[TAPWORD_FRAME];
    l->hop[l->missing++] = sample;
    if (l->missing < TAPWORD_EAR_HOP) {
        return 0;
    }
    if (!l->ear_started) {
        tapword_ear_start(&l->ear);
        l->ear_started = 1;
    }
    l->missing = 0;
    l->hops++;
    if (l->final == TAPWORD_KEPT_FRAMES) {
        memmove(l->frames, l->frames + TAPWORD_SPARE_FRAMES,
                (TAPWORD_KEPT_FRAMES - TAPWORD_SPARE_FRAMES) * sizeof *l->frames);
        l->from += TAPWORD_SPARE_FRAMES;
        l->final -= TAPWORD_SPARE_FRAMES;
    }
    tapword_ear_push(&l->ear, l->hop, frame);
    tapword_keep_row(frame, TAPWORD_FRAME, l->frames[l->final]);
    if (l->skip > 0) {
        l->skip--; /* it precedes the stream */
    } else {
        l->final++;
    }
    return 1;
}

/* Pool some hops into t->vector. Where a frame is not known, or not among the first `known` hops,
   it is the nearest that is; 0 before there is any. */
static void tapword_pool_known(tapword *t, const tapword_listener *l, int64_t start, size_t hops,
                               size_t known)
{
    float *frame = t->work.encoding.frames;
    const float *frames[1];
    int64_t first = start - l->from, last = first + (int64_t)known;
    size_t hop;
    last = last < (int64_t)l->final ? last : (int64_t)l->final;
    frames[0] = frame;
    for (hop = 0; hop < hops; hop++, frame += TAPWORD_FRAME) {
        int64_t row = first + (int64_t)hop;
        row = row < last ? row : last - 1;
        if (l->final > 0) {
            tapword_kept_row(l->frames[row > 0 ? row : 0], TAPWORD_FRAME, frame);
        } else {
            memset(frame, 0, TAPWORD_FRAME * sizeof *frame);
        }
    }
    tapword_vector(frames, &hops, t->vector);
}

#if TAPWORD_PHRASE_HOPS
/* Pool a segment into t->vector. */
TAPWORD_PRIVATE void tapword_pool_hops(tapword *t, const tapword_listener *l, int64_t start,
                                       size_t hops)
{
    tapword_pool_known(t, l, start, hops, hops);
}

/* Score a segment. Returns 1, 0 if it is only noise, or an error. */
TAPWORD_PRIVATE int tapword_score_hops(tapword *t, tapword_listener *l, int64_t start, size_t hops)
{
    tapword_pool_hops(t, l, start, hops);
    return tapword_score_vector(t, hops);
}

/* Latest end of a segment: its margin may lack frames. */
TAPWORD_PRIVATE int64_t tapword_last_end(const tapword_listener *l)
{
    return l->hops - TAPWORD_EAR_LATENCY + TAPWORD_SEGMENT_MARGIN;
}
#endif

/* Score the second around a step. Returns as above. */
TAPWORD_PRIVATE int tapword_score_second(tapword *t, tapword_listener *l, int64_t point)
{
    /* From a second before, since a division rounds to zero. */
    int64_t sample = (point + TAPWORD_SEARCH_HALF) * TAPWORD_HOP + TAPWORD_EAR_HOP / 2;
    int64_t first = sample / TAPWORD_EAR_HOP - TAPWORD_CLIP / TAPWORD_EAR_HOP;
    tapword_pool_known(t, l, first, TAPWORD_CLIP / TAPWORD_EAR_HOP, TAPWORD_SEARCH_KNOWN);
    return tapword_score_vector(t, TAPWORD_CLIP / TAPWORD_EAR_HOP);
}
#else
/* Score a number of hops that began `ago` samples ago, as a clip. */
static int tapword_score_kept(tapword *t, const tapword_listener *l, size_t ago, size_t hops)
{
    float *frame = t->work.encoding.frames, *samples = t->work.encoding.samples;
    const float *frames[1];
    size_t hop;
    frames[0] = frame;
    tapword_ear_start(&t->work.encoding.ear);
    for (hop = 0; hop < hops + TAPWORD_EAR_LATENCY; hop++) {
        if (hop < hops) {
            tapword_kept(l, ago - hop * TAPWORD_EAR_HOP, TAPWORD_EAR_HOP, samples);
        } else {
            memset(samples, 0, TAPWORD_EAR_HOP * sizeof *samples);
        }
        /* The first frames precede the clip; the clip's own overwrite them. */
        tapword_ear_push(&t->work.encoding.ear, samples, frame);
        frame += hop < TAPWORD_EAR_LATENCY ? 0 : TAPWORD_FRAME;
    }
    tapword_vector(frames, &hops, t->vector);
    return tapword_score_vector(t, hops);
}

/* Score the second around a step. Returns 1, 0 if it is only noise, or an error. */
TAPWORD_PRIVATE int tapword_score_second(tapword *t, tapword_listener *l, int64_t point)
{
    size_t ago = (size_t)(l->steps - point + TAPWORD_SEARCH_HALF) * TAPWORD_HOP;
    return tapword_score_kept(t, l, ago, TAPWORD_CLIP / TAPWORD_EAR_HOP);
}

#if TAPWORD_PHRASE_HOPS
/* Score a segment as a clip. Returns as above. */
TAPWORD_PRIVATE int tapword_score_hops(tapword *t, tapword_listener *l, int64_t start, size_t hops)
{
    float *frame = t->work.encoding.frames, *samples = t->work.encoding.samples;
    tapword_ear *ear = &t->work.encoding.ear;
    const float *frames[1];
    size_t first = (size_t)(start - l->from), hop;
    size_t ago = ((size_t)(l->hops - start) - hops) * TAPWORD_EAR_HOP;
    frames[0] = frame;
    tapword_ear_start(ear);
    for (hop = 0; hop < hops + TAPWORD_EAR_LATENCY; hop++) {
        if (hop < hops) {
            tapword_push_mels(ear, l->mels[first + hop], hop == 0, frame);
        } else {
            if (hop == hops) {
                /* Windows of the silence that follows begin in the segment. */
                tapword_kept(l, ago + TAPWORD_EAR_OVERLAP, TAPWORD_EAR_OVERLAP,
                             ear->memory.sound + TAPWORD_EAR_HOP);
                memset(samples, 0, TAPWORD_EAR_HOP * sizeof *samples);
            }
            tapword_ear_push(ear, samples, frame);
        }
        frame += hop < TAPWORD_EAR_LATENCY ? 0 : TAPWORD_FRAME;
    }
    tapword_vector(frames, &hops, t->vector);
    return tapword_score_vector(t, hops);
}

/* Pool a segment into t->vector, by the frames of the stream. */
TAPWORD_PRIVATE void tapword_pool_hops(tapword *t, const tapword_listener *l, int64_t start,
                                       size_t hops)
{
    const tapword_kept_number *kept = l->frames[start - l->from];
    const float *frames[1];
    frames[0] = t->work.encoding.frames;
    tapword_kept_row(kept, hops * TAPWORD_FRAME, t->work.encoding.frames);
    tapword_vector(frames, &hops, t->vector);
}

/* Latest end of a segment. */
TAPWORD_PRIVATE int64_t tapword_last_end(const tapword_listener *l) { return l->hops; }

/* Run the network on new samples. After silence it starts again: before its start it has heard
   nothing, which is not the same as silence. */
TAPWORD_PRIVATE void tapword_make_frames(tapword *t, tapword_listener *l)
{
    int64_t lead = TAPWORD_SEGMENT_STEP + TAPWORD_SEGMENT_LEAD;
    float *samples = t->work.encoding.samples, *frame = t->work.encoding.frames;
    tapword_ear *ear = &t->work.encoding.ear;
    size_t old, i;
    memcpy(&ear->memory, &l->ear, sizeof l->ear);
    if (!l->ear_started || l->until < l->hops - TAPWORD_SEGMENT_STEP) {
        tapword_ear_start(ear);
        l->ear_started = 1;
        l->skip = TAPWORD_EAR_LATENCY;
        l->final = 0;
        l->until = l->from = l->hops > lead ? l->hops - lead : 0;
    }
    if (l->hops - l->from > TAPWORD_KEPT_FRAMES) {
        old = (size_t)(l->hops - l->from) - TAPWORD_KEPT_FRAMES;
        l->from += (int64_t)old;
        l->final -= (uint32_t)old;
        memmove(l->frames, l->frames + old, l->final * sizeof *l->frames);
        memmove(l->mels, l->mels + old, (size_t)(l->until - l->from) * sizeof *l->mels);
    }
    for (; l->until < l->hops; l->until++) {
        size_t ago = (size_t)(l->hops - l->until) * TAPWORD_EAR_HOP;
        tapword_kept(l, ago, TAPWORD_EAR_HOP, samples);
        tapword_ear_push(ear, samples, frame);
        tapword_keep_row(frame, TAPWORD_FRAME, l->frames[l->final]);
        tapword_keep_mels(ear, l->mels[l->until - l->from]);
        if (l->skip > 0) {
            l->skip--; /* it precedes the segment */
        } else {
            l->final++;
        }
    }
    /* The last frames are provisional: as if silence followed. */
    memcpy(&l->ear, &ear->memory, sizeof l->ear);
    memset(samples, 0, TAPWORD_EAR_HOP * sizeof *samples);
    for (i = 0; i < TAPWORD_EAR_LATENCY; i++) {
        tapword_ear_push(ear, samples, frame);
        tapword_keep_row(frame, TAPWORD_FRAME, l->frames[l->final + i]);
    }
}
#endif
#endif
#endif
