#include "crc32c_native.h"

#include <string.h>

/* The polynomial without its top term, and the same with its bits reversed. */
#define POLY 0x1EDC6F41u
#define POLY_REFLECTED 0x82F63B78u

kshim_crc32c_implementation kshim_crc32c_implementations[4];

/* ---- Table: eight bytes a step, one table for each of their places. ---- */

static uint32_t table[8][256];

static void fill_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (crc & 1 ? POLY_REFLECTED : 0);
        table[0][byte] = crc;
    }
    for (int place = 1; place < 8; place++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = table[place - 1][byte];
            table[place][byte] = (before >> 8) ^ table[0][before & 0xFF];
        }
}

static uint32_t run_table(uint32_t state, const uint8_t *p, size_t n) {
    for (; n >= 8; p += 8, n -= 8) {
        /* By bytes, so that the byte order of the machine does not matter; compilers make it one load. */
        uint32_t low = state ^ (p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        state = table[7][low & 0xFF] ^ table[6][(low >> 8) & 0xFF] ^ table[5][(low >> 16) & 0xFF] ^ table[4][low >> 24] ^
                table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
    }
    for (; n; p++, n--) state = (state >> 8) ^ table[0][(state ^ *p) & 0xFF];
    return state;
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>
#include <immintrin.h>

/* The functions compile for the CPU that has the instructions, the rest for any: which of them runs is chosen at start. For
   Clang the CRC instruction is a feature of its own, which a target that names its features (zig's) leaves out of SSE4.2. */
#if defined(__clang__) && __clang_major__ >= 14
#define CRC_TARGET "sse4.2,crc32"
#else
#define CRC_TARGET "sse4.2"
#endif
#define WITH_CRC __attribute__((target(CRC_TARGET)))
#define WITH_PCLMUL __attribute__((target(CRC_TARGET ",pclmul")))

/* ---- Folding by carry-less multiplication ----

   A 128-bit register holds 16 bytes of the message as a polynomial M = H * x^64 + L, bit k standing for x^(127-k): H, of the
   earlier bytes, is the low half. To fold M over D bits of message that follow is to replace it by something congruent to
   M * x^D modulo the CRC polynomial P, and to add (xor) those later bits. The product of two 64-bit halves in this reversed
   order comes out one place too low, which is one factor x. So with the constants

       far(D)  = x^(D + 63) mod P   for H        near(D) = x^(D - 1) mod P   for L

   M * x^D  =  clmul(H, far(D)) + clmul(L, near(D)), below degree 96, so it fits the register again. `power` computes them
   from this definition at start; there is no number to copy or get wrong. */

typedef struct {
    uint64_t far;  /* for the low half of a register */
    uint64_t near; /* for the high half */
} fold_pair;

static fold_pair fold_128, fold_512, fold_1024, fold_2048;
static fold_pair fold_lanes[4];    /* by 384, 256, 128 bits, and nothing: lanes of one 512-bit register into the last */
static fold_pair fold_128_to_3[3]; /* by 384, 256, 128 bits */
static fold_pair fold_256_to_3[3]; /* by 768, 512, 256 bits */
static fold_pair fold_512_to_3[3]; /* by 1536, 1024, 512 bits */

/* The CRC instruction runs beside the multiplier, so long messages go through both at once: a block is 64 * STEPS bytes that
   are folded and three streams of STREAM bytes, each with a CRC of its own. To append m bits of message to a CRC is to
   multiply it by x^m: clmul of two 32-bit registers comes out as their product times x in 64 bits, and the instruction
   multiplies by x^32 and divides. So the factor for m bits is x^(m - 33) mod P. */
#define STEPS 32
#define STREAM (24 * STEPS)
#define BLOCK (64 * STEPS + 3 * STREAM)
static uint32_t over_streams[3]; /* factors for one, two and three streams */

/* x^n mod P in reversed bit order: bit k stands for x^(31-k). */
static uint32_t power(int n) {
    uint32_t remainder = 1, reversed = 0;
    while (n-- > 0) remainder = (remainder << 1) ^ (remainder >> 31 ? POLY : 0);
    for (int bit = 0; bit < 32; bit++) reversed |= ((remainder >> bit) & 1) << (31 - bit);
    return reversed;
}

static fold_pair fold_by(int distance) {
    fold_pair pair = {(uint64_t)power(distance + 63) << 32, (uint64_t)power(distance - 1) << 32};
    return pair;
}

static void fill_folds(void) {
    fold_128 = fold_by(128);
    fold_512 = fold_by(512);
    fold_1024 = fold_by(1024);
    fold_2048 = fold_by(2048);
    for (int i = 0; i < 3; i++) {
        fold_128_to_3[i] = fold_lanes[i] = fold_by(128 * (3 - i));
        fold_256_to_3[i] = fold_by(256 * (3 - i));
        fold_512_to_3[i] = fold_by(512 * (3 - i));
    }
    memset(&fold_lanes[3], 0, sizeof(fold_pair));
    for (int i = 0; i < 3; i++) over_streams[i] = power(8 * STREAM * (i + 1) - 33);
}

static inline uint64_t load_word(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

/* The bytes below a register's size, and messages too short to fold. */
WITH_CRC static inline uint32_t run_crc_instruction(uint32_t state, const uint8_t *p, size_t n) {
    uint64_t crc = state;
    for (; n >= 8; p += 8, n -= 8) crc = _mm_crc32_u64(crc, load_word(p));
    for (; n; p++, n--) crc = _mm_crc32_u8((uint32_t)crc, *p);
    return (uint32_t)crc;
}

WITH_PCLMUL static inline __m128i fold_16(__m128i x, __m128i k, __m128i next) {
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11)), next);
}

