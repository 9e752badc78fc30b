#include "core/download/grant.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "base/clock.h"

#define SLOTS  1024 /* a power of two */
#define PROBES 4

typedef struct {
    mdl_grant_t grant;
    mdl_download_t download;
    apr_time_t until; /* by mdl_clock_monotonic */
    char *session;
    char texts[]; /* of download, and session */
} granted_t;

static struct {
    pthread_mutex_t mutex;
    granted_t *slots[SLOTS];
} grants = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The slot that a link has, or else may take: an empty one, one that is over, or the last. */
static granted_t **grant_slot(const char *session, apr_time_t now)
{
    apr_ssize_t length = APR_HASH_KEY_STRING;
    unsigned at = apr_hashfunc_default(session, &length);
    granted_t **vacant = NULL, **slot = NULL;

    for (unsigned i = 0; i < PROBES; i++) {
        slot = &grants.slots[(at + i) % SLOTS];
        if (*slot != NULL && strcmp((*slot)->session, session) == 0) {
            return slot;
        }
        if (vacant == NULL && (*slot == NULL || (*slot)->until <= now)) {
            vacant = slot;
        }
    }
    return vacant != NULL ? vacant : slot;
}

/* NULL if there is none, or it is over. */
static granted_t *grant_of(const char *session)
{
    apr_time_t now = mdl_clock_monotonic();
    granted_t *granted = *grant_slot(session, now);

    return granted != NULL && granted->until > now && strcmp(granted->session, session) == 0
               ? granted
               : NULL;
}

static apr_size_t text_size(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

/* Copies a text to *end, which moves behind it. */
static char *text_copy(char **end, const char *text)
{
    apr_size_t size = text_size(text);
    char *copy = text != NULL ? memcpy(*end, text, size) : NULL;

    *end += size;
    return copy;
}

static granted_t *granted_make(const mdl_download_t *download, const mdl_grant_t *grant)
{
    const char *session = download->link->session;
    granted_t *granted = malloc(sizeof *granted + text_size(session) +
                                text_size(download->page_id) + text_size(download->filename) +
                                text_size(download->content_type) + text_size(download->sha256));
    char *end;

    if (granted != NULL) {
        end = granted->texts;
        granted->grant = *grant;
        granted->download = *download;
        granted->until = download->looked_at + grant->time;
        granted->session = text_copy(&end, session);
        granted->download.page_id = text_copy(&end, download->page_id);
        granted->download.filename = text_copy(&end, download->filename);
        granted->download.content_type = text_copy(&end, download->content_type);
        granted->download.sha256 = text_copy(&end, download->sha256);
    }
    return granted;
}

void mdl_grant_put(const mdl_download_t *download, const mdl_grant_t *grant)
{
    const char *session = download->link->session;
    granted_t **slot;

    pthread_mutex_lock(&grants.mutex);
    if (grant_of(session) == NULL) {
        slot = grant_slot(session, mdl_clock_monotonic());
        free(*slot);
        *slot = granted_make(download, grant);
    }
    pthread_mutex_unlock(&grants.mutex);
}

int mdl_grant_find(mdl_download_t *download, apr_pool_t *p)
{
    const granted_t *granted;

    pthread_mutex_lock(&grants.mutex);
    granted = grant_of(download->link->session);
    if (granted != NULL) {
        const mdl_download_t *from = &granted->download;

        download->entitlement = from->entitlement;
        download->page_id = apr_pstrdup(p, from->page_id);
        download->opened_at = from->opened_at;
        download->filename = apr_pstrdup(p, from->filename);
        download->content_type = apr_pstrdup(p, from->content_type);
        download->sha256 = download->tag = apr_pstrdup(p, from->sha256);
        download->size = from->size;
        download->updated_at = from->updated_at;
    }
    pthread_mutex_unlock(&grants.mutex);
    return granted != NULL;
}

int mdl_grant_take(const char *session, apr_int64_t bytes, mdl_grant_t *grant)
{
    granted_t *granted;
    int is_covered;

    pthread_mutex_lock(&grants.mutex);
    granted = grant_of(session);
    is_covered = granted != NULL && bytes <= granted->grant.part && bytes <= granted->grant.bytes;
    if (is_covered) {
        granted->grant.bytes -= bytes;
        *grant = granted->grant;
    }
    pthread_mutex_unlock(&grants.mutex);
    return is_covered;
}
