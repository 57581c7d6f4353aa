/* Layers of the network in floats, with weights in 16 bits. */
#include "internal.h"

#if TAPWORD_HAS_EAR && !TAPWORD_EIGHT_BITS
/* Mix all channels of ear->x into y. */
TAPWORD_PRIVATE void tapword_join(tapword_ear *ear, tapword_walk *at, size_t inputs, size_t outputs,
                                  float *y)
{
    tapword_mix(ear, at, ear->x, 1, inputs, outputs, y);
}

/* Filter each channel of ear->wide, over bands and earlier steps, into ear->filtered. */
static void tapword_depthwise(tapword_ear *ear, tapword_walk *at, const tapword_block *b,
                              const float *before)
{
    size_t bands = b->bands / b->band_step, step, tap, band, o;
    tapword_row(at, b->wide, ear->row);
    for (band = 0; band < bands; band++) {
        memcpy(ear->filtered + band * b->wide, ear->row, b->wide * sizeof *ear->row);
    }
    for (step = 0; step < b->steps; step++) {
        const float *x = step + 1 < b->steps ? before + step * b->bands * b->wide : ear->wide;
        for (tap = 0; tap < b->taps; tap++) {
            tapword_row(at, b->wide, ear->row);
            for (band = 0; band < bands; band++) {
                /* The band, counted from taps / 2 bands below the first. */
                size_t place = band * b->band_step + tap, edge = b->taps / 2u;
                const float *in;
                float *sums = ear->filtered + band * b->wide;
                if (place < edge || place >= b->bands + edge) {
                    continue;
                }
                in = x + (place - edge) * b->wide;
                for (o = 0; o < b->wide; o++) {
                    sums[o] += in[o] * ear->row[o];
                }
            }
        }
    }
}

/* Widen ear->x, filter each channel and narrow, into ear->y. Returns 0 if no step comes out, as a
   stride over time leaves some out. */
TAPWORD_PRIVATE int tapword_run_block(tapword_ear *ear, tapword_walk *at, const tapword_block *b,
                                      size_t step, float **state)
{
    size_t bands = b->bands / b->band_step, kept = b->steps - 1u;
    size_t size = (size_t)b->bands * b->wide;
    float *before = *state;
    *state += kept * size;
    tapword_mix(ear, at, ear->x, b->bands, b->in, b->wide, ear->wide);
    tapword_relu(ear->wide, size);
    if (step % b->time_step == 0) {
        tapword_depthwise(ear, at, b, before);
    }
    tapword_shift_state(before, kept, ear->wide, size * sizeof *before);
    if (step % b->time_step != 0) {
        return 0;
    }
    tapword_relu(ear->filtered, bands * b->wide);
    tapword_mix(ear, at, ear->filtered, bands, b->wide, b->out, ear->y);
    return 1;
}
#endif
