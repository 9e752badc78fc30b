/*
 * The plan of a ZIP archive: its bytes, where ZIP64 begins, and the names.  t/delivery/zip.t tests
 * that real programs read the archives.
 */
#include <apr_strings.h>
#include <apr_tables.h>

#include "base/zip/crc32.h"
#include "base/zip/zip.h"
#include "t/unit/tap.h"

#define GIB (APR_INT64_C(1) << 30)

/* 2026-11-21 07:08:09 UTC */
#define WHEN apr_time_from_sec(APR_INT64_C(1795244889))

static unsigned get(const unsigned char *from, int bytes)
{
    unsigned value = 0;

    while (bytes-- > 0) {
        value = value << 8 | from[bytes];
    }
    return value;
}

static apr_int64_t get_64(const unsigned char *from)
{
    return (apr_int64_t)((apr_uint64_t)get(from + 4, 4) << 32 | get(from, 4));
}

/* The archive's own bytes from an offset, without the files' bytes. */
static const unsigned char *header_at(const mdl_zip_t *zip, apr_int64_t offset, apr_pool_t *p)
{
    mdl_zip_piece_t *piece = apr_palloc(p, sizeof *piece);

    mdl_zip_piece(zip, offset, piece);
    return piece->entry < 0 ? piece->header : (const unsigned char *)"a file";
}

static mdl_zip_t *plan_of(apr_pool_t *p, int n, const apr_int64_t *sizes)
{
    mdl_zip_t *zip = mdl_zip_begin(1, p);

    for (int i = 0; i < n; i++) {
        mdl_zip_add(zip, apr_psprintf(p, "%c", 'a' + i), sizes[i], 0x12345678, WHEN);
    }
    mdl_zip_end(zip);
    return zip;
}

/* --- bytes --- */

static const char *const contents[] = {"one", "", "the third file", ""};
#define FILES 4

static mdl_zip_t *small_plan(apr_pool_t *p)
{
    mdl_zip_t *zip = mdl_zip_begin(1, p);

    for (int i = 0; i < FILES; i++) {
        mdl_zip_add(zip, apr_psprintf(p, "file %d.txt", i), (apr_int64_t)strlen(contents[i]),
                    mdl_crc32(0, contents[i], strlen(contents[i])), WHEN);
    }
    mdl_zip_end(zip);
    return zip;
}

/* Reads length bytes from offset, as a delivery does. */
static apr_int64_t read_at(const mdl_zip_t *zip, apr_int64_t offset, apr_int64_t length,
                           unsigned char *to)
{
    apr_int64_t taken = 0;
    mdl_zip_piece_t piece;

    while (taken < length && offset + taken < mdl_zip_size(zip)) {
        const void *from = piece.header;

        mdl_zip_piece(zip, offset + taken, &piece);
        if (piece.length <= 0) {
            return -1;
        }
        if (piece.entry >= 0) {
            from = contents[piece.entry] + piece.offset;
        }
        if (piece.length > length - taken) {
            piece.length = length - taken;
        }
        memcpy(to + taken, from, (apr_size_t)piece.length);
        taken += piece.length;
    }
    return taken;
}

