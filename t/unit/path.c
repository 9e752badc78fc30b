/* Matching paths against the patterns of routes. */
#include "base/http/path.h"

#include <apr_strings.h>

#include "t/unit/tap.h"

int main(void)
{
    static const struct {
        const char *form, *path;
        int variables;
        const char *first, *second;
    } rows[] = {
        {"/orders", "/orders", 0, NULL, NULL},
        {"/orders/{}/revoke", "/orders/17/revoke", 1, "17", NULL},
        {"{}/orders/{}", "3/orders/a b", 2, "3", "a b"},
        {"{}/", "3/", 1, "3", NULL},
        {"", "", 0, NULL, NULL},
        {"/orders", "/orders/", -1, NULL, NULL},
        {"/orders", "/order", -1, NULL, NULL},
        {"/orders/{}", "/orders/", -1, NULL, NULL},
        {"/orders/{}", "/orders/17/revoke", -1, NULL, NULL},
        {"/orders/{}/revoke", "/orders//revoke", -1, NULL, NULL},
        {"/orders/{}/revoke", "/orders/17", -1, NULL, NULL},
    };
    apr_pool_t *p = tap_begin();

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *parameters[MDL_PATH_PARAMETERS] = {"of another form", "of another form"};

        is_int(mdl_path_match(rows[i].form, rows[i].path, parameters, p), rows[i].variables,
               apr_pstrcat(p, "\"", rows[i].path, "\" and the form \"", rows[i].form, "\"", NULL));
        if (rows[i].variables >= 0) {
            is_str(parameters[0], rows[i].first, "its first segment");
            is_str(parameters[1], rows[i].second, "its second");
        }
    }
    return tap_end(p);
}
