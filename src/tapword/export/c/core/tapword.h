/* tapword: keyword spotting that keeps learning on the device.

   This is the whole interface. tapword_model.h has the sizes of one model.

   1. All of it is C99 and needs libm. Nothing is allocated.
   2. Audio is mono, float in [-1, 1], at 16 kHz.
   3. A function that returns an int returns a negative TAPWORD_... code if it fails. The model is
      then unchanged. tapword_error describes the code.
   4. A word is known by its number, 0 to t->words - 1. Numbers change when a word is forgotten.
   5. A name is UTF-8 and compared byte by byte.
   6. A name that begins with TAPWORD_NEGATIVE stands for the negatives of the word that follows:
      sounds that were mistaken for the word.
   7. sizeof(tapword) is all the memory of a model, sizeof(tapword_listener) that of a stream.
   8. Functions without a note on threads share nothing but their arguments. */
#ifndef TAPWORD_H
#define TAPWORD_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>

#include "tapword_model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TAPWORD_FULL (-1)         /* TAPWORD_MAX_WORDS are known already */
#define TAPWORD_BAD_WORD (-2)     /* not 1 to TAPWORD_WORD_BYTES bytes of printable UTF-8 */
#define TAPWORD_BAD_VECTOR (-3)   /* NaN, infinite or too large */
#define TAPWORD_BAD_AUDIO (-4)    /* empty, over TAPWORD_MAX_SAMPLES, NaN or too large */
#define TAPWORD_UNKNOWN (-5)      /* no such word */
#define TAPWORD_DEPENDENT (-6)    /* the covariance cannot be inverted */
#define TAPWORD_TOO_LONG (-7)     /* over TAPWORD_MAX_SOUND samples of sound without a pause */
#define TAPWORD_NOISE (-8)        /* only noise */
#define TAPWORD_BAD_NUMBER (-9)   /* a sensitivity outside of 0 to 1 */
#define TAPWORD_BAD_STATE (-10)   /* not a saved state, or damaged */
#define TAPWORD_OTHER_STATE (-11) /* the state of a model of other parts */
#define TAPWORD_NO_ROOM (-12)     /* fewer bytes than tapword_saved_bytes returns */
#define TAPWORD_NO_WEIGHTS (-13)  /* tapword_set_weights was not called yet */
#define TAPWORD_BAD_WEIGHTS (-14) /* not the weights of this model, damaged, or misaligned */
#define TAPWORD_NOT_STORED (-15)  /* the store could not be read or written */
#define TAPWORD_BUSY (-16)        /* the board is teaching or transferring its words */

/* The longest recording, in steps of TAPWORD_HOP samples: 5 s, a long phrase with a second around
   it. Define it before the first include, the same in every file, for another. */
#ifndef TAPWORD_MAX_STEPS
#define TAPWORD_MAX_STEPS 500
#endif
#define TAPWORD_MAX_SAMPLES (TAPWORD_MAX_STEPS * TAPWORD_HOP)

#if TAPWORD_MAX_WORDS < TAPWORD_WORDS
#error "TAPWORD_MAX_WORDS is less than the words of the model"
#endif

/* Room for a name: a word, what marks it as negatives, and a 0. */
#define TAPWORD_NAME_BYTES (TAPWORD_WORD_BYTES + sizeof TAPWORD_NEGATIVE)

/* A clip in a recording: its first sample, which may be negative, and its length. Samples outside
   of the recording are silence. */
typedef struct {
    ptrdiff_t start;
    size_t length;
} tapword_clip;

#if TAPWORD_HAS_EAR
/* Numbers of the network; and how a listener keeps its frames, as floats of 16 bits, and its input,
   scaled to whole numbers. */
#if TAPWORD_EIGHT_BITS
typedef int8_t tapword_ear_number;
typedef uint16_t tapword_kept_number;
typedef int16_t tapword_kept_mel;
#else
typedef float tapword_ear_number;
typedef float tapword_kept_number;
typedef float tapword_kept_mel;
#endif

