/* Lists of mail domains, which are reloaded when their file changes. */
#include "core/settings/domains.h"

#include <pthread.h>
#include <sys/stat.h>

#include "base/log.h"
#include "t/unit/database.h"

static char path[256];
static char logged[8192];

static void keep_log(const char *file, int line, mdl_log_level_t level, apr_status_t rv,
                     const char *message)
{
    size_t length = strlen(logged);

    (void)file;
    (void)line;
    (void)level;
    (void)rv;
    snprintf(logged + length, sizeof logged - length, "%s\n", message);
}

/* Replaces the file, and advances the clock until it is checked again. */
static void write_list(const char *text, size_t length)
{
    char temp[sizeof path + 4];
    FILE *file;

    snprintf(temp, sizeof temp, "%s.new", path);
    file = fopen(temp, "w");
    fwrite(text, 1, length, file);
    fclose(file);
    rename(temp, path);
    atomic_fetch_add(&monotonic_ahead, apr_time_from_sec(1));
    logged[0] = '\0';
}

#define LIST(text) write_list(text, sizeof text - 1)

static void test_lines(apr_pool_t *p)
{
    mdl_domains_t *domains;

    LIST("\xEF\xBB\xBFmailinator.com\n"
         "# a comment\r\n"
         "\n"
         "  Trash.Example  # thrown away\r\n"
         "B\303\274cher.example\n"
         "top-level\n"
         "last.example");
    is_int(mdl_domains_open(&domains, path, p), APR_SUCCESS, "a list is read");
    is_str(logged, "", "a valid list causes no warning");
    ok(mdl_domains_has(domains, "mailinator.com"), "the domain of the first line is listed");
    ok(mdl_domains_has(domains, "MAILINATOR.com"),
       "the letter case of the argument does not matter");
    ok(mdl_domains_has(domains, "trash.example"), "the letter case in the file does not matter");
    ok(mdl_domains_has(domains, "a.b.trash.example"), "a subdomain of a listed domain is listed");
    ok(mdl_domains_has(domains, "last.example"),
       "the domain of a last line without a line end is listed");
    ok(mdl_domains_has(domains, "xn--bcher-kva.example"),
       "an international domain is listed by its xn-- form");
    ok(mdl_domains_has(domains, "x.top-level"), "a top-level domain can be listed");
    ok(!mdl_domains_has(domains, "nottrash.example") && !mdl_domains_has(domains, "example") &&
           !mdl_domains_has(domains, "trash.example.com") && !mdl_domains_has(domains, "com") &&
           !mdl_domains_has(domains, ""),
       "a domain that only resembles a listed one is not");
}

static void test_bad_lines(apr_pool_t *p)
{
    mdl_domains_t *domains;

    LIST("good.example\n@bad.example\nb\303cher.example\ntwo words.example\nnul\0.example\n"
         "-x.example\nafter.example\n");
    mdl_domains_open(&domains, path, p);
    is_str(logged,
           apr_pstrcat(p, "MDL0380: ", path, ":2: this line is no domain and is passed over\n",
                       "MDL0380: ", path, ":3: this line is no domain and is passed over\n",
                       "MDL0380: ", path, ":4: this line is no domain and is passed over\n",
                       "MDL0380: ", path, ":5: this line is no domain and is passed over\n",
                       "MDL0380: ", path, ":6: this line is no domain and is passed over\n", NULL),
           "each line that is not a domain is logged");
    ok(mdl_domains_has(domains, "good.example") && mdl_domains_has(domains, "after.example"),
       "the other lines are used");
    logged[0] = '\0';
    for (int i = 0; i < 3; i++) {
        atomic_fetch_add(&monotonic_ahead, apr_time_from_sec(2));
        mdl_domains_has(domains, "good.example");
    }
    is_str(logged, "", "each of them is logged once");

    LIST("?\n?\n?\n?\n?\n?\n?\n?\n?\n?\n?\n?\n?\n");
    mdl_domains_has(domains, "x");
    ok(strstr(logged, ":10: ") != NULL && strstr(logged, ":11: ") == NULL &&
           strstr(logged, "3 more lines are no domains") != NULL,
       "of many such lines the first ten are logged");
}

