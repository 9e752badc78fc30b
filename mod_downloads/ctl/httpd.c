#include "ctl/httpd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "core/health/worker.h"

#define WARNING_TAG "MDL0002: "
#define MAX_LINE    4096

/* Messages that do not concern mod_downloads. */
static const char *const ignored[] = {"Syntax OK", "AH00014: ", "AH00557: ", "AH00558: "};

typedef void line_fn(void *arg, const char *line, apr_pool_t *p);

const char *mdl_httpd_command(void)
{
    return access(MDL_APACHECTL, X_OK) == 0 ? MDL_APACHECTL : MDL_HTTPD;
}

/* Passes each line that a command prints to take; returns whether the command exited with 0. */
static int httpd_run(const char *command, line_fn *take, void *arg, apr_pool_t *p)
{
    char line[MAX_LINE];
    FILE *out = popen(command, "r");

    if (out == NULL) {
        return 0;
    }
    while (fgets(line, sizeof line, out) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        take(arg, line, p);
    }
    return pclose(out) == 0;
}

static void report_add_line(void *arg, const char *line, apr_pool_t *p)
{
    mdl_httpd_report_t *report = arg;

    for (apr_size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        if (strncmp(line, ignored[i], strlen(ignored[i])) == 0) {
            return;
        }
    }
    if (strncmp(line, WARNING_TAG, strlen(WARNING_TAG)) == 0) {
        APR_ARRAY_PUSH(report->warnings, const char *) = apr_pstrdup(p, line + strlen(WARNING_TAG));
        return;
    }
    report->output = apr_pstrcat(p, report->output, *report->output ? " " : "", line, NULL);
}

#define PID_FILE "PidFile: \""

typedef struct {
    struct stat file;
    int found;
    const char *pid_file;
} search_t;

/* Parses a line such as " (12) /etc/apache2/mods-enabled/downloads.conf" or "PidFile:
   "/run/httpd.pid"". */
static void search_line(void *arg, const char *line, apr_pool_t *p)
{
    search_t *search = arg;
    const char *path = strstr(line, ") /");
    struct stat info;

    if (strncmp(line, PID_FILE, strlen(PID_FILE)) == 0) {
        line += strlen(PID_FILE);
        search->pid_file = apr_pstrmemdup(p, line, strcspn(line, "\""));
    }
    if (path != NULL && stat(path + 2, &info) == 0 && info.st_dev == search->file.st_dev &&
        info.st_ino == search->file.st_ino) {
        search->found = 1;
    }
}

static void httpd_search(mdl_httpd_report_t *report, const char *command, const char *file,
                         apr_pool_t *p)
{
    search_t search = {.found = 0};

    if (stat(file, &search.file) == 0) {
        httpd_run(apr_pstrcat(p, command, " -t -D DUMP_INCLUDES -D DUMP_RUN_CFG 2>/dev/null", NULL),
                  search_line, &search, p);
    }
    report->reads_file = search.found;
    report->pid_file = search.found ? search.pid_file : NULL;
}

/* False if the file can't be read. */
static int httpd_is_stopped(const char *pid_file, apr_pool_t *p)
{
    FILE *file = pid_file != NULL ? fopen(pid_file, "re") : NULL;
    long pid = 0;

    if (file == NULL) {
        return pid_file != NULL && errno == ENOENT;
    }
    if (fscanf(file, "%20ld", &pid) != 1) {
        pid = 0;
    }
    fclose(file);
    return !mdl_health_process_runs(pid, p);
}

void mdl_httpd_ask(mdl_httpd_report_t *report, const char *command, const char *file, apr_pool_t *p)
{
    report->as_root = geteuid() == 0;
    report->output = "";
    report->warnings = apr_array_make(p, 4, sizeof(const char *));
    httpd_search(report, command, file, p);
    report->is_stopped = httpd_is_stopped(report->pid_file, p);
    report->would_start = httpd_run(apr_pstrcat(p, command, " -t 2>&1 >/dev/null", NULL),
                                    report_add_line, report, p);
}

#define USER "User: name=\""

/* Parses a line such as "User: name="www-data" id=33". */
static void user_line(void *arg, const char *line, apr_pool_t *p)
{
    if (strncmp(line, USER, strlen(USER)) == 0) {
        line += strlen(USER);
        *(const char **)arg = apr_pstrmemdup(p, line, strcspn(line, "\""));
    }
}

const char *mdl_httpd_user(const char *command, apr_pool_t *p)
{
    const char *user = NULL;

    httpd_run(apr_pstrcat(p, command, " -t -D DUMP_RUN_CFG 2>/dev/null", NULL), user_line, &user,
              p);
    return user;
}
