/* Calls every function of an exported header in any order, with anything: odd lengths, NaN, huge
   numbers, damaged states. What must hold after each call is checked; sanitizers watch the memory.

       fuzz SEED ROUNDS [WEIGHTS]

   A file of weights is handed over when half of the calls are made. */
#define TAPWORD_IMPLEMENTATION
#define TAPWORD_TEACHING
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_SAMPLES (TAPWORD_MAX_STEPS * TAPWORD_HOP + 3)

static tapword model, before;
static uint64_t seed;
static long calls, refused, loaded;

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "after %ld calls: %s\n", calls, what);
        abort();
    }
}

static uint32_t draw(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % below;
}

/* Memory of the very size that is needed, so that a byte too many is seen. */
static void *get(size_t bytes)
{
    void *found = malloc(bytes > 0 ? bytes : 1);
    require(found != NULL, "there is memory");
    return found;
}

static float draw_number(void)
{
    static const float odd[] = {0.0f, -0.0f, 1.0f, -1.0f, 1e-38f, 1e-45f, 1e15f, 1e30f, FLT_MAX};
    uint32_t bits = draw(UINT32_MAX);
    float x;
    switch (draw(4)) {
    case 0:
        memcpy(&x, &bits, sizeof x);
        return x;
    case 1:
        return odd[draw(sizeof odd / sizeof odd[0])];
    default:
        return (float)draw(2001) / 1000.0f - 1.0f;
    }
}

/* Numbers that are mostly fit for use. */
static float *draw_numbers(size_t n)
{
    float *x = get(n * sizeof *x), size = draw(8) ? 1.0f : 1e6f;
    size_t i;
    for (i = 0; i < n; i++) {
        x[i] = size * ((float)draw(2001) / 1000.0f - 1.0f);
    }
    if (n > 0 && draw(4) == 0) {
        x[draw((uint32_t)n)] = draw_number();
    }
    return x;
}

/* Sound that comes and goes, of a few tones; silence, or noise. */
static float *draw_audio(size_t *n)
{
    static const size_t lengths[] = {
        0, 1, 159, 160, 161, 639, 15999, 16000, 16001, 48000, MOST_SAMPLES - 3, MOST_SAMPLES};
    float loud = draw(5) ? 0.2f : draw(2) ? 0.0f : 20.0f, *x;
    double pitch = 0.01 + 0.0005 * draw(200), beat = 0.0001 + 0.00005 * draw(20);
    size_t i;
    *n = draw(2) ? lengths[draw(sizeof lengths / sizeof lengths[0])] : draw(20000);
    x = get(*n * sizeof *x);
    for (i = 0; i < *n; i++) {
        double t = (double)i, wave = sin(pitch * t) + sin(2.7 * pitch * t + sin(beat * t));
        x[i] = loud * (float)(wave * sin(beat * t)) + 0.001f * ((float)draw(200) - 100.0f);
    }
    if (*n > 0 && draw(8) == 0) {
        x[draw((uint32_t)*n)] = draw_number();
    }
    return x;
}

static const char *draw_word(void)
{
    static char word[TAPWORD_NAME_BYTES + 4];
    static const char *const known[] = {"lamp", "music", "door", "K\303\274che", "a", "b"};
    size_t n, i;
    if (draw(4) > 0) {
        strcpy(word, draw(4) ? "" : TAPWORD_NEGATIVE);
        strcat(word, known[draw(sizeof known / sizeof known[0])]);
        return word;
    }
    n = draw(sizeof word);
    for (i = 0; i < n; i++) {
        word[i] = (char)(draw(3) ? 'a' + (int)draw(26) : (int)draw(256));
    }
    word[n] = '\0';
    return word;
}

/* What always holds of a model. */
static void check(void)
{
    size_t k;
    require(model.words <= TAPWORD_MAX_WORDS, "no more words than there is room for");
    for (k = 0; k < model.words; k++) {
        require(tapword_is_word(model.names[k]), "names can be shown");
        require(tapword_find(&model, model.names[k]) == (int)k, "no name comes twice");
        require(model.counts[k] > 0, "every word has samples");
        require(model.sensitivities[k] >= 0.0f && model.sensitivities[k] <= 1.0f, "sensitivity");
    }
}

