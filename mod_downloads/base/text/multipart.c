#include "base/text/multipart.h"

#include <string.h>

#include <apr_cstr.h>
#include <apr_strings.h>

#include "base/text/parameter.h"

#define TYPE "multipart/form-data"
#define CRLF "\r\n"

/* What comes next. */
typedef enum {
    MULTIPART_OPENING, /* the first boundary */
    MULTIPART_BEHIND,  /* a line's end, or the first "-" of the last boundary */
    MULTIPART_LINE,    /* the LF behind a boundary */
    MULTIPART_DASH,    /* the second "-" of the last boundary */
    MULTIPART_HEADERS,
    MULTIPART_BYTES,
    MULTIPART_OVER /* at most a line's end */
} multipart_state_t;

struct mdl_multipart_t {
    mdl_multipart_sink_t sink;
    apr_pool_t *pool;
    multipart_state_t state;
    char delimiter[4 + MDL_MULTIPART_BOUNDARY_MAX + 1]; /* CRLF, "--" and the boundary */
    apr_size_t length;                                  /* of the delimiter */
    apr_size_t matched; /* how much of it, or of the last line's end, has come */
    apr_int64_t taken;  /* bytes */
    apr_size_t used;    /* of headers */
    char headers[MDL_MULTIPART_HEADERS_MAX + 1];
};

static int boundary_is_valid(const char *boundary)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "'()+_,-./:=? ";
    apr_size_t length = strlen(boundary);

    return length > 0 && length <= MDL_MULTIPART_BOUNDARY_MAX &&
           strspn(boundary, allowed) == length && boundary[length - 1] != ' ';
}

mdl_multipart_t *mdl_multipart_make(const char *content_type, const mdl_multipart_sink_t *sink,
                                    apr_pool_t *p)
{
    apr_size_t type = strlen(TYPE);
    const char *boundary;
    mdl_multipart_t *multipart;

    if (content_type == NULL || apr_cstr_casecmpn(content_type, TYPE, type) != 0 ||
        strchr("; \t", content_type[type]) == NULL ||
        (boundary = mdl_parameter_get(content_type, "boundary", p)) == NULL ||
        !boundary_is_valid(boundary)) {
        return NULL;
    }
    multipart = apr_pcalloc(p, sizeof *multipart);
    multipart->sink = *sink;
    multipart->pool = p;
    apr_snprintf(multipart->delimiter, sizeof multipart->delimiter, CRLF "--%s", boundary);
    multipart->length = strlen(multipart->delimiter);
    multipart->matched = strlen(CRLF); /* the body's first line needs no line's end before it */
    return multipart;
}

/* --- a part's headers --- */

/* Whether a line, which is cut behind its name, has this one; *value gets what follows. */
static int header_is(const char *line, const char *name, const char **value)
{
    *value = line + strlen(line) + 1;
    *value += strspn(*value, " \t");
    return apr_cstr_casecmp(line, name) == 0;
}

static int header_leaves_bytes(const char *encoding)
{
    return apr_cstr_casecmp(encoding, "binary") == 0 || apr_cstr_casecmp(encoding, "8bit") == 0 ||
           apr_cstr_casecmp(encoding, "7bit") == 0;
}

static apr_status_t header_take(mdl_multipart_part_t *part, char *line)
{
    apr_size_t name = strcspn(line, ": \t");
    const char *value;

    if (name == 0 || line[name] != ':' || strpbrk(line, CRLF) != NULL) {
        return APR_EINVAL;
    }
    line[name] = '\0';
    if (header_is(line, "Content-Transfer-Encoding", &value)) {
        return header_leaves_bytes(value) ? APR_SUCCESS : APR_EINVAL;
    }
    if (header_is(line, "Content-Type", &value)) {
        part->content_type = value;
    } else if (header_is(line, "Content-Disposition", &value)) {
        if (part->disposition != NULL) {
            return APR_EINVAL;
        }
        part->disposition = value;
    }
    return APR_SUCCESS;
}

/* Headers end with an empty line. */
static apr_status_t multipart_begin_part(mdl_multipart_t *multipart)
{
    static const char type[] = "form-data";
    char *line = apr_pstrmemdup(multipart->pool, multipart->headers, multipart->used);
    mdl_multipart_part_t part = {0};
    apr_status_t rv = strlen(line) == multipart->used ? APR_SUCCESS : APR_EINVAL;

    while (rv == APR_SUCCESS && strncmp(line, CRLF, strlen(CRLF)) != 0) {
        char *end = strstr(line, CRLF);

        *end = '\0';
        rv = header_take(&part, line);
        line = end + strlen(CRLF);
    }
    if (rv != APR_SUCCESS || part.disposition == NULL ||
        apr_cstr_casecmpn(part.disposition, type, strlen(type)) != 0 ||
        strchr("; \t", part.disposition[strlen(type)]) == NULL ||
        (part.name = mdl_parameter_get(part.disposition, "name", multipart->pool)) == NULL) {
        return APR_EINVAL;
    }
    multipart->state = MULTIPART_BYTES;
    multipart->matched = 0;
    return multipart->sink.part(multipart->sink.baton, &part);
}

