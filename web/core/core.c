/* The spotter as JavaScript calls it: one model and one stream, with all their memory in the
   module. core.js has the other side of every function. */
#include <stddef.h>
#include <stdint.h>
#include <wasm_simd128.h>

/* Products of bytes, eight at a time: the network is three times as fast. A core in floats does not
   use it. */
__attribute__((unused)) static int32_t dot(const int8_t *x, const int8_t *weights, size_t n)
{
    v128_t sums = wasm_i32x4_splat(0);
    size_t i;
    for (i = 0; i < n; i += 8) {
        v128_t products =
            wasm_i32x4_dot_i16x8(wasm_i16x8_load8x8(x + i), wasm_i16x8_load8x8(weights + i));
        sums = wasm_i32x4_add(sums, products);
    }
    return wasm_i32x4_extract_lane(sums, 0) + wasm_i32x4_extract_lane(sums, 1) +
           wasm_i32x4_extract_lane(sums, 2) + wasm_i32x4_extract_lane(sums, 3);
}

#define TAPWORD_DOT dot
/* Files of 10 s are taught, too; and of 60 s those with several takes. */
#define TAPWORD_MAX_STEPS 1000
#define TAPWORD_RECORDING_FRAMES 6100
#define TAPWORD_TEACHING
#define TAPWORD_IMPLEMENTATION
#include "model.h"

#define EXPORT(name) __attribute__((export_name(#name)))
/* More events than the samples of one call can have. */
#define EVENTS 256
/* Room for the states of larger models too, which are told apart by how they begin. */
#define STATE (4u << 20)

static tapword model;
static tapword_listener listener;
static tapword_endpointer endpointer;
static tapword_lesson lesson;
static tapword_event events[EVENTS];
static tapword_issue issues[TAPWORD_LESSON_TAKES];
static tapword_take take;
static tapword_takes takes;
static float audio[TAPWORD_ENDPOINT_SAMPLES];
static char text[2][TAPWORD_NAME_BYTES + 1];
static uint8_t state[STATE];
static float score;

/* Room for arguments and results. */
EXPORT(room_audio) float *room_audio(void) { return audio; }
EXPORT(room_samples) size_t room_samples(void) { return sizeof audio / sizeof audio[0]; }
EXPORT(room_text) char *room_text(int which) { return text[which]; }
EXPORT(room_bytes) size_t room_bytes(void) { return TAPWORD_NAME_BYTES; }
EXPORT(room_state) uint8_t *room_state(void) { return state; }
EXPORT(room_state_bytes) size_t room_state_bytes(void) { return sizeof state; }

/* In addition to the codes of the header: another word has that name. */
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
    tapword_lesson_start(&lesson);
}

/* Rows of the model: words, and negatives of words. */
EXPORT(rows) size_t rows(void) { return model.words; }
EXPORT(row_name) const char *row_name(size_t k) { return model.names[k]; }
EXPORT(row_count) uint32_t row_count(size_t k) { return model.counts[k]; }
EXPORT(row_threshold) float row_threshold(size_t k) { return model.thresholds[k]; }
EXPORT(row_sensitivity) float row_sensitivity(size_t k) { return model.sensitivities[k]; }
EXPORT(sensitivity) float sensitivity(void) { return model.sensitivity; }

/* With `anyway`, noise too. */
EXPORT(teach) int teach(size_t n, int anyway)
{
    int found = anyway ? tapword_lesson_check(&lesson, &model, audio, n, text[0], 1, issues) : 0;
    if (found < 0 || !anyway) {
        return found < 0 ? found : tapword_teach(&model, audio, n, text[0]);
    }
    return tapword_learn_checked(&model, &lesson.checked);
}
EXPORT(predict) int predict(size_t n, int reject)
{
    score = NAN;
    return tapword_predict(&model, audio, n, reject, &score);
}
/* NaN if no word is known. */
EXPORT(predict_score) float predict_score(void) { return score; }
/* Score of a row in the last prediction, or in the last push: NaN if nothing was scored. */
EXPORT(row_score) float row_score(size_t k) { return model.scores[k]; }
/* How sure the last prediction is of a row; noise is no word at all. */
EXPORT(row_confidence) int row_confidence(int k)
{
    return tapword_is_noise(model.vector) ? 0 : tapword_confidence(&model, model.scores, k);
}
EXPORT(reject) int reject(size_t n) { return tapword_reject(&model, audio, n); }
EXPORT(forget) int forget(void) { return tapword_forget(&model, text[0]); }

