/*
 * The output of downloadsctl: text for people, aligned in columns, or with --json one JSON
 * document.  A record is a struct whose members are described by fields.
 */
#ifndef MDL_CTL_PRINTER_H
#define MDL_CTL_PRINTER_H

#include <apr_pools.h>
#include <apr_tables.h>

#include "base/text/json.h"

typedef enum {
    MDL_FIELD_TEXT,   /* const char *, NULL for none */
    MDL_FIELD_ENUM,   /* an enum, by its names */
    MDL_FIELD_INT,    /* int, -1 for none */
    MDL_FIELD_FLAG,   /* int: yes or no */
    MDL_FIELD_NUMBER, /* apr_int64_t */
    MDL_FIELD_ID,     /* apr_int64_t, 0 for none */
    MDL_FIELD_SIZE,   /* apr_int64_t, -1 for unknown */
    MDL_FIELD_TIME    /* apr_time_t, 0 for never */
} mdl_field_type_t;

typedef struct {
    const char *name; /* in JSON; in capitals the column's heading. NULL ends the list */
    mdl_field_type_t type;
    apr_size_t offset;        /* of the member */
    int listed;               /* whether tables for people show it */
    const char *const *names; /* of an enum; else NULL */
} mdl_field_t;

typedef struct mdl_printer_t mdl_printer_t;

/** Creates a printer, which prints for people until mdl_printer_use_json. */
mdl_printer_t *mdl_printer_create(apr_pool_t *p);

void mdl_printer_use_json(mdl_printer_t *output);
int mdl_printer_is_json(const mdl_printer_t *output);

/** From now on people read only what they asked for, and what is wrong. */
void mdl_printer_be_quiet(mdl_printer_t *output);

/**
 * Prints an array of pointers to records: a table of the listed fields, or the sentence empty when
 * there are no records; as JSON an array of objects with every field.
 */
void mdl_printer_list(mdl_printer_t *output, const mdl_field_t *fields,
                      const apr_array_header_t *records, const char *empty);

/** Prints one record: a line for each field, or as JSON an object. */
void mdl_printer_record(mdl_printer_t *output, const mdl_field_t *fields, const void *record);

/** Adds every field of a record to an object. */
void mdl_printer_fill(mdl_json_t *object, const mdl_field_t *fields, const void *record);

/** Prints the formatted line, but not with --quiet, or as JSON the record as an object. */
void mdl_printer_result(mdl_printer_t *output, const mdl_field_t *fields, const void *record,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));

/** Prints a line for people; nothing with --json. */
void mdl_printer_line(mdl_printer_t *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Prints a line for people about what went well; nothing with --json or --quiet. */
void mdl_printer_note(mdl_printer_t *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Prints what a script needs of a result, such as an id, with --quiet; else nothing. */
void mdl_printer_bare(mdl_printer_t *output, const char *text);

/** Prints the document of --json; nothing for people. */
void mdl_printer_document(mdl_printer_t *output, const mdl_json_t *document);

/** Prints an error: on standard error, or as the document {"error":{"code","message"}}. */
void mdl_printer_error(mdl_printer_t *output, const char *code, const char *message);

/** Flushes standard output; false if not everything could be written. */
int mdl_printer_finish(void);

#endif
