/* Preloaded by test_entropy.py: a random source that fails when it is told to, and a look through
   all the memory of the process for words that should not be there. Linux, x86-64.

   Secret words are given masked and are never put together here, so that what is found is not ours. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define MASK 0xa5a5a5a5a5a5a5a5u

/* How getrandom and /dev/urandom fail: `failures` times (-1: for ever) by returning `returned`, with
   this errno, after writing the byte `spoiled` (unless -1) over the buffer. */
long failures, returned = -1, spoiled = -1;
int fails_with;
/* The most bytes that it gives at once; 0: as many as are wanted. */
long most;
/* Whether it gives these bytes, over and over, instead of random ones. */
long keyed;
uint64_t masked_key[4];
/* With which errno /dev/random (0) and /dev/urandom (1) cannot be opened; 0: they can. */
int unopened[2];

/* What has been asked of it. */
long calls, asked, given;
unsigned flags_seen;
/* r, u: the device was opened; p: something was polled; g: bytes were read from /dev/urandom. */
char events[4096];
static size_t n_events;
static int urandom = -1;

static void happened(char event) {
    if (n_events < sizeof events - 1) events[n_events++] = event;
}

static ssize_t give(unsigned char *buffer, size_t size, ssize_t (*real)(void *, size_t)) {
    if (spoiled >= 0) memset(buffer, (int)spoiled, size);
    if (failures && size) {
        if (failures > 0) failures--;
        errno = fails_with;
        return returned;
    }
    if (most && size > (size_t)most) size = most;
    ssize_t got = size;
    if (keyed) {
        const volatile unsigned char *masked = (unsigned char *)masked_key;
        for (size_t i = 0; i < size; i++) buffer[i] = masked[(given + i) % 32] ^ (unsigned char)MASK;
    } else {
        got = real(buffer, size);
    }
    if (got > 0) given += got;
    return got;
}

static unsigned wanted_flags;
static ssize_t by_call(void *buffer, size_t size) {
    return syscall(SYS_getrandom, buffer, size, wanted_flags);
}
static ssize_t by_file(void *buffer, size_t size) {
    return syscall(SYS_read, urandom, buffer, size);
}

ssize_t getrandom(void *buffer, size_t size, unsigned flags) {
    calls++;
    asked += size;
    flags_seen |= flags;
    wanted_flags = flags;
    return give(buffer, size, by_call);
}

ssize_t read(int file, void *buffer, size_t size) {
    if (file != urandom || urandom < 0) return syscall(SYS_read, file, buffer, size);
    happened('g');
    return give(buffer, size, by_file);
}

int open(const char *path, int how, ...) {
    va_list more;
    va_start(more, how);
    int mode = va_arg(more, int);
    va_end(more);
    int device = !strcmp(path, "/dev/random") ? 0 : !strcmp(path, "/dev/urandom") ? 1 : -1;
    if (device >= 0) {
        happened("ru"[device]);
        if (unopened[device]) {
            errno = unopened[device];
            return -1;
        }
    }
    int file = syscall(SYS_openat, AT_FDCWD, path, how, mode);
    if (device == 1) urandom = file;
    return file;
}

int poll(struct pollfd *files, nfds_t n, int timeout) {
    happened('p');
    return syscall(SYS_poll, files, n, timeout);
}

/* Calls a function far down on the stack, where nothing that runs later writes over what it leaves
   there, and then has the kernel store all registers, as it does for any signal. */
static unsigned char registers[1 << 16];

static void nothing(int number) { (void)number; }

void *deep(void *(*function)(void *), void *argument) {
    unsigned char room[1 << 17];
    __asm__ volatile("" : : "r"(room) : "memory");
    void *result = function(argument);
    stack_t here = {.ss_sp = registers, .ss_size = sizeof registers}, before;
    struct sigaction handler = {.sa_handler = nothing, .sa_flags = SA_ONSTACK}, former;
    sigaltstack(&here, &before);
    sigaction(SIGUSR2, &handler, &former);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR2);
    sigaction(SIGUSR2, &former, NULL);
    sigaltstack(&before, NULL);
    return result;
}

/* A table of masked words, by a part of them, in memory of its own that is not looked at. */
static uint64_t *maybe, size_of_all, *masked_words;
static uint32_t *slots, bits;
static unsigned char *arena, *chunk;
static size_t width;
enum { CHUNK = 1 << 20, MAYBE_BITS = 23, PAGE = 4096 };