WITH_PCLMUL static inline __m128i pair_16(const fold_pair *pair) {
    return _mm_loadu_si128((const __m128i *)pair);
}

/* One register is left: it is congruent to the message so far, and the instruction divides it. */
WITH_PCLMUL static inline uint32_t finish_16(__m128i x, const uint8_t *p, size_t n) {
    __m128i k = pair_16(&fold_128);
    uint64_t crc;
    for (; n >= 16; p += 16, n -= 16) x = fold_16(x, k, _mm_loadu_si128((const __m128i *)p));
    crc = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(x));
    crc = _mm_crc32_u64(crc, (uint64_t)_mm_extract_epi64(x, 1));
    return run_crc_instruction((uint32_t)crc, p, n);
}

WITH_PCLMUL static inline uint32_t multiply(uint32_t crc, uint32_t factor) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)crc), _mm_cvtsi32_si128((int)factor), 0);
    return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

WITH_PCLMUL static uint32_t run_block(uint32_t state, const uint8_t *p) {
    const __m128i *in = (const __m128i *)p;
    const uint8_t *s0 = p + 64 * STEPS, *s1 = s0 + STREAM, *s2 = s1 + STREAM;
    uint64_t c0 = 0, c1 = 0, c2 = 0;
    __m128i x0 = _mm_xor_si128(_mm_loadu_si128(in), _mm_cvtsi32_si128((int)state));
    __m128i x1 = _mm_loadu_si128(in + 1), x2 = _mm_loadu_si128(in + 2), x3 = _mm_loadu_si128(in + 3);
    __m128i k = pair_16(&fold_512);
    for (int step = 1;; step++) {
        for (int i = 0; i < 3; i++, s0 += 8, s1 += 8, s2 += 8) {
            c0 = _mm_crc32_u64(c0, load_word(s0));
            c1 = _mm_crc32_u64(c1, load_word(s1));
            c2 = _mm_crc32_u64(c2, load_word(s2));
        }
        if (step == STEPS) break;
        in += 4;
        x0 = fold_16(x0, k, _mm_loadu_si128(in));
        x1 = fold_16(x1, k, _mm_loadu_si128(in + 1));
        x2 = fold_16(x2, k, _mm_loadu_si128(in + 2));
        x3 = fold_16(x3, k, _mm_loadu_si128(in + 3));
    }
    x3 = fold_16(x0, pair_16(&fold_128_to_3[0]), x3);
    x3 = fold_16(x1, pair_16(&fold_128_to_3[1]), x3);
    x3 = fold_16(x2, pair_16(&fold_128_to_3[2]), x3);
    return multiply(finish_16(x3, p, 0), over_streams[2]) ^ multiply((uint32_t)c0, over_streams[1]) ^
           multiply((uint32_t)c1, over_streams[0]) ^ (uint32_t)c2;
}

WITH_PCLMUL static uint32_t run_pclmul(uint32_t state, const uint8_t *p, size_t n) {
    const __m128i *in;
    __m128i x0, x1, x2, x3, k;
    for (; n >= BLOCK; p += BLOCK, n -= BLOCK) state = run_block(state, p);
    if (n < 128) return run_crc_instruction(state, p, n);
    in = (const __m128i *)p;
    x0 = _mm_xor_si128(_mm_loadu_si128(in), _mm_cvtsi32_si128((int)state));
    x1 = _mm_loadu_si128(in + 1);
    x2 = _mm_loadu_si128(in + 2);
    x3 = _mm_loadu_si128(in + 3);
    k = pair_16(&fold_512);
    for (n -= 64, in += 4; n >= 64; n -= 64, in += 4) {
        x0 = fold_16(x0, k, _mm_loadu_si128(in));
        x1 = fold_16(x1, k, _mm_loadu_si128(in + 1));
        x2 = fold_16(x2, k, _mm_loadu_si128(in + 2));
        x3 = fold_16(x3, k, _mm_loadu_si128(in + 3));
    }
    x3 = fold_16(x0, pair_16(&fold_128_to_3[0]), x3);
    x3 = fold_16(x1, pair_16(&fold_128_to_3[1]), x3);
    x3 = fold_16(x2, pair_16(&fold_128_to_3[2]), x3);
    return finish_16(x3, (const uint8_t *)in, n);
}

