/*
 * For `downloadsctl check`: what templates that were kept through an upgrade silently lack.
 */
#ifndef MDL_CTL_TEMPLATES_H
#define MDL_CTL_TEMPLATES_H

#include "ctl/command.h"

/**
 * Appends to problems a sentence (const char *) for each template with names unknown to this
 * release, which show nothing, and for each that lacks names of the new template that an upgrade
 * put beside it ("page.html.new", or as packages name it).  Appends to warnings a sentence for each
 * other such new file, and for each language that lacks words.
 */
void mdl_ctl_templates_kept(const mdl_settings_t *settings, apr_array_header_t *problems,
                            apr_array_header_t *warnings, apr_pool_t *p);

#endif
