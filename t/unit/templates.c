/* Which template of a folder a customer gets, and the order of a browser's languages. */
#include "t/unit/tap.h"

#include <stdlib.h>
#include <unistd.h>

#include <apr_file_info.h>
#include <apr_file_io.h>
#include <apr_strings.h>

#include "base/http/accept_language.h"
#include "base/text/json.h"
#include "base/text/template_cache.h"
#include "base/text/present.h"

#define PAGE "<html lang=\"en\">"

static const char *const names[] = {"email.txt", "page.html", NULL};

typedef struct {
    apr_pool_t *p;
    const char *folder;
    mdl_templates_t *templates;
    apr_array_header_t *problems;
} set_t;

/* Writes a file, and makes the folder of its shop. */
static void put(const set_t *set, const char *name, const char *text)
{
    const char *path = apr_pstrcat(set->p, set->folder, "/", name, NULL);
    const char *parent = apr_pstrmemdup(set->p, path, (apr_size_t)(strrchr(path, '/') - path));
    apr_size_t length = strlen(text);
    apr_file_t *file;

    apr_dir_make(parent, APR_FPROT_OS_DEFAULT, set->p);
    if (apr_file_open(&file, path, APR_FOPEN_WRITE | APR_FOPEN_CREATE | APR_FOPEN_TRUNCATE,
                      APR_FPROT_OS_DEFAULT, set->p) != APR_SUCCESS) {
        ok(0, apr_pstrcat(set->p, "a file can be written: ", path, NULL));
        return;
    }
    apr_file_write_full(file, text, length, NULL);
    apr_file_close(file);
}

static void take_away(const set_t *set, const char *name)
{
    apr_file_remove(apr_pstrcat(set->p, set->folder, "/", name, NULL), set->p);
}

/* A folder with every required template; the text of a page says which file it is from. */
static set_t folder_of(apr_pool_t *p)
{
    const char *temp = getenv("TMPDIR");
    char *folder = apr_pstrcat(p, temp != NULL ? temp : "/tmp", "/templates-XXXXXX", NULL);
    set_t set = {.p = p};

    set.folder = mkdtemp(folder);
    for (const char *const *name = names; *name != NULL; name++) {
        put(&set, *name, "text");
    }
    put(&set, "page.html", PAGE "general");
    put(&set, "en.words", "hello = Hello\nbye = Bye\n");
    return set;
}

static void read_set(set_t *set)
{
    set->problems = apr_array_make(set->p, 1, sizeof(const char *));
    set->templates = mdl_templates_read(set->folder, names, set->problems, set->p);
}

static apr_array_header_t *list(const char *languages, apr_pool_t *p)
{
    apr_array_header_t *found = apr_array_make(p, 4, sizeof(const char *));
    char *last;

    for (char *tag = apr_strtok(apr_pstrdup(p, languages), " ", &last); tag != NULL;
         tag = apr_strtok(NULL, " ", &last)) {
        APR_ARRAY_PUSH(found, const char *) = tag;
    }
    return found;
}

/* "language: text" of the page that a customer of a shop with these languages gets. */
static const char *page(const set_t *set, apr_int64_t shop_id, const char *languages)
{
    const char *language, *text;
    const mdl_template_t *template = mdl_templates_get(set->templates, "page.html", shop_id,
                                                       list(languages, set->p), &language, set->p);

    if (template == NULL) {
        return "none";
    }
    text = mdl_template_render(template, mdl_json_object(set->p), set->p);
    return apr_pstrcat(set->p, language, ": ",
                       strncmp(text, "<html", 5) == 0 ? strchr(text, '>') + 1 : text, NULL);
}

