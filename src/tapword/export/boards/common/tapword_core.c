/* The only file that is compiled with the model's tables. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3")
#endif
#define TAPWORD_IMPLEMENTATION
#include "tapword_core.h"
