/*
 * The tails of an unfinished object: objects of their own with its last bytes, which fill no part.
 * Their keys begin with the object's key and a point, and are never used again.  Bytes come from,
 * and go into, a gather (storage/object_gather.h), where those of tails are first.
 *
 * However small the pieces in which bytes come, there are at most MDL_OBJECT_TAILS_MAX tails: they
 * are merged, a small one never with one that is larger than all behind it, so that a byte is
 * written again only so often as its tail's size has doubled.
 */
#ifndef MDL_STORAGE_OBJECT_TAILS_H
#define MDL_STORAGE_OBJECT_TAILS_H

#include "base/http/object_store.h"
#include "base/text/json.h"
#include "storage/object_gather.h"

#define MDL_OBJECT_TAILS_MAX 32

typedef struct mdl_object_tails_t mdl_object_tails_t;

/** None yet, in p.  call is the caller's, who reads why a function has failed. */
mdl_object_tails_t *mdl_object_tails_create(mdl_object_store_t *store, mdl_object_gather_t *gather,
                                            mdl_object_call_t *call, apr_pool_t *p);

/** Reads them from the state of an object, and makes room in the gather; false if the state is
    malformed. */
int mdl_object_tails_read(mdl_object_tails_t *tails, const mdl_json_t *state);

/** Adds them to a state, if there are any. */
void mdl_object_tails_write(const mdl_object_tails_t *tails, mdl_json_t *state);

/** The bytes in them. */
apr_int64_t mdl_object_tails_size(const mdl_object_tails_t *tails);

/** Fetches their bytes, unless they are in the gather.  MDL_OBJECT_EBROKEN if one is not there or
    has another size. */
apr_status_t mdl_object_tails_fetch(mdl_object_tails_t *tails);

/** Writes the bytes of the gather that are in no tail into one of the object with this key. */
apr_status_t mdl_object_tails_add(mdl_object_tails_t *tails, const char *key);

/** Forgets all; their bytes are elsewhere, or not needed. */
void mdl_object_tails_forget(mdl_object_tails_t *tails);

/** Removes the objects of those that were forgotten or merged.  Errors are ignored. */
void mdl_object_tails_clean(mdl_object_tails_t *tails);

#endif
