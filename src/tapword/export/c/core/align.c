/* The clip around the loudest sound of a recording. */
#include "internal.h"

#if TAPWORD_ALIGN
/* Sum from a number of steps before a point to a number of steps after it. */
static double tapword_between(const double *sums, size_t point, size_t before, size_t after,
                              size_t steps)
{
    size_t first = point > before ? point - before : 0;
    size_t last = point + after < steps ? point + after : steps;
    return sums[last] - sums[first];
}

static double tapword_around(const double *sums, size_t point, size_t steps)
{
    return tapword_between(sums, point, TAPWORD_HALF_WINDOW, TAPWORD_HALF_WINDOW, steps);
}

/* Steps from a point to the centroid of the energy around it; positive to the right. */
static double tapword_offset(const tapword *t, size_t point, size_t steps)
{
    double around = tapword_around(t->work.sums[0], point, steps);
    if (!(around > 0.0)) {
        return 0.0;
    }
    return tapword_around(t->work.sums[1], point, steps) / around - (double)point;
}

/* The point between steps at the middle of a short sound. */
static size_t tapword_centre(const tapword *t, size_t steps)
{
    size_t point, middle = 0;
    double most = -1.0;
    for (point = 0; point <= steps; point++) {
        double around = tapword_around(t->work.sums[0], point, steps);
        if (around > most) {
            most = around;
            middle = point;
        }
    }
    if (tapword_offset(t, middle, steps) > 0.0) {
        while (tapword_offset(t, middle, steps) > 0.0) {
            middle++;
        }
    } else {
        while (middle > 0 && tapword_offset(t, middle - 1, steps) <= 0.0) {
            middle--;
        }
    }
    return middle;
}

/* Mean power around a step. */
static double tapword_power(const tapword *t, size_t step, size_t steps)
{
    size_t half = TAPWORD_SMOOTH / 2;
    double energy = tapword_between(t->work.sums[0], step, half, half + 1, steps);
    return energy / (TAPWORD_SMOOTH * TAPWORD_HOP) + TAPWORD_SILENCE;
}

/* Power above the quietest tenth of the steps that are not digital silence. */
static double tapword_quiet(tapword *t, size_t steps)
{
    double *power = t->work.sums[2];
    size_t i, j, nothing = 0, tenth;
    for (i = 0; i < steps; i++) {
        power[i] = tapword_power(t, i, steps);
        nothing += power[i] <= TAPWORD_NOTHING;
    }
    tenth = nothing + (steps - nothing) / 10;
    tenth = tenth < steps ? tenth : steps - 1;
    for (i = 0; i <= tenth; i++) {
        for (j = i + 1; j < steps; j++) {
            if (power[j] < power[i]) {
                double other = power[i];
                power[i] = power[j];
                power[j] = other;
            }
        }
    }
    return power[tenth];
}

/* Find the first and last step of the loudest sound; `loud` becomes the highest power. Returns
   the power from which a step is not silent. */
static double tapword_extent(tapword *t, size_t steps, size_t *first, size_t *last, double *loud)
{
    size_t step, loudest = 0;
    double most = 0.0, least, quiet = TAPWORD_ABOVE * tapword_quiet(t, steps);
    for (step = 0; step < steps; step++) {
        if (tapword_power(t, step, steps) > most) {
            most = tapword_power(t, step, steps);
            loudest = step;
        }
    }
    least = quiet < TAPWORD_LEAST * most ? quiet : TAPWORD_LEAST * most;
    least = least > TAPWORD_DEEPEST * most ? least : TAPWORD_DEEPEST * most;
    *first = *last = loudest;
    for (step = loudest; step-- > 0 && *first - step <= TAPWORD_PAUSE;) {
        if (tapword_power(t, step, steps) >= least) {
            *first = step;
        }
    }
    for (step = loudest + 1; step < steps && step - *last <= TAPWORD_PAUSE; step++) {
        if (tapword_power(t, step, steps) >= least) {
            *last = step;
        }
    }
    *loud = most;
    return least;
}

