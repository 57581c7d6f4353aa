/* The serial line of a board: commands as lines of text, and frames that carry states. Anything
   else may stand between frames, such as lines of a log. */
#include "internal.h"

#ifdef TAPWORD_BOARD
#define TAPWORD_LINK_VERSION 1
#define TAPWORD_FRAME_MAGIC_BYTES (sizeof TAPWORD_FRAME_START - 1)

/* The most takes of a "teach" command. */
#define TAPWORD_COMMAND_TAKES 3

static void tapword_send(const tapword_board *board, const uint8_t *bytes, size_t n)
{
    if (board->callbacks.send != NULL) {
        board->callbacks.send(board->callbacks.context, bytes, n);
    }
}

/* Answer a frame with n bytes that are in board->frame behind the head. */
static void tapword_reply(tapword_board *board, uint8_t kind, uint8_t number, size_t n)
{
    uint8_t *frame = board->frame;
    memcpy(frame, TAPWORD_FRAME_START, TAPWORD_FRAME_MAGIC_BYTES);
    frame[3] = (uint8_t)(kind - 'a' + 'A');
    frame[4] = number;
    frame[5] = (uint8_t)(n & 255u);
    frame[6] = (uint8_t)(n >> 8);
    tapword_put(frame + TAPWORD_FRAME_HEAD + n,
                tapword_crc(frame + TAPWORD_FRAME_MAGIC_BYTES,
                            TAPWORD_FRAME_HEAD - TAPWORD_FRAME_MAGIC_BYTES + n));
    tapword_send(board, frame, TAPWORD_FRAME_HEAD + n + 4);
}

/* Announce what the board is: the line's version, the fingerprint of its model, words, and room for
   a state. Returns the answer's bytes. */
static size_t tapword_link_hello(const tapword_board *board, uint8_t *answer)
{
    uint8_t *at = tapword_put(answer, TAPWORD_LINK_VERSION);
    at = tapword_put(at, TAPWORD_FINGERPRINT_LOW);
    at = tapword_put(at, TAPWORD_FINGERPRINT_HIGH);
    at = tapword_put(at, board->model.words);
    at = tapword_put(at, (uint32_t)TAPWORD_SLOT_BYTES);
    return (size_t)(at - answer);
}

/* Write the saved state and keep it for reading. Returns its bytes or an error. */
static int tapword_link_save(tapword_board *board)
{
    int n = tapword_board_begin(board);
    n = n != 0 ? n : tapword_board_save_state(board);
    board->expected = board->received = n > 0 ? (size_t)n : 0;
    return n;
}

/* Prepare to receive this many bytes. */
static int tapword_link_load(tapword_board *board, const uint8_t *content, size_t n)
{
    size_t expected = n == 4 ? tapword_get(content) : SIZE_MAX;
    int error = expected > TAPWORD_SLOT_BYTES ? TAPWORD_NO_ROOM : tapword_board_begin(board);
    board->expected = error == 0 ? expected : 0;
    board->received = 0;
    return error;
}

/* Take a part of a state. */
static int tapword_link_write(tapword_board *board, const uint8_t *content, size_t n)
{
    size_t at = n >= 4 ? tapword_get(content) : SIZE_MAX;
    if (board->mode != TAPWORD_TRANSFERRING || at > board->received ||
        n - 4 > board->expected - at) {
        return TAPWORD_BAD_STATE;
    }
    memcpy(board->work.state + at, content + 4, n - 4);
    if (at + n - 4 > board->received) {
        board->received = at + n - 4;
    }
    return 0;
}

static int tapword_link_commit(tapword_board *board)
{
    if (board->mode != TAPWORD_TRANSFERRING || board->received != board->expected) {
        return TAPWORD_BAD_STATE;
    }
    return tapword_board_load_state(board, board->expected);
}

/* Put a part of the saved state into an answer. Returns the answer's bytes. */
static size_t tapword_link_read(const tapword_board *board, const uint8_t *content, size_t n,
                                uint8_t *answer)
{
    size_t at = n == 4 ? tapword_get(content) : SIZE_MAX;
    size_t count = TAPWORD_FRAME_BYTES - 4;
    if (board->mode != TAPWORD_TRANSFERRING || at > board->expected) {
        return 0;
    }
    count = count < board->expected - at ? count : board->expected - at;
    tapword_put(answer, (uint32_t)at);
    memcpy(answer + 4, board->work.state + at, count);
    return count + 4;
}

/* Answer a whole frame. */
static void tapword_answer_frame(tapword_board *board, size_t n)
{
    uint8_t *content = board->frame + TAPWORD_FRAME_HEAD;
    uint8_t kind = board->frame[3], number = board->frame[4];
    int status = 0, again = kind == 'c' && board->answered_kind == kind;
    switch (kind) {
    case 'h':
        tapword_reply(board, kind, number, tapword_link_hello(board, content));
        return;
    case 'r':
        tapword_reply(board, kind, number, tapword_link_read(board, content, n, content));
        return;
    case 's':
        status = tapword_link_save(board);
        break;
    case 'l':
        status = tapword_link_load(board, content, n);
        break;
    case 'w':
        status = tapword_link_write(board, content, n);
        break;
    case 'c':
        /* Its answer may have been lost. */
        status = again && board->answered_number == number ? board->answered_status
                                                           : tapword_link_commit(board);
        break;
    case 'e':
        tapword_board_resume(board);
        break;
    default:
        return;
    }
    board->answered_kind = kind;
    board->answered_number = number;
    board->answered_status = status;
    tapword_put(content, (uint32_t)status);
    tapword_reply(board, kind, number, 4);
}

