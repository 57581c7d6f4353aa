#include "tapword_idf.h"

#include "esp_heap_caps.h"
#include "esp_partition.h"

/* Sectors are erased as a whole. */
#define SECTOR 4096

static const esp_partition_t *partition;

/* A slot is one half of the partition. */
static size_t slot_bytes(void) { return partition->size / 2 / SECTOR * SECTOR; }

static int read_slot(void *context, int slot, uint8_t *bytes, size_t n)
{
    (void)context;
    n = n < slot_bytes() ? n : slot_bytes();
    return esp_partition_read(partition, (size_t)slot * slot_bytes(), bytes, n) == ESP_OK ? (int)n
                                                                                          : -1;
}

static int write_slot(void *context, int slot, const uint8_t *bytes, size_t n)
{
    size_t start = (size_t)slot * slot_bytes(), erased = (n + SECTOR - 1) / SECTOR * SECTOR;
    (void)context;
    if (n > slot_bytes() || esp_partition_erase_range(partition, start, erased) != ESP_OK) {
        return -1;
    }
    return esp_partition_write(partition, start, bytes, n) == ESP_OK ? 0 : -1;
}

tapword_board *tapword_idf_new(const tapword_callbacks *callbacks, const char *label, int *found)
{
    tapword_callbacks all = *callbacks;
    tapword_board *board = NULL;
#ifdef CONFIG_TAPWORD_PSRAM
    board = heap_caps_malloc(sizeof *board, MALLOC_CAP_SPIRAM);
#endif
    if (board == NULL) {
        board = heap_caps_malloc(sizeof *board, MALLOC_CAP_DEFAULT);
    }
    if (board == NULL) {
        return NULL;
    }
    if (label != NULL) {
        partition =
            esp_partition_find_first(ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_ANY, label);
        all.read = partition == NULL ? NULL : read_slot;
        all.write = partition == NULL ? NULL : write_slot;
    }
    *found = tapword_board_start(board, &all);
    return board;
}
