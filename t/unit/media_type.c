/* Media types accepted from clients and sources. */
#include "base/http/media_type.h"
#include "t/unit/tap.h"

int main(void)
{
    static const char *const good[] = {"video/mp4",
                                       "application/zip",
                                       "text/plain; charset=utf-8",
                                       "text/plain;charset=\"utf-8\"",
                                       "a/b ; c=d; e=\"f g\"",
                                       "application/vnd.api+json"};
    static const char *const bad[] = {"",
                                      "video",
                                      "video/",
                                      "/mp4",
                                      "video/mp4 x",
                                      "text/html\x01<script>",
                                      "text/plain; a=\"b",
                                      "text/plain; a=\"b\\\"",
                                      "text/plain; a",
                                      "text/plain;",
                                      "\xff\xfe/x",
                                      "te\r\nxt/plain",
                                      "multipart/byteranges; boundary=x",
                                      "Multipart/mixed"};
    char longest[MDL_MEDIA_TYPE_MAX + 2] = "a/";
    apr_pool_t *p = tap_begin();

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ok(mdl_media_type_valid(good[i]), good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ok(!mdl_media_type_valid(bad[i]), "what is not the media type of a file is refused");
    }
    memset(longest + 2, 'x', sizeof longest - 3);
    ok(!mdl_media_type_valid(longest), "128 bytes are too long");
    longest[MDL_MEDIA_TYPE_MAX] = '\0';
    ok(mdl_media_type_valid(longest), "127 bytes are allowed");
    return tap_end(p);
}
