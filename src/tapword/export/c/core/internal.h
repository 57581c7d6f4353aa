/* What the files of the core share with each other, and with nobody else. */
#ifndef TAPWORD_INTERNAL_H
#define TAPWORD_INTERNAL_H

#include <math.h>
#include <string.h>

#include "tapword.h"

/* The amalgamation is one file, in which all of this is static. */
#ifndef TAPWORD_PRIVATE
#define TAPWORD_PRIVATE
#endif

/* A block of the ear: channels of its input, inside and of its output; bands of its input; bands
   and steps that a filter covers, and its strides; whether the input is added, and whether it is
   late. */
typedef struct {
    uint16_t in, wide, out, bands, taps, steps, band_step, time_step, adds, ahead;
} tapword_block;

/* Kinds of poolings. */
#define TAPWORD_MOMENT 0
#define TAPWORD_DEVIATION 1
#define TAPWORD_LARGEST 2
#define TAPWORD_MIDDLE 3
#define TAPWORD_ATTENTION 4

#include "tapword_tables.h"

/* Tables of bytes that are packed into one. */
#if TAPWORD_PACKED
#define tapword_ear_bytes (tapword_bytes + TAPWORD_EAR_BYTES_AT)
#define tapword_cohort ((const int8_t (*)[TAPWORD_PROJECTED])(tapword_bytes + TAPWORD_COHORT_AT))
#define tapword_projection ((const int8_t (*)[TAPWORD_DIM])(tapword_bytes + TAPWORD_PROJECTION_AT))
#endif
#if TAPWORD_SEPARATE_WEIGHTS
#define TAPWORD_WEIGHTS_MISSING (tapword_bytes == NULL)
#else
#define TAPWORD_WEIGHTS_MISSING 0
#endif

#if TAPWORD_HAS_EAR || TAPWORD_WHITENING
/* A float of 16 bits, exactly: its exponent lacks 112. */
static inline float tapword_half(uint16_t half)
{
    uint32_t bits = (half & 32768u) << 16 | (half & 32767u) << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value * 5.192296858534828e33f; /* 2 to the power of 112 */
}
#endif

#if TAPWORD_HAS_EAR
/* A number as a listener keeps it, and back. */
static inline tapword_kept_number tapword_keep(float value)
{
#if TAPWORD_EIGHT_BITS
    uint32_t bits;
    value = value > 65504.0f ? 65504.0f : (value < -65504.0f ? -65504.0f : value);
    value *= 1.925929944387236e-34f; /* 2 to the power of -112 */
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits >> 16 & 32768u) | ((bits & 0x7fffffffu) + 4096u) >> 13);
#else
    return value;
#endif
}

static inline float tapword_kept_value(tapword_kept_number number)
{
#if TAPWORD_EIGHT_BITS
    return tapword_half(number);
#else
    return number;
#endif
}

static inline void tapword_keep_row(const float *row, size_t n, tapword_kept_number *kept)
{
    size_t i;
    for (i = 0; i < n; i++) {
        kept[i] = tapword_keep(row[i]);
    }
}

static inline void tapword_kept_row(const tapword_kept_number *kept, size_t n, float *row)
{
    size_t i;
    for (i = 0; i < n; i++) {
        row[i] = tapword_kept_value(kept[i]);
    }
}
#endif

/* align.c */
TAPWORD_PRIVATE float tapword_sample(const float *audio, size_t n, tapword_clip clip,
                                     ptrdiff_t place);

#if TAPWORD_ALIGN && TAPWORD_HAS_LESSON
TAPWORD_PRIVATE void tapword_other_sound(tapword *t, size_t n, double *other_s, double *pause_s);
#endif

/* mel.c */
TAPWORD_PRIVATE void tapword_mel(float *re, float *im, float mel[TAPWORD_BANDS]);

#if TAPWORD_HAS_EAR
/* The next layer's weights: in 16 bits; or in 8, with their factors. */
typedef struct {
    const uint8_t *halves;
    const int8_t *bytes;
    const uint16_t *factors;
} tapword_walk;

/* ear.c */
TAPWORD_PRIVATE void tapword_row(tapword_walk *at, size_t outputs, float *row);
TAPWORD_PRIVATE void tapword_relu(float *x, size_t n);
TAPWORD_PRIVATE void tapword_mix(tapword_ear *ear, tapword_walk *at, const float *x, size_t bands,
                                 size_t inputs, size_t outputs, float *y);
TAPWORD_PRIVATE void tapword_shift_state(void *before, size_t count, const void *x, size_t size);
TAPWORD_PRIVATE void tapword_add_residual(tapword_ear *ear, const tapword_block *b,
                                          float **waiting);

/* ear_int8.c or ear_float.c */
TAPWORD_PRIVATE void tapword_join(tapword_ear *ear, tapword_walk *at, size_t inputs, size_t outputs,
                                  float *y);
