#include "base/text/idn.h"

#include <apr_strings.h>
#include <idn2.h>

#include "base/text/utf8.h"

const char *mdl_idn_ascii(const char *name, apr_pool_t *p)
{
    const char *result = NULL;
    uint8_t *found = NULL;

    if (mdl_utf8_is_ascii(name)) {
        return apr_pstrdup(p, name);
    }
    if (idn2_lookup_u8((const uint8_t *)name, &found, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) ==
        IDN2_OK) {
        result = apr_pstrdup(p, (const char *)found);
    }
    idn2_free(found);
    return result;
}