static void test_changes(apr_pool_t *p)
{
    mdl_domains_t *domains;

    LIST("one.example\n");
    mdl_domains_open(&domains, path, p);
    LIST("two.example\n");
    ok(mdl_domains_has(domains, "two.example"), "a changed list is read again");
    ok(!mdl_domains_has(domains, "one.example"), "a domain removed from it is no longer listed");
    LIST("");
    ok(!mdl_domains_has(domains, "two.example"), "an empty list contains no domain");
    LIST("three.example\n");
    ok(mdl_domains_has(domains, "three.example"), "and can be filled again");

    unlink(path);
    atomic_fetch_add(&monotonic_ahead, apr_time_from_sec(1));
    ok(mdl_domains_has(domains, "three.example"), "the list stays when its file is removed");
    atomic_fetch_add(&monotonic_ahead, apr_time_from_sec(1));
    mdl_domains_has(domains, "x");
    is_str(logged,
           apr_pstrcat(p, "MDL0381: ", path,
                       " can't be read: its domains stay as they were read last\n", NULL),
           "this is logged once");
    LIST("four.example\n");
    ok(mdl_domains_has(domains, "four.example"), "a new file is read");
    unlink(path);
    mkdir(path, 0700);
    atomic_fetch_add(&monotonic_ahead, apr_time_from_sec(1));
    ok(mdl_domains_has(domains, "four.example"), "the list stays when its file becomes a folder");
    rmdir(path);
    ok(mdl_domains_open(&domains, path, p) != APR_SUCCESS, "a list without a file can't be opened");
}

/* The file is checked at most once a second. */
static void test_pace(apr_pool_t *p)
{
    mdl_domains_t *domains;
    FILE *file;

    LIST("one.example\n");
    mdl_domains_open(&domains, path, p);
    file = fopen(path, "a");
    fputs("two.example\n", file);
    fclose(file);
    ok(!mdl_domains_has(domains, "two.example"), "the file is not checked again within a second");
    atomic_fetch_add(&monotonic_ahead, apr_time_from_sec(1));
    ok(mdl_domains_has(domains, "two.example"), "the file is checked after a second");
    atomic_fetch_add(&clock_ahead, -apr_time_from_sec(3600));
    atomic_fetch_add(&monotonic_ahead, apr_time_from_sec(1));
    file = fopen(path, "a");
    fputs("three.example\n", file);
    fclose(file);
    ok(mdl_domains_has(domains, "three.example"),
       "the file is checked after the clock was set back");
}

#define THREADS 8
#define ROUNDS  200

static atomic_int over;

/* "always.example" is in every version of the list. */
static void *ask(void *arg)
{
    long missed = 0;

    while (!atomic_load(&over)) {
        missed += !mdl_domains_has(arg, "always.example");
    }
    return (void *)missed;
}

static void test_threads(apr_pool_t *p)
{
    pthread_t threads[THREADS];
    mdl_domains_t *domains;
    long missed = 0;
    int seen = 0;

    LIST("always.example\n");
    mdl_domains_open(&domains, path, p);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, ask, domains);
    }
    for (int i = 0; i < ROUNDS && seen == i; i++) {
        const char *name = apr_psprintf(p, "n%d.example", i);
        /* Each version has a different length, which alone distinguishes files of the same time. */
        const char *text = apr_psprintf(p, "always.example\n%s\n%*s", name, i, "");

        write_list(text, strlen(text));
        for (int j = 0; j < 600000 && !mdl_domains_has(domains, name); j++) {
            atomic_fetch_add(&monotonic_ahead, apr_time_from_sec(1));
            usleep(100); /* lets the reading thread run */
        }
        seen += mdl_domains_has(domains, name);
    }
    atomic_store(&over, 1);
    for (int i = 0; i < THREADS; i++) {
        void *result;

        pthread_join(threads[i], &result);
        missed += (long)result;
    }
    is_int(missed, 0, "threads always see a whole list while it changes");
    is_int(seen, ROUNDS, "they see each change");
}

int main(void)
{
    apr_pool_t *p = tap_begin();
    const char *temp = getenv("TMPDIR");

    snprintf(path, sizeof path, "%s/mdl-domains-%ld", temp != NULL ? temp : "/tmp", (long)getpid());
    mdl_log_set_sink(keep_log);
    stop_clocks();
    test_lines(p);
    test_bad_lines(p);
    test_changes(p);
    test_pace(p);
    test_threads(p);
    unlink(path);
    return tap_end(p);
}
