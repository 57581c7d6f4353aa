/* Listens to an I2S microphone (INMP441 and the like), and is taught by a button.

   Hold the button for a second and say a word three times. The LED is on while somebody speaks, and
   blinks once for a take that was learned, twice for a doubtful one, five times for noise. The
   serial line takes commands, such as "teach lamp" and "wrong", and `tapword import --port`. */
#include "driver/gpio.h"
#include "driver/i2s_std.h"
#include "driver/uart.h"
#include "esp_log.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#include "tapword_idf.h"
#include "words_http.h"

#include <stdio.h>
#include <string.h>

/* Pins of an ESP32-C6-DevKitC and an ESP32-S3-DevKitC. */
#ifdef CONFIG_IDF_TARGET_ESP32C6
#define PIN_CLOCK GPIO_NUM_18
#define PIN_WORD GPIO_NUM_19
#define PIN_DATA GPIO_NUM_20
#define PIN_BUTTON GPIO_NUM_9
#else
#define PIN_CLOCK GPIO_NUM_4
#define PIN_WORD GPIO_NUM_5
#define PIN_DATA GPIO_NUM_6
#define PIN_BUTTON GPIO_NUM_0
#endif
#define PIN_LED GPIO_NUM_2

#define LINE UART_NUM_0
#define CHUNK 640
#define HOLD_CHUNKS (16000 / CHUNK)

static const char *const TAG = "tapword";
static i2s_chan_handle_t microphone;
static tapword_board *board;
/* Words may come by HTTP, in another task. */
static SemaphoreHandle_t board_lock;

static void open_microphone(void)
{
    i2s_chan_config_t channel = I2S_CHANNEL_DEFAULT_CONFIG(I2S_NUM_AUTO, I2S_ROLE_MASTER);
    i2s_std_config_t config = {
        .clk_cfg = I2S_STD_CLK_DEFAULT_CONFIG(16000),
        .slot_cfg =
            I2S_STD_PHILIPS_SLOT_DEFAULT_CONFIG(I2S_DATA_BIT_WIDTH_32BIT, I2S_SLOT_MODE_MONO),
        .gpio_cfg = {.mclk = I2S_GPIO_UNUSED,
                     .bclk = PIN_CLOCK,
                     .ws = PIN_WORD,
                     .dout = I2S_GPIO_UNUSED,
                     .din = PIN_DATA},
    };
    /* A word is scored at once, which takes longer than a chunk lasts: a second of sound waits. */
    channel.dma_desc_num = 32;
    channel.dma_frame_num = 500;
    ESP_ERROR_CHECK(i2s_new_channel(&channel, NULL, &microphone));
    ESP_ERROR_CHECK(i2s_channel_init_std_mode(microphone, &config));
    ESP_ERROR_CHECK(i2s_channel_enable(microphone));
}

/* Samples are the upper half of 32 bits, four times as loud: voices use little of the range. */
static size_t read_microphone(int16_t *samples)
{
    static int32_t wide[CHUNK];
    size_t bytes = 0, i, n;
    ESP_ERROR_CHECK(i2s_channel_read(microphone, wide, sizeof wide, &bytes, portMAX_DELAY));
    n = bytes / sizeof wide[0];
    for (i = 0; i < n; i++) {
        int32_t value = wide[i] >> 14;
        samples[i] = (int16_t)(value > 32767 ? 32767 : value < -32768 ? -32768 : value);
    }
    return n;
}

static void blink(int times)
{
    while (times-- > 0) {
        gpio_set_level(PIN_LED, 1);
        vTaskDelay(pdMS_TO_TICKS(80));
        gpio_set_level(PIN_LED, 0);
        vTaskDelay(pdMS_TO_TICKS(80));
    }
}

static void on_word(void *context, const char *word, int confidence)
{
    (void)context;
    ESP_LOGI(TAG, "word: %s, sure %d", word, confidence);
    blink(1);
}

static void on_near_miss(void *context, const char *word, int confidence)
{
    (void)context;
    ESP_LOGI(TAG, "nearly: %s, sure %d", word, confidence);
}

static void on_teaching(void *context, int status, const char *word, uint32_t left,
                        const char *issue)
{
    (void)context;
    gpio_set_level(PIN_LED, status == TAPWORD_TEACHER_SPEAKING);
    switch (status) {
    case TAPWORD_TEACHER_HEARD:
        ESP_LOGI(TAG, "checking ...");
        break;
    case TAPWORD_TEACHER_GOOD:
        ESP_LOGI(TAG, "good: %s, %d more", word, (int)left);
        blink(1);
        break;
    case TAPWORD_TEACHER_DOUBTFUL:
        ESP_LOGI(TAG, "doubtful, %s: say %s again, or type: keep", issue, word);
        blink(2);
        break;
    case TAPWORD_TEACHER_NOISE:
        ESP_LOGI(TAG, "only noise: say %s again", word);
        blink(5);
        break;
    case TAPWORD_TEACHER_NOBODY:
        ESP_LOGI(TAG, "nobody spoke: teaching ended");
        break;
    default:
        break;
    }
}

static void on_send(void *context, const uint8_t *bytes, size_t n)
{
    (void)context;
    uart_write_bytes(LINE, bytes, n);
}

/* A new word gets the first free name of "word 1", "word 2", ... */
static void teach_new_word(void)
{
    char name[20];
    int number = 1, error;
    do {
        snprintf(name, sizeof name, "word %d", number++);
    } while (tapword_find(&board->model, name) >= 0);
    error = tapword_board_teach(board, name, 3);
    ESP_LOGI(TAG, "%s: %s", name, error < 0 ? tapword_error(error) : "say it three times");
}

static void listen(void *unused)
{
    static int16_t samples[CHUNK];
    static uint8_t bytes[256];
    int held = 0;
    (void)unused;
    for (;;) {
        size_t n = read_microphone(samples);
        int count = uart_read_bytes(LINE, bytes, sizeof bytes, 0);
        xSemaphoreTake(board_lock, portMAX_DELAY);
        tapword_board_push(board, samples, n);
        if (count > 0) {
            tapword_board_receive(board, bytes, (size_t)count);
        }
        held = gpio_get_level(PIN_BUTTON) == 0 ? held + 1 : 0;
        if (held == HOLD_CHUNKS) {
            teach_new_word();
        }
        xSemaphoreGive(board_lock);
    }
}

void app_main(void)
{
    static const tapword_callbacks callbacks = {
        .word = on_word, .near_miss = on_near_miss, .teaching = on_teaching, .send = on_send};
    int found = 0;
    gpio_set_direction(PIN_LED, GPIO_MODE_OUTPUT);
    gpio_set_direction(PIN_BUTTON, GPIO_MODE_INPUT);
    gpio_set_pull_mode(PIN_BUTTON, GPIO_PULLUP_ONLY);
    ESP_ERROR_CHECK(uart_driver_install(LINE, 1024, 1024, 0, NULL, 0));
    board = tapword_idf_new(&callbacks, "tapword", &found);
    if (board == NULL) {
        ESP_LOGE(TAG, "There is not enough memory; lower CONFIG_TAPWORD_MAX_WORDS");
        return;
    }
    if (found < 0) {
        ESP_LOGW(TAG, "no stored words: %s", tapword_error(found));
    }
    board_lock = xSemaphoreCreateMutex();
    open_microphone();
    ESP_LOGI(TAG, "listening for %d words", (int)board->model.words);
    /* Once your program has joined a network: words_http_start(board, board_lock); */
    xTaskCreatePinnedToCore(listen, "listen", 12288, NULL, 5, NULL, portNUM_PROCESSORS - 1);
}
