/* Samples -> log-mel energies. */
#include "internal.h"

/* Fourier transform in place, of numbers in bit-reversed order. */
static void tapword_transform(float *re, float *im)
{
    size_t size, start, k;
    for (size = 2; size <= TAPWORD_FFT; size *= 2) {
        size_t half = size / 2, stride = TAPWORD_FFT / size;
        for (start = 0; start < TAPWORD_FFT; start += size) {
            for (k = 0; k < half; k++) {
                size_t a = start + k, b = a + half;
                float c = tapword_turn[0][k * stride], s = tapword_turn[1][k * stride];
                float x = re[b] * c + im[b] * s, y = im[b] * c - re[b] * s;
                re[b] = re[a] - x;
                im[b] = im[a] - y;
                re[a] += x;
                im[a] += y;
            }
        }
    }
}

/* Log-mel energies of the TAPWORD_WINDOW samples in re; there is room for TAPWORD_FFT in re and im.
 */
TAPWORD_PRIVATE void tapword_mel(float *re, float *im, float mel[TAPWORD_BANDS])
{
    const float *weight = tapword_band_weights;
    size_t i, bit, band;
    for (i = 0; i < TAPWORD_FFT; i++) {
        re[i] = i < TAPWORD_WINDOW ? re[i] * tapword_window[i] : 0.0f;
        im[i] = 0.0f;
    }
    for (i = 0; i < TAPWORD_FFT; i++) {
        size_t turned = 0;
        for (bit = 0; bit < TAPWORD_FFT_BITS; bit++) {
            turned |= (i >> bit & 1) << (TAPWORD_FFT_BITS - 1 - bit);
        }
        if (turned > i) {
            float other = re[i];
            re[i] = re[turned];
            re[turned] = other;
        }
    }
    tapword_transform(re, im);
    for (i = 0; i <= TAPWORD_FFT / 2; i++) {
        re[i] = sqrtf(re[i] * re[i] + im[i] * im[i]);
    }
    for (band = 0; band < TAPWORD_BANDS; band++) {
        float sum = 0.0f;
        for (i = 0; i < tapword_band_lengths[band]; i++) {
            sum += *weight++ * re[tapword_band_starts[band] + i];
        }
        mel[band] = logf(sum + TAPWORD_FLOOR);
    }
}
#if !TAPWORD_HAS_EAR
size_t tapword_mel_frames(size_t length)
{
    return 1 + (length + 2 * (size_t)TAPWORD_PAD - TAPWORD_WINDOW) / TAPWORD_STEP;
}

size_t tapword_log_mel(tapword *t, const float *audio, size_t n, tapword_clip clip, float *mel)
{
    size_t frames = tapword_mel_frames(clip.length), frame, i;
    float (*wave)[TAPWORD_FFT] = t->work.encoding.wave;
    for (frame = 0; frame < frames; frame++) {
        ptrdiff_t first = (ptrdiff_t)(frame * TAPWORD_STEP) - TAPWORD_PAD;
        for (i = 0; i < TAPWORD_WINDOW; i++) {
            wave[0][i] = tapword_sample(audio, n, clip, first + (ptrdiff_t)i);
        }
        tapword_mel(wave[0], wave[1], mel + frame * TAPWORD_BANDS);
    }
    return frames;
}
#endif
