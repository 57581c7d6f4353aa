/* One spoken word in a recording: where it is, whether it is fit to learn from, and when it is
   over. As Python's tapword.audio.endpoint. */
#include "internal.h"

#ifdef TAPWORD_TEACHING
#define TAPWORD_ENDPOINT_PI 3.14159265358979323846

/* Lags at which a voice repeats itself. */
#define TAPWORD_FIRST_LAG (TAPWORD_SAMPLE_RATE / TAPWORD_ENDPOINT_PITCH_HZ_HIGH)
#define TAPWORD_END_LAG (TAPWORD_SAMPLE_RATE / TAPWORD_ENDPOINT_PITCH_HZ_LOW)

const char *tapword_issue_name(int code)
{
    static const char *const names[] = {"", TAPWORD_ISSUES};
    return code > 0 && code < (int)(sizeof names / sizeof names[0]) ? names[code] : "";
}

/* Fourier transform of e->wave, in place. */
static void tapword_endpoint_transform(tapword_endpointer *e)
{
    tapword_level *re = e->wave[0], *im = e->wave[1];
    size_t i, mirrored = 0, bit, size, start, k;
    for (i = 1; i < TAPWORD_ENDPOINT_FFT; i++) {
        for (bit = TAPWORD_ENDPOINT_FFT / 2; mirrored & bit; bit /= 2) {
            mirrored ^= bit;
        }
        mirrored |= bit;
        if (i < mirrored) {
            tapword_level x = re[i], y = im[i];
            re[i] = re[mirrored];
            im[i] = im[mirrored];
            re[mirrored] = x;
            im[mirrored] = y;
        }
    }
    for (size = 2; size <= TAPWORD_ENDPOINT_FFT; size *= 2) {
        size_t half = size / 2, stride = TAPWORD_ENDPOINT_FFT / size;
        for (start = 0; start < TAPWORD_ENDPOINT_FFT; start += size) {
            for (k = 0; k < half; k++) {
                size_t a = start + k, b = a + half;
                tapword_level c = e->turn[0][k * stride], s = e->turn[1][k * stride];
                tapword_level x = re[b] * c + im[b] * s, y = im[b] * c - re[b] * s;
                re[b] = re[a] - x;
                im[b] = im[a] - y;
                re[a] += x;
                im[a] += y;
            }
        }
    }
}

/* Replace a windowed frame in e->wave by its power at each frequency from one to another, in Hz.
   Returns the sum over positive frequencies. */
static tapword_level tapword_spectrum(tapword_endpointer *e, double low, double high)
{
    tapword_level *re = e->wave[0], *im = e->wave[1], sum = 0;
    size_t first = (size_t)ceil(low * TAPWORD_ENDPOINT_FFT / TAPWORD_SAMPLE_RATE), k;
    size_t last = (size_t)floor(high * TAPWORD_ENDPOINT_FFT / TAPWORD_SAMPLE_RATE);
    memset(re + TAPWORD_ENDPOINT_FRAME, 0, TAPWORD_ENDPOINT_FRAME * sizeof *re);
    memset(im, 0, TAPWORD_ENDPOINT_FFT * sizeof *im);
    tapword_endpoint_transform(e);
    for (k = 0; k < TAPWORD_ENDPOINT_FFT; k++) {
        size_t bin = k <= TAPWORD_ENDPOINT_FRAME ? k : TAPWORD_ENDPOINT_FFT - k;
        re[k] = bin >= first && bin <= last ? re[k] * re[k] + im[k] * im[k] : 0;
        im[k] = 0;
        sum += k <= TAPWORD_ENDPOINT_FRAME ? re[k] : 0;
    }
    return sum;
}

static double tapword_to_db(double power) { return 10.0 * log10(power + TAPWORD_SILENCE); }

static double tapword_to_power(double db) { return pow(10.0, db / 10.0); }

