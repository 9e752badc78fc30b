/*
 * The wrapper of jansson.  A document belongs to the pool in which it was parsed or made; returned
 * values and strings are borrowed from it and live as long.  Out of memory ends the process.
 */
#ifndef MDL_BASE_TEXT_JSON_H
#define MDL_BASE_TEXT_JSON_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_tables.h>
#include <apr_time.h>

typedef struct json_t mdl_json_t;

#define MDL_JSON_MAX_DEPTH  16
#define MDL_JSON_MAX_VALUES 10000 /* a few megabytes */

/**
 * Parses one JSON text (RFC 8259): strict UTF-8, no duplicate members, no trailing bytes, no NUL in
 * a string, at most 16 levels, integers within 64 bits.  Any value may be the root; a byte order
 * mark before it is ignored (section 8.1).  On a fault returns APR_EINVAL and in *why a sentence
 * with line and column, in printable ASCII.  A text of more than max_values values (objects and
 * arrays count too, and each takes up to 250 bytes besides its text) is refused with APR_ENOSPC
 * before it is parsed.
 */
apr_status_t mdl_json_parse(mdl_json_t **json, const char *text, apr_size_t length,
                            apr_size_t max_values, const char **why, apr_pool_t *p);

/** Parses JSON text from the database.  NULL for NULL, and for text that is not JSON. */
mdl_json_t *mdl_json_stored(const char *text, apr_pool_t *p);

typedef void mdl_json_put_fn(void *baton, const char *text, apr_size_t length);

/** Writes the document by put, piece by piece, with sorted members and no insignificant space:
    equal documents give equal bytes. */
void mdl_json_canonical(const mdl_json_t *json, mdl_json_put_fn *put, void *baton);

/* Making a document.  The root belongs to p; members keep the order in which they were added. */
mdl_json_t *mdl_json_object(apr_pool_t *p);
mdl_json_t *mdl_json_array(apr_pool_t *p);

/*
 * Adding to an object under name, or to the end of an array if name is NULL.  Names are UTF-8.  The
 * returned value is borrowed from the root.  If to is neither object nor array, nothing is added
 * and NULL returned.
 */
mdl_json_t *mdl_json_add_object(mdl_json_t *to, const char *name);
mdl_json_t *mdl_json_add_array(mdl_json_t *to, const char *name);
/** NULL adds null.  value must be UTF-8; anything else is added as null. */
void mdl_json_add_string(mdl_json_t *to, const char *name, const char *value);
void mdl_json_add_int(mdl_json_t *to, const char *name, apr_int64_t value);
/** Adds value if there is true, else null. */
void mdl_json_add_int_if(mdl_json_t *to, const char *name, apr_int64_t value, int there);
void mdl_json_add_bool(mdl_json_t *to, const char *name, int value);
void mdl_json_add_null(mdl_json_t *to, const char *name);
/** Adds a time as RFC 3339; 0 adds null. */
void mdl_json_add_time(mdl_json_t *to, const char *name, apr_time_t value);

/** Adds a copy of another document or a part of it; NULL adds null. */
void mdl_json_add_copy(mdl_json_t *to, const char *name, const mdl_json_t *value);

/** An array of strings (const char *) as compact text, in p. */
const char *mdl_json_texts(const apr_array_header_t *texts, apr_pool_t *p);

/** The document as compact text, in p, with a closing NUL.  length may be NULL. */
const char *mdl_json_text(const mdl_json_t *json, apr_size_t *length, apr_pool_t *p);
/** The document indented by two spaces, for people, in p. */
const char *mdl_json_pretty(const mdl_json_t *json, apr_pool_t *p);

/* Reading.  A NULL json is absent; for a value of another type each function returns NULL or 0. */
typedef enum {
    MDL_JSON_ABSENT,
    MDL_JSON_NULL,
    MDL_JSON_BOOL,
    MDL_JSON_INT, /* also 1.0 and 1e3 */
    MDL_JSON_REAL,
    MDL_JSON_STRING,
    MDL_JSON_ARRAY,
    MDL_JSON_OBJECT
} mdl_json_type_t;

mdl_json_type_t mdl_json_type(const mdl_json_t *json);
/** Whether an object has no members. */
int mdl_json_is_empty(const mdl_json_t *object);
/** The member of that name, or NULL. */
mdl_json_t *mdl_json_member(const mdl_json_t *object, const char *name);
apr_size_t mdl_json_length(const mdl_json_t *array);
mdl_json_t *mdl_json_element(const mdl_json_t *array, apr_size_t index);
/** Calls visit with each member's name and value, in the document's order. */
void mdl_json_each(const mdl_json_t *object,
                   void (*visit)(void *baton, const char *name, mdl_json_t *value), void *baton);
const char *mdl_json_string(const mdl_json_t *json);
apr_int64_t mdl_json_int(const mdl_json_t *json);
int mdl_json_bool(const mdl_json_t *json);
/** An integer or a real; 0 for anything else. */
double mdl_json_number(const mdl_json_t *json);

#endif
