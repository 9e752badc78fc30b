/* Rendering and escaping, and the messages about mistakes in a template. */
#include "t/unit/tap.h"

#include <stdlib.h>
#include <unistd.h>

#include <apr_file_io.h>
#include <apr_strings.h>

#include "base/text/template.h"
#include "base/text/templates.h"
#include "base/text/words.h"

static mdl_json_t *data_of(const char *text, apr_pool_t *p)
{
    const char *why = NULL;
    mdl_json_t *data = NULL;

    if (mdl_json_parse(&data, text, strlen(text), MDL_JSON_MAX_VALUES, &why, p) != APR_SUCCESS) {
        printf("# the test's own JSON is not valid: %s\n", why);
    }
    return data;
}

static mdl_words_t *words;

/* The partials of the test's templates. */
static const mdl_template_file_t *partial(void *baton, const char *name)
{
    static const mdl_template_file_t partials[] = {
        {"hello", "Hello {{name}}\n"}, {"twice", "{{> hello}}, {{> hello}}\r\n"},
        {"lines", "<1>\n<2>\n"},       {"empty", ""},
        {"list", "{{#a}}{{n}}{{/a}}"}, {"unclosed", "\n{{#a}}"},
        {"closing", "{{/a}}"},         {"itself", "\n{{> itself}}"},
        {"round", "{{> and_round}}"},  {"and_round", "{{> round}}"},
        {"half", "\n{{> nowhere}}"},   {"alone", "{{#a}}\nx\n{{/a}}\n"},
        {"mail", "<a>{{mail}}</a>"},
    };

    (void)baton;
    for (apr_size_t i = 0; i < sizeof partials / sizeof *partials; i++) {
        if (strcmp(partials[i].path, name) == 0) {
            return &partials[i];
        }
    }
    return NULL;
}

/* The words of the test's templates. */
static const mdl_word_t *word(void *baton, const char *key)
{
    (void)baton;
    return words != NULL ? apr_hash_get(words->by_key, key, APR_HASH_KEY_STRING) : NULL;
}

static const mdl_template_finder_t finder = {partial, word, NULL};

static const char *render(mdl_template_kind_t kind, const char *text, const char *data,
                          apr_pool_t *p)
{
    const mdl_template_file_t file = {"test", text};
    mdl_template_t *t;
    const char *why = NULL;

    if (mdl_template_parse(&t, kind, &file, &finder, &why, p) != APR_SUCCESS) {
        return apr_pstrcat(p, "refused: ", why, NULL);
    }
    return mdl_template_render(t, data_of(data, p), p);
}

static const char *html(const char *text, const char *data, apr_pool_t *p)
{
    return render(MDL_TEMPLATE_HTML, text, data, p);
}

static void values(apr_pool_t *p)
{
    const char *hostile = "{\"a\":\"<b class='x' id=\\\"y\\\">&amp;</b>\"}";

    is_str(html("{{a}}", hostile, p),
           "&lt;b class=&#39;x&#39; id=&quot;y&quot;&gt;&amp;amp;&lt;/b&gt;",
           "two braces escape the five characters of HTML");
    is_str(html("{{a}}", "{\"a\":\"1\\t2\\n3\\u0001\\u0085\\u007f\\u00a0\\u00e9\"}", p),
           "1\t2\n3\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xc2\xa0\xc3\xa9",
           "two braces replace control characters that HTML does not allow");
    is_str(html("{{{a}}}", hostile, p), "<b class='x' id=\"y\">&amp;</b>",
           "three braces escape nothing");
    is_str(render(MDL_TEMPLATE_TEXT, "{{a}}", hostile, p), "<b class='x' id=\"y\">&amp;</b>",
           "a text template escapes nothing");
    is_str(html("{{ a }}|{{{ a }}}", "{\"a\":\"x\"}", p), "x|x",
           "blanks around a name don't count");
    is_str(html("[{{nothing}}]", "{}", p), "[]", "an unknown name renders as an empty text");
    is_str(html("{{a}} {{b}} {{c}}", "{\"a\":9007199254740993,\"b\":true,\"c\":-1}", p),
           "9007199254740993 true -1", "integers and booleans render");
    is_str(html("[{{a}}{{b}}{{c}}]", "{\"a\":null,\"b\":[1],\"c\":{\"d\":1}}", p), "[]",
           "null, an array and an object render as an empty text");
    is_str(html("{{a}}", "{\"a\":\"{{b}}\",\"b\":\"no\"}", p), "{{b}}",
           "a value that looks like a tag is not one");
    is_str(html("{a} } }} { {", "{\"a\":1}", p), "{a} } }} { {", "single braces are text");
    is_str(html("", "{}", p), "", "an empty template renders as an empty text");
}

