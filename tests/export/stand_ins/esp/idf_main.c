/* Runs the project for ESP-IDF on a computer. Standard input has orders: a letter, a length, and so
   many bytes: "a" for 16-bit samples, "s" for what is typed, "b" for a button that is pressed (1)
   or not (0), "g" to get /words, "p" to put it. */
#include "main.c"

#include "esp_http_server.h"
#include "esp_partition.h"

static uint8_t flash[1 << 18], typed[1 << 17];
static const esp_partition_t partition = {0, sizeof flash, 4096, "tapword"};
static size_t bytes_left, n_typed;
static uint32_t led, pressed;
static httpd_uri_t handlers[2];
static size_t n_handlers;

const esp_partition_t *esp_partition_find_first(esp_partition_type_t type,
                                                esp_partition_subtype_t subtype, const char *label)
{
    (void)subtype;
    return type == ESP_PARTITION_TYPE_DATA && strcmp(label, "tapword") == 0 ? &partition : NULL;
}

esp_err_t esp_partition_read(const esp_partition_t *p, size_t offset, void *bytes, size_t size)
{
    if (offset + size > p->size) {
        return ESP_FAIL;
    }
    memcpy(bytes, flash + offset, size);
    return ESP_OK;
}

/* Flash can only clear bits. */
esp_err_t esp_partition_write(const esp_partition_t *p, size_t offset, const void *bytes,
                              size_t size)
{
    size_t i;
    if (offset + size > p->size) {
        return ESP_FAIL;
    }
    for (i = 0; i < size; i++) {
        flash[offset + i] &= ((const uint8_t *)bytes)[i];
    }
    return ESP_OK;
}

esp_err_t esp_partition_erase_range(const esp_partition_t *p, size_t offset, size_t size)
{
    if (offset % p->erase_size != 0 || size % p->erase_size != 0 || offset + size > p->size) {
        return ESP_FAIL;
    }
    memset(flash + offset, 0xff, size);
    return ESP_OK;
}

static void leave(int code)
{
    FILE *file = fopen("flash", "wb");
    fwrite(flash, 1, sizeof flash, file);
    fclose(file);
    fflush(stdout);
    exit(code);
}

static void ask(httpd_method_t method, size_t n)
{
    size_t i;
    for (i = 0; i < n_handlers; i++) {
        if (handlers[i].method == method) {
            httpd_req_t request = {n, handlers[i].user_ctx};
            printf("HTTP %s: ", handlers[i].uri);
            if (handlers[i].handler(&request) != ESP_OK) {
                leave(1);
            }
            printf("\n");
        }
    }
}

static void next_order(void)
{
    int letter = getchar();
    uint32_t n = 0;
    if (letter == EOF || fread(&n, sizeof n, 1, stdin) != 1) {
        leave(0);
    }
    if (letter == 'a') {
        bytes_left = n;
    } else if (letter == 'b') {
        pressed = n;
    } else if (letter == 'g' || letter == 'p') {
        ask(letter == 'g' ? HTTP_GET : HTTP_PUT, n);
    } else {
        n_typed += fread(typed + n_typed, 1, n, stdin);
    }
}

esp_err_t i2s_channel_read(i2s_chan_handle_t channel, void *bytes, size_t size, size_t *read,
                           uint32_t wait)
{
    size_t i;
    (void)channel;
    (void)wait;
    while (bytes_left == 0) {
        next_order();
    }
    for (i = 0; i < size / 4 && bytes_left > 0; i++, bytes_left -= 2) {
        int16_t sample = 0;
        if (fread(&sample, 2, 1, stdin) != 1) {
            leave(1);
        }
        ((int32_t *)bytes)[i] = sample * (1 << 14);
    }
    *read = 4 * i;
    return ESP_OK;
}

esp_err_t i2s_new_channel(const i2s_chan_config_t *config, i2s_chan_handle_t *out,
                          i2s_chan_handle_t *in)
{
    (void)out;
    *in = NULL;
    /* A second of sound fits. */
    return config->dma_desc_num * config->dma_frame_num >= 16000 ? ESP_OK : ESP_FAIL;
}

esp_err_t i2s_channel_init_std_mode(i2s_chan_handle_t channel, const i2s_std_config_t *config)
{
    (void)channel;
    return config->clk_cfg.sample_rate_hz == 16000 ? ESP_OK : ESP_FAIL;
}

