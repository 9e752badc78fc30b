/*
 * Running another program whose answer the code under test must match.
 */
#ifndef MDL_T_UNIT_PROGRAM_H
#define MDL_T_UNIT_PROGRAM_H

#include <stdio.h>
#include <string.h>

#include <apr_strings.h>

/** The first line that a shell command prints, without its end; "" when there is none. */
static inline const char *output_of(const char *command, apr_pool_t *p)
{
    FILE *program = popen(command, "r");
    char line[512] = "";

    if (program != NULL) {
        if (fgets(line, sizeof line, program) == NULL) {
            line[0] = '\0';
        }
        pclose(program);
    }
    line[strcspn(line, "\r\n")] = '\0';
    return apr_pstrdup(p, line);
}

#endif
