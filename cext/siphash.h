/* SipHash-2-4 with 128 bits of result (Aumasson, Bernstein 2012), for digests of keys that strangers choose. */
#ifndef CEXT_SIPHASH_H
#define CEXT_SIPHASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    uint64_t a, b, c, d;
} siphash_state;

static inline uint64_t siphash_load(const uint8_t *p) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--) word = (word << 8) | p[i];
    return word;
}

static inline uint64_t siphash_rotate(uint64_t word, int bits) { return (word << bits) | (word >> (64 - bits)); }

static inline void siphash_round(siphash_state *s, int times) {
    while (times-- > 0) {
        s->a += s->b;
        s->c += s->d;
        s->b = siphash_rotate(s->b, 13) ^ s->a;
        s->d = siphash_rotate(s->d, 16) ^ s->c;
        s->a = siphash_rotate(s->a, 32);
        s->c += s->b;
        s->a += s->d;
        s->b = siphash_rotate(s->b, 17) ^ s->c;
        s->d = siphash_rotate(s->d, 21) ^ s->a;
        s->c = siphash_rotate(s->c, 32);
    }
}

/* `key` has 16 bytes; the digest goes to `low` and `high`. */
static inline void siphash128(const uint8_t *key, const uint8_t *data, size_t size, uint64_t *low, uint64_t *high) {
    const uint64_t k0 = siphash_load(key), k1 = siphash_load(key + 8);
    siphash_state s = {
        k0 ^ 0x736f6d6570736575ULL,
        k1 ^ 0x646f72616e646f6dULL ^ 0xee,
        k0 ^ 0x6c7967656e657261ULL,
        k1 ^ 0x7465646279746573ULL,
    };
    const uint8_t *words_end = data + (size - size % 8);
    uint64_t word;
    for (; data != words_end; data += 8) {
        word = siphash_load(data);
        s.d ^= word;
        siphash_round(&s, 2);
        s.a ^= word;
    }
    word = (uint64_t)size << 56;
    for (size_t i = 0; i < size % 8; i++) word |= (uint64_t)data[i] << (8 * i);
    s.d ^= word;
    siphash_round(&s, 2);
    s.a ^= word;
    s.c ^= 0xee;
    siphash_round(&s, 4);
    *low = s.a ^ s.b ^ s.c ^ s.d;
    s.b ^= 0xdd;
    siphash_round(&s, 4);
    *high = s.a ^ s.b ^ s.c ^ s.d;
}

#endif
