/* A whole clip -> log-mel energies. */

size_t tapword_mel_frames(size_t length)
{
    return 1 + (length + 2 * (size_t)TAPWORD_PAD - TAPWORD_WINDOW) / TAPWORD_STEP;
}

size_t tapword_log_mel(tapword *t, const float *audio, size_t n, tapword_clip clip, float *mel)
{
    size_t frames = tapword_mel_frames(clip.length), frame, i;
    float(*wave)[TAPWORD_FFT] = t->work.hearing.wave;
    for (frame = 0; frame < frames; frame++) {
        ptrdiff_t first = (ptrdiff_t)(frame * TAPWORD_STEP) - TAPWORD_PAD;
        for (i = 0; i < TAPWORD_WINDOW; i++) {
            wave[0][i] = tapword_sample(audio, n, clip, first + (ptrdiff_t)i);
        }
        tapword_mel(wave[0], wave[1], mel + frame * TAPWORD_BANDS);
    }
    return frames;
}
