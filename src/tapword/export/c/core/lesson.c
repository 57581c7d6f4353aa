/* Checks on a clip before it is taught, and on the takes of a word that are taught one after the
   other. As Python's TeachSession. */
#include "internal.h"

#if TAPWORD_HAS_LESSON
void tapword_lesson_start(tapword_lesson *lesson) { memset(lesson, 0, sizeof *lesson); }

static size_t tapword_add_issue(tapword_issue *issues, size_t count, int code, int other)
{
    issues[count].code = code;
    issues[count].other = other;
    return count + 1;
}

/* Compare the clip with the words of a model. Returns the number of issues or an error. */
static int tapword_check_vector(tapword_checked *checked, tapword *t, int take, size_t count,
                                tapword_issue *issues)
{
    int error, best, known = tapword_find(t, checked->word);
    if (tapword_is_noise(t->taught)) {
        return (int)tapword_add_issue(issues, count, TAPWORD_ISSUE_NOISE, TAPWORD_UNKNOWN);
    }
    error = tapword_scores(t, t->taught, checked->length, t->scores);
    if (error != 0) {
        return error;
    }
    best = tapword_decide(t, t->scores, 1);
    if (best >= 0 && best != known) {
        checked->other_word = 1;
        return (int)tapword_add_issue(issues, count, TAPWORD_ISSUE_OTHER_WORD, best);
    }
    if (take && known >= 0 && t->thresholds[known] - t->scores[known] > TAPWORD_UNLIKE_SCORE) {
        count = tapword_add_issue(issues, count, TAPWORD_ISSUE_UNLIKE, known);
    }
    return (int)count;
}

int tapword_check(tapword_checked *checked, tapword *t, const float *audio, size_t n,
                  const char *word, int take, tapword_issue issues[TAPWORD_MAX_ISSUES])
{
    tapword_clip clip;
    size_t count = 0;
    int error = tapword_number(t, word);
    if (error >= 0) {
        error = tapword_cut(t, audio, n, &clip);
    }
    if (error < 0) {
        return error;
    }
#if TAPWORD_ALIGN
    if (!take && n > TAPWORD_CLIP) {
        double other_s, pause_s;
        tapword_other_sound(t, n, &other_s, &pause_s);
        if (other_s >= TAPWORD_OTHER_S) {
            count =
                tapword_add_issue(issues, count, TAPWORD_ISSUE_MORE_THAN_ONE_WORD, TAPWORD_UNKNOWN);
        }
        if (pause_s >= TAPWORD_PAUSE_S) {
            count = tapword_add_issue(issues, count, TAPWORD_ISSUE_LONG_PAUSE, TAPWORD_UNKNOWN);
        }
    }
#endif
    tapword_pool_copy(t, audio, n, clip, 0, t->taught);
    tapword_add_copies(t, audio, n, clip);
    strcpy(checked->word, word);
    memcpy(checked->vector, t->taught, sizeof checked->vector);
    checked->length = clip.length;
    checked->other_word = 0;
    return tapword_check_vector(checked, t, take, count, issues);
}

int tapword_learn_checked(tapword *t, const tapword_checked *checked)
{
    return tapword_learn_vector(t, checked->vector, checked->length, checked->word);
}

int tapword_lesson_check(tapword_lesson *lesson, tapword *t, const float *audio, size_t n,
                         const char *word, int take, tapword_issue issues[TAPWORD_MAX_ISSUES])
{
    return tapword_check(&lesson->checked, t, audio, n, word, take, issues);
}

/* Whether the model before the lesson has a word that was forgotten since. */
static int tapword_is_outdated(const tapword_lesson *lesson, const tapword *t)
{
    size_t k;
    for (k = 0; k < lesson->before.words; k++) {
        if (tapword_find(t, lesson->before.names[k]) < 0) {
            return 1;
        }
    }
    return 0;
}

static void tapword_append_take(tapword_lesson *lesson, const tapword *t)
{
    size_t last;
    if (lesson->takes == 0 || strcmp(lesson->word, lesson->checked.word) != 0 ||
        tapword_is_outdated(lesson, t)) {
        lesson->takes = 0;
        lesson->before = *t;
        strcpy(lesson->word, lesson->checked.word);
    }
    if (lesson->takes == TAPWORD_LESSON_TAKES) {
        lesson->takes--;
        memmove(lesson->vectors, lesson->vectors + 1, lesson->takes * sizeof *lesson->vectors);
        memmove(lesson->lengths, lesson->lengths + 1, lesson->takes * sizeof *lesson->lengths);
        memmove(lesson->others, lesson->others + 1, lesson->takes * sizeof *lesson->others);
    }
    last = lesson->takes++;
    memcpy(lesson->vectors[last], lesson->checked.vector, sizeof lesson->checked.vector);
    lesson->lengths[last] = lesson->checked.length;
    lesson->others[last] = lesson->checked.other_word;
}

