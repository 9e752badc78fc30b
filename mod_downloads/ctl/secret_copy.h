/*
 * A copy of the secret for those who make backups, apart from the backups: whoever has both can
 * open what the database has sealed.
 */
#ifndef MDL_CTL_SECRET_COPY_H
#define MDL_CTL_SECRET_COPY_H

#include "base/crypto.h"

/** Writes the secret to a file outside of folder, an older one to file.2 and so on.  Returns NULL,
    or a sentence on why it is not there. */
const char *mdl_ctl_secret_copy(const mdl_secret_t *secret, const char *file, const char *folder,
                                apr_pool_t *p);

#endif
