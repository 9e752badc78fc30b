/*
 * What an image says of itself before anything of it is decoded: a PNG (W3C PNG, section 11.2.2) or
 * a JPEG (ITU-T T.81, annex B).
 */
#ifndef MDL_BASE_IMAGE_HEADER_H
#define MDL_BASE_IMAGE_HEADER_H

#include <stddef.h>

#define MDL_IMAGE_MAX_PIXELS (4096 * 4096)

typedef enum { MDL_IMAGE_PNG, MDL_IMAGE_JPEG } mdl_image_kind_t;

/** Why an image can't be used. */
typedef enum {
    MDL_IMAGE_GOOD,
    MDL_IMAGE_UNKNOWN,     /* neither a PNG nor a JPEG */
    MDL_IMAGE_TOO_LARGE,   /* more than MDL_IMAGE_MAX_PIXELS */
    MDL_IMAGE_DAMAGED,     /* or cut short */
    MDL_IMAGE_UNSUPPORTED, /* colours for print (CMYK) */
    MDL_IMAGE_TOO_COSTLY   /* takes more time or memory to decode than any usual image */
} mdl_image_fault_t;

typedef struct {
    mdl_image_kind_t kind;
    unsigned width, height; /* pixels */
} mdl_image_header_t;

/** Reads the header of an image of length bytes. */
mdl_image_fault_t mdl_image_header(const void *bytes, size_t length, mdl_image_header_t *header);

#endif