/* What the network remembers of a stream. */
typedef struct {
    float sound[TAPWORD_EAR_OVERLAP + TAPWORD_EAR_HOP];
    float mel[TAPWORD_EAR_MELS][TAPWORD_BANDS];
    float waiting[TAPWORD_EAR_WAITING];
    tapword_ear_number state[TAPWORD_EAR_STATE]; /* earlier steps, layer by layer */
} tapword_ear_memory;

/* The network on one stream. */
typedef struct {
    tapword_ear_memory memory;
    float wave[2][TAPWORD_FFT];
    float x[TAPWORD_EAR_STEP], y[TAPWORD_EAR_STEP]; /* this step, before and after a block */
    float row[TAPWORD_EAR_ROW];
#if TAPWORD_EIGHT_BITS
    int32_t sums[TAPWORD_EAR_SUMS];
    int8_t bytes[TAPWORD_EAR_STEP];
#endif
    tapword_ear_number wide[TAPWORD_EAR_WIDE], filtered[TAPWORD_EAR_FILTERED];
} tapword_ear;
#endif

/* A model: what it learned, and its working memory. It holds no pointers. A copy is another model,
   and the same program can write it to a file and read it back. */
typedef struct {
#if TAPWORD_SCATTER
    double factors[TAPWORD_MAX_WORDS], biases[TAPWORD_MAX_WORDS];
#endif
    union {
        double sums[3][TAPWORD_MAX_STEPS + 1];
        struct {
#if TAPWORD_HAS_EAR
            tapword_ear ear;
            float samples[TAPWORD_EAR_HOP];
#else
            float wave[2][TAPWORD_FFT];
#endif
#if TAPWORD_HAS_BACKBONE
            float frames[TAPWORD_FRAMES * TAPWORD_FRAME];
#endif
        } encoding;
#if TAPWORD_SCATTER
        struct {
            double centre[TAPWORD_DIM], extra[TAPWORD_DIM], right[TAPWORD_DIM];
            double factor[TAPWORD_FACTOR];
        } solving;
#endif
#if TAPWORD_COHORT
        float cohort[TAPWORD_MAX_COHORT];
#endif
    } work;
    uint32_t words, samples, solved; /* samples: those in the scatter */
    uint32_t counts[TAPWORD_MAX_WORDS];
    float thresholds[TAPWORD_MAX_WORDS];
    /* Logarithms of the samples' seconds: their mean, and the sum of their squared deviations. */
    float lengths[TAPWORD_MAX_WORDS][2];
    float sensitivity, sensitivities[TAPWORD_MAX_WORDS]; /* of new words, and of each word */
#if TAPWORD_COHORT
    float tails[TAPWORD_MAX_WORDS]; /* mean of the tail of each word's scores in running speech */
#endif
#if TAPWORD_HAS_BACKBONE
    float vector[TAPWORD_DIM], taught[TAPWORD_DIM], scores[TAPWORD_MAX_WORDS]; /* of a clip */
#endif
    float means[TAPWORD_MAX_WORDS][TAPWORD_DIM];
#if TAPWORD_SCATTER
    float weights[TAPWORD_MAX_WORDS][TAPWORD_DIM];
    float scatter[TAPWORD_SCATTER];
#endif
    char names[TAPWORD_MAX_WORDS][TAPWORD_NAME_BYTES];
} tapword;

#if TAPWORD_SEPARATE_WEIGHTS
/* Set the weights, which were written to a file of their own. Call this first.
   1. The bytes are not copied. They must stay in place, at an address that is a multiple of 8.
   2. More bytes may follow them, as in a partition of flash.
   Returns 0 or TAPWORD_BAD_WEIGHTS. */
int tapword_set_weights(const uint8_t *file, size_t n);
#endif

/* Start with the words that were taught before the export. */
void tapword_start(tapword *t);

/* Describe a code: its name, a colon and one sentence. */
const char *tapword_error(int code);

