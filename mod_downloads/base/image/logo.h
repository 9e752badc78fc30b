/*
 * Makes a small, bare PNG of any PNG or JPEG, in a process of its own, which can only write its
 * result, and has little time and memory: images come from strangers, and decoders have had bugs.
 */
#ifndef MDL_BASE_IMAGE_LOGO_H
#define MDL_BASE_IMAGE_LOGO_H

#include <apr_errno.h>
#include <apr_pools.h>

#include "base/image/header.h"

#define MDL_LOGO_MAX_WIDTH  600
#define MDL_LOGO_MAX_HEIGHT 200

typedef struct {
    mdl_image_fault_t fault; /* unless it is MDL_IMAGE_GOOD, nothing else is set */
    const void *png;
    apr_size_t length;
    unsigned width, height;
} mdl_logo_image_t;

/**
 * Makes it fit into 600 x 200 pixels; a smaller one keeps its size.  Waits for the process. Returns
 * APR_TIMEUP when the machine was too busy, or an error of the system: then the image is not to
 * blame.
 */
apr_status_t mdl_logo_image_make(const void *bytes, apr_size_t length, mdl_logo_image_t *made,
                                 apr_pool_t *p);

#endif
