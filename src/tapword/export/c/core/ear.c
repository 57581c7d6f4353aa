/* The network: samples -> frames, hop by hop.

   Between two layers there is a step: bands of channels, the channels of a band side by side. A
   filter over time keeps earlier steps in the state. Weights are in the order of the layers, and
   these functions walk through them. */
#include "internal.h"

#if TAPWORD_HAS_EAR
/* Row of a layer's weights of 16 bits, in floats. */
TAPWORD_PRIVATE void tapword_row(tapword_walk *at, size_t outputs, float *row)
{
    size_t o;
    for (o = 0; o < outputs; o++) {
        row[o] = tapword_half((uint16_t)(at->halves[2 * o] | at->halves[2 * o + 1] << 8));
    }
    at->halves += 2 * outputs + 1; /* each row is a string and ends with a 0 */
}

TAPWORD_PRIVATE void tapword_relu(float *x, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        x[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}

/* Mix the channels of each band: y = weights x + biases. A row of biases comes first, then a row of
   weights for each input. */
TAPWORD_PRIVATE void tapword_mix(tapword_ear *ear, tapword_walk *at, const float *x, size_t bands,
                                 size_t inputs, size_t outputs, float *y)
{
    size_t band, i, o;
    tapword_row(at, outputs, ear->row);
    for (band = 0; band < bands; band++) {
        memcpy(y + band * outputs, ear->row, outputs * sizeof *y);
    }
    for (i = 0; i < inputs; i++) {
        tapword_row(at, outputs, ear->row);
        for (band = 0; band < bands; band++) {
            float value = x[band * inputs + i], *sums = y + band * outputs;
            for (o = 0; o < outputs; o++) {
                sums[o] += value * ear->row[o];
            }
        }
    }
}

/* Append a step of `size` bytes to `count` earlier ones and drop the first of them. */
TAPWORD_PRIVATE void tapword_shift_state(void *before, size_t count, const void *x, size_t size)
{
    unsigned char *steps = (unsigned char *)before;
    memmove(steps, steps + size, (count - 1) * size);
    memcpy(steps + (count - 1) * size, x, size);
}

/* Add a block's input to its output, where shapes allow; the sum is the next block's input. */
TAPWORD_PRIVATE void tapword_add_residual(tapword_ear *ear, const tapword_block *b, float **waiting)
{
    size_t in = (size_t)b->bands * b->in, out = (size_t)(b->bands / b->band_step) * b->out, i;
    const float *before = b->ahead ? *waiting : ear->x;
    for (i = 0; b->adds && i < in; i++) {
        ear->y[i] += before[i];
    }
    if (b->ahead) {
        /* The input waits for the output, which is later. */
        memcpy(*waiting, ear->x, in * sizeof *ear->x);
        *waiting += in;
    }
    memcpy(ear->x, ear->y, out * sizeof *ear->x);
}
#endif