/* Measure the frame in e->samples: its level, and how much it repeats itself as a voice does. */
static void tapword_measure_frame(tapword_endpointer *e)
{
    tapword_level sum, energy, best = -1;
    size_t i;
    for (i = 0; i < TAPWORD_ENDPOINT_FRAME; i++) {
        e->wave[0][i] = e->window[i] * (tapword_level)e->samples[i];
    }
    sum = tapword_spectrum(e, TAPWORD_ENDPOINT_BAND_HZ_LOW, TAPWORD_ENDPOINT_BAND_HZ_HIGH);
    e->levels[e->frames] =
        (tapword_level)tapword_to_db((double)(sum / (TAPWORD_ENDPOINT_FRAME * e->window_power)));
    /* Autocorrelation, less what the window alone takes from it at each lag. */
    tapword_endpoint_transform(e);
    energy = e->wave[0][0] / TAPWORD_ENDPOINT_FFT;
    energy = energy > (tapword_level)1e-12 ? energy : (tapword_level)1e-12;
    for (i = TAPWORD_FIRST_LAG; i < TAPWORD_END_LAG; i++) {
        tapword_level share =
            e->wave[0][i] / TAPWORD_ENDPOINT_FFT / energy * e->taper[0] / e->taper[i];
        best = share > best ? share : best;
    }
    e->voiced[e->frames] = (double)best > TAPWORD_ENDPOINT_VOICING;
    e->frames++;
}

void tapword_endpointer_start(tapword_endpointer *e)
{
    size_t i;
    memset(e, 0, sizeof *e);
    for (i = 0; i < TAPWORD_ENDPOINT_FFT / 2; i++) {
        double angle = 2.0 * TAPWORD_ENDPOINT_PI * (double)i / TAPWORD_ENDPOINT_FFT;
        e->turn[0][i] = (tapword_level)cos(angle);
        e->turn[1][i] = (tapword_level)sin(angle);
    }
    for (i = 0; i < TAPWORD_ENDPOINT_FRAME; i++) {
        double angle = 2.0 * TAPWORD_ENDPOINT_PI * (double)i / (TAPWORD_ENDPOINT_FRAME - 1);
        e->wave[0][i] = e->window[i] = (tapword_level)(0.5 - 0.5 * cos(angle));
        e->window_power += e->window[i] * e->window[i];
    }
    tapword_spectrum(e, 0.0, TAPWORD_SAMPLE_RATE);
    tapword_endpoint_transform(e);
    memcpy(e->taper, e->wave[0], sizeof e->taper);
}

/* Quantile of n numbers in e->sorted, which become sorted; as numpy interpolates it. */
TAPWORD_PRIVATE double tapword_quantile(tapword_endpointer *e, size_t n, double share)
{
    tapword_level *x = e->sorted;
    double at = share * (double)(n - 1);
    size_t gap, i, j, low = (size_t)at;
    for (gap = n / 2; gap > 0; gap /= 2) {
        for (i = gap; i < n; i++) {
            tapword_level value = x[i];
            for (j = i; j >= gap && x[j - gap] > value; j -= gap) {
                x[j] = x[j - gap];
            }
            x[j] = value;
        }
    }
    if (low + 1 == n) {
        return (double)x[low];
    }
    return (double)x[low] + (at - (double)low) * (double)(x[low + 1] - x[low]);
}

static double tapword_max_level(const tapword_endpointer *e, size_t start, size_t end)
{
    double most = -HUGE_VAL;
    for (; start < end; start++) {
        most = (double)e->levels[start] > most ? (double)e->levels[start] : most;
    }
    return most;
}

/* Append a span of frames, or join it to the one before if the pause is at most `gap_ms`. */
static void tapword_add_span(tapword_endpointer *e, size_t start, size_t end, double gap_ms)
{
    uint32_t *last = e->n_spans > 0 ? e->spans[e->n_spans - 1] : NULL;
    if (last != NULL && (double)((start - last[1]) * TAPWORD_ENDPOINT_HOP_MS) <= gap_ms) {
        last[1] = (uint32_t)end;
        return;
    }
    e->spans[e->n_spans][0] = (uint32_t)start;
    e->spans[e->n_spans++][1] = (uint32_t)end;
}

/* Find segments of speech: clicks are dropped, gaps in a word and pauses up to `pause_ms` are
   bridged. */
