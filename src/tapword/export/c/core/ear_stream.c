/* The network on a stream: a hop in, a frame out. */
#include "internal.h"

#if TAPWORD_HAS_EAR
/* Run one of the two steps of a hop, and what follows from it. The first layer has a stride of two
   bands and two log-mel frames; its weights are always in 16 bits. */
static void tapword_step(tapword_ear *ear, size_t step, float frame[TAPWORD_FRAME])
{
    tapword_ear_number *state = ear->state;
    float *waiting = ear->waiting, *patch = ear->y;
    tapword_walk at = {NULL, NULL, NULL};
    size_t band, time, tap, i;
    at.halves = (const uint8_t *)&tapword_ear_weights;
#if TAPWORD_EIGHT_BITS
    at.bytes = tapword_ear_bytes;
    at.factors = tapword_ear_factors;
#endif
    for (band = 0; band < TAPWORD_EAR_BANDS; band++) {
        for (time = 0; time < TAPWORD_EAR_TAPS; time++) {
            for (tap = 0; tap < TAPWORD_EAR_TAPS; tap++) {
                size_t place = 2 * band + tap, edge = TAPWORD_EAR_TAPS / 2;
                int inside = place >= edge && place < TAPWORD_BANDS + edge;
                *patch++ = inside ? ear->mel[2 * step + time][place - edge] : 0.0f;
            }
        }
    }
    tapword_mix(ear, &at, ear->y, TAPWORD_EAR_BANDS, TAPWORD_EAR_TAPS * TAPWORD_EAR_TAPS,
                tapword_blocks[0].in, ear->x);
    tapword_relu(ear->x, (size_t)TAPWORD_EAR_BANDS * tapword_blocks[0].in);
    for (i = 0; i < TAPWORD_EAR_BLOCKS; i++) {
        if (i == TAPWORD_EAR_FLAT) {
            /* All bands of all channels become channels. */
            tapword_join(ear, &at, TAPWORD_EAR_FLAT_INPUTS, tapword_blocks[i].in, ear->y);
            tapword_relu(ear->y, tapword_blocks[i].in);
            memcpy(ear->x, ear->y, tapword_blocks[i].in * sizeof *ear->x);
        }
        if (!tapword_run_block(ear, &at, &tapword_blocks[i], step, &state)) {
            return;
        }
        tapword_add_residual(ear, &tapword_blocks[i], &waiting);
    }
    tapword_join(ear, &at, tapword_blocks[TAPWORD_EAR_BLOCKS - 1].out, TAPWORD_FRAME, frame);
}

/* Log-mel energies of a window of samples, scaled for the network. */
static void tapword_ear_mel(tapword_ear *ear, const float *sound, float mel[TAPWORD_BANDS])
{
    size_t band;
    memcpy(ear->wave[0], sound, TAPWORD_WINDOW * sizeof *sound);
    tapword_mel(ear->wave[0], ear->wave[1], mel);
    for (band = 0; band < TAPWORD_BANDS; band++) {
        mel[band] = (mel[band] + TAPWORD_EAR_SHIFT) / TAPWORD_EAR_SCALE;
    }
}

void tapword_ear_start(tapword_ear *ear)
{
    memset(ear, 0, sizeof *ear);
#if TAPWORD_EIGHT_BITS
    memset(ear->state, -128, sizeof ear->state); /* zero after a ReLU */
#endif
}

void tapword_ear_push(tapword_ear *ear, const float samples[TAPWORD_EAR_HOP],
                      float frame[TAPWORD_FRAME])
{
    const size_t kept = TAPWORD_EAR_MELS - TAPWORD_EAR_HOP / TAPWORD_STEP;
    size_t i;
    memcpy(ear->sound, ear->sound + TAPWORD_EAR_HOP, TAPWORD_EAR_OVERLAP * sizeof *samples);
    memcpy(ear->sound + TAPWORD_EAR_OVERLAP, samples, TAPWORD_EAR_HOP * sizeof *samples);
    memmove(ear->mel[0], ear->mel[TAPWORD_EAR_MELS - kept], kept * sizeof ear->mel[0]);
    for (i = kept; i < TAPWORD_EAR_MELS; i++) {
        tapword_ear_mel(ear, ear->sound + (i - kept) * TAPWORD_STEP, ear->mel[i]);
    }
    if (TAPWORD_WEIGHTS_MISSING) {
        memset(frame, 0, TAPWORD_FRAME * sizeof *frame);
        return;
    }
    for (i = 0; i < 2; i++) {
        tapword_step(ear, i, frame);
    }
}
#endif
