#include "parent/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>
#include <apr_thread_proc.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <ap_listen.h>
#include <ap_mpm.h>
#include <mpm_common.h>
#include <unixd.h>

#include "base/clock.h"
#include "base/ulid.h"
#include "worker/fork.h"
#include "worker/loop.h"

APLOG_USE_MODULE(downloads);

/* The exit code of a child that could not begin; it is not restarted. */
#define EXIT_GIVE_UP 254
#define LIVED_WELL   apr_time_from_sec(60)
#define MAX_DELAY_S  30
#define OWNER_PREFIX "httpd_"
#define RETAINED_KEY "mod_downloads_process"

/* Survives a restart, which unloads this shared object, so it has only plain data. */
typedef struct {
    char owner[sizeof OWNER_PREFIX + MDL_ULID_LENGTH]; /* in the jobs' leases; "" is unset */
    int wake_fd;                                       /* descriptor + 1; 0 is unset */
    atomic_int *database_told;                         /* shared with children; NULL is unset */
    int deaths;                                        /* in a row */
    pid_t pid;                                         /* 0: there is none */
    apr_time_t started_at;
    apr_time_t fork_at;          /* when to retry a failed fork; 0: none failed */
    apr_interval_time_t waiting; /* the delay of that retry */
} retained_t;

/* For the parent; set in each post_config. */
static const mdl_service_t *service_to_run;
static server_rec *main_server;
static apr_pool_t *process_pool;

/* For the child. */
static int stop_fd = -1;
static pid_t own_pid;

static retained_t *process_retained(void)
{
    retained_t *data = ap_retained_data_get(RETAINED_KEY);

    return data != NULL ? data : ap_retained_data_create(RETAINED_KEY, sizeof *data);
}

int mdl_process_wake_fd(void)
{
    retained_t *data = process_retained();

    if (data->wake_fd == 0) {
        data->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) + 1;
    }
    return data->wake_fd - 1;
}

atomic_int *mdl_process_database_told(void)
{
    retained_t *data = process_retained();
    static atomic_int unshared;
    void *page;

    if (data->database_told == NULL) {
        page = mmap(NULL, sizeof *data->database_told, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            return &unshared;
        }
        data->database_told = page;
    }
    return data->database_told;
}

/* Names the owner of jobs, once for the life of the parent: a process's jobs pass to its successor,
   the next child of the same parent. */
static void owner_name(retained_t *data)
{
    if (data->owner[0] == '\0') {
        apr_cpystrn(data->owner, mdl_ulid(OWNER_PREFIX, process_pool), sizeof data->owner);
    }
}

static void on_stop(int signal_number)
{
    const apr_uint64_t one = 1;
    int saved = errno;

    (void)signal_number;
    /* A copy of this process between fork and exec of a program runs the handler too. */
    if (getpid() == own_pid && write(stop_fd, &one, sizeof one) < 0) {
        _exit(EXIT_FAILURE);
    }
    errno = saved;
}

static void signal_set(int signal_number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, NULL);
}

static void set_signals(const sigset_t *unblocked)
{
    own_pid = getpid();
    ap_fatal_signal_child_setup(main_server);
    signal_set(SIGTERM, on_stop);
    signal_set(SIGINT, SIG_IGN); /* the parent sends us SIGTERM if we must end */
    signal_set(SIGHUP, SIG_IGN);
    signal_set(AP_SIG_GRACEFUL, SIG_IGN);
    signal_set(AP_SIG_GRACEFUL_STOP, SIG_IGN);
    signal_set(SIGPIPE, SIG_IGN);
    signal_set(SIGXFSZ, SIG_IGN); /* so that exceeding a file-size limit is an error of write(2) */
    signal_set(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, unblocked, NULL);
}

/* In the child: becomes the httpd user and dies with its parent. */
static int become_unprivileged(pid_t parent, apr_pool_t *p)
{
    ap_close_listeners();
    if (ap_run_drop_privileges(p, main_server) != OK) {
        return 0;
    }
    /* after setuid, which clears it */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    return getppid() == parent;
}

/* A process that keeps dying waits longer each time before it works. */
static void process_delay(int deaths)
{
    struct timespec wait = {.tv_sec = 0};
    sigset_t term;

    if (deaths < 2) {
        return;
    }
    wait.tv_sec = deaths > 6 ? MAX_DELAY_S : 1 << (deaths - 2);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    if (sigtimedwait(&term, NULL, &wait) == SIGTERM) {
        _exit(EXIT_SUCCESS);
    }
    sigprocmask(SIG_UNBLOCK, &term, NULL);
}

static void process_live(pid_t parent, int deaths, const sigset_t *unblocked)
{
    apr_status_t rv;
    apr_pool_t *pool;

    /* Not pconf, whose clean-ups belong to the parent. */
    apr_pool_create(&pool, NULL);
    apr_pool_tag(pool, "mdl_worker");
    stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    set_signals(unblocked);
    if (stop_fd < 0 || !become_unprivileged(parent, pool)) {
        _exit(EXIT_GIVE_UP);
    }
    process_delay(deaths);
    ap_log_error(APLOG_MARK, APLOG_INFO, 0, main_server,
                 "MDL0331: the background process has started, pid %" APR_PID_T_FMT, getpid());
    rv = mdl_loop_run(service_to_run, process_retained()->owner, stop_fd, pool);
    if (rv == APR_SUCCESS) {
        _exit(EXIT_SUCCESS);
    }
    _exit(APR_STATUS_IS_EAGAIN(rv) ? EXIT_FAILURE : EXIT_GIVE_UP); /* threads may be free later */
}