TAPWORD_PRIVATE void tapword_find_speech(tapword_endpointer *e, double pause_ms)
{
    double background, threshold, loudest;
    size_t n = e->frames, start, end, i, count;
    e->n_spans = 0;
    if (n == 0) {
        return;
    }
    memcpy(e->sorted, e->levels, n * sizeof *e->sorted);
    background = tapword_quantile(e, n, TAPWORD_ENDPOINT_BACKGROUND_SHARE);
    loudest = tapword_max_level(e, 0, n) - TAPWORD_ENDPOINT_RANGE_DB;
    threshold = background + TAPWORD_ENDPOINT_OFFSET_DB;
    threshold = threshold > loudest ? threshold : loudest;
    for (start = 0; start < n; start = end + 1) {
        for (end = start; end < n && (double)e->levels[end] > threshold; end++) {
        }
        if ((end - start) * TAPWORD_ENDPOINT_HOP_MS >= TAPWORD_ENDPOINT_CLICK_MS &&
            tapword_max_level(e, start, end) >= background + TAPWORD_ENDPOINT_ONSET_DB) {
            tapword_add_span(e, start, end, TAPWORD_ENDPOINT_GAP_MS);
        }
    }
    count = e->n_spans;
    e->n_spans = 0;
    for (i = 0; i < count; i++) {
        size_t voiced = 0;
        start = e->spans[i][0];
        end = e->spans[i][1];
        for (n = start; n < end; n++) {
            voiced += e->voiced[n];
        }
        if (voiced * TAPWORD_ENDPOINT_HOP_MS >= TAPWORD_ENDPOINT_VOICED_MS) {
            tapword_add_span(e, start, end, pause_ms);
        }
    }
}

/* Measure the frames of more samples; those of more than the longest recording are ignored. */
static void tapword_measure(tapword_endpointer *e, const float *audio, size_t n)
{
    const size_t kept = TAPWORD_ENDPOINT_FRAME - TAPWORD_ENDPOINT_HOP;
    size_t i;
    for (i = 0; i < n && e->frames < TAPWORD_RECORDING_FRAMES; i++) {
        e->samples[e->filled++] = audio[i];
        if (e->filled == TAPWORD_ENDPOINT_FRAME) {
            tapword_measure_frame(e);
            memmove(e->samples, e->samples + TAPWORD_ENDPOINT_HOP, kept * sizeof *e->samples);
            e->filled = (uint32_t)kept;
        }
    }
}

static int tapword_is_finite(const float *audio, size_t n)
{
    size_t i;
    for (i = 0; i < n && fabsf(audio[i]) <= FLT_MAX; i++) {
    }
    return i == n;
}

static double tapword_frames_s(uint32_t frames)
{
    return (double)(frames * TAPWORD_ENDPOINT_HOP_MS) / 1000.0;
}

int tapword_endpointer_push(tapword_endpointer *e, const float *audio, size_t n)
{
    double now, start, end;
    if (!tapword_is_finite(audio, n)) {
        return TAPWORD_BAD_AUDIO;
    }
    tapword_measure(e, audio, n);
    tapword_find_speech(e, TAPWORD_ENDPOINT_PAUSE_MS);
    now = tapword_frames_s(e->frames);
    if (e->n_spans == 0) {
        return now >= TAPWORD_ENDPOINT_WAIT_S ? TAPWORD_ENDPOINT_NOBODY : TAPWORD_ENDPOINT_WAITING;
    }
    start = tapword_frames_s(e->spans[e->n_spans - 1][0]);
    end = tapword_frames_s(e->spans[e->n_spans - 1][1]);
    if (now - end >= TAPWORD_ENDPOINT_SILENCE_S || now >= TAPWORD_ENDPOINT_MAX_S ||
        end - start > TAPWORD_ENDPOINT_LONG_S + TAPWORD_ENDPOINT_SILENCE_S) {
        return TAPWORD_ENDPOINT_OVER;
    }
    return TAPWORD_ENDPOINT_SPEAKING;
}

static double tapword_energy(const tapword_endpointer *e, const uint32_t span[2])
{
    double sum = 0.0;
    size_t i;
    for (i = span[0]; i < span[1]; i++) {
        sum += tapword_to_power((double)e->levels[i]);
    }
    return sum;
}