#if defined(__GNUC__) && (__GNUC__ >= 8 || defined(__clang__))
#define HAVE_VPCLMUL 1

/* ---- Blocks as above, by registers of twice the size, for a CPU that multiplies two lanes in the time of one and has no
   AVX-512, as Zen 3. There they are 1.6 to 1.7 times as fast as `run_block`, which is no faster than the CRC instruction alone. */
#define AVX2 __attribute__((target("avx2,vpclmulqdq,pclmul," CRC_TARGET)))

AVX2 static inline __m256i fold_32(__m256i x, __m256i k, __m256i next) {
    __m256i product = _mm256_xor_si256(_mm256_clmulepi64_epi128(x, k, 0x00), _mm256_clmulepi64_epi128(x, k, 0x11));
    return _mm256_xor_si256(product, next);
}

AVX2 static inline __m256i pair_32(const fold_pair *pair) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)pair));
}

#define ADD_WORDS(at)                                \
    do {                                             \
        c0 = _mm_crc32_u64(c0, load_word(s0 + (at))); \
        c1 = _mm_crc32_u64(c1, load_word(s1 + (at))); \
        c2 = _mm_crc32_u64(c2, load_word(s2 + (at))); \
    } while (0)

AVX2 static uint32_t run_block_avx2(uint32_t state, const uint8_t *p) {
    const __m256i *in = (const __m256i *)p;
    const uint8_t *s0 = p + 64 * STEPS, *s1 = s0 + STREAM, *s2 = s1 + STREAM;
    uint64_t c0 = 0, c1 = 0, c2 = 0;
    __m256i first = _mm256_inserti128_si256(_mm256_setzero_si256(), _mm_cvtsi32_si128((int)state), 0);
    __m256i x0 = _mm256_xor_si256(_mm256_loadu_si256(in), first);
    __m256i x1 = _mm256_loadu_si256(in + 1), x2 = _mm256_loadu_si256(in + 2), x3 = _mm256_loadu_si256(in + 3);
    __m256i k = pair_32(&fold_1024);
    __m128i x;
    for (int step = 1;; step++) {
        /* Not a loop: compilers do not unroll six rounds, which takes a sixth of the time more. */
        ADD_WORDS(0);
        ADD_WORDS(8);
        ADD_WORDS(16);
        ADD_WORDS(24);
        ADD_WORDS(32);
        ADD_WORDS(40);
        s0 += 48;
        s1 += 48;
        s2 += 48;
        if (step == STEPS / 2) break;
        in += 4;
        x0 = fold_32(x0, k, _mm256_loadu_si256(in));
        x1 = fold_32(x1, k, _mm256_loadu_si256(in + 1));
        x2 = fold_32(x2, k, _mm256_loadu_si256(in + 2));
        x3 = fold_32(x3, k, _mm256_loadu_si256(in + 3));
    }
    x3 = fold_32(x0, pair_32(&fold_256_to_3[0]), x3);
    x3 = fold_32(x1, pair_32(&fold_256_to_3[1]), x3);
    x3 = fold_32(x2, pair_32(&fold_256_to_3[2]), x3);
    x = fold_16(_mm256_castsi256_si128(x3), pair_16(&fold_128), _mm256_extracti128_si256(x3, 1));
    return multiply(finish_16(x, p, 0), over_streams[2]) ^ multiply((uint32_t)c0, over_streams[1]) ^
           multiply((uint32_t)c1, over_streams[0]) ^ (uint32_t)c2;
}

AVX2 static uint32_t run_avx2(uint32_t state, const uint8_t *p, size_t n) {
    for (; n >= BLOCK; p += BLOCK, n -= BLOCK) state = run_block_avx2(state, p);
    return run_pclmul(state, p, n);
}

#define AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,vpclmulqdq,pclmul," CRC_TARGET)))

AVX512 static inline __m512i fold_64(__m512i x, __m512i k, __m512i next) {
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x00), _mm512_clmulepi64_epi128(x, k, 0x11), next, 0x96);
}

AVX512 static inline __m512i pair_64(const fold_pair *pair) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)pair));
}

