/*
 * Alerts: what the tests of a service find wrong is told to its operator once, and once more when
 * it is well again.  The database remembers what was told, over restarts and for all nodes.  A
 * finding of one node, such as a full disk, is an alert of its own; one that any node may have,
 * such as a silent mail server, is told by the first that has it, and is well when none has.
 */
#ifndef MDL_CORE_HEALTH_ALERT_H
#define MDL_CORE_HEALTH_ALERT_H

#include <apr_tables.h>
#include <apr_time.h>

#include "db/db.h"

#define MDL_ALERT_WORDS_MAX 1000 /* characters */

typedef struct {
    const char *name;  /* of the test */
    int of_node;       /* whether the alert is this node's */
    const char *words; /* NULL: the test finds nothing */
} mdl_alert_finding_t;

typedef struct {
    const char *name;
    const char *host; /* this and the next: "" for an alert of the whole service */
    const char *pid_file;
    int failing; /* 0: it is well again */
    const char *words;
    int rounds; /* in which there was this to tell, this one included */
    /* Which state the command and the email have told. */
    int command_told;
    int email_told;
} mdl_alert_t;

typedef struct {
    const char *host; /* this and the next: this node */
    const char *pid_file;
    const apr_array_header_t *findings; /* mdl_alert_finding_t */
    apr_interval_time_t silent;         /* a node that is silent for so long finds nothing */
    apr_array_header_t *due;            /* result: mdl_alert_t that this node must tell */
} mdl_alert_round_t;

/** Effect: writes down what this node's tests have found, and takes what is to be told. */
apr_status_t mdl_alert_round(mdl_db_t *db, apr_pool_t *p, mdl_alert_round_t *round);

/** Effect: writes down what was told. */
apr_status_t mdl_alert_told(mdl_db_t *db, apr_pool_t *p, const mdl_alert_t *alert);

#endif