#if TAPWORD_HAS_BACKBONE
/* Learn a clip of a word, known or new, and of the clip's augmented copies.
   Returns the word's number. A clip of noise is refused with TAPWORD_NOISE, unless it is taught as
   a negative. */
int tapword_teach(tapword *t, const float *audio, size_t n, const char *word);

/* Learn that a clip is none of the words. It becomes a negative of the nearest word.
   Returns that word's number. */
int tapword_reject(tapword *t, const float *audio, size_t n);

/* Predict the word in a clip.
   1. If reject is not 0, noise and words below their thresholds give TAPWORD_UNKNOWN.
   2. The best word's score is written to `score`, unless that is NULL or no word is known.
   Returns the word's number. */
int tapword_predict(tapword *t, const float *audio, size_t n, int reject, float *score);

/* Turn a clip into its vector; `length` becomes the clip's length in samples.
   Returns 0, TAPWORD_BAD_AUDIO or TAPWORD_TOO_LONG. */
int tapword_encode(tapword *t, const float *audio, size_t n, float vector[TAPWORD_DIM],
                   size_t *length);
#endif

/* Find the clip around the loudest sound of a recording.
   1. It is one second around the sound's middle, or all of a sound of TAPWORD_CLIP samples or more.
   2. A model without TAPWORD_ALIGN takes the recording as it is, at least a second of it.
   Returns 0, TAPWORD_BAD_AUDIO or TAPWORD_TOO_LONG. */
int tapword_cut(tapword *t, const float *audio, size_t n, tapword_clip *clip);

#if TAPWORD_HAS_EAR
/* Run the network on a stream: start it, then push one hop after the other. A hop gives the frame
   of the sound TAPWORD_EAR_LATENCY hops before. A stream starts after TAPWORD_EAR_SILENCE hops of
   silence, so separate weights must be there. Input is not checked. */
void tapword_ear_start(tapword_ear *ear);
void tapword_ear_push(tapword_ear *ear, const float samples[TAPWORD_EAR_HOP],
                      float frame[TAPWORD_FRAME]);
#else
/* Number of log-mel frames of a clip: at most TAPWORD_MEL_FRAMES. */
size_t tapword_mel_frames(size_t length);

/* Log-mel energies (frames, TAPWORD_BANDS) of a clip in a recording of n samples.
   Returns the number of frames. Input is not checked. */
size_t tapword_log_mel(tapword *t, const float *audio, size_t n, tapword_clip clip, float *mel);
#endif

/* Pool the backbone's blocks, counts[i] frames of tapword_widths[i] numbers each, and whiten the
   vector where the model does. Input is not checked. */
extern const uint16_t tapword_widths[TAPWORD_BLOCKS];
void tapword_vector(const float *const frames[TAPWORD_BLOCKS], const size_t counts[TAPWORD_BLOCKS],
                    float vector[TAPWORD_DIM]);

/* Learn a vector of a word, known or new. Returns the word's number. */
int tapword_learn(tapword *t, const float vector[TAPWORD_DIM], const char *word);

/* Forget a word and its negatives. Returns 0 or TAPWORD_UNKNOWN. */
int tapword_forget(tapword *t, const char *word);

/* Set the sensitivity of a word, from 0 to 1; with NULL, of all words and of new ones.
   Each 0.1 allows 2.5 times as many false alarms.
   Returns 0, TAPWORD_UNKNOWN or TAPWORD_BAD_NUMBER. */
int tapword_set_sensitivity(tapword *t, const char *word, float value);

/* Size of the saved state in bytes. */
size_t tapword_saved_bytes(const tapword *t);

/* Save what was learned, for tapword_load on any device of the same parts and `tapword import`.
   Returns the number of bytes, or TAPWORD_NO_ROOM. */
int tapword_save(const tapword *t, uint8_t *bytes, size_t room);

/* Replace all that was learned by a saved state.
   Returns 0, TAPWORD_BAD_STATE or TAPWORD_OTHER_STATE; or TAPWORD_FULL or TAPWORD_BAD_WORD if the
   state has more or longer words than fit. */