static uint64_t place(uint64_t word, unsigned bits_wanted) {
    return (word * 0x9e3779b97f4a7c15u) >> (64 - bits_wanted);
}

/* Sets what is looked for: n things of so many words each. */
int prepare(const uint64_t *words, size_t n, size_t words_each) {
    if (arena) munmap(arena, size_of_all);
    width = words_each;
    for (bits = 10; (1u << bits) < 2 * n; bits++) {}
    size_t size[4] = {(1u << MAYBE_BITS) / 8, 4u << bits, 8 * n * width, CHUNK + PAGE};
    size_of_all = 2 * PAGE;
    for (int i = 0; i < 4; i++) size_of_all += size[i] = (size[i] + PAGE - 1) / PAGE * PAGE;
    arena = mmap(NULL, size_of_all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED) return arena = NULL, -1;
    /* Guard pages keep the kernel from joining it with its neighbours. */
    mprotect(arena, PAGE, PROT_NONE);
    mprotect(arena + size_of_all - PAGE, PAGE, PROT_NONE);
    unsigned char *next = arena + PAGE;
    maybe = (uint64_t *)next;
    slots = (uint32_t *)(next += size[0]);
    masked_words = (uint64_t *)(next += size[1]);
    chunk = next + size[2];
    memcpy(masked_words, words, 8 * n * width);
    for (size_t i = 0; i < n; i++) {
        uint64_t first = words[i * width], bit = place(first, MAYBE_BITS), slot = place(first, bits);
        maybe[bit / 64] |= 1ul << bit % 64;
        while (slots[slot]) slot = (slot + 1) & ((1u << bits) - 1);
        slots[slot] = i + 1;
    }
    return 0;
}

static size_t places, room;
static struct { uint64_t address, thing; } *hits;

/* Looks through a part of the memory, which has been copied to `chunk`. */
static void look_at(uint64_t address, size_t size) {
    for (size_t i = 0; i + 8 * width <= size; i++) {
        uint64_t word, next;
        memcpy(&word, chunk + i, 8);
        word ^= MASK;
        uint64_t bit = place(word, MAYBE_BITS);
        if (!(maybe[bit / 64] >> bit % 64 & 1)) continue;
        for (uint64_t slot = place(word, bits); slots[slot]; slot = (slot + 1) & ((1u << bits) - 1)) {
            const uint64_t *thing = masked_words + (slots[slot] - 1) * width;
            size_t same = 0;
            for (; same < width; same++) {
                memcpy(&next, chunk + i + 8 * same, 8);
                if ((next ^ MASK) != thing[same]) break;
            }
            if (same < width) continue;
            if (places < room) hits[places].address = address + i, hits[places].thing = slots[slot] - 1;
            places++;
        }
    }
}

/* Looks through all memory that can be read, at every address. Returns at how many places something
   was found, and at first how many bytes were read; -1 if it cannot look. */
long look(void *found, size_t room_for, uint64_t *bytes) {
    static char maps[1 << 20];
    hits = found, room = room_for, places = 0, *bytes = 0;
    int file = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY);
    ssize_t size = 0, got;
    while ((got = syscall(SYS_read, file, maps + size, sizeof maps - 1 - size)) > 0) size += got;
    close(file);
    maps[size] = 0;
    int memory = syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDONLY);
    if (file < 0 || memory < 0 || size >= (ssize_t)sizeof maps - 1) return -1;
    for (char *line = maps; *line; line = strchr(line, '\n') + 1) {
        unsigned long start, end;
        char readable;
        if (sscanf(line, "%lx-%lx %c", &start, &end, &readable) != 3) return -1;
        int own = start < (unsigned long)arena + size_of_all && end > (unsigned long)arena;
        if (readable != 'r' || own) continue;
        while (start < end) {
            size_t want = end - start < CHUNK ? end - start : CHUNK;
            got = syscall(SYS_pread64, memory, chunk, want, start);
            /* The kernel's own pages cannot be read, nor those of a file that has shrunk. */
            if (got <= 0) break;
            look_at(start, got);
            *bytes += got;
            if (start + got >= end) break;
            start += got - (8 * width - 1);
        }
    }
    close(memory);
    return places;
}
