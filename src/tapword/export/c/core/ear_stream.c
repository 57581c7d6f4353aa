/* The network on a stream: a hop in, a frame out. */
#include "internal.h"

#if TAPWORD_HAS_EAR
/* Run one of the two steps of a hop, and what follows from it. The first layer has a stride of two
   bands and two log-mel frames; its weights are always in 16 bits. */
static void tapword_step(tapword_ear *ear, size_t step, float frame[TAPWORD_FRAME])
{
    tapword_ear_number *state = ear->memory.state;
    float *waiting = ear->memory.waiting, *patch = ear->y;
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
                *patch++ = inside ? ear->memory.mel[2 * step + time][place - edge] : 0.0f;
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

/* Log-mel energies of the latest hop's window of this number, scaled for the network; of a stream
   that begins with this hop, where it is the first. */
static void tapword_ear_mel(tapword_ear *ear, size_t number, int first, float mel[TAPWORD_BANDS])
{
    size_t start = number * TAPWORD_STEP, band;
    memcpy(ear->wave[0], ear->memory.sound + start, TAPWORD_WINDOW * sizeof(float));
    if (first && start < TAPWORD_EAR_OVERLAP) {
        memset(ear->wave[0], 0, (TAPWORD_EAR_OVERLAP - start) * sizeof(float));
    }
    tapword_mel(ear->wave[0], ear->wave[1], mel);
    for (band = 0; band < TAPWORD_BANDS; band++) {
        mel[band] = (mel[band] + TAPWORD_EAR_SHIFT) / TAPWORD_EAR_SCALE;
    }
}

/* Make room for the log-mel frames of another hop. Returns the first of them. */
static float (*tapword_new_mels(tapword_ear *ear)) [TAPWORD_BANDS] {
    const size_t kept = TAPWORD_EAR_MELS - TAPWORD_EAR_HOP / TAPWORD_STEP;
    float (*mel)[TAPWORD_BANDS] = ear->memory.mel;
    memmove(mel[0], mel[TAPWORD_EAR_MELS - kept], kept * sizeof mel[0]);
    return mel + kept;
}

/* Run the network on the log-mel frames of a hop. */
static void tapword_run_ear(tapword_ear *ear, float frame[TAPWORD_FRAME])
{
    size_t i;
    if (TAPWORD_WEIGHTS_MISSING) {
        memset(frame, 0, TAPWORD_FRAME * sizeof *frame);
        return;
    }
    for (i = 0; i < 2; i++) {
        tapword_step(ear, i, frame);
    }
}

/* Run the network on the latest hop of sound. */
static void tapword_run_hop(tapword_ear *ear, float frame[TAPWORD_FRAME])
{
    float (*mel)[TAPWORD_BANDS] = tapword_new_mels(ear);
    size_t i;
    for (i = 0; i < TAPWORD_EAR_HOP / TAPWORD_STEP; i++) {
        tapword_ear_mel(ear, i, 0, mel[i]);
    }
    tapword_run_ear(ear, frame);
}

void tapword_ear_start(tapword_ear *ear)
{
    int hop;
    memset(ear, 0, sizeof *ear);
#if TAPWORD_EIGHT_BITS
    memset(ear->memory.state, -128, sizeof ear->memory.state); /* zero after a ReLU */
#endif
    for (hop = 0; hop < TAPWORD_EAR_SILENCE; hop++) {
        tapword_run_hop(ear, ear->y); /* frames of silence, which nobody reads */
    }
}

void tapword_ear_push(tapword_ear *ear, const float samples[TAPWORD_EAR_HOP],
                      float frame[TAPWORD_FRAME])
{
    float *sound = ear->memory.sound;
    memcpy(sound, sound + TAPWORD_EAR_HOP, TAPWORD_EAR_OVERLAP * sizeof *sound);
    memcpy(sound + TAPWORD_EAR_OVERLAP, samples, TAPWORD_EAR_HOP * sizeof *sound);
    tapword_run_hop(ear, frame);
}

#if TAPWORD_HAS_LISTENER && TAPWORD_PHRASE_HOPS && !TAPWORD_STREAMS
/* Kept log-mel energies are whole numbers: what stands for 1, so that all fit. */
#if TAPWORD_EIGHT_BITS
#define TAPWORD_MEL_ONE 8192.0f
#else
#define TAPWORD_MEL_ONE 1.0f
#endif

/* Keep a log-mel frame. */
static void tapword_keep_mel(const float mel[TAPWORD_BANDS], tapword_kept_mel kept[TAPWORD_BANDS])
{
    size_t band;
    for (band = 0; band < TAPWORD_BANDS; band++) {
#if TAPWORD_EIGHT_BITS
        float value = mel[band] * TAPWORD_MEL_ONE;
        value = value > -32768.0f ? (value < 32767.0f ? value : 32767.0f) : -32768.0f;
        kept[band] = (int16_t)(value < 0.0f ? value - 0.5f : value + 0.5f);
#else
        kept[band] = mel[band];
#endif
    }
}

/* Keep the log-mel frames of the hop that was pushed last: as they are, then as its first are if a
   stream begins with it. */
TAPWORD_PRIVATE void tapword_keep_mels(tapword_ear *ear, tapword_kept_mel (*mels)[TAPWORD_BANDS])
{
    float mel[TAPWORD_BANDS];
    size_t i;
    for (i = 0; i < TAPWORD_HOP_MELS; i++) {
        tapword_keep_mel(ear->memory.mel[TAPWORD_EAR_MELS - TAPWORD_HOP_MELS + i], mels[i]);
    }
    for (i = 0; i < TAPWORD_FIRST_MELS; i++) {
        tapword_ear_mel(ear, i, 1, mel);
        tapword_keep_mel(mel, mels[TAPWORD_HOP_MELS + i]);
    }
}

/* Push a hop whose log-mel frames were kept; `first`: the stream begins with it. */
TAPWORD_PRIVATE void tapword_push_mels(tapword_ear *ear, tapword_kept_mel (*mels)[TAPWORD_BANDS],
                                       int first, float frame[TAPWORD_FRAME])
{
    float (*mel)[TAPWORD_BANDS] = tapword_new_mels(ear);
    size_t i, band;
    for (i = 0; i < TAPWORD_HOP_MELS; i++) {
        size_t from = first && i < TAPWORD_FIRST_MELS ? TAPWORD_HOP_MELS + i : i;
        for (band = 0; band < TAPWORD_BANDS; band++) {
            mel[i][band] = (float)mels[from][band] / TAPWORD_MEL_ONE;
        }
    }
    tapword_run_ear(ear, frame);
}
#endif
#endif
