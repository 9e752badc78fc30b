/*
 * Which storage folder belongs to a database, with either new, known, foreign or missing.
 */
#include "t/unit/fixtures.h"

#include "core/catalog/storage_identity.h"
#include "storage/storage.h"

#define RACERS 8

static const database_t *at;
static mdl_db_t *db;
static const char *base; /* the parent of the folders */
static const char *why;

static const char *in(const char *name, apr_pool_t *p)
{
    return apr_pstrcat(p, base, "/", name, NULL);
}

/* Resets the test: removes all folders, files and the database's record. */
static void anew(apr_pool_t *p)
{
    is_int(system(apr_psprintf(p, "rm -rf %s && mkdir %s %s/one %s/two", base, base, base, base)),
           0, "two empty folders");
    mdl_db_command(db, "DELETE FROM storage");
    mdl_db_command(db, "DELETE FROM blob");
}

static void put_file(const char *folder, apr_pool_t *p)
{
    is_int(system(apr_psprintf(p, "mkdir -p %s/blobs/a && touch %s/blobs/a/abc", in(folder, p),
                               in(folder, p))),
           0, "a folder holds a file");
}

static void know_file(apr_pool_t *p)
{
    const mdl_blob_t blob = {.sha256 = apr_pstrcat(p, "a0000000000000000000000000000000",
                                                   "00000000000000000000000000000000", NULL),
                             .size = 1,
                             .crc32 = 1};

    is_int(mdl_db_command(db, apr_psprintf(p,
                                           "INSERT INTO blob (sha256, size, crc32, created_at) "
                                           "VALUES ('%s', 1, 1, 1)",
                                           blob.sha256)),
           APR_SUCCESS, "the database knows a file");
}

static apr_status_t joins(const char *folder, apr_pool_t *p)
{
    why = "";
    return mdl_storage_belongs(db, &(mdl_storage_config_t){.folder = in(folder, p)}, 1, &why, p);
}

static void refused(const char *folder, const char *reason, const char *name, apr_pool_t *p)
{
    is_int(joins(folder, p), APR_EMISMATCH, name);
    if (!ok(strstr(why, reason) != NULL, apr_pstrcat(p, "the reason: ", reason, NULL))) {
        printf("# %s\n", why);
    }
}

static void test_first(apr_pool_t *p)
{
    const char *identity, *again;

    anew(p);
    is_int(mdl_storage_belongs(db, &(mdl_storage_config_t){.folder = in("one", p)}, 0, &why, p),
           APR_SUCCESS, "a look at a new folder finds nothing wrong");
    is_int(mdl_storage_identity(in("one", p), &identity, p), APR_ENOENT, "and leaves it as it is");
    is_int(joins("one", p), APR_SUCCESS, "a new database takes a new folder");
    is_int(mdl_storage_identity(in("one", p), &identity, p), APR_SUCCESS,
           "which has an identity then");
    is_int(joins("one", p), APR_SUCCESS, "it belongs with it the next time");
    is_int(mdl_storage_identity(in("one", p), &again, p), APR_SUCCESS, "and has the same identity");
    is_str(again, identity, "as before");
    refused("two", "has no file identity", "an empty new folder is refused", p);
    is_int(mdl_storage_identity(in("two", p), &again, p), APR_ENOENT, "and left as it is");
    refused("three", "has no file identity", "so is one that is not there", p);
}

static void test_moved(apr_pool_t *p)
{
    char *command;

    anew(p);
    joins("one", p);
    put_file("one", p);
    know_file(p);
    is_int(system(apr_psprintf(p, "mv %s %s", in("one", p), in("moved", p))), 0,
           "a folder is moved");
    is_int(joins("moved", p), APR_SUCCESS, "it still belongs with the database");
    refused("two", "echo storage_", "another folder says how it can take its place", p);
    command = strstr(apr_pstrdup(p, why), "echo storage_");
    is_int(command != NULL ? system(command) : -1, 0, "that is a command");
    is_int(joins("two", p), APR_SUCCESS, "after which it belongs with the database");
}

static void test_other(apr_pool_t *p)
{
    const char *other;

    anew(p);
    mdl_storage_identify(in("two", p), &other, p);
    joins("one", p);
    refused("two", other, "a folder with another identity is refused", p);
    is_int(system(apr_psprintf(p, "echo nonsense >%s/identity", in("one", p))), 0,
           "an identity is overwritten");
    is_int(joins("one", p), APR_EINVAL, "what is none is refused");
    ok(strstr(why, "can't be read") != NULL, "with a reason");
}

/* A database without a folder: new, or restored from an older release. */
static void test_strangers(apr_pool_t *p)
{
    char *command;

    anew(p);
    put_file("one", p);
    refused("one", "the database knows none", "a new database does not take a folder with files",
            p);
    know_file(p);
    is_int(joins("one", p), APR_SUCCESS, "an older one does, if it knows files");
    mdl_db_command(db, "DELETE FROM storage");
    is_int(joins("one", p), APR_SUCCESS, "also if the folder has its identity");
    mdl_db_command(db, "DELETE FROM storage");
    refused("two", "holds none", "but no folder without a file", p);
    command = strstr(apr_pstrdup(p, why), "echo storage_");
    is_int(command != NULL ? system(command) : -1, 0, "unless its command is run");
    is_int(joins("two", p), APR_SUCCESS, "then it does");
}

/* A service whose files are all in objects. */
static void test_no_folder(apr_pool_t *p)
{
    const mdl_storage_config_t none = {0};

    anew(p);
    is_int(mdl_storage_belongs(db, &none, 1, &why, p), APR_SUCCESS,
           "no folder is needed without a file");
    know_file(p);
    is_int(mdl_storage_belongs(db, &none, 1, &why, p), APR_EMISMATCH, "but for a file");
    ok(strstr(why, "storage copy folder object") != NULL, "the reason says how to copy it");
    mdl_db_command(db, "UPDATE blob SET object = 'obj_1'");
    is_int(mdl_storage_belongs(db, &none, 1, &why, p), APR_SUCCESS, "until it is in an object");
}

static int race(const char *folder)
{
    apr_pool_t *p;
    int good;

    apr_pool_create(&p, NULL);
    db = database_open(at, p);
    good = joins(folder, p) == APR_SUCCESS;
    if (!good) {
        printf("# %s\n", why);
    }
    return good;
}

/* Starts processes that join folders at the same time; returns how many succeeded. */
static int race_all(const char *even, const char *odd)
{
    pid_t racers[RACERS];
    int joined = 0;

    for (int i = 0; i < RACERS; i++) {
        if ((racers[i] = child_begin()) == 0) {
            child_end(race(i % 2 ? odd : even));
        }
    }
    for (int i = 0; i < RACERS; i++) {
        joined += child_good(racers[i]);
    }
    return joined;
}

static void test_races(apr_pool_t *p)
{
    for (int i = 0; i < 5; i++) {
        anew(p);
        is_int(race_all("one", "one"), RACERS, "processes that join one folder at once all do");
        anew(p);
        is_int(race_all("one", "two"), RACERS / 2, "of two folders one is taken by all");
    }
}

static void tests(const database_t *database, apr_pool_t *p)
{
    const char *temp = getenv("TMPDIR");

    at = database;
    base = apr_psprintf(p, "%s/mdl-identity.%ld", temp != NULL ? temp : "/tmp", (long)getpid());
    db = database_ready(database, p);
    test_first(p);
    test_moved(p);
    test_other(p);
    test_strangers(p);
    test_no_folder(p);
    test_races(p);
    is_int(system(apr_pstrcat(p, "rm -r ", base, NULL)), 0, "the folders are removed");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
