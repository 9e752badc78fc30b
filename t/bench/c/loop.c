/*
 * Runs a script of pgbench on SQLite, in a loop of one thread: the least that a program of one's
 * own would need for the same rows.
 *
 *   loop DATABASE SCRIPT SECONDS GROUP [NAME=VALUE]...
 *
 * The statements between the script's BEGIN and COMMIT are one transaction there; here GROUP of
 * them share a commit.  Instead of what the script's \set say, :id counts on from n=VALUE, and
 * :which from 1 to 998 over and over. Prints the transactions per second and the median and 99th
 * percentile of a group, in milliseconds.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 32

static sqlite3 *db;
static sqlite3_stmt *statements[MOST];
static int count;
static long long id;

static void fail(const char *what)
{
    fprintf(stderr, "loop: %s: %s\n", what, db != NULL ? sqlite3_errmsg(db) : "failed");
    exit(1);
}

static void run(const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail(sql);
    }
}

static double now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Prepares each statement, which ends with a semicolon at the end of a line. */
static void read_script(const char *path)
{
    char sql[65536] = "", line[4096];
    FILE *in = fopen(path, "r");

    if (in == NULL) {
        fail(path);
    }
    while (fgets(line, sizeof line, in) != NULL) {
        if (line[0] == '\\' || strncmp(line, "--", 2) == 0 || strcmp(line, "BEGIN;\n") == 0 ||
            strcmp(line, "COMMIT;\n") == 0) {
            continue;
        }
        if (strlen(sql) + strlen(line) >= sizeof sql || count == MOST) {
            fail("the script is too long");
        }
        strcat(sql, line);
        if (strstr(line, ";\n") != NULL) {
            if (sqlite3_prepare_v2(db, sql, -1, &statements[count++], NULL) != SQLITE_OK) {
                fail(sql);
            }
            sql[0] = '\0';
        }
    }
    fclose(in);
}

/* The variables of the command line are bound once. */
static void bind_variable(const char *word)
{
    const char *value = strchr(word, '=');
    char name[64];

    if (value == NULL) {
        fail(word);
    }
    snprintf(name, sizeof name, ":%.*s", (int)(value - word), word);
    value++;
    if (strcmp(name, ":n") == 0) {
        id = atoll(value);
    }
    for (int i = 0; i < count; i++) {
        const int at = sqlite3_bind_parameter_index(statements[i], name);

        if (at != 0) {
            sqlite3_bind_text(statements[i], at, value, -1, SQLITE_STATIC);
        }
    }
}

static void bind_number(sqlite3_stmt *statement, const char *name, long long number)
{
    const int at = sqlite3_bind_parameter_index(statement, name);

    if (at != 0) {
        sqlite3_bind_int64(statement, at, number);
    }
}

static void run_statements(void)
{
    id++;
    for (int i = 0; i < count; i++) {
        int rc;

        bind_number(statements[i], ":id", id);
        bind_number(statements[i], ":which", 1 + id % 998);
        while ((rc = sqlite3_step(statements[i])) == SQLITE_ROW) {
        }
        if (rc != SQLITE_DONE) {
            fail(sqlite3_sql(statements[i]));
        }
        sqlite3_reset(statements[i]);
    }
}

int main(int argc, char **argv)
{
    enum { MOST_GROUPS = 4 * 1024 * 1024 };
    double *took = malloc(MOST_GROUPS * sizeof *took);
    long long done = 0;
    int groups = 0;

    if (argc < 5 || took == NULL || sqlite3_open(argv[1], &db) != SQLITE_OK) {
        fail("usage: loop DATABASE SCRIPT SECONDS GROUP [NAME=VALUE]...");
    }
    sqlite3_busy_timeout(db, 10000);
    run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
    read_script(argv[2]);
    for (int i = 5; i < argc; i++) {
        bind_variable(argv[i]);
    }
    const double began = now(), until = began + atof(argv[3]);
    while (now() < until && groups < MOST_GROUPS) {
        const double at = now();

        run("BEGIN IMMEDIATE");
        for (int i = 0; i < atoi(argv[4]); i++, done++) {
            run_statements();
        }
        run("COMMIT");
        took[groups++] = now() - at;
    }
    const double rate = (double)done / (now() - began);
    qsort(took, (size_t)groups, sizeof *took, ascending);
    printf("%.1f %.3f %.3f\n", rate, 1e3 * took[groups / 2], 1e3 * took[groups * 99 / 100]);
    return 0;
}
