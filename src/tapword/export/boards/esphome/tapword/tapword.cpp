#include "tapword.h"

#ifdef USE_TAPWORD

#include "esphome/core/helpers.h"
#include "esphome/core/log.h"

#include <cinttypes>
#include <cstring>

namespace esphome::tapword {

static const char *const TAG = "tapword";
/// Sound that waits while a word is scored: two seconds of 16 bits.
static const size_t WAITING_BYTES = 2 * 16000 * sizeof(int16_t);
static const size_t CHUNK = 512;
static const uint32_t STACK_BYTES = 12288;
static const UBaseType_t PRIORITY = 3;
static const UBaseType_t QUEUED = 8;

static const char *status_name(int status) {
  static const char *const NAMES[] = {"waiting", "speaking", "checking", "good", "doubtful", "noise", "nobody"};
  return NAMES[status];
}

static TapwordComponent *component(void *self) { return static_cast<TapwordComponent *>(self); }

Trigger<int> *TapwordComponent::add_word(const std::string &word, float sensitivity) {
  this->words_.push_back(std::make_unique<ConfiguredWord>());
  this->words_.back()->word = word;
  this->words_.back()->sensitivity = sensitivity;
  return &this->words_.back()->trigger;
}

void TapwordComponent::setup() {
  this->board_ = RAMAllocator<tapword_board>().allocate(1);
  uint8_t *waiting = RAMAllocator<uint8_t>().allocate(WAITING_BYTES + 1);
  this->commands_ = xQueueCreate(QUEUED, sizeof(Command));
  this->messages_ = xQueueCreate(QUEUED, sizeof(Message));
  if (this->board_ == nullptr || waiting == nullptr || this->commands_ == nullptr || this->messages_ == nullptr) {
    ESP_LOGE(TAG, "There is not enough memory; lower max_words");
    this->mark_failed();
    return;
  }
  this->audio_ = xStreamBufferCreateStatic(WAITING_BYTES, 1, waiting, &this->audio_state_);
  this->start_board_();
  this->source_->add_data_callback([this](const std::vector<uint8_t> &data) {
    size_t sent = xStreamBufferSend(this->audio_, data.data(), data.size() / 2 * 2, 0);
    this->lost_ += static_cast<uint32_t>((data.size() - sent) / 2);
  });
  this->source_->start();
  auto task = [](void *self) { component(self)->listen_(); };
  if (xTaskCreate(task, "tapword", STACK_BYTES, this, PRIORITY, nullptr) != pdPASS) {
    this->mark_failed();
  }
}

void TapwordComponent::start_board_() {
  tapword_callbacks callbacks{};
  callbacks.context = this;
  callbacks.word = [](void *self, const char *word, int confidence) {
    component(self)->tell_(Message::WORD, confidence, word);
  };
  callbacks.near_miss = [](void *self, const char *word, int confidence) {
    component(self)->tell_(Message::NEAR_MISS, confidence, word);
  };
  callbacks.teaching = [](void *self, int status, const char *word, uint32_t left, const char *issue) {
    component(self)->tell_(Message::TEACHING, status, word, static_cast<int>(left), issue);
    if (status == TAPWORD_TEACHER_GOOD) {
      component(self)->apply_sensitivities_();
    }
  };
  if (nvs_open("tapword", NVS_READWRITE, &this->store_) == ESP_OK) {
    callbacks.read = read_slot_;
    callbacks.write = write_slot_;
  } else {
    ESP_LOGW(TAG, "The flash cannot be used; words are not kept");
  }
  this->stored_ = tapword_board_start(this->board_, &callbacks);
  this->apply_sensitivities_();
}

/// Settings of the configuration are not stored, so that a changed one counts.
void TapwordComponent::apply_sensitivities_() {
  if (this->sensitivity_ >= 0.0f) {
    tapword_set_sensitivity(&this->board_->model, nullptr, this->sensitivity_);
  }
  for (const auto &word : this->words_) {
    if (word->sensitivity >= 0.0f) {
      tapword_set_sensitivity(&this->board_->model, word->word.c_str(), word->sensitivity);
    }
  }
}

int TapwordComponent::read_slot_(void *self, int slot, uint8_t *bytes, size_t n) {
  esp_err_t error = nvs_get_blob(component(self)->store_, slot != 0 ? "slot1" : "slot0", bytes, &n);
  if (error == ESP_ERR_NVS_NOT_FOUND) {
    return 0;
  }
  return error == ESP_OK ? static_cast<int>(n) : -1;
}

int TapwordComponent::write_slot_(void *self, int slot, const uint8_t *bytes, size_t n) {
  nvs_handle_t store = component(self)->store_;
  if (nvs_set_blob(store, slot != 0 ? "slot1" : "slot0", bytes, n) != ESP_OK || nvs_commit(store) != ESP_OK) {
    return -1;
  }
  return 0;
}

void TapwordComponent::listen_() {
  int16_t samples[CHUNK];
  Command command;
  while (true) {
    while (xQueueReceive(this->commands_, &command, 0) == pdTRUE) {
      this->run_(command);
    }
    uint32_t lost = this->lost_.exchange(0);
    if (lost > 0) {
      tapword_board_gap(this->board_, lost);
    }
    size_t n = xStreamBufferReceive(this->audio_, samples, sizeof samples, pdMS_TO_TICKS(50));
    int error = tapword_board_push(this->board_, samples, n / sizeof samples[0]);
    if (error < 0) {
      this->tell_(Message::FAILED, error);
    }
  }
}

void TapwordComponent::run_(const Command &command) {
  int found = 0;
  switch (command.kind) {
    case Command::TEACH:
      found = tapword_board_teach(this->board_, command.word, static_cast<uint32_t>(command.takes));
      break;
    case Command::FORGET:
      found = tapword_board_forget(this->board_, command.word);
      break;
    case Command::REJECT:
      found = tapword_board_reject(this->board_);
      break;
    case Command::KEEP:
      found = tapword_board_keep(this->board_);
      break;
    case Command::STOP:
      found = tapword_board_stop(this->board_);
      break;
  }
  if (found < 0) {
    this->tell_(Message::FAILED, found, command.word);
  } else if (command.kind == Command::TEACH) {
    this->tell_(Message::TEACHING, TAPWORD_TEACHER_WAITING, command.word, command.takes);
  }
}

void TapwordComponent::send_command(Command::Kind kind, const std::string &word, int takes) {
  Command command{};
  command.kind = kind;
  command.takes = takes;
  if (this->is_failed() || word.size() >= sizeof command.word) {
    ESP_LOGW(TAG, "Not done: the word is too long, or tapword did not start");
    return;
  }
  memcpy(command.word, word.c_str(), word.size() + 1);
  if (xQueueSend(this->commands_, &command, 0) != pdTRUE) {
    ESP_LOGW(TAG, "Busy; try again");
  }
}

void TapwordComponent::tell_(Message::Kind kind, int number, const char *word, int left, const char *issue) {
  Message message{};
  message.kind = kind;
  message.number = number;
  message.left = left;
  strncpy(message.word, word, sizeof message.word - 1);
  strncpy(message.issue, issue, sizeof message.issue - 1);
  xQueueSend(this->messages_, &message, 0);
}

void TapwordComponent::loop() {
  Message message;
  while (xQueueReceive(this->messages_, &message, 0) == pdTRUE) {
    std::string word = message.word;
    switch (message.kind) {
      case Message::WORD:
        ESP_LOGI(TAG, "word: %s, sure %d", message.word, message.number);
        this->word_trigger_.trigger(word, message.number);
        for (auto &configured : this->words_) {
          if (configured->word == word) {
            configured->trigger.trigger(message.number);
          }
        }
        break;
      case Message::NEAR_MISS:
        ESP_LOGD(TAG, "nearly: %s, sure %d", message.word, message.number);
        this->near_miss_trigger_.trigger(word, message.number);
        break;
      case Message::TEACHING:
        ESP_LOGI(TAG, "teaching %s: %s %s, %d more", message.word, status_name(message.number), message.issue,
                 message.left);
        this->teaching_trigger_.trigger(status_name(message.number), word, message.left, message.issue);
        break;
      case Message::FAILED:
        ESP_LOGW(TAG, "%s %s", message.word, tapword_error(message.number));
        break;
    }
  }
}

void TapwordComponent::dump_config() {
  ESP_LOGCONFIG(TAG, "tapword:\n  Room for words: %d\n  Memory: %u bytes", TAPWORD_MAX_WORDS,
                static_cast<unsigned>(sizeof(tapword_board)));
  if (this->stored_ < 0) {
    ESP_LOGCONFIG(TAG, "  Stored words cannot be used: %s", tapword_error(this->stored_));
  }
}

}  // namespace esphome::tapword

#endif  // USE_TAPWORD
