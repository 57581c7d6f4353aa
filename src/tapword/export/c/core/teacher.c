/* Teach a word by voice: find each take, check it, learn it. */
#include "internal.h"

#ifdef TAPWORD_BOARD
/* Sound that is kept before somebody speaks: words may begin softly. */
#define TAPWORD_TEACHER_LEAD TAPWORD_SAMPLE_RATE

/* Backwards, since both may begin at the same address. */
TAPWORD_PRIVATE void tapword_to_floats(const int16_t *samples, size_t n, float *audio)
{
    while (n-- > 0) {
        int16_t sample = samples[n];
        audio[n] = (float)sample / 32768.0f;
    }
}

static void tapword_next_take(tapword_teacher *teacher)
{
    tapword_endpointer_start(&teacher->endpointer);
    teacher->dropped = teacher->filled = 0;
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

/* Find the take in the recording: its issue, and which of the kept samples it is. */
static void tapword_find_kept(tapword_teacher *teacher, tapword_take *take)
{
    size_t n = teacher->dropped + teacher->filled, dropped = teacher->dropped, clipped = 0, i;
    int several = tapword_find_take(&teacher->endpointer, n, take);
    if (take->issue != 0 || teacher->filled == TAPWORD_TAKE_SAMPLES || take->last <= dropped) {
        take->issue = take->issue != 0 || take->last <= dropped ? TAPWORD_ISSUE_NO_SPEECH
                                                                : TAPWORD_ISSUE_TOO_LONG;
        return;
    }
    for (i = take->first > dropped ? take->first - dropped : 0; i < take->last - dropped; i++) {
        int sample = teacher->audio.samples[i];
        clipped += (double)(sample < 0 ? -sample : sample) >= 32768.0 * TAPWORD_ENDPOINT_CLIPPED;
    }
    take->issue = tapword_take_issue(take, clipped, n, several);
    take->start = take->start > dropped ? take->start - dropped : 0;
    take->end -= dropped;
    if (take->end - take->start > TAPWORD_TAKE_SAMPLES / 2) {
        take->issue = TAPWORD_ISSUE_TOO_LONG;
    }
}

/* Whether the take that was checked is of a word that this model listens for. */
static int tapword_is_heard(const tapword_teacher *teacher)
{
#if TAPWORD_PHRASE_HOPS
    (void)teacher;
    return 1;
#else
    return teacher->checked.length <= TAPWORD_CLIP;
#endif
}

/* Check the recording and learn its take, if nothing is wrong with it. Returns as above. */
static int tapword_judge(tapword_teacher *teacher, tapword *t)
{
    tapword_issue issues[TAPWORD_MAX_ISSUES];
    tapword_take take;
    size_t n;
    int count;
    teacher->can_keep = 0;
    tapword_find_kept(teacher, &take);
    if (take.issue == TAPWORD_ISSUE_NO_SPEECH) {
        return tapword_teacher_says(teacher, TAPWORD_TEACHER_NOISE, take.issue, TAPWORD_UNKNOWN);
    }
    if (take.issue == TAPWORD_ISSUE_TOO_LONG) {
        return tapword_teacher_says(teacher, TAPWORD_TEACHER_DOUBTFUL, take.issue, TAPWORD_UNKNOWN);
    }
    n = take.end - take.start;
    memmove(teacher->audio.samples, teacher->audio.samples + take.start, n * sizeof(int16_t));
    tapword_to_floats(teacher->audio.samples, n, teacher->audio.take);
    count = tapword_check(&teacher->checked, t, teacher->audio.take, n, teacher->word, 1, issues);
    if (count < 0) {
        return count;
    }
    if (count > 0 && issues[0].code == TAPWORD_ISSUE_NOISE) {
        return tapword_teacher_says(teacher, TAPWORD_TEACHER_NOISE, issues[0].code,
                                    TAPWORD_UNKNOWN);
    }
    if (!tapword_is_heard(teacher)) {
        return tapword_teacher_says(teacher, TAPWORD_TEACHER_DOUBTFUL, TAPWORD_ISSUE_TOO_LONG,
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
static int tapword_keep_audio(tapword_teacher *teacher, const int16_t *samples, size_t n)
{
    int16_t *kept = teacher->audio.samples;
    size_t old, fits;
    if (teacher->status != TAPWORD_TEACHER_SPEAKING && teacher->filled + n > TAPWORD_TEACHER_LEAD) {
        old = teacher->filled + n - TAPWORD_TEACHER_LEAD;
        teacher->filled -= old;
        teacher->dropped += old;
        memmove(kept, kept + old, teacher->filled * sizeof *kept);
    }
    fits = TAPWORD_TAKE_SAMPLES - teacher->filled;
    fits = n < fits ? n : fits;
    memcpy(kept + teacher->filled, samples, fits * sizeof *kept);
    teacher->filled += fits;
    return fits == n;
}

int tapword_teacher_push(tapword_teacher *teacher, tapword *t, const int16_t *samples, size_t n)
{
    float audio[TAPWORD_PIECE];
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
    if (n > TAPWORD_PIECE) {
        return TAPWORD_BAD_AUDIO;
    }
    tapword_to_floats(samples, n, audio);
    found = tapword_endpointer_push(&teacher->endpointer, audio, n);
    fits = tapword_keep_audio(teacher, samples, n);
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