static int multipart_headers_end(const mdl_multipart_t *multipart)
{
    static const char end[] = CRLF CRLF;
    apr_size_t length = strlen(end);

    return multipart->used >= length &&
           memcmp(multipart->headers + multipart->used - length, end, length) == 0;
}

static apr_status_t multipart_read_header(mdl_multipart_t *multipart, char c)
{
    if (multipart->used == MDL_MULTIPART_HEADERS_MAX) {
        return APR_EINVAL;
    }
    multipart->headers[multipart->used++] = c;
    return multipart_headers_end(multipart) ? multipart_begin_part(multipart) : APR_SUCCESS;
}

/* --- the body --- */

/* Reads a byte outside of a part's bytes. */
static apr_status_t multipart_step(mdl_multipart_t *multipart, char c)
{
    multipart->taken++;
    switch (multipart->state) {
    case MULTIPART_OPENING:
        if (c != multipart->delimiter[multipart->matched++]) {
            return APR_EINVAL;
        }
        if (multipart->matched == multipart->length) {
            multipart->state = MULTIPART_BEHIND;
        }
        return APR_SUCCESS;
    case MULTIPART_BEHIND:
        multipart->state = c == '-' ? MULTIPART_DASH : MULTIPART_LINE;
        return c == '-' || c == '\r' ? APR_SUCCESS : APR_EINVAL;
    case MULTIPART_LINE:
        multipart->state = MULTIPART_HEADERS;
        multipart->used = 0;
        return c == '\n' ? APR_SUCCESS : APR_EINVAL;
    case MULTIPART_DASH:
        multipart->state = MULTIPART_OVER;
        multipart->matched = 0;
        return c == '-' ? APR_SUCCESS : APR_EINVAL;
    case MULTIPART_HEADERS:
        return multipart_read_header(multipart, c);
    case MULTIPART_OVER:
        return multipart->matched < strlen(CRLF) && c == CRLF[multipart->matched++] ? APR_SUCCESS
                                                                                    : APR_EINVAL;
    case MULTIPART_BYTES:
        break;
    }
    return APR_EINVAL;
}

static apr_status_t multipart_pass(mdl_multipart_t *multipart, const char *bytes, apr_size_t length)
{
    return length > 0 ? multipart->sink.bytes(multipart->sink.baton, bytes, length) : APR_SUCCESS;
}

/*
 * Passes a part's bytes on, up to the next delimiter or to the end, and moves *at behind them.  A
 * delimiter has its only CR at its beginning, so after a mismatch no part of what had matched can
 * begin another.  What matches at the end of the bytes is held back.
 */
static apr_status_t multipart_read_bytes(mdl_multipart_t *multipart, const char **at,
                                         const char *end)
{
    const char *from = *at, *to = *at;
    apr_size_t held = multipart->matched; /* before these bytes */
    apr_size_t ours;
    apr_status_t rv;

    while (to < end && multipart->matched < multipart->length) {
        if (*to == multipart->delimiter[multipart->matched]) {
            multipart->matched++;
            to++;
            continue;
        }
        if (held > 0 &&
            (rv = multipart_pass(multipart, multipart->delimiter, held)) != APR_SUCCESS) {
            return rv;
        }
        held = 0;
        if (multipart->matched == 0) {
            to = memchr(to, '\r', (apr_size_t)(end - to));
            to = to != NULL ? to : end;
        }
        multipart->matched = 0;
    }
    ours = multipart->matched - held; /* what matches of these bytes */
    multipart->taken += to - from;
    *at = to;
    if (multipart->matched == multipart->length) {
        multipart->state = MULTIPART_BEHIND;
    }
    return multipart_pass(multipart, from, (apr_size_t)(to - from) - ours);
}

apr_status_t mdl_multipart_read(mdl_multipart_t *multipart, const char *bytes, apr_size_t length)
{
    const char *end = bytes + length;
    apr_status_t rv = APR_SUCCESS;

    while (rv == APR_SUCCESS && bytes < end) {
        rv = multipart->state == MULTIPART_BYTES ? multipart_read_bytes(multipart, &bytes, end)
                                                 : multipart_step(multipart, *bytes++);
    }
    return rv;
}

int mdl_multipart_is_over(const mdl_multipart_t *multipart)
{
    return multipart->state == MULTIPART_OVER;
}

apr_int64_t mdl_multipart_last_length(const mdl_multipart_t *multipart, apr_int64_t length)
{
    apr_int64_t rest = length - multipart->taken - (apr_int64_t)multipart->length -
                       (apr_int64_t)strlen("--" CRLF);

    return rest >= 0 ? rest : -1;
}