static void sections(apr_pool_t *p)
{
    is_str(html("{{#a}}<{{n}}>{{/a}}", "{\"a\":[{\"n\":1},{\"n\":2},{\"n\":3}]}", p), "<1><2><3>",
           "a section repeats over an array");
    is_str(html("{{#a}}yes{{/a}}{{#b}}no{{/b}}", "{\"a\":true,\"b\":false}", p), "yes",
           "a section is shown if its value is true");
    is_str(html("{{#a}}a{{/a}}{{#b}}b{{/b}}{{#c}}c{{/c}}{{#d}}d{{/d}}",
                "{\"a\":null,\"b\":\"\",\"c\":[]}", p),
           "", "null, an empty string, an empty array and an absent member show no section");
    is_str(html("{{^a}}a{{/a}}{{^b}}b{{/b}}{{^c}}c{{/c}}{{^d}}d{{/d}}{{^e}}e{{/e}}{{^f}}f{{/f}}",
                "{\"a\":null,\"b\":\"\",\"c\":[],\"e\":false,\"f\":0}", p),
           "abcde", "an inverted section is shown for false, null and empty values, but not for 0");
    is_str(html("{{#shop}}{{name}} {{order}}{{/shop}} {{name}}",
                "{\"name\":\"outer\",\"order\":7,\"shop\":{\"name\":\"inner\"}}", p),
           "inner 7 outer", "a name is looked up in the innermost section first");
    is_str(html("{{#shop}}[{{name}}]{{/shop}}", "{\"name\":\"x\",\"shop\":{\"name\":null}}", p),
           "[]", "a null inside hides the outer member of that name");
    is_str(html("{{#until}}until {{until}}{{/until}}", "{\"until\":\"noon\"}", p), "until noon",
           "inside a section over a string, its name is the string");
    is_str(html("{{#a}}{{#b}}{{c}}{{/b}}{{/a}}",
                "{\"a\":[{\"b\":[{\"c\":1},{\"c\":2}]},{\"b\":[]},"
                "{\"b\":[{\"c\":3}]}]}",
                p),
           "123", "sections can be nested");
    is_str(html("{{#a}}{{#a}}x{{/a}}{{/a}}", "{\"a\":true}", p), "x",
           "a section may be inside one of the same name");
}

static void list_add(const void *baton, int index, mdl_json_t *to, apr_pool_t *p)
{
    mdl_json_add_string(to, "n", apr_psprintf(p, "%s%d", (const char *)baton, index));
}

/* Element 1 has a list "i" of two. */
static const mdl_template_list_t *inner_lists(const void *baton, int index, apr_pool_t *p)
{
    const mdl_template_list_t inner = {
        .name = "i", .length = 2, .element = list_add, .baton = "in "};

    (void)baton;
    return index == 1 ? apr_pmemdup(p, &inner, sizeof inner) : NULL;
}

/* Renders the data with a list "a" of length elements, and a list "b" of one. */
static const char *html_of_list(const char *text, const char *data, int length, apr_pool_t *p)
{
    const mdl_template_file_t file = {"test", text};
    const mdl_template_list_t further = {
        .name = "b", .length = 1, .element = list_add, .baton = "b"};
    const mdl_template_list_t list = {.name = "a",
                                      .length = length,
                                      .element = list_add,
                                      .baton = "no. ",
                                      .lists = inner_lists,
                                      .next = &further};
    mdl_text_buffer_t *out = mdl_text_buffer_make(p);
    mdl_template_t *t;
    const char *why;

    if (mdl_template_parse(&t, MDL_TEMPLATE_HTML, &file, &finder, &why, p) != APR_SUCCESS) {
        return why;
    }
    mdl_template_write(t, data_of(data, p), &list, out, p);
    return mdl_text_buffer_text(out, NULL);
}