TAPWORD_PRIVATE int tapword_run_block(tapword_ear *ear, tapword_walk *at, const tapword_block *b,
                                      size_t step, tapword_ear_number **state);

#if TAPWORD_HAS_LISTENER && TAPWORD_PHRASE_HOPS && !TAPWORD_STREAMS
/* ear_stream.c */
TAPWORD_PRIVATE void tapword_keep_mels(tapword_ear *ear, tapword_kept_mel (*mels)[TAPWORD_BANDS]);
TAPWORD_PRIVATE void tapword_push_mels(tapword_ear *ear, tapword_kept_mel (*mels)[TAPWORD_BANDS],
                                       int first, float frame[TAPWORD_FRAME]);
#endif
#endif

/* pool.c, attention.c, whiten.c */
TAPWORD_PRIVATE float *tapword_pool(const uint16_t *pooling, size_t width, const float *x, size_t t,
                                    float *out);
#if TAPWORD_HAS_ATTENTION
TAPWORD_PRIVATE float *tapword_attention_pool(const uint16_t *pooling, size_t width, const float *x,
                                              size_t t, float *out);
#endif
TAPWORD_PRIVATE void tapword_whiten(float *vector);

#if TAPWORD_COPIES
/* PCG64 and normal numbers, as numpy makes them. */
typedef struct {
    uint64_t high, low;
    uint32_t rest; /* half of a number that is left, */
    int waiting;   /* if it is */
} tapword_generator;

/* An augmented copy: its number, 0 for the clip itself; of the last, how loud its noise is. */
typedef struct {
    size_t number;
    float level;
    tapword_generator generator;
} tapword_copy;

/* augment.c */
TAPWORD_PRIVATE void tapword_copy_start(tapword_copy *copy, size_t number, const float *audio,
                                        size_t n, tapword_clip clip);
TAPWORD_PRIVATE float tapword_copy_sample(tapword_copy *copy, const float *audio, size_t n,
                                          tapword_clip clip, size_t place);
#endif

#if TAPWORD_HAS_BACKBONE
/* encode.c */
TAPWORD_PRIVATE void tapword_pool_copy(tapword *t, const float *audio, size_t n, tapword_clip clip,
                                       size_t number, float *pooled);
#if TAPWORD_COHORT
TAPWORD_PRIVATE int tapword_is_noise(const float vector[TAPWORD_DIM]);
#endif
#endif

#if TAPWORD_HAS_BACKBONE
/* teach.c */
TAPWORD_PRIVATE void tapword_add_copies(tapword *t, const float *audio, size_t n,
                                        tapword_clip clip);
#endif

#if TAPWORD_HAS_LESSON
/* How the takes of a lesson compare with another word: when that came up first, how many would
   count as it without their own word, are nearer to it, or both. */
typedef struct {
    size_t order, counting, nearer, taken;
} tapword_likeness;
#endif

/* words.c */
#define TAPWORD_NEGATIVE_BYTES (sizeof TAPWORD_NEGATIVE - 1)
TAPWORD_PRIVATE int tapword_is_negative(const char *name);
TAPWORD_PRIVATE int tapword_is_word(const char *name);

#if TAPWORD_COHORT
/* cohort.c */
TAPWORD_PRIVATE const float *tapword_project(const float *x, float *projected, float *length);
TAPWORD_PRIVATE float tapword_cohort_cosine(const float *projected, float length, size_t window);
TAPWORD_PRIVATE float tapword_cohort_score(const float *x, size_t length);
TAPWORD_PRIVATE void tapword_normalize(const tapword *t, const float *vector, size_t length,
                                       float *scores);
TAPWORD_PRIVATE int tapword_is_phrase(const tapword *t, size_t k);
#endif

/* thresholds.c */
TAPWORD_PRIVATE void tapword_update_tail(tapword *t, size_t k);
TAPWORD_PRIVATE void tapword_update_thresholds(tapword *t);

/* learn.c */
TAPWORD_PRIVATE int tapword_number(const tapword *t, const char *word);
TAPWORD_PRIVATE int tapword_is_vector(const float *vector);
TAPWORD_PRIVATE int tapword_learn_vector(tapword *t, const float *vector, size_t length,
                                         const char *word);
TAPWORD_PRIVATE int tapword_negatives(const tapword *t, const char *word);
TAPWORD_PRIVATE int tapword_not_rejected(const tapword *t, const float *scores, size_t k);

/* state.c */
TAPWORD_PRIVATE uint32_t tapword_crc(const uint8_t *bytes, size_t n);
TAPWORD_PRIVATE uint8_t *tapword_put(uint8_t *bytes, uint32_t value);
TAPWORD_PRIVATE uint32_t tapword_get(const uint8_t *bytes);

