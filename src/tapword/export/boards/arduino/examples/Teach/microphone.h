/* An INMP441 or another I2S microphone: its left channel at 16 kHz, for ESP32 and RP2350. */
#ifndef MICROPHONE_H
#define MICROPHONE_H

#if defined ARDUINO_ARCH_ESP32
#include <ESP_I2S.h>

I2SClass i2s;

inline bool open_microphone(int clock, int word_select, int data) {
  i2s.setPins(clock, word_select, -1, data);
  return i2s.begin(I2S_MODE_STD, 16000, I2S_DATA_BIT_WIDTH_32BIT, I2S_SLOT_MODE_MONO,
                   I2S_STD_SLOT_LEFT);
}

/* Samples are the upper half of 32 bits, four times as loud: voices use little of the range. */
inline size_t read_microphone(int16_t *samples, size_t n) {
  static int32_t wide[256];
  n = n < 256 ? n : 256;
  n = i2s.readBytes(reinterpret_cast<char *>(wide), n * sizeof wide[0]) / sizeof wide[0];
  for (size_t i = 0; i < n; i++) {
    int32_t value = wide[i] >> 14;
    samples[i] = static_cast<int16_t>(value > 32767 ? 32767 : value < -32768 ? -32768 : value);
  }
  return n;
}
#elif defined ARDUINO_ARCH_RP2040
#include <I2S.h>

I2S i2s(INPUT);

/* The pin of the word select must be the one after the clock's. */
inline bool open_microphone(int clock, int word_select, int data) {
  (void)word_select;
  i2s.setBCLK(clock);
  i2s.setDATA(data);
  i2s.setBitsPerSample(32);
  i2s.setBuffers(32, 1024);
  return i2s.begin(16000);
}

inline size_t read_microphone(int16_t *samples, size_t n) {
  n = n < 256 ? n : 256;
  for (size_t i = 0; i < n; i++) {
    int32_t left = 0, right = 0;
    i2s.read32(&left, &right);
    int32_t value = left >> 14;
    samples[i] = static_cast<int16_t>(value > 32767 ? 32767 : value < -32768 ? -32768 : value);
  }
  return n;
}
#else
#error "Add open_microphone and read_microphone for this board"
#endif

#endif
