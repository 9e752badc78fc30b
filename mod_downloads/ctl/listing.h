/*
 * Shared by the commands that show a shop's entities: lists, newest first, and single ones.
 */
#ifndef MDL_CTL_LISTING_H
#define MDL_CTL_LISTING_H

#include "core/entity_ref.h"
#include "core/list_page.h"
#include "ctl/command.h"

/** Reads a page of the shop ctl->id by an effect on arg, which begins with the page, and prints
    it: --limit records, or MDL_CTL_SHOWN.  Returns the exit code. */
int mdl_ctl_list(mdl_ctl_t *ctl, mdl_effect_fn *effect, mdl_list_page_t *page,
                 const mdl_field_t *fields, const char *empty);

/** Reads the entity that the second argument names, a number, by an effect on ref.  Prints errors
    and returns the exit code. */
int mdl_ctl_find(mdl_ctl_t *ctl, mdl_effect_fn *effect, mdl_entity_ref_t *ref);

#endif
