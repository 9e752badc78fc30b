/*
 * Plural categories of whole numbers, by the rules of Unicode's CLDR
 * (https://www.unicode.org/cldr/charts/latest/supplemental/language_plural_rules.html).
 */
#ifndef MDL_BASE_TEXT_PLURAL_H
#define MDL_BASE_TEXT_PLURAL_H

#include <apr.h>

typedef enum {
    MDL_PLURAL_ZERO,
    MDL_PLURAL_ONE,
    MDL_PLURAL_TWO,
    MDL_PLURAL_FEW,
    MDL_PLURAL_MANY,
    MDL_PLURAL_OTHER
} mdl_plural_t;

/** "zero" to "other", ended by NULL. */
extern const char *const mdl_plural_names[];

typedef mdl_plural_t mdl_plural_rule_t(apr_int64_t n);

/** The rule for a language tag ("pt-BR"); English's for an unknown language. */
mdl_plural_rule_t *mdl_plural_rule(const char *tag);

#endif
