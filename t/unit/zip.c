/* The plan of a ZIP archive: its bytes, where ZIP64 begins, and the names.  That real programs read
   what it makes is in t/delivery/zip.t. */
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

    is_int(size, 4 * (30 + 10) + 3 + 14 + 4 * (46 + 10) + 22, "the length is that of its parts");
    is_int(read_at(zip, 0, size, all), size, "and that many bytes can be read");
    ok(memcmp(all, "PK\3\4", 4) == 0, "it begins with a local header");
    is_int(get(all + 4, 2), 10, "that needs version 1.0");
    is_int(get(all + 6, 2), 0x800, "says that names are UTF-8 and nothing else");
    is_int(get(all + 8, 2), 0, "and that the file is stored");
    is_int(get(all + 10, 2), 7 << 11 | 8 << 5 | 9 / 2, "with its time in UTC");
    is_int(get(all + 12, 2), (2026 - 1980) << 9 | 11 << 5 | 21, "and its date");
    is_int(get(all + 14, 4), mdl_crc32(0, "one", 3), "its checksum");
    is_int(get(all + 18, 4), 3, "its size");
    is_int(get(all + 22, 4), 3, "twice");
    ok(get(all + 26, 2) == 10 && get(all + 28, 2) == 0, "a name and no more fields");
    ok(memcmp(all + 30, "file 0.txtonePK\3\4", 17) == 0, "then name, file and the next header");
    is_int(get(all + size - 22 + 8, 2), 4, "the end counts the entries");
    is_int(get(all + size - 22 + 12, 4), 4 * (46 + 10), "has the directory's length");
    central = all + get(all + size - 22 + 16, 4);
    ok(memcmp(central, "PK\1\2", 4) == 0, "and where it is");
    is_int(get(central + 2 * 56 + 42, 4), 30 + 10 + 3 + 30 + 10, "an entry there has its offset");
    is_int(get(central + 38, 4) >> 16, 0100644, "and the mode of the file");
    ok(central[5] == 3, "as Unix has it");
    for (apr_int64_t i = 0; i <= size; i++) {
        for (apr_int64_t length = 1; length <= size - i; length += 13) {
            same &= read_at(zip, i, length, again) == length &&
                    memcmp(again, all + i, (apr_size_t)length) == 0;
        }
    }
    ok(same, "from any byte on it is the same");
    read_at(small_plan(p), 0, size, again);
    ok(memcmp(all, again, (apr_size_t)size) == 0, "another plan of the same files too");
}

static void test_empty(apr_pool_t *p)
{
    mdl_zip_t *zip = plan_of(p, 0, NULL);

    is_int(mdl_zip_size(zip), 22, "an archive of nothing is an end");
    ok(memcmp(header_at(zip, 0, p), "PK\5\6\0\0\0\0\0\0\0\0", 12) == 0, "that counts nothing");
}

/* --- ZIP64 --- */

#define LARGEST APR_INT64_C(0xfffffffe) /* in 32 bits, since all bits set means "see ZIP64" */

static void test_large_entry(apr_pool_t *p)
{
    const apr_int64_t below[] = {LARGEST}, above[] = {LARGEST + 1};
    mdl_zip_t *zip = plan_of(p, 1, below);
    apr_int64_t directory = 31 + LARGEST;

    is_int(get(header_at(zip, 0, p) + 18, 4), LARGEST, "a file of 4 GiB - 2 is written in 32 bits");
    is_int(get(header_at(zip, 0, p) + 28, 2), 0, "without a further field");
    is_int(mdl_zip_size(zip), directory + 47 + 56 + 20 + 22,
           "though the directory behind it is beyond them");
    is_int(get(header_at(zip, directory, p) + 30, 2), 0, "its entry there has no further field");

    zip = plan_of(p, 1, above);
    directory = 31 + 20 + LARGEST + 1;
    is_int(get(header_at(zip, 0, p) + 4, 2), 45, "one byte more needs version 4.5");
    is_int(get(header_at(zip, 0, p) + 18, 4), 0xffffffff, "and a size elsewhere");
    is_int(get(header_at(zip, 0, p) + 28, 2), 20, "in a field");
    is_int(get(header_at(zip, 31, p), 2), 1, "of ZIP64");
    is_int(get(header_at(zip, 31, p) + 2, 2), 16, "with both sizes");
    is_int(get_64(header_at(zip, 35, p)), LARGEST + 1, "in 64 bits");
    is_int(get_64(header_at(zip, 43, p)), LARGEST + 1, "each");
    is_int(get(header_at(zip, directory, p) + 30, 2), 20, "the directory's entry has them too");
    is_int(get(header_at(zip, directory, p) + 42, 4), 0, "but its offset is written in 32 bits");
}

