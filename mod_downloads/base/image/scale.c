#include "base/image/scale.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHANNELS 4

struct mdl_image_scale_t {
    unsigned from_width, from_height, width, height;
    unsigned row;        /* the next one of the source */
    unsigned row_left;   /* how much of the result's row is missing, in 1/height of a source row */
    uint64_t *narrow;    /* the source row, as wide as the result: sums by channel */
    uint64_t *sums;      /* of the result's row: colours times opacity, and opacity */
    unsigned char *made; /* the result's row */
    mdl_image_row_fn *take;
    void *baton;
};

void mdl_image_fit(unsigned *width, unsigned *height, unsigned max_width, unsigned max_height)
{
    uint64_t w = *width, h = *height;

    if (w <= max_width && h <= max_height) {
        return;
    }
    if (w * max_height >= h * max_width) { /* the width decides */
        *width = max_width;
        *height = (unsigned)((h * max_width + w / 2) / w);
    } else {
        *height = max_height;
        *width = (unsigned)((w * max_height + h / 2) / h);
    }
    *width += *width == 0;
    *height += *height == 0;
}

mdl_image_scale_t *mdl_image_scale_begin(const mdl_image_header_t *from, unsigned width,
                                         unsigned height, mdl_image_row_fn *take, void *baton)
{
    size_t cells = (size_t)width * CHANNELS;
    mdl_image_scale_t *scale = calloc(1, sizeof *scale);
    uint64_t *sums = calloc(2 * cells, sizeof *sums);
    unsigned char *made = calloc(cells, 1);

    if (scale == NULL || sums == NULL || made == NULL) {
        free(scale);
        free(sums);
        free(made);
        return NULL;
    }
    *scale = (mdl_image_scale_t){.from_width = from->width,
                                 .from_height = from->height,
                                 .width = width,
                                 .height = height,
                                 .row_left = from->height,
                                 .narrow = sums,
                                 .sums = sums + cells,
                                 .made = made,
                                 .take = take,
                                 .baton = baton};
    return scale;
}

static void sums_add(uint64_t *sums, const unsigned char *pixel, unsigned weight)
{
    uint64_t opacity = (uint64_t)pixel[3] * weight;

    for (int i = 0; i < 3; i++) {
        sums[i] += pixel[i] * opacity;
    }
    sums[3] += opacity;
}

/* Of a source pixel, 1/width is the unit: it has width of them, and a cell takes from_width. */
static void scale_narrow(mdl_image_scale_t *scale, const unsigned char *row)
{
    uint64_t *cell = scale->narrow;
    unsigned left = scale->from_width;

    memset(cell, 0, scale->width * CHANNELS * sizeof *cell);
    for (unsigned x = 0; x < scale->from_width; x++, row += CHANNELS) {
        unsigned part = scale->width < left ? scale->width : left;

        sums_add(cell, row, part);
        left -= part;
        if (left == 0) {
            cell += CHANNELS;
            left = scale->from_width;
            if (part < scale->width) {
                sums_add(cell, row, scale->width - part);
                left -= scale->width - part;
            }
        }
    }
}

static void scale_add(mdl_image_scale_t *scale, unsigned weight)
{
    for (size_t i = 0; i < (size_t)scale->width * CHANNELS; i++) {
        scale->sums[i] += scale->narrow[i] * weight;
    }
    scale->row_left -= weight;
}

static void scale_finish_row(mdl_image_scale_t *scale)
{
    uint64_t area = (uint64_t)scale->from_width * scale->from_height;
    const uint64_t *sums = scale->sums;

    for (unsigned char *at = scale->made; sums < scale->sums + (size_t)scale->width * CHANNELS;
         sums += CHANNELS, at += CHANNELS) {
        for (int i = 0; i < 3; i++) {
            at[i] = sums[3] != 0 ? (unsigned char)((sums[i] + sums[3] / 2) / sums[3]) : 0;
        }
        at[3] = (unsigned char)((sums[3] + area / 2) / area);
    }
    memset(scale->sums, 0, (size_t)scale->width * CHANNELS * sizeof *scale->sums);
    scale->row_left = scale->from_height;
    scale->take(scale->baton, scale->made, (size_t)scale->width * CHANNELS);
}

void mdl_image_scale_row(mdl_image_scale_t *scale, const unsigned char *row)
{
    unsigned part = scale->height < scale->row_left ? scale->height : scale->row_left;

    scale_narrow(scale, row);
    scale_add(scale, part);
    if (scale->row_left == 0) {
        scale_finish_row(scale);
        if (part < scale->height) {
            scale_add(scale, scale->height - part);
        }
    }
}
