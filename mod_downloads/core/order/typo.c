#include "core/order/typo.h"

#include "base/mail/likely_typo.h"

apr_status_t mdl_order_note_typo(mdl_db_t *db, apr_int64_t order_id, const char *address,
                                 apr_pool_t *p)
{
    return address != NULL && mdl_likely_typo(address, p) != NULL
               ? mdl_db_exec(db, NULL, p,
                             MDL_Q(ORDER_NOTE_TYPO, .likely_typo = address, .id = order_id))
               : APR_SUCCESS;
}
