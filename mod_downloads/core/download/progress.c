#include "core/download/progress.h"

#include <stdlib.h>
#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

static mdl_progress_t *progress_at(const apr_array_header_t *list, int i)
{
    return &APR_ARRAY_IDX(list, i, mdl_progress_t);
}

static mdl_progress_part_t *progress_part(apr_uint64_t version, apr_int64_t size,
                                          mdl_coverage_t *ranges, apr_pool_t *p)
{
    mdl_progress_part_t *part = apr_palloc(p, sizeof *part);

    *part = (mdl_progress_part_t){.version = version, .size = size, .ranges = ranges};
    return part;
}

/* --- layouts --- */

/* The number of files that begin before an offset. */
static int layout_count_before(const mdl_layout_t *layout, apr_int64_t offset)
{
    int from = 0, to = layout->count;

    while (from < to) {
        int middle = from + (to - from) / 2;

        if (layout->files[middle].from < offset) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

mdl_layout_t mdl_layout_part(const mdl_layout_t *layout, apr_int64_t from, apr_int64_t to)
{
    int first = layout_count_before(layout, from);
    int end = layout_count_before(layout, to + 1);

    first -= first > 0;
    return (mdl_layout_t){.count = end - first, .files = layout->files + first};
}

apr_uint64_t mdl_progress_version(const unsigned char *sha256)
{
    apr_uint64_t version = 0;

    for (int i = 0; i < 8; i++) {
        version = version << 8 | sha256[i];
    }
    return version;
}

const char *mdl_progress_version_text(apr_uint64_t version, apr_pool_t *p)
{
    return apr_psprintf(p, "%016" APR_UINT64_T_HEX_FMT, version);
}

static int layout_file_is_whole(const mdl_layout_file_t *file, const mdl_coverage_t *delivered)
{
    if (file->size == 0) {
        return file->from == 0 || mdl_coverage_has(delivered, file->from - 1, file->from);
    }
    return mdl_coverage_has(delivered, file->from, file->from + file->size);
}

/* NULL: nothing was delivered. */
static mdl_progress_part_t *layout_file_part(const mdl_layout_file_t *file,
                                             const mdl_coverage_t *delivered, apr_pool_t *p)
{
    mdl_coverage_t *ranges = mdl_coverage_part(delivered, file->from, file->from + file->size, p);

    return ranges != NULL ? progress_part(file->version, file->size, ranges, p) : NULL;
}

apr_array_header_t *mdl_progress_of(const mdl_layout_t *layout, const mdl_coverage_t *delivered,
                                    apr_pool_t *p)
{
    apr_array_header_t *list = apr_array_make(p, 1, sizeof(mdl_progress_t));
    mdl_coverage_t rest = *delivered;

    for (int i = 0; i < layout->count; i++) {
        const mdl_layout_file_t *file = &layout->files[i];
        mdl_progress_t progress = {.asset_id = file->asset_id};

        rest = mdl_coverage_from(&rest, file->from);
        progress.is_whole = layout_file_is_whole(file, &rest);
        if (!progress.is_whole) {
            progress.part = layout_file_part(file, &rest, p);
        }
        if (progress.is_whole || progress.part != NULL) {
            APR_ARRAY_PUSH(list, mdl_progress_t) = progress;
        }
    }
    return list;
}

apr_array_header_t *mdl_progress_begin(const mdl_layout_t *layout, int with_versions, apr_pool_t *p)
{
    apr_array_header_t *list = apr_array_make(p, layout->count, sizeof(mdl_progress_t));

    for (int i = 0; i < layout->count; i++) {
        const mdl_layout_file_t *file = &layout->files[i];
        mdl_progress_t progress = {.asset_id = file->asset_id};

        if (with_versions && file->asset_id != MDL_DIRECTORY_ID) {
            progress.part = progress_part(file->version, file->size, mdl_coverage_make(p), p);
        }
        APR_ARRAY_PUSH(list, mdl_progress_t) = progress;
    }
    return list;
}

void mdl_progress_add(mdl_progress_t *progress, const mdl_progress_t *more, apr_pool_t *p)
{
    if (progress->is_whole || more->is_whole) {
        progress->is_whole = 1;
        return;
    }
    if (more->part == NULL) {
        return;
    }
    if (progress->part == NULL || progress->part->version != more->part->version) {
        progress->part = progress_part(more->part->version, more->part->size, mdl_coverage_make(p),
                                       p);
    }
    mdl_coverage_join(progress->part->ranges, more->part->ranges);
    progress->is_whole = mdl_coverage_is_whole(progress->part->ranges, progress->part->size);
}

mdl_progress_t *mdl_progress_find(const apr_array_header_t *list, apr_int64_t asset_id, int *next)
{
    for (int i = 0; i < list->nelts; i++) {
        mdl_progress_t *progress = progress_at(list, (*next + i) % list->nelts);

        if (progress->asset_id == asset_id) {
            *next = (*next + i + 1) % list->nelts;
            return progress;
        }
    }
    return NULL;
}

/* --- as text --- */

#define PART_TEXT  40 /* "/<version>/<size>/" */
#define RANGE_TEXT 40 /* "<first>-<last>," */

/* The length of the longest id in a list, with "=" and ";". */
static apr_size_t id_length(const apr_array_header_t *list)
{
    apr_size_t length = 3;
    apr_int64_t longest = 0;

    for (int i = 0; i < list->nelts; i++) {
        if (progress_at(list, i)->asset_id > longest) {
            longest = progress_at(list, i)->asset_id;
        }
    }
    for (; longest >= 10; longest /= 10) {
        length++;
    }
    return length;
}

/* At least the length of the text. */
static apr_size_t text_length(const apr_array_header_t *list)
{
    apr_size_t length = (apr_size_t)list->nelts * id_length(list) + 1;

    for (int i = 0; i < list->nelts; i++) {
        const mdl_progress_part_t *part = progress_at(list, i)->part;

        length += part != NULL ? PART_TEXT + (apr_size_t)part->ranges->nelts * RANGE_TEXT : 0;
    }
    return length;
}

static char *progress_write(char *to, const char *end, const mdl_progress_t *progress,
                            apr_pool_t *p)
{
    const mdl_progress_part_t *part = progress->part;

    to += apr_snprintf(to, (apr_size_t)(end - to), "%" APR_INT64_T_FMT, progress->asset_id);
    if (progress->is_whole) {
        *to++ = '=';
    } else if (part != NULL) {
        to += apr_snprintf(to, (apr_size_t)(end - to),
                           "/%016" APR_UINT64_T_HEX_FMT "/%" APR_INT64_T_FMT "/%s", part->version,
                           part->size, mdl_coverage_text(part->ranges, p));
    }
    return to;
}

const char *mdl_progress_text(const apr_array_header_t *list, apr_pool_t *p)
{
    apr_size_t length = text_length(list);
    char *text = apr_palloc(p, length), *to = text;

    for (int i = 0; i < list->nelts; i++) {
        if (i > 0) {
            *to++ = ';';
        }
        to = progress_write(to, text + length, progress_at(list, i), p);
    }
    *to = '\0';
    return text;
}

/* Reads "<version>/<size>/<ranges>". */
static const char *progress_read_part(const char *text, mdl_progress_t *progress, apr_pool_t *p)
{
    char *end;

    apr_uint64_t version = strtoull(text, &end, 16);
    apr_int64_t size = *end == '/' ? apr_strtoi64(end + 1, &end, 10) : 0;

    if (*end != '/') {
        return "";
    }
    progress->part = progress_part(version, size, mdl_coverage_read(end + 1, p), p);
    return end + strcspn(end, ";");
}

static int files_in(const char *text)
{
    int n = 1;

    while ((text = strchr(text, ';')) != NULL) {
        text++;
        n++;
    }
    return n;
}

apr_array_header_t *mdl_progress_read(const char *text, apr_pool_t *p)
{
    apr_array_header_t *list = apr_array_make(p, files_in(text), sizeof(mdl_progress_t));

    while (apr_isdigit(*text)) {
        char *end;
        mdl_progress_t progress = {.asset_id = apr_strtoi64(text, &end, 10)};

        text = end;
        progress.is_whole = *text == '=';
        if (*text == '/') {
            text = progress_read_part(text + 1, &progress, p);
        } else if (*text == '=') {
            text++;
        }
        APR_ARRAY_PUSH(list, mdl_progress_t) = progress;
        text += *text == ';';
    }
    return list;
}
