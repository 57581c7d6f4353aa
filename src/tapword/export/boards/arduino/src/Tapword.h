/* Keyword spotting that keeps learning on the board. */
#ifndef TAPWORD_ARDUINO_H
#define TAPWORD_ARDUINO_H

#include <Arduino.h>
#if __has_include(<FS.h>)
#include <FS.h>
#define TAPWORD_HAS_FILES 1
#endif

#include "tapword_core.h"

/* One spotter. Call all functions from the same task, also from callbacks. Functions that return an
   int return a negative code if they fail; error() describes it. */
class Tapword {
 public:
  using OnWord = void (*)(const char *word, int confidence);
  using OnTeaching = void (*)(int status, const char *word, int left, const char *issue);

  /* Called when a word was said; confidence is from 50 to 100. */
  void onWord(OnWord call) { this->word_ = call; }
  /* Called a second after a word was nearly said; confidence is below 50. */
  void onNearMiss(OnWord call) { this->near_miss_ = call; }
  /* Called while a word is taught: TAPWORD_TEACHER_..., the word, takes that are left, and why a
     take is doubtful, such as "cut_off", or "". */
  void onTeaching(OnTeaching call) { this->teaching_ = call; }

#ifdef TAPWORD_HAS_FILES
  /* Keep what is learned in two files of a file system, such as LittleFS. Call this before begin. */
  void storeIn(fs::FS &files) { this->files_ = &files; }
#endif

  /* Start, with the words in the store if there are any. Commands and `tapword import --port` come
     over `line`. Returns false if there is no memory. */
  bool begin(Stream *line = nullptr);

  /* What begin found in the store: 1 words, 0 nothing, or a negative code. */
  int stored() const { return this->stored_; }

  /* Push the microphone's samples: mono, 16 kHz. */
  int push(const int16_t *samples, size_t n);
  /* Read the line that begin was given. */
  void receive();

  /* Teach a word by the next takes. */
  int teach(const char *word, int takes = 3);
  /* Learn the last doubtful take. */
  int keep() { return tapword_board_keep(this->board_); }
  /* Stop teaching. */
  int stop() { return tapword_board_stop(this->board_); }
  /* The last word was not said: learn that. */
  int reject() { return tapword_board_reject(this->board_); }
  int forget(const char *word) { return tapword_board_forget(this->board_, word); }
  /* How readily words are detected, from 0 to 1; of all words without a word. */
  int setSensitivity(float value, const char *word = nullptr) {
    return tapword_board_set_sensitivity(this->board_, word, value);
  }

  /* Words, and the sounds that were rejected for words: their number, and the name of each. */
  size_t words() const { return this->board_->model.words; }
  const char *word(size_t number) const { return this->board_->model.names[number]; }

  static const char *error(int code) { return tapword_error(code); }

 protected:
  tapword_board *board_{nullptr};
  Stream *line_{nullptr};
  OnWord word_{nullptr};
  OnWord near_miss_{nullptr};
  OnTeaching teaching_{nullptr};
  int stored_{0};
#ifdef TAPWORD_HAS_FILES
  fs::FS *files_{nullptr};
  static int read_slot(void *context, int slot, uint8_t *bytes, size_t n);
  static int write_slot(void *context, int slot, const uint8_t *bytes, size_t n);
#endif
};

#endif
