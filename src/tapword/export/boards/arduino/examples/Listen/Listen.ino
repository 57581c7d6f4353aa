/* Prints the words that were taught before the export, or since, in this file's `loop`.

   Replace read_microphone by how your board gives samples; the sketch Teach has an INMP441. */
#include <Tapword.h>

Tapword spotter;
int16_t samples[640];

/* Fill `samples` with 16-bit mono samples at 16 kHz. */
size_t read_microphone() {
  return 0;
}

void setup() {
  Serial.begin(115200);
  spotter.onWord([](const char *word, int confidence) {
    Serial.print(word);
    Serial.print(", sure ");
    Serial.println(confidence);
  });
  if (!spotter.begin(&Serial)) {
    Serial.println("There is not enough memory. Enable PSRAM, or define TAPWORD_MAX_WORDS=6.");
    while (true) {
      delay(1000);
    }
  }
}

void loop() {
  spotter.push(samples, read_microphone());
  spotter.receive(); /* "teach lamp", "words", "forget lamp", ... in the serial monitor */
}
