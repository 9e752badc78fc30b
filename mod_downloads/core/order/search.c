#include "core/order/search.h"

#include <string.h>

#include <apr_strings.h>

#include "base/mail/mime.h"
#include "base/names.h"
#include "core/catalog/asset.h"
#include "core/ids.h"
#include "core/search_word.h"

#define LOOKED    1000 /* orders, if some of them may not fit the filter */
#define MAPPINGS  20   /* with files that are not there: of each kind */
#define CUSTOMERS 100
#define NAMED     20 /* customers that have the words of a search */
#define DIGITS    "0123456789"

const char *const mdl_order_attention_names[] = {[MDL_ORDER_EXPIRED] = "expired",
                                                 [MDL_ORDER_LIMIT_REACHED] = "limit_reached",
                                                 [MDL_ORDER_PREPARING] = "preparing",
                                                 [MDL_ORDER_KEYS_OWED] = "keys_owed",
                                                 NULL};

static mdl_order_line_t *line_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_order_line_t *line = apr_pcalloc(p, sizeof *line);

    MDL_READ(row, order_lines_by_id, line, id, storefront_order_id, name, created_at,
             storefront_customer_id, email, first_name, last_name);
    line->access = MDL_ENUM(row, order_lines_by_id, access_status, mdl_order_access_names);
    line->email_status = MDL_NULL(row, order_lines_by_id, email_status)
                             ? MDL_EMAIL_NOT_REQUESTED
                             : MDL_ENUM(row, order_lines_by_id, email_status,
                                        mdl_email_status_names);
    return line;
}

/* --- by filters --- */

/* A place in a walk: the sort key and the order's id. */
typedef struct {
    apr_int64_t key;
    apr_int64_t id;
} place_t;

int mdl_order_place_valid(const char *text)
{
    apr_size_t digits = strspn(text, DIGITS);

    return digits > 0 && digits < 19 && text[digits] == '_' &&
           strspn(text + digits + 1, DIGITS) == strlen(text + digits + 1) &&
           text[digits + 1] != '\0' && strlen(text + digits + 1) < 19;
}

/* Where a walk begins: behind a given place, or at the newest order before created_before. */
static place_t place_begin(const mdl_order_filter_t *filter, int by_creation)
{
    place_t place = {APR_INT64_MAX, APR_INT64_MAX};

    if (filter->after != NULL) {
        place.key = apr_atoi64(filter->after);
        place.id = apr_atoi64(strchr(filter->after, '_') + 1);
    } else if (by_creation && filter->created_before != 0) {
        place = (place_t){filter->created_before, 0};
    }
    return place;
}

static const char *place_text(place_t place, apr_pool_t *p)
{
    return apr_psprintf(p, "%" APR_INT64_T_FMT "_%" APR_INT64_T_FMT, place.key, place.id);
}

#define FITS                                                                                       \
    .shop_id = filter->shop_id, .access = filter->access, .created_since = filter->created_since,  \
    .created_before = filter->created_before != 0 ? filter->created_before : APR_INT64_MAX,        \
    .updated_since = filter->updated_since, .product = filter->product, .email = filter->email,    \
    .email_status = filter->email_status, .attention = filter->attention, .now = apr_time_now(),   \
    .download_limit = filter->default_download_limit

static apr_status_t walk_customers(mdl_db_t *db, const mdl_order_filter_t *filter, int look,
                                   mdl_rows_t **rows, apr_pool_t *p)
{
    place_t from = place_begin(filter, 1);
    apr_array_header_t *ids = apr_array_make(p, 1, sizeof(apr_int64_t));
    mdl_rows_t *customers;
    apr_status_t rv = filter->customer != NULL
                          ? mdl_db_select(db, &customers, p,
                                          MDL_Q(CUSTOMER_OF_NUMBER, .shop_id = filter->shop_id,
                                                .storefront_customer_id = filter->customer))
                          : mdl_db_select(db, &customers, p,
                                          MDL_Q(CUSTOMERS_OF_EMAIL, .shop_id = filter->shop_id,
                                                .email = filter->email, .limit = CUSTOMERS));

    while (rv == APR_SUCCESS && mdl_rows_next(customers)) {
        APR_ARRAY_PUSH(ids, apr_int64_t) = mdl_rows_int(customers, 0);
    }
    return rv == APR_SUCCESS
               ? mdl_db_select(db, rows, p,
                               MDL_Q(ORDER_WALK_OF_CUSTOMERS, FITS, .ids = ids,
                                     .recipient = filter->customer == NULL ? filter->email : NULL,
                                     .key = from.key, .id = from.id, .limit = look))
               : rv;
}