static void check_error(int error)
{
    require(error <= 0, "0 or an error");
    require(strncmp(tapword_error(error), "TAPWORD_?", 9) != 0, "errors have names");
    refused += error < 0;
}

static void check_number(int number)
{
    require(number < (int)model.words, "a word that is known");
    check_error(number < 0 ? number : 0);
}

/* Damage a state of the model: a byte, or one of the numbers that say what follows, or a name. */
static void damage(uint8_t *bytes, size_t n)
{
    static const uint32_t odd[] = {0,
                                   1,
                                   2,
                                   5,
                                   TAPWORD_NAME_BYTES - 1,
                                   TAPWORD_NAME_BYTES,
                                   255,
                                   1000,
                                   0x3f800000,
                                   0x7f800000,
                                   0x7fc00000,
                                   UINT32_MAX};
    size_t place = TAPWORD_STATE_HEAD, k = model.words > 0 ? draw(model.words) : 0, i;
    for (i = 0; i < k; i++) {
        place += TAPWORD_STATE_ROW + strlen(model.names[i]) + 4 * (size_t)TAPWORD_DIM;
    }
    switch (draw(4)) {
    case 0:
        bytes[draw((uint32_t)n)] ^= (uint8_t)(1u << draw(8));
        break;
    case 1:
        tapword_put(bytes + 4 * draw(TAPWORD_STATE_HEAD / 4),
                    odd[draw(sizeof odd / sizeof odd[0])]);
        break;
    case 2:
        if (model.words > 0) {
            tapword_put(bytes + place + 4 * draw(TAPWORD_STATE_ROW / 4),
                        odd[draw(sizeof odd / sizeof odd[0])]);
        }
        break;
    default:
        if (model.words > 0) {
            size_t letter = draw((uint32_t)strlen(model.names[k]));
            bytes[place + TAPWORD_STATE_ROW + letter] =
                (uint8_t)(draw(2) ? 'a' + draw(2) : draw(256));
        }
    }
}

/* A state as it is, or damaged; half of those have the checksum they should have. */
static void load(void)
{
    size_t n = tapword_saved_bytes(&model), room = n + draw(64), i, changes = draw(4);
    uint8_t *bytes = get(room);
    int error;
    require(tapword_save(&model, bytes, draw((uint32_t)n)) == TAPWORD_NO_ROOM, "too little room");
    require(tapword_save(&model, bytes, n) == (int)n, "a state has the bytes that it should");
    memset(bytes + n, 0, room - n);
    for (i = 0; i < changes; i++) {
        damage(bytes, n);
    }
    if (draw(4) == 0) {
        n = draw((uint32_t)room + 1);
    }
    if (n >= 4 && draw(2)) {
        tapword_put(bytes + n - 4, tapword_crc(bytes, n - 4));
    }
    bytes = realloc(bytes, n > 0 ? n : 1);
    memcpy(&before, &model, sizeof model);
    error = tapword_load(&model, bytes, n);
    if (error != 0) {
        require(memcmp(&before, &model, sizeof model) == 0, "an error changes nothing");
        refused++;
    } else {
        uint8_t *again = get(n);
        loaded++;
        require(tapword_save(&model, again, n) == (int)n, "a state is saved as it was loaded");
        require(model.words == 0 || memcmp(bytes, again, n) == 0, "to the byte");
        free(again);
    }
    free(bytes);
}

static void ask(const float *vector)
{
    float *scores = get(TAPWORD_MAX_WORDS * sizeof *scores);
    int error = tapword_scores(&model, vector, draw(60000), scores);
    require(error == 0 || error == TAPWORD_DEPENDENT || error == TAPWORD_BAD_VECTOR ||
                error == TAPWORD_NO_WEIGHTS,
            "scores, or why not");
    if (error == 0) {
        check_number(tapword_decide(&model, scores, (int)draw(2)));
    }
    free(scores);
}

