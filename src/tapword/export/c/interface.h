/* What the functions below return where they cannot do their work. */
#define TAPWORD_FULL (-1)       /* TAPWORD_MAX_WORDS are known already */
#define TAPWORD_BAD_WORD (-2)   /* not 1 to TAPWORD_NAME_BYTES - 1 bytes of printable UTF-8 */
#define TAPWORD_BAD_VECTOR (-3) /* NaN, infinite or huge numbers */
#define TAPWORD_BAD_AUDIO (-4)  /* none, more than TAPWORD_MAX_STEPS * TAPWORD_HOP, NaN or huge */
#define TAPWORD_UNKNOWN (-5)    /* no such word */
#define TAPWORD_DEPENDENT (-6)  /* the features are too nearly dependent to be solved for */
#define TAPWORD_TOO_LONG (-7)   /* more than TAPWORD_MAX_SOUND samples of sound: no phrase */
#define TAPWORD_NOISE (-8)      /* noise alone, which is no word */
#define TAPWORD_BAD_NUMBER (-9) /* a sensitivity that does not lie between 0 and 1 */
#define TAPWORD_BAD_STATE (-10) /* damaged, cut short, or no state at all */
#define TAPWORD_OTHER_STATE (-11) /* of a model that hears or learns in another way */
#define TAPWORD_NO_ROOM (-12)   /* fewer bytes than tapword_saved_bytes says */
#define TAPWORD_NO_WEIGHTS (-13)  /* tapword_weights was not given them yet */
#define TAPWORD_BAD_WEIGHTS (-14) /* not the file written with this header, damaged, or misplaced */

/* TAPWORD_NOT stands before a word's name where its negatives are meant: sounds that were taken for
   the word and are not it. */

/* Where a clip lies in a recording: its first sample, which may lie before the recording's, and how
   many it has. What lies outside of the recording is silence. */
typedef struct {
    ptrdiff_t start;
    size_t length;
} tapword_clip;

#if TAPWORD_EAR
#if TAPWORD_EIGHT_BITS
typedef int8_t tapword_ear_number;
#else
typedef float tapword_ear_number;
#endif

/* A stream that the ear hears, with all the memory that takes. */
typedef struct {
    float wave[2][TAPWORD_FFT];
    float sound[TAPWORD_EAR_OVERLAP + TAPWORD_EAR_HOP];
    float mel[TAPWORD_EAR_MELS][TAPWORD_BANDS];
    float x[TAPWORD_EAR_STEP], y[TAPWORD_EAR_STEP]; /* this step, before and after a block */
    float waiting[TAPWORD_EAR_WAITING], row[TAPWORD_EAR_ROW];
#if TAPWORD_EIGHT_BITS
    int32_t sums[TAPWORD_EAR_SUMS];
    int8_t bytes[TAPWORD_EAR_STEP];
#endif
    tapword_ear_number state[TAPWORD_EAR_STATE]; /* steps before this one, layer by layer */
    tapword_ear_number wide[TAPWORD_EAR_WIDE], looked[TAPWORD_EAR_LOOKED];
} tapword_ear;
#endif

/* All the memory there is: what was taught, and room to work in. Plain numbers: written to a file
   and read back by the same program, a model continues where it was. */
typedef struct {
#if TAPWORD_SCATTER
    double factors[TAPWORD_MAX_WORDS], biases[TAPWORD_MAX_WORDS];
#endif
    union {
        double sums[3][TAPWORD_MAX_STEPS + 1];
        struct {
#if TAPWORD_EAR
            tapword_ear ear;
            float samples[TAPWORD_EAR_HOP];
#else
            float wave[2][TAPWORD_FFT];
#endif
#if TAPWORD_INSIDE
            float frames[TAPWORD_FRAMES * TAPWORD_FRAME];
#endif
        } hearing;
#if TAPWORD_SCATTER
        struct {
            double centre[TAPWORD_DIM], extra[TAPWORD_DIM], right[TAPWORD_DIM];
            double factor[TAPWORD_FACTOR];
        } solving;
#endif
#if TAPWORD_WINDOWS
        float windows[TAPWORD_MOST_WINDOWS];
#endif
    } work;
    uint32_t words, samples, solved; /* samples: behind the scatter */
    uint32_t counts[TAPWORD_MAX_WORDS];
    float thresholds[TAPWORD_MAX_WORDS];
    /* Of the logarithms of samples' seconds: their mean, and their squares about it, summed. */
    float lengths[TAPWORD_MAX_WORDS][2];
    float sensitivity, sensitivities[TAPWORD_MAX_WORDS]; /* of words to come, and of each */
#if TAPWORD_WINDOWS
    float tails[TAPWORD_MAX_WORDS]; /* of scores in running speech: where they lie */
#endif
#if TAPWORD_INSIDE
    float vector[TAPWORD_DIM], taught[TAPWORD_DIM], scores[TAPWORD_MAX_WORDS]; /* of a clip */
#endif
    float means[TAPWORD_MAX_WORDS][TAPWORD_DIM];
#if TAPWORD_SCATTER
    float weights[TAPWORD_MAX_WORDS][TAPWORD_DIM];
    float scatter[TAPWORD_SCATTER];
#endif
    char names[TAPWORD_MAX_WORDS][TAPWORD_NAME_BYTES];
} tapword;

