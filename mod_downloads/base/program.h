/*
 * Runs another program: without a shell, in a process group of its own, in the environment of this
 * file's choice, and with none of this process's descriptors but its standard input.
 */
#ifndef MDL_BASE_PROGRAM_H
#define MDL_BASE_PROGRAM_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_time.h>

typedef struct {
    const char *const *arguments; /* from the program's path on, ended by NULL */
    int input;                    /* the descriptor of its standard input */
    apr_interval_time_t patience; /* then it is killed, with its process group */
    int (*stopped)(void *baton);  /* asked four times a second, and true kills it too; may be NULL
                                   */
    void *baton;
} mdl_program_t;

typedef struct {
    int killed;       /* whether it had to be killed */
    int status;       /* else its wait status (wait(2)) */
    const char *last; /* the last line of its standard output and error, 400 bytes at most */
} mdl_program_end_t;

/** Starts a program and waits for its end, by polls of a quarter of a second.  Returns the system's
    error if it can't be started. */
apr_status_t mdl_program_run(mdl_program_end_t *end, const mdl_program_t *program, apr_pool_t *p);

#endif
