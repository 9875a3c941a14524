// Type conversion (float16, bfloat16): rows of any stored type, read and written as vectors of the accumulation type.
#ifndef HEADWORK_KERNEL_CONVERT_H
#define HEADWORK_KERNEL_CONVERT_H

#include "../attention.h"
#include "simd.h"

namespace headwork::HW_CPU {

struct Half {
    uint16_t bits;
};
struct Brain {
    uint16_t bits;
};

typedef uint16_t Halves __attribute__((vector_size(HW_BYTES / 2)));
typedef uint32_t Words __attribute__((vector_size(HW_BYTES)));

HW_INLINE Words widened(const char *from) {
    Halves halves;
    __builtin_memcpy(&halves, from, sizeof halves);
    return __builtin_convertvector(halves, Words);
}

HW_INLINE void store_narrowed(char *to, Words words) {
    const Halves halves = __builtin_convertvector(words, Halves);
    __builtin_memcpy(to, &halves, sizeof halves);
}

// Half to float by integer arithmetic: the exponent is moved, and a multiplication makes the subnormals right.
HW_INLINE Vec<float> from_half(Words half) {
    const Words sign = (half & 0x8000u) << 16;
    const Words rest = (half & 0x7fffu) << 13;
    const Vec<float> scaled = (Vec<float>)rest * 0x1p112f;
    const Words special = (Words)((half & 0x7c00u) == 0x7c00u);
    const Words bits = ((Words)scaled & ~special) | ((rest | 0x7f800000u) & special);
    return (Vec<float>)(bits | sign);
}

// Float to half, to the nearest, ties to even.
HW_INLINE Words to_half(Vec<float> x) {
    const Words bits = (Words)x;
    const Words sign = (bits >> 16) & 0x8000u;
    const Words size = bits & 0x7fffffffu;
    const Words nan = (Words)(size > 0x7f800000u);
    const Words too_large = (Words)(size >= 0x477ff000u);
    const Words small = (Words)(size < 0x38800000u);
    // Subnormal halves: adding 0.5 lines the bits up at the end of the mantissa and rounds them.
    const Words subnormal = (Words)((Vec<float>)size + 0.5f) - 0x3f000000u;
    const Words normal = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
    Words half = (subnormal & small) | (normal & ~small);
    half = (half & ~too_large) | (0x7c00u & too_large);
    half = (half & ~nan) | (0x7e00u & nan);
    return half | sign;
}

HW_INLINE Words to_brain(Vec<float> x) {
    const Words bits = (Words)x;
    const Words nan = (Words)((bits & 0x7fffffffu) > 0x7f800000u);
    const Words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (rounded & ~nan) | (((bits >> 16) | 0x40u) & nan);
}

// W consecutive elements stored as S, aligned or not.
template <class T, class S> HW_INLINE Vec<T> load_as(const char *from) {
    if constexpr (__is_same(S, Brain)) {
        return (Vec<T>)(widened(from) << 16);
    } else if constexpr (__is_same(S, Half)) {
#if HW_BYTES == 32 && defined(__F16C__)
        __m128i half;
        __builtin_memcpy(&half, from, sizeof half);
        return (Vec<T>)_mm256_cvtph_ps(half);
#elif HW_BYTES == 64 && defined(__AVX512F__)
        __m256i half;
        __builtin_memcpy(&half, from, sizeof half);
        return (Vec<T>)_mm512_cvtph_ps(half);
#else
        return from_half(widened(from));
#endif
    } else {
        Vec<T> v;
        __builtin_memcpy(&v, from, sizeof v);
        return v;
    }
}

template <class T, class S> HW_INLINE void store_as(char *to, Vec<T> v) {
    if constexpr (__is_same(S, Brain)) store_narrowed(to, to_brain(v));
    else if constexpr (__is_same(S, Half)) store_narrowed(to, to_half(v));
    else __builtin_memcpy(to, &v, sizeof v);
}

template <class S> struct Stored {
    using Type = S;
};

// Calls body with the stored type as a tag: the one place where hw_type becomes a C++ type.
template <class T, class Body> HW_INLINE void with_type(hw_type type, Body body) {
    if constexpr (sizeof(T) == 8) {
        body(Stored<double>{});
    } else {
        switch (type) {
        case HW_FLOAT16: return body(Stored<Half>{});
        case HW_BFLOAT16: return body(Stored<Brain>{});
        default: return body(Stored<float>{});
        }
    }
}

// A log-sum-exp is kept in T, or finer: scores in the hundreds leave few digits of it in a float.
template <class T> HW_INLINE void write_lse(const hw_array &array, char *to, typename Shape<T>::Wider lse) {
    const double fine = static_cast<double>(lse);
    const T coarse = static_cast<T>(lse);
    if (array.type == HW_FLOAT64) __builtin_memcpy(to, &fine, sizeof fine);
    else __builtin_memcpy(to, &coarse, sizeof coarse);
}

template <class T> HW_INLINE typename Shape<T>::Wider read_lse(const hw_array &array, const char *from) {
    double fine;
    T coarse;
    if (array.type == HW_FLOAT64) return __builtin_memcpy(&fine, from, sizeof fine), fine;
    return __builtin_memcpy(&coarse, from, sizeof coarse), coarse;
}

// `count` elements, `stride` bytes apart, into consecutive T; `padded` has room for whole vectors.
template <class T, class S> void read_row(T *padded, const char *from, int64_t stride, int64_t count) {
    int64_t i = 0;
    if (stride == sizeof(S))
        for (; i + W<T> <= count; i += W<T>) store<T>(padded + i, load_as<T, S>(from + i * stride));
    for (; i < count; i += W<T>) {
        char some[W<T> * sizeof(S)] = {};
        const int64_t n = least<int64_t>(W<T>, count - i);
        for (int64_t j = 0; j < n; ++j) __builtin_memcpy(some + j * sizeof(S), from + (i + j) * stride, sizeof(S));
        store<T>(padded + i, load_as<T, S>(some));
    }
}

template <class T, class S> void write_row(char *to, int64_t stride, const T *padded, int64_t count) {
    int64_t i = 0;
    if (stride == sizeof(S))
        for (; i + W<T> <= count; i += W<T>) store_as<T, S>(to + i * stride, load<T>(padded + i));
    for (; i < count; i += W<T>) {
        char some[W<T> * sizeof(S)];
        store_as<T, S>(some, load<T>(padded + i));
        const int64_t n = least<int64_t>(W<T>, count - i);
        for (int64_t j = 0; j < n; ++j) __builtin_memcpy(to + (i + j) * stride, some + j * sizeof(S), sizeof(S));
    }
}

} // namespace headwork::HW_CPU
#endif