static void test_bytes(apr_pool_t *p)
{
    mdl_zip_t *zip = small_plan(p);
    apr_int64_t size = mdl_zip_size(zip);
    unsigned char *all = apr_palloc(p, (apr_size_t)size);
    unsigned char *again = apr_palloc(p, (apr_size_t)size);
    const unsigned char *central;
    int same = 1;

    is_int(size, 4 * (30 + 10) + 3 + 14 + 4 * (46 + 10) + 22,
           "the size is the sum of the sizes of its parts");
    is_int(read_at(zip, 0, size, all), size, "as many bytes can be read");
    ok(memcmp(all, "PK\3\4", 4) == 0, "it begins with a local header");
    is_int(get(all + 4, 2), 10, "the header needs version 1.0");
    is_int(get(all + 6, 2), 0x800, "only the flag for UTF-8 names is set");
    is_int(get(all + 8, 2), 0, "the file is stored without compression");
    is_int(get(all + 10, 2), 7 << 11 | 8 << 5 | 9 / 2, "the time is in UTC");
    is_int(get(all + 12, 2), (2026 - 1980) << 9 | 11 << 5 | 21, "the date is in UTC");
    is_int(get(all + 14, 4), mdl_crc32(0, "one", 3), "the header has the CRC-32");
    is_int(get(all + 18, 4), 3, "the header has the compressed size");
    is_int(get(all + 22, 4), 3, "the header has the same uncompressed size");
    ok(get(all + 26, 2) == 10 && get(all + 28, 2) == 0, "the header has a name and no extra field");
    ok(memcmp(all + 30, "file 0.txtonePK\3\4", 17) == 0,
       "the name, the file and the next header follow");
    is_int(get(all + size - 22 + 8, 2), 4, "the end record counts the entries");
    is_int(get(all + size - 22 + 12, 4), 4 * (46 + 10), "the end record has the directory's size");
    central = all + get(all + size - 22 + 16, 4);
    ok(memcmp(central, "PK\1\2", 4) == 0, "the end record has the directory's offset");
    is_int(get(central + 2 * 56 + 42, 4), 30 + 10 + 3 + 30 + 10,
           "an entry of the directory has the offset of its header");
    is_int(get(central + 38, 4) >> 16, 0100644,
           "an entry of the directory has the mode of the file");
    ok(central[5] == 3, "the mode is that of Unix");
    for (apr_int64_t i = 0; i <= size; i++) {
        for (apr_int64_t length = 1; length <= size - i; length += 13) {
            same &= read_at(zip, i, length, again) == length &&
                    memcmp(again, all + i, (apr_size_t)length) == 0;
        }
    }
    ok(same, "the archive can be read from any byte on");
    read_at(small_plan(p), 0, size, again);
    ok(memcmp(all, again, (apr_size_t)size) == 0,
       "another plan of the same files gives the same bytes");
}

static void test_empty(apr_pool_t *p)
{
    mdl_zip_t *zip = plan_of(p, 0, NULL);

    is_int(mdl_zip_size(zip), 22, "an archive without files is an end record");
    ok(memcmp(header_at(zip, 0, p), "PK\5\6\0\0\0\0\0\0\0\0", 12) == 0, "it counts no entries");
}

/* --- ZIP64 --- */

#define LARGEST APR_INT64_C(0xfffffffe) /* in 32 bits: all bits set means "see ZIP64" */

static void test_large_entry(apr_pool_t *p)
{
    const apr_int64_t below[] = {LARGEST}, above[] = {LARGEST + 1};
    mdl_zip_t *zip = plan_of(p, 1, below);
    apr_int64_t directory = 31 + LARGEST;

    is_int(get(header_at(zip, 0, p) + 18, 4), LARGEST, "a file of 4 GiB - 2 is written in 32 bits");
    is_int(get(header_at(zip, 0, p) + 28, 2), 0, "its header has no extra field");
    is_int(mdl_zip_size(zip), directory + 47 + 56 + 20 + 22,
           "the archive has a ZIP64 end record because of its directory's offset");
    is_int(get(header_at(zip, directory, p) + 30, 2), 0, "its directory entry has no extra field");

    zip = plan_of(p, 1, above);
    directory = 31 + 20 + LARGEST + 1;
    is_int(get(header_at(zip, 0, p) + 4, 2), 45, "a file of one byte more needs version 4.5");
    is_int(get(header_at(zip, 0, p) + 18, 4), 0xffffffff, "its 32-bit size is all ones");
    is_int(get(header_at(zip, 0, p) + 28, 2), 20, "its header has an extra field");
    is_int(get(header_at(zip, 31, p), 2), 1, "the extra field is that of ZIP64");
    is_int(get(header_at(zip, 31, p) + 2, 2), 16, "the extra field has the length of two sizes");
    is_int(get_64(header_at(zip, 35, p)), LARGEST + 1,
           "the extra field has the uncompressed size in 64 bits");
    is_int(get_64(header_at(zip, 43, p)), LARGEST + 1,
           "the extra field has the compressed size in 64 bits");
    is_int(get(header_at(zip, directory, p) + 30, 2), 20,
           "its directory entry has an extra field with both sizes");
    is_int(get(header_at(zip, directory, p) + 42, 4), 0,
           "its directory entry has the offset in 32 bits");
}

