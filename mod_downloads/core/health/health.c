#include "core/health/health.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <apr_lib.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/client.h"
#include "base/mail/mailbox.h"
#include "base/mail/mailer.h"
#include "core/catalog/storage_identity.h"
#include "core/closed.h"
#include "core/node.h"
#include "core/shop/secret.h"
#include "db/migrate.h"
#include "storage/storage.h"

#define REFUSED_MIN 5 /* refused emails; fewer may just have wrong addresses */

void mdl_health_warn(const mdl_health_t *health, const char *sentence)
{
    for (int i = 0; i < health->warnings->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(health->warnings, i, const char *), sentence) == 0) {
            return;
        }
    }
    APR_ARRAY_PUSH(health->warnings, const char *) = sentence;
}

const char *mdl_health_database_error(apr_status_t rv, const char *said, apr_pool_t *p)
{
    const char *sentence;

    switch (rv) {
    case MDL_DB_EBUSY:
    case MDL_DB_ELOCKED:
        sentence = "The database is busy: something has held a lock for more than 5 seconds.";
        break;
    case MDL_DB_EFULL:
        sentence = "The database's disk is full, and nothing can be written: free some space, or "
                   "enlarge it.";
        break;
    case MDL_DB_EGONE:
        sentence = "The database is out of reach: start it, or correct DBDriver and DBDParams.";
        break;
    case MDL_MIGRATE_EOTHER:
        return "The database's schema " MDL_SCHEMA_OTHER ".";
    case MDL_DB_ECLOSED:
        return MDL_CLOSED_SENTENCE;
    default:
        sentence = "The database can't do that; its log may say more.";
    }
    return said != NULL && *said != '\0' ? apr_pstrcat(p, sentence, "  It says: ", said, NULL)
                                         : sentence;
}

MDL_EFFECT(mdl_secret_signed, mdl_secret_signed_t *)

int mdl_health_secret(const mdl_health_t *health, const char **message)
{
    mdl_secret_signed_t sealed = {.secret = health->secret};
    const char *trouble;

    if (health->db != NULL &&
        mdl_db_read(health->db, mdl_secret_signed_effect, &sealed, health->p) == APR_SUCCESS &&
        (trouble = mdl_secret_trouble(&sealed, health->p)) != NULL) {
        *message = apr_psprintf(health->p, "%c%s.", apr_toupper(*trouble), trouble + 1);
        return 0;
    }
    *message = apr_array_pstrcat(health->p, health->settings->secret_files, ' ');
    return 1;
}

int mdl_health_database(const mdl_health_t *health, const char **message)
{
    apr_status_t rv = mdl_db_write(health->db, mdl_node_try_write, NULL, health->p);

    if (rv == MDL_DB_ECLOSED) {
        mdl_health_warn(health, MDL_CLOSED_SENTENCE);
        rv = APR_SUCCESS;
    }
    *message = rv != APR_SUCCESS
                   ? mdl_health_database_error(rv, mdl_db_error(health->db), health->p)
                   : apr_psprintf(health->p, "%s, schema %s", health->settings->db_driver,
                                  mdl_migrate_maker(health->db, health->p));
    return rv == APR_SUCCESS;
}

