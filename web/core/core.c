/* The spotter as JavaScript calls it: one model and one stream, all of their memory in the module.
   core.js is the other side of every function here. */
#include <stddef.h>
#include <stdint.h>
#include <wasm_simd128.h>

/* Products of bytes, eight by one instruction: all is three times as fast by it. A core in floats has
   no use for it. */
__attribute__((unused)) static int32_t dot(const int8_t *x, const int8_t *weights, size_t n)
{
    v128_t sums = wasm_i32x4_splat(0);
    size_t i;
    for (i = 0; i < n; i += 8) {
        v128_t products = wasm_i32x4_dot_i16x8(wasm_i16x8_load8x8(x + i),
                                               wasm_i16x8_load8x8(weights + i));
        sums = wasm_i32x4_add(sums, products);
    }
    return wasm_i32x4_extract_lane(sums, 0) + wasm_i32x4_extract_lane(sums, 1) +
           wasm_i32x4_extract_lane(sums, 2) + wasm_i32x4_extract_lane(sums, 3);
}

#define TAPWORD_DOT dot
#define TAPWORD_IMPLEMENTATION
#include "model.h"

#define EXPORT(name) __attribute__((export_name(#name)))
/* More events than any stretch of sound has that fits into the room for it. */
#define EVENTS 64
/* Room for the states of larger models too, which are told apart by what they begin with. */
#define STATE (4u << 20)

static tapword model;
static tapword_listener listener;
static tapword_event events[EVENTS];
static float audio[TAPWORD_MAX_STEPS * TAPWORD_HOP];
static char text[2][TAPWORD_NAME_BYTES + 1];
static uint8_t state[STATE];
static float score;

/* Room for what is given and taken. */
EXPORT(room_audio) float *room_audio(void) { return audio; }
EXPORT(room_samples) size_t room_samples(void) { return sizeof audio / sizeof audio[0]; }
EXPORT(room_text) char *room_text(int which) { return text[which]; }
EXPORT(room_bytes) size_t room_bytes(void) { return TAPWORD_NAME_BYTES; }
EXPORT(room_state) uint8_t *room_state(void) { return state; }
EXPORT(room_state_bytes) size_t room_state_bytes(void) { return sizeof state; }

/* Beside the codes of the header: a word cannot be renamed to what another is called. */
#define TAPWORD_TAKEN (-100)

EXPORT(error) const char *error(int code)
{
    if (code == TAPWORD_TAKEN) {
        return "TAPWORD_TAKEN: another word has that name; choose another, or forget that word.";
    }
    return tapword_error(code);
}

EXPORT(start) void start(void)
{
    tapword_start(&model);
    tapword_listener_start(&listener);
}

/* Rows of what is known: words, and negatives of words. */
EXPORT(rows) size_t rows(void) { return model.words; }
EXPORT(row_name) const char *row_name(size_t k) { return model.names[k]; }
EXPORT(row_count) uint32_t row_count(size_t k) { return model.counts[k]; }
EXPORT(row_threshold) float row_threshold(size_t k) { return model.thresholds[k]; }
EXPORT(row_sensitivity) float row_sensitivity(size_t k) { return model.sensitivities[k]; }
EXPORT(sensitivity) float sensitivity(void) { return model.sensitivity; }

EXPORT(teach) int teach(size_t n) { return tapword_teach(&model, audio, n, text[0]); }
EXPORT(predict) int predict(size_t n, int reject)
{
    score = NAN;
    return tapword_predict(&model, audio, n, reject, &score);
}
/* NaN where no word is known. */
EXPORT(predict_score) float predict_score(void) { return score; }
/* Of a row in the last clip that was asked about, or in what was heard last of the stream: NaN where
   nothing was scored. */
EXPORT(row_score) float row_score(size_t k) { return model.scores[k]; }
EXPORT(reject) int reject(size_t n) { return tapword_reject(&model, audio, n); }
EXPORT(forget) int forget(void) { return tapword_forget(&model, text[0]); }

EXPORT(set_sensitivity) int set_sensitivity(int all, float value)
{
    return tapword_set_sensitivity(&model, all ? NULL : text[0], value);
}

/* Call a word and its negatives otherwise, by a name that no other word has. */
EXPORT(rename) int rename_word(void)
{
    int row = tapword_find(&model, text[0]), negatives = tapword_negatives(&model, text[0]);
    int taken = tapword_find(&model, text[1]);
    if (row < 0) {
        return TAPWORD_UNKNOWN;
    }
    if (!tapword_is_word(text[1]) || strlen(text[1]) + TAPWORD_NEGATIVE_BYTES >= TAPWORD_NAME_BYTES) {
        return TAPWORD_BAD_WORD;
    }
    if (taken >= 0 && taken != row) {
        return TAPWORD_TAKEN;
    }
    strcpy(model.names[row], text[1]);
    if (negatives >= 0) {
        strcpy(model.names[negatives] + TAPWORD_NEGATIVE_BYTES, text[1]);
    }
    return 0;
}

/* A stream, and what was heard in it. */
EXPORT(listen_start) void listen_start(void) { tapword_listener_start(&listener); }
EXPORT(listen_gap) void listen_gap(uint32_t samples) { tapword_listener_gap(&listener, samples); }

static void score_nothing(void)
{
    size_t k;
    for (k = 0; k < TAPWORD_MAX_WORDS; k++) {
        model.scores[k] = NAN;
    }
}

EXPORT(listen) int listen(size_t n)
{
    int given;
    score_nothing();
    given = tapword_listener_push(&model, &listener, audio, n, events, EVENTS);
    /* Phrases are looked for by another measure first, which is left there and is no score. */
    if (listener.phrases) {
        score_nothing();
    }
    return given;
}

EXPORT(listen_end) int listen_end(void)
{
    return tapword_listener_flush(&model, &listener, events, EVENTS);
}
EXPORT(event_word) int event_word(size_t i) { return events[i].word; }
EXPORT(event_score) float event_score(size_t i) { return events[i].score; }
EXPORT(event_start) double event_start(size_t i) { return events[i].start; }
EXPORT(event_end) double event_end(size_t i) { return events[i].end; }

EXPORT(save) int save(void) { return tapword_save(&model, state, sizeof state); }
EXPORT(load) int load(size_t n) { return tapword_load(&model, state, n); }
