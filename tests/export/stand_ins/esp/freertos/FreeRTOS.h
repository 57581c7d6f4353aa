/* Stand-in for FreeRTOS: only what is used here. */
#ifndef FREERTOS_H
#define FREERTOS_H
#include <stddef.h>
#include <stdint.h>
typedef int BaseType_t;
typedef unsigned UBaseType_t;
typedef uint32_t TickType_t;
#define pdTRUE 1
#define pdFALSE 0
#define pdPASS 1
#define portMAX_DELAY 0xffffffffu
#define portNUM_PROCESSORS 2
#define pdMS_TO_TICKS(ms) ((TickType_t)(ms))
#endif
