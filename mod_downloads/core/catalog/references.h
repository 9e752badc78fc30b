/*
 * References from mappings, packs and orders, which prevent the deletion of an entity.
 */
#ifndef MDL_CORE_CATALOG_REFERENCES_H
#define MDL_CORE_CATALOG_REFERENCES_H

#include "core/entity_ref.h"
#include "db/db.h"

typedef enum {
    MDL_REFERENCE_MAPPING,
    MDL_REFERENCE_PACK,
    MDL_REFERENCE_ORDER,
    MDL_REFERENCE_WAITING_ORDER /* it waits for license keys */
} mdl_reference_kind_t;

/** Finds the references of one kind.  The statement's parameters are the entity's id and a limit;
    its column is the id of the referring row. */
typedef struct {
    mdl_statement_t statement;
    mdl_reference_kind_t kind;
} mdl_reference_query_t;

/**
 * Refuses with 409 and code when anything refers to the entity, with a detail for each reference,
 * such as held_by_mapping at /mappings/12, "Mapping 12 holds this pack."; noun is "pack".
 */
apr_status_t mdl_references_check(mdl_db_t *db, const mdl_entity_ref_t *ref,
                                  const mdl_reference_query_t *queries, apr_size_t n,
                                  const char *code, const char *noun, apr_pool_t *p);

#endif
