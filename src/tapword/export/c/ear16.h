/* Layers of the ear by weights of 16 bits, in floats. */

/* Mix all channels of ear->x into y. */
static void tapword_join(tapword_ear *ear, tapword_walk *at, size_t inputs, size_t outputs,
                         float *y)
{
    tapword_mix(ear, at, ear->x, 1, inputs, outputs, y);
}

/* Look around in each channel of ear->wide, and of the steps before it, into ear->looked. */
static void tapword_look(tapword_ear *ear, tapword_walk *at, const tapword_block *b,
                         const float *before)
{
    size_t bands = b->bands / b->band_step, step, tap, band, o;
    tapword_row(at, b->wide, ear->row);
    for (band = 0; band < bands; band++) {
        memcpy(ear->looked + band * b->wide, ear->row, b->wide * sizeof *ear->row);
    }
    for (step = 0; step < b->steps; step++) {
        const float *x = step + 1 < b->steps ? before + step * b->bands * b->wide : ear->wide;
        for (tap = 0; tap < b->taps; tap++) {
            tapword_row(at, b->wide, ear->row);
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
}

/* Widen ear->x, look around in each channel and narrow, into ear->y. 0 where no step comes out: of
   blocks with a time step, only some do. */
static int tapword_run(tapword_ear *ear, tapword_walk *at, const tapword_block *b, size_t step,
                       float **state)
{
    size_t bands = b->bands / b->band_step, kept = b->steps - 1u;
    size_t size = (size_t)b->bands * b->wide;
    float *before = *state;
    *state += kept * size;
    tapword_mix(ear, at, ear->x, b->bands, b->in, b->wide, ear->wide);
    tapword_relu(ear->wide, size);
    if (step % b->time_step == 0) {
        tapword_look(ear, at, b, before);
    }
    tapword_keep(before, kept, ear->wide, size * sizeof *before);
    if (step % b->time_step != 0) {
        return 0;
    }
    tapword_relu(ear->looked, bands * b->wide);
    tapword_mix(ear, at, ear->looked, bands, b->wide, b->out, ear->y);
    return 1;
}
