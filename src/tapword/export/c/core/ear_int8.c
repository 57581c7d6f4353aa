/* Layers of the network in 8 bits: weights and activations; sums are whole numbers.

   A byte b stands for (b - zero) * scale. Each output has a factor and an addend in 16 bits,
   made of scales, zeros and biases: its sum is multiplied by the first, and the second is added.
   A layer with float input has two more before these, which turn its input into bytes in the
   same way. After a ReLU bytes begin at -128, so that clipping at the lowest byte is the ReLU. */
#include "internal.h"

#if TAPWORD_HAS_EAR && TAPWORD_EIGHT_BITS
#if defined __BYTE_ORDER__ && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "tables of bytes are little-endian: for this machine, export with --exact"
#endif

#ifdef TAPWORD_DOT
/* The program's own: int32_t TAPWORD_DOT(const int8_t *x, const int8_t *weights, size_t n), the
   sum of n products. n and the address of the weights are multiples of 8; x may be anywhere. */
#elif defined TAPWORD_SIMD && defined __ARM_FEATURE_MVE
#include <arm_mve.h>
/* Sixteen products at once, by Helium. */
#define TAPWORD_DOT tapword_dot
static int32_t tapword_dot(const int8_t *x, const int8_t *weights, size_t n)
{
    int32_t sum = 0;
    size_t i;
    for (i = 0; i + 16 <= n; i += 16) {
        sum = vmladavaq_s8(sum, vldrbq_s8(x + i), vldrbq_s8(weights + i));
    }
    if (i < n) {
        mve_pred16_t first = vctp8q((uint32_t)(n - i));
        sum =
            vmladavaq_p_s8(sum, vldrbq_z_s8(x + i, first), vldrbq_z_s8(weights + i, first), first);
    }
    return sum;
}
#elif defined TAPWORD_SIMD && defined __ARM_FEATURE_SIMD32
#include <arm_acle.h>
/* Four products by two instructions, on small ARM cores. */
#define TAPWORD_DOT tapword_dot
static int16x2_t tapword_odd(int8x4_t bytes)
{
    int16x2_t numbers;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(numbers) : "r"(bytes));
    return numbers;
}

static int32_t tapword_four(const int8_t *x, const int8_t *weights, int32_t sum)
{
    int8x4_t a, b;
    memcpy(&a, x, sizeof a);
    memcpy(&b, weights, sizeof b);
    sum = __smlad(__sxtb16(a), __sxtb16(b), sum);
    return __smlad(tapword_odd(a), tapword_odd(b), sum);
}

static int32_t tapword_dot(const int8_t *x, const int8_t *weights, size_t n)
{
    int32_t sum = 0;
    size_t i;
    for (i = 0; i < n; i += 8) {
        sum = tapword_four(x + i, weights + i, sum);
        sum = tapword_four(x + i + 4, weights + i + 4, sum);
    }
    return sum;
}
#elif defined TAPWORD_SIMD && defined __ARM_NEON
#include <arm_neon.h>
/* Eight products at once. */
#define TAPWORD_DOT tapword_dot
static int32_t tapword_dot(const int8_t *x, const int8_t *weights, size_t n)
{
    int32x4_t sums = vdupq_n_s32(0);
    int32_t four[4];
    size_t i;
    for (i = 0; i < n; i += 8) {
        sums = vpadalq_s16(sums, vmull_s8(vld1_s8(x + i), vld1_s8(weights + i)));
    }
    vst1q_s32(four, sums);
    return four[0] + four[1] + four[2] + four[3];
}
#elif defined TAPWORD_SIMD && defined __SSE2__
#include <emmintrin.h>
/* Eight products at once. */
#define TAPWORD_DOT tapword_dot
static __m128i tapword_eight(const int8_t *bytes)
{
    __m128i read = _mm_loadl_epi64((const __m128i *)(const void *)bytes);
    return _mm_srai_epi16(_mm_unpacklo_epi8(read, read), 8);
}

static int32_t tapword_dot(const int8_t *x, const int8_t *weights, size_t n)
{
    __m128i sums = _mm_setzero_si128();
    int32_t four[4];
    size_t i;
    for (i = 0; i < n; i += 8) {
        __m128i products = _mm_madd_epi16(tapword_eight(x + i), tapword_eight(weights + i));
        sums = _mm_add_epi32(sums, products);
    }
    _mm_storeu_si128((__m128i *)(void *)four, sums);
    return four[0] + four[1] + four[2] + four[3];
}
#elif defined TAPWORD_SIMD
/* Others: this loop takes most of the time, and compilers do not unroll it. */
#define TAPWORD_DOT tapword_dot
static int32_t tapword_dot(const int8_t *x, const int8_t *w, size_t n)
{
    const int8_t *end = x + n;
    int32_t sum = 0;
    for (; x < end; x += 8, w += 8) {
        sum += x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3];
        sum += x[4] * w[4] + x[5] * w[5] + x[6] * w[6] + x[7] * w[7];
    }
    return sum;
}
#else
#define TAPWORD_DOT tapword_dot
static int32_t tapword_dot(const int8_t *x, const int8_t *weights, size_t n)
{
    int32_t sum = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        sum += x[i] * weights[i];
    }
    return sum;
}
#endif

