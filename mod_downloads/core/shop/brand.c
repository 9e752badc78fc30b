#include "core/shop/brand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#define CONTRAST 4.5
#define STEPS    64

typedef struct {
    double red, green, blue; /* 0 to 255 */
} colour_t;

static const colour_t white = {255, 255, 255};
static const colour_t black = {0, 0, 0};
static const colour_t dark = {0x1f, 0x29, 0x37}; /* --paper in conf/templates/style.mustache */

static colour_t colour_read(const char *accent)
{
    long rgb = strtol(accent + 1, NULL, 16);

    return (colour_t){(double)(rgb >> 16), (double)(rgb >> 8 & 255), (double)(rgb & 255)};
}

static double channel_light(double channel)
{
    channel /= 255;
    return channel <= 0.04045 ? channel / 12.92 : pow((channel + 0.055) / 1.055, 2.4);
}

/* The relative luminance, WCAG 2.2. */
static double colour_light(colour_t colour)
{
    return 0.2126 * channel_light(colour.red) + 0.7152 * channel_light(colour.green) +
           0.0722 * channel_light(colour.blue);
}

static double colour_contrast(colour_t one, colour_t other)
{
    double a = colour_light(one) + 0.05, b = colour_light(other) + 0.05;

    return a > b ? a / b : b / a;
}

static colour_t colour_mix(colour_t from, colour_t to, double part)
{
    return (colour_t){round(from.red + (to.red - from.red) * part),
                      round(from.green + (to.green - from.green) * part),
                      round(from.blue + (to.blue - from.blue) * part)};
}

/* Goes from the accent to an end that can be read on the ground. */
static const char *accent_on(const char *accent, colour_t ground, colour_t end, apr_pool_t *p)
{
    colour_t from = colour_read(accent), colour = from;

    for (int step = 1; step <= STEPS && colour_contrast(colour, ground) < CONTRAST; step++) {
        colour = colour_mix(from, end, (double)step / STEPS);
    }
    return apr_psprintf(p, "#%02x%02x%02x", (unsigned)colour.red, (unsigned)colour.green,
                        (unsigned)colour.blue);
}

const char *mdl_accent(const char *text, apr_pool_t *p)
{
    char *accent = apr_pstrdup(p, text);

    if (strlen(text) != 7 || text[0] != '#' || strspn(text + 1, "0123456789abcdefABCDEF") != 6) {
        return NULL;
    }
    for (char *c = accent; *c != '\0'; c++) {
        *c = (char)(*c >= 'A' && *c <= 'F' ? *c - 'A' + 'a' : *c);
    }
    return accent;
}

const char *mdl_accent_on_white(const char *accent, apr_pool_t *p)
{
    return accent_on(accent, white, black, p);
}

const char *mdl_accent_on_dark(const char *accent, apr_pool_t *p)
{
    return accent_on(accent, dark, white, p);
}

const char *mdl_logo_url(const char *public_url, const char *sha256, apr_pool_t *p)
{
    return apr_pstrcat(p, public_url, "/logo/", sha256, ".png", NULL);
}

const char *mdl_brand_style(const mdl_brand_t *brand, apr_pool_t *p)
{
    return brand->accent == NULL
               ? NULL
               : apr_psprintf(p,
                              ":root{--action:%s}"
                              "@media screen and (prefers-color-scheme:dark){:root{--action:%s}}",
                              mdl_accent_on_white(brand->accent, p),
                              mdl_accent_on_dark(brand->accent, p));
}

void mdl_brand_json(mdl_json_t *to, const mdl_brand_t *brand, const char *public_url, apr_pool_t *p)
{
    mdl_json_t *object;

    if (brand->logo_sha256 != NULL) {
        object = mdl_json_add_object(to, "logo");
        mdl_json_add_string(object, "url", mdl_logo_url(public_url, brand->logo_sha256, p));
        mdl_json_add_int(object, "width", brand->logo_width);
        mdl_json_add_int(object, "height", brand->logo_height);
    }
    if (brand->accent != NULL) {
        object = mdl_json_add_object(to, "accent");
        mdl_json_add_string(object, "light", mdl_accent_on_white(brand->accent, p));
        mdl_json_add_string(object, "dark", mdl_accent_on_dark(brand->accent, p));
    }
}