/* Take a byte of a frame. */
static void tapword_frame_byte(tapword_board *board, uint8_t byte)
{
    const uint8_t *frame = board->frame;
    size_t n, at = board->filled++;
    board->frame[at] = byte;
    board->in_frame = at >= TAPWORD_FRAME_MAGIC_BYTES || byte == (uint8_t)TAPWORD_FRAME_START[at];
    if (!board->in_frame || board->filled < TAPWORD_FRAME_HEAD) {
        board->filled = board->in_frame ? board->filled : 0;
        return;
    }
    n = (size_t)frame[5] | (size_t)frame[6] << 8;
    if (n <= TAPWORD_FRAME_BYTES && board->filled < TAPWORD_FRAME_HEAD + n + 4) {
        return;
    }
    board->filled = board->in_frame = 0;
    if (n <= TAPWORD_FRAME_BYTES &&
        tapword_get(frame + TAPWORD_FRAME_HEAD + n) ==
            tapword_crc(frame + TAPWORD_FRAME_MAGIC_BYTES,
                        TAPWORD_FRAME_HEAD - TAPWORD_FRAME_MAGIC_BYTES + n)) {
        tapword_answer_frame(board, n);
    }
}

/* Take a byte of a line. A line that is too long is cut off. */
static void tapword_line_byte(tapword_board *board, uint8_t byte)
{
    char line[TAPWORD_NAME_BYTES + 16];
    if (byte == '\n' || byte == '\r') {
        memcpy(line, board->frame, board->filled);
        line[board->filled] = '\0';
        board->filled = 0;
        if (line[0] != '\0') {
            tapword_board_command(board, line);
        }
    } else if (byte >= ' ' && board->filled < sizeof line - 1) {
        board->frame[board->filled++] = byte;
    }
}

void tapword_board_receive(tapword_board *board, const uint8_t *bytes, size_t n)
{
    board->silent = 0;
    for (; n > 0; n--, bytes++) {
        if (!board->in_frame && *bytes == (uint8_t)TAPWORD_FRAME_START[0]) {
            board->filled = 0;
            board->in_frame = 1;
        }
        if (board->in_frame) {
            tapword_frame_byte(board, *bytes);
        } else {
            tapword_line_byte(board, *bytes);
        }
    }
}

/* Count samples since the line was used: a frame that was cut off and a transfer that was given up
   end. */
TAPWORD_PRIVATE void tapword_link_wait(tapword_board *board, size_t samples)
{
    if (board->silent < TAPWORD_LINK_WAIT_S * TAPWORD_SAMPLE_RATE) {
        board->silent += (uint32_t)samples;
        return;
    }
    if (board->in_frame) {
        board->in_frame = 0;
        board->filled = 0;
    }
    tapword_board_resume(board);
}

static void tapword_say(const tapword_board *board, const char *text)
{
    tapword_send(board, (const uint8_t *)text, strlen(text));
}

/* The rest of a line behind a command, or NULL. */
static const char *tapword_after(const char *line, const char *command)
{
    size_t n = strlen(command);
    return strncmp(line, command, n) == 0 && line[n] == ' ' && line[n + 1] != '\0' ? line + n + 1
                                                                                   : NULL;
}

/* A number from 0 to 1 with a dot; negative if it is none. */
static float tapword_parse_share(const char *text)
{
    float value = 0.0f, scale = 1.0f;
    int dots = 0, digits = 0;
    for (; *text != '\0'; text++) {
        if (*text == '.' && dots == 0) {
            dots++;
        } else if (*text >= '0' && *text <= '9' && scale > 1e-6f) {
            value = 10.0f * value + (float)(*text - '0');
            scale *= dots ? 0.1f : 1.0f;
            digits++;
        } else {
            return -1.0f;
        }
    }
    return digits > 0 ? value * scale : -1.0f;
}

static void tapword_say_words(const tapword_board *board)
{
    size_t k;
    for (k = 0; k < board->model.words; k++) {
        if (!tapword_is_negative(board->model.names[k])) {
            tapword_say(board, board->model.names[k]);
            tapword_say(board, "\n");
        }
    }
}

void tapword_board_command(tapword_board *board, const char *line)
{
    const char *rest, *text = NULL;
    int found;
    if ((rest = tapword_after(line, "teach")) != NULL) {
        found = tapword_board_teach(board, rest, TAPWORD_COMMAND_TAKES);
    } else if ((rest = tapword_after(line, "forget")) != NULL) {
        found = tapword_board_forget(board, rest);
    } else if ((rest = tapword_after(line, "sensitivity")) != NULL) {
        found = tapword_board_set_sensitivity(board, NULL, tapword_parse_share(rest));
    } else if (strcmp(line, "keep") == 0) {
        found = tapword_board_keep(board);
        text = found == TAPWORD_UNKNOWN ? "there is no doubtful take" : NULL;
    } else if (strcmp(line, "stop") == 0) {
        found = tapword_board_stop(board);
    } else if (strcmp(line, "wrong") == 0) {
        found = tapword_board_reject(board);
        text = found == TAPWORD_UNKNOWN ? "there is no word to reject" : NULL;
    } else if (strcmp(line, "words") == 0) {
        tapword_say_words(board);
        found = 0;
    } else {
        tapword_say(board, "commands: teach WORD, keep, stop, wrong, forget WORD, words, "
                           "sensitivity 0.5\n");
        return;
    }
    if (text == NULL) {
        text = found < 0 ? tapword_error(found) : "ok";
    }
    tapword_say(board, text);
    tapword_say(board, "\n");
}
#endif
