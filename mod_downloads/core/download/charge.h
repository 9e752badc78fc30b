/*
 * What a link's requests cost of one of its files (contract, section 8): a state for each file, and
 * what each event does.
 *
 * A request reserves a download, what was delivered charges it, and a link that is idle before that
 * gives it back.
 */
#ifndef MDL_CORE_DOWNLOAD_CHARGE_H
#define MDL_CORE_DOWNLOAD_CHARGE_H

typedef enum {
    MDL_CHARGE_FREE,     /* the link has no download of it: none yet, or it was given back */
    MDL_CHARGE_RESERVED, /* it has one, which may be given back */
    MDL_CHARGE_CHARGED,  /* it has one for good */
    MDL_CHARGE_STATES
} mdl_charge_state_t;

typedef enum {
    MDL_CHARGE_REQUEST, /* bytes are asked for */
    MDL_CHARGE_PART,    /* some of it was delivered */
    MDL_CHARGE_WHOLE,   /* all of it has been, with what is kept of earlier links */
    MDL_CHARGE_IDLE,    /* no request came for DownloadsSessionIdle */
    MDL_CHARGE_EVENTS
} mdl_charge_event_t;

/** What is done to the downloads left of the file. */
typedef enum {
    MDL_CHARGE_NOTHING,
    MDL_CHARGE_TAKE,        /* one is taken, or the request is refused */
    MDL_CHARGE_TAKE_ANYWAY, /* one is taken, even beyond the limit: the bytes are delivered */
    MDL_CHARGE_GIVE_BACK
} mdl_charge_effect_t;

typedef struct {
    mdl_charge_state_t state;
    mdl_charge_effect_t effect;
} mdl_charge_t;

/** The next state, and what has to be done. */
mdl_charge_t mdl_charge_step(mdl_charge_state_t state, mdl_charge_event_t event);

#endif
