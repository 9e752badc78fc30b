#include "base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>

#include "base/clock.h"

#define TICK_MS        250
#define EXITED_TICK_MS 10
#define OUTPUT_LENGTH  400

/* A running program. */
typedef struct {
    pid_t pid;
    int output; /* the pipe of its standard output and error, -1 once closed */
    char last[OUTPUT_LENGTH + 1];
    apr_size_t last_length;
} running_t;

/*
 * Starts the program in its own process group.  Not by APR, whose fork runs every pool's clean-ups
 * in the copy of a threaded process and inherits our blocked signals.  Other modules' descriptors
 * may lack FD_CLOEXEC.
 */
static int program_start(running_t *running, const mdl_program_t *program, int output)
{
    static const char *const environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
                                              NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, standard;
    int error;

    sigemptyset(&none);
    sigfillset(&standard);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, program->input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &standard);
    error = posix_spawn(&running->pid, program->arguments[0], &actions, &attributes,
                        (char *const *)program->arguments, (char *const *)environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Keeps the last line that is not empty. */
static void output_keep_last_line(running_t *running, const char *data, apr_size_t length)
{
    for (apr_size_t i = 0; i < length; i++) {
        apr_size_t end = running->last_length;

        if (data[i] != '\n' && end > 0 && running->last[end - 1] == '\n') {
            end = 0;
        }
        if (end < OUTPUT_LENGTH &&
            (data[i] != '\n' || (end > 0 && running->last[end - 1] != '\n'))) {
            running->last[end++] = data[i];
        }
        running->last_length = end;
    }
}

static void output_read(running_t *running, int timeout_ms)
{
    struct pollfd ready = {running->output, POLLIN, 0};
    char data[1024];
    ssize_t length;

    if (poll(&ready, 1, timeout_ms) <= 0) {
        return;
    }
    length = read(running->output, data, sizeof data);
    if (length > 0) {
        output_keep_last_line(running, data, (apr_size_t)length);
    } else if (length == 0 || (errno != EINTR && errno != EAGAIN)) {
        close(running->output);
        running->output = -1;
    }
}

/* Waits for the program; 0 if it had to be killed, else 1 and its wait status in *status. */
static int program_wait(running_t *running, const mdl_program_t *program, int *status)
{
    const apr_time_t deadline = mdl_clock_monotonic() + program->patience;

    while (1) {
        pid_t ended;

        output_read(running, running->output == -1 ? EXITED_TICK_MS : TICK_MS);
        ended = waitpid(running->pid, status, WNOHANG);
        if (ended == running->pid) {
            return 1;
        }
        if (ended == -1 && errno != EINTR) {
            return 0;
        }
        if (mdl_clock_monotonic() > deadline ||
            (program->stopped != NULL && program->stopped(program->baton))) {
            kill(-running->pid, SIGKILL);
            waitpid(running->pid, status, 0);
            return 0;
        }
    }
}

/* What is left in the pipe; a descendant that goes on may hold it open. */
static void output_read_rest(running_t *running)
{
    while (running->output != -1) {
        struct pollfd ready = {running->output, POLLIN, 0};

        if (poll(&ready, 1, 0) <= 0) {
            return;
        }
        output_read(running, 0);
    }
}

apr_status_t mdl_program_run(mdl_program_end_t *end, const mdl_program_t *program, apr_pool_t *p)
{
    running_t running = {.output = -1};
    int ends[2];
    int error;

    *end = (mdl_program_end_t){.last = ""};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    error = program_start(&running, program, ends[1]);
    close(ends[1]);
    running.output = ends[0];
    if (error == 0) {
        end->killed = !program_wait(&running, program, &end->status);
        if (!end->killed) {
            output_read_rest(&running);
        }
        running.last_length -= running.last_length > 0 &&
                               running.last[running.last_length - 1] == '\n';
        end->last = apr_pstrmemdup(p, running.last, running.last_length);
    }
    if (running.output != -1) {
        close(running.output);
    }
    return error;
}
