/* Stand-in for FreeRTOS: only what is used here. */
#ifndef FREERTOS_QUEUE_H
#define FREERTOS_QUEUE_H
#include "freertos/FreeRTOS.h"
typedef void *QueueHandle_t;
#ifdef __cplusplus
extern "C" {
#endif
QueueHandle_t xQueueCreate(UBaseType_t length, UBaseType_t size);
BaseType_t xQueueSend(QueueHandle_t queue, const void *item, TickType_t wait);
BaseType_t xQueueReceive(QueueHandle_t queue, void *item, TickType_t wait);
#ifdef __cplusplus
}
#endif
#endif
