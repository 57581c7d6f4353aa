/* Stand-in for FreeRTOS: only what is used here. */
#ifndef FREERTOS_SEMPHR_H
#define FREERTOS_SEMPHR_H
#include "freertos/FreeRTOS.h"
typedef void *SemaphoreHandle_t;
#ifdef __cplusplus
extern "C" {
#endif
SemaphoreHandle_t xSemaphoreCreateMutex(void);
BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t wait);
BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore);
#ifdef __cplusplus
}
#endif
#endif
