/* A store whose writes are cut off after every byte, as by a power cut. */
#define TAPWORD_BOARD
#define TAPWORD_IMPLEMENTATION
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

static tapword model;
static uint8_t slots[2][TAPWORD_SLOT_BYTES], work[TAPWORD_SLOT_BYTES];
static size_t sizes[2], left = SIZE_MAX;
/* What a cut leaves behind it: the old bytes; erased ones; or erased ones alone. */
static int erased, fails;

static int read_slot(void *context, int slot, uint8_t *bytes, size_t n)
{
    (void)context;
    n = n < sizes[slot] ? n : sizes[slot];
    memcpy(bytes, slots[slot], n);
    return fails ? -1 : (int)n;
}

static int write_slot(void *context, int slot, const uint8_t *bytes, size_t n)
{
    size_t written = n < left ? n : left, rest = TAPWORD_SLOT_BYTES - written;
    (void)context;
    if (erased == 2 && left < SIZE_MAX) {
        memset(slots[slot], 0xff, written);
    } else {
        memcpy(slots[slot], bytes, written);
        memset(slots[slot] + written, 0xff, erased ? rest : 0);
    }
    sizes[slot] = TAPWORD_SLOT_BYTES;
    /* The program is not told: it is over. */
    return 0;
}

static const tapword_store store = {read_slot, write_slot, NULL};

static int save(float sensitivity)
{
    tapword_set_sensitivity(&model, NULL, sensitivity);
    return tapword_store_save(&store, &model, work);
}

static float load(void)
{
    tapword_start(&model);
    model.sensitivity = -1.0f;
    return tapword_store_load(&store, &model, work) == 1 ? model.sensitivity : -1.0f;
}

static void expect(int right, const char *what, size_t cut)
{
    if (!right) {
        printf("%s, cut after %lu bytes, leaving %d\n", what, (unsigned long)cut, erased);
        exit(1);
    }
}

int main(void)
{
    size_t cut, bytes, old = 0, later = 0;
    uint8_t before[2][TAPWORD_SLOT_BYTES];
    float found;
    tapword_start(&model);
    bytes = TAPWORD_SLOT_EXTRA + tapword_saved_bytes(&model);
    expect(tapword_store_load(&store, &model, work) == 0, "an empty store is no error", 0);
    fails = 1;
    expect(tapword_store_load(&store, &model, work) == TAPWORD_NOT_STORED, "a broken one is", 0);
    expect(save(0.5f) == TAPWORD_NOT_STORED, "what cannot be read back is not stored", 0);
    fails = 0;
    memset(sizes, 0, sizeof sizes);
    expect(save(0.125f) == 0 && load() == 0.125f, "the first state", 0);
    expect(save(0.25f) == 0 && load() == 0.25f, "the second state", 0);
    expect(save(0.375f) == 0 && load() == 0.375f, "the third state", 0);
    memcpy(before, slots, sizeof slots);
    for (erased = 0; erased < 3; erased++) {
        for (cut = 0; cut <= bytes; cut++) {
            memcpy(slots, before, sizeof slots);
            left = cut;
            save(0.75f);
            left = SIZE_MAX;
            found = load();
            expect(found == 0.375f || found == 0.75f, "the old state or the new one", cut);
            /* Unless nothing but the new bytes is missing that are the same as the old ones. */
            expect(found == (cut < bytes - 4 || erased == 2 ? 0.375f : found), "too early", cut);
            old += found == 0.375f;
            later += found == 0.75f;
        }
        expect(save(0.875f) == 0 && load() == 0.875f, "a state after a cut", bytes);
        expect(save(0.5f) == 0 && load() == 0.5f, "and one more", bytes);
    }
    memset(slots, 0, sizeof slots);
    expect(tapword_store_load(&store, &model, work) == TAPWORD_BAD_STATE, "two damaged slots", 0);
    /* Numbers begin again at 0. */
    memcpy(slots, before, sizeof slots);
    for (cut = 0; cut < 2; cut++) {
        tapword_put(slots[cut] + 4, (uint32_t)(cut - 2));
        tapword_put(slots[cut] + bytes - 4, tapword_crc(slots[cut], bytes - 4));
    }
    found = load();
    expect(found == 0.25f, "the later of two", 0);
    for (cut = 1; cut < 6; cut++) {
        expect(save(0.125f * (float)cut) == 0 && load() == 0.125f * (float)cut, "later", cut);
    }
    printf("%lu bytes: %lu times the old state, %lu times the new", (unsigned long)bytes,
           (unsigned long)old, (unsigned long)later);
    return 0;
}
