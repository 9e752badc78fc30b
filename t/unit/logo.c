/* Logos: what is made of good images, and that bad ones end in a bounded process. */
#include "base/image/logo.h"

#include <stdlib.h>
#include <sys/resource.h>

#include <apr_strings.h>

#include "base/deflate.h"
#include "base/image/png.h"
#include "base/image/scale.h"
#include "base/zip/crc32.h"
#include "t/unit/images.h"
#include "t/unit/tap.h"

typedef struct {
    unsigned char *bytes;
    apr_size_t length;
} image_t;

static apr_pool_t *pool;

static void put_u32(unsigned char *at, apr_size_t n)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (unsigned char)(n >> (24 - 8 * i));
    }
}

static image_t image_of(const void *bytes, apr_size_t length)
{
    return (image_t){apr_pmemdup(pool, bytes, length), length};
}

/* A PNG of one colour. */
static image_t image_plain(unsigned width, unsigned height, unsigned alpha)
{
    unsigned char *rgba = malloc((size_t)width * height * 4);
    image_t image;

    for (size_t i = 0; i < (size_t)width * height * 4; i++) {
        rgba[i] = (unsigned char)(i % 4 == 3 ? alpha : 40 * (i % 4 + 1));
    }
    image.bytes = (unsigned char *)mdl_image_write_png(rgba, width, height, &image.length, pool);
    free(rgba);
    return image;
}

/* The image with another chunk behind its IHDR. */
static image_t image_with_chunk(image_t image, const char *type, const void *data,
                                apr_size_t length)
{
    enum { HEADER = 33 };
    image_t made = {apr_palloc(pool, image.length + length + 12), image.length + length + 12};
    unsigned char *at = made.bytes + HEADER;

    memcpy(made.bytes, image.bytes, HEADER);
    put_u32(at, length);
    memcpy(at + 4, type, 4);
    memcpy(at + 8, data, length);
    put_u32(at + 8 + length, mdl_crc32(0, at + 4, length + 4));
    memcpy(at + 12 + length, image.bytes + HEADER, image.length - HEADER);
    return made;
}

/* The PNG with another size in its header. */
static image_t image_resized(image_t image, apr_size_t width, apr_size_t height)
{
    image_t made = image_of(image.bytes, image.length);

    put_u32(made.bytes + 16, width);
    put_u32(made.bytes + 20, height);
    put_u32(made.bytes + 29, mdl_crc32(0, made.bytes + 12, 17));
    return made;
}

/* The progressive JPEG with its first scan repeated. */
static image_t image_with_scans(int scans)
{
    const unsigned char *from = progressive_jpeg;
    apr_size_t at = 0, next;
    image_t made;

    while (from[at] != 0xff || from[at + 1] != 0xda) {
        at++;
    }
    next = at + 2;
    while (from[next] != 0xff || from[next + 1] == 0) {
        next++;
    }
    made.length = sizeof progressive_jpeg + (apr_size_t)scans * (next - at);
    made.bytes = apr_palloc(pool, made.length);
    memcpy(made.bytes, from, at);
    for (int i = 0; i < scans; i++) {
        memcpy(made.bytes + at + (apr_size_t)i * (next - at), from + at, next - at);
    }
    memcpy(made.bytes + at + (apr_size_t)scans * (next - at), from + at,
           sizeof progressive_jpeg - at);
    return made;
}

/* A PNG of 16 bits a colour, in passes, whose pixels are as many bytes of 0, in a few kilobytes. */
static image_t image_of_zeros(apr_size_t width, apr_size_t height, apr_size_t zeros)
{
    static const unsigned char end[] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};
    image_t image = image_plain(1, 1, 255);
    unsigned char *data = calloc(zeros, 1);
    apr_size_t length; /* with four bytes before it, and two for zlib's beginning */
    unsigned char *packed = (unsigned char *)mdl_deflate(data, zeros, &length, pool);
    unsigned char *stream = apr_palloc(pool, length + 2);

    free(data);
    memcpy(stream, "\x78\x01", 2);
    memcpy(stream + 2, packed + 4, length - 4);
    put_u32(stream + length - 2, zeros % 65521 << 16 | 1);
    image.bytes[24] = 16;
    image.bytes[25] = 6;
    image.bytes[28] = 1;
    image = image_resized(image, width, height);
    memcpy(image.bytes + 33, end, sizeof end);
    image.length = 33 + sizeof end;
    return image_with_chunk(image, "IDAT", stream, length + 2);
}

