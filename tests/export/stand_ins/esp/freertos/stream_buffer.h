/* Stand-in for FreeRTOS: only what is used here. */
#ifndef FREERTOS_STREAM_BUFFER_H
#define FREERTOS_STREAM_BUFFER_H
#include "freertos/FreeRTOS.h"
typedef struct {
    uint8_t *bytes;
    size_t room, first, filled;
} StaticStreamBuffer_t;
typedef StaticStreamBuffer_t *StreamBufferHandle_t;
#ifdef __cplusplus
extern "C" {
#endif
StreamBufferHandle_t xStreamBufferCreateStatic(size_t room, size_t trigger, uint8_t *bytes,
                                               StaticStreamBuffer_t *state);
size_t xStreamBufferSend(StreamBufferHandle_t buffer, const void *bytes, size_t n, TickType_t wait);
size_t xStreamBufferReceive(StreamBufferHandle_t buffer, void *bytes, size_t n, TickType_t wait);
#ifdef __cplusplus
}
#endif
#endif
