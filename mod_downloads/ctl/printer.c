#include "ctl/printer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"

#define GAP  "  "
#define NONE "-"

struct mdl_printer_t {
    apr_pool_t *p;
    int json;
    int quiet;
};

mdl_printer_t *mdl_printer_create(apr_pool_t *p)
{
    mdl_printer_t *output = apr_pcalloc(p, sizeof *output);

    output->p = p;
    return output;
}

void mdl_printer_use_json(mdl_printer_t *output)
{
    output->json = 1;
}

void mdl_printer_be_quiet(mdl_printer_t *output)
{
    output->quiet = 1;
}

int mdl_printer_is_json(const mdl_printer_t *output)
{
    return output->json;
}

/* Replaces control characters: text from others must not move the cursor or break a line. */
static const char *text_printable(const char *text, apr_pool_t *p)
{
    char *copy = apr_pstrdup(p, text);

    for (char *c = copy; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        unsigned char next = (unsigned char)c[1];

        if (byte < 0x20 || byte == 0x7F) {
            *c = '?';
        } else if (byte == 0xC2 && next >= 0x80 && next <= 0x9F) {
            c[0] = c[1] = '?';
        }
    }
    return copy;
}

static const void *field_member(const mdl_field_t *field, const void *record)
{
    return (const char *)record + field->offset;
}

static int field_is_text(const mdl_field_t *field)
{
    return field->type == MDL_FIELD_TEXT || field->type == MDL_FIELD_ENUM;
}

static const char *field_string(const mdl_field_t *field, const void *record)
{
    const void *member = field_member(field, record);

    return field->type == MDL_FIELD_ENUM ? field->names[*(const int *)member]
                                         : *(const char *const *)member;
}

static apr_int64_t field_integer(const mdl_field_t *field, const void *record)
{
    return field->type == MDL_FIELD_INT || field->type == MDL_FIELD_FLAG
               ? *(const int *)field_member(field, record)
               : *(const apr_int64_t *)field_member(field, record);
}

/* Whether a number stands for no value. */
static int number_is_none(const mdl_field_t *field, apr_int64_t value)
{
    return ((field->type == MDL_FIELD_SIZE || field->type == MDL_FIELD_INT) && value < 0) ||
           ((field->type == MDL_FIELD_ID || field->type == MDL_FIELD_TIME) && value == 0);
}

static const char *field_text(const mdl_field_t *field, const void *record, apr_pool_t *p)
{
    apr_int64_t value;

    if (field_is_text(field)) {
        const char *text = field_string(field, record);

        return text != NULL && *text ? text_printable(text, p) : NONE;
    }
    value = field_integer(field, record);
    if (field->type == MDL_FIELD_FLAG) {
        return value ? "yes" : "no";
    }
    if (number_is_none(field, value)) {
        return NONE;
    }
    return field->type == MDL_FIELD_TIME ? mdl_clock_rfc3339(value, p)
                                         : apr_psprintf(p, "%" APR_INT64_T_FMT, value);
}

void mdl_printer_fill(mdl_json_t *object, const mdl_field_t *fields, const void *record)
{
    for (const mdl_field_t *field = fields; field->name != NULL; field++) {
        apr_int64_t value;

        if (field_is_text(field)) {
            mdl_json_add_string(object, field->name, field_string(field, record));
            continue;
        }
        value = field_integer(field, record);
        if (number_is_none(field, value)) {
            mdl_json_add_null(object, field->name);
        } else if (field->type == MDL_FIELD_FLAG) {
            mdl_json_add_bool(object, field->name, value != 0);
        } else if (field->type == MDL_FIELD_TIME) {
            mdl_json_add_time(object, field->name, value);
        } else {
            mdl_json_add_int(object, field->name, value);
        }
    }
}

/* Estimates the width on a terminal by the number of code points. */
static int text_width(const char *text)
{
    int width = 0;

    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return width;
}

static int field_is_right_aligned(const mdl_field_t *field)
{
    return !field_is_text(field) && field->type != MDL_FIELD_TIME && field->type != MDL_FIELD_FLAG;
}

static void print_cell(const char *text, int width, int right, int last)
{
    int padding = width - text_width(text);

    if (right) {
        printf("%*s%s", padding, "", text);
    } else {
        printf("%s%*s", text, last ? 0 : padding, "");
    }
    fputs(last ? "\n" : GAP, stdout);
}

static const char *field_heading(const mdl_field_t *field, apr_pool_t *p)
{
    char *heading = apr_pstrdup(p, field->name);

    for (char *c = heading; *c != '\0'; c++) {
        *c = *c == '_' ? ' ' : (char)apr_toupper(*c);
    }
    return heading;
}

