/* Constant tables of a model. Export defines them: it puts them where this file is included. */
#ifndef TAPWORD_TABLES_H
#define TAPWORD_TABLES_H

#include "internal.h"

/* Kind, number (of moments, frames or heads), frames per second and first head of each block's
   pooling. */
extern const uint16_t tapword_poolings[TAPWORD_BLOCKS][4];
#if TAPWORD_HAS_ATTENTION
extern const float tapword_head_centers[], tapword_head_widths[];
#endif

/* Window, twiddle factors, and where each mel band begins, how long it is and what it weighs. */
extern const float tapword_window[TAPWORD_WINDOW], tapword_turn[2][TAPWORD_FFT / 2];
extern const uint16_t tapword_band_starts[TAPWORD_BANDS], tapword_band_lengths[TAPWORD_BANDS];
extern const float tapword_band_weights[];

#if TAPWORD_HAS_EAR
extern const tapword_block tapword_blocks[TAPWORD_EAR_BLOCKS];
/* Layers in 16 bits: of each, rows of biases and of weights, with a 0 after each row. */
extern const struct tapword_ear_weights tapword_ear_weights;
#endif
#if TAPWORD_HAS_EAR && TAPWORD_EIGHT_BITS
extern const uint16_t tapword_ear_factors[];
#endif

#if TAPWORD_WORDS
extern const char tapword_taught_names[TAPWORD_WORDS][TAPWORD_NAME_BYTES];
extern const uint32_t tapword_taught_counts[TAPWORD_WORDS];
extern const float tapword_taught_lengths[TAPWORD_WORDS][2];
extern const float tapword_taught_sensitivities[TAPWORD_WORDS];
extern const float tapword_taught_means[TAPWORD_WORDS][TAPWORD_DIM];
#if TAPWORD_SCATTER
extern const float tapword_taught_scatter[TAPWORD_SCATTER];
#endif
#if TAPWORD_COHORT
extern const float tapword_taught_tails[TAPWORD_WORDS];
#endif
#endif

#if TAPWORD_WHITENING
/* Lengths of the groups of a vector; the mean; lower triangles of the maps, in 16 bits. */
extern const uint16_t tapword_groups[TAPWORD_GROUPS], tapword_maps[];
extern const float tapword_whitening_mean[TAPWORD_DIM];
#endif

#if TAPWORD_COHORT
extern const float tapword_cohort_scores[TAPWORD_COHORT + TAPWORD_LONG_COHORT];
#if TAPWORD_HAS_BACKBONE
extern const float tapword_noise[TAPWORD_DIM];
#endif
#if !TAPWORD_PACKED
extern const int8_t tapword_cohort[TAPWORD_COHORT + TAPWORD_LONG_COHORT][TAPWORD_PROJECTED + 1];
#if TAPWORD_PROJECTION
extern const int8_t tapword_projection[TAPWORD_PROJECTED][TAPWORD_DIM + 1];
#endif
#endif
#endif

/* Tables of bytes in one, in this program or in a file. */
#if TAPWORD_SEPARATE_WEIGHTS
extern const int8_t *tapword_bytes;
#elif TAPWORD_PACKED
extern const uint64_t tapword_packed[];
#define tapword_bytes ((const int8_t *)tapword_packed)
#endif

#if TAPWORD_COPIES
/* Of each speed: ratio of lengths (numerator, denominator), half width of its kernel, samples at
   the edge, and where its numbers begin. */
extern const uint16_t tapword_speeds[TAPWORD_COPIES - 1][5];
extern const tapword_kept_number tapword_kernels[];
/* The ziggurat: Marsaglia and Tsang (2000). */
extern const uint32_t tapword_inner[256];
extern const float tapword_widest[256], tapword_heights[256];
#endif

#if TAPWORD_HAS_LISTENER
extern const uint16_t tapword_segment_hops[TAPWORD_SEGMENTS];
#endif

#endif
