/*
 * What templates that were kept through an upgrade lose in silence, for `downloadsctl check`.
 */
#ifndef MDL_CTL_TEMPLATES_H
#define MDL_CTL_TEMPLATES_H

#include "ctl/command.h"

/**
 * Appends to problems (const char *) a sentence for each template that has names of which this
 * release knows nothing, so that nothing is shown for them, and for each that lacks names of the
 * new one that an upgrade has put beside it, as "page.html.new" or as packages name it; to warnings
 * one for each other such file, and for each language that lacks words.
 */
void mdl_ctl_templates_kept(const mdl_settings_t *settings, apr_array_header_t *problems,
                            apr_array_header_t *warnings, apr_pool_t *p);

#endif
