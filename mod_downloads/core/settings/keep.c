#include "core/settings/keep.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#define DAY  apr_time_from_sec(86400)
#define MOST 36500

static const char forever[] = "forever";

static const struct {
    const char *name;
    apr_size_t member;
    int least;    /* days; downloads: a link may be used for 30 */
    int standard; /* days; 0: for ever */
} kept[] = {
    {"jobs", offsetof(mdl_keep_t, jobs), 1, 30},
    {"uploads", offsetof(mdl_keep_t, uploads), 1, 30},
    {"emails", offsetof(mdl_keep_t, emails), 1, 365},
    {"events", offsetof(mdl_keep_t, events), 1, 30},
    {"downloads", offsetof(mdl_keep_t, downloads), 32, 365},
    {"bounces", offsetof(mdl_keep_t, bounces), 1, 30},
    {"audit", offsetof(mdl_keep_t, audit), 1, 0},
};

#define KEPT (sizeof kept / sizeof *kept)

static void keep_set(mdl_keep_t *keep, apr_size_t i, int days)
{
    apr_interval_time_t *member = (apr_interval_time_t *)((char *)keep + kept[i].member);

    *member = days == 0 ? MDL_KEEP_FOREVER : days * DAY;
}

void mdl_keep_init(mdl_keep_t *keep)
{
    for (apr_size_t i = 0; i < KEPT; i++) {
        keep_set(keep, i, kept[i].standard);
    }
}

/* Finds the part of a word before the "=". */
static apr_size_t keep_find(const char *word, apr_size_t length)
{
    apr_size_t i = 0;

    while (i < KEPT &&
           (strlen(kept[i].name) != length || strncasecmp(kept[i].name, word, length) != 0)) {
        i++;
    }
    return i;
}

/* Days of 1 to 5 digits; -1 for anything else. */
static int keep_days(const char *text)
{
    apr_size_t length = strspn(text, "0123456789");

    return length >= 1 && length <= 5 && text[length] == '\0' ? atoi(text) : -1;
}

const char *mdl_keep_set(mdl_keep_t *keep, const char *word, apr_pool_t *p)
{
    apr_size_t length = strcspn(word, "=");
    const char *value = word + length + (word[length] != '\0');
    apr_size_t i = keep_find(word, length);
    int days = keep_days(value);

    if (i == KEPT) {
        return apr_psprintf(p,
                            "must list what is kept for how many days, such as jobs=30 or "
                            "audit=forever, of jobs, uploads, emails, events, downloads, bounces "
                            "and audit, not \"%s\".",
                            word);
    }
    if (strcasecmp(value, forever) == 0) {
        days = 0;
    } else if (days < kept[i].least || days > MOST) {
        return apr_psprintf(p, "must keep %s for %d to %d days or forever, not \"%s\".",
                            kept[i].name, kept[i].least, MOST, value);
    }
    keep_set(keep, i, days);
    return NULL;
}
