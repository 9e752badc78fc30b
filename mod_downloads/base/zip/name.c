#include "base/zip/name.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "base/sha256.h"
#include "base/text/fold.h"
#include "base/text/utf8.h"

#define EXTENSION_MAX 32 /* bytes with the dot; a longer one is part of the name */
#define NAMELESS      "file"

/* The digest of a name that is taken: the names themselves would need most of the memory. */
typedef struct {
    unsigned char digest[12];
    int number; /* the first to try for the next duplicate; 0: the slot is free */
} taken_t;

struct mdl_zip_names_t {
    apr_pool_t *pool;
    apr_pool_t *scratch;
    mdl_sha256_t *sha;
    taken_t *taken; /* open addressing */
    apr_size_t mask;
    apr_size_t count;
};

static char *utf8_put(char *to, apr_uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c >= 0x10000) {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
    } else if (c >= 0x800) {
        *to++ = (char)(0xe0 | c >> 12);
    }
    if (c >= 0x800) {
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    } else {
        *to++ = (char)(0xc0 | c >> 6);
    }
    *to++ = (char)(0x80 | (c & 0x3f));
    return to;
}

/* --- safe names --- */

/* Separators, characters that Windows refuses, mdl_utf8_disturbs_filename's, and noncharacters. */
static int is_unsafe(apr_uint32_t c)
{
    return (c < 0x80 && strchr("/\\\"<>:|?*", (int)c) != NULL) || mdl_utf8_disturbs_filename(c) ||
           (c >= 0xfffd && c <= 0xffff);
}

static char *name_replace_unsafe(const char *filename, apr_pool_t *p)
{
    char *name = apr_palloc(p, strlen(filename) + 1);
    char *to = name;
    apr_uint32_t c;

    while (*filename != '\0') {
        filename += mdl_utf8_read(filename, &c);
        to = utf8_put(to, is_unsafe(c) ? '_' : c);
    }
    *to = '\0';
    return name;
}

/* Windows drops dots and spaces at the end, so two names could become the same. */
static apr_size_t trimmed_length(const char *name, apr_size_t length)
{
    while (length > 0 && (name[length - 1] == '.' || name[length - 1] == ' ')) {
        length--;
    }
    return length;
}

/* Windows reserves these names for devices, with any extension. */
static int is_device(const char *name)
{
    static const char *const devices[] = {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"};
    static const char *const numbers[] = {"0", "1", "2", "3",        "4",        "5",       "6",
                                          "7", "8", "9", "\xc2\xb9", "\xc2\xb2", "\xc2\xb3"};
    apr_size_t length = trimmed_length(name, strcspn(name, "."));

    for (apr_size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        if (strlen(devices[i]) == length && strncasecmp(name, devices[i], length) == 0) {
            return 1;
        }
    }
    if (length < 4 || (strncasecmp(name, "COM", 3) != 0 && strncasecmp(name, "LPT", 3) != 0)) {
        return 0;
    }
    for (apr_size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strlen(numbers[i]) == length - 3 && strncmp(name + 3, numbers[i], length - 3) == 0) {
            return 1;
        }
    }
    return 0;
}

static const char *name_make_safe(const char *filename, apr_pool_t *p)
{
    char *name = name_replace_unsafe(filename, p);

    name[trimmed_length(name, strlen(name))] = '\0';
    if (*name == '\0') {
        return NAMELESS;
    }
    return is_device(name) ? apr_pstrcat(p, "_", name, NULL) : name;
}

/* --- duplicates --- */

static apr_size_t extension_length(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL && dot > name && strlen(dot) <= EXTENSION_MAX ? strlen(dot) : 0;
}

/* The name with a text inserted before its extension, cut to MDL_ZIP_NAME_MAX. */
static const char *name_assemble(const char *name, const char *insertion, apr_pool_t *p)
{
    apr_size_t extension = extension_length(name);
    apr_size_t stem = strlen(name) - extension;
    apr_size_t room = MDL_ZIP_NAME_MAX - extension - strlen(insertion);

    if (stem > room) {
        for (stem = room; stem > 0 && (name[stem] & 0xc0) == 0x80; stem--) {
        }
        stem = trimmed_length(name, stem);
    }
    return apr_pstrcat(p, apr_pstrmemdup(p, name, stem), insertion, name + strlen(name) - extension,
                       NULL);
}

static taken_t *names_slot(const mdl_zip_names_t *names, const unsigned char *digest)
{
    apr_size_t i;

    for (memcpy(&i, digest, sizeof i);; i++) {
        taken_t *taken = &names->taken[i & names->mask];

        if (taken->number == 0 || memcmp(taken->digest, digest, sizeof taken->digest) == 0) {
            return taken;
        }
    }
}

static void names_resize(mdl_zip_names_t *names, apr_size_t size)
{
    mdl_zip_names_t old = *names;

    names->mask = size - 1;
    names->taken = apr_pcalloc(names->scratch, size * sizeof(taken_t));
    for (apr_size_t i = 0; old.taken != NULL && i <= old.mask; i++) {
        if (old.taken[i].number != 0) {
            *names_slot(names, old.taken[i].digest) = old.taken[i];
        }
    }
}

/* The slot of a name, taken or free; a free one gets its digest. */
static taken_t *names_look_up(const mdl_zip_names_t *names, const char *name, apr_pool_t *p)
{
    const char *folded = mdl_text_fold(name, p);
    unsigned char digest[MDL_SHA256_LENGTH];
    taken_t *taken;

    mdl_sha256_update(names->sha, folded, strlen(folded));
    mdl_sha256_end(names->sha, digest);
    taken = names_slot(names, digest);
    if (taken->number == 0) {
        memcpy(taken->digest, digest, sizeof taken->digest);
    }
    return taken;
}

mdl_zip_names_t *mdl_zip_names_begin(int expected, apr_pool_t *p)
{
    mdl_zip_names_t *names = apr_pcalloc(p, sizeof *names);
    apr_size_t size = 64;

    names->pool = p;
    apr_pool_create(&names->scratch, p);
    apr_pool_tag(names->scratch, "mdl_zip_names");
    names->sha = mdl_sha256_begin(names->scratch);
    while (size * 3 / 4 < (apr_size_t)expected) {
        size *= 2;
    }
    names_resize(names, size);
    return names;
}

const char *mdl_zip_names_add(mdl_zip_names_t *names, const char *filename)
{
    apr_pool_t *p;
    const char *wanted, *name;
    taken_t *first, *taken;

    apr_pool_create(&p, names->scratch);
    wanted = name_make_safe(filename, p);
    name = name_assemble(wanted, "", p);
    first = taken = names_look_up(names, name, p);
    while (taken->number != 0) {
        name = name_assemble(wanted, apr_psprintf(p, " (%d)", first->number++), p);
        taken = names_look_up(names, name, p);
    }
    taken->number = 2;
    name = apr_pstrdup(names->pool, name);
    apr_pool_destroy(p);
    if (++names->count > names->mask / 4 * 3) {
        names_resize(names, 2 * (names->mask + 1));
    }
    return name;
}

void mdl_zip_names_end(mdl_zip_names_t *names)
{
    apr_pool_destroy(names->scratch);
}
