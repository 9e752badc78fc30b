/*
 * The pages of each tab, which end with one that has no path; settings/router.c looks among them.
 */
#ifndef MDL_SETTINGS_PAGES_H
#define MDL_SETTINGS_PAGES_H

#include "settings/visit.h"

extern const mdl_page_t mdl_audit_pages[];
extern const mdl_page_t mdl_key_pages[];
extern const mdl_page_t mdl_member_pages[];
extern const mdl_page_t mdl_order_list_pages[];
extern const mdl_page_t mdl_order_pages[];
extern const mdl_page_t mdl_overview_pages[];
extern const mdl_page_t mdl_shop_pages[];
extern const mdl_page_t mdl_sign_in_pages[];
extern const mdl_page_t mdl_webhook_pages[];

/** Where people sign in, which is for nobody yet. */
extern const mdl_page_t mdl_sign_in_page;

#endif