static void lists(apr_pool_t *p)
{
    is_str(html_of_list("{{#a}}<{{n}}{{o}}>{{/a}}", "{\"n\":7,\"o\":8}", 3, p),
           "<no. 08><no. 18><no. 28>", "a section repeats over a list that is made as it is shown");
    is_str(html_of_list("{{^a}}none{{/a}}{{#a}}{{n}}{{/a}}{{a}}", "{}", 1, p), "no. 0",
           "an inverted section over such a list is not shown");
    is_str(html_of_list("{{^a}}none{{/a}}{{#a}}{{n}}{{/a}}", "{}", 0, p), "none",
           "it is if the list is empty");
    is_str(html_of_list("{{#s}}{{#a}}{{n}}{{/a}}{{/s}}", "{\"s\":{\"a\":[{\"n\":1}]}}", 2, p), "1",
           "a member of that name inside hides the list");
    is_str(html_of_list("{{#a}}{{#a}}{{n}},{{/a}}{{/a}}", "{}", 2, p), "no. 0,no. 1,no. 0,no. 1,",
           "a section over the list may be inside one");
    is_str(html_of_list("{{#b}}{{n}}{{/b}}{{#i}}x{{/i}}{{^i}}none{{/i}}", "{}", 1, p), "b0none",
           "there may be another list beside it");
    is_str(
        html_of_list("{{#a}}({{#i}}{{n}},{{/i}}{{^i}}-{{/i}}{{#b}}{{n}}{{/b}}){{/a}}", "{}", 2, p),
        "(-b0)(in 0,in 1,b0)", "and an element of a list may have lists");
}

static void lines(apr_pool_t *p)
{
    is_str(html("a\n{{#x}}\nb\n{{/x}}\nc\n", "{\"x\":true}", p), "a\nb\nc\n",
           "a section tag alone on its line leaves no empty line");
    is_str(html("a\n{{#x}}\nb\n{{/x}}\nc\n", "{\"x\":false}", p), "a\nc\n",
           "a section that is not shown leaves no empty line");
    is_str(html("a\r\n  {{^x}}\t\r\nb\r\n  {{/x}}\r\nc", "{}", p), "a\r\nb\r\nc",
           "blanks beside such a tag and a CRLF are removed with it");
    is_str(html("a\n{{! not\nshown }}\nb{{! nor this }}\n", "{}", p), "a\nb\n",
           "a comment is not shown, alone on its lines or not");
    is_str(html("a\n{{x}}\nb", "{\"x\":\"\"}", p), "a\n\nb", "a value keeps its line");
    is_str(html("{{#x}}\na\n{{/x}}", "{\"x\":true}", p), "a\n",
           "a tag may be alone on the first and on the last line");
    is_str(html("{{#x}}{{/x}}\n- {{#x}}a{{/x}}\n", "{\"x\":true}", p), "\n- a\n",
           "a tag beside other text keeps its line");
}

static void faults(apr_pool_t *p)
{
    is_str(html("a\nb {{name", "{}", p),
           "refused: The template test is not valid. Line 2: a tag is not closed.",
           "an unclosed tag is refused with its line");
    is_str(html("a\n{{#x}}\nb\n{{#y}}{{/y}}", "{}", p),
           "refused: The template test is not valid. Line 2: the section \"x\" is not closed.",
           "an unclosed section is refused");
    is_str(html("{{#x}}\n{{#y}}\n{{/x}}\n{{/y}}", "{}", p),
           "refused: The template test is not valid. Line 3: \"x\" is closed where \"y\" of line 2 "
           "is open.",
           "a section closed out of order is refused");
    is_str(html("{{! two\nlines }}\n{{/x}}", "{}", p),
           "refused: The template test is not valid. Line 3: a section is closed that is not open.",
           "the end of a section that was not opened is refused");
    ok(strncmp(html("{{&a}}", "{}", p), "refused: ", 9) == 0, "an ampersand tag is refused");
    ok(strncmp(html("{{a b}}", "{}", p), "refused: ", 9) == 0, "a name of two words is refused");
    ok(strncmp(html("{{}}", "{}", p), "refused: ", 9) == 0, "a tag without a name is refused");
    ok(strncmp(html("{{{a}}", "{}", p), "refused: ", 9) == 0,
       "three braces closed by two are refused");
    is_str(html("<p>\n<style>b{color:{{color}}}</style>", "{}", p),
           "refused: The template test is not valid. Line 2: a <style> element has a tag in it, or "
           "no end.",
           "a value within a style is refused");
    ok(strncmp(html("<script>{{#a}}1{{/a}}</script>", "{}", p), "refused: ", 9) == 0,
       "a section within a script is refused");
    ok(strncmp(html("{{#a}}{{#a}}{{#a}}{{#a}}{{#a}}{{#a}}{{#a}}{{#a}}{{#a}}{{#a}}{{#a}}{{#a}}"
                    "{{#a}}{{#a}}{{#a}}{{#a}}{{#a}}",
                    "{}", p),
               "refused: The template test is not valid. Line 1: sections are nested", 67) == 0,
       "sections nested 17 deep are refused");
}

