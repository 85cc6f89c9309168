/* To be preloaded under valgrind: from secret_random(1) on, every random byte is secret. */
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>
#include <valgrind/memcheck.h>

static int hiding;

void secret_random(int on) { hiding = on; }
void secret(void *values, size_t size) { VALGRIND_MAKE_MEM_UNDEFINED(values, size); }
void public(void *values, size_t size) { VALGRIND_MAKE_MEM_DEFINED(values, size); }
/* 1 if something is checking; bits[i] is not 0 where byte i is secret. */
int secret_bits(void *values, void *bits, size_t size) {
    return VALGRIND_GET_VBITS(values, bits, size);
}

ssize_t getrandom(void *buffer, size_t size, unsigned int flags) {
    ssize_t got = syscall(SYS_getrandom, buffer, size, flags);
    if (hiding && got > 0) secret(buffer, got);
    return got;
}