/* The progressive JPEG with another size in its header. */
static image_t image_progressive(unsigned width, unsigned height)
{
    image_t made = image_of(progressive_jpeg, sizeof progressive_jpeg);
    unsigned char *at = memmem(made.bytes, made.length, "\xff\xc2", 2);

    at[5] = (unsigned char)(height >> 8);
    at[6] = (unsigned char)height;
    at[7] = (unsigned char)(width >> 8);
    at[8] = (unsigned char)width;
    return made;
}

static mdl_logo_image_t logo_of(image_t image)
{
    mdl_logo_image_t made;

    is_int(mdl_logo_image_make(image.bytes, image.length, &made, pool), APR_SUCCESS,
           "an image is looked at");
    return made;
}

static void fault_is(image_t image, mdl_image_fault_t fault, const char *name)
{
    is_int(logo_of(image).fault, fault, name);
}

static void size_is(image_t image, unsigned width, unsigned height, const char *name)
{
    mdl_logo_image_t made = logo_of(image);
    mdl_image_header_t header;

    is_int(made.fault, MDL_IMAGE_GOOD, name);
    is_int(made.width, width, "its width");
    is_int(made.height, height, "its height");
    if (made.fault == MDL_IMAGE_GOOD) {
        is_int(mdl_image_header(made.png, made.length, &header), MDL_IMAGE_GOOD, "it is a PNG");
        is_int(header.width, width, "of that width");
    }
}

static void test_sizes(void)
{
    size_is(image_plain(600, 200, 255), 600, 200, "an image that just fits");
    size_is(image_plain(1, 1, 255), 1, 1, "the smallest stays as it is");
    size_is(image_plain(601, 200, 255), 600, 200, "one that is too wide by a pixel");
    size_is(image_plain(1000, 1000, 255), 200, 200, "a square");
    size_is(image_plain(2400, 400, 255), 600, 100, "a wide one");
    size_is(image_plain(90000, 1, 255), 600, 1, "a line");
    size_is(image_plain(4096, 4096, 255), 200, 200, "the largest");
    size_is(image_of(baseline_jpeg, sizeof baseline_jpeg), 16, 8, "a JPEG");
    size_is(image_of(progressive_jpeg, sizeof progressive_jpeg), 16, 8, "a progressive JPEG");
}

/* Takes a row: the first pixel of the last one is kept. */
static void keep_pixel(void *baton, const unsigned char *row, size_t length)
{
    (void)length;
    memcpy(baton, row, 4);
}

static void test_mean(void)
{
    static const unsigned char row[] = {255, 0, 0, 255, 0, 0, 255, 0, 0, 0, 0, 255};
    const mdl_image_header_t from = {.width = 3, .height = 2};
    unsigned char pixel[4];
    static mdl_image_scale_t *volatile scale; /* which nobody frees */

    scale = mdl_image_scale_begin(&from, 1, 1, keep_pixel, pixel);
    mdl_image_scale_row(scale, row);
    mdl_image_scale_row(scale, row);
    is_int(pixel[0], 128, "red counts by its opacity");
    is_int(pixel[2], 0, "what is clear has no colour");
    is_int(pixel[3], 170, "two pixels of three are opaque");
}