#ifdef TAPWORD_TEACHING
/* endpoint.c */
#define TAPWORD_TAKE_MARGIN ((size_t)(TAPWORD_ENDPOINT_MARGIN_MS * (TAPWORD_SAMPLE_RATE / 1000)))
TAPWORD_PRIVATE double tapword_quantile(tapword_endpointer *e, size_t n, double share);
TAPWORD_PRIVATE int tapword_measure_recording(tapword_endpointer *e, const float *audio, size_t n);
TAPWORD_PRIVATE void tapword_find_speech(tapword_endpointer *e, double pause_ms);
TAPWORD_PRIVATE void tapword_span_samples(const uint32_t span[2], size_t *first, size_t *last);
#endif

#if TAPWORD_SCATTER
/* solve.c */
TAPWORD_PRIVATE void tapword_fill(tapword *t, const float *scatter, size_t n, double share);
TAPWORD_PRIVATE int tapword_solve(tapword *t, double share);
#if TAPWORD_VARIANCES
TAPWORD_PRIVATE void tapword_variances(tapword *t);
#endif

/* cosine.c, slda.c or ridge.c */
TAPWORD_PRIVATE int tapword_rule(tapword *t);
TAPWORD_PRIVATE double tapword_between_words(const tapword *t, size_t k);
#endif

#ifdef TAPWORD_TEACHING
/* endpoint.c */
TAPWORD_PRIVATE int tapword_find_take(tapword_endpointer *e, size_t n, tapword_take *take);
TAPWORD_PRIVATE int tapword_take_issue(const tapword_take *take, size_t clipped, size_t n,
                                       int several);
#endif

#if TAPWORD_HAS_LISTENER
/* segmenter.c */
TAPWORD_PRIVATE int tapword_is_loud(const tapword_listener *l, int64_t first, int64_t end);
TAPWORD_PRIVATE void tapword_follow_floor(tapword_listener *l, int64_t point);
TAPWORD_PRIVATE int tapword_has_neighbours(const tapword_listener *l, int64_t point);
TAPWORD_PRIVATE int tapword_is_centre(const tapword_listener *l, int64_t point,
                                      int64_t half_window);
TAPWORD_PRIVATE void tapword_loud_part(const tapword_listener *l, int64_t point, int64_t *start,
                                       int64_t *end);
TAPWORD_PRIVATE int64_t tapword_now(const tapword_listener *l);
TAPWORD_PRIVATE int tapword_keep_sample(tapword_listener *l, float sample);
#if !TAPWORD_STREAMS
TAPWORD_PRIVATE void tapword_kept(const tapword_listener *l, size_t ago, size_t n, float *samples);
#endif

/* stream.c */
#if TAPWORD_STREAMS
TAPWORD_PRIVATE void tapword_stream_begin(tapword_listener *l);
TAPWORD_PRIVATE int tapword_stream_sample(tapword_listener *l, float sample);
#endif
TAPWORD_PRIVATE int tapword_score_second(tapword *t, tapword_listener *l, int64_t point);
#if TAPWORD_PHRASE_HOPS
#if !TAPWORD_STREAMS
TAPWORD_PRIVATE void tapword_make_frames(tapword *t, tapword_listener *l);
#endif
TAPWORD_PRIVATE void tapword_pool_hops(tapword *t, const tapword_listener *l, int64_t start,
                                       size_t hops);
TAPWORD_PRIVATE int tapword_score_hops(tapword *t, tapword_listener *l, int64_t start, size_t hops);
TAPWORD_PRIVATE int64_t tapword_last_end(const tapword_listener *l);
#endif

/* decider.c */
TAPWORD_PRIVATE int tapword_best_said(const tapword *t, const tapword_listener *l, float by);
TAPWORD_PRIVATE double tapword_seconds(int64_t samples);
TAPWORD_PRIVATE void tapword_name(const tapword *t, int word, int64_t start, int64_t end,
                                  tapword_candidate *candidate);
TAPWORD_PRIVATE int tapword_in_refractory(const tapword_listener *l, int64_t centre);
TAPWORD_PRIVATE void tapword_drop(tapword_candidate *row, uint32_t *count, size_t at);
TAPWORD_PRIVATE int tapword_decide_word(tapword_listener *l, const tapword_candidate *candidate,
                                        int64_t centre);
TAPWORD_PRIVATE void tapword_suppress(tapword_listener *l);
TAPWORD_PRIVATE int tapword_finalize(tapword_listener *l);
TAPWORD_PRIVATE void tapword_pop_ready(tapword_listener *l, double now, double longest);

#ifdef TAPWORD_BOARD
/* teacher.c */
TAPWORD_PRIVATE void tapword_to_floats(const int16_t *samples, size_t n, float *audio);

/* link.c */
TAPWORD_PRIVATE void tapword_link_wait(tapword_board *board, size_t samples);
#endif

/* phrases.c */
#if TAPWORD_PHRASE_HOPS
TAPWORD_PRIVATE int tapword_look_for_phrases(tapword *t, tapword_listener *l);
#endif
TAPWORD_PRIVATE void tapword_follow_phrases(const tapword *t, tapword_listener *l);
#endif

#endif
