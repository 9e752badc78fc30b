/*
 * The pages of each tab, searched by settings/router.c; each array ends with a page without a path.
 */
#ifndef MDL_SETTINGS_PAGES_H
#define MDL_SETTINGS_PAGES_H

#include "settings/visit.h"

extern const mdl_page_t mdl_audit_pages[];
extern const mdl_page_t mdl_category_pages[];
extern const mdl_page_t mdl_email_pages[];
extern const mdl_page_t mdl_email_preview_pages[];
extern const mdl_page_t mdl_file_list_pages[];
extern const mdl_page_t mdl_file_pages[];
extern const mdl_page_t mdl_health_pages[];
extern const mdl_page_t mdl_key_pages[];
extern const mdl_page_t mdl_link_pages[];
extern const mdl_page_t mdl_license_key_pages[];
extern const mdl_page_t mdl_member_pages[];
extern const mdl_page_t mdl_order_list_pages[];
extern const mdl_page_t mdl_order_by_hand_pages[];
extern const mdl_page_t mdl_order_evidence_pages[];
extern const mdl_page_t mdl_order_pages[];
extern const mdl_page_t mdl_overview_pages[];
extern const mdl_page_t mdl_own_email_pages[];
extern const mdl_page_t mdl_own_shop_pages[];
extern const mdl_page_t mdl_product_list_pages[];
extern const mdl_page_t mdl_product_pages[];
extern const mdl_page_t mdl_product_buyers_pages[];
extern const mdl_page_t mdl_customer_merge_pages[];
extern const mdl_page_t mdl_pack_list_pages[];
extern const mdl_page_t mdl_pack_pages[];
extern const mdl_page_t mdl_preview_pages[];
extern const mdl_page_t mdl_search_pages[];
extern const mdl_page_t mdl_shop_pages[];
extern const mdl_page_t mdl_sign_in_pages[];
extern const mdl_page_t mdl_upload_pages[];
extern const mdl_page_t mdl_webhook_pages[];

/** The sign-in page, which needs no user. */
extern const mdl_page_t mdl_sign_in_page;

#endif
