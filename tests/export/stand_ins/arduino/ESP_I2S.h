/* Stand-in for I2S of Arduino for ESP32: only what is used here. */
#ifndef ESP_I2S_H
#define ESP_I2S_H
#include <cstddef>
#include <cstdint>
typedef enum { I2S_MODE_STD } i2s_mode_t;
typedef enum { I2S_DATA_BIT_WIDTH_32BIT = 32 } i2s_data_bit_width_t;
typedef enum { I2S_SLOT_MODE_MONO = 1 } i2s_slot_mode_t;
typedef enum { I2S_STD_SLOT_LEFT = 1 } i2s_std_slot_mask_t;
bool next_sample(int16_t *sample);
class I2SClass {
 public:
  void setPins(int8_t clock, int8_t word_select, int8_t out, int8_t in = -1, int8_t master = -1) {
    (void)(clock + word_select + out + in + master);
  }
  bool begin(i2s_mode_t, uint32_t rate, i2s_data_bit_width_t, i2s_slot_mode_t, int8_t slots = -1) {
    return rate == 16000 && slots == I2S_STD_SLOT_LEFT;
  }
  size_t readBytes(char *buffer, size_t size) {
    size_t n = 0;
    int16_t sample;
    while (n + 4 <= size && next_sample(&sample)) {
      reinterpret_cast<int32_t *>(buffer)[n / 4] = int32_t(sample) << 14;
      n += 4;
    }
    return n;
  }
};
#endif
