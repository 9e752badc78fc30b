/*
 * What assignments give: files, links and license keys.  Each kind is read by one statement for all
 * assignments, up to as many as an order may have; links and license keys only if there are any.
 */
#ifndef MDL_CORE_ORDER_ASSIGNMENT_CONTENT_H
#define MDL_CORE_ORDER_ASSIGNMENT_CONTENT_H

#include "core/order/assignment_files.h"

typedef enum {
    MDL_CONTENT_FILES,
    MDL_CONTENT_LINKS,
    MDL_CONTENT_LICENSE_KEYS,
    MDL_CONTENTS /* how many there are */
} mdl_content_t;

/** What is asked for, and how far it could be read. */
typedef struct {
    int default_download_limit;
    int max_files;
    const mdl_statement_t *statements;         /* between the two calls */
    const apr_array_header_t *ids;             /* likewise */
    mdl_rows_t *files;                         /* likewise */
    const mdl_assignment_t *cut[MDL_CONTENTS]; /* out: the first one of which not all was read, or
                                                  NULL */
} mdl_content_read_t;

/** Asks for the content of the assignments of orders, by the orders' ids (apr_int64_t), which must
    live until it is read. */
apr_status_t mdl_content_ask_of_orders(mdl_db_t *db, const apr_array_header_t *ids,
                                       mdl_content_read_t *read, apr_pool_t *p);

/** The same by the assignments' ids. */
apr_status_t mdl_content_ask(mdl_db_t *db, const apr_array_header_t *ids, mdl_content_read_t *read,
                             apr_pool_t *p);

/** Fills assignments (mdl_assignment_t *), in the order in which their content was asked for.  One
    that was made since is left out. */
apr_status_t mdl_content_read(mdl_db_t *db, mdl_content_read_t *read,
                              const apr_array_header_t *assignments, apr_pool_t *p);

#endif
