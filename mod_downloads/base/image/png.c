#include "base/image/png.h"

#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "base/image/decode.h"

static void decoder_on_error(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
    mdl_image_end(MDL_IMAGE_DAMAGED);
}

static void decoder_on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void decoder_take_bytes(png_structp png, png_bytep to, png_size_t length)
{
    mdl_image_source_t *source = png_get_io_ptr(png);

    if (length > source->length) {
        mdl_image_end(MDL_IMAGE_DAMAGED);
    }
    memcpy(to, source->bytes, length);
    source->bytes += length;
    source->length -= length;
}

/* Reads up to the pixels.  Chunks that no pixel needs, such as profiles and compressed text, are
   skipped. */
static void decoder_begin(png_structp png, png_infop info, mdl_image_source_t *source)
{
    png_set_read_fn(png, source, decoder_take_bytes);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_user_limits(png, MDL_IMAGE_MAX_PIXELS, MDL_IMAGE_MAX_PIXELS);
    png_read_info(png, info);
    if (png_get_image_width(png, info) != source->header.width ||
        png_get_image_height(png, info) != source->header.height) {
        mdl_image_end(MDL_IMAGE_DAMAGED);
    }
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, 0xff, PNG_FILLER_AFTER);
}

/* Each pass of an interlaced image adds pixels to its rows, so that all are kept; else one is. */
static void decoder_read_rows(png_structp png, png_infop info, mdl_image_scale_t *scale)
{
    int passes = png_set_interlace_handling(png);
    png_uint_32 height = png_get_image_height(png, info);
    size_t length, step;
    unsigned char *rows;

    png_read_update_info(png, info);
    length = png_get_rowbytes(png, info);
    step = passes > 1 ? length : 0;
    if ((rows = calloc(passes > 1 ? height : 1, length)) == NULL) {
        mdl_image_end(MDL_IMAGE_TOO_COSTLY);
    }
    for (int pass = 1; pass <= passes; pass++) {
        for (png_uint_32 y = 0; y < height; y++) {
            png_read_row(png, rows + y * step, NULL);
            if (pass == passes) {
                mdl_image_scale_row(scale, rows + y * step);
            }
        }
    }
}

void mdl_image_decode_png(mdl_image_source_t *source, mdl_image_scale_t *scale)
{
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, decoder_on_error,
                                             decoder_on_warning);
    png_infop info = png != NULL ? png_create_info_struct(png) : NULL;

    if (info == NULL) {
        mdl_image_end(MDL_IMAGE_TOO_COSTLY);
    }
    decoder_begin(png, info, source);
    decoder_read_rows(png, info, scale);
    png_read_end(png, NULL);
}

const void *mdl_image_write_png(const unsigned char *rgba, unsigned width, unsigned height,
                                apr_size_t *length, apr_pool_t *p)
{
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGBA};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    void *png = apr_palloc(p, size);

    if (!png_image_write_to_memory(&image, png, &size, 0, rgba, 0, NULL)) {
        return NULL;
    }
    *length = size;
    return png;
}