#if TAPWORD_HAS_LESSON
/* Of a recording after tapword_cut: seconds of loud sound outside of the loudest sound, and of
   the longest pause inside. */
TAPWORD_PRIVATE void tapword_other_sound(tapword *t, size_t n, double *other_s, double *pause_s)
{
    const double step_s = (double)TAPWORD_HOP / TAPWORD_SAMPLE_RATE;
    size_t steps = (n + TAPWORD_HOP - 1) / TAPWORD_HOP, first, last, step, before, other = 0;
    size_t pause = 0;
    double most, least = tapword_extent(t, steps, &first, &last, &most);
    for (step = 0, before = first; step < steps; step++) {
        double power = tapword_power(t, step, steps);
        if (step >= first && step <= last) {
            if (power >= least) {
                pause = step - before > pause + 1 ? step - before - 1 : pause;
                before = step;
            }
        } else {
            other += power >= least && power >= TAPWORD_LEAST * most;
        }
    }
    *other_s = (double)other * step_s;
    *pause_s = (double)pause * step_s;
}
#endif
#endif

/* Whether a recording has samples, and none of them is NaN or too large. */
static int tapword_is_audio(const float *audio, size_t n)
{
    size_t i;
    for (i = 0; i < n && fabsf(audio[i]) <= TAPWORD_PEAK; i++) {
    }
    return n > 0 && i == n;
}

int tapword_cut(tapword *t, const float *audio, size_t n, tapword_clip *clip)
{
#if TAPWORD_ALIGN
    size_t steps = (n + TAPWORD_HOP - 1) / TAPWORD_HOP, step, first, last, middle, i;
    double most;
    if (steps > TAPWORD_MAX_STEPS || !tapword_is_audio(audio, n)) {
        return TAPWORD_BAD_AUDIO;
    }
    t->work.sums[0][0] = t->work.sums[1][0] = 0.0;
    for (step = 0; step < steps; step++) {
        double energy = 0.0;
        for (i = step * TAPWORD_HOP; i < n && i < (step + 1) * TAPWORD_HOP; i++) {
            energy += (double)audio[i] * (double)audio[i];
        }
        t->work.sums[0][step + 1] = t->work.sums[0][step] + energy;
        t->work.sums[1][step + 1] = t->work.sums[1][step] + energy * ((double)step + 0.5);
    }
    tapword_extent(t, steps, &first, &last, &most);
    first *= TAPWORD_HOP;
    last = (last + 1) * TAPWORD_HOP < n ? (last + 1) * TAPWORD_HOP : n;
    if (last - first > TAPWORD_MAX_SOUND) {
        return TAPWORD_TOO_LONG;
    }
    if (last - first < TAPWORD_CLIP || n <= TAPWORD_CLIP) {
        middle = tapword_centre(t, steps) * TAPWORD_HOP;
        clip->length = TAPWORD_CLIP;
    } else {
        middle = (first + last) / 2;
        clip->length = last - first + 2 * TAPWORD_MARGIN;
    }
    clip->start = (ptrdiff_t)middle - (ptrdiff_t)(clip->length / 2);
#else
    (void)t;
    if (!tapword_is_audio(audio, n)) {
        return TAPWORD_BAD_AUDIO;
    }
    if (n > TAPWORD_LONGEST) {
        return TAPWORD_TOO_LONG;
    }
    clip->start = 0;
    clip->length = n < TAPWORD_CLIP ? TAPWORD_CLIP : n;
#endif
    return 0;
}

/* A sample of a clip; silence outside of the clip or the recording. */
TAPWORD_PRIVATE float tapword_sample(const float *audio, size_t n, tapword_clip clip,
                                     ptrdiff_t place)
{
    ptrdiff_t at = clip.start + place;
    int inside = place >= 0 && place < (ptrdiff_t)clip.length && at >= 0 && at < (ptrdiff_t)n;
    return inside ? audio[at] : 0.0f;
}
