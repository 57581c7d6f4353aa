/* Stand-in for ESP-IDF: only what is used here. */
#ifndef DRIVER_GPIO_H
#define DRIVER_GPIO_H
#include <stdint.h>
#include "esp_err.h"
typedef enum {
    GPIO_NUM_0,
    GPIO_NUM_2 = 2,
    GPIO_NUM_4 = 4,
    GPIO_NUM_5,
    GPIO_NUM_6,
    GPIO_NUM_9 = 9,
    GPIO_NUM_18 = 18,
    GPIO_NUM_19,
    GPIO_NUM_20
} gpio_num_t;
typedef enum { GPIO_MODE_INPUT = 1, GPIO_MODE_OUTPUT } gpio_mode_t;
typedef enum { GPIO_PULLUP_ONLY } gpio_pull_mode_t;
esp_err_t gpio_set_direction(gpio_num_t pin, gpio_mode_t mode);
esp_err_t gpio_set_pull_mode(gpio_num_t pin, gpio_pull_mode_t mode);
esp_err_t gpio_set_level(gpio_num_t pin, uint32_t level);
int gpio_get_level(gpio_num_t pin);
#endif
