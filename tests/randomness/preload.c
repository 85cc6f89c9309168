/* Preloaded by test_entropy.py: a random source that fails when it is told to, and a look through
   all the memory of the process for words that should not be there. Linux, x86-64.

   Secret words are given masked and are never put together here, so that what is found is not ours. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MASK 0xa5a5a5a5a5a5a5a5u

/* The random source. After `spared` good calls, `failures` calls (-1: all) return `returned` with the
   errno `failure`. Every call writes `spoiled` (-1: nothing) over the buffer first. */
long spared, failures, returned = -1, failure, spoiled = -1;
/* The most bytes that it gives at once; 0: as many as are wanted. */
long most;
/* Whether it gives this key, over and over, instead of random bytes. */
long keyed;
uint64_t masked_key[4];

/* What was asked of it and what it gave, and all flags. */
long calls, asked, given, flags_seen;

static int fails(void) {
    if (spared > 0) {
        spared--;
        return 0;
    }
    if (failures > 0) failures--;
    else if (!failures) return 0;
    errno = failure;
    return 1;
}

ssize_t getrandom(void *buffer, size_t size, unsigned flags) {
    calls++;
    asked += size;
    flags_seen |= flags;
    if (spoiled >= 0) memset(buffer, spoiled, size);
    if (fails()) return returned;
    if (most && size > (size_t)most) size = most;
    ssize_t got = size;
    if (keyed) {
        const volatile unsigned char *masked = (const unsigned char *)masked_key;
        unsigned char *bytes = buffer;
        for (size_t i = 0; i < size; i++) bytes[i] = masked[(given + i) % 32] ^ (unsigned char)MASK;
    } else {
        got = syscall(SYS_getrandom, buffer, size, flags);
    }
    if (got > 0) given += got;
    return got;
}

/* Calls a function far down on the stack, which is painted before, so that nothing that runs later
   writes over what is left there. Then the kernel stores all registers, as it does for any signal. */
enum { DEPTH = 1 << 18, PAINT = 0xcc };
static uintptr_t painted;
static unsigned char registers[1 << 16];
/* How far down the stack was written to, in bytes, and how many of the lowest ones are zeros now, but
   for a return address or so. */
long used, zeros;

static __attribute__((noinline)) void paint(void) {
    unsigned char below[DEPTH];
    memset(below, PAINT, sizeof below);
    painted = (uintptr_t)below;
    __asm__ volatile("" : : "r"(below) : "memory");
}

static void nothing(int number) { (void)number; }

void *deep(void *(*function)(void *), void *argument) {
    unsigned char room[DEPTH];
    __asm__ volatile("" : : "r"(room) : "memory");
    paint();
    void *result = function(argument);
    const unsigned char *first = (const unsigned char *)painted, *last = first + DEPTH, *zero;
    while (first < last && *first == PAINT) first++;
    for (zero = first + 64; zero < last && !*zero;) zero++;
    used = last - first, zeros = zero - first - 64;
    stack_t apart = {.ss_sp = registers, .ss_size = sizeof registers}, before;
    struct sigaction ours = {.sa_handler = nothing, .sa_flags = SA_ONSTACK}, theirs;
    sigaltstack(&apart, &before);
    sigaction(SIGUSR2, &ours, &theirs);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR2);
    sigaction(SIGUSR2, &theirs, NULL);
    sigaltstack(&before, NULL);
    return result;
}

/* Calls a function in a process of its own that shares all memory with this one, as after vfork. */
struct work {
    void *(*function)(void *), *argument, *result;
};

static int work(void *given_work) {
    struct work *todo = given_work;
    todo->result = todo->function(todo->argument);
    return 0;
}

void *beside(void *(*function)(void *), void *argument) {
    unsigned char stack[1 << 20] __attribute__((aligned(16)));
    struct work todo = {function, argument, NULL};
    int child = clone(work, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &todo), status;
    return waitpid(child, &status, 0) == child && status == 0 ? todo.result : NULL;
}

/* Holds another thread where it is, until `holding` is set to 0. Returns 1, or 0 if the thread ended. */
volatile long holding;
static volatile int held;

static void hold_here(int number) {
    (void)number;
    for (held = 1; holding;) sched_yield();
    held = 0;
}

int hold(long thread) {
    struct sigaction ours = {.sa_handler = hold_here, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &ours, NULL);
    holding = 1;
    for (int signal = SIGUSR1; !held; signal = 0) {
        if (syscall(SYS_tgkill, getpid(), thread, signal)) return holding = 0;
        sched_yield();
    }
    return 1;
}

/* What is looked for: things of `width` masked words each, in a hash table by their first word, in
   pages of its own that are not looked at. */
enum { CHUNK = 1 << 20, PAGE = 4096 };
static unsigned char *own, *chunk;
static size_t own_size, width;
static uint64_t *filter, *things;
static uint32_t *slots;
static unsigned slot_bits, filter_bits;

static uint64_t place(uint64_t word, unsigned bits) {
    return (word * 0x9e3779b97f4a7c15u) >> (64 - bits);
}

