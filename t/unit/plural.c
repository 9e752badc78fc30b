/* Plural categories of numbers, by the examples of CLDR. */
#include "t/unit/tap.h"

#include <apr_strings.h>

#include "base/text/plural.h"

/* The categories of some numbers, as text. */
static const char *categories(const char *tag, const int *numbers, int count, apr_pool_t *p)
{
    mdl_plural_rule_t *rule = mdl_plural_rule(tag);
    const char *found = "";

    for (int i = 0; i < count; i++) {
        found = apr_pstrcat(p, found, i > 0 ? " " : "", mdl_plural_names[rule(numbers[i])], NULL);
    }
    return found;
}

int main(void)
{
    static const int numbers[] = {0,  1,  2,   3,   5,   6,   11,  12,
                                  21, 22, 100, 101, 102, 103, 111, 1000000};
    static const struct {
        const char *tag, *found;
    } cases[] = {
        {"en", "other one other other other other other other other other other other other other "
               "other other"},
        {"de-AT", "other one other other other other other other other other other other other "
                  "other other other"},
        {"tlh", "other one other other other other other other other other other other other other "
                "other other"},
        {"ja", "other other other other other other other other other other other other other "
               "other other other"},
        {"hi", "one one other other other other other other other other other other other other "
               "other other"},
        {"es", "other one other other other other other other other other other other other other "
               "other many"},
        {"fr-CA", "one one other other other other other other other other other other other other "
                  "other many"},
        {"pt", "one one other other other other other other other other other other other other "
               "other many"},
        {"pt-PT", "other one other other other other other other other other other other other "
                  "other other many"},
        {"ru", "many one few few many many many many one few many one few few many many"},
        {"sr", "other one few few other other other other one few other one few few other other"},
        {"pl", "many one few few many many many many many few many many few few many many"},
        {"cs", "other one few few other other other other other other other other other other "
               "other other"},
        {"sl",
         "other one two few other other other other other other other one two few other other"},
        {"lt", "other one few few few few other other one few other one few few other other"},
        {"lv",
         "zero one other other other other zero zero one other zero one other other zero zero"},
        {"ro", "few one few few few few few few other other other few few few few other"},
        {"he", "other one two other other other other other other other other other other other "
               "other other"},
        {"ga",
         "other one two few few few other other other other other other other other other other"},
        {"cy",
         "zero one two few other many other other other other other other other other other other"},
        {"ar", "zero one two few few few many many many many other other other few many other"},
    };
    apr_pool_t *p = tap_begin();

    for (apr_size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        is_str(categories(cases[i].tag, numbers, sizeof numbers / sizeof *numbers, p),
               cases[i].found, apr_pstrcat(p, "the plurals of ", cases[i].tag, NULL));
    }
    return tap_end(p);
}
