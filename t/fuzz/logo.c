/*
 * Images of strangers: the reading of headers, the decoders as the forked process runs them but in
 * this one, and the result.  The checksums of a PNG's chunks are put right first, or no change
 * would get past them.
 */
#include "base/image/header.h"

#include <setjmp.h>
#include <string.h>

#include <sanitizer/allocator_interface.h>

#include "base/image/decode.h"
#include "base/image/logo.h"
#include "base/image/png.h"
#include "base/zip/crc32.h"
#include "t/fuzz/fuzz.h"
#include "t/unit/images.h"

#define MOST_PIXELS (1 << 16) /* t/unit/logo.c has larger ones */
#define MOST_BLOCKS 4096

typedef struct {
    unsigned char *rgba;
    size_t length, got;
} rows_t;

size_t LLVMFuzzerMutate(unsigned char *bytes, size_t length, size_t most);
size_t LLVMFuzzerCustomMutator(unsigned char *bytes, size_t length, size_t most, unsigned seed);
void __wrap__exit(int status);
void __real__exit(int status);

/* The end of a process is a way back while a decoder runs, and what it leaves is freed. */
static jmp_buf decoder_end;
static const volatile void *blocks[MOST_BLOCKS];
static size_t block_count;
static int decoding;

/* libFuzzer sees nothing of the libraries.  It learns from the sizes of their memory, and from the
   pixels that they have given. */
__attribute__((section("__libfuzzer_extra_counters"))) static unsigned char seen[2][4096];

static void block_taken(const volatile void *block, size_t size)
{
    if (decoding) {
        seen[0][size % sizeof seen[0]] = 1;
        fuzz_claim(block_count < MOST_BLOCKS);
        blocks[block_count++] = block;
    }
}

static void block_freed(const volatile void *block)
{
    for (size_t i = block_count; decoding && i-- > 0;) {
        if (blocks[i] == block) {
            blocks[i] = blocks[--block_count];
            return;
        }
    }
}

void __wrap__exit(int status)
{
    if (decoding) {
        longjmp(decoder_end, status + 1);
    }
    __real__exit(status);
}

static void rows_take(void *baton, const unsigned char *row, size_t length)
{
    rows_t *rows = baton;

    fuzz_claim(length <= rows->length - rows->got);
    memcpy(rows->rgba + rows->got, row, length);
    rows->got += length;
    seen[1][rows->got % sizeof seen[1]] = 1;
}

static void decode(mdl_image_source_t *source, unsigned width, unsigned height, rows_t *rows)
{
    mdl_image_scale_t *scale = mdl_image_scale_begin(&source->header, width, height, rows_take,
                                                     rows);

    if (source->header.kind == MDL_IMAGE_PNG) {
        mdl_image_decode_png(source, scale);
    } else {
        mdl_image_decode_jpeg(source, scale);
    }
    mdl_image_end(MDL_IMAGE_GOOD);
}

/* Returns how the process would end. */
static mdl_image_fault_t decoder_run(mdl_image_source_t *source, unsigned width, unsigned height,
                                     rows_t *rows)
{
    int status = setjmp(decoder_end);

    if (status == 0) {
        decoding = 1;
        decode(source, width, height, rows);
    }
    decoding = 0;
    while (block_count > 0) {
        free((void *)blocks[--block_count]);
    }
    return (mdl_image_fault_t)(status - 1);
}

static unsigned read_u32(const unsigned char *at)
{
    return (unsigned)at[0] << 24 | (unsigned)at[1] << 16 | (unsigned)at[2] << 8 | at[3];
}

static void checksums_mend(unsigned char *png, size_t length)
{
    for (size_t at = 8; length >= 12 && at <= length - 12;) {
        size_t size = read_u32(png + at);
        unsigned sum;

        if (size > length - at - 12) {
            return;
        }
        sum = mdl_crc32(0, png + at + 4, size + 4);
        for (int i = 0; i < 4; i++) {
            png[at + 8 + size + (size_t)i] = (unsigned char)(sum >> (24 - 8 * i));
        }
        at += size + 12;
    }
}

