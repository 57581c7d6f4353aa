/* The ear: samples -> frames, hop by hop.

   What lies between two layers is a step: bands of channels, the channels of a band side by side.
   A layer that looks back keeps the steps before this one in ear->state. Weights lie in the order
   of the layers, and these functions walk through them. */

/* Where the next layer's weights begin: of 16 bits; or of 8, and what goes with these. */
typedef struct {
    const uint8_t *halves;
    const int8_t *bytes;
    const uint16_t *factors;
} tapword_walk;

/* Row of a layer's weights of 16 bits, in floats. */
static void tapword_row(tapword_walk *at, size_t outputs, float *row)
{
    size_t o;
    for (o = 0; o < outputs; o++) {
        row[o] = tapword_half((uint16_t)(at->halves[2 * o] | at->halves[2 * o + 1] << 8));
    }
    at->halves += 2 * outputs + 1; /* each row is a string, with a 0 behind it */
}

static void tapword_relu(float *x, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        x[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}

/* Mix the channels of each band: y = weights x + biases. A row of biases comes first, then one of
   each input's weights. */
static void tapword_mix(tapword_ear *ear, tapword_walk *at, const float *x, size_t bands,
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

/* Put a step of `size` bytes behind `count` earlier ones, of which the first is left behind. */
static void tapword_keep(void *before, size_t count, const void *x, size_t size)
{
    unsigned char *steps = before;
    memmove(steps, steps + size, (count - 1) * size);
    memcpy(steps + (count - 1) * size, x, size);
}

/* Add what came into a block to what came out, where shapes allow; then it is the next one's. */
static void tapword_pass(tapword_ear *ear, const tapword_block *b, float **waiting)
{
    size_t in = (size_t)b->bands * b->in, out = (size_t)(b->bands / b->band_step) * b->out, i;
    const float *before = b->ahead ? *waiting : ear->x;
    for (i = 0; b->adds && i < in; i++) {
        ear->y[i] += before[i];
    }
    if (b->ahead) {
        /* What is added waits for what lies ahead of it. */
        memcpy(*waiting, ear->x, in * sizeof *ear->x);
        *waiting += in;
    }
    memcpy(ear->x, ear->y, out * sizeof *ear->x);
}
