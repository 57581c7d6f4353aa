/* The words of a board at http://ADDRESS/words: `tapword import` reads them, `tapword export`
   replaces them. Whoever reaches the board may do so; keep it in your own network. */
#ifndef WORDS_HTTP_H
#define WORDS_HTTP_H

#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "tapword_core.h"

/* Start the server; `lock` is taken for every use of the board. */
void words_http_start(tapword_board *board, SemaphoreHandle_t lock);

#endif