esp_err_t i2s_channel_enable(i2s_chan_handle_t channel)
{
    (void)channel;
    return ESP_OK;
}

esp_err_t gpio_set_direction(gpio_num_t pin, gpio_mode_t mode)
{
    (void)pin;
    (void)mode;
    return ESP_OK;
}

esp_err_t gpio_set_pull_mode(gpio_num_t pin, gpio_pull_mode_t mode)
{
    (void)pin;
    (void)mode;
    return ESP_OK;
}

esp_err_t gpio_set_level(gpio_num_t pin, uint32_t level)
{
    (void)pin;
    if (level != led) {
        led = level;
        printf("LED %d\n", (int)led);
    }
    return ESP_OK;
}

int gpio_get_level(gpio_num_t pin) { return pin == GPIO_NUM_0 && pressed ? 0 : 1; }

esp_err_t uart_driver_install(uart_port_t port, int receive_bytes, int send_bytes, int queue_size,
                              void *queue, int flags)
{
    (void)(port + send_bytes + queue_size + flags);
    (void)queue;
    /* More than the hardware's own buffer of 128 bytes. */
    return receive_bytes > 128 ? ESP_OK : ESP_FAIL;
}

int uart_read_bytes(uart_port_t port, void *bytes, uint32_t n, TickType_t wait)
{
    (void)port;
    (void)wait;
    n = n < n_typed ? n : (uint32_t)n_typed;
    memcpy(bytes, typed, n);
    n_typed -= n;
    memmove(typed, typed + n, n_typed);
    return (int)n;
}

int uart_write_bytes(uart_port_t port, const void *bytes, size_t n)
{
    (void)port;
    return (int)fwrite(bytes, 1, n, stdout);
}

BaseType_t xTaskCreatePinnedToCore(TaskFunction_t function, const char *name, uint32_t stack,
                                   void *argument, UBaseType_t priority, TaskHandle_t *task,
                                   BaseType_t core)
{
    (void)name;
    (void)stack;
    (void)priority;
    (void)task;
    (void)core;
    words_http_start(board, board_lock);
    function(argument);
    return pdPASS;
}

void vTaskDelay(TickType_t ticks) { (void)ticks; }

static int locks;
SemaphoreHandle_t xSemaphoreCreateMutex(void) { return &locks; }
BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t wait)
{
    (void)semaphore;
    (void)wait;
    return locks++ == 0 ? pdTRUE : (leave(2), pdFALSE);
}
BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore)
{
    (void)semaphore;
    locks--;
    return pdTRUE;
}

esp_err_t httpd_start(httpd_handle_t *server, const httpd_config_t *config)
{
    *server = NULL;
    return config->server_port == 80 ? ESP_OK : ESP_FAIL;
}

esp_err_t httpd_register_uri_handler(httpd_handle_t server, const httpd_uri_t *handler)
{
    (void)server;
    handlers[n_handlers++] = *handler;
    return ESP_OK;
}

esp_err_t httpd_resp_set_status(httpd_req_t *request, const char *status)
{
    (void)request;
    printf("%s ", status);
    return ESP_OK;
}

esp_err_t httpd_resp_set_type(httpd_req_t *request, const char *type)
{
    (void)request;
    (void)type;
    return ESP_OK;
}

esp_err_t httpd_resp_send(httpd_req_t *request, const char *bytes, long n)
{
    FILE *file = fopen("words.bin", "wb");
    (void)request;
    n -= (long)fwrite(bytes, 1, (size_t)n, file);
    printf("sent");
    return fclose(file) == 0 && n == 0 ? ESP_OK : ESP_FAIL;
}

esp_err_t httpd_resp_sendstr(httpd_req_t *request, const char *text)
{
    (void)request;
    printf("%s", text);
    return ESP_OK;
}

int httpd_req_recv(httpd_req_t *request, char *bytes, size_t n)
{
    (void)request;
    return (int)fread(bytes, 1, n < 1000 ? n : 1000, stdin);
}

int main(void)
{
    FILE *file = fopen("flash", "rb");
    memset(flash, 0xff, sizeof flash);
    if (file != NULL) {
        if (fread(flash, 1, sizeof flash, file) != sizeof flash) {
            return 1;
        }
        fclose(file);
    }
    app_main();
    return 0;
}
