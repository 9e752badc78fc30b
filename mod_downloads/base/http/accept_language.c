#include "base/http/accept_language.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#define MAX_RANGES 32
#define SUBTAG_MAX 8
#define LETTERS    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

typedef struct {
    const char *range;
    int weight; /* in thousandths */
} choice_t;

/* RFC 9110 section 12.4.2: 0 to 1 with up to three digits; -1 for anything else. */
static int weight_parse(const char *text)
{
    int weight, scale = 100;

    if (*text != '0' && *text != '1') {
        return -1;
    }
    weight = (*text++ - '0') * 1000;
    if (*text == '.') {
        for (text++; apr_isdigit(*text) && scale > 0; text++, scale /= 10) {
            weight += (*text - '0') * scale;
        }
    }
    return *text == '\0' && weight <= 1000 ? weight : -1;
}

/* Parses "de-AT;q=0.8"; 0 for a range that is malformed or has weight 0. */
static int choice_parse(char *text, choice_t *choice)
{
    char *semicolon = strchr(text, ';');

    choice->weight = 1000;
    if (semicolon != NULL) {
        char *parameter = semicolon + 1 + strspn(semicolon + 1, " \t");

        if (apr_tolower(parameter[0]) != 'q' || parameter[1] != '=') {
            return 0;
        }
        choice->weight = weight_parse(parameter + 2);
        *semicolon = '\0';
    }
    apr_collapse_spaces(text, text);
    choice->range = text;
    return choice->weight > 0 && apr_isalpha(*text);
}

/* Inserts a choice by its weight, after choices of equal weight. */
static void choice_insert(choice_t *choices, int count, choice_t choice)
{
    int at = count;

    for (; at > 0 && choices[at - 1].weight < choice.weight; at--) {
        choices[at] = choices[at - 1];
    }
    choices[at] = choice;
}

apr_array_header_t *mdl_accept_language(const char *value, apr_pool_t *p)
{
    apr_array_header_t *ranges = apr_array_make(p, 4, sizeof(const char *));
    choice_t choices[MAX_RANGES];
    int count = 0;
    char *last;

    for (char *text = value != NULL ? apr_strtok(apr_pstrdup(p, value), ",", &last) : NULL;
         text != NULL && count < MAX_RANGES; text = apr_strtok(NULL, ",", &last)) {
        choice_t choice;

        text += strspn(text, " \t");
        for (apr_size_t end = strlen(text); end > 0 && strchr(" \t", text[end - 1]) != NULL;) {
            text[--end] = '\0';
        }
        if (choice_parse(text, &choice)) {
            choice_insert(choices, count++, choice);
        }
    }
    for (int i = 0; i < count; i++) {
        APR_ARRAY_PUSH(ranges, const char *) = choices[i].range;
    }
    return ranges;
}

int mdl_language_tag_valid(const char *text)
{
    apr_size_t length = strspn(text, LETTERS);

    while (length > 0 && length <= SUBTAG_MAX && (text[length] == '-' || text[length] == '_')) {
        text += length + 1;
        length = strspn(text, LETTERS "0123456789");
    }
    return length > 0 && length <= SUBTAG_MAX && text[length] == '\0';
}

/* Whether a language is the first length bytes of a range, or a kind of it. */
static int language_fits(const char *range, apr_size_t length, const char *language)
{
    for (apr_size_t i = 0; i < length; i++) {
        int a = range[i] == '_' ? '-' : range[i], b = language[i] == '_' ? '-' : language[i];

        if (b == '\0' || apr_tolower(a) != apr_tolower(b)) {
            return 0;
        }
    }
    return strchr("-_", language[length]) != NULL; /* or its end */
}

const char *mdl_language_list(const char *text, apr_pool_t *p)
{
    const char *list = NULL;
    int count = 0;
    char *last;

    for (char *tag = apr_strtok(apr_pstrdup(p, text), ", ", &last); tag != NULL;
         tag = apr_strtok(NULL, ", ", &last)) {
        if (strlen(tag) > MDL_LANGUAGE_MAX || !mdl_language_tag_valid(tag) ||
            ++count > MDL_LANGUAGES_MAX) {
            return NULL;
        }
        for (const char *each = list; each != NULL && *each != '\0';) {
            apr_size_t length = strcspn(each, ",");

            if (strlen(tag) == length && language_fits(each, length, tag)) {
                return NULL;
            }
            each += length + (each[length] == ',');
        }
        list = list == NULL ? tag : apr_pstrcat(p, list, ",", tag, NULL);
    }
    return list;
}

int mdl_language_offers(const char *list, const char *language)
{
    while (list != NULL && *list != '\0') {
        apr_size_t length = strcspn(list, ",");

        if (language_fits(list, length, language)) {
            return 1;
        }
        list += length + (list[length] == ',');
    }
    return list == NULL;
}

apr_array_header_t *mdl_language_offered(const char *list, const apr_array_header_t *languages,
                                         apr_pool_t *p)
{
    apr_array_header_t *offered = apr_array_make(p, languages->nelts + 1, sizeof(const char *));

    for (int i = 0; i < languages->nelts; i++) {
        const char *language = APR_ARRAY_IDX(languages, i, const char *);

        if (mdl_language_offers(list, language)) {
            APR_ARRAY_PUSH(offered, const char *) = language;
        }
    }
    if (list != NULL) {
        APR_ARRAY_PUSH(offered, const char *) = apr_pstrndup(p, list, strcspn(list, ","));
    }
    return offered;
}
