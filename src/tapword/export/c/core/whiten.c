/* Whitening: words vary equally in every direction. */
#include "internal.h"

#if TAPWORD_WHITENING
/* Centre, whiten block by block, take signed square roots where the whitening does, and scale every
   group to one length. */
TAPWORD_PRIVATE void tapword_whiten(float *vector)
{
    const uint16_t *map = tapword_maps;
    size_t group, first = 0, row, i, j;
    for (group = 0; group < TAPWORD_GROUPS; group++) {
        size_t end = first + tapword_groups[group];
        double squares = 0.0;
        float scale;
        for (row = first; row < end; row += TAPWORD_WHITENING_BLOCK) {
            float centred[TAPWORD_WHITENING_BLOCK];
            size_t n = end - row < TAPWORD_WHITENING_BLOCK ? end - row : TAPWORD_WHITENING_BLOCK;
            for (i = 0; i < n; i++) {
                centred[i] = vector[row + i] - tapword_whitening_mean[row + i];
                vector[row + i] = 0.0f;
            }
            for (i = 0; i < n; i++) {
                for (j = i; j < n; j++) {
                    vector[row + j] += centred[i] * tapword_half(*map++);
                }
            }
        }
        for (i = first; i < end; i++) {
#if TAPWORD_SIGNED_SQRT
            vector[i] = copysignf(sqrtf(fabsf(vector[i])), vector[i]);
#endif
            squares += (double)vector[i] * (double)vector[i];
        }
        scale = TAPWORD_WHITENING_WEIGHT / (float)(squares > 1e-12 ? sqrt(squares) : 1e-6);
        for (i = first; i < end; i++) {
            vector[i] *= scale;
        }
        first = end;
    }
}
#else
TAPWORD_PRIVATE void tapword_whiten(float *vector) { (void)vector; }
#endif
