/* Stand-in for the file systems of Arduino: only what is used here. Files are in the working directory. */
#ifndef FS_H
#define FS_H
#include <cstdint>
#include <cstdio>
#include <string>
namespace fs {
class File {
 public:
  explicit File(FILE *file) : file_(file) {}
  explicit operator bool() const { return this->file_ != nullptr; }
  size_t read(uint8_t *bytes, size_t n) { return fread(bytes, 1, n, this->file_); }
  size_t write(const uint8_t *bytes, size_t n) { return fwrite(bytes, 1, n, this->file_); }
  void close() { fclose(this->file_); }

 private:
  FILE *file_;
};
class FS {
 public:
#if defined ARDUINO_ARCH_ESP32
  /* A new board has no file system until it is formatted. */
  bool begin(bool format = false) { return this->mounted_ = format; }
#else
  bool begin() { return this->mounted_ = true; }
#endif
  bool exists(const char *name) {
    File file = this->open(name, "r");
    bool found = static_cast<bool>(file);
    if (found) {
      file.close();
    }
    return found;
  }
  File open(const char *name, const char *mode) {
    return File(this->mounted_ ? fopen(name + 1, mode) : nullptr);
  }

 private:
  bool mounted_{false};
};
}  // namespace fs
using fs::File;
#endif
