/* What the functions below return where they cannot do their work. */
#define TAPWORD_FULL (-1)       /* TAPWORD_MAX_WORDS are known already */
#define TAPWORD_BAD_WORD (-2)   /* empty, or longer than TAPWORD_NAME_BYTES - 1 bytes */
#define TAPWORD_BAD_VECTOR (-3) /* NaN, infinite or huge numbers */
#define TAPWORD_BAD_AUDIO (-4)  /* no samples, or more than TAPWORD_MAX_STEPS * TAPWORD_HOP */
#define TAPWORD_UNKNOWN (-5)    /* no such word */
#define TAPWORD_DEPENDENT (-6)  /* the features are too nearly dependent to be solved for */
#define TAPWORD_TOO_LONG (-7)   /* more than TAPWORD_MAX_SOUND samples of sound: no phrase */

/* TAPWORD_NOT stands before a word's name where its negatives are meant: sounds that were taken for
   the word and are not it. */

/* All the memory there is: what was taught, and room to work in. Plain numbers: written to a file
   and read back by the same program, a model continues where it was. */
typedef struct {
#if TAPWORD_SCATTER
    double centre[TAPWORD_DIM], extra[TAPWORD_DIM], right[TAPWORD_DIM];
    double factors[TAPWORD_MAX_WORDS], biases[TAPWORD_MAX_WORDS];
#endif
    union {
        double sums[3][TAPWORD_MAX_STEPS + 1];
        float wave[2][TAPWORD_FFT];
#if TAPWORD_SCATTER
        double factor[TAPWORD_FACTOR];
#endif
    } work;
    uint32_t words, samples, solved; /* samples: behind the scatter */
    uint32_t counts[TAPWORD_MAX_WORDS];
    float thresholds[TAPWORD_MAX_WORDS];
    float means[TAPWORD_MAX_WORDS][TAPWORD_DIM];
#if TAPWORD_SCATTER
    float weights[TAPWORD_MAX_WORDS][TAPWORD_DIM];
    float scatter[TAPWORD_SCATTER];
#endif
    char names[TAPWORD_MAX_WORDS][TAPWORD_NAME_BYTES];
} tapword;

/* Begin with the words that were taught before the export. */
void tapword_start(tapword *t);

/* Cut n samples, float in [-1, 1] at 16 kHz, around their loudest sound: the second around its
   middle, or the whole of a sound of TAPWORD_CLIP samples and more. `length` says how many samples
   the clip has. Models with TAPWORD_ALIGN take such clips alone. 0, TAPWORD_BAD_AUDIO or
   TAPWORD_TOO_LONG. */
int tapword_align(tapword *t, const float *audio, size_t n, float clip[TAPWORD_LONGEST],
                  size_t *length);

/* How many log-mel frames a clip of n samples gives: TAPWORD_MEL_FRAMES for TAPWORD_LONGEST. */
size_t tapword_mel_frames(size_t n);

/* Log-mel energies (frames, 32) of a clip, silence around it included; the number of frames. */
size_t tapword_log_mel(tapword *t, const float *audio, size_t n, float *mel);

/* Pool the backbone's blocks, counts[i] frames of tapword_widths[i] numbers each, one after the
   other; whiten them where the model does. */
extern const uint16_t tapword_widths[TAPWORD_BLOCKS];
void tapword_vector(const float *const frames[TAPWORD_BLOCKS], const size_t counts[TAPWORD_BLOCKS],
                    float vector[TAPWORD_DIM]);

/* Learn that a vector is a word, known or new: the word's number, or an error. */
int tapword_learn(tapword *t, const float vector[TAPWORD_DIM], const char *word);

/* Remove a word and its negatives: 0 or TAPWORD_UNKNOWN. Numbers of what stood behind fall. */
int tapword_forget(tapword *t, const char *word);

/* Number of a word, or TAPWORD_UNKNOWN. */
int tapword_find(const tapword *t, const char *word);

/* Score a vector, of a clip of `length` samples, for each of t->words words; the first call after
   a change solves for the weights. 0 or TAPWORD_DEPENDENT. */
int tapword_scores(tapword *t, const float vector[TAPWORD_DIM], size_t length,
                   float scores[TAPWORD_MAX_WORDS]);

/* Best word by its scores; with reject, TAPWORD_UNKNOWN where no word reaches its threshold and
   scores higher than its negatives. */
int tapword_decide(const tapword *t, const float scores[TAPWORD_MAX_WORDS], int reject);
