/* Runs VAES on 256-bit vectors on a processor that has AVX2 and AES alone: each such instruction is
   illegal there, and this handler computes it, lane by lane, by the instruction for 128 bits. Loaded
   with LD_PRELOAD by scripts/emulate_vaes.sh. */
#define _GNU_SOURCE
#include <immintrin.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* Of the standard form of XSAVE: the lower and the upper half of the first vector register. */
enum { LOWER = 160, UPPER = 576 };
static unsigned long emulated;

static void handle(int signal, siginfo_t *info, void *context) {
    static const int places[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
        REG_RSI, REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    greg_t *general = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint8_t *vectors = (uint8_t *)((ucontext_t *)context)->uc_mcontext.fpregs;
    const uint8_t *code = (const uint8_t *)general[REG_RIP];
    int last = code[3] == 0xDD, length = 5;
    /* VEX.256.66.0F38 DC or DD. */
    if (code[0] != 0xC4 || (code[1] & 31) != 2 || (code[2] & 7) != 5 || (!last && code[3] != 0xDC)) {
        fprintf(stderr, "another instruction is illegal\n");
        abort();
    }
    int mod = code[4] >> 6, reg = (code[4] >> 3 & 7) | (~code[1] >> 4 & 8);
    int rm = (code[4] & 7) | (~code[1] >> 2 & 8), state = ~code[2] >> 3 & 15;
    uint8_t key[32];
    if (mod == 3) {
        memcpy(key, vectors + LOWER + 16 * rm, 16);
        memcpy(key + 16, vectors + UPPER + 16 * rm, 16);
    } else {
        uint64_t address = 0;
        if ((code[4] & 7) == 4) {
            int base = (code[5] & 7) | (~code[1] >> 2 & 8);
            int index = (code[5] >> 3 & 7) | (~code[1] >> 3 & 8);
            length += 1;
            address = general[places[base]];
            if (index != 4) address += (uint64_t)general[places[index]] << (code[5] >> 6);
            if (mod == 0 && (code[5] & 7) == 5) abort();
        } else if (mod == 0 && (code[4] & 7) == 5) {
            abort();
        } else {
            address = general[places[rm]];
        }
        int32_t far;
        if (mod == 1) address += (int8_t)code[length++];
        if (mod == 2) {
            memcpy(&far, code + length, 4);
            address += far;
            length += 4;
        }
        memcpy(key, (const void *)address, 32);
    }
    for (int lane = 0; lane < 2; lane++) {
        uint8_t *half = vectors + (lane ? UPPER : LOWER);
        __m128i x = _mm_loadu_si128((__m128i *)(half + 16 * state));
        __m128i k = _mm_loadu_si128((__m128i *)(key + 16 * lane));
        x = last ? _mm_aesenclast_si128(x, k) : _mm_aesenc_si128(x, k);
        _mm_storeu_si128((__m128i *)(half + 16 * reg), x);
    }
    emulated++;
    general[REG_RIP] += length;
}

static void report(void) {
    fprintf(stderr, "%lu instructions of VAES were emulated\n", emulated);
}

__attribute__((constructor)) static void install(void) {
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    atexit(report);
}
