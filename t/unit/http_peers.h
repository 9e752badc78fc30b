/*
 * Servers for the tests of the HTTP client, on free loopback ports: a real apache2 that serves a
 * temporary folder, and a mock with the faults of broken servers (cut bodies, wrong ranges,
 * silence).
 */
#ifndef MDL_T_UNIT_HTTP_PEERS_H
#define MDL_T_UNIT_HTTP_PEERS_H

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_file_io.h>
#include <apr_strings.h>
#include <apr_thread_mutex.h>
#include <apr_thread_proc.h>

#define HTTPD_PROGRAM "/usr/sbin/apache2"
#define HTTPD_MODULES "/usr/lib/apache2/modules"

/** A socket listening on a free port of 127.0.0.1 or ::1; -1 if the machine lacks that address. */
static inline int peer_listen(int family, int *port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr *address = family == AF_INET ? (struct sockaddr *)&four
                                                 : (struct sockaddr *)&six;
    socklen_t length = family == AF_INET ? sizeof four : sizeof six;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, address, length) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, address, &length) != 0) {
        return -1;
    }
    *port = ntohs(family == AF_INET ? four.sin_port : six.sin6_port);
    return fd;
}

/* --- apache2 --- */

typedef struct {
    const char *folder;
    const char *base;        /* http://localhost:<port> */
    const char *tls;         /* https://localhost:<port>, self-signed, for another name */
    const char *tls_expired; /* the same with an expired certificate */
    const char *bytes;
    apr_size_t length; /* of bytes, the contents of /plain.bin */
    pid_t pid;
    int log;
} httpd_t;