static void partials(apr_pool_t *p)
{
    const char *hostile = "{\"name\":\"<&>\"}";

    is_str(html("{{> hello}}!", "{\"name\":\"you\"}", p), "Hello you!",
           "a partial replaces its tag, without its last line end");
    is_str(html("{{>twice}}!", "{\"name\":\"you\"}", p), "Hello you, Hello you!",
           "a partial may contain partials, the same one twice");
    is_str(html("a\n{{> lines}}\nb\n{{> empty}}\nc", "{}", p), "a\n<1>\n<2>\nb\n\nc",
           "a partial alone on its line keeps that line's end");
    is_str(html("{{> hello}}", hostile, p), "Hello &lt;&amp;&gt;", "a partial in HTML escapes");
    is_str(render(MDL_TEMPLATE_TEXT, "{{> hello}}", hostile, p), "Hello <&>",
           "a partial in text does not escape");
    is_str(html("{{#a}}{{> hello}};{{/a}}", "{\"a\":[{\"name\":\"x\"},{\"name\":\"y\"}]}", p),
           "Hello x;Hello y;", "a partial sees the values of the section around it");
    is_str(html("[{{> list}}]{{#n}}no{{/n}}", "{\"a\":[{\"n\":1},{\"n\":2}]}", p), "[12]",
           "a section of a partial ends inside it");
    is_str(html("[{{> alone}}]", "{\"a\":true}", p), "[x\n]",
           "a section may end with the last line of a partial");
}

/* Reads words of a language; returns their fault, or "". */
static const char *take_words(const char *tag, const char *text, apr_pool_t *p)
{
    const char *temp = getenv("TMPDIR"), *why = "";
    char *path = apr_pstrcat(p, temp != NULL ? temp : "/tmp", "/words-XXXXXX", NULL);
    int file = mkstemp(path);

    ok(write(file, text, strlen(text)) == (ssize_t)strlen(text), "words can be written");
    close(file);
    mdl_words_read(&words, path, tag, &why, p);
    unlink(path);
    return *why != '\0' ? strstr(why, "Line") : "";
}

