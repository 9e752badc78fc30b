#include "base/image/header.h"

#include <string.h>

static const unsigned char png_start[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n',
                                          0,    0,   0,   13,  'I',  'H',  'D',  'R'};

static unsigned read_u16(const unsigned char *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static unsigned read_u32(const unsigned char *at)
{
    return read_u16(at) << 16 | read_u16(at + 2);
}

static mdl_image_fault_t header_check(const mdl_image_header_t *header)
{
    if (header->width == 0 || header->height == 0) {
        return MDL_IMAGE_DAMAGED;
    }
    return header->width > MDL_IMAGE_MAX_PIXELS / header->height ? MDL_IMAGE_TOO_LARGE
                                                                 : MDL_IMAGE_GOOD;
}

static mdl_image_fault_t header_png(const unsigned char *bytes, size_t length,
                                    mdl_image_header_t *header)
{
    if (length < sizeof png_start + 8) {
        return MDL_IMAGE_DAMAGED;
    }
    header->kind = MDL_IMAGE_PNG;
    header->width = read_u32(bytes + sizeof png_start);
    header->height = read_u32(bytes + sizeof png_start + 4);
    return header_check(header);
}

/* The markers SOF0 to SOF15 begin a frame; three numbers among them are other markers. */
static int jpeg_begins_frame(unsigned char marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/* Goes from marker to marker to that of the frame. */
static mdl_image_fault_t header_jpeg(const unsigned char *bytes, size_t length,
                                     mdl_image_header_t *header)
{
    size_t at = 2;

    header->kind = MDL_IMAGE_JPEG;
    while (at + 9 <= length && bytes[at] == 0xff) {
        unsigned char marker = bytes[at + 1];

        if (marker == 0xff) { /* a fill byte */
            at++;
            continue;
        }
        if (jpeg_begins_frame(marker)) {
            header->height = read_u16(bytes + at + 5);
            header->width = read_u16(bytes + at + 7);
            return header_check(header);
        }
        at += 2 + (size_t)read_u16(bytes + at + 2);
    }
    return MDL_IMAGE_DAMAGED;
}

mdl_image_fault_t mdl_image_header(const void *bytes, size_t length, mdl_image_header_t *header)
{
    static const unsigned char jpeg_start[] = {0xff, 0xd8, 0xff};

    memset(header, 0, sizeof *header);
    if (length >= sizeof png_start && memcmp(bytes, png_start, sizeof png_start) == 0) {
        return header_png(bytes, length, header);
    }
    if (length >= sizeof jpeg_start && memcmp(bytes, jpeg_start, sizeof jpeg_start) == 0) {
        return header_jpeg(bytes, length, header);
    }
    return MDL_IMAGE_UNKNOWN;
}