static void test_large_offset(apr_pool_t *p)
{
    /* Each file has a local header of 31 bytes. */
    const apr_int64_t below[] = {LARGEST - 31, 5}, above[] = {LARGEST - 30, 5};
    mdl_zip_t *zip = plan_of(p, 2, below);
    apr_int64_t directory = LARGEST + 31 + 5;

    is_int(get(header_at(zip, directory + 47, p) + 42, 4), LARGEST,
           "an offset of 4 GiB - 2 is written in 32 bits");
    zip = plan_of(p, 2, above);
    directory++;
    is_int(get(header_at(zip, directory + 47, p) + 42, 4), 0xffffffff,
           "the 32-bit field of an offset of one byte more is all ones");
    is_int(get(header_at(zip, directory + 47, p) + 20, 4), 5, "its size is written in 32 bits");
    is_int(get(header_at(zip, directory + 47, p) + 30, 2), 12,
           "its extra field has the length of one offset");
    is_int(get_64(header_at(zip, directory + 47 + 46 + 1 + 4, p)), LARGEST + 1,
           "its extra field has the offset in 64 bits");
    is_int(get(header_at(zip, LARGEST + 1, p) + 4, 2), 10, "its local header needs version 1.0");
}

static void test_both(apr_pool_t *p)
{
    const apr_int64_t sizes[] = {5 * GIB, 6 * GIB};
    mdl_zip_t *zip = plan_of(p, 2, sizes);
    apr_int64_t directory = 11 * GIB + 2 * 51, second = directory + 47 + 20;
    const unsigned char *field = header_at(zip, second + 47, p);

    is_int(get(header_at(zip, second, p) + 30, 2), 28,
           "a large file after another has an extra field for sizes and offset");
    ok(get_64(field + 4) == 6 * GIB && get_64(field + 12) == 6 * GIB,
       "the extra field has both sizes");
    is_int(get_64(field + 20), 5 * GIB + 51, "the extra field has the offset");
}

static void test_end_64(apr_pool_t *p)
{
    const apr_int64_t sizes[] = {5 * GIB, 1};
    mdl_zip_t *zip = plan_of(p, 2, sizes);
    apr_int64_t end = mdl_zip_size(zip) - 22 - 20 - 56;
    const unsigned char *record = header_at(zip, end, p);

    ok(memcmp(record, "PK\6\6", 4) == 0, "an archive beyond 4 GiB has a ZIP64 end record");
    is_int(get_64(record + 4), 44, "the ZIP64 end record has its own length");
    ok(get_64(record + 24) == 2 && get_64(record + 32) == 2,
       "the ZIP64 end record counts the entries");
    is_int(get_64(record + 40), 47 + 20 + 47 + 12, "the ZIP64 end record has the directory's size");
    is_int(get_64(record + 48), 5 * GIB + 51 + 31 + 1,
           "the ZIP64 end record has the directory's offset");
    ok(memcmp(record + 56, "PK\6\7", 4) == 0, "the locator follows");
    is_int(get_64(record + 56 + 8), end, "the locator has the offset of the ZIP64 end record");
    is_int(get(record + 56 + 16, 4), 1, "the locator says that there is one disk");
    ok(memcmp(record + 76, "PK\5\6", 4) == 0, "the usual end record follows");
    is_int(get(record + 76 + 8, 2), 2, "the usual end record counts the entries");
    is_int(get(record + 76 + 16, 4), 0xffffffff, "its 32-bit offset of the directory is all ones");
}

static void test_many(apr_pool_t *p)
{
    for (int n = 65534; n <= 65535; n++) {
        mdl_zip_t *zip = mdl_zip_begin(1, p);
        apr_int64_t length = 22 + (n == 65535 ? 56 + 20 : 0);
        const unsigned char *end;

        for (int i = 0; i < n; i++) {
            mdl_zip_add(zip, apr_psprintf(p, "%05d", i), 1, 0, WHEN);
        }
        mdl_zip_end(zip);
        is_int(mdl_zip_size(zip), (apr_int64_t)n * (30 + 5 + 1 + 46 + 5) + length,
               n == 65534 ? "65,534 entries need no ZIP64" : "65,535 entries need ZIP64");
        end = header_at(zip, mdl_zip_size(zip) - 22, p);
        is_int(get(end + 8, 2), n, "the number of entries is written in 16 bits");
        is_int(get(end + 16, 4), n * (30 + 5 + 1), "the directory's offset is written");
    }
}

/* --- times --- */

static unsigned date_of(apr_time_t when, apr_pool_t *p)
{
    mdl_zip_t *zip = mdl_zip_begin(1, p);

    mdl_zip_add(zip, "a", 1, 0, when);
    mdl_zip_end(zip);
    return get(header_at(zip, 0, p) + 10, 4);
}