static void languages(apr_pool_t *p)
{
    set_t set = folder_of(p);
    const char *language;

    put(&set, "page.de.html", "German");
    put(&set, "page.de-AT.html", "Austrian");
    put(&set, "page.zh-Hant.html", "traditional");
    read_set(&set);
    is_int(set.problems->nelts, 0, "a complete folder has no problem");
    is_str(page(&set, 0, ""), "en: general",
           "the template without a suffix is used without a language");
    is_str(page(&set, 0, "de"), "de: German", "a language's template is found by its suffix");
    is_str(page(&set, 0, "DE"), "de: German", "letter case does not matter");
    is_str(page(&set, 0, "de-AT"), "de-AT: Austrian", "a region's own template is used");
    is_str(page(&set, 0, "de_at"), "de-AT: Austrian", "a locale with an underscore is understood");
    is_str(page(&set, 0, "de-CH-1996"), "de: German", "the closest more general template is used");
    is_str(page(&set, 0, "zh-Hant-x-private"), "zh-Hant: traditional",
           "a single-letter subtag is removed with what follows it");
    is_str(page(&set, 0, "fr de"), "de: German",
           "the next language is used if the first has no template");
    is_str(page(&set, 0, "en-GB de"), "en: general",
           "the template without a suffix has the language of its html element");
    is_str(page(&set, 0, "fr"), "en: general",
           "the template without a suffix is used if no language has one");
    is_str(page(&set, 0, "../page x/y . -"), "en: general", "what is not a language is ignored");
    ok(mdl_templates_match(set.templates, "page.html", 0, list("fr", p), &language, p) == NULL,
       "a language without a template is not a match");
    ok(mdl_templates_match(set.templates, "page.html", 0, list("fr en", p), &language, p) != NULL,
       "a language with a template is a match");
}

static void shops(apr_pool_t *p)
{
    set_t set = folder_of(p);

    put(&set, "page.de.html", "German");
    put(&set, "shop-7/page.html", "seven");
    put(&set, "shop-7/page.fr.html", "seven, French");
    put(&set, "shop-8/page.de.html", "eight, German");
    put(&set, "shop-x/page.html", "{{#broken}}");
    read_set(&set);
    is_int(set.problems->nelts, 0, "a folder whose name is not a shop's is not read");
    is_str(page(&set, 7, "en"), ": seven", "a shop's own page is used for its customers");
    is_str(page(&set, 7, "de"), ": seven", "a shop's own page is used for every language");
    is_str(page(&set, 7, "fr"), "fr: seven, French",
           "a shop's own page in the language takes precedence");
    is_str(page(&set, 8, "de"), "de: eight, German",
           "a shop's page in one language is used for that language");
    is_str(page(&set, 8, "en de"), "en: general",
           "the general page is used for the other languages");
    is_str(page(&set, 9, "de"), "de: German", "another shop's customers do not get it");
}

/* A folder with several languages and three shops; a partial's text says which file it is from. */
static set_t folder_with_partials(apr_pool_t *p)
{
    set_t set = folder_of(p);

    put(&set, "page.html", PAGE "{{> month}}");
    put(&set, "page.de.html", "{{> month}}");
    put(&set, "page.de-AT.html", "{{> month}}");
    put(&set, "page.fr.html", "{{> month}}");
    put(&set, "month.mustache", "June\n");
    put(&set, "month.de.mustache", "Juni\n");
    put(&set, "shop-7/month.mustache", "sixth\n");
    put(&set, "shop-8/month.DE.mustache", "Brachet\n");
    put(&set, "shop-9/page.html", PAGE "its own {{> month}}");
    return set;
}

