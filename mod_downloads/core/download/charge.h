/*
 * What the requests of a link cost (contract, section 8): the state of each file of the link, and
 * how each event changes it.
 *
 * A request reserves a download of the file, delivering the file charges it, and a link that
 * becomes idle before that gives it back.
 */
#ifndef MDL_CORE_DOWNLOAD_CHARGE_H
#define MDL_CORE_DOWNLOAD_CHARGE_H

typedef enum {
    MDL_CHARGE_FREE,     /* the link has no download of the file: none yet, or it was given back */
    MDL_CHARGE_RESERVED, /* the link has a download, which may be given back */
    MDL_CHARGE_CHARGED,  /* the link has a download for good */
    MDL_CHARGE_STATES
} mdl_charge_state_t;

typedef enum {
    MDL_CHARGE_REQUEST, /* a request for bytes of the file */
    MDL_CHARGE_PART,    /* some of the file was delivered */
    MDL_CHARGE_WHOLE,   /* all of it was, counting what earlier links delivered */
    MDL_CHARGE_IDLE,    /* no request came for DownloadsSessionIdle */
    MDL_CHARGE_EVENTS
} mdl_charge_event_t;

/** What an event does to the downloads left of the file. */
typedef enum {
    MDL_CHARGE_NOTHING,
    MDL_CHARGE_TAKE,        /* takes one, or the request is refused */
    MDL_CHARGE_TAKE_ANYWAY, /* takes one, even beyond the limit: the bytes were delivered */
    MDL_CHARGE_GIVE_BACK
} mdl_charge_effect_t;

typedef struct {
    mdl_charge_state_t state;
    mdl_charge_effect_t effect;
} mdl_charge_t;

/** The next state, and the effect on the downloads left. */
mdl_charge_t mdl_charge_step(mdl_charge_state_t state, mdl_charge_event_t event);

#endif