int tapword_load(tapword *t, const uint8_t *bytes, size_t n);

/* Number of a word, or TAPWORD_UNKNOWN. */
int tapword_find(const tapword *t, const char *word);

/* Score a vector for each of the t->words words; `length` is its clip's length in samples.
   The first call after a change solves for the weights.
   Returns 0, TAPWORD_BAD_VECTOR or TAPWORD_DEPENDENT. */
int tapword_scores(tapword *t, const float vector[TAPWORD_DIM], size_t length,
                   float scores[TAPWORD_MAX_WORDS]);

/* The word with the highest score. If reject is not 0, it must reach its threshold and score higher
   than its negatives. Returns the word's number or TAPWORD_UNKNOWN. */
int tapword_decide(const tapword *t, const float scores[TAPWORD_MAX_WORDS], int reject);

/* How sure a word's score makes us, from 0 to 100: 50 is where the word counts as said, at its
   threshold or above its negatives.
   1. After tapword_predict, t->scores has the scores.
   2. Noise has scores too: ask tapword_predict first whether a clip is any word.
   Returns TAPWORD_UNKNOWN if there is no such word, or the model has no thresholds. */
int tapword_confidence(const tapword *t, const float scores[TAPWORD_MAX_WORDS], int word);

#if TAPWORD_HAS_LISTENER
/* The longest segment that is searched for a phrase, a word of more than a second, in hops of the
   network. Define it before the first include, the same in every file. Less takes less memory. With
   0 there are no phrases. */
#ifndef TAPWORD_PHRASE_HOPS
#define TAPWORD_PHRASE_HOPS TAPWORD_SEGMENT_LONGEST
#endif
#if TAPWORD_STREAMS
/* Frames beyond those that candidates need, so that they are seldom moved. */
#define TAPWORD_SPARE_FRAMES 8
#endif
#if TAPWORD_PHRASE_HOPS && TAPWORD_PHRASE_HOPS < TAPWORD_SEGMENT_LEAD
#error "TAPWORD_PHRASE_HOPS must be 0, or at least TAPWORD_SEGMENT_LEAD"
#endif
/* What is kept of a stream: steps of TAPWORD_HOP samples, since windows are scored late and beside
   where they were found; the network's input and frames of the longest segment; and samples, of
   which windows and later frames are made. With TAPWORD_STREAMS, the frames of the stream are all
   that candidates are scored by: then no samples are kept. */
#define TAPWORD_KEPT_STEPS                                                                         \
    (2 * TAPWORD_SEARCH_HALF + TAPWORD_SEARCH_APART + 2 * TAPWORD_SEARCH_MAX_OFFSET +              \
     TAPWORD_SEARCH_PATIENCE + TAPWORD_SEARCH_LAG)
#if !TAPWORD_STREAMS
#define TAPWORD_KEPT_FRAMES (TAPWORD_PHRASE_HOPS + TAPWORD_SEGMENT_STEP)
#elif TAPWORD_PHRASE_HOPS * TAPWORD_EAR_HOP > TAPWORD_KEPT_STEPS * TAPWORD_HOP
#define TAPWORD_KEPT_FRAMES (TAPWORD_PHRASE_HOPS + TAPWORD_SPARE_FRAMES)
#else
#define TAPWORD_KEPT_FRAMES                                                                        \
    (TAPWORD_KEPT_STEPS * TAPWORD_HOP / TAPWORD_EAR_HOP + TAPWORD_SPARE_FRAMES)
