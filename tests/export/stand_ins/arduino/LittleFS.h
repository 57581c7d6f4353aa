/* Stand-in for LittleFS. */
#ifndef LITTLE_FS_H
#define LITTLE_FS_H
#include "FS.h"
extern fs::FS LittleFS;
#endif