static void words(apr_pool_t *p)
{
    set_t set = folder_of(p);

    put(&set, "page.html", "{{@hello}} {{@bye}}{{> end}}");
    put(&set, "end.mustache", "!");
    put(&set, "de.words", "hello = Hallo\n");
    put(&set, "pt-BR.words", "hello = Olá\nbye = Tchau\n");
    put(&set, "de_AT.words", "hello = no tag\n");
    put(&set, "shop-7/de.words", "bye = Servus\n");
    put(&set, "shop-7/nl.words", "hello = Hallo\nbye = Dag\n");
    put(&set, "shop-8/page.html", PAGE "eight");
    put(&set, "shop-9/page.de.html", "neun");
    read_set(&set);
    is_int(set.problems->nelts, 0, "words have no problem");
    is_str(page(&set, 0, ""), "en: Hello Bye!", "a template with words is English");
    is_str(page(&set, 0, "en-GB"), "en: Hello Bye!", "for who reads English, too");
    is_str(page(&set, 0, "pt-BR"), "pt-BR: Olá Tchau!", "it is in each language that has words");
    is_str(page(&set, 0, "pt fr"), "en: Hello Bye!", "and in no other");
    is_str(page(&set, 0, "de-AT"), "de: Hallo Bye!", "a word that a language lacks is English");
    is_str(page(&set, 7, "de"), "de: Hallo Servus!", "a shop has words of its own");
    is_str(page(&set, 7, "nl"), "nl: Hallo Dag!", "and languages of its own");
    is_str(page(&set, 0, "nl"), "en: Hello Bye!", "which others have not");
    is_str(page(&set, 8, "de"), "en: eight", "a shop's whole page without words is in no other");
    is_str(page(&set, 9, "de"), "de: neun", "a shop's page in a language goes before its words");
    is_str(page(&set, 9, "pt-BR"), "pt-BR: Olá Tchau!", "its other languages have the words");
    put(&set, "page.de.html", "Ganz deutsch");
    put(&set, "pt-BR.words", "hello = {{#bye}}\n");
    take_away(&set, "en.words");
    read_set(&set);
    is_str(page(&set, 0, "de"), "de: Ganz deutsch", "a page in a language goes before its words");
    is_str(page(&set, 0, "pt-BR"), "en: hello bye!", "words that are not valid are not used");
    is_int(set.problems->nelts, 2, "they are a problem, and so is it that the English ones lack");
}

static void partials(apr_pool_t *p)
{
    set_t set = folder_with_partials(p);

    read_set(&set);
    is_int(set.problems->nelts, 0, "a folder with partials has no problem");
    is_str(page(&set, 0, "en"), "en: June", "a partial is inserted into the page");
    is_str(page(&set, 0, "de"), "de: Juni", "the partial has the language of the page");
    is_str(page(&set, 0, "de-AT"), "de-AT: Juni", "the closest more general partial is used");
    is_str(page(&set, 0, "fr"), "fr: June",
           "the partial without a suffix is used if no language matches");
    is_str(page(&set, 7, "en"), "en: sixth",
           "a shop's own partial is inserted into the general page");
    is_str(page(&set, 7, "de"), "de: sixth", "a shop's own partial is used for every language");
    is_str(page(&set, 8, "de-AT"), "de-AT: Brachet",
           "a shop's partial in one language is used for that language");
    is_str(page(&set, 8, "en"), "en: June", "the general partial is used for the other languages");
    is_str(page(&set, 9, "de"), "en: its own June",
           "the general partials are inserted into a shop's own page");
}

static int has_problem(const set_t *set, const char *text)
{
    return strstr(apr_array_pstrcat(set->p, set->problems, ' '), text) != NULL;
}

static void partial_faults(apr_pool_t *p)
{
    set_t set = folder_with_partials(p);

    put(&set, "shop-7/month.mustache", "{{> month}}");
    read_set(&set);
    is_int(set.problems->nelts, 1, "a mistake in a partial is reported once");
    ok(has_problem(&set, "/shop-7/month.mustache is not valid. Line 1: \"month\" is inside"),
       "the message names the file and the line");
    is_str(page(&set, 7, "de"), "de: Juni", "the shop's customers get the general partial");

    take_away(&set, "month.mustache");
    read_set(&set);
    ok(has_problem(&set, "/page.html is not valid. Line 1: there is no partial \"month\""),
       "a template without its partial is named");
    is_str(page(&set, 0, "de"), "de: Juni", "a page whose partial exists is used");
    is_str(page(&set, 0, "en"), "none", "a page without its partial is not used");
}

