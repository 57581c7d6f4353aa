#include "Tapword.h"

#include <stdlib.h>

#if defined ARDUINO_ARCH_ESP32
#include <esp_heap_caps.h>
#endif

/* In external memory, where the board has some. */
static void *allocate(size_t n) {
  void *memory = nullptr;
#if defined ARDUINO_ARCH_ESP32
  memory = heap_caps_malloc(n, MALLOC_CAP_SPIRAM);
#endif
  return memory != nullptr ? memory : malloc(n);
}

bool Tapword::begin(Stream *line) {
  tapword_callbacks callbacks = {};
  if (this->board_ == nullptr) {
    this->board_ = static_cast<tapword_board *>(allocate(sizeof(tapword_board)));
  }
  if (this->board_ == nullptr) {
    return false;
  }
  this->line_ = line;
  callbacks.context = this;
  callbacks.word = [](void *self, const char *word, int confidence) {
    OnWord call = static_cast<Tapword *>(self)->word_;
    if (call != nullptr) {
      call(word, confidence);
    }
  };
  callbacks.near_miss = [](void *self, const char *word, int confidence) {
    OnWord call = static_cast<Tapword *>(self)->near_miss_;
    if (call != nullptr) {
      call(word, confidence);
    }
  };
  callbacks.teaching = [](void *self, int status, const char *word, uint32_t left,
                          const char *issue) {
    OnTeaching call = static_cast<Tapword *>(self)->teaching_;
    if (call != nullptr) {
      call(status, word, static_cast<int>(left), issue);
    }
  };
  callbacks.send = [](void *self, const uint8_t *bytes, size_t n) {
    Stream *stream = static_cast<Tapword *>(self)->line_;
    if (stream != nullptr) {
      stream->write(bytes, n);
    }
  };
#ifdef TAPWORD_HAS_FILES
  if (this->files_ != nullptr) {
    callbacks.read = read_slot;
    callbacks.write = write_slot;
  }
#endif
  this->stored_ = tapword_board_start(this->board_, &callbacks);
  return true;
}

int Tapword::push(const int16_t *samples, size_t n) {
  return tapword_board_push(this->board_, samples, n);
}

int Tapword::teach(const char *word, int takes) {
  return tapword_board_teach(this->board_, word, takes > 0 ? static_cast<uint32_t>(takes) : 0);
}

void Tapword::receive() {
  while (this->line_ != nullptr && this->line_->available() > 0) {
    uint8_t byte = static_cast<uint8_t>(this->line_->read());
    tapword_board_receive(this->board_, &byte, 1);
  }
}

#ifdef TAPWORD_HAS_FILES
static const char *slot_name(int slot) { return slot != 0 ? "/tapword1" : "/tapword0"; }

int Tapword::read_slot(void *context, int slot, uint8_t *bytes, size_t n) {
  fs::FS *files = static_cast<Tapword *>(context)->files_;
  if (!files->exists(slot_name(slot))) {
    return 0;
  }
  File file = files->open(slot_name(slot), "r");
  if (!file) {
    return -1;
  }
  int count = static_cast<int>(file.read(bytes, n));
  file.close();
  return count;
}

int Tapword::write_slot(void *context, int slot, const uint8_t *bytes, size_t n) {
  File file = static_cast<Tapword *>(context)->files_->open(slot_name(slot), "w");
  if (!file) {
    return -1;
  }
  size_t count = file.write(bytes, n);
  file.close();
  return count == n ? 0 : -1;
}
#endif
