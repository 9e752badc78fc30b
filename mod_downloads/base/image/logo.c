#include "base/image/logo.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <seccomp.h>

#include "base/clock.h"
#include "base/image/decode.h"
#include "base/image/png.h"

#define CPU_SECONDS 5
#define MEMORY      (256L * 1024 * 1024) /* beside what the process has when it begins */
#define PATIENCE    apr_time_from_sec(120)
#define RESULT_FD   3
#define UNCONFINED  99 /* the exit status of a process that could not be confined */

/* The bytes of address space that this process has. */
static rlim_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file != NULL) {
        if (fscanf(file, "%lu", &pages) != 1) {
            pages = 0;
        }
        fclose(file);
    }
    return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static int process_limit(rlim_t memory)
{
    const struct rlimit space = {memory, memory};
    const struct rlimit time = {CPU_SECONDS, CPU_SECONDS};
    const struct rlimit none = {0, 0};

    return setrlimit(RLIMIT_AS, &space) == 0 && setrlimit(RLIMIT_CPU, &time) == 0 &&
           setrlimit(RLIMIT_CORE, &none) == 0;
}

/* Allows to take memory that can't be run, to write the result, and to end. */
static int process_confine(void)
{
    static const int memory[] = {
#ifdef __SANITIZE_ADDRESS__
        SCMP_SYS(sigaltstack), /* which AddressSanitizer calls before the end */
#endif
        SCMP_SYS(brk),         SCMP_SYS(munmap), SCMP_SYS(mremap),
        SCMP_SYS(madvise),     SCMP_SYS(futex),  SCMP_SYS(exit_group)};
    const struct scmp_arg_cmp not_run = SCMP_A2(SCMP_CMP_MASKED_EQ, 4 /* PROT_EXEC */, 0);
    const struct scmp_arg_cmp result = SCMP_A0(SCMP_CMP_EQ, RESULT_FD, 0);
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    int rc = filter != NULL ? 0 : -1;

    for (size_t i = 0; rc == 0 && i < sizeof memory / sizeof *memory; i++) {
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, memory[i], 0);
    }
    return rc == 0 && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, not_run) == 0 &&
           seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, not_run) == 0 &&
           seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1, result) == 0 &&
           seccomp_load(filter) == 0;
}

static void process_write(void *baton, const unsigned char *row, size_t length)
{
    (void)baton;
    while (length > 0) {
        ssize_t n = write(RESULT_FD, row, length);

        if (n <= 0) {
            mdl_image_end(MDL_IMAGE_TOO_COSTLY);
        }
        row += n;
        length -= (size_t)n;
    }
}

/* The forked process: nothing of its parent but its memory is left to it. */
_Noreturn static void process_run(mdl_image_source_t *source, const mdl_logo_image_t *made,
                                  rlim_t memory, int pipe)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGPIPE, SIGXCPU};
    mdl_image_scale_t *scale;

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        signal(signals[i], SIG_DFL);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(pipe, RESULT_FD) < 0 || close_range(RESULT_FD + 1, ~0U, 0) != 0 ||
        !process_limit(memory) || !process_confine()) {
        _exit(UNCONFINED);
    }
    scale = mdl_image_scale_begin(&source->header, made->width, made->height, process_write, NULL);
    if (scale == NULL) {
        mdl_image_end(MDL_IMAGE_TOO_COSTLY);
    }
    if (source->header.kind == MDL_IMAGE_PNG) {
        mdl_image_decode_png(source, scale);
    } else {
        mdl_image_decode_jpeg(source, scale);
    }
    mdl_image_end(MDL_IMAGE_GOOD);
}

/* Reads until length bytes or the end have come; *got says how many. */
static apr_status_t result_read(int pipe, unsigned char *bytes, apr_size_t length, apr_size_t *got)
{
    apr_time_t until = mdl_clock_monotonic() + PATIENCE;
    struct pollfd ready = {.fd = pipe, .events = POLLIN};

    *got = 0;
    while (*got < length) {
        apr_interval_time_t left = until - mdl_clock_monotonic();
        ssize_t n;

        if (left <= 0) {
            return APR_TIMEUP;
        }
        if (poll(&ready, 1, (int)apr_time_as_msec(left) + 1) <= 0) {
            continue;
        }
        if ((n = read(pipe, bytes + *got, length - *got)) <= 0) {
            return n == 0 ? APR_SUCCESS : errno;
        }
        *got += (apr_size_t)n;
    }
    return APR_SUCCESS;
}

/* What the process made of the image: by its exit status or, if it was killed, by the signal. */
static apr_status_t process_wait(pid_t process, mdl_image_fault_t *fault)
{
    int status;

    while (waitpid(process, &status, 0) < 0) {
        if (errno != EINTR) {
            return errno;
        }
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == UNCONFINED) {
        return APR_ENOTIMPL;
    }
    *fault = WIFEXITED(status)             ? (mdl_image_fault_t)WEXITSTATUS(status)
             : WTERMSIG(status) == SIGKILL ? MDL_IMAGE_TOO_COSTLY
                                           : MDL_IMAGE_DAMAGED;
    return APR_SUCCESS;
}

/* Forks, and reads width x height pixels of the process into rgba. */
static apr_status_t process_fork(mdl_image_source_t *source, mdl_logo_image_t *made,
                                 unsigned char *rgba, apr_size_t length)
{
    rlim_t memory = address_space() + MEMORY;
    apr_status_t rv, waited;
    apr_size_t got = 0;
    pid_t process;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    if ((process = fork()) == 0) {
        process_run(source, made, memory, ends[1]);
    }
    rv = process < 0 ? errno : APR_SUCCESS;
    close(ends[1]);
    if (rv == APR_SUCCESS) {
        rv = result_read(ends[0], rgba, length, &got);
        if (rv != APR_SUCCESS) {
            kill(process, SIGKILL);
        }
        waited = process_wait(process, &made->fault);
        rv = rv == APR_SUCCESS ? waited : rv;
    }
    close(ends[0]);
    if (rv == APR_SUCCESS && made->fault == MDL_IMAGE_GOOD && got < length) {
        made->fault = MDL_IMAGE_DAMAGED;
    }
    return rv;
}

apr_status_t mdl_logo_image_make(const void *bytes, apr_size_t length, mdl_logo_image_t *made,
                                 apr_pool_t *p)
{
    mdl_image_source_t source = {.bytes = bytes, .length = length};
    apr_size_t pixels;
    unsigned char *rgba;
    apr_status_t rv;

    *made = (mdl_logo_image_t){.fault = mdl_image_header(bytes, length, &source.header)};
    if (made->fault != MDL_IMAGE_GOOD) {
        return APR_SUCCESS;
    }
    made->width = source.header.width;
    made->height = source.header.height;
    mdl_image_fit(&made->width, &made->height, MDL_LOGO_MAX_WIDTH, MDL_LOGO_MAX_HEIGHT);
    pixels = (apr_size_t)made->width * made->height;
    rgba = apr_palloc(p, pixels * 4);
    rv = process_fork(&source, made, rgba, pixels * 4);
    if (rv == APR_SUCCESS && made->fault == MDL_IMAGE_GOOD) {
        made->png = mdl_image_write_png(rgba, made->width, made->height, &made->length, p);
        rv = made->png != NULL ? APR_SUCCESS : APR_ENOMEM;
    }
    return rv;
}