#endif
/* Hops that the network runs over when it starts again. */
#define TAPWORD_LEAD_HOPS (TAPWORD_SEGMENT_STEP + TAPWORD_SEGMENT_LEAD)
#if TAPWORD_PHRASE_HOPS && TAPWORD_LEAD_HOPS * TAPWORD_EAR_HOP > TAPWORD_KEPT_STEPS * TAPWORD_HOP
#define TAPWORD_KEPT_SAMPLES (TAPWORD_LEAD_HOPS * TAPWORD_EAR_HOP)
#else
#define TAPWORD_KEPT_SAMPLES (TAPWORD_KEPT_STEPS * TAPWORD_HOP)
#endif
/* Log-mel frames of a hop; and those more that a stream has if it begins there, since their windows
   begin before it. */
#define TAPWORD_HOP_MELS (TAPWORD_EAR_HOP / TAPWORD_STEP)
#define TAPWORD_FIRST_MELS ((TAPWORD_EAR_OVERLAP + TAPWORD_STEP - 1) / TAPWORD_STEP)

/* A word in a stream: its number, its score, how sure that makes us, from 50 to 100, and its start
   and end in seconds since the stream's start. */
typedef struct {
    int word;
    float score;
    int confidence;
    double start, end;
} tapword_event;

/* The same inside of a listener, by name, since numbers change; an empty name is no candidate. */
typedef struct {
    double start, end;
    float score;
    int confidence;
    uint32_t phrase;
    char word[TAPWORD_NAME_BYTES];
} tapword_candidate;

/* A centre that is scored at offsets: since which step, and how many of them were scored. */
typedef struct {
    int64_t centre, since;
    size_t scored;
} tapword_unclear;

/* A stream, with all its memory beside the model's. */
typedef struct {
    int64_t first, steps; /* samples before the first step, whole steps since */
    int64_t centre;       /* the last step that a window was centred on */
    int64_t busy;         /* the last point at which a window was scored */
    int64_t last_centre;  /* of the last word, in samples */
    double energy[TAPWORD_KEPT_STEPS], step_energy, floor_db;
    tapword_unclear unclear[2 * (TAPWORD_SEARCH_MAX_OFFSET + TAPWORD_SEARCH_PATIENCE + 1)];
    tapword_candidate last, phrase, rising; /* the last word and phrase, and a phrase in progress */
    tapword_candidate waiting[TAPWORD_WAITING], ready[TAPWORD_WAITING];
#if TAPWORD_PHRASE_HOPS || TAPWORD_STREAMS
    int64_t anchor, hops; /* samples before the first hop, hops since */
    int64_t from, until;  /* first hop whose frame is kept, and hops that were pushed */
    tapword_kept_number frames[TAPWORD_KEPT_FRAMES][TAPWORD_FRAME];
    uint32_t ear_started, final, skip, missing;
#endif
#if TAPWORD_PHRASE_HOPS && !TAPWORD_STREAMS
    tapword_ear_memory ear;
    tapword_kept_mel mels[TAPWORD_KEPT_FRAMES][TAPWORD_HOP_MELS + TAPWORD_FIRST_MELS]
                         [TAPWORD_BANDS];
#endif
    uint32_t phrases, filled, place, step_place, n_unclear, n_waiting, n_ready;
#if TAPWORD_STREAMS
    tapword_ear ear;
    int64_t begun; /* hop from which phrases are searched */
    float hop[TAPWORD_EAR_HOP];
#else
    int16_t sound[TAPWORD_KEPT_SAMPLES];
#endif
    uint8_t wanted[TAPWORD_MAX_WORDS];
#ifdef TAPWORD_BOARD
    tapword_candidate near_miss; /* the last word that was nearly said */
#endif
} tapword_listener;

/* Start a stream. */
void tapword_listener_start(tapword_listener *l);

/* Push the next n samples of a stream, any number of them.
   1. Words are written to `events`, in order. Those for which there is no room come with the next
      call, at most TAPWORD_WAITING of them.
   2. A chunk with NaN or too large numbers is TAPWORD_BAD_AUDIO and is skipped.
   3. TAPWORD_DEPENDENT is returned only by calls that give no word.
   Returns the number of events. */
int tapword_listener_push(tapword *t, tapword_listener *l, const float *audio, size_t n,
                          tapword_event *events, size_t room);

