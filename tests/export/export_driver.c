/* Runs an exported header on what comes in on standard input: an order, its numbers; answers. */
#define TAPWORD_IMPLEMENTATION
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

static tapword model;

static uint32_t take_count(void)
{
    uint32_t n;
    if (fread(&n, sizeof n, 1, stdin) != 1) {
        exit(2);
    }
    return n;
}

static float *take(size_t n)
{
    float *numbers = malloc((n + 1) * sizeof *numbers);
    if (numbers == NULL || fread(numbers, sizeof *numbers, n, stdin) != n) {
        exit(3);
    }
    return numbers;
}

static char *take_word(void)
{
    size_t n = take_count();
    char *word = calloc(n + 1, 1);
    if (word == NULL || fread(word, 1, n, stdin) != n) {
        exit(4);
    }
    return word;
}

static void give(const void *numbers, size_t bytes) { fwrite(numbers, 1, bytes, stdout); }

static void give_number(long number)
{
    int32_t n = (int32_t)number;
    give(&n, sizeof n);
}

int main(void)
{
    static float clip[TAPWORD_LONGEST], vector[TAPWORD_DIM], scores[TAPWORD_MAX_WORDS];
    const float *frames[TAPWORD_BLOCKS];
    size_t counts[TAPWORD_BLOCKS], n, b, length;
    float *audio, *mel;
    int order;
    tapword_start(&model);
    while ((order = getchar()) != EOF) {
        switch (order) {
        case 'a': /* align */
            n = take_count();
            length = 0;
            give_number(tapword_align(&model, take(n), n, clip, &length));
            give_number((long)length);
            give(clip, length * sizeof *clip);
            break;
        case 'm': /* log-mel energies */
            n = take_count();
            audio = take(n);
            mel = malloc(tapword_mel_frames(n) * TAPWORD_BANDS * sizeof *mel);
            n = tapword_log_mel(&model, audio, n, mel);
            give_number((long)n);
            give(mel, n * TAPWORD_BANDS * sizeof *mel);
            break;
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
        case 's': /* scores and decisions */
            length = take_count();
            give_number(tapword_scores(&model, take(TAPWORD_DIM), length, scores));
            give_number((long)model.words);
            give(scores, model.words * sizeof *scores);
            give_number(tapword_decide(&model, scores, 0));
            give_number(tapword_decide(&model, scores, 1));
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
    return 0;
}
