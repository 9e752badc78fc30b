#include "ctl/usage.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <apr_strings.h>

int mdl_usage_fail(mdl_ctl_t *ctl, const char *format, ...)
{
    va_list arguments;
    const char *message;

    va_start(arguments, format);
    message = apr_pvsprintf(ctl->p, format, arguments);
    va_end(arguments);
    return mdl_ctl_fail(ctl, MDL_EXIT_USAGE, "usage", message);
}

const char *mdl_usage_name(const mdl_command_t *command, apr_pool_t *p)
{
    return apr_pstrcat(p, command->noun, command->verb != NULL ? " " : "",
                       command->verb != NULL ? command->verb : "", NULL);
}

static const char *command_synopsis(const mdl_command_t *command, apr_pool_t *p)
{
    return apr_pstrcat(p, mdl_usage_name(command, p), *command->arguments ? " " : "",
                       command->arguments, NULL);
}

void mdl_usage_help(const mdl_command_t *commands, apr_size_t count, apr_pool_t *p)
{
    puts("usage: downloadsctl [-f FILE] [--json] [--quiet] COMMAND [ARGUMENT ...]");
    puts("       downloadsctl --help | --version\n");
    for (apr_size_t i = 0; i < count; i++) {
        printf("  %s\n", command_synopsis(&commands[i], p));
    }
    puts("\ndownloadsctl(8) explains them.");
}

const char *mdl_usage_of(const mdl_command_t *command, const mdl_command_t *commands,
                         apr_size_t count, apr_pool_t *p)
{
    const char *usage = "usage:";

    for (apr_size_t i = 0; i < count; i++) {
        if (strcmp(mdl_usage_name(&commands[i], p), mdl_usage_name(command, p)) == 0) {
            usage = apr_pstrcat(p, usage, usage[6] != '\0' ? " or downloadsctl " : " downloadsctl ",
                                command_synopsis(&commands[i], p), NULL);
        }
    }
    return usage;
}

/* The verbs of a noun, "add|list|set"; "" if it is none. */
static const char *noun_verbs(const char *noun, const mdl_command_t *commands, apr_size_t count,
                              apr_pool_t *p)
{
    const char *verbs = "";

    for (apr_size_t i = 0; i < count; i++) {
        if (commands[i].verb != NULL && strcmp(noun, commands[i].noun) == 0 &&
            (i == 0 || commands[i - 1].verb == NULL ||
             strcmp(commands[i].verb, commands[i - 1].verb) != 0)) {
            verbs = apr_pstrcat(p, verbs, *verbs ? "|" : "", commands[i].verb, NULL);
        }
    }
    return verbs;
}

int mdl_usage_fail_unknown(mdl_ctl_t *ctl, const mdl_command_t *commands, apr_size_t count,
                           const char *const *words, int given)
{
    const char *verbs;

    if (given == 0) {
        return mdl_usage_fail(ctl, "A command is missing; try downloadsctl --help.");
    }
    if (given == 1 && *(verbs = noun_verbs(words[0], commands, count, ctl->p))) {
        return mdl_usage_fail(ctl, "usage: downloadsctl %s %s; try downloadsctl --help.", words[0],
                              verbs);
    }
    return mdl_usage_fail(ctl, "There is no command \"%s%s%s\"; try downloadsctl --help.", words[0],
                          given > 1 ? " " : "", given > 1 ? words[1] : "");
}
