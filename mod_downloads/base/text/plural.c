#include "base/text/plural.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#define MILLION 1000000

const char *const mdl_plural_names[] = {"zero", "one", "two", "few", "many", "other", NULL};

static int between(apr_int64_t n, int from, int to)
{
    return n >= from && n <= to;
}

/* 11 to 19 take another plural than other numbers that end in 1 to 9. */
static int is_teen(apr_int64_t n)
{
    return between(n % 100, 11, 19);
}

static mdl_plural_t plural_never(apr_int64_t n)
{
    (void)n;
    return MDL_PLURAL_OTHER;
}

static mdl_plural_t plural_english(apr_int64_t n)
{
    return n == 1 ? MDL_PLURAL_ONE : MDL_PLURAL_OTHER;
}

static mdl_plural_t plural_hindi(apr_int64_t n)
{
    return n <= 1 ? MDL_PLURAL_ONE : MDL_PLURAL_OTHER;
}

/* "un million de fichiers" */
static mdl_plural_t plural_spanish(apr_int64_t n)
{
    return n != 0 && n % MILLION == 0 ? MDL_PLURAL_MANY : plural_english(n);
}

static mdl_plural_t plural_french(apr_int64_t n)
{
    return n != 0 && n % MILLION == 0 ? MDL_PLURAL_MANY : plural_hindi(n);
}

static mdl_plural_t plural_russian(apr_int64_t n)
{
    return is_teen(n)              ? MDL_PLURAL_MANY
           : n % 10 == 1           ? MDL_PLURAL_ONE
           : between(n % 10, 2, 4) ? MDL_PLURAL_FEW
                                   : MDL_PLURAL_MANY;
}

static mdl_plural_t plural_serbian(apr_int64_t n)
{
    mdl_plural_t plural = plural_russian(n);

    return plural == MDL_PLURAL_MANY ? MDL_PLURAL_OTHER : plural;
}

static mdl_plural_t plural_polish(apr_int64_t n)
{
    return n == 1                                ? MDL_PLURAL_ONE
           : plural_russian(n) == MDL_PLURAL_FEW ? MDL_PLURAL_FEW
                                                 : MDL_PLURAL_MANY;
}

static mdl_plural_t plural_czech(apr_int64_t n)
{
    return between(n, 2, 4) ? MDL_PLURAL_FEW : plural_english(n);
}

static mdl_plural_t plural_slovenian(apr_int64_t n)
{
    return n % 100 == 1             ? MDL_PLURAL_ONE
           : n % 100 == 2           ? MDL_PLURAL_TWO
           : between(n % 100, 3, 4) ? MDL_PLURAL_FEW
                                    : MDL_PLURAL_OTHER;
}

static mdl_plural_t plural_lithuanian(apr_int64_t n)
{
    return is_teen(n) || n % 10 == 0 ? MDL_PLURAL_OTHER
           : n % 10 == 1             ? MDL_PLURAL_ONE
                                     : MDL_PLURAL_FEW;
}

static mdl_plural_t plural_latvian(apr_int64_t n)
{
    return is_teen(n) || n % 10 == 0 ? MDL_PLURAL_ZERO
           : n % 10 == 1             ? MDL_PLURAL_ONE
                                     : MDL_PLURAL_OTHER;
}

static mdl_plural_t plural_romanian(apr_int64_t n)
{
    return n == 1                              ? MDL_PLURAL_ONE
           : n == 0 || between(n % 100, 1, 19) ? MDL_PLURAL_FEW
                                               : MDL_PLURAL_OTHER;
}

static mdl_plural_t plural_hebrew(apr_int64_t n)
{
    return n == 2 ? MDL_PLURAL_TWO : plural_english(n);
}

static mdl_plural_t plural_irish(apr_int64_t n)
{
    return between(n, 3, 6)    ? MDL_PLURAL_FEW
           : between(n, 7, 10) ? MDL_PLURAL_MANY
                               : plural_hebrew(n);
}

static mdl_plural_t plural_welsh(apr_int64_t n)
{
    return n == 0   ? MDL_PLURAL_ZERO
           : n == 3 ? MDL_PLURAL_FEW
           : n == 6 ? MDL_PLURAL_MANY
                    : plural_hebrew(n);
}

static mdl_plural_t plural_arabic(apr_int64_t n)
{
    return n == 0                     ? MDL_PLURAL_ZERO
           : between(n, 1, 2)         ? plural_hebrew(n)
           : between(n % 100, 3, 10)  ? MDL_PLURAL_FEW
           : between(n % 100, 11, 99) ? MDL_PLURAL_MANY
                                      : MDL_PLURAL_OTHER;
}

/* All other languages have the rule of English. */
static const struct {
    const char *languages; /* each followed by a space */
    mdl_plural_rule_t *rule;
} rules[] = {
    {"ja zh ko th vi id ms lo my km jv bo dz ", plural_never},
    {"hi fa bn gu kn zu am as ", plural_hindi},
    {"es it ca pt-pt ", plural_spanish},
    {"fr pt ", plural_french},
    {"ru uk be ", plural_russian},
    {"sr hr bs ", plural_serbian},
    {"pl ", plural_polish},
    {"cs sk ", plural_czech},
    {"sl ", plural_slovenian},
    {"lt ", plural_lithuanian},
    {"lv ", plural_latvian},
    {"ro ", plural_romanian},
    {"he iw ", plural_hebrew},
    {"ga ", plural_irish},
    {"cy ", plural_welsh},
    {"ar ", plural_arabic},
};

/* Whether the first length bytes of tag are one of languages. */
static int languages_have(const char *languages, const char *tag, apr_size_t length)
{
    for (; *languages != '\0'; languages = strchr(languages, ' ') + 1) {
        if (strncasecmp(languages, tag, length) == 0 && languages[length] == ' ') {
            return 1;
        }
    }
    return 0;
}

mdl_plural_rule_t *mdl_plural_rule(const char *tag)
{
    const apr_size_t lengths[] = {strlen(tag), strcspn(tag, "-")};

    for (int i = 0; i < 2; i++) {
        for (apr_size_t j = 0; j < sizeof rules / sizeof *rules; j++) {
            if (languages_have(rules[j].languages, tag, lengths[i])) {
                return rules[j].rule;
            }
        }
    }
    return plural_english;
}
