#include "api/license_keys.h"

#include <apr_strings.h>

#include "api/list.h"
#include "api/members.h"
#include "core/license.h"

#define MAX_NAME      255
#define MAX_THRESHOLD 1000000000
#define MAX_KEYS      10000
#define MAX_KEY       512
#define MAX_KEYS_BODY (8 * 1024 * 1024)

static const char *write_tag(mdl_json_t *to, mdl_call_t *call, const void *row)
{
    const mdl_license_tag_t *tag = row;

    mdl_json_add_int(to, "id", tag->id);
    mdl_json_add_string(to, "name", tag->name);
    mdl_json_add_int(to, "available", tag->available);
    mdl_json_add_int(to, "assigned", tag->assigned);
    if (tag->low_stock_threshold < 0) {
        mdl_json_add_null(to, "low_stock_threshold");
    } else {
        mdl_json_add_int(to, "low_stock_threshold", tag->low_stock_threshold);
    }
    mdl_json_add_time(to, "created_at", tag->created_at);
    mdl_json_add_time(to, "updated_at", tag->updated_at);
    return apr_psprintf(call->r->pool, "%" APR_INT64_T_FMT, tag->id);
}

/* The list. */

typedef struct {
    mdl_list_t *list;
    mdl_license_tag_list_t tags;
} list_t;

static apr_status_t parse_list(mdl_call_t *call)
{
    list_t *arg = apr_pcalloc(call->r->pool, sizeof *arg);
    apr_status_t rv;

    arg->list = mdl_list_begin(call);
    rv = mdl_list_end(arg->list);
    arg->tags.shop_id = call->caller.shop_id;
    arg->tags.before = mdl_list_before(arg->list);
    arg->tags.limit = mdl_list_rows(arg->list);
    call->arg = arg;
    return rv;
}

static apr_status_t read_list(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_license_tag_list(db, p, &((list_t *)arg)->tags);
}

static void write_list(mdl_call_t *call)
{
    list_t *arg = call->arg;

    mdl_list_write(arg->list, arg->tags.tags, write_tag);
}

const mdl_route_t mdl_route_license_tags = {
    .method = "GET",
    .path = "/license-key-tags",
    .parse = parse_list,
    .effect = read_list,
    .write = write_list,
};

/* Making one. */

static apr_int64_t parse_threshold(mdl_members_t *members)
{
    return mdl_members_int(members, "low_stock_threshold", 0, MAX_THRESHOLD, -1);
}

static apr_status_t parse_create(mdl_call_t *call)
{
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    mdl_license_tag_create_t *create = apr_pcalloc(call->r->pool, sizeof *create);

    create->shop_id = call->caller.shop_id;
    create->tag.name = mdl_members_text(members, "name", MDL_REQUIRED, MAX_NAME);
    create->tag.low_stock_threshold = parse_threshold(members);
    call->arg = create;
    return mdl_members_end(members);
}

static void write_create(mdl_call_t *call)
{
    const mdl_license_tag_create_t *create = call->arg;
    const char *id = write_tag(mdl_json_add_object(call->answer, "license_key_tag"), call,
                               &create->tag);

    call->status = 201;
    call->location = apr_pstrcat(call->r->pool, call->root, "/license-key-tags/", id, NULL);
}

const mdl_route_t mdl_route_license_tag_create = {
    .method = "POST",
    .path = "/license-key-tags",
    .parse = parse_create,
    .effect = mdl_license_tag_create,
    .write = write_create,
};

/* Reading, changing, deleting one. */

static mdl_license_tag_find_t find_of(mdl_call_t *call)
{
    return (mdl_license_tag_find_t){.shop_id = call->caller.shop_id,
                                    .id = mdl_members_path_id(call->parameters[0]),
                                    .refusal = &call->refusal};
}

static apr_status_t parse_find(mdl_call_t *call)
{
    mdl_license_tag_find_t *find = apr_palloc(call->r->pool, sizeof *find);

    *find = find_of(call);
    call->arg = find;
    return APR_SUCCESS;
}

static void write_find(mdl_call_t *call)
{
    const mdl_license_tag_find_t *find = call->arg;

    write_tag(call->answer, call, &find->tag);
}

const mdl_route_t mdl_route_license_tag = {
    .method = "GET",
    .path = "/license-key-tags/{}",
    .parse = parse_find,
    .effect = mdl_license_tag_find,
    .write = write_find,
};

static apr_status_t parse_change(mdl_call_t *call)
{
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    mdl_license_tag_change_t *change = apr_pcalloc(call->r->pool, sizeof *change);

    change->find = find_of(call);
    if (mdl_json_member(call->body, "name") != NULL) {
        change->name = mdl_members_text(members, "name", MDL_REQUIRED, MAX_NAME);
    }
    change->set_threshold = mdl_json_member(call->body, "low_stock_threshold") != NULL;
    change->low_stock_threshold = parse_threshold(members);
    call->arg = change;
    return mdl_members_end(members);
}

static void write_change(mdl_call_t *call)
{
    const mdl_license_tag_change_t *change = call->arg;

    write_tag(mdl_json_add_object(call->answer, "license_key_tag"), call, &change->find.tag);
}

const mdl_route_t mdl_route_license_tag_change = {
    .method = "PATCH",
    .path = "/license-key-tags/{}",
    .parse = parse_change,
    .effect = mdl_license_tag_change,
    .write = write_change,
};

static apr_status_t parse_delete(mdl_call_t *call)
{
    parse_find(call);
    return mdl_members_none(call);
}

static void write_delete(mdl_call_t *call)
{
    call->status = 204;
}

const mdl_route_t mdl_route_license_tag_delete = {
    .method = "DELETE",
    .path = "/license-key-tags/{}",
    .optional_body = 1,
    .parse = parse_delete,
    .effect = mdl_license_tag_delete,
    .write = write_delete,
};

/* Adding keys. */

static apr_status_t parse_add(mdl_call_t *call)
{
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    mdl_license_add_t *add = apr_pcalloc(call->r->pool, sizeof *add);

    add->shop_id = call->caller.shop_id;
    add->tag_id = mdl_members_path_id(call->parameters[0]);
    add->key_id = call->caller.key_id;
    add->keys = mdl_members_texts(members, "keys", MAX_KEYS, MAX_KEY);
    add->refusal = &call->refusal;
    call->arg = add;
    return mdl_members_end(members);
}

static void write_add(mdl_call_t *call)
{
    const mdl_license_add_t *add = call->arg;

    mdl_json_add_int(call->answer, "added", add->added);
    mdl_json_add_int(call->answer, "duplicates", add->duplicates);
}

const mdl_route_t mdl_route_license_keys_add = {
    .method = "POST",
    .path = "/license-key-tags/{}/keys",
    .max_body = MAX_KEYS_BODY,
    .parse = parse_add,
    .effect = mdl_license_add,
    .write = write_add,
};
