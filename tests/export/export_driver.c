/* Runs an exported header on orders with their numbers, and gives its answers: from standard input
   to standard output; with BOARD, which has none, from and to files. */
#define TAPWORD_IMPLEMENTATION
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

#define PAINTED 32768

static tapword model;
static FILE *orders, *answers;
static void *taken[TAPWORD_BLOCKS + 2]; /* what one order takes */
static size_t n_taken;

static void drop_taken(void)
{
    while (n_taken > 0) {
        free(taken[--n_taken]);
    }
}

static void *take_bytes(size_t n)
{
    char *bytes = calloc(n + 1, 1);
    if (bytes == NULL || fread(bytes, 1, n, orders) != n) {
        exit(3);
    }
    taken[n_taken++] = bytes;
    return bytes;
}

static uint32_t take_count(void)
{
    uint32_t n;
    if (fread(&n, sizeof n, 1, orders) != 1) {
        exit(2);
    }
    return n;
}

static float *take(size_t n) { return take_bytes(n * sizeof(float)); }

static char *take_word(void) { return take_bytes(take_count()); }

static void give(const void *numbers, size_t bytes) { fwrite(numbers, 1, bytes, answers); }

/* Paint the stack below, or return how much of it was used since. */
static __attribute__((noinline)) size_t stack(int paint)
{
    unsigned char room[PAINTED];
    size_t i = 0;
    if (paint) {
        memset(room, 0xa5, PAINTED);
    }
    /* What is in there is read as it is, and stays. */
    __asm__ volatile("" : : "r"(room) : "memory");
    while (i < PAINTED && room[i] == 0xa5) {
        i++;
    }
    return PAINTED - i;
}

static void give_number(long number)
{
    int32_t n = (int32_t)number;
    give(&n, sizeof n);
}

static void give_scores(const float vector[TAPWORD_DIM], size_t length)
{
    static float scores[TAPWORD_MAX_WORDS];
    give_number(tapword_scores(&model, vector, length, scores));
    give_number((long)model.words);
    give(scores, model.words * sizeof *scores);
    give_number(tapword_decide(&model, scores, 0));
    give_number(tapword_decide(&model, scores, 1));
}

static void give_confidences(const float *scores)
{
    size_t k;
    for (k = 0; k < model.words; k++) {
        give_number(tapword_confidence(&model, scores, (int)k));
    }
}

#if TAPWORD_HAS_LISTENER
static tapword_listener listener;

/* What a call returned: errors as they are, each event behind a 1. */
static void give_events(int result, const tapword_event *events)
{
    int i;
    if (result < 0) {
        give_number(result);
    }
    for (i = 0; i < result; i++) {
        give_number(1);
        give_number(events[i].word);
        give_number(events[i].confidence);
        give(&events[i].score, sizeof events[i].score);
        give(&events[i].start, sizeof events[i].start);
        give(&events[i].end, sizeof events[i].end);
    }
}

static void listen(const float *audio, size_t n, size_t chunk, size_t room)
{
    static tapword_event events[100];
    size_t start;
    for (start = 0; start < n; start += chunk) {
        size_t size = n - start < chunk ? n - start : chunk;
        give_events(tapword_listener_push(&model, &listener, audio + start, size, events, room),
                    events);
    }
}
#endif

#ifdef TAPWORD_TEACHING
static tapword_endpointer endpointer;
static tapword_lesson lesson;
static tapword_takes takes;

static void give_issues(int count, const tapword_issue *issues)
{
    give_number(count);
    if (count > 0) {
        give(issues, (size_t)count * sizeof *issues);
    }
}
#endif

