/*
 * Who holds a thing that is to be deleted: mappings, packs and orders.
 */
#ifndef MDL_CORE_HOLDER_H
#define MDL_CORE_HOLDER_H

#include "core/refusal.h"
#include "db/db.h"

typedef enum { MDL_HOLDER_MAPPING, MDL_HOLDER_PACK, MDL_HOLDER_ORDER } mdl_holder_t;

/**
 * Adds a detail such as held_by_mapping at /mappings/12, "Mapping 12 holds this pack.", for each
 * row of statement: its parameters are id and how many rows at most, its column is the holder's id.
 * A holder counts once.  noun is "pack".
 */
apr_status_t mdl_holder_note(mdl_db_t *db, mdl_statement_t statement, mdl_holder_t holder,
                             apr_int64_t id, const char *noun, mdl_refusal_t *refusal,
                             apr_pool_t *p);

#endif
