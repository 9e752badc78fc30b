/*
 * The commands of downloadsctl as a table, and what is said of them: the help, from which bash's
 * completion and the man page (tools/ctl2man) take every command and option, and usage errors.
 */
#ifndef MDL_CTL_USAGE_H
#define MDL_CTL_USAGE_H

#include "ctl/command.h"

typedef struct {
    const char *noun;
    const char *verb; /* or NULL */
    const char *arguments;
    int count;            /* of the arguments, without the options */
    int numbered;         /* the first of them is a number */
    int options;          /* bits of those that it takes */
    int reports_problems; /* runs even with a faulty configuration, which it reports */
    int (*run)(mdl_ctl_t *ctl);
    const char *audit_noun; /* of a command that changes something; else NULL */
    const char *audit_action;
} mdl_command_t;

/** "shop add". */
const char *mdl_usage_name(const mdl_command_t *command, apr_pool_t *p);

/** Prints a line for each command, with its arguments and options. */
void mdl_usage_help(const mdl_command_t *commands, apr_size_t count, apr_pool_t *p);

/** The usage of all forms of a command. */
const char *mdl_usage_of(const mdl_command_t *command, const mdl_command_t *commands,
                         apr_size_t count, apr_pool_t *p);

/** Prints the error for words that name no command, and returns the exit code. */
int mdl_usage_fail_unknown(mdl_ctl_t *ctl, const mdl_command_t *commands, apr_size_t count,
                           const char *const *words, int given);

/** Prints an error of the command line, and returns the exit code. */
int mdl_usage_fail(mdl_ctl_t *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