AVX512 static uint32_t run_avx512(uint32_t state, const uint8_t *p, size_t n) {
    __m512i x0, x1, x2, x3, k;
    __m128i x;
    if (n < 512) return run_pclmul(state, p, n);
    x0 = _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state)));
    x1 = _mm512_loadu_si512(p + 64);
    x2 = _mm512_loadu_si512(p + 128);
    x3 = _mm512_loadu_si512(p + 192);
    k = pair_64(&fold_2048);
    for (n -= 256, p += 256; n >= 256; n -= 256, p += 256) {
        x0 = fold_64(x0, k, _mm512_loadu_si512(p));
        x1 = fold_64(x1, k, _mm512_loadu_si512(p + 64));
        x2 = fold_64(x2, k, _mm512_loadu_si512(p + 128));
        x3 = fold_64(x3, k, _mm512_loadu_si512(p + 192));
    }
    x3 = fold_64(x0, pair_64(&fold_512_to_3[0]), x3);
    x3 = fold_64(x1, pair_64(&fold_512_to_3[1]), x3);
    x3 = fold_64(x2, pair_64(&fold_512_to_3[2]), x3);
    k = pair_64(&fold_512);
    for (; n >= 64; n -= 64, p += 64) x3 = fold_64(x3, k, _mm512_loadu_si512(p));
    /* Three lanes move onto the last; its own pair is zero, so the product drops it and it is added as it is. */
    x0 = fold_64(x3, _mm512_loadu_si512(fold_lanes), _mm512_setzero_si512());
    x = _mm_xor_si128(_mm512_castsi512_si128(x0), _mm512_extracti32x4_epi32(x0, 1));
    x = _mm_xor_si128(x, _mm512_extracti32x4_epi32(x0, 2));
    x = _mm_xor_si128(x, _mm512_extracti32x4_epi32(x3, 3));
    return finish_16(x, p, n);
}
#endif

#define BIT(word, n) (((word) >> (n)) & 1)

/* The CPU is asked itself: __builtin_cpu_supports needs a runtime library that fills in what it reads, and Zig's does not. */
static int has_pclmul(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && BIT(c, 1) /* PCLMULQDQ */ && BIT(c, 20) /* SSE4.2 */;
}

#ifdef HAVE_VPCLMUL
/* The bits of leaf 7's EBX if the system saves all of `saved` and there is VPCLMULQDQ, and 0 else. */
static unsigned wide_registers(unsigned saved) {
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !BIT(c, 27) /* OSXSAVE: xgetbv is there */) return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & saved) != saved || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    return BIT(c, 10) /* VPCLMULQDQ */ ? b : 0;
}

static int has_avx512(void) {
    /* The system saves the registers of SSE and AVX (1, 2), and the masks and halves of AVX-512 (5, 6, 7). */
    unsigned b = wide_registers(0xE6);
    return BIT(b, 16) /* F */ && BIT(b, 17) /* DQ */ && BIT(b, 31) /* VL */;
}

static int has_avx2(void) {
    return BIT(wide_registers(0x06), 5);
}
#endif

static int add_native(int count) {
    fill_folds();
    if (!has_pclmul()) return count;
#ifdef HAVE_VPCLMUL
    if (has_avx512()) {
        kshim_crc32c_implementations[count].name = "avx512";
        kshim_crc32c_implementations[count++].run = run_avx512;
    }
    if (has_avx2()) {
        kshim_crc32c_implementations[count].name = "avx2";
        kshim_crc32c_implementations[count++].run = run_avx2;
    }
#endif
    kshim_crc32c_implementations[count].name = "pclmul";
    kshim_crc32c_implementations[count++].run = run_pclmul;
    return count;
}

#elif defined(__aarch64__) && (defined(__linux__) || defined(__APPLE__))
#include <arm_acle.h>
#ifdef __linux__
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#endif

#ifdef __clang__
#define ARM_CRC __attribute__((target("crc")))
#else
#define ARM_CRC __attribute__((target("+crc")))
#endif

ARM_CRC static uint32_t run_arm(uint32_t state, const uint8_t *p, size_t n) {
    uint64_t word;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&word, p, 8);
        state = __crc32cd(state, word);
    }
    for (; n; p++, n--) state = __crc32cb(state, *p);
    return state;
}

static int add_native(int count) {
#ifdef __linux__
    if (!(getauxval(AT_HWCAP) & HWCAP_CRC32)) return count;
#endif
    kshim_crc32c_implementations[count].name = "armv8";
    kshim_crc32c_implementations[count++].run = run_arm;
    return count;
}

#else
static int add_native(int count) { return count; }
#endif

int kshim_crc32c_init(void) {
    int count;
    fill_table();
    count = add_native(0);
    kshim_crc32c_implementations[count].name = "table";
    kshim_crc32c_implementations[count++].run = run_table;
    return count;
}