EXPORT(set_sensitivity) int set_sensitivity(int all, float value)
{
    return tapword_set_sensitivity(&model, all ? NULL : text[0], value);
}

/* Rename a word and its negatives. */
EXPORT(rename) int rename_word(void)
{
    int row = tapword_find(&model, text[0]), negatives = tapword_negatives(&model, text[0]);
    int taken = tapword_find(&model, text[1]);
    if (row < 0) {
        return TAPWORD_UNKNOWN;
    }
    if (!tapword_is_word(text[1])) {
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

/* Teaching by voice: a recording as it is made, what was found in it, and checks on a clip. */
EXPORT(record_start) void record_start(void) { tapword_endpointer_start(&endpointer); }
EXPORT(record_push) int record_push(size_t n)
{
    return tapword_endpointer_push(&endpointer, audio, n);
}
EXPORT(examine) int examine(size_t n) { return tapword_examine(&endpointer, audio, n, &take); }
EXPORT(take_issue) const char *take_issue(void) { return tapword_issue_name(take.issue); }
EXPORT(take_first) size_t take_first(void) { return take.first; }
EXPORT(take_last) size_t take_last(void) { return take.last; }
EXPORT(take_start) size_t take_start(void) { return take.start; }
EXPORT(take_end) size_t take_end(void) { return take.end; }
EXPORT(take_level_db) double take_level_db(void) { return take.level_db; }
EXPORT(take_snr_db) double take_snr_db(void) { return take.snr_db; }
EXPORT(max_word_s) double max_word_s(void) { return TAPWORD_ENDPOINT_LONG_S; }

/* Several takes in a recording. */
EXPORT(find_takes) int find_takes(size_t n)
{
    return tapword_find_takes(&takes, &endpointer, &model, audio, n);
}
EXPORT(sound_first) size_t sound_first(size_t i) { return takes.sounds[i].first; }
EXPORT(sound_end) size_t sound_end(size_t i) { return takes.sounds[i].end; }
EXPORT(sound_start) size_t sound_start(size_t i) { return takes.sounds[i].start; }
EXPORT(sound_is_take) int sound_is_take(size_t i) { return takes.sounds[i].is_take; }

EXPORT(check) int check(size_t n, int is_take)
{
    return tapword_lesson_check(&lesson, &model, audio, n, text[0], is_take, issues);
}
EXPORT(lesson_add) int lesson_add(void) { return tapword_lesson_add(&lesson, &model, issues); }
EXPORT(issue_name) const char *issue_name(size_t i) { return tapword_issue_name(issues[i].code); }
EXPORT(issue_other) int issue_other(size_t i) { return issues[i].other; }

/* A stream, and the words in it. */
EXPORT(stream_start) void stream_start(void) { tapword_listener_start(&listener); }
EXPORT(stream_gap) void stream_gap(uint32_t samples) { tapword_listener_gap(&listener, samples); }

static void clear_scores(void)
{
    size_t k;
    for (k = 0; k < TAPWORD_MAX_WORDS; k++) {
        model.scores[k] = NAN;
    }
}

EXPORT(stream_push) int stream_push(size_t n)
{
    int count;
    clear_scores();
    count = tapword_listener_push(&model, &listener, audio, n, events, EVENTS);
    /* The search for phrases leaves another measure there, which is no score. */
    if (listener.phrases) {
        clear_scores();
    }
    return count;
}

EXPORT(stream_flush) int stream_flush(void)
{
    return tapword_listener_flush(&model, &listener, events, EVENTS);
}
EXPORT(event_word) int event_word(size_t i) { return events[i].word; }
EXPORT(event_score) float event_score(size_t i) { return events[i].score; }
EXPORT(event_confidence) int event_confidence(size_t i) { return events[i].confidence; }
EXPORT(event_start) double event_start(size_t i) { return events[i].start; }
EXPORT(event_end) double event_end(size_t i) { return events[i].end; }

EXPORT(save) int save(void) { return tapword_save(&model, state, sizeof state); }
EXPORT(load) int load(size_t n) { return tapword_load(&model, state, n); }
