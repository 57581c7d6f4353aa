/* A taught model of tapword @version@ that goes on learning: C99, no allocation, libm alone.

   @parts@

   One file of the program says #define TAPWORD_IMPLEMENTATION before it includes this one.

   @outside@

   Constant tables: @flash@ bytes. Memory, sizeof(tapword): @ram@ bytes@listener@. */
#ifndef TAPWORD_H
#define TAPWORD_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

@settings@

@interface@
#ifdef __cplusplus
}
#endif

#endif

#ifdef TAPWORD_IMPLEMENTATION
#include <math.h>
#include <string.h>

@types@@tables@
/* Whether the file of weights has yet to be handed over. */
#if TAPWORD_APART
#define TAPWORD_LACKS_WEIGHTS (tapword_bytes == NULL)
#else
#define TAPWORD_LACKS_WEIGHTS 0
#endif

@code@
#endif
