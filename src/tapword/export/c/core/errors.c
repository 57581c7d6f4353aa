/* Errors in words. */
#include "internal.h"

const char *tapword_error(int code)
{
    switch (code) {
    case TAPWORD_FULL:
        return "TAPWORD_FULL: no room for another word; forget one.";
    case TAPWORD_BAD_WORD:
        return "TAPWORD_BAD_WORD: the word is empty, too long or not printable.";
    case TAPWORD_BAD_VECTOR:
        return "TAPWORD_BAD_VECTOR: the vector has NaN, infinite or too large numbers.";
    case TAPWORD_BAD_AUDIO:
        return "TAPWORD_BAD_AUDIO: the recording is empty, too long, or not scaled to [-1, 1].";
    case TAPWORD_UNKNOWN:
        return "TAPWORD_UNKNOWN: it is none of the words.";
    case TAPWORD_DEPENDENT:
        return "TAPWORD_DEPENDENT: the covariance cannot be inverted; teach other samples.";
    case TAPWORD_TOO_LONG:
        return "TAPWORD_TOO_LONG: the sound is longer than a phrase.";
    case TAPWORD_NOISE:
        return "TAPWORD_NOISE: the clip contains only noise; say the word again.";
    case TAPWORD_BAD_NUMBER:
        return "TAPWORD_BAD_NUMBER: a sensitivity is between 0 and 1.";
    case TAPWORD_BAD_STATE:
        return "TAPWORD_BAD_STATE: this is not a saved state, or it is damaged.";
    case TAPWORD_OTHER_STATE:
        return "TAPWORD_OTHER_STATE: the state is from a model of other parts.";
    case TAPWORD_NO_ROOM:
        return "TAPWORD_NO_ROOM: the state is larger than the room for it.";
    case TAPWORD_NO_WEIGHTS:
        return "TAPWORD_NO_WEIGHTS: call tapword_set_weights first.";
    case TAPWORD_BAD_WEIGHTS:
        return "TAPWORD_BAD_WEIGHTS: not the weights of this header, damaged, or misaligned.";
    case TAPWORD_NOT_STORED:
        return "TAPWORD_NOT_STORED: the store could not be read or written.";
    case TAPWORD_BUSY:
        return "TAPWORD_BUSY: the board is teaching or transferring its words; try again later.";
    default:
        return code < 0 ? "TAPWORD_?: unknown error." : "TAPWORD_OK: no error.";
    }
}
