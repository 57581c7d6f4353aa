#pragma once

#include "esphome/core/defines.h"

#ifdef USE_TAPWORD

#include "tapword_core.h"

#include "esphome/components/microphone/microphone_source.h"
#include "esphome/core/automation.h"
#include "esphome/core/component.h"

#include <freertos/FreeRTOS.h>
#include <freertos/queue.h>
#include <freertos/stream_buffer.h>
#include <freertos/task.h>
#include <nvs.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace esphome::tapword {

/// A word of the configuration: its sensitivity, negative for that of the others, and its trigger.
struct ConfiguredWord {
  std::string word;
  float sensitivity;
  Trigger<int> trigger;
};

/// What the main loop asks of the task that listens.
struct Command {
  enum Kind : uint8_t { TEACH, FORGET, REJECT, KEEP, STOP } kind;
  int takes;
  char word[TAPWORD_NAME_BYTES];
};

/// What the task that listens tells the main loop.
struct Message {
  enum Kind : uint8_t { WORD, NEAR_MISS, TEACHING, FAILED } kind;
  int number; // confidence, status, or error
  int left;
  char word[TAPWORD_NAME_BYTES];
  char issue[32];
};

/// Listens in a task of its own: to score a word takes longer than the main loop may.
class TapwordComponent : public Component {
 public:
  void setup() override;
  void loop() override;
  void dump_config() override;
  float get_setup_priority() const override { return setup_priority::LATE; }

  void set_microphone_source(microphone::MicrophoneSource *source) { this->source_ = source; }
  void set_sensitivity(float sensitivity) { this->sensitivity_ = sensitivity; }
  Trigger<int> *add_word(const std::string &word, float sensitivity);

  Trigger<std::string, int> *get_word_trigger() { return &this->word_trigger_; }
  Trigger<std::string, int> *get_near_miss_trigger() { return &this->near_miss_trigger_; }
  Trigger<std::string, std::string, int, std::string> *get_teaching_trigger() { return &this->teaching_trigger_; }

  void send_command(Command::Kind kind, const std::string &word = "", int takes = 0);

 protected:
  void start_board_();
  void listen_();
  void run_(const Command &command);
  void apply_sensitivities_();
  void tell_(Message::Kind kind, int number, const char *word = "", int left = 0, const char *issue = "");
  static int read_slot_(void *self, int slot, uint8_t *bytes, size_t n);
  static int write_slot_(void *self, int slot, const uint8_t *bytes, size_t n);

  microphone::MicrophoneSource *source_{nullptr};
  tapword_board *board_{nullptr};
  nvs_handle_t store_{0};
  StreamBufferHandle_t audio_{nullptr};
  StaticStreamBuffer_t audio_state_;
  QueueHandle_t commands_{nullptr}, messages_{nullptr};
  std::atomic<uint32_t> lost_{0};
  float sensitivity_{-1.0f};
  int stored_{0};
  std::vector<std::unique_ptr<ConfiguredWord>> words_;
  Trigger<std::string, int> word_trigger_, near_miss_trigger_;
  Trigger<std::string, std::string, int, std::string> teaching_trigger_;
};

template<typename... Ts> class TeachAction : public Action<Ts...>, public Parented<TapwordComponent> {
 public:
  TEMPLATABLE_VALUE(std::string, word)
  TEMPLATABLE_VALUE(int, takes)
  void play(const Ts &...x) override {
    this->parent_->send_command(Command::TEACH, this->word_.value(x...), this->takes_.value(x...));
  }
};

template<typename... Ts> class ForgetAction : public Action<Ts...>, public Parented<TapwordComponent> {
 public:
  TEMPLATABLE_VALUE(std::string, word)
  void play(const Ts &...x) override { this->parent_->send_command(Command::FORGET, this->word_.value(x...)); }
};

template<typename... Ts> class RejectAction : public Action<Ts...>, public Parented<TapwordComponent> {
 public:
  void play(const Ts &...x) override { this->parent_->send_command(Command::REJECT); }
};

template<typename... Ts> class KeepAction : public Action<Ts...>, public Parented<TapwordComponent> {
 public:
  void play(const Ts &...x) override { this->parent_->send_command(Command::KEEP); }
};

template<typename... Ts> class StopAction : public Action<Ts...>, public Parented<TapwordComponent> {
 public:
  void play(const Ts &...x) override { this->parent_->send_command(Command::STOP); }
};

}  // namespace esphome::tapword

#endif  // USE_TAPWORD
