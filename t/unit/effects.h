/*
 * Core's functions as effects for mdl_db_write and the like.
 */
#ifndef MDL_UNIT_EFFECTS_H
#define MDL_UNIT_EFFECTS_H

#include "core/catalog/asset.h"
#include "core/catalog/blob.h"
#include "core/catalog/category.h"
#include "core/catalog/import.h"
#include "core/catalog/license.h"
#include "core/catalog/mapping.h"
#include "core/catalog/pack.h"
#include "core/catalog/storage_hold.h"
#include "core/catalog/upload.h"
#include "core/download/meter.h"
#include "core/download/session_settle.h"
#include "core/idempotency.h"
#include "core/job.h"
#include "core/job_queue.h"
#include "core/order/job_control.h"
#include "core/order/access.h"
#include "core/order/assignment.h"
#include "core/order/find.h"
#include "core/order/order.h"
#include "core/order/search.h"
#include "core/prune.h"
#include "core/shop/key.h"
#include "core/shop/shop.h"
#include "core/shop/webhook.h"

#define EFFECT(name, type)                                                                         \
    static inline apr_status_t name##_effect(mdl_db_t *db, apr_pool_t *p, void *arg)               \
    {                                                                                              \
        return name(db, p, (type)arg);                                                             \
    }

EFFECT(mdl_access_approve, mdl_access_t *)
EFFECT(mdl_access_reject, mdl_access_t *)
EFFECT(mdl_access_restore, mdl_access_t *)
EFFECT(mdl_access_revoke, mdl_access_t *)
EFFECT(mdl_asset_change, mdl_asset_change_t *)
EFFECT(mdl_asset_delete, mdl_entity_ref_t *)
EFFECT(mdl_blob_released, mdl_blob_released_t *)
EFFECT(mdl_blob_sweep, const mdl_blob_sweep_t *)
EFFECT(mdl_category_create, mdl_category_edit_t *)
EFFECT(mdl_find, mdl_find_t *)
EFFECT(mdl_job_beats, apr_array_header_t **)
EFFECT(mdl_job_cancel, mdl_job_control_t *)
EFFECT(mdl_job_claim, mdl_job_claim_t *)
EFFECT(mdl_job_expire, const apr_array_header_t *)
EFFECT(mdl_job_inherit, const mdl_job_inherit_t *)
EFFECT(mdl_job_list, mdl_job_list_t *)
EFFECT(mdl_job_look, mdl_job_look_t *)
EFFECT(mdl_job_retry, mdl_job_control_t *)
EFFECT(mdl_queue_read, mdl_queue_t *)
EFFECT(mdl_webhook_failing, mdl_webhook_failing_t *)
EFFECT(mdl_key_create, mdl_key_create_t *)
EFFECT(mdl_key_epoch, apr_int64_t *)
EFFECT(mdl_key_list, mdl_key_list_t *)
EFFECT(mdl_key_look_up, mdl_key_look_up_t *)
EFFECT(mdl_key_revoke, mdl_key_revoke_t *)
EFFECT(mdl_key_touch, const mdl_key_touch_t *)
EFFECT(mdl_meter_renew, mdl_meter_tick_t *)
EFFECT(mdl_meter_beats, apr_array_header_t **)
EFFECT(mdl_meter_sweep, mdl_meter_sweep_t *)
EFFECT(mdl_license_add, mdl_license_add_t *)
EFFECT(mdl_license_tag_create, mdl_license_tag_edit_t *)
EFFECT(mdl_license_tag_find, mdl_entity_ref_t *)
EFFECT(mdl_mapping_delete, mdl_entity_ref_t *)
EFFECT(mdl_mapping_find, mdl_entity_ref_t *)
EFFECT(mdl_mapping_list, mdl_mapping_list_t *)
EFFECT(mdl_job_page, mdl_job_page_t *)
EFFECT(mdl_mapping_put, mdl_mapping_put_t *)
EFFECT(mdl_order_assign, mdl_order_assign_t *)
EFFECT(mdl_order_filter, mdl_order_filter_t *)
EFFECT(mdl_order_find, mdl_order_find_t *)
EFFECT(mdl_order_list, mdl_order_list_t *)
EFFECT(mdl_order_search, mdl_order_search_t *)
EFFECT(mdl_pack_change, mdl_pack_edit_t *)
EFFECT(mdl_pack_create, mdl_pack_edit_t *)
EFFECT(mdl_pack_delete, mdl_entity_ref_t *)
EFFECT(mdl_prune, mdl_prune_t *)
EFFECT(mdl_session_settle, const mdl_session_settle_t *)
EFFECT(mdl_session_sweep, mdl_session_sweep_t *)
EFFECT(mdl_shop_add, mdl_shop_add_t *)
EFFECT(mdl_shop_set_status, mdl_shop_set_status_t *)
EFFECT(mdl_storage_hold, mdl_storage_hold_t *)
EFFECT(mdl_storage_release, mdl_storage_release_t *)
EFFECT(mdl_upload_finish, mdl_upload_finish_t *)
EFFECT(mdl_upload_abort, mdl_upload_get_t *)
EFFECT(mdl_upload_begin, mdl_upload_begin_t *)
EFFECT(mdl_upload_complete, mdl_upload_complete_t *)
EFFECT(mdl_upload_find_live, mdl_upload_get_t *)
EFFECT(mdl_version_queue, mdl_version_t *)

#undef EFFECT

#endif