static void test_bombs(void)
{
    static unsigned char junk[100000];
    const unsigned char huge[] = {0xff, 0xd8, 0xff, 0xc0, 0, 17, 8, 0xff, 0xff, 0xff, 0xff, 3};
    image_t png = image_plain(300, 200, 255);
    image_t jpeg = image_of(baseline_jpeg, sizeof baseline_jpeg);
    image_t cut = {png.bytes, png.length - 30};
    image_t big = image_resized(png, 4096, 4096);

    memset(junk, 0x5a, sizeof junk);
    fault_is(image_of("GIF89a and more", 15), MDL_IMAGE_UNKNOWN, "a GIF");
    fault_is(image_of("", 0), MDL_IMAGE_UNKNOWN, "nothing");
    fault_is(image_resized(png, 100000, 100000), MDL_IMAGE_TOO_LARGE, "100,000 x 100,000 pixels");
    fault_is(image_resized(png, 4097, 4096), MDL_IMAGE_TOO_LARGE, "a column too many");
    fault_is(image_of(huge, sizeof huge), MDL_IMAGE_TOO_LARGE, "a JPEG of 65,535 x 65,535");
    fault_is(image_resized(png, 0, 5), MDL_IMAGE_DAMAGED, "no pixels");
    fault_is(cut, MDL_IMAGE_DAMAGED, "a PNG that is cut short");
    fault_is((image_t){jpeg.bytes, jpeg.length - 20}, MDL_IMAGE_DAMAGED,
             "a JPEG that is cut short");
    fault_is(big, MDL_IMAGE_DAMAGED, "a PNG that has fewer pixels than it says");
    fault_is(image_with_chunk(png, "IHDR", png.bytes + 16, 13), MDL_IMAGE_DAMAGED,
             "a second header");
    fault_is(image_with_chunk(png, "IDAT", junk, 999), MDL_IMAGE_DAMAGED, "data that is none");
    size_is(image_with_chunk(png, "iCCP", "x\0\0", 3), 300, 200, "a profile is skipped");
    size_is(image_with_chunk(png, "zTXt", junk, sizeof junk), 300, 200, "text is skipped");
    fault_is(image_of(cmyk_jpeg, sizeof cmyk_jpeg), MDL_IMAGE_UNSUPPORTED, "colours for print");
    fault_is(image_with_scans(200), MDL_IMAGE_TOO_COSTLY, "a JPEG that repeats its pixels");
}

static apr_time_t processor_time(const struct rusage *use)
{
    return (use->ru_utime.tv_sec + use->ru_stime.tv_sec) * APR_USEC_PER_SEC +
           use->ru_utime.tv_usec + use->ru_stime.tv_usec;
}

/* The process of an image has 256 MB beside what it has from this one, and 5 seconds. */
static void cost_is_bounded(image_t image, mdl_image_fault_t fault, const char *name)
{
    struct rusage ours, before, after;

    getrusage(RUSAGE_SELF, &ours);
    getrusage(RUSAGE_CHILDREN, &before);
    fault_is(image, fault, name);
    getrusage(RUSAGE_CHILDREN, &after);
    ok(after.ru_maxrss < ours.ru_maxrss + 256 * 1024, "it takes little memory");
    ok(processor_time(&after) - processor_time(&before) < apr_time_from_sec(6), "and little time");
}

static void test_costs(void)
{
    enum { ALL_PIXELS = 4096 * 4096 * 8 + 7680 }; /* a byte more for each row of the seven passes */
    struct rusage before, after;
    mdl_logo_image_t made;
    image_t huge = image_resized(image_plain(1, 1, 255), 100000, 100000);

    getrusage(RUSAGE_CHILDREN, &before);
    mdl_logo_image_make(huge.bytes, huge.length, &made, pool);
    getrusage(RUSAGE_CHILDREN, &after);
    is_int(after.ru_minflt, before.ru_minflt, "no process is made for 100,000 x 100,000 pixels");
    cost_is_bounded(image_of_zeros(4096, 4096, ALL_PIXELS), MDL_IMAGE_GOOD,
                    "134 MB of pixels in 130 KB");
    cost_is_bounded(image_of_zeros(1, 1, ALL_PIXELS), MDL_IMAGE_GOOD,
                    "as many bytes behind a pixel");
    cost_is_bounded(image_progressive(4096, 4096), MDL_IMAGE_DAMAGED,
                    "a progressive JPEG that has fewer pixels than it says");
}

/* Every byte of small images takes a few wrong values: the test's process lives, and none of its
   descriptors and children is left. */
static void test_flipped(void)
{
    const image_t images[] = {image_plain(5, 5, 128), image_of(baseline_jpeg, sizeof baseline_jpeg),
                              image_of(progressive_jpeg, sizeof progressive_jpeg)};
    int failed = 0;

    for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
        for (apr_size_t at = 0; at < images[i].length; at += 3) {
            image_t image = image_of(images[i].bytes, images[i].length);
            mdl_logo_image_t made;

            image.bytes[at] ^= (unsigned char)(1 << at % 8);
            failed += mdl_logo_image_make(image.bytes, image.length, &made, pool) != APR_SUCCESS;
        }
    }
    is_int(failed, 0, "each of some hundred damaged images is looked at");
}

int main(void)
{
    pool = tap_begin();
    test_sizes();
    test_mean();
    test_bombs();
    test_costs();
    test_flipped();
    return tap_end(pool);
}