int main(void)
{
    static float vector[TAPWORD_DIM];
    const float *frames[TAPWORD_BLOCKS];
    size_t counts[TAPWORD_BLOCKS], n, b, length;
    tapword_clip clip;
    float *audio;
    int order;
#ifdef BOARD
    orders = fopen("orders", "rb");
    answers = fopen("answers", "wb");
#else
    orders = stdin;
    answers = stdout;
#endif
    if (orders == NULL || answers == NULL) {
        exit(7);
    }
    tapword_start(&model);
    while ((order = getc(orders)) != EOF) {
        drop_taken();
        switch (order) {
        case 'D': /* take numbers, and do nothing with them */
            take(take_count());
            break;
        case 'K': /* the stack: paint it, */
            stack(1);
            break;
        case 'J': /* and how much was used */
            give_number((long)stack(0));
            break;
#if TAPWORD_HAS_EAR && TAPWORD_EIGHT_BITS
        case 'V': /* sums of products: their number, where x begins, x and weights */
            n = take_count();
            length = take_count();
            {
                /* At multiples of 8, as weights are. */
                static union {
                    double align;
                    int8_t bytes[2048];
                } x, weights;
                memcpy(x.bytes + length, take_bytes(n), n);
                memcpy(weights.bytes, take_bytes(n), n);
                give_number(TAPWORD_DOT(x.bytes + length, weights.bytes, n));
            }
            break;
#endif
        case 'a': /* where the clip lies */
            n = take_count();
            clip.start = 0;
            clip.length = 0;
            give_number(tapword_cut(&model, take(n), n, &clip));
            give_number((long)clip.start);
            give_number((long)clip.length);
            break;
#if TAPWORD_HAS_BACKBONE
        case 'h': /* samples to vector */
            n = take_count();
            length = 0;
            give_number(tapword_encode(&model, take(n), n, vector, &length));
            give_number((long)length);
            give(vector, sizeof vector);
            break;
        case 'w': /* samples to scores and decisions */
            n = take_count();
            length = 0;
            if (tapword_encode(&model, take(n), n, vector, &length) == 0) {
                give_scores(vector, length);
            }
            break;
#endif
#if TAPWORD_HAS_EAR
        case 'e': /* a stream, hop by hop */
            n = take_count() / TAPWORD_EAR_HOP;
            audio = take(n * TAPWORD_EAR_HOP);
            tapword_ear_start(&model.work.encoding.ear);
            for (b = 0; b < n; b++) {
                float frame[TAPWORD_FRAME];
                tapword_ear_push(&model.work.encoding.ear, audio + b * TAPWORD_EAR_HOP, frame);
                give(frame, sizeof frame);
            }
            break;
#else
        case 'm': /* log-mel energies */
            n = take_count();
            audio = take(n);
            if (tapword_cut(&model, audio, n, &clip) == 0) {
                size_t bytes = tapword_mel_frames(clip.length) * TAPWORD_BANDS * sizeof(float);
                float *mel = malloc(bytes);
                give_number((long)tapword_log_mel(&model, audio, n, clip, mel));
                give(mel, bytes);
            }
            break;
#endif
#if TAPWORD_HAS_LISTENER
        case 'B': /* begin to listen */
            tapword_listener_start(&listener);
            break;
        case 'P': /* listen to pieces of a stream: their size, room for events, the samples */
            b = take_count();
            length = take_count();
            n = take_count();
            audio = take(n);
            listen(audio, n, b, length);
            give_number(0);
            break;
        case 'G': /* a gap */
            tapword_listener_gap(&listener, take_count());
            break;
        case 'F': /* the end of a stream */
            length = take_count();
            {
                static tapword_event events[100];
                give_events(tapword_listener_flush(&model, &listener, events, length), events);
            }
            give_number(0);
            break;
        case 'Y': /* size of a listener */
            give_number((long)sizeof listener);
            break;
#endif
        case 'v': /* vector */
            for (b = 0; b < TAPWORD_BLOCKS; b++) {
                counts[b] = take_count();
                frames[b] = take(counts[b] * tapword_widths[b]);
            }
            tapword_vector(frames, counts, vector);
            give(vector, sizeof vector);
            break;
        case 'l': /* learn */
            audio = take(TAPWORD_DIM);
            give_number(tapword_learn(&model, audio, take_word()));
            break;
        case 'f': /* forget */
            give_number(tapword_forget(&model, take_word()));
            break;
        case 'q': /* thresholds, and how sure scores make us */
            give(model.thresholds, model.words * sizeof model.thresholds[0]);
            give_confidences(take(model.words));
            break;
#if TAPWORD_HAS_BACKBONE
        case 't': /* teach */
            n = take_count();
            audio = take(n);
            give_number(tapword_teach(&model, audio, n, take_word()));
            break;
        case 'r': /* reject */
            n = take_count();
            give_number(tapword_reject(&model, take(n), n));
            break;
        case 'p': /* predict, the nearest word and the one that counts as said */
            n = take_count();
            audio = take(n);
            {
                float score = 0.0f;
                give_number(tapword_predict(&model, audio, n, 0, &score));
                give_number(tapword_predict(&model, audio, n, 1, NULL));
                give(&score, sizeof score);
                give_confidences(model.scores);
            }
            break;
#endif
#if TAPWORD_COPIES
        case 'c': /* a copy of a clip, as it would be heard */
            b = take_count();
            n = take_count();
            audio = take(n);
            clip.start = 0;
            clip.length = n;
            {
                tapword_copy copy;
                size_t i;
                tapword_copy_start(&copy, b, audio, n, clip);
                for (i = 0; i < n + 5; i++) {
                    float sample = tapword_copy_sample(&copy, audio, n, clip, i);
                    give(&sample, sizeof sample);
                }
            }
            break;
#endif
#ifdef TAPWORD_TEACHING
        case 'X': /* examine a recording */
            n = take_count();
            audio = take(n);
            {
                tapword_take found = {0};
                give_number(tapword_examine(&endpointer, audio, n, &found));
                give_number(found.issue);
                give_number((long)found.first);
                give_number((long)found.last);
                give_number((long)found.start);
                give_number((long)found.end);
                give(&found.level_db, sizeof found.level_db);
                give(&found.snr_db, sizeof found.snr_db);
            }
            break;
        case 'R': /* divide a recording into takes */
            n = take_count();
            audio = take(n);
            {
                int i, found = tapword_find_takes(&takes, &endpointer, &model, audio, n);
                give_number(found);
                for (i = 0; i < found; i++) {
                    give_number((long)takes.sounds[i].first);
                    give_number((long)takes.sounds[i].end);
                    give_number((long)takes.sounds[i].start);
                    give_number(takes.sounds[i].is_take);
                }
            }
            break;
        case 'N': /* follow a recording, in chunks */
            b = take_count();
            n = take_count();
            audio = take(n);
            tapword_endpointer_start(&endpointer);
            for (length = 0; length < n; length += b) {
                size_t size = n - length < b ? n - length : b;
                give_number(tapword_endpointer_push(&endpointer, audio + length, size));
            }
            break;
        case 'k': /* check a clip, a take or not */
            b = take_count();
            n = take_count();
            audio = take(n);
            {
                tapword_issue issues[TAPWORD_MAX_ISSUES];
                char *word = take_word();
                give_issues(tapword_lesson_check(&lesson, &model, audio, n, word, (int)b, issues),
                            issues);
            }
            break;
        case 'A': /* add it to the lesson */
        {
            tapword_issue issues[TAPWORD_LESSON_TAKES];
            give_issues(tapword_lesson_add(&lesson, &model, issues), issues);
        } break;
#endif
        case 'y': /* sensitivity of a word, or of all */
            audio = take(1);
            {
                char *word = take_word();
                give_number(tapword_set_sensitivity(&model, *word ? word : NULL, *audio));
            }
            break;
        case 'S': /* save */
            n = tapword_saved_bytes(&model);
            {
                uint8_t *bytes = malloc(n);
                give_number(tapword_save(&model, bytes, n - 1));
                give_number(tapword_save(&model, bytes, n));
                give(bytes, n);
                free(bytes);
            }
            break;
        case 'L': /* load */
            n = take_count();
            give_number(tapword_load(&model, take_bytes(n), n));
            break;
#if TAPWORD_SEPARATE_WEIGHTS
        case 'W': /* the file of weights, which stays where it is */
        case 'U': /* the same, at no multiple of 8 */
            n = take_count();
            {
                uint8_t *bytes = malloc(n + 4), *file = bytes + (order == 'U' ? 4 : 0);
                if (bytes == NULL || fread(file, 1, n, orders) != n) {
                    exit(6);
                }
                give_number(tapword_set_weights(file, n));
            }
            break;
#endif
        case 'E': /* what an error means */
        {
            const char *text = tapword_error((int)take_count());
            give_number((long)strlen(text));
            give(text, strlen(text));
        } break;
        case 'T': /* thresholds and lengths */
            give(model.thresholds, model.words * sizeof model.thresholds[0]);
            give(model.lengths, model.words * sizeof model.lengths[0]);
            break;
        case 's': /* scores and decisions */
            length = take_count();
            give_scores(take(TAPWORD_DIM), length);
            break;
        case 'n': /* names */
            give_number((long)model.words);
            give(model.names, model.words * sizeof model.names[0]);
            break;
        case 'd': /* the statistic */
            give_number((long)model.words);
            give_number((long)model.samples);
            give(model.counts, model.words * sizeof model.counts[0]);
            give(model.means, model.words * sizeof model.means[0]);
#if TAPWORD_SCATTER
            give(model.scatter, sizeof model.scatter);
#endif
            break;
        default: /* sizes */
            give_number((long)sizeof(tapword));
            give_number((long)(TAPWORD_TABLE_BYTES));
        }
    }
    /* A board's program never ends otherwise. */
    fclose(answers);
    exit(0);
}