/* Prints the headings of the listed fields, then a row for each record. */
static void print_table(const mdl_printer_t *output, const mdl_field_t *fields,
                        const apr_array_header_t *records)
{
    apr_array_header_t *columns = apr_array_make(output->p, 8, sizeof(const mdl_field_t *));
    const char **cells;
    int count;
    int *widths;

    for (const mdl_field_t *field = fields; field->name != NULL; field++) {
        if (field->listed) {
            APR_ARRAY_PUSH(columns, const mdl_field_t *) = field;
        }
    }
    count = columns->nelts;
    widths = apr_pcalloc(output->p, (apr_size_t)count * sizeof *widths);
    cells = apr_pcalloc(output->p,
                        (apr_size_t)count * (apr_size_t)(records->nelts + 1) * sizeof *cells);
    for (int i = 0; i < count * (records->nelts + 1); i++) {
        const mdl_field_t *field = APR_ARRAY_IDX(columns, i % count, const mdl_field_t *);

        cells[i] = i < count
                       ? field_heading(field, output->p)
                       : field_text(field, APR_ARRAY_IDX(records, i / count - 1, const void *),
                                    output->p);
        if (text_width(cells[i]) > widths[i % count]) {
            widths[i % count] = text_width(cells[i]);
        }
    }
    for (int i = 0; i < count * (records->nelts + 1); i++) {
        const mdl_field_t *field = APR_ARRAY_IDX(columns, i % count, const mdl_field_t *);

        print_cell(cells[i], widths[i % count], field_is_right_aligned(field),
                   i % count == count - 1);
    }
}

void mdl_printer_list(mdl_printer_t *output, const mdl_field_t *fields,
                      const apr_array_header_t *records, const char *empty)
{
    if (output->json) {
        mdl_json_t *array = mdl_json_array(output->p);

        for (int i = 0; i < records->nelts; i++) {
            mdl_printer_fill(mdl_json_add_object(array, NULL), fields,
                             APR_ARRAY_IDX(records, i, const void *));
        }
        mdl_printer_document(output, array);
    } else if (records->nelts == 0) {
        puts(empty);
    } else {
        print_table(output, fields, records);
    }
}

void mdl_printer_record(mdl_printer_t *output, const mdl_field_t *fields, const void *record)
{
    int width = 0;

    if (output->json) {
        mdl_json_t *object = mdl_json_object(output->p);

        mdl_printer_fill(object, fields, record);
        mdl_printer_document(output, object);
        return;
    }
    for (const mdl_field_t *field = fields; field->name != NULL; field++) {
        width = text_width(field->name) > width ? text_width(field->name) : width;
    }
    for (const mdl_field_t *field = fields; field->name != NULL; field++) {
        print_cell(field->name, width, 0, 0);
        puts(field_text(field, record, output->p));
    }
}

static void print_line(const mdl_printer_t *output, const char *format, va_list arguments)
{
    apr_pool_t *scratch; /* because a command may print any number of lines */

    apr_pool_create(&scratch, output->p);
    apr_pool_tag(scratch, "mdl_printer_line");
    puts(text_printable(apr_pvsprintf(scratch, format, arguments), scratch));
    apr_pool_destroy(scratch);
}

void mdl_printer_result(mdl_printer_t *output, const mdl_field_t *fields, const void *record,
                        const char *format, ...)
{
    va_list arguments;

    if (output->json) {
        mdl_printer_record(output, fields, record);
        return;
    }
    if (output->quiet) {
        return;
    }
    va_start(arguments, format);
    print_line(output, format, arguments);
    va_end(arguments);
}

void mdl_printer_line(mdl_printer_t *output, const char *format, ...)
{
    va_list arguments;

    if (output->json) {
        return;
    }
    va_start(arguments, format);
    print_line(output, format, arguments);
    va_end(arguments);
}

void mdl_printer_note(mdl_printer_t *output, const char *format, ...)
{
    va_list arguments;

    if (output->json || output->quiet) {
        return;
    }
    va_start(arguments, format);
    print_line(output, format, arguments);
    va_end(arguments);
}

void mdl_printer_bare(mdl_printer_t *output, const char *text)
{
    if (output->quiet) {
        mdl_printer_line(output, "%s", text);
    }
}

void mdl_printer_document(mdl_printer_t *output, const mdl_json_t *document)
{
    if (output->json) {
        puts(mdl_json_pretty(document, output->p));
    }
}

void mdl_printer_error(mdl_printer_t *output, const char *code, const char *message)
{
    mdl_json_t *document = mdl_json_object(output->p);
    mdl_json_t *error = mdl_json_add_object(document, "error");

    if (!output->json) {
        fprintf(stderr, "downloadsctl: %s\n", text_printable(message, output->p));
        return;
    }
    mdl_json_add_string(error, "code", code);
    mdl_json_add_string(error, "message", message);
    mdl_printer_document(output, document);
}

int mdl_printer_finish(void)
{
    return fflush(stdout) == 0 && !ferror(stdout);
}