static void words_are_shown(apr_pool_t *p)
{
    static const char text[] = "# French\r\n\r\n"
                               "plain = <l’été> & {{a}} = b\r\n"
                               "files.one = {{n}} fichier\n"
                               "files.other = {{n}} fichiers\n"
                               "kind.pdf = PDF\nkind.1 = un\nkind.none = rien\nkind.other = {{k}}\n"
                               "some.x = X\n"
                               "inner = ({{@files n}}, {{@plain}})\n"
                               "empty = \n"
                               "write = {{name}}: {{mail}} {{n}}";

    is_str(take_words("fr", text, p), "", "a file of words is read");
    is_str(html("{{@plain}}", "{\"a\":\"<i>\"}", p), "&lt;l’été&gt; &amp; &lt;i&gt; = b",
           "a word and the values in it are escaped in HTML");
    is_str(render(MDL_TEMPLATE_TEXT, "{{@plain}}", "{\"a\":\"<i>\"}", p), "<l’été> & <i> = b",
           "neither is in text");
    is_str(html("{{@files n}}, {{#x}}{{@files n}}{{/x}}", "{\"n\":0,\"x\":{\"n\":2}}", p),
           "0 fichier, 2 fichiers", "a number has the plural form of the words' language");
    is_str(html("{{@kind k}}", "{\"k\":\"pdf\"}", p), "PDF", "a text has the form of its name");
    is_str(html("{{@kind k}}", "{\"k\":1}", p), "un", "a number may have a form of its own");
    is_str(html("{{@kind k}}{{@kind gone}}", "{\"k\":false}", p), "rienrien",
           "what is false or missing has the form none");
    is_str(html("{{@kind k}}", "{\"k\":\"<\"}", p), "&lt;", "all else has the form other");
    is_str(html("{{@kind k}}", "{\"k\":{\"1\":false,\"pdf\":true}}", p), "PDF",
           "an object has the form of its member that is true");
    is_str(html("[{{@some n}}]", "{\"n\":5}", p), "[]",
           "without a form that fits, nothing is shown");
    is_str(html("{{@inner}}{{@empty}}", "{\"n\":1,\"a\":\"&\"}", p),
           "(1 fichier, &lt;l’été&gt; &amp; &amp; = b)", "a word may have words in it");
    is_str(html("{{{@write}}}", "{\"name\":\"<N>\",\"mail\":\"a@b\",\"n\":3}", p),
           "<bdi>&lt;N&gt;</bdi>: <a>a@b</a> 3",
           "with markup, a value is its partial, or else isolated");
    is_str(html("{{@write}}", "{\"name\":\"<N>\",\"mail\":\"a@b\",\"n\":3}", p), "&lt;N&gt;: a@b 3",
           "without, a word has none");
    is_str(html("{{@nowhere}}", "{}", p), "nowhere",
           "a word that there is not is shown as its key");
}

static void word_faults(apr_pool_t *p)
{
    is_str(take_words("en", "a = 1\nb: 2\n", p), "Line 2: it is no key, \" = \" and a text.",
           "a line that is no word is refused");
    is_str(take_words("en", "a = 1\na = 2\n", p), "Line 2: this word stands there twice.",
           "a word that stands twice is refused");
    is_str(take_words("en", "a = 1\na.one = 2\n", p), "Line 2: this word stands there twice.",
           "a word with forms and without is refused");
    is_str(take_words("en", "\na = {{{b}}}", p),
           "Line 2: a word has a tag that is neither {{name}} nor {{@word}}.",
           "a word with an unescaped value is refused");
    is_str(take_words("en", "a = {{{@b}}}", p),
           "Line 1: a word has a tag that is neither {{name}} nor {{@word}}.",
           "a word that asks for markup is refused");
    is_str(take_words("en", "a = {{#b}}", p),
           "Line 1: a word has a tag that is neither {{name}} nor {{@word}}.",
           "a word with a section is refused");
    is_str(take_words("en", "a = {{b", p), "Line 1: a tag is not closed.",
           "a word with half a tag is refused");
    take_words("en", "a = {{@b}}\nb = {{@a}}\nc.one = 1\nc.other = 2\ntext = x", p);
    ok(strstr(html("{{@a}}", "{}", p), "\"a\" is inside of itself") != NULL,
       "a word within itself is refused");
    is_str(html("{{@c}}", "{}", p),
           "refused: The template test is not valid. Line 1: the word \"c\" has several forms, and "
           "the tag names no value to choose by.",
           "a word of several forms without a value is refused");
    ok(strstr(html("<style>{{@text}}</style>", "{}", p), "has a tag in it") != NULL,
       "a word within a style is refused");
    words = NULL;
}

static void partial_faults(apr_pool_t *p)
{
    is_str(html("\n{{> nowhere}}", "{}", p),
           "refused: The template test is not valid. Line 2: there is no partial \"nowhere\".",
           "a missing partial is refused, with the line that names it");
    is_str(html("{{> half}}", "{}", p),
           "refused: The template half is not valid. Line 2: there is no partial \"nowhere\".",
           "a missing partial of a partial is refused");
    is_str(html("{{> unclosed}}{{/a}}", "{}", p),
           "refused: The template unclosed is not valid. Line 2: the section \"a\" is not closed.",
           "a section can't end outside its partial");
    is_str(html("{{#a}}{{> closing}}", "{}", p),
           "refused: The template closing is not valid. Line 1: a section is closed that is not "
           "open.",
           "a section can't end inside a partial");
    is_str(html("{{> itself}}", "{}", p),
           "refused: The template itself is not valid. Line 2: \"itself\" is inside of "
           "itself.",
           "a partial that names itself is refused");
    is_str(html("{{> round}}", "{}", p),
           "refused: The template and_round is not valid. Line 1: \"round\" is inside "
           "of itself.",
           "a partial that is named by one of its own partials is refused");
    is_str(html("{{> a b}}", "{}", p),
           "refused: The template test is not valid. Line 1: a tag has no name of letters, digits "
           "and \"_\".",
           "a partial's name follows the rules for names");
}

