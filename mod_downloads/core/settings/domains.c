#include "core/settings/domains.h"

#include <stdatomic.h>
#include <string.h>

#include <apr_file_info.h>
#include <apr_file_io.h>
#include <apr_hash.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <apr_thread_mutex.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mail/mime.h"
#include "base/text/idn.h"
#include "base/text/utf8.h"

#define LOOK_AGE        apr_time_from_sec(1)
#define MAX_SIZE        (16 * 1024 * 1024)
#define MAX_DOMAIN      253
#define MAX_LINE        1000 /* bytes; a domain in Unicode may be longer than in ASCII */
#define MAX_WARNINGS    10
#define LOOKED_AT       (APR_FINFO_TYPE | APR_FINFO_SIZE | APR_FINFO_MTIME | APR_FINFO_INODE)
#define BYTE_ORDER_MARK "\xEF\xBB\xBF"

/* The contents of the file. */
typedef struct {
    apr_pool_t *pool; /* with its own allocator, because a thread makes it while others work */
    apr_hash_t *names;
    apr_finfo_t info;
} reading_t;

struct mdl_domains_t {
    const char *path;
    apr_thread_mutex_t *lock; /* of reading */
    reading_t *reading;
    atomic_llong looked_at;
    atomic_flag looking;
    int lost; /* whether the last check failed; only used by the thread that checks */
};

static int domains_same_file(const apr_finfo_t *a, const apr_finfo_t *b)
{
    return a->mtime == b->mtime && a->size == b->size && a->inode == b->inode;
}

/* Takes a line without its end; false when it is neither a domain nor empty. */
static int domains_take_line(reading_t *reading, char *line, apr_size_t length)
{
    char *hash = memchr(line, '#', length);
    char *end = hash != NULL ? hash : line + length;

    while (line < end && apr_isspace(*line)) {
        line++;
    }
    while (end > line && apr_isspace(end[-1])) {
        end--;
    }
    if (line == end) {
        return 1;
    }
    *end = '\0';
    if (strlen(line) != (apr_size_t)(end - line) || end - line > MAX_LINE) {
        return 0;
    }
    if (!mdl_utf8_is_ascii(line)) {
        line = (char *)mdl_idn_ascii(line, reading->pool);
    }
    if (line == NULL || strlen(line) > MAX_DOMAIN || !mdl_mime_domain_valid(line)) {
        return 0;
    }
    for (char *c = line; *c != '\0'; c++) {
        *c = (char)apr_tolower(*c);
    }
    apr_hash_set(reading->names, line, APR_HASH_KEY_STRING, line);
    return 1;
}

static void take_lines(reading_t *reading, const char *path, char *text, apr_size_t length)
{
    char *end = text + length;
    int number = 0, bad = 0;

    if (length >= 3 && memcmp(text, BYTE_ORDER_MARK, 3) == 0) {
        text += 3;
    }
    while (text < end) {
        char *newline = memchr(text, '\n', (apr_size_t)(end - text));
        char *line = text;

        text = newline != NULL ? newline + 1 : end;
        number++;
        if (!domains_take_line(reading, line,
                               (apr_size_t)((newline != NULL ? newline : end) - line)) &&
            ++bad <= MAX_WARNINGS) {
            mdl_log(MDL_LOG_WARNING, 0, "MDL0380: %s:%d: this line is no domain and is passed over",
                    path, number);
        }
    }
    if (bad > MAX_WARNINGS) {
        mdl_log(MDL_LOG_WARNING, 0, "MDL0380: %s: %d more lines are no domains", path,
                bad - MAX_WARNINGS);
    }
}

static apr_status_t domains_read_file(reading_t *reading, const char *path)
{
    apr_size_t length;
    apr_file_t *file;
    apr_status_t rv;
    char *text;

    rv = apr_file_open(&file, path, APR_FOPEN_READ, APR_OS_DEFAULT, reading->pool);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = apr_file_info_get(&reading->info, LOOKED_AT, file);
    if (rv == APR_SUCCESS && (reading->info.filetype != APR_REG || reading->info.size > MAX_SIZE)) {
        rv = APR_EINVAL;
    }
    if (rv == APR_SUCCESS) {
        length = (apr_size_t)reading->info.size;
        text = apr_palloc(reading->pool, length + 1); /* room for a NUL after the last line */
        rv = apr_file_read_full(file, text, length, &length);
        /* EOF: the file has become shorter in the meantime. */
        if (rv == APR_SUCCESS || APR_STATUS_IS_EOF(rv)) {
            take_lines(reading, path, text, length);
            rv = APR_SUCCESS;
        }
    }
    apr_file_close(file);
    return rv;
}

