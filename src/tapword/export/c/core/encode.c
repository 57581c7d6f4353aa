/* Samples -> vector. */
#include "internal.h"

static void tapword_pool_blocks(const float *const frames[TAPWORD_BLOCKS],
                                const size_t counts[TAPWORD_BLOCKS], float vector[TAPWORD_DIM])
{
    float *out = vector;
    size_t b;
    for (b = 0; b < TAPWORD_BLOCKS; b++) {
        out = tapword_pool(tapword_poolings[b], tapword_widths[b], frames[b], counts[b], out);
    }
}

void tapword_vector(const float *const frames[TAPWORD_BLOCKS], const size_t counts[TAPWORD_BLOCKS],
                    float vector[TAPWORD_DIM])
{
    tapword_pool_blocks(frames, counts, vector);
    tapword_whiten(vector);
}

#if TAPWORD_HAS_BACKBONE
#if TAPWORD_HAS_EAR
/* Frames of a clip, or of one of its copies: a stream from its start, then silence. */
static size_t tapword_frames(tapword *t, const float *audio, size_t n, tapword_clip clip,
                             size_t number, float *frames)
{
    size_t count = (clip.length + TAPWORD_EAR_HOP - 1) / TAPWORD_EAR_HOP, hop, i;
    float *samples = t->work.encoding.samples;
#if TAPWORD_COPIES
    tapword_copy copy;
    tapword_copy_start(&copy, number, audio, n, clip);
#else
    (void)number;
#endif
    tapword_ear_start(&t->work.encoding.ear);
    for (hop = 0; hop < count + TAPWORD_EAR_LATENCY; hop++) {
        for (i = 0; i < TAPWORD_EAR_HOP; i++) {
#if TAPWORD_COPIES
            samples[i] = tapword_copy_sample(&copy, audio, n, clip, hop * TAPWORD_EAR_HOP + i);
#else
            ptrdiff_t place = (ptrdiff_t)(hop * TAPWORD_EAR_HOP + i);
            samples[i] = tapword_sample(audio, n, clip, place);
#endif
        }
        /* The first frames precede the clip; the clip's own overwrite them. */
        tapword_ear_push(&t->work.encoding.ear, samples, frames);
        frames += hop < TAPWORD_EAR_LATENCY ? 0 : TAPWORD_FRAME;
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
TAPWORD_PRIVATE void tapword_pool_copy(tapword *t, const float *audio, size_t n, tapword_clip clip,
                                       size_t number, float *pooled)
{
    const float *frames[1];
    size_t count = tapword_frames(t, audio, n, clip, number, t->work.encoding.frames);
    frames[0] = t->work.encoding.frames;
    tapword_pool_blocks(frames, &count, pooled);
}

int tapword_encode(tapword *t, const float *audio, size_t n, float vector[TAPWORD_DIM],
                   size_t *length)
{
    tapword_clip clip;
    int error = tapword_cut(t, audio, n, &clip);
    if (TAPWORD_WEIGHTS_MISSING) {
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

#if TAPWORD_COHORT
/* Whether a vector is only noise: noise may be near a word that was taught in noise. */
TAPWORD_PRIVATE int tapword_is_noise(const float vector[TAPWORD_DIM])
{
    double product = 0.0, squares = 0.0;
    size_t d;
    for (d = 0; d < TAPWORD_DIM; d++) {
        product += (double)vector[d] * (double)tapword_noise[d];
        squares += (double)vector[d] * (double)vector[d];
    }
    return product >= TAPWORD_NOISE_COSINE * sqrt(squares);
}
#endif
#endif