static void write_file(const char *path, const char *bytes, apr_size_t length)
{
    FILE *file = fopen(path, "wb");

    if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0) {
        printf("# %s can't be written\n", path);
    }
}

static void files(apr_pool_t *p)
{
    const char *temp = getenv("TMPDIR");
    char *folder = apr_pstrcat(p, temp != NULL ? temp : "/tmp", "/template-XXXXXX", NULL);
    char *large = apr_palloc(p, 1024 * 1024 + 1);
    const char *why = NULL;
    const char *path;
    mdl_template_file_t file = {NULL, NULL};

    if (mkdtemp(folder) == NULL) {
        ok(0, "a temporary folder can be made");
        return;
    }
    path = apr_pstrcat(p, folder, "/page.html", NULL);
    write_file(path, "<p>{{a}}</p>\n", 13);
    is_int(mdl_template_read(&file, path, &why, p), APR_SUCCESS, "a file is read");
    is_str(file.text, "<p>{{a}}</p>\n", "its text is unchanged");
    is_str(file.path, path, "its path is returned");
    memset(large, 'x', 1024 * 1024 + 1);
    write_file(path, large, 1024 * 1024);
    is_int(mdl_template_read(&file, path, &why, p), APR_SUCCESS, "a file of 1 MiB is read");
    is_int(strlen(file.text), 1024 * 1024, "a file of 1 MiB is read whole");
    write_file(path, large, 1024 * 1024 + 1);
    is_int(mdl_template_read(&file, path, &why, p), APR_EINVAL,
           "a file of one byte more is refused");
    write_file(path, "a\0b", 3);
    is_int(mdl_template_read(&file, path, &why, p), APR_EINVAL, "a file with a NUL is refused");
    unlink(path);
    ok(APR_STATUS_IS_ENOENT(mdl_template_read(&file, path, &why, p)),
       "a missing file is APR_ENOENT");
    ok(strstr(why, path) != NULL, "the message names the missing file");
    rmdir(folder);
}

/* The text between <style> and </style>. */
static const char *style_of(const char *page, apr_pool_t *p)
{
    const char *begin = strstr(page, "<style>");
    const char *end = begin != NULL ? strstr(begin, "</style>") : NULL;

    if (end == NULL || strstr(end, "<style") != NULL) {
        return NULL;
    }
    return apr_pstrmemdup(p, begin, (apr_size_t)(end - begin));
}

static const char *shipped(const char *name, const char *data, apr_pool_t *p)
{
    static const char *const names[] = {"email.subject", "email.txt",    "email.html",
                                        "page.html",     "message.html", NULL};
    apr_array_header_t *problems = apr_array_make(p, 1, sizeof(const char *));
    const mdl_templates_t *templates = mdl_templates_read("conf/templates", names, problems, p);
    const char *language;

    is_str(apr_array_pstrcat(p, problems, ' '), "",
           "the templates that are shipped have no mistake");
    return mdl_template_render(mdl_templates_get(templates, name, 0, NULL, &language, p),
                               data_of(data, p), p);
}

