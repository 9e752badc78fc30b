#include "core/download/charge.h"

#define FREE     MDL_CHARGE_FREE
#define RESERVED MDL_CHARGE_RESERVED
#define CHARGED  MDL_CHARGE_CHARGED

/* FREE and WHOLE: a transfer taken for lost may deliver a file whose download was given back. */
static const mdl_charge_t steps[MDL_CHARGE_STATES][MDL_CHARGE_EVENTS] = {
    [FREE] = {[MDL_CHARGE_REQUEST] = {RESERVED, MDL_CHARGE_TAKE},
              [MDL_CHARGE_PART] = {FREE, MDL_CHARGE_NOTHING},
              [MDL_CHARGE_WHOLE] = {CHARGED, MDL_CHARGE_TAKE_ANYWAY},
              [MDL_CHARGE_IDLE] = {FREE, MDL_CHARGE_NOTHING}},
    [RESERVED] = {[MDL_CHARGE_REQUEST] = {RESERVED, MDL_CHARGE_NOTHING},
                  [MDL_CHARGE_PART] = {RESERVED, MDL_CHARGE_NOTHING},
                  [MDL_CHARGE_WHOLE] = {CHARGED, MDL_CHARGE_NOTHING},
                  [MDL_CHARGE_IDLE] = {FREE, MDL_CHARGE_GIVE_BACK}},
    [CHARGED] = {[MDL_CHARGE_REQUEST] = {CHARGED, MDL_CHARGE_NOTHING},
                 [MDL_CHARGE_PART] = {CHARGED, MDL_CHARGE_NOTHING},
                 [MDL_CHARGE_WHOLE] = {CHARGED, MDL_CHARGE_NOTHING},
                 [MDL_CHARGE_IDLE] = {CHARGED, MDL_CHARGE_NOTHING}},
};

mdl_charge_t mdl_charge_step(mdl_charge_state_t state, mdl_charge_event_t event)
{
    return steps[state][event];
}
