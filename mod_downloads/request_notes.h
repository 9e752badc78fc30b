/*
 * What a request was about, for logs and metrics: notes that LogFormat shows as %{downloads-shop}n,
 * and so on (docs/metrics.md).  They never hold a token, and no text that a stranger chooses.
 */
#ifndef MDL_REQUEST_NOTES_H
#define MDL_REQUEST_NOTES_H

#include <httpd.h>

#define MDL_NOTE_OPERATION "downloads-operation"
#define MDL_NOTE_SHOP      "downloads-shop"
#define MDL_NOTE_KEY       "downloads-key"
#define MDL_NOTE_ORDER     "downloads-order" /* the storefront's number */
#define MDL_NOTE_JOB       "downloads-job"

/** Notes a text, or nothing for NULL; it must live as long as the request. */
void mdl_note(request_rec *r, const char *name, const char *text);

/** Notes an id, or nothing for 0. */
void mdl_note_id(request_rec *r, const char *name, apr_int64_t id);

/** Notes which of its handler's operations the request is: 1 or higher. */
void mdl_note_operation(request_rec *r, int number);

/** That number; 0: none was found. */
int mdl_noted_operation(request_rec *r);

#endif