/* Half of the changes to a PNG are to its header. */
size_t LLVMFuzzerCustomMutator(unsigned char *bytes, size_t length, size_t most, unsigned seed)
{
    enum { AT = 16, LENGTH = 13 };

    if (length > AT + LENGTH && bytes[0] == 0x89 && seed % 2 == 0) {
        LLVMFuzzerMutate(bytes + AT, LENGTH, LENGTH);
        return length;
    }
    return LLVMFuzzerMutate(bytes, length, most);
}

static void fuzz_one(const unsigned char *bytes, size_t length, apr_pool_t *p)
{
    unsigned char *copy = apr_pmemdup(p, bytes, length);
    mdl_image_source_t source = {.bytes = copy, .length = length};
    unsigned width, height;
    rows_t rows = {0};

    if (mdl_image_header(copy, length, &source.header) != MDL_IMAGE_GOOD ||
        source.header.width * source.header.height > MOST_PIXELS) {
        return;
    }
    if (source.header.kind == MDL_IMAGE_PNG) {
        checksums_mend(copy, length);
    }
    width = source.header.width;
    height = source.header.height;
    mdl_image_fit(&width, &height, MDL_LOGO_MAX_WIDTH, MDL_LOGO_MAX_HEIGHT);
    fuzz_claim(width >= 1 && width <= MDL_LOGO_MAX_WIDTH);
    fuzz_claim(height >= 1 && height <= MDL_LOGO_MAX_HEIGHT);
    rows.length = (size_t)width * height * 4;
    rows.rgba = apr_palloc(p, rows.length);
    if (decoder_run(&source, width, height, &rows) == MDL_IMAGE_GOOD) {
        fuzz_claim(rows.got == rows.length);
        fuzz_claim(mdl_image_write_png(rows.rgba, width, height, &length, p) != NULL);
    }
}

/* A PNG of every kind of pixel: signature, header, palette, pixels and end. */
static void seed_png(const char *name, unsigned char depth, unsigned char colour,
                     unsigned char interlaced)
{
    static const unsigned char start[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    unsigned char header[] = {0, 0, 0, 5, 0, 0, 0, 4, depth, colour, 0, 0, interlaced};
    static const unsigned char palette[] = {1, 2, 3, 250, 60, 70}, clear[] = {0, 9};
    static const unsigned char pixels[171] = {
        0x78,        1,        1, 160, 0, 0xff ^ 160, 0xff, /* stored, not deflated */
        [168] = 160, [170] = 1 /* a checksum */};
    const struct {
        const char *type;
        const unsigned char *data;
        size_t length;
    } chunks[] = {{"IHDR", header, sizeof header},
                  {"PLTE", palette, colour == 3 ? sizeof palette : 0},
                  {"tRNS", clear, colour == 3 ? sizeof clear : 0},
                  {"IDAT", pixels, sizeof pixels},
                  {"IEND", clear, 0}};
    unsigned char png[1024];
    size_t at = sizeof start;

    memcpy(png, start, at);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        if (chunks[i].length == 0 && i > 0 && i < 4) {
            continue;
        }
        memset(png + at, 0, 12);
        png[at + 3] = (unsigned char)chunks[i].length;
        memcpy(png + at + 4, chunks[i].type, 4);
        memcpy(png + at + 8, chunks[i].data, chunks[i].length);
        at += chunks[i].length + 12;
    }
    checksums_mend(png, at);
    fuzz_seed(name, png, at);
}

static void fuzz_seeds(void)
{
    seed_png("gray", 16, 0, 0);
    seed_png("bits", 1, 0, 0);
    seed_png("rgb", 8, 2, 0);
    seed_png("palette", 2, 3, 0);
    seed_png("gray-alpha", 8, 4, 1);
    seed_png("rgba", 8, 6, 0);
    seed_png("interlaced", 8, 6, 1);
    fuzz_seed("baseline", baseline_jpeg, sizeof baseline_jpeg);
    fuzz_seed("progressive", progressive_jpeg, sizeof progressive_jpeg);
    fuzz_seed("cmyk", cmyk_jpeg, sizeof cmyk_jpeg);
    __sanitizer_install_malloc_and_free_hooks(block_taken, block_freed);
}