/* Whether an index has the orders whose newest email has this status. */
static int email_is_undelivered(const char *status)
{
    return strcmp(status, mdl_email_status_names[MDL_EMAIL_FAILED]) == 0 ||
           strcmp(status, mdl_email_status_names[MDL_EMAIL_NO_RECIPIENT]) == 0 ||
           strcmp(status, mdl_email_status_names[MDL_EMAIL_BOUNCED]) == 0;
}

static apr_status_t walk_preparing(mdl_db_t *db, const mdl_order_filter_t *filter, int look,
                                   mdl_rows_t **rows, apr_pool_t *p)
{
    static const mdl_asset_status_t unfinished[] = {MDL_ASSET_PENDING, MDL_ASSET_FAILED};
    place_t from = place_begin(filter, 0);
    apr_array_header_t *ids = apr_array_make(p, 4, sizeof(apr_int64_t));
    mdl_order_filter_t found = *filter; /* each order of these mappings lacks something */
    apr_status_t rv = APR_SUCCESS;

    found.attention = NULL;
    found.access = filter->access != NULL ? filter->access
                                          : mdl_order_access_names[MDL_ORDER_ACTIVE];
    filter = &found;

    for (apr_size_t i = 0; rv == APR_SUCCESS && i < sizeof unfinished / sizeof *unfinished; i++) {
        mdl_rows_t *mappings;

        rv = mdl_db_select(db, &mappings, p,
                           MDL_Q(MAPPINGS_UNFINISHED, .shop_id = filter->shop_id,
                                 .status = mdl_asset_status_names[unfinished[i]],
                                 .limit = MAPPINGS));
        while (rv == APR_SUCCESS && mdl_rows_next(mappings)) {
            APR_ARRAY_PUSH(ids, apr_int64_t) = mdl_rows_int(mappings, 0);
        }
    }
    return rv == APR_SUCCESS ? mdl_db_select(db, rows, p,
                                             MDL_Q(ORDER_WALK_OF_MAPPINGS, FITS, .ids = ids,
                                                   .id = from.id, .limit = look))
                             : rv;
}

static apr_status_t walk_attention(mdl_db_t *db, const mdl_order_filter_t *filter, int look,
                                   mdl_rows_t **rows, apr_pool_t *p)
{
    place_t from = place_begin(filter, 0);

    switch (mdl_names_find(mdl_order_attention_names, filter->attention)) {
    case MDL_ORDER_EXPIRED:
        return mdl_db_select(
            db, rows, p,
            MDL_Q(ORDER_WALK_OF_EXPIRED, FITS, .key = from.key, .id = from.id, .limit = look));
    case MDL_ORDER_LIMIT_REACHED:
        return mdl_db_select(
            db, rows, p, MDL_Q(ORDER_WALK_OF_LIMIT_REACHED, FITS, .id = from.id, .limit = look));
    case MDL_ORDER_KEYS_OWED:
        return mdl_db_select(db, rows, p,
                             MDL_Q(ORDER_WALK_OF_KEYS_OWED, FITS, .key = from.key, .limit = look));
    default:
        return walk_preparing(db, filter, look, rows, p);
    }
}