static void on_event(int reason, void *data, apr_wait_t status);

static void process_fork_failed(retained_t *data, apr_status_t rv)
{
    apr_interval_time_t most = apr_time_from_sec(MAX_DELAY_S);

    data->waiting = data->waiting == 0 ? apr_time_from_sec(1) : 2 * data->waiting;
    if (data->waiting > most) {
        data->waiting = most;
    }
    data->fork_at = mdl_clock_monotonic() + data->waiting;
    ap_log_error(
        APLOG_MARK, APLOG_ERR, rv, main_server,
        "MDL0332: can't fork the background process; imports and emails wait until another "
        "try succeeds");
}

static void process_spawn(void)
{
    retained_t *data = process_retained();
    pid_t parent = getpid();
    apr_proc_t *process = apr_pcalloc(process_pool, sizeof *process);
    sigset_t old;
    apr_status_t rv;

    owner_name(data);
    data->pid = 0;
    /* A new apr_proc_t: pconf's clean-up still uses the predecessor's, and with a failed fork's
       pid, 0, would kill all of httpd. */
    rv = mdl_fork(process, process_pool, &old);
    if (rv == APR_INCHILD) {
        process_live(parent, data->deaths, &old);
    }
    if (rv != APR_INPARENT) {
        process_fork_failed(data, rv);
        return;
    }
    data->fork_at = data->waiting = 0;
    data->pid = process->pid;
    data->started_at = mdl_clock_monotonic();
    apr_pool_note_subprocess(process_pool, process, APR_KILL_AFTER_TIMEOUT);
    apr_proc_other_child_register(process, on_event, data, NULL, process_pool);
}

/* Whether the signal, which is what httpd passes as status, is one that faulty code causes. */
static int status_is_crash(int status)
{
    return status == SIGSEGV || status == SIGBUS || status == SIGABRT || status == SIGILL ||
           status == SIGFPE || status == SIGSYS;
}

static int server_goes_on(void)
{
    int state;

    return ap_mpm_query(AP_MPMQ_MPM_STATE, &state) == APR_SUCCESS && state != AP_MPMQ_STOPPING;
}

/* Runs in the parent.  A graceful restart gives only UNREGISTER, a restart or stop first RESTART;
   in both cases pconf's clean-up ends the process, and post_config starts the next. */
static void on_event(int reason, void *baton, apr_wait_t status)
{
    retained_t *data = baton;

    switch (reason) {
    case APR_OC_REASON_DEATH:
    case APR_OC_REASON_LOST:
        data->pid = 0;
        apr_proc_other_child_unregister(data);
        if (!server_goes_on()) {
            return;
        }
        if (status == EXIT_GIVE_UP) {
            ap_log_error(APLOG_MARK, APLOG_ERR, 0, main_server,
                         "MDL0333: the background process could not begin; imports and emails "
                         "wait until httpd is restarted");
            return;
        }
        mdl_begun_died(service_to_run->begun, status_is_crash(status));
        data->deaths = mdl_clock_monotonic() - data->started_at > LIVED_WELL ? 1 : data->deaths + 1;
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, main_server,
                     "MDL0334: the background process ended unexpectedly (status %d); another is "
                     "started",
                     status);
        process_spawn();
        return;
    case APR_OC_REASON_RESTART:
        apr_proc_other_child_unregister(data);
        return;
    default:
        return;
    }
}

/* At a restart APR treats a stopped child as gone, and it would live on beside its successor.
   waitpid returns 0 only for a live child of ours. */
static void end_predecessor(const retained_t *data)
{
    pid_t pid = data->pid;

    if (pid != 0 && waitpid(pid, NULL, WNOHANG) == 0) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, main_server,
                     "MDL0345: the background process hangs and is killed, pid %" APR_PID_T_FMT,
                     pid);
        kill(pid, SIGKILL);
    }
}

/* Called about every ten seconds. */
static int process_monitor(apr_pool_t *p, server_rec *s)
{
    (void)p, (void)s;
    if (service_to_run != NULL && process_retained()->fork_at != 0 &&
        mdl_clock_monotonic() >= process_retained()->fork_at && server_goes_on()) {
        process_spawn();
    }
    return OK;
}

void mdl_process_register(void)
{
    ap_hook_monitor(process_monitor, NULL, NULL, APR_HOOK_MIDDLE);
}

void mdl_process_start(const mdl_service_t *service, server_rec *s, apr_pool_t *pconf)
{
    service_to_run = service;
    main_server = s;
    process_pool = pconf;
    process_retained()->deaths = 0;
    end_predecessor(process_retained());
    process_spawn();
}
