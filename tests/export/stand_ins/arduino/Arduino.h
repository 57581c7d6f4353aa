/* Stand-in for Arduino: only what is used here. standard_input.h drives it. */
#ifndef ARDUINO_H
#define ARDUINO_H
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#define HIGH 1
#define LOW 0
#define INPUT 0
#define OUTPUT 1
#define INPUT_PULLUP 2
#define LED_BUILTIN 25

class Stream {
 public:
  std::string typed;
  virtual ~Stream() {}
  void begin(unsigned long) {}
  int available() { return (int)typed.size(); }
  int read() {
    int first = (uint8_t)typed[0];
    typed.erase(0, 1);
    return first;
  }
  size_t write(const uint8_t *bytes, size_t n) { return fwrite(bytes, 1, n, stdout); }
  void print(const char *text) { fputs(text, stdout); }
  void print(int number) { ::printf("%d", number); }
  void println(const char *text) { puts(text); }
  void println(int number) { ::printf("%d\n", number); }
  void printf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
  }

};
extern Stream Serial;

void pinMode(int pin, int mode);
void digitalWrite(int pin, int value);
int digitalRead(int pin);
unsigned long millis();
void delay(unsigned long ms);
#endif
