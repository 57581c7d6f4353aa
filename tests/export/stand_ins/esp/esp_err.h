/* Stand-in for ESP-IDF: only what is used here. */
#ifndef ESP_ERR_H
#define ESP_ERR_H
#include <stdio.h>
#include <stdlib.h>
typedef int esp_err_t;
#define ESP_OK 0
#define ESP_FAIL (-1)
#define ESP_ERROR_CHECK(call)                                                                      \
    ((call) == ESP_OK ? (void)0 : (printf("failed: %s\n", #call), abort()))
#endif
