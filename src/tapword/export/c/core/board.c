/* A board: it listens, is taught, and stores what it learned. */
#include "internal.h"

#ifdef TAPWORD_BOARD
static void tapword_listen(tapword_board *board)
{
    tapword_listener_start(&board->work.listener);
    board->mode = TAPWORD_LISTENING;
    board->near_word[0] = '\0';
    board->last_centre = 0;
}

static int tapword_has_store(const tapword_board *board, tapword_store *store)
{
    store->read = board->callbacks.read;
    store->write = board->callbacks.write;
    store->context = board->callbacks.context;
    return store->read != NULL && store->write != NULL;
}

/* Store what was learned, and listen again. */
static int tapword_store_learned(tapword_board *board)
{
    tapword_store store;
    int error = 0;
    if (tapword_has_store(board, &store)) {
        error = tapword_store_save(&store, &board->model, board->work.state);
    }
    tapword_listen(board);
    return error;
}

int tapword_board_start(tapword_board *board, const tapword_callbacks *callbacks)
{
    tapword_store store;
    int found = 0;
    memset(board, 0, sizeof *board);
    board->callbacks = *callbacks;
    tapword_start(&board->model);
    if (tapword_has_store(board, &store)) {
        found = tapword_store_load(&store, &board->model, board->work.state);
    }
    tapword_listen(board);
    return found;
}

/* Remember the vector of a word that was just decided on, and the best near miss. */
static void tapword_remember(tapword_board *board)
{
    tapword_listener *l = &board->work.listener;
    if (l->last.word[0] != '\0' && l->last_centre != board->last_centre) {
        board->last_centre = l->last_centre;
        strcpy(board->scored_word, l->last.word);
        memcpy(board->scored, board->model.vector, sizeof board->scored);
    }
    if (l->near_miss.word[0] != '\0' && board->pushed - board->said_at > TAPWORD_SAMPLE_RATE &&
        (board->near_word[0] == '\0' || l->near_miss.confidence > board->near_confidence)) {
        strcpy(board->near_word, l->near_miss.word);
        board->near_confidence = l->near_miss.confidence;
        board->near_at = board->pushed;
    }
    l->near_miss.word[0] = '\0';
}

/* Listen to samples. The callback comes last, because it may end listening. */
static int tapword_hear_piece(tapword_board *board, const int16_t *samples, size_t n)
{
    float audio[TAPWORD_PIECE];
    tapword_event event;
    char word[TAPWORD_NAME_BYTES];
    int found;
    tapword_to_floats(samples, n, audio);
    found = tapword_listener_push(&board->model, &board->work.listener, audio, n, &event, 1);
    tapword_remember(board);
    if (found == 1) {
        strcpy(word, board->model.names[event.word]);
        board->near_word[0] = board->said_word[0] = '\0';
        board->said_at = board->pushed;
        if (strcmp(board->scored_word, word) == 0) {
            strcpy(board->said_word, word);
            memcpy(board->said, board->scored, sizeof board->said);
        }
        if (board->callbacks.word != NULL) {
            board->callbacks.word(board->callbacks.context, word, event.confidence);
        }
    } else if (board->near_word[0] != '\0' &&
               board->pushed - board->near_at > TAPWORD_SAMPLE_RATE) {
        strcpy(word, board->near_word);
        board->near_word[0] = '\0';
        if (board->callbacks.near_miss != NULL) {
            board->callbacks.near_miss(board->callbacks.context, word, board->near_confidence);
        }
    }
    return found < 0 ? found : 0;
}

/* Report what the teacher said, and store what was learned if it was the last take. */
static int tapword_report_take(tapword_board *board, int status)
{
    tapword_teacher *teacher = &board->work.teacher;
    const char *issue = tapword_issue_name(
        status == TAPWORD_TEACHER_DOUBTFUL || status == TAPWORD_TEACHER_NOISE ? teacher->issue.code
                                                                              : 0);
    char word[TAPWORD_NAME_BYTES];
    uint32_t left = teacher->left;
    int error = 0;
    strcpy(word, teacher->word);
    if (left == 0 || status == TAPWORD_TEACHER_NOBODY) {
        if (teacher->learned > 0) {
            error = tapword_store_learned(board);
        } else {
            tapword_listen(board);
        }
    }
    if (board->callbacks.teaching != NULL) {
        board->callbacks.teaching(board->callbacks.context, status, word, left, issue);
    }
    return error;
}

static int tapword_teach_piece(tapword_board *board, const int16_t *samples, size_t n)
{
    tapword_teacher *teacher = &board->work.teacher;
    int before = teacher->status;
    int status = tapword_teacher_push(teacher, &board->model, samples, n);
    if (status < 0) {
        tapword_board_stop(board);
        return status;
    }
    return status == before ? 0 : tapword_report_take(board, status);
}