#if TAPWORD_HAS_BACKBONE
static void hear(void)
{
    size_t n, length = 0;
    float *audio = draw_audio(&n), *vector = get(TAPWORD_DIM * sizeof *vector), score;
    tapword_clip clip;
    check_error(tapword_cut(&model, audio, n, &clip));
    switch (draw(4)) {
    case 0:
        check_number(tapword_teach(&model, audio, n, draw_word()));
        break;
    case 1:
        check_number(tapword_reject(&model, audio, n));
        break;
    case 2:
        check_number(tapword_predict(&model, audio, n, (int)draw(2), draw(2) ? &score : NULL));
        break;
    default:
        if (tapword_encode(&model, audio, n, vector, &length) == 0) {
            require(length >= TAPWORD_CLIP && length <= TAPWORD_LONGEST, "clips have a length");
            tapword_learn(&model, vector, draw_word());
            ask(vector);
        }
    }
    free(vector);
    free(audio);
}
#endif

#if TAPWORD_HAS_LISTENER
static tapword_listener listener;

static void listen(void)
{
    size_t n, room = draw(4), i;
    float *audio = draw_audio(&n);
    tapword_event *events = get(room * sizeof *events);
    int found = 0;
    switch (draw(8)) {
    case 0:
        tapword_listener_start(&listener);
        break;
    case 1:
        tapword_listener_gap(&listener, draw(2) ? draw(100000) : draw(UINT32_MAX));
        break;
    case 2:
        found = tapword_listener_flush(&model, &listener, events, room);
        break;
    default:
        found = tapword_listener_push(&model, &listener, audio, n, events, room);
    }
    require(found <= (int)room, "no more events than there is room for");
    check_error(found < 0 ? found : 0);
    for (i = 0; found > 0 && i < (size_t)found; i++) {
        check_number(events[i].word);
        require(events[i].start <= events[i].end, "what begins ends after that");
    }
    free(events);
    free(audio);
}
#else
static void listen(void) {}
#endif

static tapword_endpointer endpointer;

static void examine(void)
{
    size_t n;
    float *audio = draw_audio(&n);
    tapword_take take = {0};
    int found = tapword_endpointer_push(&endpointer, audio, n);
    require(found <= TAPWORD_ENDPOINT_NOBODY, "a state of a recording");
    check_error(found < 0 ? found : 0);
    check_error(tapword_examine(&endpointer, audio, n, &take));
    require(take.start <= take.first && take.first <= take.last && take.last <= take.end &&
                take.end <= n,
            "a take is inside of its recording");
    if (draw(2)) {
        tapword_endpointer_start(&endpointer);
    }
    free(audio);
}

#if TAPWORD_HAS_LESSON
static tapword_lesson lesson;
static tapword_takes takes;

/* The sounds of a recording are in it, one after the other. */
static void find_takes(void)
{
    size_t n, end = 0;
    float *audio = draw_audio(&n);
    int i, found = tapword_find_takes(&takes, &endpointer, &model, audio, n);
    check_error(found < 0 ? found : 0);
    require(found <= TAPWORD_MAX_SOUNDS, "no more sounds than there is room for");
    for (i = 0; i < found; i++) {
        const tapword_sound *sound = &takes.sounds[i];
        require(end <= sound->first && sound->first <= sound->start && sound->start < sound->end &&
                    sound->end <= n,
                "a sound is inside of its recording");
        end = sound->end;
    }
    free(audio);
}

static void check_issues(int count, int most, const tapword_issue *issues)
{
    int i;
    require(count <= most, "no more issues than there is room for");
    check_error(count < 0 ? count : 0);
    for (i = 0; i < count; i++) {
        require(tapword_issue_name(issues[i].code)[0] != 0, "issues have names");
        check_number(issues[i].other);
    }
}

static void teach(void)
{
    size_t n;
    float *audio = draw_audio(&n);
    const char *word = draw_word();
    tapword_issue *issues = get(TAPWORD_LESSON_TAKES * sizeof *issues);
    int count = tapword_lesson_check(&lesson, &model, audio, n, word, (int)draw(2), issues);
    check_issues(count, TAPWORD_MAX_ISSUES, issues);
    if (count >= 0) {
        check_issues(tapword_lesson_add(&lesson, &model, issues), TAPWORD_LESSON_TAKES, issues);
        check_number(tapword_teach(&model, audio, n, word));
    }
    if (draw(8) == 0) {
        tapword_lesson_start(&lesson);
    }
    free(issues);
    free(audio);
}
#else
static void teach(void) {}
static void find_takes(void) {}
#endif

