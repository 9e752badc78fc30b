/*
 * What assignments give: files, links and license keys.  One statement reads each kind for all
 * assignments, up to the limits of one order; links and license keys only if there are any.
 */
#ifndef MDL_CORE_ORDER_ASSIGNMENT_CONTENT_H
#define MDL_CORE_ORDER_ASSIGNMENT_CONTENT_H

#include "core/order/assignment_files.h"

typedef enum {
    MDL_CONTENT_FILES,
    MDL_CONTENT_LINKS,
    MDL_CONTENT_LICENSE_KEYS,
    MDL_CONTENTS /* the number of kinds */
} mdl_content_t;

/** One reading of content, begun by mdl_content_ask… and ended by mdl_content_read. */
typedef struct {
    int default_download_limit;
    int max_files;
    const mdl_statement_t *statements; /* private, like ids and files */
    const apr_array_header_t *ids;
    mdl_rows_t *files;
    const mdl_assignment_t *cut[MDL_CONTENTS]; /* out: the first assignment whose content was not
                                                  read completely, or NULL */
} mdl_content_read_t;

/** Asks for the content of all assignments of orders, by order ids (apr_int64_t), which must live
    until mdl_content_read. */
apr_status_t mdl_content_ask_of_orders(mdl_db_t *db, const apr_array_header_t *ids,
                                       mdl_content_read_t *read, apr_pool_t *p);

/** The same, by assignment ids. */
apr_status_t mdl_content_ask(mdl_db_t *db, const apr_array_header_t *ids, mdl_content_read_t *read,
                             apr_pool_t *p);

/** Fills assignments (mdl_assignment_t *), which are in the order in which their content was asked
    for.  Content of other assignments, made since, is ignored. */
apr_status_t mdl_content_read(mdl_db_t *db, mdl_content_read_t *read,
                              const apr_array_header_t *assignments, apr_pool_t *p);

#endif
