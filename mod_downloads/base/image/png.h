/*
 * Writing a PNG.
 */
#ifndef MDL_BASE_IMAGE_PNG_H
#define MDL_BASE_IMAGE_PNG_H

#include <apr_pools.h>

/** Makes a PNG of RGBA, without text, profile or any other extra; NULL without memory. */
const void *mdl_image_write_png(const unsigned char *rgba, unsigned width, unsigned height,
                                apr_size_t *length, apr_pool_t *p);

#endif
