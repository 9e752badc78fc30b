#include "base/zip/zip.h"

#include <string.h>

#include <apr_tables.h>

#define LOCAL_LENGTH     30
#define CENTRAL_LENGTH   46
#define END_LENGTH       22
#define END64_LENGTH     56
#define LOCATOR64_LENGTH 20

#define UNIX         3
#define VERSION      10 /* 1.0: stored files */
#define VERSION64    45 /* 4.5: ZIP64 */
#define UTF8_FLAG    0x0800
#define REGULAR_FILE 0100644u /* rw-r--r-- */
#define FIELD64      0x0001
#define NO_16        0xffffu /* the number is in a ZIP64 field or record */
#define NO_32        0xffffffffu

typedef struct {
    const char *name;
    apr_int64_t size;
    apr_int64_t local;   /* offset of its local header */
    apr_int64_t central; /* offset of its header in the central directory */
    apr_uint32_t crc32;
    apr_uint16_t date; /* in MS-DOS's format */
    apr_uint16_t time;
} entry_t;

struct mdl_zip_t {
    apr_array_header_t *entries; /* entry_t */
    mdl_zip_names_t *names;      /* until mdl_zip_end */
    apr_int64_t directory;       /* offset of the central directory */
    apr_int64_t end;             /* offset of its end */
    apr_int64_t size;
};

static entry_t *entry_at(const mdl_zip_t *zip, int i)
{
    return &APR_ARRAY_IDX(zip->entries, i, entry_t);
}

mdl_zip_t *mdl_zip_begin(int entries, apr_pool_t *p)
{
    mdl_zip_t *zip = apr_pcalloc(p, sizeof *zip);

    zip->entries = apr_array_make(p, entries, sizeof(entry_t));
    zip->names = mdl_zip_names_begin(entries, p);
    return zip;
}

static void entry_set_time(entry_t *entry, apr_time_t when)
{
    apr_time_exp_t t;

    apr_time_exp_gmt(&t, when);
    if (t.tm_year < 80) {
        t = (apr_time_exp_t){.tm_year = 80, .tm_mday = 1};
    } else if (t.tm_year > 207) {
        t = (apr_time_exp_t){
            .tm_year = 207, .tm_mon = 11, .tm_mday = 31, .tm_hour = 23, .tm_min = 59, .tm_sec = 58};
    }
    entry->date = (apr_uint16_t)((t.tm_year - 80) << 9 | (t.tm_mon + 1) << 5 | t.tm_mday);
    entry->time = (apr_uint16_t)(t.tm_hour << 11 | t.tm_min << 5 | t.tm_sec / 2);
}

void mdl_zip_add(mdl_zip_t *zip, const char *filename, apr_int64_t size, apr_uint32_t crc32,
                 apr_time_t modified_at)
{
    entry_t *entry = apr_array_push(zip->entries);

    *entry = (entry_t){
        .name = mdl_zip_names_add(zip->names, filename), .size = size, .crc32 = crc32};
    entry_set_time(entry, modified_at);
}

/* --- lengths --- */

static int needs_64(apr_int64_t number)
{
    return number >= (apr_int64_t)NO_32;
}

static apr_int64_t local_length(const entry_t *entry)
{
    return LOCAL_LENGTH + (apr_int64_t)strlen(entry->name) + (needs_64(entry->size) ? 4 + 16 : 0);
}

/* The length of the ZIP64 field in the central directory: only the numbers that need it. */
static int field64_length(const entry_t *entry)
{
    int length = (needs_64(entry->size) ? 16 : 0) + (needs_64(entry->local) ? 8 : 0);

    return length > 0 ? 4 + length : 0;
}

static apr_int64_t central_length(const entry_t *entry)
{
    return CENTRAL_LENGTH + (apr_int64_t)strlen(entry->name) + field64_length(entry);
}

static int end_needs_64(const mdl_zip_t *zip)
{
    return zip->entries->nelts >= (int)NO_16 || needs_64(zip->directory) ||
           needs_64(zip->end - zip->directory);
}

void mdl_zip_end(mdl_zip_t *zip)
{
    apr_int64_t offset = 0;

    mdl_zip_names_end(zip->names);
    for (int i = 0; i < zip->entries->nelts; i++) {
        entry_t *entry = entry_at(zip, i);

        entry->local = offset;
        offset += local_length(entry) + entry->size;
    }
    zip->directory = offset;
    for (int i = 0; i < zip->entries->nelts; i++) {
        entry_at(zip, i)->central = offset;
        offset += central_length(entry_at(zip, i));
    }
    zip->end = offset;
    zip->size = offset + (end_needs_64(zip) ? END64_LENGTH + LOCATOR64_LENGTH : 0) + END_LENGTH;
}

apr_int64_t mdl_zip_size(const mdl_zip_t *zip)
{
    return zip->size;
}

const char *mdl_zip_name(const mdl_zip_t *zip, int entry)
{
    return entry_at(zip, entry)->name;
}

apr_int64_t mdl_zip_data(const mdl_zip_t *zip, int entry)
{
    return entry_at(zip, entry)->local + local_length(entry_at(zip, entry));
}

/* --- bytes --- */

/* Little-endian, as all numbers of the format. */
static unsigned char *put(unsigned char *to, int bytes, apr_uint64_t value)
{
    for (; bytes > 0; bytes--, value >>= 8) {
        *to++ = (unsigned char)value;
    }
    return to;
}

static unsigned char *put_text(unsigned char *to, const char *text)
{
    apr_size_t length = strlen(text);

    memcpy(to, text, length);
    return to + length;
}

/* Writes a number, or the mark that the ZIP64 field has it. */
static unsigned char *put_32(unsigned char *to, apr_int64_t number)
{
    return put(to, 4, needs_64(number) ? NO_32 : (apr_uint64_t)number);
}