static inline void peer_write(const char *path, const char *data, apr_size_t length)
{
    FILE *file = fopen(path, "w");

    if (!file || fwrite(data, 1, length, file) != length || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

static inline void httpd_files(httpd_t *httpd, apr_pool_t *p)
{
    apr_size_t length = 300000;
    char *bytes = apr_palloc(p, length);
    const char *plain = apr_pstrcat(p, httpd->folder, "/htdocs/plain.bin", NULL);
    unsigned int random = 1;

    for (apr_size_t i = 0; i < length; i++) {
        random = random * 1103515245u + 12345u;
        bytes[i] = (char)(random >> 16);
    }
    httpd->bytes = bytes;
    httpd->length = length;
    mkdir(apr_pstrcat(p, httpd->folder, "/htdocs", NULL), 0755);
    mkdir(apr_pstrcat(p, httpd->folder, "/htdocs/closed", NULL), 0755);
    peer_write(plain, bytes, length);
    /* httpd's entity tag of a file is weak while the file is younger than a second. */
    apr_file_mtime_set(plain, apr_time_now() - apr_time_from_sec(60), p);
    peer_write(apr_pstrcat(p, httpd->folder, "/htdocs/empty.txt", NULL), "", 0);
    peer_write(apr_pstrcat(p, httpd->folder, "/htdocs/packed.gz", NULL), "packed", 6);
    peer_write(apr_pstrcat(p, httpd->folder, "/htdocs/closed/a.txt", NULL), "closed", 6);
}

static inline void httpd_configure(httpd_t *httpd, int port, int tls_port, int expired_port,
                                   apr_pool_t *p)
{
    static const char *const modules[] = {"mpm_event", "authz_core", "alias", "mime", "ssl"};
    const char *text = apr_psprintf(
        p,
        "ServerRoot %s\nDefaultRuntimeDir %s\nPidFile httpd.pid\nServerName localhost\n"
        "ErrorLog /dev/stderr\nLogLevel notice\nListen 127.0.0.1:%d\nListen 127.0.0.1:%d\n"
        "%sStartServers 1\nServerLimit 1\nThreadsPerChild 8\nMaxRequestWorkers 8\n",
        httpd->folder, httpd->folder, port, tls_port,
        geteuid() == 0 ? "User nobody\nGroup nogroup\n" : "");

    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        text = apr_psprintf(p, "%sLoadModule %s_module " HTTPD_MODULES "/mod_%s.so\n", text,
                            modules[i], modules[i]);
    }
    text = apr_psprintf(
        p,
        "%sTypesConfig /dev/null\nAddType text/plain .txt\nAddEncoding gzip .gz\n"
        "DocumentRoot %s/htdocs\n<Location /closed>\nRequire all denied\n</Location>\n"
        "Redirect gone /gone\nRedirect 503 /busy\nRedirect 429 /hurry\nRedirect 408 /late\n"
        "Redirect 425 /early\nRedirect 406 /picky\nRedirect 500 /broken\n"
        "Redirect 302 /hop1 http://localhost:%d/plain.bin\n"
        "Redirect 302 /hop2 http://localhost:%d/hop1\nRedirect 302 /hop3 http://localhost:%d/hop2\n"
        "Redirect 302 /hop4 http://localhost:%d/hop3\n"
        "Redirect 302 /to-ip http://127.0.0.1:%d/plain.bin\n"
        "Redirect 302 /to-user http://a:b@localhost:%d/plain.bin\n"
        "Redirect 302 /to-foreign http://other.example/plain.bin\n"
        "Redirect 302 /to-ftp ftp://localhost/plain.bin\n"
        "Redirect 302 /to-port http://localhost:1/plain.bin\n"
        "SSLSessionCache none\n<VirtualHost 127.0.0.1:%d>\nSSLEngine on\n"
        "SSLCertificateFile %s/other.pem\nSSLCertificateKeyFile %s/key.pem\n</VirtualHost>\n"
        "Listen 127.0.0.1:%d\n<VirtualHost 127.0.0.1:%d>\nSSLEngine on\n"
        "SSLCertificateFile %s/expired.pem\nSSLCertificateKeyFile %s/key.pem\n</VirtualHost>\n",
        text, httpd->folder, port, port, port, port, port, port, tls_port, httpd->folder,
        httpd->folder, expired_port, expired_port, httpd->folder, httpd->folder);
    for (int status = 300; status <= 308; status += status == 305 ? 2 : 1) {
        text = apr_psprintf(p, "%sRedirect %d /r%d http://localhost:%d/plain.bin\n", text, status,
                            status, port);
    }
    peer_write(apr_pstrcat(p, httpd->folder, "/httpd.conf", NULL), text, strlen(text));
}

/* Waits for the line that httpd writes once it listens; 0 if it ended instead. */
static inline int httpd_wait(httpd_t *httpd)
{
    char seen[8192];
    apr_size_t length = 0;
    ssize_t got;

    while (length < sizeof seen - 1 &&
           (got = read(httpd->log, seen + length, sizeof seen - 1 - length)) > 0) {
        length += (apr_size_t)got;
        seen[length] = '\0';
        if (strstr(seen, "resuming normal operations")) {
            return 1;
        }
    }
    printf("# httpd did not start: %.*s\n", (int)length, seen);
    return 0;
}

static inline int httpd_start(httpd_t *httpd, apr_pool_t *p)
{
    const char *temp = getenv("TMPDIR");
    char *folder = apr_pstrcat(p, temp ? temp : "/tmp", "/mdl-http-XXXXXX", NULL);
    int first, second, third, port, tls_port, expired_port, ends[2];

    httpd->folder = mkdtemp(folder);
    if (!httpd->folder || chmod(folder, 0755) != 0 || pipe(ends) != 0) {
        return 0;
    }
    first = peer_listen(AF_INET, &port);
    second = peer_listen(AF_INET, &tls_port);
    third = peer_listen(AF_INET, &expired_port);
    if (first < 0 || second < 0 || third < 0) {
        return 0;
    }
    httpd->base = apr_psprintf(p, "http://localhost:%d", port);
    httpd->tls = apr_psprintf(p, "https://localhost:%d", tls_port);
    httpd->tls_expired = apr_psprintf(p, "https://localhost:%d", expired_port);
    httpd_files(httpd, p);
    httpd_configure(httpd, port, tls_port, expired_port, p);
    if (system(apr_psprintf(
            p,
            "cd '%s' && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
            "-keyout key.pem -out other.pem -subj /CN=other.test -days 2 2>/dev/null && "
            "LD_PRELOAD=$(ls /usr/lib/*/faketime/libfaketime.so.1) FAKETIME=-9d openssl req -x509 "
            "-key key.pem -out expired.pem -subj /CN=localhost -days 2 2>/dev/null",
            folder)) != 0) {
        return 0;
    }
    close(first);
    close(second);
    close(third);
    httpd->log = ends[0];
    httpd->pid = fork();
    if (httpd->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(HTTPD_PROGRAM, HTTPD_PROGRAM, "-DFOREGROUND", "-f",
              apr_pstrcat(p, folder, "/httpd.conf", NULL), (char *)NULL);
        perror(HTTPD_PROGRAM);
        _exit(1);
    }
    close(ends[1]);
    return httpd->pid > 0 && httpd_wait(httpd);
}

static inline void httpd_stop(httpd_t *httpd, apr_pool_t *p)
{
    if (httpd->pid > 0) {
        kill(httpd->pid, SIGTERM);
        waitpid(httpd->pid, NULL, 0);
        close(httpd->log);
    }
    if (system(apr_psprintf(p, "rm -rf '%s'", httpd->folder)) != 0) {
        printf("# %s is left behind\n", httpd->folder);
    }
}

/* --- the mock --- */

typedef enum { THEN_CLOSE, THEN_HOLD, THEN_FLOOD } then_t;
typedef enum { ANY, WITH_RANGE, WITHOUT_RANGE } range_t;

typedef struct {
    const char *path; /* or a prefix followed by */
    range_t when;
    const char *bytes;
    then_t then; /* HOLD: waits until the client disconnects; FLOOD: sends flood until then */
    const char *flood;
} route_t;

/* Parts of the mock's responses. */
#define OK_HEAD "HTTP/1.1 200 OK\r\nConnection: close\r\n"
#define HUNDRED                                                                                    \
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678"              \
    "9012345678901234567890123456789"

#define MOCK_REQUESTS 8

typedef struct {
    const char *base;
    const route_t *routes;
    int fd;
    int port;
    apr_thread_t *thread;
    apr_thread_mutex_t *mutex; /* guards the members below */
    int count;
    char requests[MOCK_REQUESTS][2048];
} mock_t;

static inline int mock_send(int fd, const char *bytes)
{
    apr_size_t left = strlen(bytes);

    while (left > 0) {
        ssize_t sent = send(fd, bytes, left, MSG_NOSIGNAL);

        if (sent <= 0) {
            return 0;
        }
        bytes += sent;
        left -= (apr_size_t)sent;
    }
    return 1;
}

static inline const route_t *mock_route(const mock_t *mock, const char *request)
{
    int ranged = strstr(request, "\r\nRange: ") != NULL;

    for (const route_t *route = mock->routes; route->path; route++) {
        apr_size_t length = strlen(route->path);

        int prefix = route->path[length - 1] == '*';

        length -= (apr_size_t)prefix;
        if (strncmp(request + 4, route->path, length) == 0 &&
            (prefix || request[4 + length] == ' ') &&
            (route->when == ANY || ranged == (route->when == WITH_RANGE))) {
            return route;
        }
    }
    return NULL;
}

static inline void mock_answer(mock_t *mock, int fd)
{
    char request[2048] = "", rest[1024];
    apr_size_t length = 0;
    const route_t *route;
    ssize_t got;

    while (!strstr(request, "\r\n\r\n") && length < sizeof request - 1 &&
           (got = recv(fd, request + length, sizeof request - 1 - length, 0)) > 0) {
        length += (apr_size_t)got;
        request[length] = '\0';
    }
    if (length == 0) {
        return;
    }
    apr_thread_mutex_lock(mock->mutex);
    memcpy(mock->requests[mock->count++ % MOCK_REQUESTS], request, length + 1);
    apr_thread_mutex_unlock(mock->mutex);

    route = mock_route(mock, request);
    if (!mock_send(fd, route ? route->bytes : "HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n") ||
        !route) {
        return;
    }
    while (route->then == THEN_FLOOD && mock_send(fd, route->flood)) {
    }
    while (route->then == THEN_HOLD && recv(fd, rest, sizeof rest, 0) > 0) {
    }
}

static inline void *APR_THREAD_FUNC mock_run(apr_thread_t *thread, void *data)
{
    mock_t *mock = data;
    int fd;

    (void)thread;
    while ((fd = accept(mock->fd, NULL, NULL)) >= 0) {
        mock_answer(mock, fd);
        close(fd);
    }
    return NULL;
}

/** Starts the mock; the last route's path is NULL. */
static inline int mock_start(mock_t *mock, const route_t *routes, apr_pool_t *p)
{
    mock->fd = peer_listen(AF_INET, &mock->port);
    mock->base = apr_psprintf(p, "http://localhost:%d", mock->port);
    mock->routes = routes;
    return mock->fd >= 0 &&
           apr_thread_mutex_create(&mock->mutex, APR_THREAD_MUTEX_DEFAULT, p) == APR_SUCCESS &&
           apr_thread_create(&mock->thread, NULL, mock_run, mock, p) == APR_SUCCESS;
}

static inline void mock_stop(mock_t *mock)
{
    apr_status_t rv;

    shutdown(mock->fd, SHUT_RDWR);
    apr_thread_join(&rv, mock->thread);
    close(mock->fd);
}

static inline void mock_forget(mock_t *mock)
{
    apr_thread_mutex_lock(mock->mutex);
    mock->count = 0;
    memset(mock->requests, 0, sizeof mock->requests);
    apr_thread_mutex_unlock(mock->mutex);
}

static inline int mock_count(mock_t *mock)
{
    int count;

    apr_thread_mutex_lock(mock->mutex);
    count = mock->count;
    apr_thread_mutex_unlock(mock->mutex);
    return count;
}

/** Whether the index-th request since mock_forget contains text. */
static inline int mock_was_asked(mock_t *mock, int index, const char *text)
{
    int found;

    apr_thread_mutex_lock(mock->mutex);
    found = strstr(mock->requests[index], text) != NULL;
    apr_thread_mutex_unlock(mock->mutex);
    return found;
}

#endif
