/* Stand-in for ESP-IDF: only what is used here. */
#ifndef NVS_H
#define NVS_H
#include <stddef.h>
#include <stdint.h>
#include "esp_err.h"
#define ESP_ERR_NVS_NOT_FOUND 0x1102
typedef uint32_t nvs_handle_t;
typedef enum { NVS_READONLY, NVS_READWRITE } nvs_open_mode_t;
#ifdef __cplusplus
extern "C" {
#endif
esp_err_t nvs_open(const char *space, nvs_open_mode_t mode, nvs_handle_t *handle);
esp_err_t nvs_get_blob(nvs_handle_t handle, const char *key, void *value, size_t *length);
esp_err_t nvs_set_blob(nvs_handle_t handle, const char *key, const void *value, size_t length);
esp_err_t nvs_commit(nvs_handle_t handle);
#ifdef __cplusplus
}
#endif
#endif
