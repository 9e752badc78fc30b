/* File names in Content-Disposition, and invisible characters at the ends of texts. */
#include "base/text/filename.h"
#include "base/text/utf8.h"
#include "t/unit/tap.h"

int main(void)
{
    static const struct {
        const char *disposition, *filename; /* "" stands for none */
    } names[] = {
        {NULL, ""},
        {"", ""},
        {"attachment", ""},
        {"inline; filename=a.zip", "a.zip"},
        {"attachment; FILENAME=\"a b.zip\"", "a b.zip"},
        {"attachment;filename = \"a;b.zip\" ; size=3", "a;b.zip"},
        {"attachment; filename=\"a \\\"b\\\" c.zip\"", "a \"b\" c.zip"},
        {"attachment; filename=\"a.zip\"; filename*=UTF-8''%e2%82%ac%20rates.zip",
         "\xe2\x82\xac rates.zip"},
        {"attachment; filename*=utf-8'en'x.zip; filename=\"a.zip\"", "x.zip"},
        {"attachment; filename*=iso-8859-1''caf%e9.zip", "caf\xc3\xa9.zip"},
        {"attachment; filename*=UTF-8''%e9.zip; filename=\"a.zip\"", "a.zip"},
        {"attachment; filename*=KOI8-R''x.zip; filename=\"a.zip\"", "a.zip"},
        {"attachment; filename*=UTF-8''a%2; filename=b", "b"},
        {"attachment; filename*=UTF-8''a%00b", ""},
        {"attachment; filename*=UTF-8''..%2f..%2fetc%2fpasswd", "passwd"},
        {"attachment; filename=\"caf\xc3\xa9.zip\"", "caf\xc3\xa9.zip"},
        {"attachment; filename=\"caf\xe9.zip\"", "caf\xc3\xa9.zip"},
        {"attachment; filename=\"../../etc/passwd\"", "passwd"},
        {"attachment; filename=\"C:\\Documents\\a.zip\"", "a.zip"},
        {"attachment; filename=\"..\"", ""},
        {"attachment; filename=\"a/\"", ""},
        {"attachment; filename=\"a\tb\"", ""},
        {"attachment; filename=\"open", "open"},
        {"attachment; filename=\"\"", ""},
        {"attachment; xfilename=a; filename=b", "b"},
        {"attachment; filename", ""},
        {"attachment; filename=a; filename=b", "a"},
    };
    static const struct {
        const char *text, *trimmed;
    } edges[] = {
        {"", ""},
        {"a", "a"},
        {" a b ", "a b"},
        {"\t\r\na\n", "a"},
        {"\xef\xbb\xbf"
         "a\xe2\x80\x8b",
         "a"}, /* BOM, zero-width space */
        {"\xc2\xa0\xe3\x80\x80"
         "a\xc2\x85\xe2\x80\xa8",
         "a"}, /* U+00A0 U+3000, U+0085 U+2028 */
        {"\xe2\x81\xa0\xe2\x80\x8e"
         "a\xc2\xad\xe2\x80\x8d",
         "a"},                                                    /* U+2060 U+200E, U+00AD U+200D */
        {"a\xe2\x80\x8bz", "a\xe2\x80\x8bz"},                     /* inside it stays */
        {"\xe2\x9d\xa4\xef\xb8\x8f", "\xe2\x9d\xa4\xef\xb8\x8f"}, /* a heart in colour stays */
        {" \xef\xbb\xbf\xe2\x80\x8b\t", ""},
    };
    apr_pool_t *p = tap_begin();

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *filename = mdl_filename_of_disposition(names[i].disposition, p);

        is_str(filename ? filename : "", names[i].filename,
               names[i].disposition ? names[i].disposition : "no header");
    }
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        is_str(mdl_utf8_trimmed(edges[i].text, p), edges[i].trimmed,
               "what is unseen at the edges goes");
    }
    return tap_end(p);
}
