/* A spotter behind five functions, so that only one file of the program is compiled with the model. */
#ifndef SPOTTER_H
#define SPOTTER_H

#include <stddef.h>
#include <stdint.h>

/* Samples that are given at a time: 40 ms at 16 kHz. */
#define SPOTTER_CHUNK 640
/* The longest recording that is taught: a second. */
#define SPOTTER_TAKE 16000

void spotter_start(void);

/* Hear the next samples; the word that was said, or NULL. */
const char *spotter_hear(const int16_t samples[SPOTTER_CHUNK]);

/* Learn a recording of up to SPOTTER_TAKE samples; what went wrong, or NULL. */
const char *spotter_teach(const int16_t *samples, size_t n, const char *word);

/* What was learned, to be kept in flash: how many bytes, 0 where there is no room. And back: what
   went wrong, or NULL. */
size_t spotter_save(uint8_t *bytes, size_t room);
const char *spotter_load(const uint8_t *bytes, size_t n);

#endif
