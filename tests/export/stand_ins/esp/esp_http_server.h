/* Stand-in for ESP-IDF: only what is used here. */
#ifndef ESP_HTTP_SERVER_H
#define ESP_HTTP_SERVER_H
#include <stddef.h>
#include "esp_err.h"
typedef void *httpd_handle_t;
typedef struct {
    int server_port;
} httpd_config_t;
#define HTTPD_DEFAULT_CONFIG() {.server_port = 80}
typedef enum { HTTP_GET = 1, HTTP_PUT = 4 } httpd_method_t;
typedef struct {
    size_t content_len;
    void *user_ctx;
} httpd_req_t;
typedef struct {
    const char *uri;
    httpd_method_t method;
    esp_err_t (*handler)(httpd_req_t *request);
    void *user_ctx;
} httpd_uri_t;
esp_err_t httpd_start(httpd_handle_t *server, const httpd_config_t *config);
esp_err_t httpd_register_uri_handler(httpd_handle_t server, const httpd_uri_t *handler);
esp_err_t httpd_resp_set_status(httpd_req_t *request, const char *status);
esp_err_t httpd_resp_set_type(httpd_req_t *request, const char *type);
esp_err_t httpd_resp_send(httpd_req_t *request, const char *bytes, long n);
esp_err_t httpd_resp_sendstr(httpd_req_t *request, const char *text);
int httpd_req_recv(httpd_req_t *request, char *bytes, size_t n);
#endif
