/*
 * The links at the top of each page of the settings, in two levels.
 */
#ifndef MDL_SETTINGS_NAVIGATION_H
#define MDL_SETTINGS_NAVIGATION_H

#include "base/text/json.h"
#include "settings/visit.h"

/** Adds what the user may see: the array "tabs" and, if the page's tab has a second level,
    "tab_entries" and has_tab_entries.  Each has tab, the form of the word "tab"; href, below the
    settings; and current, the value of aria-current: "page", "true" for the tab around it, or "".
 */
void mdl_navigation_add(mdl_json_t *to, const mdl_visit_t *visit);

#endif
