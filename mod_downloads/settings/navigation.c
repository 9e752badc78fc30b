#include "settings/navigation.h"

#include <string.h>

#include <apr_strings.h>

typedef struct {
    const char *tab;  /* of the first level; leads to its first entry that the user may see */
    const char *name; /* a form of the word "tab", as tab is; the tab's: it has no second level */
    const char *path; /* of its page and, with "/…" behind it, of others that belong to it */
    mdl_role_t sees;  /* the least role */
} entry_t;

/* In the order in which they are shown; the entries of one tab stand together. */
static const entry_t entries[] = {
    {"overview", "overview", "{}/", MDL_ROLE_READ_ONLY},
    {"orders", "all_orders", "{}/orders", MDL_ROLE_READ_ONLY},
    {"orders", "emails", "{}/emails", MDL_ROLE_READ_ONLY},
    {"products", "all_products", "{}/products", MDL_ROLE_READ_ONLY},
    {"products", "license_keys", "{}/license-keys", MDL_ROLE_READ_ONLY},
    {"files", "all_files", "{}/files", MDL_ROLE_READ_ONLY},
    {"files", "packs", "{}/packs", MDL_ROLE_READ_ONLY},
    {"files", "links", "{}/links", MDL_ROLE_READ_ONLY},
    {"files", "categories", "{}/categories", MDL_ROLE_READ_ONLY},
    {"settings", "shop", "{}/shop", MDL_ROLE_OWNER},
    {"settings", "members", "{}/members", MDL_ROLE_OWNER},
    {"settings", "api_keys", "{}/keys", MDL_ROLE_READ_ONLY},
    {"settings", "webhooks", "{}/webhooks", MDL_ROLE_READ_ONLY},
    {"settings", "audit", "{}/audit", MDL_ROLE_OWNER},
    {"settings", "own_emails", "{}/own-emails", MDL_ROLE_READ_ONLY},
    {"shops", "shops", "shops", MDL_ROLE_OPERATOR},
    {"health", "health", "health", MDL_ROLE_OPERATOR},
    {0},
};

static int entry_is_of_shop(const entry_t *entry)
{
    return *entry->path == '{';
}

static int entry_is_seen(const entry_t *entry, const mdl_visit_t *visit)
{
    return visit->user != NULL && visit->role >= entry->sees &&
           (visit->shop != NULL || !entry_is_of_shop(entry));
}

static int entry_has_page(const entry_t *entry, const mdl_page_t *page)
{
    apr_size_t length = strlen(entry->path);

    return strncmp(page->path, entry->path, length) == 0 &&
           (page->path[length] == '\0' ||
            (page->path[length] == '/' && entry->path[length - 1] != '/'));
}

/* The entry of the page that is shown, or NULL. */
static const entry_t *entry_current(const mdl_visit_t *visit)
{
    for (const entry_t *entry = entries; visit->page != NULL && entry->tab != NULL; entry++) {
        if (entry_has_page(entry, visit->page)) {
            return entry;
        }
    }
    return NULL;
}

static void entry_add(mdl_json_t *array, const mdl_visit_t *visit, const entry_t *entry,
                      const char *name, const char *current)
{
    mdl_json_t *to = mdl_json_add_object(array, NULL);

    mdl_json_add_string(to, "tab", name);
    mdl_json_add_string(to, "href",
                        entry_is_of_shop(entry)
                            ? apr_psprintf(visit->r->pool, "%" APR_INT64_T_FMT "%s",
                                           visit->shop->id, entry->path + strlen("{}"))
                            : entry->path);
    mdl_json_add_string(to, "current", current != NULL ? current : "");
}

void mdl_navigation_add(mdl_json_t *to, const mdl_visit_t *visit)
{
    const entry_t *current = entry_current(visit);
    mdl_json_t *tabs = mdl_json_add_array(to, "tabs");
    mdl_json_t *own = mdl_json_add_array(to, "tab_entries");
    const char *tab = "";

    for (const entry_t *entry = entries; entry->tab != NULL; entry++) {
        int in_tab = current != NULL && strcmp(entry->tab, current->tab) == 0;
        int alone = strcmp(entry->tab, entry->name) == 0;

        if (!entry_is_seen(entry, visit)) {
            continue;
        }
        if (strcmp(entry->tab, tab) != 0) {
            tab = entry->tab;
            entry_add(tabs, visit, entry, tab, !in_tab ? NULL : alone ? "page" : "true");
        }
        if (in_tab && !alone) {
            entry_add(own, visit, entry, entry->name, entry == current ? "page" : NULL);
            mdl_json_add_bool(to, "has_tab_entries", 1);
        }
    }
}
