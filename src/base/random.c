/* SPDX-License-Identifier: MIT */
/*
 * xoshiro256** seeded by splitmix64 (Blackman and Vigna, public domain algorithms), and bytes of the kernel. The
 * generator must never read a clock or the kernel: the same seed gives the same run. One generator, one thread.
 */
#include "base/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static uint64_t rotate(uint64_t value, int by) {
    return (value << by) | (value >> (64 - by));
}

void hfi_random_seed(struct hfi_random *random, uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        seed += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        random->state[i] = z ^ (z >> 31);
    }
}

uint64_t hfi_random_next(struct hfi_random *random) {
    uint64_t *s = random->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t hfi_random_below(struct hfi_random *random, uint64_t bound) {
    if (bound == 0)
        return 0;
    /* The lowest 2^64 mod bound numbers would make the small results likelier: draw again. */
    uint64_t surplus = (UINT64_MAX - bound + 1) % bound;
    uint64_t drawn;
    do
        drawn = hfi_random_next(random);
    while (drawn < surplus);
    return drawn % bound;
}

void hfi_entropy(void *bytes, unsigned length) {
    unsigned char *at = bytes;
    while (length > 0) {
        ssize_t got = getrandom(at, length, 0);
        if (got < 0 && errno != EINTR)
            abort(); /* ids that repeat would merge jobs: stopping is the lesser harm */
        if (got > 0) {
            at += got;
            length -= (unsigned)got;
        }
    }
}

char *hfi_uuid(char *text) {
    unsigned char b[16];
    hfi_entropy(b, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* version 4, RFC 9562 section 5.4 */
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80); /* variant 10 */
    snprintf(text, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3],
             b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    return text;
}