int mdl_health_storage(const mdl_health_t *health, const char **message)
{
    const char *root = health->settings->storage.folder;
    const mdl_storage_config_t folder = {.folder = root,
                                         .reserve = health->settings->storage.reserve};
    const char *why = "The database does not say which storage folder belongs with it.";
    mdl_storage_t *storage;
    apr_status_t rv;
    char text[120];

    *message = root != NULL ? root : "no folder, only objects";
    if (health->db != NULL &&
        mdl_storage_belongs(health->db, &folder, 0, &why, health->p) != APR_SUCCESS) {
        *message = why;
        return 0;
    }
    if (root == NULL) {
        return 1;
    }
    rv = mdl_storage_open(&storage, &folder, health->p);
    if (rv == APR_SUCCESS) {
        rv = mdl_storage_check(storage, health->p);
    }
    /* Its folders may be writable while the storage folder itself is not, which httpd refuses. */
    if (rv == APR_SUCCESS && faccessat(AT_FDCWD, root, R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
        rv = APR_EACCES;
    }
    if (APR_STATUS_IS_ENOSPC(rv)) {
        *message = apr_psprintf(health->p,
                                "The disk that holds %s is full, or has less than "
                                "DownloadsStorageReserve left: free some "
                                "space, or enlarge it.",
                                root);
    } else if (rv != APR_SUCCESS) {
        *message = apr_psprintf(health->p,
                                "Files can't be stored in %s (%s): create the folder on one file "
                                "system, give it and its contents to the user that httpd runs as, "
                                "and run this as root or as that user.",
                                root, apr_strerror(rv, text, sizeof text));
    }
    return rv == APR_SUCCESS;
}

int mdl_health_imports(const mdl_health_t *health, const char **message)
{
    const mdl_settings_t *settings = health->settings;
    int hosts = settings->ingest.hosts->nelts;

    if (hosts == 0 && settings->upload_url == NULL) {
        *message = "No file can get in: DownloadsIngestAllowHost names no host to import from, and "
                   "without DownloadsUploadURL nothing can be uploaded.  Set one of them, then "
                   "restart httpd.";
        return 0;
    }
    if (hosts == 0) {
        mdl_health_warn(health,
                        "DownloadsIngestAllowHost names no host, so that every import is refused "
                        "(422) and files come by upload alone: name the hosts to import from.");
    }
    *message = apr_psprintf(health->p, "from %d host%s%s", hosts, hosts == 1 ? "" : "s",
                            settings->upload_url != NULL ? ", and by upload" : "");
    return 1;
}

MDL_EFFECT(mdl_emails_tried, mdl_emails_tried_t *)

int mdl_health_mail_refused(const mdl_emails_tried_t *tried)
{
    return tried->count >= REFUSED_MIN && tried->sent == 0 &&
           tried->newest_at >= apr_time_now() - apr_time_from_sec(86400);
}

/* A server may answer, but refuse every email. */
static int mail_is_refused(const mdl_health_t *health, const char **message)
{
    mdl_emails_tried_t tried = {.limit = MDL_HEALTH_TRIED};

    if (health->db == NULL ||
        mdl_db_read(health->db, mdl_emails_tried_effect, &tried, health->p) != APR_SUCCESS ||
        !mdl_health_mail_refused(&tried)) {
        return 0;
    }
    *message = apr_psprintf(
        health->p,
        "None of the %d newest emails was taken; the last was refused with: %s  "
        "Try \"downloadsctl mail test ADDRESS\", correct "
        "DownloadsMailTransport, DownloadsMailFrom or the mail server, and then "
        "retry the failed jobs (\"downloadsctl job list --status failed\").",
        tried.count, tried.error != NULL ? tried.error : "(no reason).");
    return 1;
}

int mdl_health_mail(const mdl_health_t *health, const char **message)
{
    const mdl_mail_config_t *config = &health->settings->mail;
    mdl_mailer_t *mailer;
    apr_size_t length;
    apr_status_t rv;

    if (config->transport == NULL || health->settings->mail_from == NULL) {
        *message = MDL_SETTINGS_FIRST;
        return 0;
    }
    *message = "The mailer can't be set up.";
    rv = mdl_http_global_init(health->p);
    if (rv == APR_SUCCESS) {
        rv = mdl_mailer_create(&mailer, config, health->p);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_mailer_check(mailer, health->settings->mail_from, message, health->p);
    }
    if (rv != APR_SUCCESS) {
        length = strlen(*message);
        *message = apr_psprintf(
            health->p, "%s%s  Correct DownloadsMailTransport (%s)%s, or what it names.", *message,
            length && (*message)[length - 1] != '.' ? "." : "", config->transport,
            strncmp(config->transport, "smtp://", 7) == 0 ? ", DownloadsMailTLS" : "");
        return 0;
    }
    if (mail_is_refused(health, message)) {
        return 0;
    }
    *message = config->transport;
    return 1;
}

int mdl_health_bounces(const mdl_health_t *health, const char **message)
{
    const char *place = health->settings->mail_bounces;

    if (place == NULL) {
        *message = "mail that comes back is not read";
        return 1;
    }
    if (mdl_mailbox_check(mdl_mailbox_create(place, health->p), message, health->p) !=
        APR_SUCCESS) {
        *message = apr_psprintf(health->p,
                                "%s  Have the mail server deliver there (a Maildir's new/ and cur/ "
                                "can be made by hand), and let httpd's user read and write it.",
                                *message);
        return 0;
    }
    *message = place;
    return 1;
}
