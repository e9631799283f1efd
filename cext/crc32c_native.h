/* CRC-32C (Castagnoli): polynomial 0x1EDC6F41, reflected in and out, all ones before and after.

   Every implementation works on the raw register; the complements are in kshim_crc32c_run. */
#ifndef KSHIM_CRC32C_H
#define KSHIM_CRC32C_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t (*kshim_crc32c_fn)(uint32_t state, const uint8_t *data, size_t size);

typedef struct {
    const char *name;
    kshim_crc32c_fn run;
} kshim_crc32c_implementation;

/* Fills the tables and asks the CPU; call once before anything else. Answers how many implementations this CPU has, fastest
   first in kshim_crc32c_implementations. */
int kshim_crc32c_init(void);
extern kshim_crc32c_implementation kshim_crc32c_implementations[4];

static inline uint32_t kshim_crc32c_run(kshim_crc32c_fn run, uint32_t value, const uint8_t *data, size_t size) {
    return ~run(~value, data, size);
}

#endif
