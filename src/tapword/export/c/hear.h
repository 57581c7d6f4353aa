/* Samples -> vector. */

#if TAPWORD_EAR
/* Frames of a clip, heard as a stream from its beginning, silence after it. */
static size_t tapword_frames(tapword *t, const float *audio, size_t n, tapword_clip clip,
                             float *frames)
{
    size_t count = (clip.length + TAPWORD_EAR_HOP - 1) / TAPWORD_EAR_HOP, hop, i;
    float *samples = t->work.hearing.samples;
    tapword_ear_start(&t->work.hearing.ear);
    for (hop = 0; hop < count + TAPWORD_EAR_LATE; hop++) {
        for (i = 0; i < TAPWORD_EAR_HOP; i++) {
            ptrdiff_t place = (ptrdiff_t)(hop * TAPWORD_EAR_HOP + i);
            samples[i] = tapword_sample(audio, n, clip, place);
        }
        /* The first are of nothing, and the clip's own take their place. */
        tapword_ear_hear(&t->work.hearing.ear, samples, frames);
        frames += hop < TAPWORD_EAR_LATE ? 0 : TAPWORD_FRAME;
    }
    return count;
}
#else
static size_t tapword_frames(tapword *t, const float *audio, size_t n, tapword_clip clip,
                             float *frames)
{
    return tapword_log_mel(t, audio, n, clip, frames);
}
#endif

int tapword_hear(tapword *t, const float *audio, size_t n, float vector[TAPWORD_DIM],
                 size_t *length)
{
    tapword_clip clip;
    const float *frames[1];
    size_t count;
    int error = tapword_cut(t, audio, n, &clip);
    if (error != 0) {
        return error;
    }
    frames[0] = t->work.hearing.frames;
    count = tapword_frames(t, audio, n, clip, t->work.hearing.frames);
    tapword_vector(frames, &count, vector);
    *length = clip.length;
    return 0;
}
