/*
 * The members of a request's body, read by name and type.  A fault is noted with its pointer and
 * reading goes on with a fallback, so that a client sees all faults at once.  Only a member that is
 * read as MDL_NULLABLE may be null.
 */
#ifndef MDL_API_MEMBERS_H
#define MDL_API_MEMBERS_H

#include "api/request.h"

typedef struct mdl_members_t mdl_members_t;

/** Optional: may be left out.  Nullable: also null, or empty text, which counts as null. */
typedef enum { MDL_OPTIONAL, MDL_NULLABLE, MDL_REQUIRED } mdl_presence_t;

/** Begins reading an object at a JSON pointer, "" for the body itself. */
mdl_members_t *mdl_members_begin(mdl_request_t *request, const mdl_json_t *object,
                                 const char *pointer);

/** Ends reading: a member that was not asked for is a fault.  For the body itself (pointer "")
    returns MDL_EPROBLEM with 400 invalid_request after any fault, also one in a nested object. */
apr_status_t mdl_members_end(mdl_members_t *members);

/** Notes a fault of a member. */
void mdl_members_fault(mdl_members_t *members, const char *name, const char *code,
                       const char *message);

/** Whether the object has the member, be it null: a PATCH changes it then. */
int mdl_members_given(const mdl_members_t *members, const char *name);

/** Text, trimmed (mdl_utf8_trimmed), of 1 to max characters without control characters; NULL when
    absent, null or faulty. */
const char *mdl_members_text(mdl_members_t *members, const char *name, mdl_presence_t presence,
                             apr_size_t max);

/** Plain text of several lines, trimmed, with a line feed for each line end (mdl_utf8_lines); NULL
    when absent, null or faulty. */
const char *mdl_members_lines(mdl_members_t *members, const char *name, apr_size_t max);

/** The email address in a member's text, which may be NULL (mdl_mime_address_of); notes a fault if
    the text has none. */
const char *mdl_members_email(mdl_members_t *members, const char *name, const char *email);

/** The value of an enum by its name, see base/names.h. */
unsigned mdl_members_choice(mdl_members_t *members, const char *name, const char *const *names,
                            unsigned fallback);

int mdl_members_bool(mdl_members_t *members, const char *name, int fallback);

/** An integer from min to max; fallback when absent, null or faulty. */
apr_int64_t mdl_members_int(mdl_members_t *members, const char *name, mdl_presence_t presence,
                            apr_int64_t min, apr_int64_t max, apr_int64_t fallback);

/** 1 to 20 decimal digits without a leading zero, as text (contract, section 1); an empty text is a
    fault, also if the member may be null. */
const char *mdl_members_digits(mdl_members_t *members, const char *name, mdl_presence_t presence);

/** gid://<platform>/Product/<n>. */
const char *mdl_members_product(mdl_members_t *members, const char *name);

/** gid://<platform>/ProductVariant/<n> or the bare number; answered as the gid of the product's
    platform.  NULL when absent, null or faulty. */
const char *mdl_members_variant(mdl_members_t *members, const char *name, const char *product);

/** A list of distinct variants (const char *), as above; empty when absent. */
apr_array_header_t *mdl_members_variants(mdl_members_t *members, const char *name,
                                         const char *product);

/** A list of distinct ids (apr_int64_t) below 2^53; empty when absent. */
apr_array_header_t *mdl_members_ids(mdl_members_t *members, const char *name);

/** mdl_members_ids for a PATCH: NULL when absent. */
apr_array_header_t *mdl_members_new_ids(mdl_members_t *members, const char *name);

/** An array of 1 to max objects; NULL when absent or faulty.  Skip elements that are not objects:
    they have been reported. */
const mdl_json_t *mdl_members_objects(mdl_members_t *members, const char *name,
                                      mdl_presence_t presence, apr_size_t max);

/** An array of 1 to max texts, each as mdl_members_text with at most max_length, and of at most
    max_bytes; NULL otherwise.  Faulty elements have been reported. */
const mdl_json_t *mdl_members_texts(mdl_members_t *members, const char *name,
                                    mdl_presence_t presence, apr_size_t max, apr_size_t max_length,
                                    apr_size_t max_bytes);

/** Distinct names of an enum's values (base/names.h); NULL when absent, null or faulty. */
const mdl_json_t *mdl_members_names(mdl_members_t *members, const char *name,
                                    const char *const *names);

/** An object; NULL when absent or faulty. */
const mdl_json_t *mdl_members_object(mdl_members_t *members, const char *name);

/** Reads a body that has no members: begin and end in one. */
apr_status_t mdl_members_none(mdl_request_t *request);

#endif
