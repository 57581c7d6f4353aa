/* What a board needs around a model: a store in flash, teaching by a button, and a serial line.

   A program makes one tapword_board, gives it callbacks, and calls tapword_board_push with the
   microphone's samples. All calls come from one task, also those from callbacks. */
#ifndef TAPWORD_BOARD_H
#define TAPWORD_BOARD_H

#if !TAPWORD_HAS_LESSON || !TAPWORD_HAS_LISTENER
#error "TAPWORD_BOARD needs a model of size small"
#endif

/* Bytes before a state in a slot, and with those after it. */
#define TAPWORD_SLOT_HEAD 12
#define TAPWORD_SLOT_EXTRA (TAPWORD_SLOT_HEAD + 4)
/* Room for a slot. */
#define TAPWORD_SLOT_BYTES                                                                         \
    (TAPWORD_SLOT_EXTRA + 40 + 4 * (size_t)TAPWORD_SCATTER +                                       \
     TAPWORD_MAX_WORDS * (20 + TAPWORD_NAME_BYTES + 4 * (size_t)TAPWORD_DIM))

/* Two slots that keep their content without power: sectors of flash, entries of NVS, or files. */
typedef struct {
    /* Read a slot, 0 or 1: up to n bytes from its start. Returns how many, 0 if it is empty, or a
       negative number. */
    int (*read)(void *context, int slot, uint8_t *bytes, size_t n);
    /* Replace a slot's content by n bytes. Returns 0 or a negative number. */
    int (*write)(void *context, int slot, const uint8_t *bytes, size_t n);
    void *context;
} tapword_store;

/* Store what was learned in the slot that does not have the last good state, and read it back.
   1. When power fails meanwhile, tapword_store_load finds the last good state.
   2. `work` is memory for this call alone.
   Returns 0 or TAPWORD_NOT_STORED. */
int tapword_store_save(const tapword_store *store, const tapword *t,
                       uint8_t work[TAPWORD_SLOT_BYTES]);

/* Load the newest good state. Returns 1; 0 if nothing was stored, which leaves the model as it is;
   or a code of tapword_load or TAPWORD_NOT_STORED if no slot can be used. */
int tapword_store_load(const tapword_store *store, tapword *t, uint8_t work[TAPWORD_SLOT_BYTES]);

/* The longest recording of a take, with a second of sound before and 0.6 s of silence after the
   word, in ms. A take may be half as long. Define it before the first include, the same in every
   file. */
#ifndef TAPWORD_TAKE_MS
#define TAPWORD_TAKE_MS 3000
#endif
#define TAPWORD_TAKE_SAMPLES (TAPWORD_TAKE_MS * (TAPWORD_SAMPLE_RATE / 1000))
#if TAPWORD_TAKE_MS < 2000 || TAPWORD_TAKE_MS > 8000
#error "TAPWORD_TAKE_MS must be 2000 to 8000"
#endif

/* What a teacher says. */
#define TAPWORD_TEACHER_WAITING 0  /* say the word */
#define TAPWORD_TEACHER_SPEAKING 1 /* somebody speaks */
#define TAPWORD_TEACHER_HEARD 2    /* the next push checks the take, for seconds on a slow board */
#define TAPWORD_TEACHER_GOOD 3     /* the take is learned */
#define TAPWORD_TEACHER_DOUBTFUL 4 /* it is not; the teacher's issue says why */
#define TAPWORD_TEACHER_NOISE 5    /* it is not: there was no speech in it */
#define TAPWORD_TEACHER_NOBODY 6   /* nobody spoke for TAPWORD_ENDPOINT_WAIT_S: teaching ends */

/* Teaching one word by voice, one take after the other. */
typedef struct {
    tapword_endpointer endpointer;
    union {
        int16_t samples[TAPWORD_TAKE_SAMPLES];
        float take[TAPWORD_TAKE_SAMPLES / 2];
    } audio;
    tapword_checked checked;
    tapword_issue issue;
    char word[TAPWORD_NAME_BYTES];
    size_t dropped, filled; /* samples: earlier ones, and those that are kept */
    uint32_t left, learned; /* takes */
    int status;
    uint8_t can_keep;
} tapword_teacher;

/* Begin. Returns 0, TAPWORD_BAD_WORD or TAPWORD_FULL. */
int tapword_teacher_start(tapword_teacher *teacher, const tapword *t, const char *word,
                          uint32_t takes);

/* Push the next samples, at most TAPWORD_PIECE of them. After a take the next one is waited for,
   until teacher->left is 0. Returns TAPWORD_TEACHER_... or an error. */
#define TAPWORD_PIECE 640
int tapword_teacher_push(tapword_teacher *teacher, tapword *t, const int16_t *samples, size_t n);

/* Learn the last doubtful take. Returns TAPWORD_TEACHER_GOOD, or TAPWORD_UNKNOWN if there is none
   that can be learned. */
int tapword_teacher_keep(tapword_teacher *teacher, tapword *t);

/* Begin the take again, because samples were lost. */
void tapword_teacher_gap(tapword_teacher *teacher);

