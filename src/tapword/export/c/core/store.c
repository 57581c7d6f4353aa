/* Two slots that survive a power cut: a sequence number, a checksum, and the last good one wins. */
#include "internal.h"

#ifdef TAPWORD_BOARD
#define TAPWORD_SLOT_MAGIC "TAPK"

/* A slot: magic, sequence number, bytes of the state, the state, and a CRC-32 of all before: a new
   head must not make an old state, which has a CRC-32 of its own, the newest. Returns the state's
   bytes, 0 if the slot is empty, or an error. */
static int tapword_read_slot(const tapword_store *store, int slot, uint8_t *work,
                             uint32_t *sequence)
{
    int found = store->read(store->context, slot, work, TAPWORD_SLOT_BYTES);
    size_t n;
    if (found < 0 || (size_t)found > TAPWORD_SLOT_BYTES) {
        return TAPWORD_NOT_STORED;
    }
    if (found == 0 || (found >= 4 && memcmp(work, "\xff\xff\xff\xff", 4) == 0)) {
        return 0;
    }
    if (found < TAPWORD_SLOT_EXTRA || memcmp(work, TAPWORD_SLOT_MAGIC, 4) != 0) {
        return TAPWORD_BAD_STATE;
    }
    n = tapword_get(work + 8);
    if (n == 0 || n > (size_t)found - TAPWORD_SLOT_EXTRA ||
        tapword_get(work + TAPWORD_SLOT_HEAD + n) != tapword_crc(work, TAPWORD_SLOT_HEAD + n)) {
        return TAPWORD_BAD_STATE;
    }
    *sequence = tapword_get(work + 4);
    return (int)n;
}

/* Whether one sequence number follows another, also when they begin again at 0. */
static int tapword_is_later(uint32_t one, uint32_t other)
{
    return one != other && one - other < 0x80000000u;
}

int tapword_store_save(const tapword_store *store, const tapword *t,
                       uint8_t work[TAPWORD_SLOT_BYTES])
{
    uint32_t sequences[2] = {0, 0}, written;
    int found[2], slot, n;
    for (slot = 0; slot < 2; slot++) {
        found[slot] = tapword_read_slot(store, slot, work, &sequences[slot]);
    }
    /* The slot without the last good state. */
    slot = found[0] > 0 && (found[1] <= 0 || tapword_is_later(sequences[0], sequences[1]));
    written = sequences[1 - slot] + 1;
    n = tapword_save(t, work + TAPWORD_SLOT_HEAD, TAPWORD_SLOT_BYTES - TAPWORD_SLOT_EXTRA);
    memcpy(work, TAPWORD_SLOT_MAGIC, 4);
    tapword_put(work + 4, written);
    tapword_put(work + 8, (uint32_t)n);
    tapword_put(work + TAPWORD_SLOT_HEAD + n, tapword_crc(work, TAPWORD_SLOT_HEAD + (size_t)n));
    if (store->write(store->context, slot, work, TAPWORD_SLOT_EXTRA + (size_t)n) < 0 ||
        tapword_read_slot(store, slot, work, &sequences[slot]) != n || sequences[slot] != written) {
        return TAPWORD_NOT_STORED;
    }
    return 0;
}

int tapword_store_load(const tapword_store *store, tapword *t, uint8_t work[TAPWORD_SLOT_BYTES])
{
    uint32_t sequences[2] = {0, 0};
    int found[2], slot, attempt, error = 0;
    for (slot = 0; slot < 2; slot++) {
        found[slot] = tapword_read_slot(store, slot, work, &sequences[slot]);
    }
    slot = found[1] > 0 && (found[0] <= 0 || tapword_is_later(sequences[1], sequences[0]));
    for (attempt = 0; attempt < 2; attempt++, slot = 1 - slot) {
        int n = tapword_read_slot(store, slot, work, &sequences[slot]);
        int failed = n > 0 ? tapword_load(t, work + TAPWORD_SLOT_HEAD, (size_t)n) : n;
        if (n > 0 && failed == 0) {
            return 1;
        }
        error = failed != 0 && error == 0 ? failed : error;
    }
    return error;
}
#endif