/* Push a moment of silence, for words at the very end of a stream. Returns the number of events. */
int tapword_listener_flush(tapword *t, tapword_listener *l, tapword_event *events, size_t room);

/* Report that samples were lost. */
void tapword_listener_gap(tapword_listener *l, uint32_t samples);
#endif

/* Define TAPWORD_BOARD before the first include, the same in every file, for what a board needs
   around a model: teaching by a button, a store in flash, and a serial line. It includes
   TAPWORD_TEACHING. */
#if defined TAPWORD_BOARD && !defined TAPWORD_TEACHING
#define TAPWORD_TEACHING
#endif

/* Define TAPWORD_TEACHING before the first include, the same in every file, for teaching by voice:
   an end-pointer, and checks on a take before it is taught. Codes of issues are TAPWORD_ISSUE_...,
   the same as in Python. */
#if defined TAPWORD_TEACHING && TAPWORD_HAS_BACKBONE && TAPWORD_COHORT
#define TAPWORD_HAS_LESSON 1
#else
#define TAPWORD_HAS_LESSON 0
#endif
#ifdef TAPWORD_TEACHING

/* Name of an issue's code, such as "cut_off"; "" for 0. */
const char *tapword_issue_name(int code);

#define TAPWORD_ENDPOINT_FRAME (TAPWORD_ENDPOINT_FRAME_MS * (TAPWORD_SAMPLE_RATE / 1000))
#define TAPWORD_ENDPOINT_HOP (TAPWORD_ENDPOINT_HOP_MS * (TAPWORD_SAMPLE_RATE / 1000))
#define TAPWORD_ENDPOINT_FFT (2 * TAPWORD_ENDPOINT_FRAME)

/* What an end-pointer says of a recording. */
#define TAPWORD_ENDPOINT_WAITING 0  /* nobody spoke yet */
#define TAPWORD_ENDPOINT_SPEAKING 1 /* somebody speaks */
#define TAPWORD_ENDPOINT_OVER 2     /* silence followed, or it is longer than a word */
#define TAPWORD_ENDPOINT_NOBODY 3   /* nobody spoke for TAPWORD_ENDPOINT_WAIT_S */

/* The longest recording: a take. Define more frames for files with several takes. */
#ifndef TAPWORD_RECORDING_FRAMES
#define TAPWORD_RECORDING_FRAMES TAPWORD_ENDPOINT_FRAMES
#endif
#define TAPWORD_ENDPOINT_SAMPLES (TAPWORD_RECORDING_FRAMES * TAPWORD_ENDPOINT_HOP)

/* Numbers of the end-pointer. Most boards compute with doubles in software. */
#ifdef TAPWORD_BOARD
typedef float tapword_level;
#else
typedef double tapword_level;
#endif

/* A recording of one word, as it is made; the samples are not kept. */
typedef struct {
    tapword_level turn[2][TAPWORD_ENDPOINT_FFT / 2], window[TAPWORD_ENDPOINT_FRAME], window_power;
    tapword_level taper[TAPWORD_ENDPOINT_FRAME], wave[2][TAPWORD_ENDPOINT_FFT];
    tapword_level levels[TAPWORD_RECORDING_FRAMES], sorted[TAPWORD_RECORDING_FRAMES];
    uint32_t filled, frames, n_spans, spans[TAPWORD_RECORDING_FRAMES][2]; /* speech, in frames */
    float samples[TAPWORD_ENDPOINT_FRAME];
    uint8_t voiced[TAPWORD_RECORDING_FRAMES];
} tapword_endpointer;

/* What was found in a recording of one word. */
typedef struct {
    int issue;          /* 0, or the code of what is wrong */
    size_t first, last; /* samples of the speech; both 0 if there is none */
    size_t start, end;  /* samples of the take: the speech with a margin on each side */
    double level_db;    /* level of the speech, in dB of full scale */
    double snr_db;      /* the same over the background */
} tapword_take;

