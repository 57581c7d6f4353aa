/* Sizes of the core for this board. They must be the same in every file. */
#ifndef TAPWORD_CONFIG_H
#define TAPWORD_CONFIG_H

#ifdef ESP_PLATFORM
#include "sdkconfig.h"
#endif

/* Teaching, a store in flash and a serial line. */
#define TAPWORD_BOARD

/* Dot products by the instructions of the processor, where the core knows them. */
#ifndef TAPWORD_SIMD
#define TAPWORD_SIMD
#endif

/* Room for words; negatives of a word count as another. */
#if !defined TAPWORD_MAX_WORDS && defined CONFIG_TAPWORD_MAX_WORDS
#define TAPWORD_MAX_WORDS CONFIG_TAPWORD_MAX_WORDS
#endif

/* Words of more than a second need more memory: define TAPWORD_PHRASES for them. */
#if !defined TAPWORD_PHRASES && !defined CONFIG_TAPWORD_PHRASES && !defined TAPWORD_PHRASE_HOPS
#define TAPWORD_PHRASE_HOPS 0
#endif

/* The longest take in ms, with the silence around the word. */
#if !defined TAPWORD_TAKE_MS && defined CONFIG_TAPWORD_TAKE_MS
#define TAPWORD_TAKE_MS CONFIG_TAPWORD_TAKE_MS
#endif

#endif
