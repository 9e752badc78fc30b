/*
 * What a process keeps of a link: how much it may send by that, and for how long.
 */
#include "t/unit/tap.h"

#include <apr_strings.h>

#include "base/clock.h"
#include "core/download/grant.h"

static mdl_signed_file_t link_named(const char *session)
{
    return (mdl_signed_file_t){.session = session, .assignment_id = 1, .asset_id = 2};
}

static mdl_download_t looked_at(const mdl_signed_file_t *link, apr_time_t when)
{
    return (mdl_download_t){.link = link,
                            .looked_at = when,
                            .page_id = "page",
                            .opened_at = 3,
                            .filename = "a.pdf",
                            .sha256 = "5ba1",
                            .tag = "5ba1",
                            .size = 1000,
                            .updated_at = 4};
}

static mdl_grant_t grant(apr_int64_t part, apr_int64_t bytes)
{
    return (mdl_grant_t){
        .generation = 7, .part = part, .bytes = bytes, .time = 60 * APR_USEC_PER_SEC, .why = "why"};
}

static void put(const mdl_signed_file_t *link, apr_int64_t part, apr_int64_t bytes, apr_time_t age)
{
    mdl_download_t download = looked_at(link, mdl_clock_monotonic() - age);
    mdl_grant_t given = grant(part, bytes);

    mdl_grant_put(&download, &given);
}

static int is_found(const mdl_signed_file_t *link, apr_pool_t *p)
{
    mdl_download_t download = {.link = link};

    return mdl_grant_find(&download, p);
}

static void test_found(apr_pool_t *p)
{
    mdl_signed_file_t link = link_named("found"), other = link_named("other");
    mdl_download_t download = {.link = &link};

    is_int(mdl_grant_find(&download, p), 0, "a link has no grant at first");
    put(&link, 10, 100, 0);
    is_int(mdl_grant_find(&download, p), 1, "it is found once there is one");
    is_int(download.entitlement, MDL_ENTITLEMENT_OK, "the link is allowed");
    is_str(download.page_id, "page", "with the page");
    is_str(download.filename, "a.pdf", "the name,");
    ok(download.content_type == NULL, "no type,");
    is_str(download.tag, "5ba1", "the tag,");
    is_int(download.size, 1000, "the size,");
    is_int(download.updated_at, 4, "the date");
    is_int(download.opened_at, 3, "and when the link was opened");
    is_int(is_found(&other, p), 0, "another link has none");
}

static void test_taken(void)
{
    mdl_signed_file_t link = link_named("taken");
    mdl_grant_t taken;

    put(&link, 40, 100, 0);
    is_int(mdl_grant_take("taken", 41, &taken), 0, "a part that is too large is not covered");
    is_int(mdl_grant_take("taken", 40, &taken), 1, "one that is not is");
    is_int(taken.generation, 7, "it goes on with that session");
    is_int(mdl_grant_take("taken", 40, &taken), 1, "so is the next");
    is_int(mdl_grant_take("taken", 21, &taken), 0, "until all bytes are taken");
    is_int(mdl_grant_take("taken", 20, &taken), 1, "to the last");
    put(&link, 40, 100, 0);
    is_int(mdl_grant_take("taken", 1, &taken), 0, "another grant does not add to one in its time");
}

static void test_over(apr_pool_t *p)
{
    mdl_signed_file_t link = link_named("over");
    mdl_grant_t taken;

    put(&link, 40, 100, 60 * APR_USEC_PER_SEC);
    is_int(is_found(&link, p), 0, "a grant ends its time after the link was looked at");
    is_int(mdl_grant_take("over", 1, &taken), 0, "then it covers nothing");
    put(&link, 40, 100, 0);
    is_int(mdl_grant_take("over", 1, &taken), 1, "and there may be another");
}

static void test_many(apr_pool_t *p)
{
    int found = 0;

    for (int i = 0; i < 5000; i++) {
        mdl_signed_file_t link = link_named(apr_psprintf(p, "link %d", i));

        put(&link, 40, 100, 0);
        found += is_found(&link, p);
    }
    is_int(found, 5000, "the newest of many links has a grant");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    test_found(p);
    test_taken();
    test_over(p);
    test_many(p);
    return tap_end(p);
}
