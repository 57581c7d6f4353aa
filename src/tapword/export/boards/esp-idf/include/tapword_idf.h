/* tapword on ESP-IDF: memory in PSRAM, and words in a partition of flash. */
#ifndef TAPWORD_IDF_H
#define TAPWORD_IDF_H

#include "tapword_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Make a board whose words are kept in the data partition `label`; if there is none, they are not
   kept. With NULL, `read` and `write` of the callbacks keep them. `found` becomes what
   tapword_board_start returns.
   Returns NULL if there is no memory. */
tapword_board *tapword_idf_new(const tapword_callbacks *callbacks, const char *label, int *found);

#ifdef __cplusplus
}
#endif

#endif
