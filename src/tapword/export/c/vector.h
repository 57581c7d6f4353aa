/* Frames -> vector. */

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
