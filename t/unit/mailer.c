/*
 * Parsing transports, and delivering mail to a program and to a Maildir.
 */
#include "t/unit/mail.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

/* --- the sendmail program --- */

static const char script[] = "#!/bin/sh\n"
                             "d=$(dirname \"$0\")\n"
                             "printf '%s\\n' \"$@\" >\"$d/arguments\"\n"
                             "cat >\"$d/body\"\n"
                             "case $5 in\n"
                             "code*) c=${5#code}; c=${c%%@*}; echo begin; echo \"so $c\" >&2\n"
                             "  exit \"$c\";;\n"
                             "killed*) kill -9 $$;;\n"
                             "open*) readlink /proc/$$/fd/* >\"$d/open\"; exit 0;;\n"
                             "holds*) (until [ -e \"$d/go\" ] || [ $((n += 1)) -gt 600 ]; do\n"
                             "  sleep 0.1; done; echo >\"$d/gone\") & exit 0;;\n"
                             "slow*) sleep 0.4;;\n"
                             "esac\n";

static const char *write_script(apr_pool_t *p)
{
    const char *path = in_folder("sendmail", p);
    FILE *file = fopen(path, "w");

    fputs(script, file);
    fclose(file);
    chmod(path, 0755);
    return path;
}

static int always(void *baton)
{
    (void)baton;
    return 1;
}

static void sendmail(apr_pool_t *p)
{
    static const struct {
        int code;
        mdl_mail_outcome_t outcome;
    } codes[] = {{0, MDL_MAIL_SENT},    {1, MDL_MAIL_LATER},   {64, MDL_MAIL_LATER},
                 {65, MDL_MAIL_FAILED}, {67, MDL_MAIL_FAILED}, {68, MDL_MAIL_FAILED},
                 {69, MDL_MAIL_FAILED}, {71, MDL_MAIL_LATER},  {75, MDL_MAIL_LATER},
                 {78, MDL_MAIL_LATER}};
    const char *program = write_script(p);
    mdl_mail_config_t config = config_of(apr_pstrcat(p, "sendmail:", program, NULL),
                                         MDL_MAIL_TLS_OFF);
    mdl_mailer_t *mailer = mailer_of(&config, p);
    const char *detail;
    int fd;

    is_int(send_to(mailer, "$(x)`y`@x.test", &detail, p), MDL_MAIL_FAILED,
           "an address with shell syntax is invalid");
    is_int(send_to(mailer, "-oQ'x'|`$y`@x.test", &detail, p), MDL_MAIL_SENT,
           "valid characters with a meaning in a shell have none here");
    is_str(slurp(in_folder("arguments", p), p), "-i\n-f\n" FROM "\n--\n-oQ'x'|`$y`@x.test\n",
           "the program gets its arguments");
    is_str(slurp(in_folder("body", p), p),
           "Subject: dots\n\n.\n..\n.leading\nMAIL FROM:<x@y.test>\nend\n",
           "the program gets the message with LF line ends");
    for (apr_size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        is_int(send_to(mailer, apr_psprintf(p, "code%d@x.test", codes[i].code), &detail, p),
               codes[i].outcome, apr_psprintf(p, "exit code %d gives its outcome", codes[i].code));
    }
    fd = open("/dev/zero", O_RDONLY);
    is_int(send_to(mailer, "open@x.test", &detail, p), MDL_MAIL_SENT, "(it lists its files)");
    ok(strstr(slurp(in_folder("open", p), p), "/dev/zero") == NULL,
       "the program gets none of this process's descriptors");
    close(fd);
    send_to(mailer, "code67@x.test", &detail, p);
    is_str(detail, "The sendmail program ended with code 67: so 67",
           "the detail is the program's last line");
    is_int(send_to(mailer, "killed@x.test", &detail, p), MDL_MAIL_LATER,
           "a program that is killed gives MDL_MAIL_LATER");
    is_int(send_to(mailer, "holds@x.test", &detail, p), MDL_MAIL_SENT,
           "a program that leaves a child behind counts as ended");
    ok(access(in_folder("gone", p), F_OK) != 0, "that child is not waited for");
    fclose(fopen(in_folder("go", p), "w"));
    while (access(in_folder("gone", p), F_OK) != 0) {
        apr_sleep(10000);
    }
    config.stopped = always;
    mailer = mailer_of(&config, p);
    is_int(send_to(mailer, "slow@x.test", &detail, p), MDL_MAIL_SENT,
           "a program that has the message is waited for while the mailer is stopped");
    is_int(mdl_mailer_check(mailer, "shop@example.com", &detail, p), APR_SUCCESS,
           "the check finds the program");
    config.transport = apr_pstrcat(p, "sendmail:", in_folder("absent", p), NULL);
    mailer = mailer_of(&config, p);
    is_int(send_to(mailer, TO, &detail, p), MDL_MAIL_LATER,
           "a missing program gives MDL_MAIL_LATER");
    is_str(detail, "The sendmail program can't be run: No such file or directory.",
           "the detail names the error");
    is_int(mdl_mailer_check(mailer, "shop@example.com", &detail, p), APR_EGENERAL,
           "the check reports a missing program");
}

/* --- the Maildir --- */

static int count_files(const char *path, const char **one, apr_pool_t *p)
{
    DIR *open = opendir(path);
    struct dirent *entry;
    int count = 0;

    while (open != NULL && (entry = readdir(open)) != NULL) {
        if (entry->d_name[0] != '.') {
            *one = apr_pstrcat(p, path, "/", entry->d_name, NULL);
            count++;
        }
    }
    if (open != NULL) {
        closedir(open);
    }
    return open != NULL ? count : -1;
}

