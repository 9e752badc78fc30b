/*
 * Sends a body: the filter behind httpd's byterange filter that makes the bytes of what is left of
 * it there.
 */
#ifndef MDL_DELIVERY_OUTPUT_H
#define MDL_DELIVERY_OUTPUT_H

#include <httpd.h>

#include "delivery/body.h"
#include "metering/transfer.h"

/** Registers the filter; with the hooks. */
void mdl_output_register(void);

/** Answers r with the body, whole or in the ranges that were asked for; its headers are set.  What
    is passed is noted in transfer, or nowhere when that is NULL, as for HEAD. */
apr_status_t mdl_output_send(request_rec *r, mdl_body_t *body, mdl_transfer_t *transfer);

#endif
