/* A shop's accent colour: what is one, and that it can be read. */
#include "core/shop/brand.h"

#include "t/unit/tap.h"

int main(void)
{
    static const struct {
        const char *accent, *on_white, *on_dark;
    } rows[] = {
        {"#1d4ed8", "#1d4ed8", "#6b8be5"}, {"#000000", "#000000", "#8f8f8f"},
        {"#ffffff", "#747474", "#ffffff"}, {"#ffd700", "#877200", "#ffd700"},
        {"#777777", "#757575", "#919191"},
    };
    static const char *const wrong[] = {"",        "1d4ed8",  "#1d4ed", "#1d4ed88",
                                        "#1d4edg", "#-1d4ed", "red",    "#1d4ed\n"};
    apr_pool_t *p = tap_begin();

    is_str(mdl_accent("#1D4eD8", p), "#1d4ed8", "a colour is kept in lower case");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        is_str(mdl_accent(wrong[i], p), NULL, "no colour");
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        is_str(mdl_accent_on_white(rows[i].accent, p), rows[i].on_white, "on white it is");
        is_str(mdl_accent_on_dark(rows[i].accent, p), rows[i].on_dark, "on the dark ground it is");
    }
    return tap_end(p);
}
