#include "base/text/template_cache.h"

#include <string.h>

#include <apr_file_info.h>
#include <apr_hash.h>
#include <apr_strings.h>
#include <apr_time.h>

#define MAX_SETS 100 /* cached at a time */

/* File timestamps are coarse: a second change within a tick goes unnoticed.  So a set is trusted
   only if its files were older than this when it was read. */
#define SETTLED_AFTER apr_time_from_sec(1)

typedef struct {
    apr_pool_t *pool;
    apr_int64_t shop_id; /* 0: for all shops without their own templates */
    const mdl_templates_t *templates;
    const char *files; /* their state just before they were read */
    int settled;
} set_t;

struct mdl_template_cache_t {
    const char *folder;
    const char *const *names;
    apr_pool_t *pool;
    apr_hash_t *sets;    /* set_t *, by shop_id */
    apr_hash_t *current; /* set_t *, checked since the last refresh, by shop */
    apr_pool_t *looks;   /* the pool of current */
};

/* The state of files, to see whether they changed. */
typedef struct {
    apr_array_header_t *lines; /* const char * */
    apr_time_t newest;
} state_t;

mdl_template_cache_t *mdl_template_cache_create(const char *folder, const char *const *names,
                                                apr_pool_t *p)
{
    mdl_template_cache_t *cache = apr_pcalloc(p, sizeof *cache);

    cache->folder = folder;
    cache->names = names;
    apr_pool_create(&cache->pool, p);
    apr_pool_tag(cache->pool, "mdl_template_cache");
    cache->sets = apr_hash_make(cache->pool);
    apr_pool_create(&cache->looks, p);
    apr_pool_tag(cache->looks, "mdl_template_looks");
    cache->current = apr_hash_make(cache->looks);
    return cache;
}

void mdl_template_cache_refresh(mdl_template_cache_t *cache)
{
    apr_pool_clear(cache->looks);
    cache->current = apr_hash_make(cache->looks);
}

static void state_add_file(state_t *state, const char *path, apr_pool_t *p)
{
    apr_finfo_t info;
    apr_status_t rv = apr_stat(&info, path, APR_FINFO_MIN | APR_FINFO_INODE, p);

    if (rv == APR_SUCCESS && info.filetype == APR_DIR) {
        return;
    }
    if (rv != APR_SUCCESS) {
        info = (apr_finfo_t){.size = -1};
    }
    if (info.ctime > state->newest) {
        state->newest = info.ctime;
    }
    APR_ARRAY_PUSH(state->lines, const char *) = apr_psprintf(
        p, "%s %" APR_UINT64_T_FMT " %" APR_OFF_T_FMT " %" APR_TIME_T_FMT " %" APR_TIME_T_FMT, path,
        (apr_uint64_t)info.inode, info.size, info.mtime, info.ctime);
}

/* Unchanged files are listed in an unchanged order. */
static void state_add_folder(state_t *state, const char *folder, apr_pool_t *p)
{
    apr_finfo_t info;
    apr_dir_t *dir;
    apr_status_t rv;

    if (apr_dir_open(&dir, folder, p) != APR_SUCCESS) {
        return;
    }
    while ((rv = apr_dir_read(&info, APR_FINFO_NAME, dir)) == APR_SUCCESS || rv == APR_INCOMPLETE) {
        state_add_file(state, apr_pstrcat(p, folder, "/", info.name, NULL), p);
    }
    apr_dir_close(dir);
}

static int is_folder(const char *path, apr_pool_t *p)
{
    apr_finfo_t info;

    return apr_stat(&info, path, APR_FINFO_TYPE, p) == APR_SUCCESS && info.filetype == APR_DIR;
}

static set_t *set_read(mdl_template_cache_t *cache, apr_int64_t shop_id, const char *files,
                       apr_array_header_t *problems)
{
    apr_pool_t *pool;
    set_t *set;

    apr_pool_create(&pool, cache->pool);
    apr_pool_tag(pool, "mdl_template_set");
    set = apr_pcalloc(pool, sizeof *set);
    set->pool = pool;
    set->shop_id = shop_id;
    set->files = apr_pstrdup(pool, files);
    set->templates = mdl_templates_read_shop(cache->folder, shop_id, cache->names, problems, pool);
    apr_hash_set(cache->sets, &set->shop_id, sizeof set->shop_id, set);
    return set;
}

static void cache_forget(mdl_template_cache_t *cache, set_t *set)
{
    mdl_template_cache_refresh(cache); /* current may refer to this set */
    if (set != NULL) {
        apr_hash_set(cache->sets, &set->shop_id, sizeof set->shop_id, NULL);
        apr_pool_destroy(set->pool);
    } else {
        apr_pool_clear(cache->pool);
        cache->sets = apr_hash_make(cache->pool);
    }
}

/* A shop's set, read again if its files have changed. */
static set_t *cache_look(mdl_template_cache_t *cache, apr_int64_t shop_id,
                         apr_array_header_t *problems, apr_pool_t *p)
{
    state_t state = {.lines = apr_array_make(p, 32, sizeof(const char *))};
    const char *own = apr_pstrcat(p, cache->folder, "/", mdl_templates_shop_folder(shop_id, p),
                                  NULL);
    apr_time_t now = apr_time_now();
    const char *files;
    set_t *set;

    state_add_folder(&state, cache->folder, p);
    if (is_folder(own, p)) {
        state_add_folder(&state, own, p);
    } else {
        shop_id = 0;
    }
    files = apr_array_pstrcat(p, state.lines, '\n');
    set = apr_hash_get(cache->sets, &shop_id, sizeof shop_id);
    if (set != NULL && set->settled && strcmp(set->files, files) == 0) {
        return set;
    }
    if (set != NULL || apr_hash_count(cache->sets) >= MAX_SETS) {
        cache_forget(cache, set);
    }
    set = set_read(cache, shop_id, files, problems);
    set->settled = state.newest < now - SETTLED_AFTER || state.newest > now + SETTLED_AFTER;
    return set;
}

const mdl_templates_t *mdl_template_cache_get(mdl_template_cache_t *cache, apr_int64_t shop_id,
                                              apr_array_header_t *problems, apr_pool_t *p)
{
    set_t *set = apr_hash_get(cache->current, &shop_id, sizeof shop_id);

    if (set == NULL) {
        set = cache_look(cache, shop_id, problems, p);
        apr_hash_set(cache->current, apr_pmemdup(cache->looks, &shop_id, sizeof shop_id),
                     sizeof shop_id, set);
    }
    return set->templates;
}
