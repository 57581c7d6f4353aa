/* Stand-in for I2S of Arduino-Pico: only what is used here. */
#ifndef I2S_H
#define I2S_H
#include <cstddef>
#include <cstdint>
bool next_sample(int16_t *sample);
class I2S {
 public:
  explicit I2S(int direction) { (void)direction; }
  bool setBCLK(int pin) { return pin >= 0; }
  bool setDATA(int pin) { return pin >= 0; }
  bool setBitsPerSample(int bits) { return bits == 32; }
  bool setBuffers(size_t buffers, size_t words) { return buffers * words > 0; }
  bool begin(long rate) { return rate == 16000; }
  bool read32(int32_t *left, int32_t *right) {
    int16_t sample = 0;
    bool found = next_sample(&sample);
    *left = int32_t(sample) << 14;
    *right = 0;
    return found;
  }
};
#endif
