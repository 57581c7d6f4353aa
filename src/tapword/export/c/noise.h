/* Whether a vector is of noise alone: noise may lie near a word that was taught in noise. */
static int tapword_is_noise(const float vector[TAPWORD_DIM])
{
    double product = 0.0, squares = 0.0;
    size_t d;
    for (d = 0; d < TAPWORD_DIM; d++) {
        product += (double)vector[d] * (double)tapword_noise[d];
        squares += (double)vector[d] * (double)vector[d];
    }
    return product >= TAPWORD_NOISE_COSINE * sqrt(squares);
}
