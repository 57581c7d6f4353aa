/* Samples -> vector. */

#if TAPWORD_EAR
/* Frames of a clip, or of one of its copies, heard as a stream from its beginning, silence after
   it. */
static size_t tapword_frames(tapword *t, const float *audio, size_t n, tapword_clip clip,
                             size_t number, float *frames)
{
    size_t count = (clip.length + TAPWORD_EAR_HOP - 1) / TAPWORD_EAR_HOP, hop, i;
    float *samples = t->work.hearing.samples;
#if TAPWORD_COPIES
    tapword_copy copy;
    tapword_copy_start(&copy, number, audio, n, clip);
#else
    (void)number;
#endif
    tapword_ear_start(&t->work.hearing.ear);
    for (hop = 0; hop < count + TAPWORD_EAR_LATE; hop++) {
        for (i = 0; i < TAPWORD_EAR_HOP; i++) {
#if TAPWORD_COPIES
            samples[i] = tapword_copied(&copy, audio, n, clip, hop * TAPWORD_EAR_HOP + i);
#else
            ptrdiff_t place = (ptrdiff_t)(hop * TAPWORD_EAR_HOP + i);
            samples[i] = tapword_sample(audio, n, clip, place);
#endif
        }
        /* The first are of nothing, and the clip's own take their place. */
        tapword_ear_hear(&t->work.hearing.ear, samples, frames);
        frames += hop < TAPWORD_EAR_LATE ? 0 : TAPWORD_FRAME;
    }
    return count;
}
#else
static size_t tapword_frames(tapword *t, const float *audio, size_t n, tapword_clip clip,
                             size_t number, float *frames)
{
    (void)number;
    return tapword_log_mel(t, audio, n, clip, frames);
}
#endif

/* Pool a clip, or one of its copies. */
static void tapword_pool_copy(tapword *t, const float *audio, size_t n, tapword_clip clip,
                              size_t number, float *pooled)
{
    const float *frames[1];
    size_t count = tapword_frames(t, audio, n, clip, number, t->work.hearing.frames);
    frames[0] = t->work.hearing.frames;
    tapword_pool_blocks(frames, &count, pooled);
}

int tapword_hear(tapword *t, const float *audio, size_t n, float vector[TAPWORD_DIM],
                 size_t *length)
{
    tapword_clip clip;
    int error = tapword_cut(t, audio, n, &clip);
    if (TAPWORD_LACKS_WEIGHTS) {
        return TAPWORD_NO_WEIGHTS;
    }
    if (error != 0) {
        return error;
    }
    tapword_pool_copy(t, audio, n, clip, 0, vector);
    tapword_whiten(vector);
    *length = clip.length;
    return 0;
}
