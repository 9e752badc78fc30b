#include "core/download/progress.h"

#include <stdlib.h>
#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

static mdl_progress_t *progress_at(const apr_array_header_t *list, int i)
{
    return &APR_ARRAY_IDX(list, i, mdl_progress_t);
}

/* --- of a body --- */

apr_uint64_t mdl_progress_version(const unsigned char *sha256)
{
    apr_uint64_t version = 0;

    for (int i = 0; i < 8; i++) {
        version = version << 8 | sha256[i];
    }
    return version;
}

static int layout_file_is_whole(const mdl_layout_file_t *file, const mdl_coverage_t *delivered)
{
    if (file->size == 0) {
        return file->from == 0 || mdl_coverage_has(delivered, file->from - 1, file->from);
    }
    return mdl_coverage_has(delivered, file->from, file->from + file->size);
}

apr_array_header_t *mdl_progress_of(const mdl_layout_t *layout, const mdl_coverage_t *delivered,
                                    apr_pool_t *p)
{
    apr_array_header_t *list = apr_array_make(p, 1, sizeof(mdl_progress_t));

    for (int i = 0; i < layout->count; i++) {
        const mdl_layout_file_t *file = &layout->files[i];
        mdl_progress_t progress = {.asset_id = file->asset_id,
                                   .is_whole = layout_file_is_whole(file, delivered)};

        if (!progress.is_whole) {
            progress.version = file->version;
            progress.size = file->size;
            progress.ranges = mdl_coverage_part(delivered, file->from, file->from + file->size, p);
        }
        if (progress.is_whole || progress.ranges->nelts > 0) {
            APR_ARRAY_PUSH(list, mdl_progress_t) = progress;
        }
    }
    return list;
}

apr_array_header_t *mdl_progress_begin(const mdl_layout_t *layout, apr_pool_t *p)
{
    apr_array_header_t *list = apr_array_make(p, layout->count, sizeof(mdl_progress_t));

    for (int i = 0; i < layout->count; i++) {
        APR_ARRAY_PUSH(list,
                       mdl_progress_t) = (mdl_progress_t){.asset_id = layout->files[i].asset_id};
    }
    return list;
}

void mdl_progress_add(mdl_progress_t *progress, const mdl_progress_t *more, apr_pool_t *p)
{
    if (progress->is_whole || (!more->is_whole && more->ranges == NULL)) {
        return;
    }
    if (!more->is_whole && (progress->ranges == NULL || progress->version != more->version)) {
        progress->version = more->version;
        progress->size = more->size;
        progress->ranges = mdl_coverage_make(p);
    }
    if (!more->is_whole) {
        mdl_coverage_join(progress->ranges, more->ranges);
    }
    progress->is_whole = more->is_whole || mdl_coverage_is_whole(progress->ranges, progress->size);
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

#define ID_TEXT   24                      /* with what is around it */
#define FILE_TEXT (ID_TEXT + 2 + 16 + 20) /* the longest, but for the ranges */

static char *progress_write(char *to, const mdl_progress_t *progress, const char *ranges)
{
    to += apr_snprintf(to, FILE_TEXT, "%" APR_INT64_T_FMT, progress->asset_id);
    if (progress->is_whole) {
        *to++ = '=';
    } else if (ranges != NULL) {
        to += apr_snprintf(to, FILE_TEXT, "/%016" APR_UINT64_T_HEX_FMT "/%" APR_INT64_T_FMT "/",
                           progress->version, progress->size);
        to = apr_cpystrn(to, ranges, strlen(ranges) + 1);
    }
    return to;
}

const char *mdl_progress_text(const apr_array_header_t *list, apr_pool_t *p)
{
    const char **ranges = apr_pcalloc(p, (apr_size_t)list->nelts * sizeof *ranges);
    apr_size_t length = 1;
    char *text, *end;

    for (int i = 0; i < list->nelts; i++) {
        const mdl_progress_t *progress = progress_at(list, i);

        if (!progress->is_whole && progress->ranges != NULL) {
            ranges[i] = mdl_coverage_text(progress->ranges, p);
            length += FILE_TEXT + strlen(ranges[i]);
        } else {
            length += ID_TEXT;
        }
    }
    text = end = apr_palloc(p, length);
    for (int i = 0; i < list->nelts; i++) {
        if (i > 0) {
            *end++ = ';';
        }
        end = progress_write(end, progress_at(list, i), ranges[i]);
    }
    *end = '\0';
    return text;
}

/* Reads "<version>/<size>/<ranges>". */
static const char *progress_read_ranges(const char *text, mdl_progress_t *progress, apr_pool_t *p)
{
    char *end;

    progress->version = strtoull(text, &end, 16);
    progress->size = *end == '/' ? apr_strtoi64(end + 1, &end, 10) : 0;
    if (*end != '/') {
        return "";
    }
    progress->ranges = mdl_coverage_read(end + 1, p);
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
            text = progress_read_ranges(text + 1, &progress, p);
        } else if (*text == '=') {
            text++;
        }
        APR_ARRAY_PUSH(list, mdl_progress_t) = progress;
        text += *text == ';';
    }
    return list;
}
