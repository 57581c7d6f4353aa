/* The file of weights: its magic, the number of bytes after these 16, their CRC-32, and the
   bytes. */
#include "internal.h"

#if TAPWORD_SEPARATE_WEIGHTS
int tapword_set_weights(const uint8_t *file, size_t n)
{
    const size_t head = 16, size = TAPWORD_WEIGHTS_BYTES - head;
    if ((uintptr_t)file % 8 != 0 || n < TAPWORD_WEIGHTS_BYTES ||
        memcmp(file, TAPWORD_WEIGHTS_MAGIC, 8) != 0 || tapword_get(file + 8) != size ||
        tapword_get(file + 12) != TAPWORD_WEIGHTS_CRC ||
        tapword_crc(file + head, size) != TAPWORD_WEIGHTS_CRC) {
        return TAPWORD_BAD_WEIGHTS;
    }
    tapword_bytes = (const int8_t *)(file + head);
    return 0;
}
#endif