/* Follow a recording: start, then push chunks. Returns TAPWORD_ENDPOINT_... */
void tapword_endpointer_start(tapword_endpointer *e);
int tapword_endpointer_push(tapword_endpointer *e, const float *audio, size_t n);

/* Find the one word in a whole recording, and check whether it is fit to learn from.
   Returns 0 or TAPWORD_BAD_AUDIO. */
int tapword_examine(tapword_endpointer *e, const float *audio, size_t n, tapword_take *take);

#if TAPWORD_HAS_LESSON
/* An issue: its code, and the number of the other word or TAPWORD_UNKNOWN. */
typedef struct {
    int code, other;
} tapword_issue;

/* Issues of one clip. */
#define TAPWORD_MAX_ISSUES 3

/* A clip that was checked, and what learning needs of it. */
typedef struct {
    char word[TAPWORD_NAME_BYTES];
    size_t length;
    float vector[TAPWORD_DIM];
    uint8_t other_word; /* whether it sounded like another word */
} tapword_checked;

/* Check a clip as tapword_check does, and remember it. Returns the number of issues. */
int tapword_check(tapword_checked *checked, tapword *t, const float *audio, size_t n,
                  const char *word, int take, tapword_issue issues[TAPWORD_MAX_ISSUES]);

/* Learn the clip that was checked, as tapword_teach does, noise too. Returns the word's number. */
int tapword_learn_checked(tapword *t, const tapword_checked *checked);

/* Takes of one word that are taught one after the other, and the model before the first. */
typedef struct {
    tapword before, trial;
    tapword_checked checked;
    char word[TAPWORD_NAME_BYTES];
    size_t lengths[TAPWORD_LESSON_TAKES];
    float vectors[TAPWORD_LESSON_TAKES][TAPWORD_DIM];
    uint32_t takes;
    uint8_t others[TAPWORD_LESSON_TAKES]; /* whether a take sounded like another word */
} tapword_lesson;

void tapword_lesson_start(tapword_lesson *lesson);

/* Check a clip as tapword_check does, and remember it. Returns the number of issues. */
int tapword_lesson_check(tapword_lesson *lesson, tapword *t, const float *audio, size_t n,
                         const char *word, int take, tapword_issue issues[TAPWORD_MAX_ISSUES]);

/* Add the clip that was checked last, before it is taught, and compare the latest clips of its word
   with the other words: whether they are close, or some clips sound like another. A clip of another
   word starts a new lesson.
   Returns the number of issues. */
int tapword_lesson_add(tapword_lesson *lesson, const tapword *t,
                       tapword_issue issues[TAPWORD_LESSON_TAKES]);

/* A sound in a recording of one word: its samples with a margin on each side, the first sample of
   the sound itself, and whether it is a take: 0 if it is unlike the other sounds. */
typedef struct {
    size_t first, end, start;
    int is_take;
} tapword_sound;

/* Most sounds of a recording: each is longer than a click, and a gap separates two. */
#define TAPWORD_MAX_SOUNDS                                                                         \
    (TAPWORD_RECORDING_FRAMES * TAPWORD_ENDPOINT_HOP_MS /                                          \
         (TAPWORD_ENDPOINT_CLICK_MS + TAPWORD_ENDPOINT_GAP_MS) +                                   \
     1)

/* The sounds of a recording, and their vectors. */
typedef struct {
    tapword_sound sounds[TAPWORD_MAX_SOUNDS];
    float vectors[TAPWORD_MAX_SOUNDS][TAPWORD_DIM];
} tapword_takes;

/* Find several takes of one word in a recording.
   Returns the number of sounds: at least two takes, and sounds that are unlike them; 0 if there are
   no takes; or an error. */
int tapword_find_takes(tapword_takes *takes, tapword_endpointer *e, tapword *t, const float *audio,
                       size_t n);
#endif
#endif

#ifdef TAPWORD_BOARD
#include "tapword_board.h"
#endif

#ifdef __cplusplus
}
#endif

#endif
