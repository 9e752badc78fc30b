/*
 * The tests that a background process makes of its service, those of `downloadsctl check` that need
 * neither root nor httpd.
 */
#ifndef MDL_CORE_HEALTH_TESTS_H
#define MDL_CORE_HEALTH_TESTS_H

#include "core/health/health.h"

typedef struct {
    const char *name; /* of the line of `downloadsctl check` */
    mdl_health_fn *run;
    int of_node; /* what it finds concerns this node alone */
    int seldom;  /* others pay for it: mail servers, object stores, disks */
} mdl_health_test_t;

#define MDL_HEALTH_DATABASE "database" /* the line of mdl_health_connect */

#define MDL_HEALTH_TESTS 9
extern const mdl_health_test_t mdl_health_tests[MDL_HEALTH_TESTS];

/** Opens a connection in health->db, which lives as long as health->p, and tests the database.  If
    it fails, health->db is NULL, and *message says what to do. */
int mdl_health_connect(mdl_health_t *health, const char **message);

#endif
