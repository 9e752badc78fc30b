/* Addresses whose domain is one letter beside a big provider's. */
#include "t/unit/tap.h"

#include "base/mail/likely_typo.h"

int main(void)
{
    static const struct {
        const char *address, *meant, *name;
    } cases[] = {
        {"ada@gmial.com", "ada@gmail.com", "two letters changed places"},
        {"ada@gmal.com", "ada@gmail.com", "a letter is missing"},
        {"ada@gmaill.com", "ada@gmail.com", "a letter is too many"},
        {"ada@hptmail.com", "ada@hotmail.com", "a letter is wrong"},
        {"ada@gmail.con", "ada@gmail.com", "the last letter is wrong"},
        {"ada@gmail.co", "ada@gmail.com", "the last letter is missing"},
        {"Ada@Outlok.COM", "Ada@outlook.com", "in any case"},
        {"\"a@b\"@yaho.com", "\"a@b\"@yahoo.com", "behind the last @"},
        {"ada@gmail.com", NULL, "a provider's own domain"},
        {"ada@GMail.com", NULL, "the same in another case"},
        {"ada@ymail.com", NULL, "a provider's beside another's"},
        {"ada@mail.com", NULL, "the same"},
        {"ada@gmx.at", NULL, "the same"},
        {"ada@hotmail.be", NULL, "the same name in another country"},
        {"ada@gmil.cm", NULL, "two errors"},
        {"ada@wed.de", NULL, "beside a short name"},
        {"ada@example.com", NULL, "another domain"},
        {"ada@", NULL, "no domain"},
        {"ada", NULL, "no address"},
    };
    apr_pool_t *p = tap_begin();

    for (apr_size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        is_str(mdl_likely_typo(cases[i].address, p), cases[i].meant, cases[i].name);
    }
    return tap_end(p);
}