/* What a program does when something happens. Each may be NULL; without `read` and `write` nothing
   is stored. `context` is the first argument of all. */
typedef struct {
    /* A word was said; how sure that is, from 50 to 100. */
    void (*word)(void *context, const char *word, int confidence);
    /* A word was nearly said; how sure that is, below 50. */
    void (*near_miss)(void *context, const char *word, int confidence);
    /* Teaching went on: TAPWORD_TEACHER_..., the word, takes that are left, and the name of an
       issue or "". */
    void (*teaching)(void *context, int status, const char *word, uint32_t left, const char *issue);
    /* Bytes for the serial line: answers to commands and frames. */
    void (*send)(void *context, const uint8_t *bytes, size_t n);
    int (*read)(void *context, int slot, uint8_t *bytes, size_t n);
    int (*write)(void *context, int slot, const uint8_t *bytes, size_t n);
    void *context;
} tapword_callbacks;

/* A frame on a serial line: TAPWORD_FRAME_START, its kind, its number, the length of its content,
   the content, and a CRC-32 of all between. Numbers are little-endian. */
#define TAPWORD_FRAME_START "\001tw"
#define TAPWORD_FRAME_HEAD 7
#define TAPWORD_FRAME_BYTES 512
/* A transfer without a frame for this long ends. */
#define TAPWORD_LINK_WAIT_S 5

/* What a board does. */
#define TAPWORD_LISTENING 0
#define TAPWORD_TEACHING_MODE 1
#define TAPWORD_TRANSFERRING 2

/* A model on a board. */
typedef struct {
    tapword model;
    tapword_callbacks callbacks;
    /* Only one of these is used at a time. */
    union {
        tapword_listener listener;
        tapword_teacher teacher;
        uint8_t state[TAPWORD_SLOT_BYTES];
    } work;
    /* Vectors of the last word that was said, and of the latest that was scored as one. */
    float said[TAPWORD_DIM], scored[TAPWORD_DIM];
    char said_word[TAPWORD_NAME_BYTES], scored_word[TAPWORD_NAME_BYTES];
    char near_word[TAPWORD_NAME_BYTES];
    int near_confidence, mode, answered_status;
    int64_t pushed, near_at, said_at, last_centre; /* in samples */
    uint32_t silent;                               /* samples since the last frame */
    size_t expected, received;                     /* bytes of a transfer */
    size_t filled;                                 /* bytes in `frame`, a frame or a line */
    uint8_t frame[TAPWORD_FRAME_HEAD + TAPWORD_FRAME_BYTES + 4], in_frame;
    uint8_t answered_kind, answered_number;
} tapword_board;

/* Start with the stored words, or else with those of the export. Returns as tapword_store_load. */
int tapword_board_start(tapword_board *board, const tapword_callbacks *callbacks);

/* Push the next samples of the microphone. Callbacks are called from here. Returns 0 or an error.
 */
int tapword_board_push(tapword_board *board, const int16_t *samples, size_t n);

/* Report that samples were lost. */
void tapword_board_gap(tapword_board *board, uint32_t samples);

/* Teach a word by the next takes. What was learned is stored at the end.
   Returns 0, TAPWORD_BUSY, TAPWORD_BAD_WORD or TAPWORD_FULL. */
int tapword_board_teach(tapword_board *board, const char *word, uint32_t takes);

/* Learn the last doubtful take. Returns TAPWORD_TEACHER_GOOD or TAPWORD_UNKNOWN. */
int tapword_board_keep(tapword_board *board);

/* End teaching before the last take. Returns 0 or TAPWORD_NOT_STORED. */
int tapword_board_stop(tapword_board *board);

/* Learn that the last word was not said. It works once for each word, and not for phrases.
   Returns 0, or TAPWORD_UNKNOWN if there is no such word, or an error. */
int tapword_board_reject(tapword_board *board);

/* Forget a word, or set a sensitivity as tapword_set_sensitivity, and store that. */
int tapword_board_forget(tapword_board *board, const char *word);
int tapword_board_set_sensitivity(tapword_board *board, const char *word, float value);

/* Transfer a state, for example by HTTP. While it lasts, the board does not listen, and
   board->work.state has room for TAPWORD_SLOT_BYTES.
   1. Begin. Returns 0, or TAPWORD_BUSY while a word is taught.
   2. Write the state there, or load it from there and store it. Returns its bytes, or 0, or an
      error, with which the model is unchanged.
   3. Resume. After TAPWORD_LINK_WAIT_S without a step, counted in samples, the board does so. */
int tapword_board_begin(tapword_board *board);
int tapword_board_save_state(tapword_board *board);
int tapword_board_load_state(tapword_board *board, size_t n);
void tapword_board_resume(tapword_board *board);

/* Run a command: "teach WORD", "keep", "stop", "wrong", "forget WORD", "words" or
   "sensitivity VALUE". The answer is sent as a line. */
void tapword_board_command(tapword_board *board, const char *line);

/* Take bytes from the serial line: commands, one a line, and frames of `tapword import --port`. */
void tapword_board_receive(tapword_board *board, const uint8_t *bytes, size_t n);

#endif
