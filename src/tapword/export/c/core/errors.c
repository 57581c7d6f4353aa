#include "internal.h"

const char *tapword_error(int code)
{
    switch (code) {
    case TAPWORD_FULL:
        return "TAPWORD_FULL: there is no room for another word; forget one.";
    case TAPWORD_BAD_WORD:
        return "TAPWORD_BAD_WORD: a word needs printable characters, and not too many.";
    case TAPWORD_BAD_VECTOR:
        return "TAPWORD_BAD_VECTOR: the vector has numbers that are no numbers, or huge.";
    case TAPWORD_BAD_AUDIO:
        return "TAPWORD_BAD_AUDIO: no sound, too long a recording, or samples far beyond [-1, 1].";
    case TAPWORD_UNKNOWN:
        return "TAPWORD_UNKNOWN: it is none of the words.";
    case TAPWORD_DEPENDENT:
        return "TAPWORD_DEPENDENT: what was learned cannot be solved for; teach other samples.";
    case TAPWORD_TOO_LONG:
        return "TAPWORD_TOO_LONG: more sound without a pause than a phrase has.";
    case TAPWORD_NOISE:
        return "TAPWORD_NOISE: there is nothing but noise; say the word again.";
    case TAPWORD_BAD_NUMBER:
        return "TAPWORD_BAD_NUMBER: a sensitivity lies between 0 and 1.";
    case TAPWORD_BAD_STATE:
        return "TAPWORD_BAD_STATE: this is no saved state, or it is damaged.";
    case TAPWORD_OTHER_STATE:
        return "TAPWORD_OTHER_STATE: the state was saved by a model of other parts.";
    case TAPWORD_NO_ROOM:
        return "TAPWORD_NO_ROOM: the state is larger than the room given for it.";
    case TAPWORD_NO_WEIGHTS:
        return "TAPWORD_NO_WEIGHTS: hand the file of weights to tapword_set_weights first.";
    case TAPWORD_BAD_WEIGHTS:
        return "TAPWORD_BAD_WEIGHTS: not the header's file, damaged, or not at a multiple of 8.";
    default:
        return code < 0 ? "TAPWORD_?: no such error is known." : "TAPWORD_OK: nothing went wrong.";
    }
}
