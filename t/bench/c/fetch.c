/*
 * What an import of many small files needs at least: fetches each, writes and syncs it, renames it
 * and commits a row, in a loop of one thread.
 *
 *   fetch DATABASE FOLDER URL FROM COUNT
 *
 * DATABASE is a file of SQLite or libpq's parameters, and has the table least_session of
 * least/schema.sql; URL has a %lld for the numbers FROM to FROM + COUNT - 1.
 */
#include <curl/curl.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sqlite3 *lite;
static PGconn *pg;

static void fail(const char *what)
{
    fprintf(stderr, "fetch: %s failed\n", what);
    exit(1);
}

static void run(const char *sql)
{
    if (lite != NULL) {
        if (sqlite3_exec(lite, sql, NULL, NULL, NULL) != SQLITE_OK) {
            fail(sqlite3_errmsg(lite));
        }
        return;
    }
    PGresult *result = PQexec(pg, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        fail(PQerrorMessage(pg));
    }
    PQclear(result);
}

static void connect_to(const char *database)
{
    if (strstr(database, "host=") != NULL) {
        pg = PQconnectdb(database);
        if (PQstatus(pg) != CONNECTION_OK) {
            fail(PQerrorMessage(pg));
        }
        return;
    }
    if (sqlite3_open(database, &lite) != SQLITE_OK) {
        fail(database);
    }
    sqlite3_busy_timeout(lite, 10000);
    run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
}

static size_t take(char *bytes, size_t size, size_t count, void *fd)
{
    return write(*(int *)fd, bytes, size * count) == (ssize_t)(size * count) ? count : 0;
}

static void fetch_one(CURL *curl, const char *folder, const char *pattern, long long number)
{
    char url[1024], path[1024], temp[1024], sql[256];
    int fd;

    snprintf(url, sizeof url, pattern, number);
    snprintf(path, sizeof path, "%s/%lld", folder, number);
    snprintf(temp, sizeof temp, "%s/%lld.new", folder, number);
    if ((fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC, 0600)) < 0) {
        fail(temp);
    }
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &fd);
    if (curl_easy_perform(curl) != CURLE_OK || fsync(fd) != 0 || close(fd) != 0 ||
        rename(temp, path) != 0) {
        fail(url);
    }
    snprintf(sql, sizeof sql,
             "INSERT INTO least_session (id, assignment_id, asset_id, status, bytes) "
             "VALUES (%lld, 1, 1, 'imported', 1)",
             number);
    run(sql);
}

int main(int argc, char **argv)
{
    CURL *curl = curl_easy_init();

    if (argc != 6 || curl == NULL) {
        fail("usage: fetch DATABASE FOLDER URL FROM COUNT; it");
    }
    connect_to(argv[1]);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    for (int i = 0; i < atoi(argv[5]); i++) {
        fetch_one(curl, argv[2], argv[3], atoll(argv[4]) + i);
    }
    return 0;
}