static void faults(apr_pool_t *p)
{
    set_t set = folder_of(p);

    put(&set, "page.de.html", "\n{{#open}}");
    put(&set, "page.html.new", "{{#open}}");
    put(&set, "notes.txt", "{{#open}}");
    put(&set, "page..html", "{{#open}}");
    take_away(&set, "email.txt");
    read_set(&set);
    is_int(set.problems->nelts, 2, "two problems are reported");
    ok(has_problem(&set, "/page.de.html is not valid. Line 2: "),
       "the template with a mistake is named");
    ok(has_problem(&set, "/email.txt can't be read: "), "the missing template is named");
    is_str(page(&set, 0, "de"), "en: general",
           "the general page is used instead of one with a mistake");
    take_away(&set, "page.html");
    read_set(&set);
    is_str(page(&set, 0, "de"), "none", "no page is used if there is no other");

    set.folder = apr_pstrcat(p, set.folder, "/nowhere", NULL);
    read_set(&set);
    ok(has_problem(&set, "/nowhere/ can't be read: "), "a missing folder is named");
}

static const char *accepted(const char *value, apr_pool_t *p)
{
    return apr_array_pstrcat(p, mdl_accept_language(value, p), ' ');
}

static void accept_language(apr_pool_t *p)
{
    is_str(accepted("de-AT,de;q=0.9,en;q=0.8", p), "de-AT de en", "a browser's header is read");
    is_str(accepted("en;q=0.1, fr ; q=0.7 ,de", p), "de fr en", "languages are sorted by weight");
    is_str(accepted("fr;q=0.5,de;q=0.500,it;q=0.5", p), "fr de it",
           "languages of the same weight keep their order");
    is_str(accepted("de;q=0, en;q=0.001, fr;q=0.000", p), "en",
           "a language of weight 0 is left out");
    is_str(accepted("*, en", p), "en", "the wildcard is left out");
    is_str(accepted("de;q=2, fr;q=1.1, it;q=, es;q=0.1234, pt;x=1, en", p), "en",
           "a malformed language is left out");
    is_str(accepted("", p), "", "an empty header has no language");
    is_str(accepted(NULL, p), "", "a missing header has no language");
    is_str(accepted(",,;q=1, ;,", p), "", "empty list elements are ignored");
    is_int(mdl_accept_language(
               apr_pstrcat(p, "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,",
                           "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z", NULL),
               p)
               ->nelts,
           32, "at most 32 languages are kept");
}

static const char *size(apr_int64_t bytes, apr_pool_t *p)
{
    static const mdl_template_file_t file = {
        "size", "{{#size}}{{whole}}{{#tenth}}.{{tenth}}{{/tenth}} {{unit}}{{/size}}"};
    mdl_json_t *data = mdl_json_object(p);
    mdl_template_t *t;
    const char *why;

    mdl_present_size(data, "size", bytes);
    mdl_template_parse(&t, MDL_TEMPLATE_TEXT, &file, NULL, &why, p);
    return mdl_template_render(t, data, p);
}

static void sizes(apr_pool_t *p)
{
    is_str(size(0, p), "0 byte", "no bytes");
    is_str(size(1, p), "1 byte", "one byte");
    is_str(size(999, p), "999 byte", "bytes up to 999");
    is_str(size(1000, p), "1.0 kB", "a unit begins at 1.0");
    is_str(size(2345678, p), "2.3 MB", "a size is rounded down");
    is_str(size(2351000, p), "2.4 MB", "a size is rounded up");
    is_str(size(99949, p), "99.9 kB", "one decimal below 100");
    is_str(size(99950, p), "100 kB", "no decimal from 100 on");
    is_str(size(999949, p), "1.0 MB", "a size that rounds to 1000 has the next unit");
    is_str(size(APR_INT64_MAX, p), "9.2 EB", "the largest size");
}

static void dates(apr_pool_t *p)
{
    mdl_json_t *data = mdl_json_object(p);
    apr_size_t length;

    mdl_present_date(data, "a", apr_time_from_sec(1793876400));
    mdl_present_date(data, "b", 0);
    is_str(mdl_json_text(data, &length, p),
           "{\"a\":{\"year\":2026,\"month\":\"11\",\"day\":\"05\",\"day_number\":5,"
           "\"time\":\"11:00\",\"rfc3339\":\"2026-11-05T11:00:00.000Z\"},\"b\":null}",
           "a date has every part that a language may need, and a missing date is null");
}

/* --- the cache --- */

