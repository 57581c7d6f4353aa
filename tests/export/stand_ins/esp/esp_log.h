/* Stand-in for ESP-IDF: only what is used here. */
#ifndef ESP_LOG_H
#define ESP_LOG_H
#include <stdio.h>
#define ESP_LOGI(tag, ...) (printf("I %s: ", tag), printf(__VA_ARGS__), printf("\n"))
#define ESP_LOGW(tag, ...) (printf("W %s: ", tag), printf(__VA_ARGS__), printf("\n"))
#define ESP_LOGE(tag, ...) (printf("E %s: ", tag), printf(__VA_ARGS__), printf("\n"))
#endif
