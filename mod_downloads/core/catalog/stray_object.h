/*
 * Keys of objects that may exist although no blob has them: because they are being written, or are
 * to be removed.  A key is recorded before its first byte is sent, and is never used again, so
 * whatever a dead or late process leaves behind is found by its row.
 */
#ifndef MDL_CORE_CATALOG_STRAY_OBJECT_H
#define MDL_CORE_CATALOG_STRAY_OBJECT_H

#include <apr_tables.h>
#include <apr_time.h>

#include "db/db.h"

/** With which every key begins; a ULID follows. */
#define MDL_STRAY_PREFIX "obj_"

/** Makes a key, in p, for an object that is about to be written.  As long as owner, a job or an
    upload, is not over, or for an hour if it is NULL, nothing removes the object. */
apr_status_t mdl_stray_begin(mdl_db_t *db, const char *owner, const char **key, apr_pool_t *p);

/** Gives a key whose owner is NULL another hour. */
apr_status_t mdl_stray_postpone(mdl_db_t *db, const char *key, apr_pool_t *p);

/** Ends that, because a blob has the object now; may be repeated.  APR_EINCOMPLETE if it is being
    removed: it must be written again, under another key. */
apr_status_t mdl_stray_adopt(mdl_db_t *db, const char *key, apr_pool_t *p);

/** Ends that, because nobody goes on writing the object: it is removed soon. */
apr_status_t mdl_stray_drop(mdl_db_t *db, const char *key, apr_pool_t *p);

/** Records an object that no blob has any more.  It is removed after a day: downloads that have
    begun go on reading it. */
apr_status_t mdl_stray_leave(mdl_db_t *db, const char *key, apr_pool_t *p);

typedef struct {
    const char *key;
    const char *owner;     /* as above */
    apr_time_t removed_at; /* when the object was to be removed first */
} mdl_stray_t;

/** Effect: takes up to limit keys to be removed now.  The caller removes their objects, the pieces
    of these (storage/object_writer.h), which an import has not, and their unfinished multipart
    uploads, and then calls mdl_stray_removed; if it does not, the keys are taken again after an
    hour. */
typedef struct {
    apr_time_t now;
    int limit;
    int seen;                   /* out: limit, if there may be more */
    apr_array_header_t *strays; /* out: mdl_stray_t */
} mdl_stray_take_t;
apr_status_t mdl_stray_take(mdl_db_t *db, apr_pool_t *p, mdl_stray_take_t *take);

/** Effect: records that an object was removed, at a time.  It is taken once more a day after the
    first time, for a request of a dead process may arrive late; then its key is forgotten. */
typedef struct {
    mdl_stray_t stray;
    apr_time_t now;
} mdl_stray_removed_t;
apr_status_t mdl_stray_removed(mdl_db_t *db, apr_pool_t *p, const mdl_stray_removed_t *removed);

/** Effect: reads which keys neither a blob has nor this list. */
typedef struct {
    const apr_array_header_t *keys; /* const char * */
    apr_array_header_t *unknown;    /* out: likewise */
} mdl_stray_unknown_t;
apr_status_t mdl_stray_unknown(mdl_db_t *db, apr_pool_t *p, mdl_stray_unknown_t *find);

#endif
