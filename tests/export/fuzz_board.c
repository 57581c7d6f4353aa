/* Call a board with anything, in any order: sound, bytes on its line, frames with right checksums,
   and a store that fails.

       fuzz SEED ROUNDS */
#define TAPWORD_BOARD
#define TAPWORD_PHRASE_HOPS 0
#define TAPWORD_TAKE_MS 2000
#define TAPWORD_IMPLEMENTATION
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t seed;
static tapword_board board;
static uint8_t slots[2][TAPWORD_SLOT_BYTES];
static size_t sizes[2];
static long calls, refused, loaded;
static int inside;

static uint32_t draw(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % n;
}

static void require(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "call %ld: %s\n", calls, what);
        abort();
    }
}

static int read_slot(void *context, int slot, uint8_t *bytes, size_t n)
{
    require(context == &board && (slot == 0 || slot == 1), "there are two slots");
    n = n < sizes[slot] ? n : sizes[slot];
    memcpy(bytes, slots[slot], n);
    return draw(50) == 0 ? -1 : (int)n;
}

static int write_slot(void *context, int slot, const uint8_t *bytes, size_t n)
{
    require(context == &board && n <= TAPWORD_SLOT_BYTES, "a slot has room");
    sizes[slot] = draw(5) == 0 ? draw((uint32_t)n) : n;
    memcpy(slots[slot], bytes, sizes[slot]);
    return draw(20) == 0 ? -1 : 0;
}

static const char *draw_word(void)
{
    static const char *const words[] = {"lamp", "door", "music", "\302\254lamp", "", "a\n", "x y"};
    return words[draw(sizeof words / sizeof words[0])];
}

static void check(int code)
{
    require(code >= TAPWORD_BUSY, "errors have codes");
    require(tapword_error(code)[0] != 0, "and names");
    refused += code < 0;
}

static void call(void);

/* A program does as it likes in a callback. */
static void answer(void)
{
    if (!inside && draw(3) == 0) {
        inside = 1;
        call();
        inside = 0;
    }
}

static void on_word(void *context, const char *word, int confidence)
{
    require(context == &board && tapword_find(&board.model, word) >= 0, "a word is known");
    require(confidence >= 0 && confidence <= 100, "a confidence is a share");
    answer();
}

static void on_teaching(void *context, int status, const char *word, uint32_t left,
                        const char *issue)
{
    require(context == &board && word[0] != 0 && left <= 20, "a lesson is of a word");
    require(status >= 0 && status <= TAPWORD_TEACHER_NOBODY && issue != NULL, "and has a status");
    answer();
}

static void on_send(void *context, const uint8_t *bytes, size_t n)
{
    /* Under the sanitizers, this reads every byte that is sent. */
    require(context == &board && n > 0, "something is sent");
    require(memchr(bytes, bytes[n - 1], n) != NULL, "that can be read");
}

/* Sound: silence, noise, or buzzing like a voice. */
static void hear(void)
{
    int16_t *samples = malloc(9000 * sizeof *samples);
    uint32_t n = draw(9000), i, kind = draw(4), period = 60 + draw(100);
    for (i = 0; i < n; i++) {
        int32_t noise = (int32_t)draw(201) - 100;
        int32_t buzz = i % period < 8 ? (i / period % 2 ? 20000 : -15000) : noise;
        samples[i] = (int16_t)(kind == 0 ? 0 : kind == 1 ? noise : kind == 2 ? 80 * noise : buzz);
    }
    check(tapword_board_push(&board, samples, n));
    free(samples);
}

static void receive_noise(void)
{
    uint8_t bytes[64];
    uint32_t n = draw(64), i;
    for (i = 0; i < n; i++) {
        bytes[i] = (uint8_t)(draw(3) == 0 ? "\001tw\n"[draw(4)] : draw(256));
    }
    tapword_board_receive(&board, bytes, n);
}

