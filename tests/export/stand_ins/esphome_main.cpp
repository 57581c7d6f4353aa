/* The ESPHome component on a computer: a microphone that reads standard input, and FreeRTOS and NVS of
   the standard library. The task that listens runs while the main loop waits for it. */
#include "esphome/components/tapword/tapword.h"

#include <cstdio>
#include <cstring>
#include <map>

using namespace esphome;

namespace esphome {
void esp_log_printf_(int, const char *, int, const char *, ...) {}
}  // namespace esphome

static std::map<std::string, std::string> nvs;

esp_err_t nvs_open(const char *, nvs_open_mode_t, nvs_handle_t *) { return ESP_OK; }
esp_err_t nvs_commit(nvs_handle_t) { return ESP_OK; }
esp_err_t nvs_get_blob(nvs_handle_t, const char *key, void *value, size_t *length) {
  auto found = nvs.find(key);
  if (found == nvs.end()) {
    return ESP_ERR_NVS_NOT_FOUND;
  }
  *length = found->second.size() < *length ? found->second.size() : *length;
  memcpy(value, found->second.data(), *length);
  return ESP_OK;
}
esp_err_t nvs_set_blob(nvs_handle_t, const char *key, const void *value, size_t length) {
  nvs[key] = std::string(static_cast<const char *>(value), length);
  return ESP_OK;
}

struct Queue {
  size_t size;
  std::vector<std::string> items;
};
QueueHandle_t xQueueCreate(UBaseType_t, UBaseType_t size) { return new Queue{size, {}}; }
BaseType_t xQueueSend(QueueHandle_t handle, const void *item, TickType_t) {
  auto *queue = static_cast<Queue *>(handle);
  queue->items.emplace_back(static_cast<const char *>(item), queue->size);
  return pdTRUE;
}
BaseType_t xQueueReceive(QueueHandle_t handle, void *item, TickType_t) {
  auto *queue = static_cast<Queue *>(handle);
  if (queue->items.empty()) {
    return pdFALSE;
  }
  memcpy(item, queue->items.front().data(), queue->size);
  queue->items.erase(queue->items.begin());
  return pdTRUE;
}

StreamBufferHandle_t xStreamBufferCreateStatic(size_t room, size_t, uint8_t *bytes, StaticStreamBuffer_t *state) {
  *state = {bytes, room, 0, 0};
  return state;
}
size_t xStreamBufferSend(StreamBufferHandle_t buffer, const void *bytes, size_t n, TickType_t) {
  n = n < buffer->room - buffer->filled ? n : buffer->room - buffer->filled;
  memcpy(buffer->bytes + buffer->filled, bytes, n);
  buffer->filled += n;
  return n;
}

/* The task has nothing left to do: back to the main loop. */
struct Nothing {};
size_t xStreamBufferReceive(StreamBufferHandle_t buffer, void *bytes, size_t n, TickType_t) {
  n = n < buffer->filled ? n : buffer->filled;
  if (n == 0) {
    throw Nothing{};
  }
  memcpy(bytes, buffer->bytes, n);
  buffer->filled -= n;
  memmove(buffer->bytes, buffer->bytes + n, buffer->filled);
  return n;
}

static TaskFunction_t task;
static void *argument;
BaseType_t xTaskCreate(TaskFunction_t function, const char *, uint32_t, void *self, UBaseType_t, TaskHandle_t *) {
  task = function;
  argument = self;
  return pdPASS;
}

class StandInMicrophone : public microphone::Microphone {
 public:
  StandInMicrophone() { this->audio_stream_info_ = audio::AudioStreamInfo(16, 1, 16000); }
  void start() override { this->state_ = microphone::STATE_RUNNING; }
  void stop() override { this->state_ = microphone::STATE_STOPPED; }
  void hear(const std::vector<uint8_t> &data) { this->data_callbacks_.call(data); }
};

template<typename... Ts> class Print : public Action<Ts...> {
 public:
  explicit Print(const char *kind) : kind_(kind) {}
  void play(const Ts &...x) override {
    printf("%s", this->kind_);
    (this->print_(x), ...);
    printf("\n");
  }

 protected:
  void print_(const std::string &text) { printf(" %s", text.c_str()); }
  void print_(int number) { printf(" %d", number); }
  const char *kind_;
};

template<typename... Ts> static void print(Trigger<Ts...> *trigger, const char *kind) {
  (new Automation<Ts...>(trigger))->add_actions({new Print<Ts...>(kind)});
}

int main() {
  StandInMicrophone microphone;
  microphone::MicrophoneSource source(&microphone, 16, 1, false);
  tapword::TapwordComponent spotter;
  char line[100];
  source.add_channel(0);
  spotter.set_microphone_source(&source);
  print(spotter.get_word_trigger(), "word");
  print(spotter.get_near_miss_trigger(), "near");
  print(spotter.get_teaching_trigger(), "teaching");
  print(spotter.add_word("lamp", 0.6f), "lamp");
  spotter.setup();
  if (spotter.is_failed()) {
    return 1;
  }
  while (fgets(line, sizeof line, stdin) != nullptr) {
    std::string rest = strchr(line, ' ') != nullptr ? strchr(line, ' ') + 1 : "";
    rest.erase(rest.find_last_not_of('\n') + 1);
    if (strncmp(line, "hear ", 5) == 0) {
      std::vector<uint8_t> data(static_cast<size_t>(atoi(rest.c_str())));
      if (fread(data.data(), 1, data.size(), stdin) != data.size()) {
        return 1;
      }
      microphone.hear(data);
    } else if (strncmp(line, "teach ", 6) == 0) {
      tapword::TeachAction<> action;
      action.set_parent(&spotter);
      action.set_word([]() -> std::string { return "lamp"; });
      action.set_takes([]() -> int { return 3; });
      action.play();
    } else if (strncmp(line, "forget ", 7) == 0) {
      spotter.send_command(tapword::Command::FORGET, rest);
    } else if (strncmp(line, "reject", 6) == 0) {
      spotter.send_command(tapword::Command::REJECT);
    }
    try {
      task(argument);
    } catch (Nothing &) {
    }
    spotter.loop();
    fflush(stdout);
  }
  printf("kept %zu\n", nvs.size());
  return 0;
}