static void test_times(apr_pool_t *p)
{
    unsigned first = (1 << 5 | 1) << 16;
    unsigned last = (127u << 9 | 12 << 5 | 31) << 16 | 23 << 11 | 59 << 5 | 29;

    is_int(date_of(0, p), first, "a time before 1980 becomes the first moment of 1980");
    is_int(date_of(apr_time_from_sec(APR_INT64_C(315532800)), p), first,
           "the first moment of 1980 is written");
    is_int(date_of(apr_time_from_sec(APR_INT64_C(4354819198)), p), last,
           "the last moment of 2107 is written");
    is_int(date_of(apr_time_from_sec(APR_INT64_C(4354819200)), p), last,
           "a time after 2107 becomes the last moment of 2107");
}

/* --- names --- */

static const char *name_of(const char *filename, apr_pool_t *p)
{
    mdl_zip_t *zip = mdl_zip_begin(1, p);

    mdl_zip_add(zip, filename, 1, 0, WHEN);
    mdl_zip_end(zip);
    return mdl_zip_name(zip, 0);
}

static void test_names(apr_pool_t *p)
{
    static const struct {
        const char *filename, *name, *why;
    } cases[] = {
        {"book.pdf", "book.pdf", "a plain name is kept"},
        {"文件.pdf", "文件.pdf", "Chinese characters are kept"},
        {"👩‍👩‍👧.gif", "👩‍👩‍👧.gif", "emoji and their joiners are kept"},
        {"../../x", ".._.._x", "a path to the parent folder is replaced"},
        {"/etc/passwd", "_etc_passwd", "an absolute path is replaced"},
        {"C:\\x", "C__x", "the path of a drive is replaced"},
        {"say \"hi\" <*|?>", "say _hi_ _____", "characters that Windows refuses are replaced"},
        {"a\r\nb\tc\x7f", "a__b_c_", "control characters are replaced"},
        {"a\xc2\x85z", "a_z", "control characters of Latin-1 are replaced"},
        {"exe\xe2\x80\xaegpj.com", "exe_gpj.com", "an override of text direction is replaced"},
        {"a\xe2\x81\xa6z\xe2\x80\x8f", "a_z_", "isolates and marks of text direction are replaced"},
        {"\xef\xbb\xbfx", "_x", "a byte order mark is replaced"},
        {"a\xffz\xc3", "a_z_", "bytes that are not UTF-8 are replaced"},
        {"\xc0\xaf", "__", "an overlong slash is replaced"},
        {"\xed\xa0\x80", "___", "an encoded surrogate is replaced"},
        {"x. . ", "x", "dots and spaces at the end are removed, as Windows removes them"},
        {"", "file", "an empty name is replaced by a name"},
        {"..", "file", "the parent folder's name is replaced by a name"},
        {"...", "file", "a name of dots is replaced by a name"},
        {".htaccess", ".htaccess", "a dot at the beginning is kept"},
        {"CON", "_CON", "the name of a Windows device gets a prefix"},
        {"con.txt", "_con.txt", "letter case and an extension of a device name do not matter"},
        {"Com1 .tar.gz", "_Com1 .tar.gz", "a space after a device name does not matter"},
        {"LPT\xc2\xb2", "_LPT\xc2\xb2", "a device number may be a superscript digit"},
        {"CONIN$", "_CONIN$", "every device name gets a prefix"},
        {"COM", "COM", "a device name without its number is kept"},
        {"console.txt", "console.txt", "a name that only begins with a device name is kept"},
        {"COM10", "COM10", "a device name with a two-digit number is kept"},
    };

    for (apr_size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        is_str(name_of(cases[i].filename, p), cases[i].name, cases[i].why);
    }
}

static char *repeat(const char *text, int n, apr_pool_t *p)
{
    char *all = apr_pcalloc(p, strlen(text) * (apr_size_t)n + 1);

    for (int i = 0; i < n; i++) {
        memcpy(all + strlen(text) * (apr_size_t)i, text, strlen(text));
    }
    return all;
}

static void test_long_names(apr_pool_t *p)
{
    const char *longest = apr_pstrcat(p, repeat("x", 251, p), ".txt", NULL);
    const char *chinese = apr_pstrcat(p, repeat("文", 100, p), ".pdf", NULL);
    const char *no_extension = apr_pstrcat(p, "a.", repeat("x", 300, p), NULL);
    mdl_zip_t *zip = mdl_zip_begin(1, p);

    is_str(name_of(longest, p), longest, "a name of 255 bytes is kept");
    is_int(strlen(name_of(apr_pstrcat(p, "x", longest, NULL), p)), 255,
           "a name of 256 bytes is shortened");
    is_str(name_of(chinese, p), apr_pstrcat(p, repeat("文", 83, p), ".pdf", NULL),
           "a name is shortened between characters and before its extension");
    is_int(strlen(name_of(no_extension, p)), 255,
           "a long part after a dot does not count as an extension");
    is_str(name_of(apr_pstrcat(p, repeat("x", 250, p), repeat(".", 9, p), "y", NULL), p),
           apr_pstrcat(p, repeat("x", 250, p), ".y", NULL),
           "a shortened name has no dots before its extension");
    mdl_zip_add(zip, longest, 1, 0, WHEN);
    mdl_zip_add(zip, longest, 1, 0, WHEN);
    mdl_zip_end(zip);
    is_str(mdl_zip_name(zip, 1), apr_pstrcat(p, repeat("x", 247, p), " (2).txt", NULL),
           "the second of two equal long names is shortened for its number");
}