static void take(set_t *set, mdl_template_cache_t *cache, apr_int64_t shop_id)
{
    mdl_template_cache_refresh(cache);
    set->problems = apr_array_make(set->p, 1, sizeof(const char *));
    set->templates = (mdl_templates_t *)mdl_template_cache_get(cache, shop_id, set->problems,
                                                               set->p);
}

static const char *cached_page(set_t *set, mdl_template_cache_t *cache, apr_int64_t shop_id)
{
    take(set, cache, shop_id);
    return page(set, shop_id, "");
}

static void cache_sees_changes(apr_pool_t *p)
{
    set_t set = folder_of(p);
    mdl_template_cache_t *cache = mdl_template_cache_create(set.folder, names, p);

    is_str(cached_page(&set, cache, 7), "en: general",
           "a shop without templates gets the general ones");
    put(&set, "page.html", PAGE "GENERAL");
    is_str(cached_page(&set, cache, 7), "en: GENERAL",
           "an edit that keeps the size is seen at once");
    put(&set, "page.html", PAGE "{{> month}}");
    is_str(cached_page(&set, cache, 7), "none", "an edit with a mistake is seen at once");
    is_int(set.problems->nelts, 1, "the mistake is reported");
    put(&set, "month.mustache", "May");
    is_str(cached_page(&set, cache, 7), "en: May", "its correction is seen at once");
    put(&set, "month.mustache", "Jun");
    is_str(cached_page(&set, cache, 7), "en: Jun", "an edited partial is seen at once");
    put(&set, "shop-7/page.html", PAGE "seven");
    is_str(cached_page(&set, cache, 7), "en: seven", "a shop's first template is seen at once");
    is_str(cached_page(&set, cache, 8), "en: Jun", "another shop does not get it");
    put(&set, "shop-7/page.html", PAGE "SEVEN");
    is_str(cached_page(&set, cache, 7), "en: SEVEN",
           "an edit of a shop's template is seen at once");
    put(&set, "month.mustache", "Jul");
    take_away(&set, "shop-7/page.html");
    is_str(cached_page(&set, cache, 7), "en: Jul",
           "the removal of a shop's template is seen at once");
}

static void cache_compiles_once(apr_pool_t *p)
{
    set_t set = folder_of(p);
    mdl_template_cache_t *cache = mdl_template_cache_create(set.folder, names, p);
    const mdl_templates_t *first, *own;

    put(&set, "shop-7/page.html", PAGE "{{broken");
    apr_sleep(apr_time_from_msec(1100));
    take(&set, cache, 7);
    own = set.templates;
    is_int(set.problems->nelts, 1, "a mistake is reported");
    take(&set, cache, 7);
    ok(set.templates == own, "files that have not changed are not compiled again");
    is_int(set.problems->nelts, 0, "a mistake in unchanged files is not reported again");
    take(&set, cache, 8);
    first = set.templates;
    is_int(set.problems->nelts, 0, "another shop's mistake is not reported");
    take(&set, cache, 9);
    ok(set.templates == first, "shops without own templates share one set");
    put(&set, "shop-7/page.html", PAGE "seven");
    ok(mdl_template_cache_get(cache, 9, set.problems, p) == first,
       "files are not checked before the next refresh");
    take(&set, cache, 8);
    ok(set.templates == first, "a change of one shop's files does not affect that set");
    is_str(cached_page(&set, cache, 7), "en: seven", "the change is seen for that shop");
    for (int i = 100; i < 250; i++) {
        put(&set, apr_psprintf(p, "shop-%d/page.html", i), apr_psprintf(p, PAGE "%d", i));
        take(&set, cache, i);
    }
    is_str(cached_page(&set, cache, 100), "en: 100",
           "the first of more shops than the cache holds gets its template");
    is_str(cached_page(&set, cache, 249), "en: 249", "the last of them gets its template");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    languages(p);
    shops(p);
    words(p);
    partials(p);
    partial_faults(p);
    faults(p);
    accept_language(p);
    sizes(p);
    dates(p);
    cache_sees_changes(p);
    cache_compiles_once(p);
    return tap_end(p);
}
