/* A stream that is listened to, and what is heard in it: as Python's Detector hears it. */

/* The longest stretch in which a phrase is looked for, in hops of the ear. A program that has less
   memory may say less before it includes this file, everywhere the same; with 0 there is no
   listening for phrases, words of more than a second. */
#ifndef TAPWORD_PHRASE_HOPS
#define TAPWORD_PHRASE_HOPS TAPWORD_STRETCH_LONGEST
#endif
#if TAPWORD_PHRASE_HOPS && TAPWORD_PHRASE_HOPS < TAPWORD_STRETCH_LEAD
#error "TAPWORD_PHRASE_HOPS must be 0, or TAPWORD_STRETCH_LEAD at least"
#endif
/* How much is kept of a stream: steps of TAPWORD_HOP samples, since windows are looked at late and
   beside where they were found; frames of the ear; and samples, of which both are made. */
#define TAPWORD_KEPT_STEPS \
    (2 * TAPWORD_SEARCH_HALF + TAPWORD_SEARCH_APART + 2 * TAPWORD_SEARCH_FARTHEST)
#define TAPWORD_KEPT_FRAMES (TAPWORD_PHRASE_HOPS + TAPWORD_STRETCH_STEP)
#if TAPWORD_PHRASE_HOPS && TAPWORD_KEPT_FRAMES * TAPWORD_EAR_HOP > TAPWORD_KEPT_STEPS * TAPWORD_HOP
#define TAPWORD_KEPT_SAMPLES (TAPWORD_KEPT_FRAMES * TAPWORD_EAR_HOP)
#else
#define TAPWORD_KEPT_SAMPLES (TAPWORD_KEPT_STEPS * TAPWORD_HOP)
#endif

/* A word that was heard: its number, its score, and from where to where in the stream it was said,
   in seconds since the stream's start. */
typedef struct {
    int word;
    float score;
    double start, end;
} tapword_event;

/* The same inside of a listener, by name, since numbers fall when a word is forgotten; without a
   name it is nothing. */
typedef struct {
    double start, end;
    float score;
    uint32_t phrase;
    char word[TAPWORD_NAME_BYTES];
} tapword_said;

/* All the memory of a stream beside the model's. */
typedef struct {
    int64_t first, steps; /* samples before the first step, whole steps since */
    int64_t centre;       /* the last step around which a window lay */
    int64_t last_centre;  /* of the last word, in samples */
    double energy[TAPWORD_KEPT_STEPS], step_energy, floor_db;
    int64_t unclear[2 * (TAPWORD_SEARCH_FARTHEST + 1)]; /* centres that are to be looked beside */
    tapword_said last, phrase, rising; /* the last word and phrase, and one that is being said */
    tapword_said waiting[TAPWORD_WAITING], due[TAPWORD_WAITING];
#if TAPWORD_PHRASE_HOPS
    int64_t anchor, hops; /* samples before the first hop, hops since */
    int64_t from, until;  /* of which hops there are frames */
    tapword_ear ear;
    float frames[TAPWORD_KEPT_FRAMES][TAPWORD_FRAME];
    uint32_t hears, settled, early, missing;
#endif
    uint32_t phrases, filled, place, step_place, unclears, waits, dues;
    int16_t sound[TAPWORD_KEPT_SAMPLES];
    uint8_t wanted[TAPWORD_MAX_WORDS];
} tapword_listener;

/* Begin to listen to a stream. */
void tapword_listen_start(tapword_listener *l);

/* Hear the next n samples, float in [-1, 1] at 16 kHz, any number of them, and give the words that
   were heard, in order: how many, or an error. A chunk with NaN or huge numbers is
   TAPWORD_BAD_AUDIO, and the stream goes on as if it had not come. TAPWORD_DEPENDENT is returned by
   calls that give no word, for as long as it holds. Where there are more words than there is room
   for, the rest comes with the next call, TAPWORD_WAITING of them at most. */
int tapword_listen(tapword *t, tapword_listener *l, const float *audio, size_t n,
                   tapword_event *events, size_t room);

/* Hear a moment of silence, for words at the very end of a stream; returns as tapword_listen. */
int tapword_listen_end(tapword *t, tapword_listener *l, tapword_event *events, size_t room);

/* Note that so many samples were lost: what comes does not follow on what was heard. */
void tapword_listen_gap(tapword_listener *l, uint32_t samples);