static void test_large_offset(apr_pool_t *p)
{
    /* A local header of 31 bytes before each. */
    const apr_int64_t below[] = {LARGEST - 31, 5}, above[] = {LARGEST - 30, 5};
    mdl_zip_t *zip = plan_of(p, 2, below);
    apr_int64_t directory = LARGEST + 31 + 5;

    is_int(get(header_at(zip, directory + 47, p) + 42, 4), LARGEST,
           "an entry at 4 GiB - 2 is written in 32 bits");
    zip = plan_of(p, 2, above);
    directory++;
    is_int(get(header_at(zip, directory + 47, p) + 42, 4), 0xffffffff, "one byte later it is not");
    is_int(get(header_at(zip, directory + 47, p) + 20, 4), 5, "but its size is");
    is_int(get(header_at(zip, directory + 47, p) + 30, 2), 12, "its field");
    is_int(get_64(header_at(zip, directory + 47 + 46 + 1 + 4, p)), LARGEST + 1,
           "has the offset alone");
    is_int(get(header_at(zip, LARGEST + 1, p) + 4, 2), 10, "its local header needs none of it");
}

static void test_both(apr_pool_t *p)
{
    const apr_int64_t sizes[] = {5 * GIB, 6 * GIB};
    mdl_zip_t *zip = plan_of(p, 2, sizes);
    apr_int64_t directory = 11 * GIB + 2 * 51, second = directory + 47 + 20;
    const unsigned char *field = header_at(zip, second + 47, p);

    is_int(get(header_at(zip, second, p) + 30, 2), 28, "a large file behind another has a field");
    ok(get_64(field + 4) == 6 * GIB && get_64(field + 12) == 6 * GIB, "with its sizes");
    is_int(get_64(field + 20), 5 * GIB + 51, "and its offset");
}

