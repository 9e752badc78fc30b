/*
 * What the programs of make check-parsers share.  libFuzzer calls fuzz_one with bytes of its own
 * making, and learns from the code that they reach.  Memory of pools comes from malloc here, block
 * by block, so that AddressSanitizer sees each overrun.
 */
#ifndef MDL_T_FUZZ_FUZZ_H
#define MDL_T_FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_pools.h>
#include <apr_strings.h>

/** Each program has these two. */
static void fuzz_one(const unsigned char *bytes, size_t length, apr_pool_t *p);
static void fuzz_seeds(void);

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length);

static apr_pool_t *fuzz_pool;
static const char *fuzz_folder; /* of seeds */
static void **fuzz_blocks;      /* of pools */
static size_t fuzz_count, fuzz_room;

/** Ends the program with a finding unless a claim holds. */
#define fuzz_claim(holds) fuzz_claimed(!!(holds), #holds, __FILE__, __LINE__)

static inline void fuzz_claimed(int holds, const char *claim, const char *file, int line)
{
    if (!holds) {
        fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, claim);
        abort();
    }
}

/* Takes the place of APR's own, also for the calls of its libraries. */
__attribute__((visibility("default"))) void *apr_palloc(apr_pool_t *p, apr_size_t size)
{
    void *block = malloc(size);

    (void)p;
    fuzz_claim(block != NULL);
    if (fuzz_count == fuzz_room) {
        void **more = realloc(fuzz_blocks, (2 * fuzz_room + 64) * sizeof *more);

        fuzz_claim(more != NULL);
        fuzz_blocks = more;
        fuzz_room = 2 * fuzz_room + 64;
    }
    fuzz_blocks[fuzz_count++] = block;
    return block;
}

/** Writes an input to begin with.  The last argument is the folder; a file, which is to be
   repeated, is left alone. */
static inline void fuzz_seed(const char *name, const void *bytes, size_t length)
{
    FILE *file = fopen(apr_pstrcat(fuzz_pool, fuzz_folder, "/seed-", name, NULL), "we");

    if (file != NULL) {
        fuzz_claim(fwrite(bytes, 1, length, file) == length && fclose(file) == 0);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    apr_initialize();
    apr_pool_create(&fuzz_pool, NULL);
    fuzz_folder = (*argv)[*argc - 1];
    fuzz_seeds();
    return 0;
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length)
{
    size_t before = fuzz_count;
    apr_pool_t *p;

    apr_pool_create(&p, fuzz_pool);
    fuzz_one(bytes, length, p);
    apr_pool_destroy(p);
    while (fuzz_count > before) {
        free(fuzz_blocks[--fuzz_count]);
    }
    return 0;
}

#endif
