#include "words_http.h"

#include "esp_err.h"
#include "esp_http_server.h"

typedef struct {
    tapword_board *board;
    SemaphoreHandle_t lock;
} words_http;

static esp_err_t refuse(httpd_req_t *request, int code)
{
    httpd_resp_set_status(request,
                          code == TAPWORD_BUSY ? "503 Service Unavailable" : "400 Bad Request");
    return httpd_resp_sendstr(request, tapword_error(code));
}

static esp_err_t send_words(httpd_req_t *request)
{
    const words_http *words = request->user_ctx;
    esp_err_t sent;
    int n;
    xSemaphoreTake(words->lock, portMAX_DELAY);
    n = tapword_board_begin(words->board);
    n = n != 0 ? n : tapword_board_save_state(words->board);
    if (n > 0) {
        httpd_resp_set_type(request, "application/octet-stream");
        sent = httpd_resp_send(request, (const char *)words->board->work.state, n);
    } else {
        sent = refuse(request, n);
    }
    tapword_board_resume(words->board);
    xSemaphoreGive(words->lock);
    return sent;
}

/* Receive the body. Returns 0 or an error. */
static int receive_body(httpd_req_t *request, uint8_t *bytes)
{
    size_t filled = 0;
    while (filled < request->content_len) {
        int n = httpd_req_recv(request, (char *)bytes + filled, request->content_len - filled);
        if (n <= 0) {
            return TAPWORD_BAD_STATE;
        }
        filled += (size_t)n;
    }
    return 0;
}

static esp_err_t receive_words(httpd_req_t *request)
{
    const words_http *words = request->user_ctx;
    esp_err_t sent;
    int error = TAPWORD_NO_ROOM;
    xSemaphoreTake(words->lock, portMAX_DELAY);
    if (request->content_len <= sizeof words->board->work.state) {
        error = tapword_board_begin(words->board);
        error = error != 0 ? error : receive_body(request, words->board->work.state);
        error = error != 0 ? error : tapword_board_load_state(words->board, request->content_len);
        tapword_board_resume(words->board);
    }
    sent = error != 0 ? refuse(request, error) : httpd_resp_sendstr(request, "ok");
    xSemaphoreGive(words->lock);
    return sent;
}

void words_http_start(tapword_board *board, SemaphoreHandle_t lock)
{
    static words_http words;
    httpd_config_t config = HTTPD_DEFAULT_CONFIG();
    httpd_handle_t server = NULL;
    httpd_uri_t get = {
        .uri = "/words", .method = HTTP_GET, .handler = send_words, .user_ctx = &words};
    httpd_uri_t put = {
        .uri = "/words", .method = HTTP_PUT, .handler = receive_words, .user_ctx = &words};
    words.board = board;
    words.lock = lock;
    ESP_ERROR_CHECK(httpd_start(&server, &config));
    ESP_ERROR_CHECK(httpd_register_uri_handler(server, &get));
    ESP_ERROR_CHECK(httpd_register_uri_handler(server, &put));
}