/* Asks for orders by the index that restricts them best. */
static apr_status_t walk_ask(mdl_db_t *db, const mdl_order_filter_t *filter, int look,
                             mdl_rows_t **rows, apr_pool_t *p)
{
    place_t from = place_begin(filter, 1);

    if (filter->customer != NULL || filter->email != NULL) {
        return walk_customers(db, filter, look, rows, p);
    }
    if (filter->attention != NULL) {
        return walk_attention(db, filter, look, rows, p);
    }
    if (filter->product != NULL) {
        from = place_begin(filter, 0);
        return mdl_db_select(db, rows, p,
                             MDL_Q(ORDER_WALK_OF_PRODUCT, FITS, .id = from.id, .limit = look));
    }
    if (filter->email_status != NULL && email_is_undelivered(filter->email_status)) {
        from = place_begin(filter, 0);
        return mdl_db_select(
            db, rows, p, MDL_Q(ORDER_WALK_OF_UNDELIVERED, FITS, .key = from.key, .limit = look));
    }
    if (filter->email_status != NULL &&
        strcmp(filter->email_status, mdl_email_status_names[MDL_EMAIL_HELD]) == 0) {
        from = place_begin(filter, 0);
        return mdl_db_select(db, rows, p,
                             MDL_Q(ORDER_WALK_OF_HELD_EMAIL, FITS, .key = from.key, .limit = look));
    }
    if (filter->access != NULL &&
        strcmp(filter->access, mdl_order_access_names[MDL_ORDER_ACTIVE]) != 0) {
        return mdl_db_select(
            db, rows, p,
            MDL_Q(ORDER_WALK_OF_STATE, FITS, .key = from.key, .id = from.id, .limit = look));
    }
    if (filter->updated_since != 0) {
        from = place_begin(filter, 0);
        return mdl_db_select(
            db, rows, p,
            MDL_Q(ORDER_WALK_OF_UPDATE, FITS, .key = from.key, .id = from.id, .limit = look));
    }
    return mdl_db_select(db, rows, p,
                         MDL_Q(ORDER_WALK, FITS, .key = from.key, .id = from.id, .limit = look));
}

/* Whether (nearly) every order that walk_ask returns fits the filter. */
static int filter_is_walked(const mdl_order_filter_t *filter)
{
    int others = (filter->access != NULL) + (filter->product != NULL) +
                 (filter->email_status != NULL) + (filter->attention != NULL) +
                 (filter->updated_since != 0);

    if (filter->customer != NULL || filter->email != NULL || others == 0) {
        return others == 0 && (filter->customer == NULL || filter->email == NULL);
    }
    return others == 1 && filter->email_status == NULL && filter->attention == NULL &&
           (filter->access != NULL
                ? strcmp(filter->access, mdl_order_access_names[MDL_ORDER_ACTIVE]) != 0
                : filter->created_since == 0 && filter->created_before == 0);
}

apr_status_t mdl_order_filter(mdl_db_t *db, apr_pool_t *p, mdl_order_filter_t *filter)
{
    const char *address = mdl_mime_address_of(filter->email, p);
    int look = filter_is_walked(filter) ? filter->limit + 1 : LOOKED, looked = 0;
    place_t last = {0, 0};
    mdl_rows_t *rows;
    apr_status_t rv;

    filter->email = address != NULL ? address : filter->email;
    rv = walk_ask(db, filter, look, &rows, p);
    filter->places = apr_array_make(p, filter->limit, sizeof(mdl_order_place_t));
    filter->next = NULL;
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        int fits = MDL_INT(rows, order_walk, fits) != 0;

        if (fits && filter->places->nelts == filter->limit) {
            filter->next = place_text(last, p);
            return APR_SUCCESS;
        }
        looked++;
        last = (place_t){MDL_INT(rows, order_walk, created_at), MDL_INT(rows, order_walk, id)};
        if (fits) {
            APR_ARRAY_PUSH(filter->places,
                           mdl_order_place_t) = (mdl_order_place_t){last.id, place_text(last, p)};
        }
    }
    if (looked == look) {
        filter->next = place_text(last, p);
    }
    return rv;
}

/* --- by what somebody types --- */

/* Whether every order fits. */
static int filter_is_empty(const mdl_order_filter_t *filter)
{
    return filter->access == NULL && filter->product == NULL && filter->email_status == NULL &&
           filter->attention == NULL && filter->created_since == 0 && filter->created_before == 0 &&
           filter->updated_since == 0;
}

