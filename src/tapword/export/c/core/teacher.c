/* Teach a word by voice: find each take, check it, learn it. */
#include "internal.h"

#ifdef TAPWORD_BOARD
/* Sound that is kept before somebody speaks: words may begin softly. */
#define TAPWORD_TEACHER_LEAD TAPWORD_SAMPLE_RATE

static void tapword_next_take(tapword_teacher *teacher)
{
    tapword_endpointer_start(&teacher->endpointer);
    teacher->filled = 0;
}

int tapword_teacher_start(tapword_teacher *teacher, const tapword *t, const char *word,
                          uint32_t takes)
{
    int number = tapword_number(t, word);
    if (number < 0) {
        return number;
    }
    if (tapword_is_negative(word)) {
        return TAPWORD_BAD_WORD;
    }
    memset(teacher, 0, sizeof *teacher);
    strcpy(teacher->word, word);
    teacher->left = takes;
    tapword_next_take(teacher);
    return 0;
}

static int tapword_teacher_says(tapword_teacher *teacher, int status, int issue, int other)
{
    teacher->status = status;
    teacher->issue.code = issue;
    teacher->issue.other = other;
    return status;
}

/* Learn the clip that was checked. Returns a status or an error. */
static int tapword_learn_take(tapword_teacher *teacher, tapword *t)
{
    int number = tapword_learn_checked(t, &teacher->checked);
    teacher->can_keep = 0;
    if (number < 0) {
        return number;
    }
    teacher->left--;
    teacher->learned++;
    return tapword_teacher_says(teacher, TAPWORD_TEACHER_GOOD, 0, TAPWORD_UNKNOWN);
}

/* Check the recording and learn its take, if nothing is wrong with it. Returns as above. */
static int tapword_judge(tapword_teacher *teacher, tapword *t)
{
    tapword_issue issues[TAPWORD_MAX_ISSUES];
    tapword_take take;
    int count, error;
    error = tapword_examine(&teacher->endpointer, teacher->audio, teacher->filled, &take);
    if (error != 0) {
        return error;
    }
    if (take.issue == TAPWORD_ISSUE_NO_SPEECH) {
        return tapword_teacher_says(teacher, TAPWORD_TEACHER_NOISE, take.issue, TAPWORD_UNKNOWN);
    }
    if (take.issue == TAPWORD_ISSUE_TOO_LONG || teacher->filled == TAPWORD_TAKE_SAMPLES) {
        return tapword_teacher_says(teacher, TAPWORD_TEACHER_DOUBTFUL, TAPWORD_ISSUE_TOO_LONG,
                                    TAPWORD_UNKNOWN);
    }
    count = tapword_check(&teacher->checked, t, teacher->audio + take.start, take.end - take.start,
                          teacher->word, 1, issues);
    if (count < 0) {
        return count;
    }
    if (count > 0 && issues[0].code == TAPWORD_ISSUE_NOISE) {
        return tapword_teacher_says(teacher, TAPWORD_TEACHER_NOISE, issues[0].code,
                                    TAPWORD_UNKNOWN);
    }
    if (take.issue != 0 || count > 0) {
        teacher->can_keep = 1;
        return tapword_teacher_says(teacher, TAPWORD_TEACHER_DOUBTFUL,
                                    take.issue != 0 ? take.issue : issues[0].code,
                                    take.issue != 0 ? TAPWORD_UNKNOWN : issues[0].other);
    }
    return tapword_learn_take(teacher, t);
}

/* Keep more samples of a take; before somebody speaks, only the latest. Returns whether all fit. */
static int tapword_keep_audio(tapword_teacher *teacher, const float *audio, size_t n)
{
    size_t old, fits = n;
    if (teacher->status != TAPWORD_TEACHER_SPEAKING && teacher->filled + n > TAPWORD_TEACHER_LEAD) {
        old = teacher->filled + n - TAPWORD_TEACHER_LEAD;
        teacher->filled -= old;
        memmove(teacher->audio, teacher->audio + old, teacher->filled * sizeof *audio);
    }
    if (fits > TAPWORD_TAKE_SAMPLES - teacher->filled) {
        fits = TAPWORD_TAKE_SAMPLES - teacher->filled;
    }
    memcpy(teacher->audio + teacher->filled, audio, fits * sizeof *audio);
    teacher->filled += fits;
    return fits == n;
}

int tapword_teacher_push(tapword_teacher *teacher, tapword *t, const float *audio, size_t n)
{
    int found, fits;
    if (teacher->left == 0 || teacher->status == TAPWORD_TEACHER_NOBODY) {
        return teacher->status;
    }
    if (teacher->status == TAPWORD_TEACHER_HEARD) {
        found = tapword_judge(teacher, t);
        tapword_next_take(teacher);
        if (found < 0) {
            teacher->status = TAPWORD_TEACHER_WAITING;
        }
        return found;
    }
    found = n > TAPWORD_SAMPLE_RATE / 4 ? TAPWORD_BAD_AUDIO
                                        : tapword_endpointer_push(&teacher->endpointer, audio, n);
    if (found < 0) {
        return found;
    }
    fits = tapword_keep_audio(teacher, audio, n);
    if (found == TAPWORD_ENDPOINT_NOBODY) {
        return tapword_teacher_says(teacher, TAPWORD_TEACHER_NOBODY, 0, TAPWORD_UNKNOWN);
    }
    if (found == TAPWORD_ENDPOINT_OVER || !fits) {
        return tapword_teacher_says(teacher, TAPWORD_TEACHER_HEARD, 0, TAPWORD_UNKNOWN);
    }
    teacher->status =
        found == TAPWORD_ENDPOINT_SPEAKING ? TAPWORD_TEACHER_SPEAKING : TAPWORD_TEACHER_WAITING;
    return teacher->status;
}

void tapword_teacher_gap(tapword_teacher *teacher) { tapword_next_take(teacher); }

int tapword_teacher_keep(tapword_teacher *teacher, tapword *t)
{
    return teacher->can_keep ? tapword_learn_take(teacher, t) : TAPWORD_UNKNOWN;
}
#endif
