/* A board: orders come from standard input, what it says goes to standard output. With a path as
   its argument it is a board on that serial line. Slots are files of the working directory. */
#define TAPWORD_BOARD
#define TAPWORD_IMPLEMENTATION
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

static tapword_board board;
static FILE *line;
static const char *const names[] = {"waiting",  "speaking", "heard", "good",
                                    "doubtful", "noise",    "nobody"};

static void on_word(void *context, const char *word, int confidence)
{
    (void)context;
    printf("word %s %d\n", word, confidence);
}

static void on_near_miss(void *context, const char *word, int confidence)
{
    (void)context;
    printf("near %s %d\n", word, confidence);
}

static void on_teaching(void *context, int status, const char *word, uint32_t left,
                        const char *issue)
{
    (void)context;
    if (status >= TAPWORD_TEACHER_GOOD) {
        printf("%s %s %d %s\n", names[status], word, (int)left, issue);
    }
}

static void on_send(void *context, const uint8_t *bytes, size_t n)
{
    (void)context;
    if (line != NULL) {
        /* Other tasks of a board write to the same line. */
        fputs("I (1234) log: a line\n", line);
        fwrite(bytes, 1, n, line);
        fflush(line);
    } else {
        fwrite(bytes, 1, n, stdout);
    }
}

static const char *slot_name(int slot) { return slot ? "slot1" : "slot0"; }

static int read_slot(void *context, int slot, uint8_t *bytes, size_t n)
{
    FILE *file = fopen(slot_name(slot), "rb");
    (void)context;
    if (file == NULL) {
        return 0;
    }
    n = fread(bytes, 1, n, file);
    fclose(file);
    return (int)n;
}

static int write_slot(void *context, int slot, const uint8_t *bytes, size_t n)
{
    FILE *file = fopen(slot_name(slot), "wb");
    (void)context;
    if (file == NULL) {
        return -1;
    }
    n -= fwrite(bytes, 1, n, file);
    return fclose(file) != 0 || n > 0 ? -1 : 0;
}

static uint32_t number(void)
{
    uint32_t value = 0;
    return fread(&value, sizeof value, 1, stdin) == 1 ? value : 0;
}

/* Push samples as a microphone gives them. */
static void hear(uint32_t n)
{
    static int16_t samples[512];
    while (n > 0) {
        uint32_t chunk = n < 512 ? n : 512;
        int error;
        if (fread(samples, 2, chunk, stdin) != chunk) {
            exit(1);
        }
        error = tapword_board_push(&board, samples, chunk);
        if (error < 0) {
            printf("%s\n", tapword_error(error));
        }
        n -= chunk;
    }
}

static int serve(const char *path)
{
    static int16_t silence[640];
    int byte;
    line = fopen(path, "r+b");
    if (line == NULL) {
        return 1;
    }
    setvbuf(line, NULL, _IONBF, 0);
    while ((byte = fgetc(line)) != EOF) {
        uint8_t one = (uint8_t)byte;
        tapword_board_receive(&board, &one, 1);
        /* A tenth of a second for each hundred bytes or so. */
        if (rand() % 100 == 0) {
            tapword_board_push(&board, silence, 640);
        }
    }
    return 0;
}

int main(int count, char **arguments)
{
    static const tapword_callbacks callbacks = {on_word,   on_near_miss, on_teaching, on_send,
                                                read_slot, write_slot,   NULL};
    char text[200];
    int order, found = tapword_board_start(&board, &callbacks);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("start %d %s\n", found, found < 0 ? tapword_error(found) : "");
    if (count > 1) {
        return serve(arguments[1]);
    }
    while ((order = getchar()) != EOF) {
        uint32_t n = number();
        if (order == 'a') {
            hear(n);
        } else if (order == 'r') { /* bytes of a line */
            while (n-- > 0) {
                uint8_t byte = (uint8_t)getchar();
                tapword_board_receive(&board, &byte, 1);
            }
        } else if (order == 'g') {
            tapword_board_gap(&board, n);
        } else if (fread(text, 1, n, stdin) != n) {
            return 1;
        }
    }
    return 0;
}