/* The orders that have the words, then the newest of the customers that have them. */
static apr_status_t search_ids(mdl_db_t *db, const mdl_order_search_t *search, int look,
                               apr_array_header_t **ids, apr_pool_t *p)
{
    const mdl_search_query_t *query = mdl_search_query(search->text, p);
    apr_int64_t shop_id = search->filter.shop_id;
    mdl_rows_t *orders, *customers, *rows;
    apr_status_t rv;

    *ids = apr_array_make(p, 0, sizeof(apr_int64_t));
    if (query == NULL) {
        return APR_SUCCESS;
    }
    if ((rv = mdl_search_ask(db, shop_id, MDL_SEARCH_ORDER, query, look, &orders, p)) !=
            APR_SUCCESS ||
        (rv = mdl_search_ask(db, shop_id, MDL_SEARCH_CUSTOMER, query, NAMED, &customers, p)) !=
            APR_SUCCESS) {
        return rv;
    }
    *ids = mdl_search_read(orders, look, p);
    rv = mdl_db_select(
        db, &rows, p,
        MDL_Q(ORDERS_OF_CUSTOMERS, .ids = mdl_search_read(customers, NAMED, p), .limit = look));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        apr_int64_t id = mdl_rows_int(rows, 0);

        if ((*ids)->nelts < look && !mdl_ids_has(*ids, id)) {
            APR_ARRAY_PUSH(*ids, apr_int64_t) = id;
        }
    }
    return rv;
}

static apr_status_t search_words(mdl_db_t *db, mdl_order_search_t *search, apr_pool_t *p)
{
    const mdl_order_filter_t *filter = &search->filter;
    int look = filter_is_empty(filter) ? filter->limit + 1 : LOOKED;
    apr_array_header_t *ids;
    mdl_rows_t *rows;
    apr_status_t rv;

    if ((rv = search_ids(db, search, look, &ids, p)) != APR_SUCCESS ||
        (rv = mdl_db_select(db, &rows, p, MDL_Q(ORDER_LINES_THAT_FIT, FITS, .ids = ids))) !=
            APR_SUCCESS) {
        return rv;
    }
    while (mdl_rows_next(rows)) {
        if (MDL_INT(rows, order_lines_that_fit, fits) != 0) {
            APR_ARRAY_PUSH(search->found, mdl_order_line_t *) = line_of_row(rows, p);
        }
    }
    search->found = mdl_ids_sort(ids, search->found, p);
    search->more = ids->nelts == look || search->found->nelts > filter->limit;
    while (search->found->nelts > filter->limit) {
        apr_array_pop(search->found);
    }
    return rv;
}

apr_status_t mdl_order_lines(mdl_db_t *db, const apr_array_header_t *ids,
                             apr_array_header_t **found, apr_pool_t *p)
{
    apr_array_header_t *lines = apr_array_make(p, ids->nelts, sizeof(mdl_order_line_t *));
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(ORDER_LINES_BY_ID, ids));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(lines, mdl_order_line_t *) = line_of_row(rows, p);
    }
    *found = mdl_ids_sort(ids, lines, p);
    return rv;
}

/* Reads the lines of the orders that the filter found, in the same order. */
static apr_status_t search_filtered(mdl_db_t *db, mdl_order_search_t *search, apr_pool_t *p)
{
    apr_array_header_t *ids = apr_array_make(p, search->filter.limit, sizeof(apr_int64_t));
    const apr_array_header_t *places;
    apr_status_t rv = mdl_order_filter(db, p, &search->filter);

    places = search->filter.places;
    for (int i = 0; rv == APR_SUCCESS && i < places->nelts; i++) {
        APR_ARRAY_PUSH(ids, apr_int64_t) = APR_ARRAY_IDX(places, i, mdl_order_place_t).id;
    }
    return rv == APR_SUCCESS ? mdl_order_lines(db, ids, &search->found, p) : rv;
}

apr_status_t mdl_order_search(mdl_db_t *db, apr_pool_t *p, mdl_order_search_t *search)
{
    search->found = apr_array_make(p, search->filter.limit, sizeof(mdl_order_line_t *));
    search->more = 0;
    if (search->text != NULL && strchr(search->text, '@') == NULL) {
        return search_words(db, search, p);
    }
    search->filter.email = search->text;
    return search_filtered(db, search, p);
}