int tapword_board_push(tapword_board *board, const int16_t *samples, size_t n)
{
    int error = 0;
    while (n > 0) {
        size_t piece = n < TAPWORD_PIECE ? n : TAPWORD_PIECE;
        int failed = 0;
        board->pushed += (int64_t)piece;
        tapword_link_wait(board, piece);
        if (board->mode == TAPWORD_LISTENING) {
            failed = tapword_hear_piece(board, samples, piece);
        } else if (board->mode == TAPWORD_TEACHING_MODE) {
            failed = tapword_teach_piece(board, samples, piece);
        }
        error = error != 0 ? error : failed;
        samples += piece;
        n -= piece;
    }
    return error;
}

void tapword_board_gap(tapword_board *board, uint32_t samples)
{
    if (board->mode == TAPWORD_LISTENING) {
        tapword_listener_gap(&board->work.listener, samples);
    } else if (board->mode == TAPWORD_TEACHING_MODE) {
        tapword_teacher_gap(&board->work.teacher);
    }
}

int tapword_board_teach(tapword_board *board, const char *word, uint32_t takes)
{
    int error = tapword_number(&board->model, word);
    if (board->mode != TAPWORD_LISTENING || takes == 0) {
        return board->mode != TAPWORD_LISTENING ? TAPWORD_BUSY : TAPWORD_BAD_NUMBER;
    }
    if (error < 0) {
        return error;
    }
    board->said_word[0] = '\0';
    error = tapword_teacher_start(&board->work.teacher, &board->model, word, takes);
    if (error != 0) {
        tapword_listen(board);
        return error;
    }
    board->mode = TAPWORD_TEACHING_MODE;
    return 0;
}

int tapword_board_keep(tapword_board *board)
{
    int status = TAPWORD_UNKNOWN;
    if (board->mode == TAPWORD_TEACHING_MODE) {
        status = tapword_teacher_keep(&board->work.teacher, &board->model);
    }
    if (status == TAPWORD_TEACHER_GOOD) {
        int error = tapword_report_take(board, status);
        return error != 0 ? error : status;
    }
    return status;
}

int tapword_board_stop(tapword_board *board)
{
    if (board->mode != TAPWORD_TEACHING_MODE) {
        return 0;
    }
    if (board->work.teacher.learned > 0) {
        return tapword_store_learned(board);
    }
    tapword_listen(board);
    return 0;
}

int tapword_board_reject(tapword_board *board)
{
    char name[TAPWORD_NAME_BYTES];
    int error;
    if (board->mode != TAPWORD_LISTENING) {
        return TAPWORD_BUSY;
    }
    if (tapword_find(&board->model, board->said_word) < 0) {
        return TAPWORD_UNKNOWN;
    }
    strcpy(name, TAPWORD_NEGATIVE);
    strcat(name, board->said_word);
    board->said_word[0] = '\0';
    error = tapword_learn_vector(&board->model, board->said, TAPWORD_CLIP, name);
    return error < 0 ? error : tapword_store_learned(board);
}

int tapword_board_forget(tapword_board *board, const char *word)
{
    int error =
        board->mode != TAPWORD_LISTENING ? TAPWORD_BUSY : tapword_forget(&board->model, word);
    return error != 0 ? error : tapword_store_learned(board);
}

int tapword_board_set_sensitivity(tapword_board *board, const char *word, float value)
{
    int error = board->mode != TAPWORD_LISTENING
                    ? TAPWORD_BUSY
                    : tapword_set_sensitivity(&board->model, word, value);
    return error != 0 ? error : tapword_store_learned(board);
}

int tapword_board_begin(tapword_board *board)
{
    if (board->mode == TAPWORD_TEACHING_MODE) {
        return TAPWORD_BUSY;
    }
    board->mode = TAPWORD_TRANSFERRING;
    board->silent = 0;
    return 0;
}

int tapword_board_save_state(tapword_board *board)
{
    if (board->mode != TAPWORD_TRANSFERRING) {
        return TAPWORD_BUSY;
    }
    board->silent = 0;
    return tapword_save(&board->model, board->work.state, sizeof board->work.state);
}

int tapword_board_load_state(tapword_board *board, size_t n)
{
    int error = board->mode != TAPWORD_TRANSFERRING
                    ? TAPWORD_BAD_STATE
                    : tapword_load(&board->model, board->work.state, n);
    if (error != 0) {
        return error;
    }
    board->said_word[0] = '\0';
    return tapword_store_learned(board);
}

void tapword_board_resume(tapword_board *board)
{
    if (board->mode == TAPWORD_TRANSFERRING) {
        tapword_listen(board);
    }
}
#endif