static void pool(void)
{
    const float *frames[TAPWORD_BLOCKS];
    size_t counts[TAPWORD_BLOCKS], b;
    float *vector = get(TAPWORD_DIM * sizeof *vector), *made[TAPWORD_BLOCKS];
    for (b = 0; b < TAPWORD_BLOCKS; b++) {
        counts[b] = 1 + draw(90);
        frames[b] = made[b] = draw_numbers(counts[b] * tapword_widths[b]);
    }
    tapword_vector(frames, counts, vector);
    tapword_learn(&model, vector, draw_word());
    for (b = 0; b < TAPWORD_BLOCKS; b++) {
        free(made[b]);
    }
    free(vector);
}

#if TAPWORD_SEPARATE_WEIGHTS
/* First cut short, damaged and at a wrong address, then as it should be. */
static void hand_over(const char *path)
{
    uint8_t *bytes = get(TAPWORD_WEIGHTS_BYTES), *moved = get(TAPWORD_WEIGHTS_BYTES + 1);
    FILE *file = fopen(path, "rb");
    size_t place = draw(TAPWORD_WEIGHTS_BYTES);
    require(file != NULL && fread(bytes, 1, TAPWORD_WEIGHTS_BYTES, file) == TAPWORD_WEIGHTS_BYTES,
            "there is a file of weights");
    fclose(file);
    memcpy(moved + 1, bytes, TAPWORD_WEIGHTS_BYTES);
    check_error(tapword_set_weights(moved + 1, TAPWORD_WEIGHTS_BYTES));
    check_error(tapword_set_weights(bytes, place));
    bytes[place] ^= 1;
    check_error(tapword_set_weights(bytes, TAPWORD_WEIGHTS_BYTES));
    require(tapword_bytes == NULL, "wrong weights are not taken");
    bytes[place] ^= 1;
    require(tapword_set_weights(bytes, TAPWORD_WEIGHTS_BYTES) == 0, "the right ones are");
    free(moved);
}
#endif

int main(int argc, char **argv)
{
    long rounds = argc > 2 ? atol(argv[2]) : 1000;
    seed = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 2654435761u + 88172645463325252u;
    tapword_start(&model);
    tapword_endpointer_start(&endpointer);
#if TAPWORD_HAS_LISTENER
    tapword_listener_start(&listener);
#endif
    for (calls = 0; calls < rounds; calls++) {
        float *vector = draw_numbers(TAPWORD_DIM);
#if TAPWORD_SEPARATE_WEIGHTS
        if (calls == rounds / 2) {
            hand_over(argc > 3 ? argv[3] : "");
        }
#endif
        switch (draw(TAPWORD_HAS_EAR ? 62 : 18)) {
        case 0:
            if (draw(10) == 0) {
                tapword_start(&model);
            }
            break;
        case 1:
        case 2:
            check_error(tapword_forget(&model, draw_word()));
            break;
        case 3:
            check_error(tapword_set_sensitivity(&model, draw(2) ? draw_word() : NULL,
                                                draw(2) ? (float)draw(3) / 2 : draw_number()));
            break;
        case 4:
            check_number(tapword_find(&model, draw_word()));
            break;
#if TAPWORD_HAS_BACKBONE
        case 5:
            hear();
            break;
#endif
        case 6:
            pool();
            break;
        case 9:
            listen();
            break;
        case 10:
            examine();
            break;
        case 11:
            teach();
            find_takes();
            break;
        case 7:
        case 8:
            ask(vector);
            break;
        default:
            if (draw(2)) {
                check_number(tapword_learn(&model, vector, draw_word()));
            } else {
                load();
            }
        }
        check();
        free(vector);
    }
    printf("%ld calls, %ld refused, %ld states loaded\n", calls, refused, loaded);
    return 0;
}
