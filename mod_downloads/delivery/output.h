/*
 * Sends a body: a filter behind httpd's byterange filter turns the body's buckets into bytes.
 */
#ifndef MDL_DELIVERY_OUTPUT_H
#define MDL_DELIVERY_OUTPUT_H

#include <httpd.h>

#include "delivery/body.h"
#include "metering/transfer.h"

/** Registers the filter; with the hooks. */
void mdl_output_register(void);

/** Sends the response to r, whose headers are set: the body, or the ranges of it that were asked
    for.  What is passed is noted in transfer; NULL, as for HEAD, notes nothing. */
apr_status_t mdl_output_send(request_rec *r, mdl_body_t *body, mdl_transfer_t *transfer);

#endif