static void test_doubles(apr_pool_t *p)
{
    static const char *const filenames[] = {"a.txt",  "a.txt",  "A.TXT", "a (2).txt", "a.txt",
                                            "README", "readme", "Ä.pdf", "ä.pdf",     "Σ",
                                            "ς",      ".x",     ".x",    "c?",        "c*"};
    static const char *const names[] = {"a.txt",     "a (2).txt", "A (3).TXT",  "a (2) (2).txt",
                                        "a (4).txt", "README",    "readme (2)", "Ä.pdf",
                                        "ä (2).pdf", "Σ",         "ς (2)",      ".x",
                                        ".x (2)",    "c_",        "c_ (2)"};
    mdl_zip_t *zip = mdl_zip_begin(1, p);
    mdl_zip_t *many = mdl_zip_begin(1, p);

    for (apr_size_t i = 0; i < sizeof names / sizeof *names; i++) {
        mdl_zip_add(zip, filenames[i], 1, 0, WHEN);
    }
    mdl_zip_end(zip);
    for (apr_size_t i = 0; i < sizeof names / sizeof *names; i++) {
        is_str(mdl_zip_name(zip, (int)i), names[i], "each name is unique");
    }
    for (int i = 0; i < 10000; i++) {
        mdl_zip_add(many, "same.txt", 1, 0, WHEN);
    }
    mdl_zip_end(many);
    is_str(mdl_zip_name(many, 9999), "same (10000).txt", "10,000 equal names become unique");
}

/* Pairs of names that Windows, macOS or Linux treats as the same. */
static void test_foldings(apr_pool_t *p)
{
    static const char *const pairs[][2] = {
        {"Stra\xc3\x9f"
         "e",
         "STRASSE"},              /* sharp s */
        {"\xef\xac\x81n", "FIN"}, /* the ligature fi */
        {"FileAZ", "fILEaz"},
        {"caf\xc3\xa9", "cafe\xcc\x81"}, /* composed, decomposed */
        {"CAF\xc3\x89", "cafe\xcc\x81"},
        {"\xe2\x84\xa6", "\xcf\x89"},                             /* ohm sign, omega */
        {"5\xe2\x84\xaa", "5k"},                                  /* kelvin sign */
        {"d\xc4\xb1", "DI"},                                      /* dotless i */
        {"\xc4\xb0", "i\xcc\x87"},                                /* I with a dot */
        {"\xce\xb1\xcd\x85\xcc\x81", "\xce\xb1\xcc\x81\xcd\x85"}, /* marks in another order */
        {"a\xe2\x80\x8d"
         "b",
         "ab"},                                                   /* a joiner */
        {"\xc7\x85", "\xc7\x86"},                                 /* a title-case letter */
        {"\xf0\x90\x90\x80", "\xf0\x90\x90\xa8"},                 /* Deseret */
        {"\xed\x95\x9c", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab"}, /* a Hangul syllable */
    };

    for (apr_size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        mdl_zip_t *zip = mdl_zip_begin(1, p);

        mdl_zip_add(zip, pairs[i][0], 1, 0, WHEN);
        mdl_zip_add(zip, pairs[i][1], 1, 0, WHEN);
        mdl_zip_end(zip);
        is_str(mdl_zip_name(zip, 0), pairs[i][0], "the first keeps its name");
        is_str(mdl_zip_name(zip, 1), apr_pstrcat(p, pairs[i][1], " (2)", NULL),
               "the second gets a number");
    }
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    test_bytes(p);
    test_empty(p);
    test_large_entry(p);
    test_large_offset(p);
    test_both(p);
    test_end_64(p);
    test_many(p);
    test_times(p);
    test_names(p);
    test_long_names(p);
    test_doubles(p);
    test_foldings(p);
    return tap_end(p);
}