#if TAPWORD_APART
/* Hand over the file of weights that was written with this header, once and before all else. It is
   not copied and must stay where it is, at an address that is a multiple of 8; more may lie behind
   it, as in a partition of flash. 0 or TAPWORD_BAD_WEIGHTS. */
int tapword_weights(const uint8_t *file, size_t n);
#endif

/* Begin with the words that were taught before the export. */
void tapword_start(tapword *t);

/* What an error means: its name and one sentence. */
const char *tapword_error(int code);

#if TAPWORD_INSIDE
/* Learn that n samples, float in [-1, 1] at 16 kHz, are a word, known or new, from them and from
   augmented copies; as TAPWORD_NOT and a word, that they are not it. The word's number, or an error:
   noise alone is TAPWORD_NOISE. */
int tapword_teach(tapword *t, const float *audio, size_t n, const char *word);

/* Learn that samples are none of the words, whatever they were taken for: the number of that word,
   of which they become a negative; or an error. */
int tapword_reject(tapword *t, const float *audio, size_t n);

/* Which word samples are: its number, or an error. With reject, TAPWORD_UNKNOWN for noise and where
   no word reaches its threshold and scores higher than its negatives. The best word's score goes
   into `score`, unless that is NULL or no word is taught. */
int tapword_predict(tapword *t, const float *audio, size_t n, int reject, float *score);

/* The steps of which these are made: turn samples into the vector of the word that is said in them;
   `length` says how long the clip around it is. 0, TAPWORD_BAD_AUDIO or TAPWORD_TOO_LONG. */
int tapword_hear(tapword *t, const float *audio, size_t n, float vector[TAPWORD_DIM],
                 size_t *length);
#endif

/* Find the clip around the loudest sound of n samples: the second around its middle, or the whole
   of a sound of TAPWORD_CLIP samples and more. Models without TAPWORD_ALIGN take a recording as it
   is, a second of it at least. 0, TAPWORD_BAD_AUDIO or TAPWORD_TOO_LONG. */
int tapword_cut(tapword *t, const float *audio, size_t n, tapword_clip *clip);

#if TAPWORD_EAR
/* Begin to hear a stream; then hear it hop by hop. Each hop gives the frame of the sound
   TAPWORD_EAR_LATE hops before it. */
void tapword_ear_start(tapword_ear *ear);
void tapword_ear_hear(tapword_ear *ear, const float samples[TAPWORD_EAR_HOP],
                      float frame[TAPWORD_FRAME]);
#else
/* How many log-mel frames a clip gives: TAPWORD_MEL_FRAMES for one of TAPWORD_LONGEST samples. */
size_t tapword_mel_frames(size_t length);

/* Log-mel energies (frames, TAPWORD_BANDS) of a clip of n samples, silence around it included; the
   number of frames. */
size_t tapword_log_mel(tapword *t, const float *audio, size_t n, tapword_clip clip, float *mel);
#endif

/* Pool the backbone's blocks, counts[i] frames of tapword_widths[i] numbers each, one after the
   other; whiten them where the model does. */
extern const uint16_t tapword_widths[TAPWORD_BLOCKS];
void tapword_vector(const float *const frames[TAPWORD_BLOCKS], const size_t counts[TAPWORD_BLOCKS],
                    float vector[TAPWORD_DIM]);

/* Learn that a vector is a word, known or new: the word's number, or an error. */
int tapword_learn(tapword *t, const float vector[TAPWORD_DIM], const char *word);

/* Remove a word and its negatives: 0 or TAPWORD_UNKNOWN. Numbers of what stood behind fall. */
int tapword_forget(tapword *t, const char *word);

/* How readily a word is heard, or with NULL all words and those to come: from 0 to 1, at first
   TAPWORD_SENSITIVITY; each tenth is 2.5 times as many false alarms. 0, TAPWORD_UNKNOWN or
   TAPWORD_BAD_NUMBER. */
int tapword_set_sensitivity(tapword *t, const char *word, float value);

/* Bytes of all that was learned, as a state that tapword_load reads again, here or on another device
   of the same parts, and `tapword import`. */
size_t tapword_saved_bytes(const tapword *t);

/* Write the state: how many bytes it is, or TAPWORD_NO_ROOM. */
int tapword_save(const tapword *t, uint8_t *bytes, size_t room);

/* Know what a state knows, instead of all before: 0, TAPWORD_BAD_STATE, TAPWORD_OTHER_STATE, or
   TAPWORD_FULL, TAPWORD_BAD_WORD of a state with more or longer words than there is room for. After
   an error all is as it was. */
int tapword_load(tapword *t, const uint8_t *bytes, size_t n);

/* Number of a word, or TAPWORD_UNKNOWN. */
int tapword_find(const tapword *t, const char *word);

/* Score a vector, of a clip of `length` samples, for each of t->words words; the first call after
   a change solves for the weights. 0, TAPWORD_BAD_VECTOR or TAPWORD_DEPENDENT. */
int tapword_scores(tapword *t, const float vector[TAPWORD_DIM], size_t length,
                   float scores[TAPWORD_MAX_WORDS]);

/* Best word by its scores; with reject, TAPWORD_UNKNOWN where no word reaches its threshold and
   scores higher than its negatives. */
int tapword_decide(const tapword *t, const float scores[TAPWORD_MAX_WORDS], int reject);
