/*
 * Scaling an image down: each pixel of the result is the mean of the area that it covers, weighted
 * by opacity.
 */
#ifndef MDL_BASE_IMAGE_SCALE_H
#define MDL_BASE_IMAGE_SCALE_H

#include "base/image/header.h"

/** Shrinks a size to fit into width x height with its proportions; a smaller one stays. */
void mdl_image_fit(unsigned *width, unsigned *height, unsigned max_width, unsigned max_height);

typedef struct mdl_image_scale_t mdl_image_scale_t;

/** Receives a finished row of RGBA. */
typedef void mdl_image_row_fn(void *baton, const unsigned char *row, size_t length);

/** Begins an image of from's size that becomes width x height, not larger in either; rows of the
    result go to take.  NULL without memory.  Allocated by malloc, for a process that ends soon. */
mdl_image_scale_t *mdl_image_scale_begin(const mdl_image_header_t *from, unsigned width,
                                         unsigned height, mdl_image_row_fn *take, void *baton);

/** Adds the next row, of RGBA. */
void mdl_image_scale_row(mdl_image_scale_t *scale, const unsigned char *row);

#endif