static void shipped_emails(apr_pool_t *p)
{
    const char *data =
        "{\"shop\":{\"name\":\"Tea & "
        "Co\",\"support_email\":null},\"customer\":{\"first_name\":null},"
        "\"order_id\":\"1001\",\"page_url\":\"https://dl.test/d/abc?x=1&y=2\","
        "\"products\":[{\"has_files\":true,\"files\":[{\"title\":\"Book "
        "<1>\",\"filename\":\"b.pdf\",\"size\":{\"whole\":2,\"tenth\":0,\"unit\":\"MB\"}}]}],"
        "\"expires\":null}";
    const char *text = shipped("email.txt", data, p);
    const char *page = shipped("email.html", data, p);

    is_str(shipped("email.subject", data, p), "Your downloads from Tea & Co (order 1001)\n",
           "the subject is one line");
    ok(strncmp(text, "Hello,\n", 7) == 0, "a customer without a name is greeted, too");
    ok(strstr(text, "\nhttps://dl.test/d/abc?x=1&y=2\n") != NULL,
       "the text has the page's URL alone on a line, unescaped");
    ok(strstr(text, "- Book <1> (2.0 MB)\n") != NULL, "the text lists the files");
    ok(strstr(text, "\n\n\n") == NULL, "absent values leave no gap in the text");
    ok(strstr(text, "until") == NULL && strstr(text, "Write to") == NULL,
       "the text does not mention an absent expiry and support address");
    ok(strstr(page, "href=\"https://dl.test/d/abc?x=1&amp;y=2\"") != NULL,
       "the HTML has the link to the page, escaped");
    ok(strstr(page, "Book &lt;1&gt;") != NULL, "the HTML escapes a title");
    ok(strstr(page, "<script") == NULL && strstr(page, "src=") == NULL,
       "the HTML has no script and loads nothing");
}

static void shipped_pages(apr_pool_t *p)
{
    const char *page = shipped(
        "page.html",
        "{\"shop\":{\"name\":\"Tea\",\"support_email\":\"help@tea.test\"},\"order_id\":\"1001\","
        "\"active\":true,\"revoked\":false,\"held\":false,\"expired\":false,\"rejected\":false,"
        "\"reason\":null,\"expires\":null,\"action\":\"/d/abc\",\"products\":["
        "{\"title\":\"Library\",\"several\":true,\"first_files\":["
        "{\"id\":7,\"titled\":true,\"title\":\"<Book>\",\"filename\":\"b.pdf\",\"size\":null,"
        "\"sha256\":\"00ff\",\"limit\":{\"left\":3,\"total\":3,\"few\":true},\"ready\":true},"
        "{\"id\":8,\"title\":\"Map\",\"filename\":\"m.pdf\",\"size\":null,"
        "\"sha256\":\"aa\",\"limit\":{\"left\":0,\"total\":3},"
        "\"ready\":false,\"exhausted\":true}]}]}",
        p);
    const char *withdrawn = shipped(
        "page.html",
        "{\"shop\":{\"name\":\"Tea\"},\"order_id\":\"1\",\"revoked\":true,"
        "\"reason\":\"Refunded <today>\",\"action\":\"/d/abc\","
        "\"files\":[{\"id\":7,\"ready\":true}]}",
        p);
    const char *message = shipped(
        "message.html", "{\"state\":\"page_not_found\",\"status\":404,\"page_url\":null}", p);
    const char *form = strstr(page, "<form method=\"post\" action=\"/d/abc\">");

    ok(form && strstr(form, "<input type=\"hidden\" name=\"file\" value=\"7\">") &&
           strstr(form, "<button type=\"submit\" class=\"second\">"),
       "a ready file has a form with a button");
    ok(form && strstr(form + 1, "<form") == NULL, "a file whose limit is reached has no form");
    ok(strstr(page, "&lt;Book&gt;") && !strstr(page, "<Book>"), "a title is escaped");
    ok(strstr(page, "3 of 3 downloads left") && !strstr(page, "no downloads left"),
       "the page says how many downloads are left, if there are few");
    ok(strstr(withdrawn, "Refunded &lt;today&gt;") && !strstr(withdrawn, "<form"),
       "a revoked order shows the shop's reason and no form");
    ok(strstr(message, "<h1>There is no such page</h1>") && !strstr(message, "<a "),
       "a message without a page's URL has no link");
    ok(style_of(page, p) != NULL, "a page has one style");
    is_str(style_of(message, p), style_of(page, p), "both pages have the same style");
    ok(!strstr(page, "style=") && !strstr(message, "style=") && !strstr(message, "<script") &&
           !strstr(withdrawn, "<script"),
       "a page has no style that a strict Content-Security-Policy refuses, and a script only if "
       "there is something to download");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    values(p);
    sections(p);
    lists(p);
    lines(p);
    faults(p);
    partials(p);
    partial_faults(p);
    words_are_shown(p);
    word_faults(p);
    files(p);
    shipped_emails(p);
    shipped_pages(p);
    return tap_end(p);
}
