/* Print the words in a recording, read from standard input: 16-bit mono WAV at 16 kHz, or such
   samples without a header.

       make MODEL=home.tap
       arecord -q -f S16_LE -r 16000 | ./listen          # or: ./listen < recording.wav

   One line per word: its start and end in seconds, the word, its score, and how sure that is, from
   50 to 100. */
#define TAPWORD_IMPLEMENTATION
#define TAPWORD_SIMD
#include "home.h"

#include <stdio.h>

#define CHUNK 640

static tapword model;
static tapword_listener listener;
/* Bytes of samples that are left; UINT32_MAX if that is unknown. */
static uint32_t left = UINT32_MAX;

static uint32_t number(const unsigned char *bytes, int n)
{
    uint32_t value = 0;
    while (n-- > 0) {
        value = value << 8 | bytes[n];
    }
    return value;
}

/* Skip the header of a WAV file, up to "data". Returns how many of the first bytes are samples: all
   if it is not a WAV file; -1 if it has another format. */
static int skip_head(const unsigned char *head, int n)
{
    unsigned char chunk[8], format[16];
    if (n < 12 || memcmp(head, "RIFF", 4) != 0 || memcmp(head + 8, "WAVE", 4) != 0) {
        return n;
    }
    while (fread(chunk, 1, sizeof chunk, stdin) == sizeof chunk) {
        uint32_t size = number(chunk + 4, 4);
        if (memcmp(chunk, "data", 4) == 0) {
            /* A program that writes to a pipe does not know how many there will be. */
            left = size > 0 ? size : UINT32_MAX;
            return 0;
        }
        size += size & 1;
        if (memcmp(chunk, "fmt ", 4) == 0 && size >= sizeof format) {
            size -= (uint32_t)fread(format, 1, sizeof format, stdin);
            if (number(format, 2) != 1 || number(format + 2, 2) != 1 ||
                number(format + 4, 4) != 16000 || number(format + 14, 2) != 16) {
                return -1;
            }
        }
        while (size-- > 0 && getchar() != EOF) {
        }
    }
    return -1;
}

static void print_events(int found, const tapword_event *events)
{
    int i;
    if (found < 0) {
        fprintf(stderr, "%s\n", tapword_error(found));
    }
    for (i = 0; i < found; i++) {
        printf("%.2f-%.2f %s %.3f sure %d\n", events[i].start, events[i].end,
               model.names[events[i].word], (double)events[i].score, events[i].confidence);
        fflush(stdout);
    }
}

/* Convert n bytes to samples. Returns how many. */
static size_t to_samples(const unsigned char *bytes, size_t n, float *samples)
{
    size_t i;
    for (i = 0; i < n / 2; i++) {
        int32_t value = (int32_t)number(bytes + 2 * i, 2);
        samples[i] = (float)(value < 32768 ? value : value - 65536) / 32768.0f;
    }
    return n / 2;
}

static size_t read_on(unsigned char *bytes, size_t room)
{
    size_t n = fread(bytes, 1, room < left ? room : left, stdin);
    left -= left < UINT32_MAX ? (uint32_t)n : 0;
    return n;
}

int main(void)
{
    static unsigned char bytes[2 * CHUNK];
    static float samples[CHUNK];
    tapword_event events[8];
    int first = skip_head(bytes, (int)fread(bytes, 1, 12, stdin));
    size_t n;
    if (first < 0) {
        fprintf(stderr, "expected 16-bit mono WAV at 16 kHz\n");
        return 1;
    }
    tapword_start(&model);
    tapword_listener_start(&listener);
    /* The samples that were read already, then the rest. */
    n = (size_t)first;
    do {
        print_events(tapword_listener_push(&model, &listener, samples,
                                           to_samples(bytes, n, samples), events, 8),
                     events);
        n = read_on(bytes, sizeof bytes);
    } while (n > 0);
    print_events(tapword_listener_flush(&model, &listener, events, 8), events);
    if (ferror(stdin)) {
        perror("standard input");
        return 1;
    }
    return 0;
}
