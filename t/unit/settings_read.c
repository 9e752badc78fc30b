/* Reading a configuration file: httpd's syntax, included files, and mistakes. */
#include "t/unit/settings.h"

static mdl_settings_t *read_settings(const char *text, const char **why)
{
    mdl_settings_t *s = mdl_settings_create(pool);

    *why = read_file(s, write_file("main.conf", text, 0600));
    return s;
}

static void test_read(void)
{
    const char *why;
    mdl_settings_t *s;

    s = read_settings("# DownloadsStorage /comment \\\nDownloadsStorage /continued\n"
                      "<IfModule mod_dbd.c>\r\n  DBDriver\tpgsql\r\n"
                      "  DBDParams \"host=x options='-c a=1'\"\n</IfModule>\n"
                      "ServerName ${nothing}\n"
                      "downloadsTemplates '/a \\'b\\\\' \n"
                      "DownloadsSecretFile /a\\b\\\\c\n"
                      "DownloadsIngestAllowHost a.example \\\r\n   b.example\n"
                      "DownloadsLeaseTime 9",
                      &why);
    is_str(why, NULL, "a file in httpd's syntax is read");
    is_str(s->storage.folder, NULL, "a backslash continues a comment, too");
    is_str(s->db_driver, "pgsql", "directives inside a section are read");
    is_str(s->db_params, "host=x options='-c a=1'", "quotes of the other kind are kept");
    is_str(s->templates, "/a 'b\\", "a backslash escapes itself and the quote");
    is_str(APR_ARRAY_IDX(s->secret_files, 0, const char *), "/a\\b\\c",
           "a backslash before anything else is kept");
    is_int(s->ingest.hosts->nelts, 2, "a backslash continues a line");
    is_int(s->lease_time, apr_time_from_sec(9), "the last line needs no newline");

    s = read_settings("DBDriver sqlite3\n<VirtualHost *:80>\nDBDriver pgsql\n</VirtualHost>\n"
                      "DBDParams /db\n",
                      &why);
    is_str(s->db_driver, "sqlite3", "the database of a virtual host is ignored");
    is_str(s->db_params, "/db", "directives after a virtual host are read");

    read_settings("\nDownloadsStorage \\\nrelative\nDownloadsWorker maybe\n", &why);
    ok(why && strstr(why, "/main.conf:2: DownloadsStorage must be an absolute path"),
       "a mistake is reported with file and line");
    s = read_settings("DownloadsWorker maybe\nDBDriver sqlite\nDownloadsStorage /s\n", &why);
    ok(why && strstr(why, ":1: DownloadsWorker must be") && strstr(why, ":2: DBDriver must be"),
       "every mistake is reported");
    is_str(s->storage.folder, "/s", "the directives after a mistake are read");
    read_settings("DownloadsStorage \\\n/x\n\nDownloadsWorker maybe\n", &why);
    ok(why && strstr(why, "/main.conf:4: DownloadsWorker must be"),
       "lines joined by a backslash are counted");
    read_settings("DownloadsStorrage /x\n", &why);
    ok(why && strstr(why, ":1: DownloadsStorrage is no directive"), "a misspelt name is a mistake");
    read_settings("DownloadsStorage\n", &why);
    ok(why && strstr(why, ":1: DownloadsStorage needs a word"), "an absent value is a mistake");

    s = read_settings("Define BASE /srv/${MDL_TEST_NAME}\nDownloadsStorage ${BASE}/s\n", &why);
    ok(why && strstr(why, ":1: Define uses ${MDL_TEST_NAME}, which is neither"),
       "an unknown variable is a mistake");
    setenv("MDL_TEST_NAME", "shop", 1);
    s = read_settings("Define BASE /srv/${MDL_TEST_NAME}\nDownloadsStorage ${BASE}/s\n", &why);
    is_str(s->storage.folder, "/srv/shop/s", "variables come from the environment and from Define");

    is_str(read_file(s, path_of("absent")),
           apr_psprintf(pool, "%s/absent: can't be read: No such file or directory.", folder),
           "a missing file is reported");
}

static void test_include(void)
{
    const char *why;
    mdl_settings_t *s;

    int i;

    for (i = 20; i > 0; i--) {
        write_file(apr_psprintf(pool, "part-b%02d.inc", i),
                   apr_psprintf(pool, "DownloadsStorage /b%02d\n", i), 0600);
    }
    write_file("part-a.inc", "DownloadsStorage /a\nDownloadsTemplates /t\n", 0600);
    s = read_settings("Include part-a.inc\nIncludeOptional none.inc no*.inc2\n", &why);
    ok(why && strstr(why, ":2: IncludeOptional takes one path."), "Include takes one path");
    is_str(s->storage.folder, "/a", "a file is included relative to the folder of the first");
    s = read_settings("Include part-*.inc\nIncludeOptional none.inc\nIncludeOptional no*.inc\n",
                      &why);
    is_str(why, NULL, "IncludeOptional ignores missing files");
    is_str(s->storage.folder, "/b20",
           "files of a wildcard are included in the order of their names");
    is_str(s->templates, "/t", "every file of a wildcard is included");
    read_settings("Include none.inc\n", &why);
    ok(why && strstr(why, "/none.inc: can't be read") && !strstr(why, "main.conf"),
       "a missing file of Include is a mistake");
    read_settings("Include none*.inc\n", &why);
    ok(why && strstr(why, ":1: Include finds no file for"),
       "a wildcard of Include without a file is a mistake");
    write_file("part-a.inc", "\n\nDownloadsStorage a\n", 0600);
    read_settings("Include part-a.inc\n", &why);
    ok(why && strstr(why, "/part-a.inc:3: DownloadsStorage must be") && !strstr(why, "main.conf"),
       "a mistake in an included file names that file");
    read_settings("Include main.conf\n", &why);
    ok(why && strstr(why, "Include is more than 20 files deep"),
       "a file that includes itself is a mistake");
    read_settings("Include main.conf\nInclude main.conf\n", &why);
    is_int(lines_of(why), 20, "the number of problems with it is limited");
}

int main(void)
{
    begin();
    test_read();
    test_include();
    return end();
}
