/* Names of words: UTF-8 without control characters. */
#include "internal.h"

/* Whether a name stands for a word's negatives. */
TAPWORD_PRIVATE int tapword_is_negative(const char *name)
{
    return strncmp(name, TAPWORD_NEGATIVE, TAPWORD_NEGATIVE_BYTES) == 0;
}

/* Bytes of the first character of a text; 0 if it is not printable UTF-8. */
static size_t tapword_character(const char *text)
{
    static const uint32_t smallest[] = {0x20, 0x80, 0x800, 0x10000};
    uint32_t first = (unsigned char)text[0], code = first;
    size_t more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3, i;
    if ((first >= 0x80 && first < 0xc0) || first >= 0xf8) {
        return 0;
    }
    if (more > 0) {
        code = first & (0x3fu >> more);
    }
    for (i = 1; i <= more; i++) {
        uint32_t next = (unsigned char)text[i];
        if ((next & 0xc0u) != 0x80u) {
            return 0;
        }
        code = code << 6 | (next & 0x3fu);
    }
    if (code < smallest[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ||
        (code >= 0x7f && code < 0xa0)) {
        return 0;
    }
    return more + 1;
}

/* Whether this can be the name of a word, or of its negatives. */
TAPWORD_PRIVATE int tapword_is_word(const char *name)
{
    const char *word = tapword_is_negative(name) ? name + TAPWORD_NEGATIVE_BYTES : name;
    size_t length = strlen(name), i, bytes;
    if (strlen(word) > TAPWORD_WORD_BYTES || *word == '\0' || *word == ' ' ||
        name[length - 1] == ' ' || tapword_is_negative(word)) {
        return 0;
    }
    for (i = 0; i < length; i += bytes) {
        bytes = tapword_character(name + i);
        if (bytes == 0) {
            return 0;
        }
    }
    return 1;
}
