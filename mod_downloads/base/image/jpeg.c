#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/image/decode.h"

/* A progressive JPEG may repeat a tiny scan over all of its pixels; usual ones have 10. */
#define SCANS_MAX 64

_Noreturn static void decoder_on_error(j_common_ptr jpeg)
{
    mdl_image_end(jpeg->err->msg_code == JERR_OUT_OF_MEMORY ? MDL_IMAGE_TOO_COSTLY
                                                            : MDL_IMAGE_DAMAGED);
}

/* libjpeg goes on with grey where bytes are missing. */
static void decoder_on_message(j_common_ptr jpeg, int level)
{
    int code = jpeg->err->msg_code;

    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) {
        mdl_image_end(MDL_IMAGE_DAMAGED);
    }
}

static void decoder_on_progress(j_common_ptr jpeg)
{
    if (((j_decompress_ptr)jpeg)->input_scan_number > SCANS_MAX) {
        mdl_image_end(MDL_IMAGE_TOO_COSTLY);
    }
}

static void decoder_begin(j_decompress_ptr jpeg, const mdl_image_source_t *source)
{
    jpeg_mem_src(jpeg, source->bytes, source->length);
    jpeg_read_header(jpeg, TRUE);
    if (jpeg->image_width != source->header.width || jpeg->image_height != source->header.height) {
        mdl_image_end(MDL_IMAGE_DAMAGED);
    }
    if (jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK) {
        mdl_image_end(MDL_IMAGE_UNSUPPORTED);
    }
    jpeg->out_color_space = JCS_EXT_RGBA;
    jpeg_start_decompress(jpeg);
}

void mdl_image_decode_jpeg(const mdl_image_source_t *source, mdl_image_scale_t *scale)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress = {.progress_monitor = decoder_on_progress};
    unsigned char *row;

    jpeg.err = jpeg_std_error(&errors);
    errors.error_exit = decoder_on_error;
    errors.emit_message = decoder_on_message;
    jpeg_create_decompress(&jpeg);
    jpeg.progress = &progress;
    decoder_begin(&jpeg, source);
    if ((row = malloc((size_t)source->header.width * 4)) == NULL) {
        mdl_image_end(MDL_IMAGE_TOO_COSTLY);
    }
    while (jpeg.output_scanline < jpeg.output_height) {
        jpeg_read_scanlines(&jpeg, &row, 1);
        mdl_image_scale_row(scale, row);
    }
}