static uint64_t next(uint64_t slot) { return (slot + 1) & ((1ul << slot_bits) - 1); }

static size_t pages(size_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

/* Returns 0, or -1 if there is no memory. */
int look_for(const uint64_t *words, size_t n, size_t words_each) {
    if (own) munmap(own, own_size);
    width = words_each;
    for (slot_bits = 10; 1ul << slot_bits < 2 * n;) slot_bits++;
    filter_bits = slot_bits < 20 ? slot_bits + 3 : 24; /* To fit a cache. */
    size_t filter_size = pages((1ul << filter_bits) / 8), slots_size = pages(4ul << slot_bits);
    size_t things_size = pages(8 * n * width);
    own_size = filter_size + slots_size + things_size + CHUNK + 2 * PAGE;
    own = mmap(NULL, own_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (own == MAP_FAILED) return own = NULL, -1;
    /* Pages without access keep the kernel from joining these with their neighbours. */
    mprotect(own, PAGE, PROT_NONE);
    mprotect(own + own_size - PAGE, PAGE, PROT_NONE);
    filter = (uint64_t *)(own + PAGE);
    slots = (uint32_t *)(own + PAGE + filter_size);
    things = (uint64_t *)(own + PAGE + filter_size + slots_size);
    chunk = own + PAGE + filter_size + slots_size + things_size;
    memcpy(things, words, 8 * n * width);
    for (size_t i = 0; i < n; i++) {
        uint64_t bit = place(words[i * width], filter_bits), slot = place(words[i * width], slot_bits);
        filter[bit / 64] |= 1ul << bit % 64;
        while (slots[slot]) slot = next(slot);
        slots[slot] = i + 1;
    }
    return 0;
}

static uint64_t *found;
static size_t n_found, room_for;

/* Looks at what was copied to `chunk`, at every byte. */
static void look_at(uint64_t address, size_t size) {
    for (size_t i = 0; i + 8 * width <= size; i++) {
        uint64_t word;
        memcpy(&word, chunk + i, 8);
        if (!word) continue; /* As most of memory is. */
        word ^= MASK;
        uint64_t bit = place(word, filter_bits);
        if (!(filter[bit / 64] >> bit % 64 & 1)) continue;
        for (uint64_t slot = place(word, slot_bits); slots[slot]; slot = next(slot)) {
            size_t thing = slots[slot] - 1, same = 0;
            while (same < width) {
                memcpy(&word, chunk + i + 8 * same, 8);
                if ((word ^ MASK) != things[thing * width + same]) break;
                same++;
            }
            if (same < width) continue;
            if (n_found < room_for) {
                found[2 * n_found] = address + i;
                found[2 * n_found + 1] = thing;
            }
            n_found++;
        }
    }
}

/* Looks through all memory that is mapped to be read: `mapped` bytes, of which it has read `bytes`.
   Returns how often something was found, of which pairs of address and thing go to `places`; -1 if it
   cannot look. */
long look(uint64_t *places, size_t n_places, uint64_t *mapped, uint64_t *bytes) {
    static char maps[1 << 20];
    found = places, room_for = n_places, n_found = 0, *mapped = *bytes = 0;
    int file = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY);
    int memory = syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDONLY);
    ssize_t size = 0, got;
    while ((got = syscall(SYS_read, file, maps + size, sizeof maps - 1 - size)) > 0) size += got;
    if (!own || file < 0 || memory < 0 || !size || size == sizeof maps - 1) return -1;
    maps[size] = 0;
    for (char *line = maps, *rest; *line; line = rest + 1) {
        uint64_t start, end;
        char readable;
        rest = strchr(line, '\n');
        *rest = 0;
        if (sscanf(line, "%lx-%lx %c", &start, &end, &readable) != 3) return -1;
        int is_own = start < (uint64_t)own + own_size && end > (uint64_t)own;
        /* The kernel's clocks, [vvar] and [vvar_vclock], and [vsyscall] hold no data of ours. */
        if (readable != 'r' || is_own || strstr(line, "[vvar") || strstr(line, "[vsyscall]")) continue;
        *mapped += end - start;
        for (uint64_t done = start, carried = 0; done < end;) {
            /* What is left of the chunk before comes first: things may lie across their ends. */
            size_t wanted = end - done < CHUNK - PAGE ? end - done : CHUNK - PAGE;
            got = syscall(SYS_pread64, memory, chunk + carried, wanted, done);
            if (got <= 0) {
                /* The guard of a stack, which newer C libraries have within its mapping. */
                done = (done / PAGE + 1) * PAGE, carried = 0;
                continue;
            }
            look_at(done - carried, carried + got);
            *bytes += got;
            done += got;
            size_t whole = carried + got;
            carried = whole < 8 * width - 1 ? whole : 8 * width - 1;
            memmove(chunk, chunk + whole - carried, carried);
        }
    }
    close(file);
    close(memory);
    return n_found;
}

/* Has the kernel refuse to read a page, within a mapping that can be read. Returns 0, or -1 if it is
   older than Linux 6.13. */
int guard(void *page) { return madvise(page, PAGE, 102 /* MADV_GUARD_INSTALL */); }
