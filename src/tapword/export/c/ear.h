/* The ear: samples -> frames, hop by hop.

   What lies between two layers is a step: bands of channels, the channels of a band side by side.
   A layer that looks back keeps the steps before this one in ear->state. Weights are numbers of 16
   bits, a row for each input of a layer and one of its biases, in the order of the layers; these
   functions walk through them, and give where the next layer's begin. */

/* Row of a layer's weights, in floats. */
static const uint8_t *tapword_row(const uint8_t *weights, size_t outputs, float *row)
{
    size_t o;
    for (o = 0; o < outputs; o++) {
        row[o] = tapword_half((uint16_t)(weights[2 * o] | weights[2 * o + 1] << 8));
    }
    return weights + 2 * outputs + 1; /* each row is a string, with a 0 behind it */
}

static void tapword_relu(float *x, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        x[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}

/* Mix the channels of each band: y = weights x + biases. */
static const uint8_t *tapword_mix(tapword_ear *ear, const uint8_t *weights, const float *x,
                                  size_t bands, size_t inputs, size_t outputs, float *y)
{
    size_t band, i, o;
    weights = tapword_row(weights, outputs, ear->row);
    for (band = 0; band < bands; band++) {
        memcpy(y + band * outputs, ear->row, outputs * sizeof *y);
    }
    for (i = 0; i < inputs; i++) {
        weights = tapword_row(weights, outputs, ear->row);
        for (band = 0; band < bands; band++) {
            float value = x[band * inputs + i], *sums = y + band * outputs;
            for (o = 0; o < outputs; o++) {
                sums[o] += value * ear->row[o];
            }
        }
    }
    return weights;
}

/* Look around in each channel of ear->wide, and of the steps before it, into ear->looked. */
static const uint8_t *tapword_look(tapword_ear *ear, const uint8_t *weights,
                                   const tapword_block *b, const float *before)
{
    size_t bands = b->bands / b->band_step, step, tap, band, o;
    weights = tapword_row(weights, b->wide, ear->row);
    for (band = 0; band < bands; band++) {
        memcpy(ear->looked + band * b->wide, ear->row, b->wide * sizeof *ear->row);
    }
    for (step = 0; step < b->steps; step++) {
        const float *x = step + 1 < b->steps ? before + step * b->bands * b->wide : ear->wide;
        for (tap = 0; tap < b->taps; tap++) {
            weights = tapword_row(weights, b->wide, ear->row);
            for (band = 0; band < bands; band++) {
                /* The band, counted from taps / 2 bands below the first. */
                size_t place = band * b->band_step + tap, edge = b->taps / 2u;
                const float *seen;
                float *sums = ear->looked + band * b->wide;
                if (place < edge || place >= b->bands + edge) {
                    continue;
                }
                seen = x + (place - edge) * b->wide;
                for (o = 0; o < b->wide; o++) {
                    sums[o] += seen[o] * ear->row[o];
                }
            }
        }
    }
    return weights;
}

/* Put a step behind `count` earlier ones, of which the first is left behind. */
static void tapword_keep(float *before, size_t count, const float *x, size_t size)
{
    memmove(before, before + size, (count - 1) * size * sizeof *x);
    memcpy(before + (count - 1) * size, x, size * sizeof *x);
}

/* Widen ear->x, look around in each channel, narrow, and add the input where shapes allow. NULL
   where no step comes out: of blocks with a time step, only some do. */
static const uint8_t *tapword_run(tapword_ear *ear, const uint8_t *weights, const tapword_block *b,
                                  size_t step, float **state)
{
    size_t bands = b->bands / b->band_step, kept = b->steps - 1u, i;
    size_t size = (size_t)b->bands * b->wide, in = (size_t)b->bands * b->in;
    float *before = *state, *waiting = ear->x;
    weights = tapword_mix(ear, weights, ear->x, b->bands, b->in, b->wide, ear->wide);
    tapword_relu(ear->wide, size);
    *state += kept * size;
    if (step % b->time_step == 0) {
        weights = tapword_look(ear, weights, b, before);
    }
    tapword_keep(before, kept, ear->wide, size);
    if (step % b->time_step != 0) {
        return NULL;
    }
    tapword_relu(ear->looked, bands * b->wide);
    weights = tapword_mix(ear, weights, ear->looked, bands, b->wide, b->out, ear->y);
    if (b->ahead) {
        /* What is added waits for what lies ahead of it. */
        waiting = *state;
        *state += in;
    }
    for (i = 0; b->adds && i < in; i++) {
        ear->y[i] += waiting[i];
    }
    if (b->ahead) {
        tapword_keep(waiting, 1, ear->x, in);
    }
    memcpy(ear->x, ear->y, bands * b->out * sizeof *ear->x);
    return weights;
}

/* Hear one of the two steps of a hop, and what follows from it. The first layer goes on by two
   bands and two log-mel frames. */
static void tapword_step(tapword_ear *ear, size_t step, float frame[TAPWORD_FRAME])
{
    const uint8_t *weights = (const uint8_t *)&tapword_ear_weights;
    float *state = ear->state, *seen = ear->looked;
    size_t band, time, tap, i;
    for (band = 0; band < TAPWORD_EAR_BANDS; band++) {
        for (time = 0; time < TAPWORD_EAR_TAPS; time++) {
            for (tap = 0; tap < TAPWORD_EAR_TAPS; tap++) {
                size_t place = 2 * band + tap, edge = TAPWORD_EAR_TAPS / 2;
                int inside = place >= edge && place < TAPWORD_BANDS + edge;
                *seen++ = inside ? ear->mel[2 * step + time][place - edge] : 0.0f;
            }
        }
    }
    weights = tapword_mix(ear, weights, ear->looked, TAPWORD_EAR_BANDS,
                          TAPWORD_EAR_TAPS * TAPWORD_EAR_TAPS, tapword_blocks[0].in, ear->x);
    tapword_relu(ear->x, (size_t)TAPWORD_EAR_BANDS * tapword_blocks[0].in);
    for (i = 0; i < TAPWORD_EAR_BLOCKS; i++) {
        if (i == TAPWORD_EAR_FLAT) {
            /* All bands of all channels become channels. */
            weights = tapword_mix(ear, weights, ear->x, 1, TAPWORD_EAR_FLAT_INPUTS,
                                  tapword_blocks[i].in, ear->y);
            tapword_relu(ear->y, tapword_blocks[i].in);
            memcpy(ear->x, ear->y, tapword_blocks[i].in * sizeof *ear->x);
        }
        weights = tapword_run(ear, weights, &tapword_blocks[i], step, &state);
        if (weights == NULL) {
            return;
        }
    }
    tapword_mix(ear, weights, ear->x, 1, tapword_blocks[TAPWORD_EAR_BLOCKS - 1].out, TAPWORD_FRAME,
                frame);
}

/* Log-mel energies of the samples from a place on, as the network hears them. */
static void tapword_ear_mel(tapword_ear *ear, const float *sound, float mel[TAPWORD_BANDS])
{
    size_t band;
    memcpy(ear->wave[0], sound, TAPWORD_WINDOW * sizeof *sound);
    tapword_mel(ear->wave[0], ear->wave[1], mel);
    for (band = 0; band < TAPWORD_BANDS; band++) {
        mel[band] = (mel[band] + TAPWORD_EAR_SHIFT) / TAPWORD_EAR_SCALE;
    }
}

void tapword_ear_start(tapword_ear *ear) { memset(ear, 0, sizeof *ear); }

void tapword_ear_hear(tapword_ear *ear, const float samples[TAPWORD_EAR_HOP],
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
    for (i = 0; i < 2; i++) {
        tapword_step(ear, i, frame);
    }
}
