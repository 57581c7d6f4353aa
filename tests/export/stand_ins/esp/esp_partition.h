/* Stand-in for ESP-IDF: only what is used here. The partition is an array that a test can see. */
#ifndef ESP_PARTITION_H
#define ESP_PARTITION_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "esp_err.h"
typedef enum { ESP_PARTITION_TYPE_DATA = 1 } esp_partition_type_t;
typedef enum { ESP_PARTITION_SUBTYPE_ANY = 0xff } esp_partition_subtype_t;
typedef struct {
    uint32_t address, size, erase_size;
    char label[17];
} esp_partition_t;
const esp_partition_t *esp_partition_find_first(esp_partition_type_t type,
                                                esp_partition_subtype_t subtype, const char *label);
esp_err_t esp_partition_read(const esp_partition_t *partition, size_t offset, void *bytes,
                             size_t size);
esp_err_t esp_partition_write(const esp_partition_t *partition, size_t offset, const void *bytes,
                              size_t size);
esp_err_t esp_partition_erase_range(const esp_partition_t *partition, size_t offset, size_t size);
#endif
