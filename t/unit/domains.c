/* Lists of mail domains, which are reloaded when their file changes. */
#include "core/settings/domains.h"

#include <pthread.h>
#include <sys/stat.h>

#include "base/log.h"
#include "t/unit/database.h"

static char path[256];
static char said[8192];

static void take(const char *file, int line, mdl_log_level_t level, apr_status_t rv,
                 const char *message)
{
    size_t length = strlen(said);

    (void)file;
    (void)line;
    (void)level;
    (void)rv;
    snprintf(said + length, sizeof said - length, "%s\n", message);
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
    atomic_fetch_add(&clock_ahead, apr_time_from_sec(1));
    said[0] = '\0';
}

#define LIST(text) write_list(text, sizeof text - 1)

static void test_lines(apr_pool_t *p)
{
    mdl_domains_t *domains;

    LIST("\xEF\xBB\xBFmailinator.com\n"
         "# a comment\r\n"
         "\n"
         "  Trash.Example  # thrown away\r\n"
         "xn--bcher-kva.example\n"
         "top-level\n"
         "last.example");
    is_int(mdl_domains_open(&domains, path, p), APR_SUCCESS, "a list is read");
    is_str(said, "", "nothing is to be said of it");
    ok(mdl_domains_has(domains, "mailinator.com"), "a domain of the first line is in it");
    ok(mdl_domains_has(domains, "MAILINATOR.com"), "whatever its case");
    ok(mdl_domains_has(domains, "trash.example"), "and whatever that of the file");
    ok(mdl_domains_has(domains, "a.b.trash.example"), "a domain under one is in it too");
    ok(mdl_domains_has(domains, "last.example"), "also that of a line without an end");
    ok(mdl_domains_has(domains, "x.top-level"), "a whole top level can be given");
    ok(!mdl_domains_has(domains, "nottrash.example") && !mdl_domains_has(domains, "example") &&
           !mdl_domains_has(domains, "trash.example.com") && !mdl_domains_has(domains, "com") &&
           !mdl_domains_has(domains, ""),
       "what only looks alike is not");
}

static void test_bad_lines(apr_pool_t *p)
{
    mdl_domains_t *domains;

    LIST("good.example\n@bad.example\nb\303\274cher.example\ntwo words.example\nnul\0.example\n"
         "-x.example\nafter.example\n");
    mdl_domains_open(&domains, path, p);
    is_str(said,
           apr_pstrcat(p, "MDL0380: ", path, ":2: this line is no domain and is passed over\n",
                       "MDL0380: ", path, ":3: this line is no domain and is passed over\n",
                       "MDL0380: ", path, ":4: this line is no domain and is passed over\n",
                       "MDL0380: ", path, ":5: this line is no domain and is passed over\n",
                       "MDL0380: ", path, ":6: this line is no domain and is passed over\n", NULL),
           "each line that is no domain is named");
    ok(mdl_domains_has(domains, "good.example") && mdl_domains_has(domains, "after.example"),
       "the others count");
    said[0] = '\0';
    for (int i = 0; i < 3; i++) {
        atomic_fetch_add(&clock_ahead, apr_time_from_sec(2));
        mdl_domains_has(domains, "good.example");
    }
    is_str(said, "", "and they are named once");

    LIST("?\n?\n?\n?\n?\n?\n?\n?\n?\n?\n?\n?\n?\n");
    mdl_domains_has(domains, "x");
    ok(strstr(said, ":10: ") != NULL && strstr(said, ":11: ") == NULL &&
           strstr(said, "3 more lines are no domains") != NULL,
       "of many the first ten are");
}

static void test_changes(apr_pool_t *p)
{
    mdl_domains_t *domains;

    LIST("one.example\n");
    mdl_domains_open(&domains, path, p);
    LIST("two.example\n");
    ok(mdl_domains_has(domains, "two.example"), "a changed list is read again");
    ok(!mdl_domains_has(domains, "one.example"), "what is gone from it does not count any more");
    LIST("");
    ok(!mdl_domains_has(domains, "two.example"), "an empty list has nothing");
    LIST("three.example\n");
    ok(mdl_domains_has(domains, "three.example"), "and can be filled again");

    unlink(path);
    atomic_fetch_add(&clock_ahead, apr_time_from_sec(1));
    ok(mdl_domains_has(domains, "three.example"), "without its file the list stays");
    atomic_fetch_add(&clock_ahead, apr_time_from_sec(1));
    mdl_domains_has(domains, "x");
    is_str(said,
           apr_pstrcat(p, "MDL0381: ", path,
                       " can't be read: its domains stay as they were read last\n", NULL),
           "which is said once");
    LIST("four.example\n");
    ok(mdl_domains_has(domains, "four.example"), "until there is a file again");
    unlink(path);
    mkdir(path, 0700);
    atomic_fetch_add(&clock_ahead, apr_time_from_sec(1));
    ok(mdl_domains_has(domains, "four.example"), "a folder is no list");
    rmdir(path);
    ok(mdl_domains_open(&domains, path, p) != APR_SUCCESS, "no list is opened without a file");
}

/* How often the file is checked: once a second at most. */
static void test_pace(apr_pool_t *p)
{
    mdl_domains_t *domains;
    FILE *file;

    LIST("one.example\n");
    mdl_domains_open(&domains, path, p);
    file = fopen(path, "a");
    fputs("two.example\n", file);
    fclose(file);
    ok(!mdl_domains_has(domains, "two.example"), "within a second the file is not looked at");
    atomic_fetch_add(&clock_ahead, apr_time_from_sec(1));
    ok(mdl_domains_has(domains, "two.example"), "then somebody does");
    atomic_fetch_add(&clock_ahead, -apr_time_from_sec(3600));
    file = fopen(path, "a");
    fputs("three.example\n", file);
    fclose(file);
    ok(mdl_domains_has(domains, "three.example"), "also when the clock was put back");
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
        /* Each version has another length, which alone distinguishes files of the same moment. */
        const char *text = apr_psprintf(p, "always.example\n%s\n%*s", name, i, "");

        write_list(text, strlen(text));
        for (int j = 0; j < 10000 && !mdl_domains_has(domains, name); j++) {
            atomic_fetch_add(&clock_ahead, apr_time_from_sec(1));
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
    is_int(missed, 0, "threads that ask while it changes always have a whole list");
    is_int(seen, ROUNDS, "and each change comes");
}

int main(void)
{
    apr_pool_t *p = tap_begin();
    const char *temp = getenv("TMPDIR");

    snprintf(path, sizeof path, "%s/mdl-domains-%ld", temp != NULL ? temp : "/tmp", (long)getpid());
    mdl_log_set_sink(take);
    test_lines(p);
    test_bad_lines(p);
    test_changes(p);
    test_pace(p);
    test_threads(p);
    unlink(path);
    return tap_end(p);
}
