#include "platform/risk.h"

#include <stddef.h>

const char *const mdl_risk_names[] = {[MDL_RISK_NONE] = "none",
                                      [MDL_RISK_LOW] = "low",
                                      [MDL_RISK_MEDIUM] = "medium",
                                      [MDL_RISK_HIGH] = "high",
                                      NULL};
