/*
 * Shared by the tests of settings: a temporary folder, and valid settings.
 */
#ifndef MDL_T_UNIT_SETTINGS_H
#define MDL_T_UNIT_SETTINGS_H

#include "core/settings/settings.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <apr_fnmatch.h>
#include <apr_strings.h>

#include "t/unit/tap.h"

static apr_pool_t *pool;
static char folder[256];

static inline const char *path_of(const char *name)
{
    return apr_pstrcat(pool, folder, "/", name, NULL);
}

static inline const char *write_file(const char *name, const char *text, mode_t mode)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "w");

    fputs(text, file);
    fclose(file);
    chmod(path, mode);
    return path;
}

static inline void remove_folder(void)
{
    apr_array_header_t *names = NULL;
    int i;

    apr_match_glob(path_of("*"), &names, pool);
    for (i = 0; names != NULL && i < names->nelts; i++) {
        unlink(path_of(APR_ARRAY_IDX(names, i, const char *)));
    }
    rmdir(folder);
}

static inline const char *set(mdl_settings_t *settings, const char *name, const char *word)
{
    return mdl_settings_set(settings, name, 1, &word, pool);
}

static inline int accepts(const char *name, const char *word)
{
    return set(mdl_settings_create(pool), name, word) == NULL;
}

/* Settings without a problem. */
static inline mdl_settings_t *good(void)
{
    static const char *const words[][2] = {
        {"DBDriver", "pgsql"},
        {"DBDParams", "dbname=downloads"},
        {"DownloadsPublicURL", "https://shop.example/d"},
        {"DownloadsSecretFile", "/etc/downloads.secret"},
        {"DownloadsStorage", "/var/lib/downloads"},
        {"DownloadsTemplates", "/usr/share/downloads"},
        {"DownloadsMailTransport", "smtp://localhost"},
        {"DownloadsMailFrom", "shop@example.com"},
    };
    mdl_settings_t *settings = mdl_settings_create(pool);
    size_t i;

    for (i = 0; i < sizeof words / sizeof words[0]; i++) {
        set(settings, words[i][0], words[i][1]);
    }
    return settings;
}

/* All problems of settings, one on each line. */
static inline const char *problems_of(mdl_settings_t *settings)
{
    apr_array_header_t *problems = apr_array_make(pool, 4, sizeof(const char *));

    mdl_settings_check(settings, problems, pool);
    return apr_array_pstrcat(pool, problems, '\n');
}

/* Reads a file; returns NULL, or its problems, one on each line. */
static inline const char *read_file(mdl_settings_t *settings, const char *path)
{
    apr_array_header_t *problems = apr_array_make(pool, 4, sizeof(const char *));

    mdl_settings_read(settings, path, problems, pool);
    return problems->nelts ? apr_array_pstrcat(pool, problems, '\n') : NULL;
}

static inline int lines_of(const char *text)
{
    int lines = *text != '\0';

    for (; *text != '\0'; text++) {
        lines += *text == '\n';
    }
    return lines;
}

/** Makes the program's pool and folder. */
static inline void begin(void)
{
    const char *base = getenv("TMPDIR");

    pool = tap_begin();
    snprintf(folder, sizeof folder, "%s/mdl-settings-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        exit(1);
    }
}

/** Removes the folder; main returns the result. */
static inline int end(void)
{
    remove_folder();
    return tap_end(pool);
}

#endif
