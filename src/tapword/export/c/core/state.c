/* What was learned as little-endian bytes; docs/export.md has the layout. */
#include "internal.h"

#define TAPWORD_STATE_HEAD 36
#define TAPWORD_STATE_ROW 20

TAPWORD_PRIVATE uint32_t tapword_crc(const uint8_t *bytes, size_t n)
{
    /* CRC-32 of each half byte. */
    static const uint32_t halves[16] = {
        0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u,
        0x4db26158u, 0x5005713cu, 0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu,
        0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu,
    };
    uint32_t crc = 0xffffffffu;
    size_t i;
    for (i = 0; i < n; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ halves[crc & 15u];
        crc = crc >> 4 ^ halves[crc & 15u];
    }
    return ~crc;
}

TAPWORD_PRIVATE uint8_t *tapword_put(uint8_t *bytes, uint32_t value)
{
    size_t i;
    for (i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(value >> 8 * i);
    }
    return bytes + 4;
}

static uint8_t *tapword_put_floats(uint8_t *bytes, const float *x, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bytes = tapword_put(bytes, bits);
    }
    return bytes;
}

TAPWORD_PRIVATE uint32_t tapword_get(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static float tapword_get_float(const uint8_t *bytes)
{
    uint32_t bits = tapword_get(bytes);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void tapword_get_floats(const uint8_t *bytes, float *x, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        x[i] = tapword_get_float(bytes + 4 * i);
    }
}

size_t tapword_saved_bytes(const tapword *t)
{
    size_t bytes = TAPWORD_STATE_HEAD + 4 * (size_t)TAPWORD_SCATTER + 4, k;
    for (k = 0; k < t->words; k++) {
        bytes += TAPWORD_STATE_ROW + strlen(t->names[k]) + 4 * (size_t)TAPWORD_DIM;
    }
    return bytes;
}

int tapword_save(const tapword *t, uint8_t *bytes, size_t room)
{
    uint8_t *at = bytes;
    size_t k;
    if (room < tapword_saved_bytes(t)) {
        return TAPWORD_NO_ROOM;
    }
    memcpy(at, TAPWORD_STATE_MAGIC, 4);
    at = tapword_put(at + 4, TAPWORD_STATE_VERSION);
    at = tapword_put(at, TAPWORD_FINGERPRINT_LOW);
    at = tapword_put(at, TAPWORD_FINGERPRINT_HIGH);
    at = tapword_put(at, TAPWORD_DIM);
    at = tapword_put(at, TAPWORD_SCATTER);
    at = tapword_put(at, t->words);
    at = tapword_put(at, t->samples);
    at = tapword_put_floats(at, &t->sensitivity, 1);
    for (k = 0; k < t->words; k++) {
        size_t length = strlen(t->names[k]);
        at = tapword_put(at, t->counts[k]);
        at = tapword_put_floats(at, &t->sensitivities[k], 1);
        at = tapword_put_floats(at, t->lengths[k], 2);
        at = tapword_put(at, (uint32_t)length);
        memcpy(at, t->names[k], length);
        at = tapword_put_floats(at + length, t->means[k], TAPWORD_DIM);
    }
#if TAPWORD_SCATTER
    at = tapword_put_floats(at, t->scatter, TAPWORD_SCATTER);
#endif
    at = tapword_put(at, tapword_crc(bytes, (size_t)(at - bytes)));
    return (int)(at - bytes);
}

/* Copy the name of a checked row. Returns the means after it. */
static const uint8_t *tapword_saved_name(const uint8_t *row, char name[TAPWORD_NAME_BYTES])
{
    size_t length = tapword_get(row + TAPWORD_STATE_ROW - 4);
    memcpy(name, row + TAPWORD_STATE_ROW, length);
    name[length] = '\0';
    return row + TAPWORD_STATE_ROW + length;
}

/* The row after a checked one. */
static const uint8_t *tapword_saved_next(const uint8_t *row)
{
    size_t length = tapword_get(row + TAPWORD_STATE_ROW - 4);
    return row + TAPWORD_STATE_ROW + length + 4 * (size_t)TAPWORD_DIM;
}

/* Whether one of the rows has a name. */
static int tapword_saved_has(const uint8_t *row, size_t rows, const char *name)
{
    size_t k;
    for (k = 0; k < rows; k++, row = tapword_saved_next(row)) {
        char other[TAPWORD_NAME_BYTES];
        tapword_saved_name(row, other);
        if (strcmp(other, name) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Whether a number is in a range, which NaN is not. */
static int tapword_in_range(float x, double least, double most)
{
    return (double)x >= least && (double)x <= most;
}

/* Check a row of a state with `room` bytes from there on. */
static int tapword_check_row(const uint8_t *row, size_t room)
{
    const size_t least = TAPWORD_STATE_ROW + 4 * (size_t)TAPWORD_DIM;
    char name[TAPWORD_NAME_BYTES];
    const uint8_t *means;
    size_t length, d;
    double squares = 0.0, most;
    if (room < least || tapword_get(row + TAPWORD_STATE_ROW - 4) > room - least) {
        return TAPWORD_BAD_STATE;
    }
    length = tapword_get(row + TAPWORD_STATE_ROW - 4);
    if (length >= TAPWORD_NAME_BYTES) {
        return TAPWORD_BAD_WORD;
    }
    means = tapword_saved_name(row, name);
    for (d = 0; d < TAPWORD_DIM; d++) {
        double x = (double)tapword_get_float(means + 4 * d);
        squares += x * x;
    }
    /* The largest sum of squared deviations of this many numbers between 0 and the longest. */
    most = (double)tapword_get(row) * TAPWORD_MAX_LENGTH * TAPWORD_MAX_LENGTH / 4.0 + 0.01;
    if (strlen(name) != length || !tapword_is_word(name) || tapword_get(row) == 0 ||
        !(squares <= TAPWORD_LARGEST_SQUARE) ||
        !tapword_in_range(tapword_get_float(row + 4), 0.0, 1.0) ||
        !tapword_in_range(tapword_get_float(row + 8), 0.0, TAPWORD_MAX_LENGTH) ||
        !tapword_in_range(tapword_get_float(row + 12), 0.0, most)) {
        return TAPWORD_BAD_STATE;
    }
    if (tapword_is_negative(name) && (tapword_get(row + 8) != 0 || tapword_get(row + 12) != 0)) {
        return TAPWORD_BAD_STATE;
    }
    return 0;
}

/* Check a whole state before anything is used. */
static int tapword_check_state(const uint8_t *bytes, size_t n)
{
    const uint8_t *first, *row;
    char name[TAPWORD_NAME_BYTES];
    uint64_t samples = 0;
    size_t rows, k;
    if (n < TAPWORD_STATE_HEAD + 4 || memcmp(bytes, TAPWORD_STATE_MAGIC, 4) != 0 ||
        tapword_get(bytes + n - 4) != tapword_crc(bytes, n - 4)) {
        return TAPWORD_BAD_STATE;
    }
    if (tapword_get(bytes + 4) != TAPWORD_STATE_VERSION ||
        tapword_get(bytes + 8) != TAPWORD_FINGERPRINT_LOW ||
        tapword_get(bytes + 12) != TAPWORD_FINGERPRINT_HIGH ||
        tapword_get(bytes + 16) != TAPWORD_DIM || tapword_get(bytes + 20) != TAPWORD_SCATTER) {
        return TAPWORD_OTHER_STATE;
    }
    rows = tapword_get(bytes + 24);
    if (rows > TAPWORD_MAX_WORDS) {
        return TAPWORD_FULL;
    }
    first = row = bytes + TAPWORD_STATE_HEAD;
    for (k = 0; k < rows; k++, row = tapword_saved_next(row)) {
        int error = tapword_check_row(row, n - (size_t)(row - bytes));
        if (error != 0) {
            return error;
        }
        tapword_saved_name(row, name);
        if (tapword_saved_has(first, k, name)) {
            return TAPWORD_BAD_STATE;
        }
        samples += tapword_get(row);
    }
    /* Without a scatter nothing is left of forgotten words. */
    if (!TAPWORD_SCATTER && samples != tapword_get(bytes + 28)) {
        return TAPWORD_BAD_STATE;
    }
    if (n - (size_t)(row - bytes) != 4 * (size_t)TAPWORD_SCATTER + 4 ||
        (rows == 0 && tapword_get(bytes + 28) > 0) ||
        !tapword_in_range(tapword_get_float(bytes + 32), 0.0, 1.0)) {
        return TAPWORD_BAD_STATE;
    }
    for (; row + 4 < bytes + n; row += 4) {
        if (!tapword_in_range(tapword_get_float(row), -TAPWORD_LARGEST_SQUARE,
                              TAPWORD_LARGEST_SQUARE)) {
            return TAPWORD_BAD_STATE;
        }
    }
    for (k = 0, row = first; k < rows; k++, row = tapword_saved_next(row)) {
        tapword_saved_name(row, name);
        if (tapword_is_negative(name) &&
            !tapword_saved_has(first, rows, name + TAPWORD_NEGATIVE_BYTES)) {
            return TAPWORD_BAD_STATE;
        }
    }
    return 0;
}

int tapword_load(tapword *t, const uint8_t *bytes, size_t n)
{
    const uint8_t *row;
    int error = tapword_check_state(bytes, n);
    size_t k;
    if (TAPWORD_WEIGHTS_MISSING) {
        return TAPWORD_NO_WEIGHTS;
    }
    if (error != 0) {
        return error;
    }
    memset(t, 0, sizeof *t);
    t->words = tapword_get(bytes + 24);
    t->samples = tapword_get(bytes + 28);
    t->sensitivity = tapword_get_float(bytes + 32);
    row = bytes + TAPWORD_STATE_HEAD;
    for (k = 0; k < t->words; k++, row = tapword_saved_next(row)) {
        t->counts[k] = tapword_get(row);
        t->sensitivities[k] = tapword_get_float(row + 4);
        tapword_get_floats(row + 8, t->lengths[k], 2);
        tapword_get_floats(tapword_saved_name(row, t->names[k]), t->means[k], TAPWORD_DIM);
        tapword_update_tail(t, k);
    }
#if TAPWORD_SCATTER
    if (t->words > 0) {
        tapword_get_floats(row, t->scatter, TAPWORD_SCATTER);
    }
#endif
    tapword_update_thresholds(t);
    return 0;
}