/* Code of what is wrong with a take in n samples, of which some are clipped. */
TAPWORD_PRIVATE int tapword_take_issue(const tapword_take *take, size_t clipped, size_t n,
                                       int several)
{
    size_t edge = n - take->last < take->first ? n - take->last : take->first;
    size_t length = take->last - take->first;
    double seconds = (double)length / TAPWORD_SAMPLE_RATE;
    if (seconds > TAPWORD_ENDPOINT_LONG_S) {
        return TAPWORD_ISSUE_TOO_LONG;
    }
    if (several) {
        return TAPWORD_ISSUE_SEVERAL_WORDS;
    }
    if ((double)clipped / (double)length > TAPWORD_ENDPOINT_CLIPPED_SHARE) {
        return TAPWORD_ISSUE_CLIPPED;
    }
    if ((double)edge / TAPWORD_SAMPLE_RATE < TAPWORD_ENDPOINT_EDGE_MS / 1000.0) {
        return TAPWORD_ISSUE_CUT_OFF;
    }
    if (take->level_db < TAPWORD_ENDPOINT_QUIET_DB) {
        return TAPWORD_ISSUE_TOO_QUIET;
    }
    if (take->snr_db < TAPWORD_ENDPOINT_SNR_DB) {
        return TAPWORD_ISSUE_NOISY;
    }
    return seconds < TAPWORD_ENDPOINT_SHORT_S ? TAPWORD_ISSUE_TOO_SHORT : 0;
}

/* Measure a whole recording: 0 or TAPWORD_BAD_AUDIO. */
TAPWORD_PRIVATE int tapword_measure_recording(tapword_endpointer *e, const float *audio, size_t n)
{
    if (n > TAPWORD_ENDPOINT_SAMPLES || !tapword_is_finite(audio, n)) {
        return TAPWORD_BAD_AUDIO;
    }
    tapword_endpointer_start(e);
    tapword_measure(e, audio, n);
    return 0;
}

/* Samples of a span of frames: the window tapers a frame off, so that what it measures is in its
   middle half. */
TAPWORD_PRIVATE void tapword_span_samples(const uint32_t span[2], size_t *first, size_t *last)
{
    *first = span[0] * TAPWORD_ENDPOINT_HOP + TAPWORD_ENDPOINT_FRAME / 4;
    *last = (span[1] - 1) * TAPWORD_ENDPOINT_HOP + TAPWORD_ENDPOINT_FRAME * 3 / 4;
}

/* Find the word in the n samples that were measured. Returns whether there are several. */
TAPWORD_PRIVATE int tapword_find_take(tapword_endpointer *e, size_t n, tapword_take *take)
{
    double most = 0.0, second = 0.0;
    size_t start, end, around, i, best = 0;
    memset(take, 0, sizeof *take);
    tapword_find_speech(e, TAPWORD_ENDPOINT_PAUSE_MS);
    if (e->n_spans == 0) {
        take->issue = TAPWORD_ISSUE_NO_SPEECH;
        take->level_db = tapword_to_db(0.0);
        return 0;
    }
    /* Of several, the word is the one with the most energy. */
    for (i = 0; i < e->n_spans; i++) {
        double energy = tapword_energy(e, e->spans[i]);
        best = energy > most ? i : best;
        second = energy > most ? most : energy > second ? energy : second;
        most = energy > most ? energy : most;
    }
    start = e->spans[best][0];
    end = e->spans[best][1];
    take->level_db = tapword_to_db(most / (double)(end - start));
    /* The median: a door that falls shut before the word is not the background. */
    memcpy(e->sorted, e->levels, start * sizeof *e->sorted);
    around = start + e->frames - end;
    memcpy(e->sorted + start, e->levels + end, (e->frames - end) * sizeof *e->sorted);
    take->snr_db = around > 0 ? take->level_db - tapword_quantile(e, around, 0.5) : 0.0;
    tapword_span_samples(e->spans[best], &take->first, &take->last);
    take->start = take->first > TAPWORD_TAKE_MARGIN ? take->first - TAPWORD_TAKE_MARGIN : 0;
    take->end = take->last + TAPWORD_TAKE_MARGIN < n ? take->last + TAPWORD_TAKE_MARGIN : n;
    return second > most * tapword_to_power(-TAPWORD_ENDPOINT_SECOND_DB);
}

int tapword_examine(tapword_endpointer *e, const float *audio, size_t n, tapword_take *take)
{
    size_t clipped = 0, i;
    int several, error = tapword_measure_recording(e, audio, n);
    if (error != 0) {
        return error;
    }
    several = tapword_find_take(e, n, take);
    if (take->issue != 0) {
        return 0;
    }
    for (i = take->first; i < take->last; i++) {
        clipped += fabsf(audio[i]) >= (float)TAPWORD_ENDPOINT_CLIPPED;
    }
    take->issue = tapword_take_issue(take, clipped, n, several);
    return 0;
}
#endif
