// What an x86 CPU can do and the system lets it: asked of the CPU itself, because what compilers have for it
// (__builtin_cpu_supports) needs a run-time library that not all of them bring.
#ifndef HEADWORK_CPUID_H
#define HEADWORK_CPUID_H

#include <cpuid.h>
#include <stdint.h>

namespace headwork {

enum Register { eax, ebx, ecx, edx };

inline bool cpu_has(unsigned leaf, Register which, uint32_t bits, unsigned subleaf = 0) {
    unsigned found[4] = {};
    return __get_cpuid_count(leaf, subleaf, &found[eax], &found[ebx], &found[ecx], &found[edx]) &&
           (found[which] & bits) == bits;
}

// Whether the system keeps these registers for every thread.
inline bool system_saves(uint32_t registers) {
    if (!cpu_has(1, ecx, 1u << 27)) return false; // it does not say
    uint32_t low, high;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & registers) == registers;
}

inline bool made_by_amd() {
    unsigned most, first, last, middle; // of twelve letters, four by four
    return __get_cpuid(0, &most, &first, &last, &middle) && first == 0x68747541 && middle == 0x69746e65 &&
           last == 0x444d4163;
}

// The bytes of an AMD's first-level data cache; 0 where it does not say.
inline unsigned first_level_of_amd() {
    unsigned kind, shape, sets, more;
    if (!__get_cpuid_count(0x8000001d, 0, &kind, &shape, &sets, &more) || (kind & 0x1f) != 1) return 0;
    return ((shape >> 22) + 1) * ((shape >> 12 & 0x3ff) + 1) * ((shape & 0xfff) + 1) * (sets + 1);
}

inline bool has_avx2() {
    constexpr uint32_t fma = 1u << 12, avx = 1u << 28, f16c = 1u << 29, avx2 = 1u << 5;
    return system_saves(0x06) && cpu_has(1, ecx, fma | avx | f16c) && cpu_has(7, ebx, avx2);
}

inline bool has_avx512() {
    constexpr uint32_t f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
    return system_saves(0xe6) && has_avx2() && cpu_has(7, ebx, f | dq | bw | vl);
}

// Products of pairs of bfloat16 numbers.
inline bool has_avx512_bf16() { return has_avx512() && cpu_has(7, eax, 1u << 5, 1); }

// The same in tiles, which a process has to ask the system for besides: dispatch.cpp.
inline bool has_amx() {
    constexpr uint32_t bf16 = 1u << 22, tile = 1u << 24;
    return system_saves(0x600e6) && has_avx512_bf16() && cpu_has(7, edx, bf16 | tile);
}

} // namespace headwork
#endif