/* Makes a file in the Maildir's tmp/ that was written hours ago. */
static const char *make_left(const char *name, int hours, apr_pool_t *p)
{
    const char *path = apr_pstrcat(p, in_folder("post/box/tmp/", p), name, NULL);
    time_t written = time(NULL) - hours * 3600;
    FILE *file = fopen(path, "w");

    fputs("half a mess", file);
    fclose(file);
    utimes(path, (const struct timeval[]){{.tv_sec = written}, {.tv_sec = written}});
    return path;
}

static void maildir_leftovers(mdl_mailer_t *mailer, apr_pool_t *p)
{
    const char *old = make_left("old", 37, p);
    const char *fresh = make_left("fresh", 35, p);
    const char *detail;

    is_int(send_to(mailer, TO, &detail, p), MDL_MAIL_SENT,
           "a message is delivered beside leftovers");
    ok(access(old, F_OK) != 0, "what has been in tmp/ for more than 36 hours is removed");
    ok(access(fresh, F_OK) == 0, "what may still be written stays");
    unlink(fresh);
}

static void maildir(apr_pool_t *p)
{
    const char *path = in_folder("post/box", p);
    mdl_mail_config_t config = config_of(apr_pstrcat(p, "maildir:", path, NULL), MDL_MAIL_TLS_OFF);
    mdl_mailer_t *mailer = mailer_of(&config, p);
    const char *one = "";
    const char *detail;

    is_int(mdl_mailer_check(mailer, "shop@example.com", &detail, p), APR_SUCCESS,
           "the check makes the Maildir");
    is_int(count_files(in_folder("post/box/tmp", p), &one, p), 0,
           "the check leaves no file behind");
    is_int(send_to(mailer, TO, &detail, p), MDL_MAIL_SENT, "a message is delivered");
    is_int(count_files(in_folder("post/box/new", p), &one, p), 1, "the message is in new/");
    is_str(slurp(one, p),
           "Return-Path: <" FROM ">\nDelivered-To: " TO "\n"
           "Subject: dots\n\n.\n..\n.leading\nMAIL FROM:<x@y.test>\nend\n",
           "it has its envelope and LF line ends");
    ok(strstr(one, ".M") && strstr(one, "P") && strstr(one, "Q"), "its file has a Maildir name");
    for (int i = 0; i < 20; i++) {
        send_to(mailer, TO, &detail, p);
    }
    is_int(count_files(in_folder("post/box/new", p), &one, p), 21,
           "each message gets its own file");
    is_int(count_files(in_folder("post/box/tmp", p), &one, p), 0, "nothing is left in tmp/");
    maildir_leftovers(mailer, p);
    is_int(count_files(in_folder("post/box/cur", p), &one, p), 0, "the folder cur/ exists");
    config.transport = apr_pstrcat(p, "maildir:", one, "/below", NULL);
    mailer = mailer_of(&config, p);
    is_int(send_to(mailer, TO, &detail, p), MDL_MAIL_LATER,
           "a folder that can't be made gives MDL_MAIL_LATER");
    ok(detail && strstr(detail, "Not a directory"), "the detail names the error");
    is_int(mdl_mailer_check(mailer, "shop@example.com", &detail, p), APR_EGENERAL,
           "the check reports a folder that can't be made");
}

static void transports(apr_pool_t *p)
{
    static const char *const valid[] = {"smtp://mail.example.test",
                                        "smtp://127.0.0.1:2525",
                                        "smtps://mail.example.test:465",
                                        "smtp://[::1]:25",
                                        "smtp://[::1]",
                                        "sendmail:/usr/sbin/sendmail",
                                        "maildir:/var/lib/mail/outbox",
                                        "smtp://localhost:65535"};
    static const char *const invalid[] = {"",
                                          "mail.example.test",
                                          "http://x.test",
                                          "smtp://",
                                          "smtp://:25",
                                          "smtp://x.test:",
                                          "smtp://x.test:0",
                                          "smtp://x.test:65536",
                                          "smtp://x.test:2x",
                                          "smtp://user:pw@x.test",
                                          "smtp://x.test/path",
                                          "smtp://x.test?a",
                                          "smtp://x.test\r\nDATA",
                                          "smtp://[::1",
                                          "smtp://[]",
                                          "sendmail:sendmail",
                                          "sendmail:",
                                          "maildir:relative",
                                          "SMTP//x"};
    const char *why;

    for (apr_size_t i = 0; i < sizeof valid / sizeof valid[0]; i++) {
        is_str(mdl_mailer_transport_of(valid[i], &why, p), valid[i], valid[i]);
    }
    is_str(mdl_mailer_transport_of("smtps://d\xC3\xA9j\xC3\xA0.test:465", &why, p),
           "smtps://xn--dj-kia8a.test:465", "an international name has its xn-- form");
    for (apr_size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++) {
        mdl_mail_config_t config = config_of(invalid[i], MDL_MAIL_TLS_OFF);

        why = NULL;
        ok(mdl_mailer_transport_of(invalid[i], &why, p) == NULL && why &&
               mailer_of(&config, p) == NULL,
           apr_psprintf(p, "invalid transport %d is refused with a reason", (int)i));
    }
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    if (!begin_folder(p)) {
        return tap_end(p);
    }
    transports(p);
    sendmail(p);
    maildir(p);
    remove_tree(folder);
    return tap_end(p);
}
