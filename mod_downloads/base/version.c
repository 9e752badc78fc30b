#include "base/version.h"

#include "base/commit.h"

const char *mdl_build_name(void)
{
    return sizeof MDL_COMMIT > 1 ? MDL_VERSION " (" MDL_COMMIT ")" : MDL_VERSION;
}
