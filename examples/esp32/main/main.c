/* Listens to an I2S microphone (INMP441 and the like) and prints the words that it hears. */
#include "driver/i2s_std.h"
#include "esp_log.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "spotter.h"

#define PIN_CLOCK GPIO_NUM_4
#define PIN_WORD GPIO_NUM_5
#define PIN_DATA GPIO_NUM_6

static i2s_chan_handle_t microphone;
static int16_t samples[SPOTTER_CHUNK];

static void open_microphone(void)
{
    i2s_chan_config_t channel = I2S_CHANNEL_DEFAULT_CONFIG(I2S_NUM_AUTO, I2S_ROLE_MASTER);
    i2s_std_config_t config = {
        .clk_cfg = I2S_STD_CLK_DEFAULT_CONFIG(16000),
        .slot_cfg =
            I2S_STD_PHILIPS_SLOT_DEFAULT_CONFIG(I2S_DATA_BIT_WIDTH_16BIT, I2S_SLOT_MODE_MONO),
        .gpio_cfg = {.mclk = I2S_GPIO_UNUSED,
                     .bclk = PIN_CLOCK,
                     .ws = PIN_WORD,
                     .dout = I2S_GPIO_UNUSED,
                     .din = PIN_DATA},
    };
    /* Such microphones give 32 bits, of which the first 16 are kept. */
    config.slot_cfg.slot_bit_width = I2S_SLOT_BIT_WIDTH_32BIT;
    /* A word is scored at once, which takes longer than a chunk lasts: a second of sound waits. */
    channel.dma_desc_num = 25;
    channel.dma_frame_num = SPOTTER_CHUNK;
    ESP_ERROR_CHECK(i2s_new_channel(&channel, NULL, &microphone));
    ESP_ERROR_CHECK(i2s_channel_init_std_mode(microphone, &config));
    ESP_ERROR_CHECK(i2s_channel_enable(microphone));
}

static void listen(void *unused)
{
    (void)unused;
    for (;;) {
        const char *word;
        size_t read = 0;
        ESP_ERROR_CHECK(
            i2s_channel_read(microphone, samples, sizeof samples, &read, portMAX_DELAY));
        word = spotter_push(samples);
        if (word != NULL) {
            ESP_LOGI("tapword", "%s", word);
        }
    }
}

void app_main(void)
{
    spotter_start();
    open_microphone();
    xTaskCreatePinnedToCore(listen, "listen", 8192, NULL, 5, NULL, 1);
}