/* The nearest byte; -128 for NaN. */
static int8_t tapword_byte(float x)
{
    x = x > -128.0f ? (x < 127.0f ? x : 127.0f) : -128.0f;
    return (int8_t)((int)(x + 128.5f) - 128);
}

/* Quantise n numbers of ear->x into ear->bytes. */
static void tapword_in_bytes(tapword_ear *ear, tapword_walk *at, size_t n)
{
    float factor = tapword_half(at->factors[0]), addend = tapword_half(at->factors[1]);
    size_t i;
    for (i = 0; i < n; i++) {
        ear->bytes[i] = tapword_byte(ear->x[i] * factor + addend);
    }
    at->factors += 2;
}

/* Mix the channels of each band, into bytes or, if that is NULL, into floats. */
static void tapword_mix_bytes(tapword_walk *at, const int8_t *x, size_t bands, size_t inputs,
                              size_t outputs, int8_t *bytes, float *y)
{
    size_t band, o;
    for (o = 0; o < outputs; o++) {
        float factor = tapword_half(at->factors[0]), addend = tapword_half(at->factors[1]);
        for (band = 0; band < bands; band++) {
            float sum = (float)TAPWORD_DOT(x + band * inputs, at->bytes, inputs);
            float value = sum * factor + addend;
            if (bytes != NULL) {
                bytes[band * outputs + o] = tapword_byte(value);
            } else {
                y[band * outputs + o] = value;
            }
        }
        at->bytes += inputs;
        at->factors += 2;
    }
}

/* Mix all channels of ear->x into y. */
TAPWORD_PRIVATE void tapword_join(tapword_ear *ear, tapword_walk *at, size_t inputs, size_t outputs,
                                  float *y)
{
    tapword_in_bytes(ear, at, inputs);
    tapword_mix_bytes(at, ear->bytes, 1, inputs, outputs, NULL, y);
}

/* Filter each channel of ear->wide, over bands and earlier steps, into ear->filtered. */
static void tapword_depthwise(tapword_ear *ear, tapword_walk *at, const tapword_block *b,
                              const int8_t *before)
{
    size_t bands = b->bands / b->band_step, step, tap, band, o;
    for (band = 0; band < bands; band++) {
        const int8_t *weights = at->bytes;
        memset(ear->sums, 0, b->wide * sizeof *ear->sums);
        for (step = 0; step < b->steps; step++) {
            const int8_t *x = step + 1 < b->steps ? before + step * b->bands * b->wide : ear->wide;
            for (tap = 0; tap < b->taps; tap++, weights += b->wide) {
                /* The band, counted from taps / 2 bands below the first. */
                size_t place = band * b->band_step + tap, edge = b->taps / 2u;
                const int8_t *in;
                if (place < edge || place >= b->bands + edge) {
                    continue;
                }
                in = x + (place - edge) * b->wide;
                for (o = 0; o < b->wide; o++) {
                    ear->sums[o] += (in[o] + 128) * weights[o];
                }
            }
        }
        for (o = 0; o < b->wide; o++) {
            float factor = tapword_half(at->factors[2 * o]);
            float addend = tapword_half(at->factors[2 * o + 1]);
            ear->filtered[band * b->wide + o] = tapword_byte((float)ear->sums[o] * factor + addend);
        }
    }
    at->bytes += (size_t)b->steps * b->taps * b->wide;
    at->factors += 2 * (size_t)b->wide;
}

/* Widen ear->x, filter each channel and narrow, into ear->y. Returns 0 if no step comes out, as a
   stride over time leaves some out. */
TAPWORD_PRIVATE int tapword_run_block(tapword_ear *ear, tapword_walk *at, const tapword_block *b,
                                      size_t step, int8_t **state)
{
    size_t bands = b->bands / b->band_step, kept = b->steps - 1u;
    size_t size = (size_t)b->bands * b->wide;
    int8_t *before = *state;
    *state += kept * size;
    tapword_in_bytes(ear, at, (size_t)b->bands * b->in);
    tapword_mix_bytes(at, ear->bytes, b->bands, b->in, b->wide, ear->wide, NULL);
    if (step % b->time_step == 0) {
        tapword_depthwise(ear, at, b, before);
    }
    tapword_shift_state(before, kept, ear->wide, size);
    if (step % b->time_step != 0) {
        return 0;
    }
    tapword_mix_bytes(at, ear->filtered, bands, b->wide, b->out, NULL, ear->y);
    return 1;
}
#endif
