/* Runs a sketch on a computer. Standard input has orders: a letter, a length, and so many bytes: "a"
   for 16-bit samples, "s" for what is typed, "b" for a button that is pressed (1) or not (0). */
#include SKETCH

Stream Serial;
fs::FS LittleFS;

static unsigned long samples_heard = 0, bytes_left = 0;
static bool pressed = false;
static int led = 0;

static void next_order() {
  int letter = getchar();
  uint32_t n = 0;
  if (letter == EOF || fread(&n, sizeof n, 1, stdin) != 1) {
    fflush(stdout);
    exit(0);
  }
  if (letter == 'a') {
    bytes_left = n;
  } else if (letter == 'b') {
    pressed = n != 0;
  } else {
    std::string text(n, '\0');
    if (fread(&text[0], 1, n, stdin) != n) {
      exit(1);
    }
    Serial.typed += text;
  }
}

bool next_sample(int16_t *sample) {
  while (bytes_left == 0) {
    next_order();
  }
  bytes_left -= 2;
  samples_heard++;
  return fread(sample, 2, 1, stdin) == 1;
}

void pinMode(int, int) {}
void digitalWrite(int, int value) {
  if (value != led) {
    led = value;
    printf("LED %d\n", led);
  }
}
int digitalRead(int) { return pressed ? LOW : HIGH; }
unsigned long millis() { return samples_heard / 16; }
void delay(unsigned long) {}

int main() {
  setup();
  for (;;) {
    loop();
  }
}
