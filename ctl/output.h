/*
 * What downloadsctl prints on standard output: text for people, aligned in columns, or with --json
 * one JSON document.  A record is a struct whose members are described by fields.
 */
#ifndef MDL_CTL_OUTPUT_H
#define MDL_CTL_OUTPUT_H

#include <apr_pools.h>
#include <apr_tables.h>

#include "base/json.h"

typedef enum {
    MDL_FIELD_TEXT,   /* const char *, NULL for none */
    MDL_FIELD_INT,    /* int */
    MDL_FIELD_NUMBER, /* apr_int64_t */
    MDL_FIELD_ID,     /* apr_int64_t, 0 for none */
    MDL_FIELD_SIZE,   /* apr_int64_t, -1 for not known */
    MDL_FIELD_TIME    /* apr_time_t, 0 for never */
} mdl_field_type_t;

typedef struct {
    const char *name; /* JSON's; in capitals a column's heading.  NULL ends the list */
    mdl_field_type_t type;
    apr_size_t offset; /* of the member */
    int listed;        /* whether a table for people has it */
} mdl_field_t;

typedef struct mdl_output_t mdl_output_t;

/** Makes an output for people. */
mdl_output_t *mdl_output_create(apr_pool_t *p);

void mdl_output_use_json(mdl_output_t *output);
int mdl_output_is_json(const mdl_output_t *output);

/**
 * Prints an array of pointers to records: a table of the listed fields, or the sentence empty when
 * there is none; as JSON an array of objects with every field.
 */
void mdl_output_list(mdl_output_t *output, const mdl_field_t *fields,
                     const apr_array_header_t *records, const char *empty);

/** Prints one record: a line for each field, or an object. */
void mdl_output_record(mdl_output_t *output, const mdl_field_t *fields, const void *record);

/** Adds every field of a record to an object. */
void mdl_output_fill(mdl_json_t *object, const mdl_field_t *fields, const void *record);

/** Prints the line for people, or one record as an object. */
void mdl_output_result(mdl_output_t *output, const mdl_field_t *fields, const void *record,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

/** Prints a line for people; nothing with --json. */
void mdl_output_line(mdl_output_t *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Prints the document of --json; nothing for people. */
void mdl_output_document(mdl_output_t *output, const mdl_json_t *document);

/** Tells an error: on standard error, or as the document {"error":{"code","message"}}. */
void mdl_output_error(mdl_output_t *output, const char *code, const char *message);

/** Writes what is buffered; false when not everything could be written. */
int mdl_output_finish(void);

#endif
