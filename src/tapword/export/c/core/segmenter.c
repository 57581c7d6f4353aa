/* Stream -> windows: the seconds in which a word may have been said.

   A step is TAPWORD_HOP samples; steps are counted from the start of the stream, or from the
   last gap. A point is before the step of its number. */
#include "internal.h"

#if TAPWORD_HAS_LISTENER
/* Energy of a step; before the first there is silence. */
static double tapword_step_energy(const tapword_listener *l, int64_t step)
{
    size_t ago = (size_t)(l->steps - step);
    return l->energy[(l->step_place + TAPWORD_KEPT_STEPS - ago) % TAPWORD_KEPT_STEPS];
}

/* Energy from one step to another; `count` grows by the number of these steps. */
static double tapword_energy_sum(const tapword_listener *l, int64_t first, int64_t end,
                                 size_t *count)
{
    double sum = 0.0;
    int64_t step;
    for (step = first > 0 ? first : 0; step < end; step++) {
        sum += tapword_step_energy(l, step);
        ++*count;
    }
    return sum;
}

static double tapword_decibels(double energy, size_t steps)
{
    return 10.0 * log10(energy / ((double)steps * TAPWORD_HOP) + TAPWORD_SILENCE);
}

static double tapword_level_db(const tapword_listener *l, int64_t first, int64_t end)
{
    size_t count = 0;
    double energy = tapword_energy_sum(l, first, end, &count);
    return tapword_decibels(energy, count);
}

/* Whether steps stand out from the noise. */
TAPWORD_PRIVATE int tapword_is_loud(const tapword_listener *l, int64_t first, int64_t end)
{
    double least = l->floor_db + TAPWORD_SEARCH_GATE_DB;
    least = least > TAPWORD_SEARCH_SILENCE_DB ? least : TAPWORD_SEARCH_SILENCE_DB;
    return tapword_level_db(l, first, end) >= least;
}

/* The noise floor falls at once and rises slowly. */
TAPWORD_PRIVATE void tapword_follow_floor(tapword_listener *l, int64_t point)
{
    /* Not below what matters: from digital silence it would take half a minute up to a room's
       noise. */
    double quietest = TAPWORD_SEARCH_SILENCE_DB - TAPWORD_SEARCH_GATE_DB;
    double level = tapword_level_db(l, point - TAPWORD_SEARCH_FLOOR, point + TAPWORD_SEARCH_FLOOR);
    level = level > quietest ? level : quietest;
    l->floor_db += TAPWORD_SEARCH_FLOOR_RISE_DB;
    l->floor_db = level < l->floor_db ? level : l->floor_db;
}

/* Whether there is other sound next to the window around a point. */
TAPWORD_PRIVATE int tapword_has_neighbours(const tapword_listener *l, int64_t point)
{
    int64_t first = point > TAPWORD_SEARCH_HALF ? point - TAPWORD_SEARCH_HALF : 0;
    int64_t end = point + TAPWORD_SEARCH_HALF, after = end + TAPWORD_SEARCH_MAX_OFFSET;
    size_t count = 0;
    double level_db = tapword_level_db(l, first, end);
    double other = tapword_energy_sum(l, first - TAPWORD_SEARCH_MAX_OFFSET, first, &count);
    other += tapword_energy_sum(l, end, after < l->steps ? after : l->steps, &count);
    return tapword_decibels(other, count) >= level_db + TAPWORD_SEARCH_ALONE_DB;
}

/* Whether the centroid of the energy within a half window is to the right of a point. */
static int tapword_centroid_right(const tapword_listener *l, int64_t point, int64_t half_window)
{
    double moment = 0.0;
    int64_t step;
    for (step = point - half_window; step < point + half_window; step++) {
        moment += tapword_step_energy(l, step) * ((double)(step - point) + 0.5);
    }
    return moment > 0.0;
}

/* Whether a sound is centred at a point. */
TAPWORD_PRIVATE int tapword_is_centre(const tapword_listener *l, int64_t point, int64_t half_window)
{
    return point > 0 && tapword_centroid_right(l, point - 1, half_window) &&
           !tapword_centroid_right(l, point, half_window);
}

/* Find the loud part of the window around a point, in steps. */
TAPWORD_PRIVATE void tapword_loud_part(const tapword_listener *l, int64_t point, int64_t *start,
                                       int64_t *end)
{
    double least = 0.0;
    int64_t step;
    *start = point > TAPWORD_SEARCH_HALF ? point - TAPWORD_SEARCH_HALF : 0;
    *end = point + TAPWORD_SEARCH_HALF;
    for (step = *start; step < *end; step++) {
        double loud = TAPWORD_SEARCH_LOUD * tapword_step_energy(l, step);
        least = loud > least ? loud : least;
    }
    while (tapword_step_energy(l, *start) < least) {
        ++*start;
    }
    while (tapword_step_energy(l, *end - 1) < least) {
        --*end;
    }
}

/* Samples of the stream so far, lost ones included. */
TAPWORD_PRIVATE int64_t tapword_now(const tapword_listener *l)
{
    return l->first + l->steps * TAPWORD_HOP + (int64_t)l->filled;
}

/* Keep a sample. Returns whether a step is complete. */
TAPWORD_PRIVATE int tapword_keep_sample(tapword_listener *l, float sample)
{
#if !TAPWORD_STREAMS
    float scaled = floorf(sample * 32768.0f + 0.5f);
    scaled = scaled < 32767.0f ? scaled : 32767.0f;
    scaled = scaled > -32768.0f ? scaled : -32768.0f;
    l->sound[l->place] = (int16_t)scaled;
    l->place = (l->place + 1) % TAPWORD_KEPT_SAMPLES;
#endif
    l->step_energy += (double)sample * (double)sample;
    if (++l->filled < TAPWORD_HOP) {
        return 0;
    }
    l->energy[l->step_place] = l->step_energy;
    l->step_place = (l->step_place + 1) % TAPWORD_KEPT_STEPS;
    l->step_energy = 0.0;
    l->filled = 0;
    l->steps++;
    return 1;
}

#if !TAPWORD_STREAMS
/* Copy n kept samples, from `ago` samples ago on. */
TAPWORD_PRIVATE void tapword_kept(const tapword_listener *l, size_t ago, size_t n, float *samples)
{
    size_t i, place = (l->place + TAPWORD_KEPT_SAMPLES - ago) % TAPWORD_KEPT_SAMPLES;
    for (i = 0; i < n; i++) {
        samples[i] = (float)l->sound[place] / 32768.0f;
        place = place + 1 < TAPWORD_KEPT_SAMPLES ? place + 1 : 0;
    }
}
#endif
#endif