/* A frame whose checksum is right, mostly with a content that makes sense. */
static void receive_frame(void)
{
    uint8_t frame[TAPWORD_FRAME_HEAD + TAPWORD_FRAME_BYTES + 4] = TAPWORD_FRAME_START;
    static const char kinds[] = "hsrlwcex";
    uint32_t n = draw(4) == 0 ? draw(TAPWORD_FRAME_BYTES + 1) : 4, i;
    frame[3] = (uint8_t)kinds[draw(8)];
    frame[4] = (uint8_t)draw(4);
    for (i = 0; i < n; i++) {
        frame[TAPWORD_FRAME_HEAD + i] = (uint8_t)draw(256);
    }
    if (n >= 4 && draw(2)) {
        tapword_put(frame + TAPWORD_FRAME_HEAD, draw(TAPWORD_SLOT_BYTES + 9));
    }
    frame[5] = (uint8_t)n;
    frame[6] = (uint8_t)(n >> 8);
    tapword_put(frame + TAPWORD_FRAME_HEAD + n, tapword_crc(frame + 3, 4 + n));
    tapword_board_receive(&board, frame, TAPWORD_FRAME_HEAD + n + 4);
}

static void transfer(void)
{
    int n = tapword_board_begin(&board), error;
    check(n);
    n = n == 0 ? tapword_board_save_state(&board) : n;
    if (n > 0) {
        if (draw(2)) {
            board.work.state[draw((uint32_t)n)] ^= (uint8_t)(1 + draw(255));
        }
        error = tapword_board_load_state(&board, (size_t)n);
        check(error);
        loaded += error == 0;
    }
    if (draw(2)) {
        tapword_board_resume(&board);
    }
}

static void start(void)
{
    static const tapword_callbacks callbacks = {on_word,   on_word,    on_teaching, on_send,
                                                read_slot, write_slot, &board};
    check(tapword_board_start(&board, &callbacks));
}

static void type(void)
{
    static const char *const commands[] = {"teach ",  "keep",  "stop",   "wrong",
                                           "forget ", "words", "nobody", "sensitivity "};
    char line[100];
    strcpy(line, commands[draw(8)]);
    strcat(line, draw(3) == 0 ? draw(2) ? "0.5" : "7." : draw_word());
    tapword_board_command(&board, line);
}

static void call(void)
{
    switch (draw(12)) {
    case 0:
        check(tapword_board_teach(&board, draw_word(), draw(4)));
        break;
    case 1:
        check(tapword_board_keep(&board));
        break;
    case 2:
        check(draw(4) == 0 ? tapword_board_stop(&board) : 0);
        break;
    case 3:
        check(tapword_board_reject(&board));
        break;
    case 4:
        check(tapword_board_forget(&board, draw_word()));
        break;
    case 5:
        check(tapword_board_set_sensitivity(&board, draw(2) ? NULL : draw_word(),
                                            (float)draw(12) / 10.0f));
        break;
    case 6:
        tapword_board_gap(&board, draw(100000));
        break;
    case 7:
        transfer();
        break;
    case 8:
        receive_noise();
        break;
    case 9:
        receive_frame();
        break;
    case 10:
        type();
        break;
    default:
        if (!inside && draw(8) == 0) {
            start();
        }
        break;
    }
}

int main(int argc, char **argv)
{
    long rounds = argc > 2 ? atol(argv[2]) : 1000;
    seed = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 2654435761u + 88172645463325252u;
    start();
    for (calls = 0; calls < rounds; calls++) {
        if (draw(2)) {
            hear();
        } else {
            call();
        }
        require(board.model.words <= TAPWORD_MAX_WORDS, "words fit");
        require(board.mode >= TAPWORD_LISTENING && board.mode <= TAPWORD_TRANSFERRING,
                "a board does one thing");
    }
    printf("%ld calls, %ld refused, %ld states loaded", calls, refused, loaded);
    return 0;
}