static apr_status_t make_reading(reading_t **reading, const char *path)
{
    apr_pool_t *pool;
    apr_status_t rv;

    if ((rv = apr_pool_create_unmanaged_ex(&pool, NULL, NULL)) != APR_SUCCESS) {
        return rv;
    }
    apr_pool_tag(pool, "mdl_domains");
    *reading = apr_pcalloc(pool, sizeof **reading);
    (*reading)->pool = pool;
    (*reading)->names = apr_hash_make(pool);
    if ((rv = domains_read_file(*reading, path)) != APR_SUCCESS) {
        apr_pool_destroy(pool);
    }
    return rv;
}

static apr_status_t end_reading(void *arg)
{
    apr_pool_destroy(((mdl_domains_t *)arg)->reading->pool);
    return APR_SUCCESS;
}

apr_status_t mdl_domains_open(mdl_domains_t **domains, const char *path, apr_pool_t *p)
{
    mdl_domains_t *made = apr_pcalloc(p, sizeof *made);
    apr_status_t rv;

    made->path = path;
    atomic_flag_clear(&made->looking);
    atomic_init(&made->looked_at, mdl_clock_monotonic());
    if ((rv = apr_thread_mutex_create(&made->lock, APR_THREAD_MUTEX_DEFAULT, p)) != APR_SUCCESS ||
        (rv = make_reading(&made->reading, path)) != APR_SUCCESS) {
        return rv;
    }
    apr_pool_cleanup_register(p, made, end_reading, apr_pool_cleanup_null);
    *domains = made;
    return APR_SUCCESS;
}

static void domains_replace(mdl_domains_t *domains, reading_t *reading)
{
    reading_t *old;

    apr_thread_mutex_lock(domains->lock);
    old = domains->reading;
    domains->reading = reading;
    apr_thread_mutex_unlock(domains->lock);
    apr_pool_destroy(old->pool);
}

static void domains_look(mdl_domains_t *domains)
{
    reading_t *reading;
    apr_finfo_t info;
    apr_pool_t *scratch;
    apr_status_t rv;

    if ((rv = apr_pool_create_unmanaged_ex(&scratch, NULL, NULL)) != APR_SUCCESS) {
        return;
    }
    rv = apr_stat(&info, domains->path, LOOKED_AT, scratch);
    apr_pool_destroy(scratch);
    if (rv == APR_SUCCESS && domains_same_file(&info, &domains->reading->info)) {
        domains->lost = 0;
        return;
    }
    if (rv == APR_SUCCESS) {
        rv = make_reading(&reading, domains->path);
    }
    if (rv == APR_SUCCESS) {
        domains->lost = 0;
        domains_replace(domains, reading);
    } else if (!domains->lost) {
        domains->lost = 1;
        mdl_log(MDL_LOG_WARNING, rv,
                "MDL0381: %s can't be read: its domains stay as they were read last",
                domains->path);
    }
}

/* Only one thread checks at a time; the others use the current list. */
static void look_if_due(mdl_domains_t *domains)
{
    apr_time_t age = mdl_clock_monotonic() - atomic_load(&domains->looked_at);

    if (age >= LOOK_AGE && !atomic_flag_test_and_set(&domains->looking)) {
        domains_look(domains);
        atomic_store(&domains->looked_at, mdl_clock_monotonic());
        atomic_flag_clear(&domains->looking);
    }
}

int mdl_domains_has(mdl_domains_t *domains, const char *domain)
{
    char name[MAX_DOMAIN + 1];
    const char *part = name;
    int found = 0;

    look_if_due(domains);
    apr_cpystrn(name, domain, sizeof name);
    for (char *c = name; *c != '\0'; c++) {
        *c = (char)apr_tolower(*c);
    }
    apr_thread_mutex_lock(domains->lock);
    while (part != NULL && !found) {
        found = apr_hash_get(domains->reading->names, part, APR_HASH_KEY_STRING) != NULL;
        part = strchr(part, '.');
        part = part != NULL ? part + 1 : NULL;
    }
    apr_thread_mutex_unlock(domains->lock);
    return found;
}
