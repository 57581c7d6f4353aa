/* Hold the button for a second and say a word three times; the LED tells how each take was.

   LED: on while somebody speaks; one blink: learned; two: say it again; five: only noise.
   The words are kept in LittleFS. In the serial monitor, "teach lamp" teaches a word by name, and
   "wrong" rejects the last one. */
#include <LittleFS.h>
#include <Tapword.h>

#include "microphone.h"

/* Pins; docs/boards.md of tapword has a table for other boards. */
#if defined ARDUINO_ARCH_RP2040
const int CLOCK = 10, WORD_SELECT = 11, DATA = 12, BUTTON = 15, LED = LED_BUILTIN;
#elif defined CONFIG_IDF_TARGET_ESP32C6
const int CLOCK = 18, WORD_SELECT = 19, DATA = 20, BUTTON = 9, LED = 2;
#else
const int CLOCK = 4, WORD_SELECT = 5, DATA = 6, BUTTON = 0, LED = 2;
#endif

Tapword spotter;
int16_t samples[256];
unsigned long pressed_at = 0;

void blink(int times) {
  for (int i = 0; i < times; i++) {
    digitalWrite(LED, HIGH);
    delay(80);
    digitalWrite(LED, LOW);
    delay(80);
  }
}

void on_word(const char *word, int confidence) {
  Serial.printf("word: %s, sure %d\n", word, confidence);
  blink(1);
}

void on_near_miss(const char *word, int confidence) {
  Serial.printf("nearly: %s, sure %d\n", word, confidence);
}

void on_teaching(int status, const char *word, int left, const char *issue) {
  switch (status) {
  case TAPWORD_TEACHER_WAITING:
    digitalWrite(LED, LOW);
    break;
  case TAPWORD_TEACHER_SPEAKING:
    digitalWrite(LED, HIGH);
    break;
  case TAPWORD_TEACHER_HEARD:
    Serial.println("checking ...");
    break;
  case TAPWORD_TEACHER_GOOD:
    Serial.printf("good: %s, %d more\n", word, left);
    blink(1);
    break;
  case TAPWORD_TEACHER_DOUBTFUL:
    Serial.printf("doubtful, %s: say %s again, or type: keep\n", issue, word);
    blink(2);
    break;
  case TAPWORD_TEACHER_NOISE:
    Serial.printf("only noise: say %s again\n", word);
    blink(5);
    break;
  case TAPWORD_TEACHER_NOBODY:
    Serial.println("nobody spoke: teaching ended");
    digitalWrite(LED, LOW);
    break;
  }
}

/* A new word gets the first free name of "word 1", "word 2", ... */
void teach_new_word() {
  char name[20];
  bool taken = true;
  for (int number = 1; taken; number++) {
    snprintf(name, sizeof name, "word %d", number);
    taken = false;
    for (size_t i = 0; i < spotter.words(); i++) {
      taken = taken || strcmp(spotter.word(i), name) == 0;
    }
  }
  int error = spotter.teach(name);
  Serial.printf("%s: %s\n", name, error < 0 ? Tapword::error(error) : "say it three times");
}

void setup() {
  Serial.begin(115200);
  pinMode(BUTTON, INPUT_PULLUP);
  pinMode(LED, OUTPUT);
#if defined ARDUINO_ARCH_ESP32
  LittleFS.begin(true); /* formats a new board */
#else
  LittleFS.begin();
#endif
  spotter.storeIn(LittleFS);
  spotter.onWord(on_word);
  spotter.onNearMiss(on_near_miss);
  spotter.onTeaching(on_teaching);
  while (!spotter.begin(&Serial)) {
    Serial.println("There is not enough memory. Enable PSRAM, or define TAPWORD_MAX_WORDS=6.");
    delay(5000);
  }
  if (spotter.stored() < 0) {
    Serial.printf("no stored words: %s\n", Tapword::error(spotter.stored()));
  }
  while (!open_microphone(CLOCK, WORD_SELECT, DATA)) {
    Serial.println("The microphone does not start. Check the pins.");
    delay(5000);
  }
  Serial.printf("tapword listens for %u words\n", static_cast<unsigned>(spotter.words()));
}

void loop() {
  spotter.push(samples, read_microphone(samples, 256));
  spotter.receive();
  if (digitalRead(BUTTON) == HIGH) {
    pressed_at = 0;
  } else if (pressed_at == 0) {
    pressed_at = millis();
  } else if (pressed_at != 1 && millis() - pressed_at > 1000) {
    pressed_at = 1;
    teach_new_word();
  }
}
