/*
 * For LD_PRELOAD, in a program of `make bench`:
 *
 *   BENCH_SYNC_DELAY=microseconds   each fsync and fdatasync takes so much longer, as on a slow
 * disk BENCH_ALLOCATIONS=path          calls of malloc, calloc and realloc are counted in this
 * file, which has 1,024 pairs of numbers of 8 bytes: a process and its calls
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOTS 1024

struct slot {
    _Atomic int64_t pid;
    _Atomic int64_t calls;
};

static struct slot *slots, *own;
static useconds_t delay;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

/* A forked process counts in a slot of its own. */
static void take_slot(void)
{
    own = slots + getpid() % SLOTS;
    own->pid = getpid();
    own->calls = 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("BENCH_SYNC_DELAY"), *path = getenv("BENCH_ALLOCATIONS");
    int fd;

    delay = text != NULL ? (useconds_t)atoi(text) : 0;
    if (path == NULL || (fd = open(path, O_RDWR | O_CREAT, 0600)) < 0) {
        return;
    }
    if (ftruncate(fd, SLOTS * sizeof *slots) == 0) {
        slots = mmap(NULL, SLOTS * sizeof *slots, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        take_slot();
        pthread_atfork(NULL, NULL, take_slot);
    }
    close(fd);
}

static void count(void)
{
    if (own != NULL) {
        own->calls++;
    }
}

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    count();
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
    count();
    return __libc_realloc(old, size);
}

int fsync(int fd)
{
    usleep(delay);
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    usleep(delay);
    return (int)syscall(SYS_fdatasync, fd);
}