/* The fields that the local and the central header share, up to the extra field's length. */
static unsigned char *put_common(unsigned char *to, const entry_t *entry, int version, int field)
{
    to = put(to, 2, (apr_uint64_t)version);
    to = put(to, 2, UTF8_FLAG);
    to = put(to, 2, 0); /* stored */
    to = put(to, 2, entry->time);
    to = put(to, 2, entry->date);
    to = put(to, 4, entry->crc32);
    to = put_32(to, entry->size);
    to = put_32(to, entry->size);
    to = put(to, 2, strlen(entry->name));
    return put(to, 2, (apr_uint64_t)field);
}

static unsigned char *put_sizes_64(unsigned char *to, const entry_t *entry)
{
    to = put(to, 8, (apr_uint64_t)entry->size);
    return put(to, 8, (apr_uint64_t)entry->size);
}

static unsigned char *put_local(unsigned char *to, const entry_t *entry)
{
    int large = needs_64(entry->size);

    to = put_text(to, "PK\3\4");
    to = put_common(to, entry, large ? VERSION64 : VERSION, large ? 4 + 16 : 0);
    to = put_text(to, entry->name);
    if (large) {
        to = put(to, 2, FIELD64);
        to = put(to, 2, 16);
        to = put_sizes_64(to, entry);
    }
    return to;
}

static unsigned char *put_central(unsigned char *to, const entry_t *entry)
{
    int field = field64_length(entry);
    int version = field > 0 ? VERSION64 : VERSION;

    to = put_text(to, "PK\1\2");
    to = put(to, 2, (apr_uint64_t)(UNIX << 8 | version));
    to = put_common(to, entry, version, field);
    to = put(to, 2, 0); /* comment */
    to = put(to, 2, 0); /* disk */
    to = put(to, 2, 0); /* internal attributes */
    to = put(to, 4, (apr_uint64_t)REGULAR_FILE << 16);
    to = put_32(to, entry->local);
    to = put_text(to, entry->name);
    if (field > 0) {
        to = put(to, 2, FIELD64);
        to = put(to, 2, (apr_uint64_t)field - 4);
        to = needs_64(entry->size) ? put_sizes_64(to, entry) : to;
        to = needs_64(entry->local) ? put(to, 8, (apr_uint64_t)entry->local) : to;
    }
    return to;
}

static unsigned char *put_end_64(unsigned char *to, const mdl_zip_t *zip)
{
    apr_uint64_t count = (apr_uint64_t)zip->entries->nelts;

    to = put_text(to, "PK\6\6");
    to = put(to, 8, END64_LENGTH - 12);
    to = put(to, 2, UNIX << 8 | VERSION64);
    to = put(to, 2, VERSION64);
    to = put(to, 4, 0); /* this disk */
    to = put(to, 4, 0); /* the directory's */
    to = put(to, 8, count);
    to = put(to, 8, count);
    to = put(to, 8, (apr_uint64_t)(zip->end - zip->directory));
    to = put(to, 8, (apr_uint64_t)zip->directory);
    to = put_text(to, "PK\6\7");
    to = put(to, 4, 0);
    to = put(to, 8, (apr_uint64_t)zip->end);
    return put(to, 4, 1); /* disks */
}

static unsigned char *put_end(unsigned char *to, const mdl_zip_t *zip)
{
    apr_uint64_t count = (apr_uint64_t)zip->entries->nelts;

    if (end_needs_64(zip)) {
        to = put_end_64(to, zip);
    }
    count = count < NO_16 ? count : NO_16;
    to = put_text(to, "PK\5\6");
    to = put(to, 2, 0); /* this disk */
    to = put(to, 2, 0); /* the directory's */
    to = put(to, 2, count);
    to = put(to, 2, count);
    to = put_32(to, zip->end - zip->directory);
    to = put_32(to, zip->directory);
    return put(to, 2, 0); /* comment */
}

/* --- pieces --- */

static apr_int64_t local_of(const entry_t *entry)
{
    return entry->local;
}

static apr_int64_t central_of(const entry_t *entry)
{
    return entry->central;
}

/* The last entry that begins at or before offset. */
static int zip_find_entry(const mdl_zip_t *zip, apr_int64_t (*begin_of)(const entry_t *),
                          apr_int64_t offset)
{
    int low = 0, high = zip->entries->nelts - 1;

    while (low < high) {
        int middle = high - (high - low) / 2;

        if (begin_of(entry_at(zip, middle)) <= offset) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* Makes a piece of the header that ends at end, from byte skip on. */
static void piece_set_header(mdl_zip_piece_t *piece, const unsigned char *end, apr_int64_t skip)
{
    piece->entry = -1;
    piece->offset = 0;
    piece->length = end - piece->header - skip;
    memmove(piece->header, piece->header + skip, (apr_size_t)piece->length);
}

void mdl_zip_piece(const mdl_zip_t *zip, apr_int64_t offset, mdl_zip_piece_t *piece)
{
    const entry_t *entry;
    apr_int64_t data;

    if (offset >= zip->end) {
        piece_set_header(piece, put_end(piece->header, zip), offset - zip->end);
        return;
    }
    if (offset >= zip->directory) {
        entry = entry_at(zip, zip_find_entry(zip, central_of, offset));
        piece_set_header(piece, put_central(piece->header, entry), offset - entry->central);
        return;
    }
    piece->entry = zip_find_entry(zip, local_of, offset);
    entry = entry_at(zip, piece->entry);
    data = mdl_zip_data(zip, piece->entry);
    if (offset < data) {
        piece_set_header(piece, put_local(piece->header, entry), offset - entry->local);
        return;
    }
    piece->offset = offset - data;
    piece->length = entry->size - piece->offset;
}