/* Score a take: 0 or an error. */
static int tapword_score_take(tapword_lesson *lesson, tapword *t, size_t take)
{
    return tapword_scores(t, lesson->vectors[take], lesson->lengths[take], t->scores);
}

/* Likeness of the takes to other words, each take scored by a copy that did not learn it. */
static int tapword_cross_validate(tapword_lesson *lesson, tapword_likeness *likeness)
{
    tapword *trial = &lesson->trial;
    size_t fold, take;
    int error = 0;
    for (fold = 0; error >= 0 && fold < TAPWORD_LESSON_FOLDS && fold < lesson->takes; fold++) {
        *trial = lesson->before;
        for (take = 0; error >= 0 && take < lesson->takes; take++) {
            if (take % TAPWORD_LESSON_FOLDS != fold) {
                error = tapword_learn_vector(trial, lesson->vectors[take], lesson->lengths[take],
                                             lesson->word);
            }
        }
        for (take = fold; error >= 0 && take < lesson->takes; take += TAPWORD_LESSON_FOLDS) {
            int own = tapword_find(trial, lesson->word), other;
            float score = -FLT_MAX;
            tapword_likeness *found;
            error = tapword_score_take(lesson, trial, take);
            if (own >= 0) {
                /* The take is compared with the other words alone. */
                score = trial->scores[own];
                trial->scores[own] = -FLT_MAX;
            }
            other = tapword_decide(trial, trial->scores, 0);
            if (error < 0 || other < 0 || other == own) {
                continue;
            }
            found = &likeness[other];
            found->order = found->order > 0 ? found->order : fold * TAPWORD_LESSON_TAKES + take + 1;
            if (tapword_decide(trial, trial->scores, 1) == other) {
                found->counting++;
                found->taken += trial->scores[other] > score && !lesson->others[take];
            }
            found->nearer += trial->scores[other] > score;
        }
    }
    return error < 0 ? error : 0;
}

/* The word that nearly all takes sound like without their own; TAPWORD_UNKNOWN, or an error. */
static int tapword_mostly_heard(tapword_lesson *lesson)
{
    size_t votes[TAPWORD_MAX_WORDS] = {0}, take;
    for (take = 0; take < lesson->takes; take++) {
        int error = tapword_score_take(lesson, &lesson->before, take), best;
        if (error < 0) {
            return error;
        }
        best = tapword_decide(&lesson->before, lesson->before.scores, 0);
        if (best >= 0 && (double)++votes[best] >= TAPWORD_LESSON_CLOSE * lesson->takes) {
            return best;
        }
    }
    return TAPWORD_UNKNOWN;
}

int tapword_lesson_add(tapword_lesson *lesson, const tapword *t,
                       tapword_issue issues[TAPWORD_LESSON_TAKES])
{
    tapword_likeness likeness[TAPWORD_MAX_WORDS];
    size_t count = 0, k, order;
    double takes;
    int error, heard, close;
    tapword_append_take(lesson, t);
    memset(likeness, 0, sizeof likeness);
    error = tapword_cross_validate(lesson, likeness);
    heard = tapword_mostly_heard(lesson);
    takes = lesson->takes;
    /* Words that are close first, then those of single takes; each in the order they came up. */
    for (close = 1; error == 0 && close >= 0; close--) {
        for (order = 1; order <= TAPWORD_LESSON_FOLDS * TAPWORD_LESSON_TAKES; order++) {
            for (k = 0; k < lesson->before.words; k++) {
                const tapword_likeness *found = &likeness[k];
                int confused =
                    (double)found->nearer >= TAPWORD_LESSON_CONFUSED * takes && heard == (int)k;
                int counts = (double)found->counting >= TAPWORD_LESSON_CLOSE * takes;
                int is_close = takes >= TAPWORD_LESSON_MIN_TAKES && (confused || counts);
                if (found->order == order && is_close == close && (close || found->taken)) {
                    count = tapword_add_issue(
                        issues, count, close ? TAPWORD_ISSUE_CLOSE_WORD : TAPWORD_ISSUE_OTHER_WORD,
                        tapword_find(t, lesson->before.names[k]));
                }
            }
        }
    }
    return error != 0 ? error : (int)count;
}
#endif
