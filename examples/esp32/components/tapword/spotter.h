/* A spotter behind five functions: only one file of the program is compiled with the model. */
#ifndef SPOTTER_H
#define SPOTTER_H

#include <stddef.h>
#include <stdint.h>

/* Samples of one push: 40 ms at 16 kHz. */
#define SPOTTER_CHUNK 640
/* The longest recording to learn: a second. */
#define SPOTTER_TAKE 16000

void spotter_start(void);

/* Push the next samples. Returns the word in them, or NULL. */
const char *spotter_push(const int16_t samples[SPOTTER_CHUNK]);

/* Learn a recording of up to SPOTTER_TAKE samples. Returns an error message, or NULL. */
const char *spotter_teach(const int16_t *samples, size_t n, const char *word);

/* Save what was learned, for flash: returns the number of bytes, 0 without room. And load it:
   returns an error message, or NULL. */
size_t spotter_save(uint8_t *bytes, size_t room);
const char *spotter_load(const uint8_t *bytes, size_t n);

#endif
