/*
 * One request of the API on its way: router → gate → a resource's parse, effect and write.
 */
#ifndef MDL_API_REQUEST_H
#define MDL_API_REQUEST_H

#include <httpd.h>

#include "base/http/path.h"
#include "base/text/json.h"
#include "connection.h"
#include "core/problem.h"
#include "core/service/service.h"
#include "core/shop/key_verify.h"
#include "db/db.h"

typedef struct mdl_route_t mdl_route_t;
typedef struct mdl_list_t mdl_list_t;

typedef struct {
    request_rec *r;
    const mdl_service_t *service;
    const char *request_id;
    const char *root; /* path of the API's root, as the client knows it: "/api/v1" */
    const char *path; /* below root */
    const mdl_route_t *route;
    const char *parameters[MDL_PATH_PARAMETERS]; /* of the path, in order */
    mdl_caller_t caller;
    mdl_connection_t *connection; /* NULL while no connection is held */
    unsigned rows;                /* read from the database so far */
    const mdl_json_t *body;       /* of a write: an object */
    const char *bytes;            /* of a write with .takes: its body as it came */
    apr_size_t bytes_length;
    const apr_array_header_t *versions; /* of If-Match (core/version.h); NULL: any */
    void *arg;                          /* what parse made for the effect */
    mdl_list_t *list;                   /* the query of a list */
    mdl_problem_t problem;
    /* The response. */
    int status;
    const char *entity_id; /* of the response's entity: from the path, or set by write */
    const char *location;  /* or NULL */
    mdl_json_t *response;
    const char *text; /* a response that is text already; NULL */
    int retry_after;  /* seconds; 0 for none */
} mdl_request_t;

/** Adds the members of an entity; returns its id, which is its position in a list. */
typedef const char *mdl_write_entity_fn(mdl_json_t *to, mdl_request_t *request, const void *entity);

/**
 * An operation.  parse checks the members and fills request->arg, or refuses; effect runs in the
 * gate's transaction (a GET's without one, unless it is a snapshot), perhaps more than once; write
 * fills the response from request->arg.  A response with the status 204 has no body.
 *
 * A response is the entity itself; one with two entities has each as a member named by its noun.
 */
struct mdl_route_t {
    const char *method;
    const char *path; /* "/jobs/{}": a parameter is one segment */
    const char *noun; /* of a write, for the audit, like action */
    const char *action;
    int versioned;             /* has an ETag by its updated_at; a write honours If-Match */
    const char *cache_control; /* of a success; NULL: no-store */
    const char *content_type;  /* of a success; NULL: application/json */
    int no_key;                /* open to everybody */
    mdl_key_scope_t scope;     /* the least that a GET needs; a write needs the full scope */
    int snapshot;              /* a GET whose effect has several statements */
    int optional_body;         /* a write without a body counts as {} */
    const char *const *takes; /* the media types of a write whose body is no JSON, ending in NULL */
    apr_size_t max_body;      /* bytes; 0: MDL_MAX_BODY */
    apr_size_t max_values;    /* in it; 0: MDL_JSON_MAX_VALUES */
    mdl_write_entity_fn *write_entity;             /* for mdl_resource_write and mdl_list_write */
    apr_status_t (*parse)(mdl_request_t *request); /* NULL: nothing to parse */
    mdl_effect_fn *effect;                         /* NULL: a GET that needs no connection */
    void (*write)(mdl_request_t *request);
};

/** mdl_connection_run on the request's connection. */
apr_status_t mdl_request_run(mdl_request_t *request, mdl_db_run_fn *how, mdl_effect_fn *effect,
                             void *arg);

/** Closes the connection, if open.  Call it before waiting for a client, which may be slow. */
void mdl_request_release(mdl_request_t *request);

#endif
