/*
 * Decoding an image, by libpng (png.c) or libjpeg-turbo (jpeg.c).  Only the process that
 * base/image/logo.c forks for it calls these functions: they never return from a fault, but end the
 * process with it as the exit status, and free nothing.
 */
#ifndef MDL_BASE_IMAGE_DECODE_H
#define MDL_BASE_IMAGE_DECODE_H

#include <unistd.h>

#include "base/image/scale.h"

typedef struct {
    const unsigned char *bytes;
    size_t length;
    mdl_image_header_t header; /* whose size the decoder must find, too */
} mdl_image_source_t;

/** Ends the process. */
_Noreturn static inline void mdl_image_end(mdl_image_fault_t fault)
{
    _exit((int)fault);
}

/** Give all rows to scale. */
void mdl_image_decode_png(mdl_image_source_t *source, mdl_image_scale_t *scale);
void mdl_image_decode_jpeg(const mdl_image_source_t *source, mdl_image_scale_t *scale);

#endif
