/*
 * Lists of ids (apr_int64_t).
 */
#ifndef MDL_CORE_IDS_H
#define MDL_CORE_IDS_H

#include "base/text/json.h"
#include "core/problem.h"
#include "db/db.h"

/** A list with one id. */
apr_array_header_t *mdl_ids_of(apr_int64_t id, apr_pool_t *p);

/** Whether id is one of ids. */
int mdl_ids_has(const apr_array_header_t *ids, apr_int64_t id);

/** The entities (pointers to structs that begin with their id) in the order of ids. */
apr_array_header_t *mdl_ids_sort(const apr_array_header_t *ids, const apr_array_header_t *entities,
                                 apr_pool_t *p);

/** Adds the ids to a document, as an array. */
void mdl_ids_add(mdl_json_t *to, const char *name, const apr_array_header_t *ids);

/** The ids as a JSON array, for the database. */
const char *mdl_ids_json(const apr_array_header_t *ids, apr_pool_t *p);

/**
 * Adds a detail unknown_reference at /<member>/<n> for each id that does not belong to the shop.
 * The statement known (shop, list) selects the ids that do; on PostgreSQL, it prevents their
 * deletion until the end of the transaction. ids may be NULL: none.
 */
apr_status_t mdl_ids_check(mdl_db_t *db, mdl_statement_t known, apr_int64_t shop_id,
                           const apr_array_header_t *ids, const char *member,
                           mdl_problem_t *problem, apr_pool_t *p);

/** The two halves of mdl_ids_check: the first asks for the known ids, the second compares them with
    ids.  *known_rows is NULL if there are no ids. */
apr_status_t mdl_ids_ask_known(mdl_db_t *db, mdl_statement_t known, apr_int64_t shop_id,
                               const apr_array_header_t *ids, mdl_rows_t **known_rows,
                               apr_pool_t *p);
void mdl_ids_compare_known(mdl_rows_t *known_rows, const apr_array_header_t *ids,
                           const char *member, mdl_problem_t *problem, apr_pool_t *p);

#endif