static void test_end_64(apr_pool_t *p)
{
    const apr_int64_t sizes[] = {5 * GIB, 1};
    mdl_zip_t *zip = plan_of(p, 2, sizes);
    apr_int64_t end = mdl_zip_size(zip) - 22 - 20 - 56;
    const unsigned char *record = header_at(zip, end, p);

    ok(memcmp(record, "PK\6\6", 4) == 0, "beyond 4 GiB there is an end of 64 bits");
    is_int(get_64(record + 4), 44, "of the length that the format wants");
    ok(get_64(record + 24) == 2 && get_64(record + 32) == 2, "which counts the entries");
    is_int(get_64(record + 40), 47 + 20 + 47 + 12, "has the directory's length");
    is_int(get_64(record + 48), 5 * GIB + 51 + 31 + 1, "and its offset");
    ok(memcmp(record + 56, "PK\6\7", 4) == 0, "then the locator");
    is_int(get_64(record + 56 + 8), end, "which finds it");
    is_int(get(record + 56 + 16, 4), 1, "on the one disk");
    ok(memcmp(record + 76, "PK\5\6", 4) == 0, "and the usual end");
    is_int(get(record + 76 + 8, 2), 2, "with what it can say");
    is_int(get(record + 76 + 16, 4), 0xffffffff, "and what it can't");
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
               n == 65534 ? "65,534 entries need no ZIP64" : "65,535 do");
        end = header_at(zip, mdl_zip_size(zip) - 22, p);
        is_int(get(end + 8, 2), n, "both are written in 16 bits");
        is_int(get(end + 16, 4), n * (30 + 5 + 1), "and the directory is found");
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

    is_int(date_of(0, p), first, "a time before 1980 is its first moment");
    is_int(date_of(apr_time_from_sec(APR_INT64_C(315532800)), p), first, "which has itself");
    is_int(date_of(apr_time_from_sec(APR_INT64_C(4354819198)), p), last, "as has 2107's last");
    is_int(date_of(apr_time_from_sec(APR_INT64_C(4354819200)), p), last, "and what comes after");
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
        {"book.pdf", "book.pdf", "a name stays"},
        {"文件.pdf", "文件.pdf", "Chinese stays"},
        {"👩‍👩‍👧.gif", "👩‍👩‍👧.gif", "emoji stay, with what joins them"},
        {"../../x", ".._.._x", "there is no way up"},
        {"/etc/passwd", "_etc_passwd", "nor to the root"},
        {"C:\\x", "C__x", "nor to a drive"},
        {"say \"hi\" <*|?>", "say _hi_ _____", "what Windows refuses is taken out"},
        {"a\r\nb\tc\x7f", "a__b_c_", "as are controls"},
        {"a\xc2\x85z", "a_z", "those of Latin-1 too"},
        {"exe\xe2\x80\xaegpj.com", "exe_gpj.com", "and what turns the text"},
        {"a\xe2\x81\xa6z\xe2\x80\x8f", "a_z_", "all of it"},
        {"\xef\xbb\xbfx", "_x", "and a byte order mark"},
        {"a\xffz\xc3", "a_z_", "bytes that are no UTF-8"},
        {"\xc0\xaf", "__", "or UTF-8 of a hidden slash"},
        {"\xed\xa0\x80", "___", "or half of a surrogate"},
        {"x. . ", "x", "dots and spaces at the end go, as Windows has them go"},
        {"", "file", "no name gets one"},
        {"..", "file", "nor is this one"},
        {"...", "file", "nor this"},
        {".htaccess", ".htaccess", "a dot at the beginning is one"},
        {"CON", "_CON", "a device of Windows becomes a file"},
        {"con.txt", "_con.txt", "in any case and with an extension"},
        {"Com1 .tar.gz", "_Com1 .tar.gz", "or a space"},
        {"LPT\xc2\xb2", "_LPT\xc2\xb2", "with any digit"},
        {"CONIN$", "_CONIN$", "each of them"},
        {"COM", "COM", "but not without one"},
        {"console.txt", "console.txt", "nor where it only begins like one"},
        {"COM10", "COM10", "or goes on"},
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

    is_str(name_of(longest, p), longest, "255 bytes are a name");
    is_int(strlen(name_of(apr_pstrcat(p, "x", longest, NULL), p)), 255, "256 are cut");
    is_str(name_of(chinese, p), apr_pstrcat(p, repeat("文", 83, p), ".pdf", NULL),
           "between characters and before the extension");
    is_int(strlen(name_of(no_extension, p)), 255, "what is long is no extension");
    is_str(name_of(apr_pstrcat(p, repeat("x", 250, p), repeat(".", 9, p), "y", NULL), p),
           apr_pstrcat(p, repeat("x", 250, p), ".y", NULL), "a cut leaves no dot at the end");
    mdl_zip_add(zip, longest, 1, 0, WHEN);
    mdl_zip_add(zip, longest, 1, 0, WHEN);
    mdl_zip_end(zip);
    is_str(mdl_zip_name(zip, 1), apr_pstrcat(p, repeat("x", 247, p), " (2).txt", NULL),
           "the second of a long name is cut for its number");
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
        is_str(mdl_zip_name(zip, (int)i), names[i], "no name stands twice");
    }
    for (int i = 0; i < 10000; i++) {
        mdl_zip_add(many, "same.txt", 1, 0, WHEN);
    }
    mdl_zip_end(many);
    is_str(mdl_zip_name(many, 9999), "same (10000).txt", "nor 10,000 times");
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
    return tap_end(p);
}
