/* Stand-in for ESP-IDF: only what is used here. */
#ifndef DRIVER_UART_H
#define DRIVER_UART_H
#include <stddef.h>
#include <stdint.h>
#include "esp_err.h"
#include "freertos/FreeRTOS.h"
typedef int uart_port_t;
#define UART_NUM_0 0
esp_err_t uart_driver_install(uart_port_t port, int receive_bytes, int send_bytes, int queue_size,
                              void *queue, int flags);
int uart_read_bytes(uart_port_t port, void *bytes, uint32_t n, TickType_t wait);
int uart_write_bytes(uart_port_t port, const void *bytes, size_t n);
#endif
