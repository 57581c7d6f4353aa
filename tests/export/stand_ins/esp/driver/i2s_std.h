/* Stand-in for ESP-IDF: only what is used here. */
#ifndef DRIVER_I2S_STD_H
#define DRIVER_I2S_STD_H
#include <stddef.h>
#include <stdint.h>
#include "driver/gpio.h"
typedef struct i2s_channel *i2s_chan_handle_t;
typedef struct {
    int id, role;
    uint32_t dma_desc_num, dma_frame_num;
} i2s_chan_config_t;
typedef struct {
    uint32_t sample_rate_hz;
} i2s_std_clk_config_t;
typedef struct {
    int data_bit_width, slot_mode;
} i2s_std_slot_config_t;
typedef struct {
    int mclk, bclk, ws, dout, din;
} i2s_std_gpio_config_t;
typedef struct {
    i2s_std_clk_config_t clk_cfg;
    i2s_std_slot_config_t slot_cfg;
    i2s_std_gpio_config_t gpio_cfg;
} i2s_std_config_t;
#define I2S_NUM_AUTO (-1)
#define I2S_ROLE_MASTER 0
#define I2S_GPIO_UNUSED (-1)
#define I2S_DATA_BIT_WIDTH_32BIT 32
#define I2S_SLOT_MODE_MONO 1
#define I2S_CHANNEL_DEFAULT_CONFIG(number, side) {.id = (number), .role = (side)}
#define I2S_STD_CLK_DEFAULT_CONFIG(rate) {.sample_rate_hz = (rate)}
#define I2S_STD_PHILIPS_SLOT_DEFAULT_CONFIG(bits, mode)                                            \
    {.data_bit_width = (bits), .slot_mode = (mode)}
esp_err_t i2s_new_channel(const i2s_chan_config_t *config, i2s_chan_handle_t *out,
                          i2s_chan_handle_t *in);
esp_err_t i2s_channel_init_std_mode(i2s_chan_handle_t channel, const i2s_std_config_t *config);
esp_err_t i2s_channel_enable(i2s_chan_handle_t channel);
esp_err_t i2s_channel_read(i2s_chan_handle_t channel, void *bytes, size_t size, size_t *read,
                           uint32_t wait);
#endif
