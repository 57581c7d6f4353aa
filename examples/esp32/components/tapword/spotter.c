/* The portable part: it compiles anywhere. */
#define TAPWORD_IMPLEMENTATION
/* Words alone: listening for phrases, words of more than a second, takes 144 kB more. */
#define TAPWORD_PHRASE_HOPS 0
#include "spotter.h"

#include "home.h"

static tapword model;
static tapword_listener listener;
static float sound[SPOTTER_TAKE];

static void in_floats(const int16_t *samples, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        sound[i] = (float)samples[i] / 32768.0f;
    }
}

void spotter_start(void)
{
    tapword_start(&model);
    tapword_listener_start(&listener);
}

const char *spotter_push(const int16_t samples[SPOTTER_CHUNK])
{
    tapword_event event;
    in_floats(samples, SPOTTER_CHUNK);
    if (tapword_listener_push(&model, &listener, sound, SPOTTER_CHUNK, &event, 1) != 1) {
        return NULL;
    }
    return model.names[event.word];
}

const char *spotter_teach(const int16_t *samples, size_t n, const char *word)
{
    int learned = TAPWORD_BAD_AUDIO;
    if (n <= SPOTTER_TAKE) {
        in_floats(samples, n);
        learned = tapword_teach(&model, sound, n, word);
    }
    return learned < 0 ? tapword_error(learned) : NULL;
}

size_t spotter_save(uint8_t *bytes, size_t room)
{
    int n = tapword_save(&model, bytes, room);
    return n < 0 ? 0 : (size_t)n;
}

const char *spotter_load(const uint8_t *bytes, size_t n)
{
    int error = tapword_load(&model, bytes, n);
    return error < 0 ? tapword_error(error) : NULL;
}
