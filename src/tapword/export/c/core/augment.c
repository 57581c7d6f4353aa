/* Augmented copies of a clip: faster, slower, and in noise. */
#include "internal.h"

#if TAPWORD_COPIES
/* The upper half of a product. */
static uint64_t tapword_upper(uint64_t a, uint64_t b)
{
    uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    uint64_t low = a0 * b0, one = a1 * b0 + (low >> 32), other = a0 * b1 + (one & 0xffffffffu);
    return a1 * b1 + (one >> 32) + (other >> 32);
}

static uint32_t tapword_random(tapword_generator *g)
{
    const uint64_t high = 0x2360ed051fc65da4u, low = 0x4385df649fccf645u;
    uint64_t product = g->low * low, x;
    unsigned turn;
    if (g->waiting) {
        g->waiting = 0;
        return g->rest;
    }
    g->high = g->high * low + g->low * high + tapword_upper(g->low, low);
    g->low = product + TAPWORD_SEED_STEP_LOW;
    g->high += TAPWORD_SEED_STEP_HIGH + (g->low < product);
    turn = (unsigned)(g->high >> 58);
    x = g->high ^ g->low;
    x = x >> turn | x << (-turn & 63u);
    g->rest = (uint32_t)(x >> 32);
    g->waiting = 1;
    return (uint32_t)x;
}

/* A number from 0 to below 1. */
static float tapword_share(tapword_generator *g)
{
    return (float)(tapword_random(g) >> 8) * (1.0f / 16777216.0f);
}

static float tapword_normal(tapword_generator *g)
{
    for (;;) {
        uint32_t bits = tapword_random(g), size = bits >> 9;
        size_t i = bits & 255u;
        float x = (float)size * tapword_widest[i], y;
        if (size < tapword_inner[i]) {
            return bits & 256u ? -x : x;
        }
        if (i > 0) {
            y = (tapword_heights[i - 1] - tapword_heights[i]) * tapword_share(g);
            if (y + tapword_heights[i] < expf(-0.5f * x * x)) {
                return bits & 256u ? -x : x;
            }
            continue;
        }
        do {
            x = -log1pf(-tapword_share(g)) / (float)TAPWORD_TAIL_START;
            y = -log1pf(-tapword_share(g));
        } while (!(y + y > x * x));
        x += (float)TAPWORD_TAIL_START;
        return size & 256u ? -x : x;
    }
}

/* Level of the noise, relative to the loudest steps of a clip. */
static float tapword_noise_level(const float *audio, size_t n, tapword_clip clip)
{
    double loudest[TAPWORD_LOUDEST], sum = 0.0;
    size_t place, i;
    for (i = 0; i < TAPWORD_LOUDEST; i++) {
        loudest[i] = 0.0;
    }
    for (place = 0; place < clip.length; place += TAPWORD_HOP) {
        double energy = 0.0;
        for (i = 0; i < TAPWORD_HOP; i++) {
            float x = tapword_sample(audio, n, clip, (ptrdiff_t)(place + i));
            energy += (double)x * (double)x;
        }
        for (i = 0; i < TAPWORD_LOUDEST; i++) {
            if (energy > loudest[i]) {
                double other = loudest[i];
                loudest[i] = energy;
                energy = other;
            }
        }
    }
    for (i = 0; i < TAPWORD_LOUDEST; i++) {
        sum += loudest[i];
    }
    return (float)(sqrt(sum / (TAPWORD_LOUDEST * TAPWORD_HOP)) * TAPWORD_NOISE_SHARE);
}

/* A sample of a clip that is resampled about its middle. The kernel has a number for each fraction
   of a sample up to its half width. The first samples have numbers of their own, after the kernel.
 */
static float tapword_resampled(const uint16_t *speed, const float *audio, size_t n,
                               tapword_clip clip, size_t place)
{
    size_t up = speed[0], down = speed[1], half = speed[2], edge = speed[3], last, k;
    size_t length = (2 * clip.length * up + down) / (2 * down), middle = clip.length / 2;
    const tapword_kept_number *kernel = tapword_kernels + speed[4], *first = kernel + half * up;
    float sum = 0.0f;
    place += length / 2;
    if (place < middle || place - middle >= length) {
        return 0.0f;
    }
    place -= middle;
    for (k = 0; place < edge && k < half; k++) {
        sum += tapword_kept_value(first[place * half + k]) *
               tapword_sample(audio, n, clip, (ptrdiff_t)k);
    }
    if (place < edge) {
        return sum;
    }
    place *= down;
    last = (place + half * up - 1) / up;
    last = last < clip.length ? last : clip.length - 1;
    for (k = place / up < half ? 0 : place / up - half + 1; k <= last; k++) {
        size_t apart = place > k * up ? place - k * up : k * up - place;
        sum += tapword_kept_value(kernel[apart]) * tapword_sample(audio, n, clip, (ptrdiff_t)k);
    }
    return sum;
}

TAPWORD_PRIVATE void tapword_copy_start(tapword_copy *copy, size_t number, const float *audio,
                                        size_t n, tapword_clip clip)
{
    memset(copy, 0, sizeof *copy);
    copy->number = number;
    copy->generator.high = TAPWORD_SEED_HIGH;
    copy->generator.low = TAPWORD_SEED_LOW;
    if (number == TAPWORD_COPIES) {
        copy->level = tapword_noise_level(audio, n, clip);
    }
}

/* The next sample of a copy. */
TAPWORD_PRIVATE float tapword_copy_sample(tapword_copy *copy, const float *audio, size_t n,
                                          tapword_clip clip, size_t place)
{
    if (copy->number > 0 && copy->number < TAPWORD_COPIES && place < clip.length) {
        return tapword_resampled(tapword_speeds[copy->number - 1], audio, n, clip, place);
    }
    if (copy->number == TAPWORD_COPIES && place < clip.length) {
        float noise = copy->level * tapword_normal(&copy->generator);
        return tapword_sample(audio, n, clip, (ptrdiff_t)place) + noise;
    }
    return tapword_sample(audio, n, clip, (ptrdiff_t)place);
}
#endif
