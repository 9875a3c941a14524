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
// 8-bit floats: four bits of exponent and three more, no infinities (E4M3); the upper half of a float16 (E5M2).
struct E4M3 {
    uint8_t bits;
};
struct E5M2 {
    uint8_t bits;
};

typedef uint16_t Halves __attribute__((vector_size(HW_BYTES / 2)));
typedef uint32_t Words __attribute__((vector_size(HW_BYTES)));
typedef uint8_t Bytes __attribute__((vector_size(HW_BYTES / 4)));
typedef int8_t SignedBytes __attribute__((vector_size(HW_BYTES / 4)));

HW_INLINE Words widened(const char *from) {
    Halves halves;
    __builtin_memcpy(&halves, from, sizeof halves);
    return __builtin_convertvector(halves, Words);
}

HW_INLINE void store_narrowed(char *to, Words words) {
    const Halves halves = __builtin_convertvector(words, Halves);
    __builtin_memcpy(to, &halves, sizeof halves);
}

#if HW_BYTES == 16
typedef uint8_t Sixteen __attribute__((vector_size(16)));
typedef uint16_t Eight __attribute__((vector_size(16)));

// The first bytes of `from`, each the upper half of 16 bits.
HW_INLINE Eight spread_bytes(const char *from) {
    Sixteen bytes{};
    __builtin_memcpy(&bytes, from, sizeof(Bytes));
    return (Eight)__builtin_shufflevector(Sixteen{}, bytes, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
#endif

// Bytes as the lower halves of 16 bits. Compilers take vectors of so few bytes apart, so each width says how.
HW_INLINE Halves widened_bytes(const char *from) {
#if HW_BYTES == 16
    const Eight spread = spread_bytes(from) >> 8;
    Halves halves;
    __builtin_memcpy(&halves, &spread, sizeof halves);
    return halves;
#elif HW_BYTES == 64 && defined(__AVX512F__)
    __m128i bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return (Halves)_mm256_cvtepu8_epi16(bytes);
#elif HW_BYTES == 32 && defined(__AVX2__)
    int64_t bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return (Halves)_mm_cvtepu8_epi16(_mm_cvtsi64_si128(bytes));
#else
    Bytes bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return __builtin_convertvector(bytes, Halves);
#endif
}

HW_INLINE Vec<float> from_signed_bytes(const char *from) {
#if HW_BYTES == 16
    const Eight spread = spread_bytes(from);
    const IVec<float> words = (IVec<float>)__builtin_shufflevector(Eight{}, spread, 0, 8, 1, 9, 2, 10, 3, 11);
    return __builtin_convertvector(words >> 24, Vec<float>);
#elif HW_BYTES == 64 && defined(__AVX512F__)
    __m128i bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return __builtin_convertvector((IVec<float>)_mm512_cvtepi8_epi32(bytes), Vec<float>);
#elif HW_BYTES == 32 && defined(__AVX2__)
    int64_t bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return __builtin_convertvector((IVec<float>)_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bytes)), Vec<float>);
#else
    SignedBytes bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return __builtin_convertvector(__builtin_convertvector(bytes, IVec<float>), Vec<float>);
#endif
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

HW_INLINE Vec<float> from_halves(Halves halves) {
#if HW_BYTES == 32 && defined(__F16C__)
    return (Vec<float>)_mm256_cvtph_ps((__m128i)halves);
#elif HW_BYTES == 64 && defined(__AVX512F__)
    return (Vec<float>)_mm512_cvtph_ps((__m256i)halves);
#elif HW_BYTES == 16 && defined(__aarch64__)
    typedef __fp16 Small __attribute__((vector_size(8))); // in every AArch64, and one instruction
    return __builtin_convertvector((Small)halves, Vec<float>);
#else
    return from_half(__builtin_convertvector(halves, Words));
#endif
}

// As halves the bits are too small by a power of two, exactly; the largest of them is NaN.
HW_INLINE Vec<float> from_e4m3(Halves byte) {
    const Halves rest = byte & uint16_t(0x7f), nan = (Halves)(rest == uint16_t(0x7f)) & uint16_t(0x7e00);
    return from_halves((rest << 7) | ((byte & uint16_t(0x80)) << 8) | nan) * 256.0f;
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
    } else if constexpr (__is_same(S, int8_t)) {
        return from_signed_bytes(from);
    } else if constexpr (__is_same(S, E4M3)) {
        return from_e4m3(widened_bytes(from));
    } else if constexpr (__is_same(S, E5M2)) {
        return from_halves(widened_bytes(from) << 8);
    } else if constexpr (__is_same(S, Half)) {
        Halves halves;
        __builtin_memcpy(&halves, from, sizeof halves);
        return from_halves(halves);
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

// The same for keys and values, which a cache may hold in 8 bits too.
template <class T, class Body> HW_INLINE void with_cached_type(hw_type type, Body body) {
    if constexpr (sizeof(T) == 4) {
        switch (type) {
        case HW_INT8: return body(Stored<int8_t>{});
        case HW_FLOAT8_E4M3: return body(Stored<E4M3>{});
        case HW_FLOAT8_E5M2: return body(Stored<E5M2>{});
        default: break;
        }
    }
    with_type<T>(type, body);
}

HW_INLINE bool is_eight_bit(hw_type type) { return type > HW_BOOL; }

HW_INLINE int64_t bytes_of(hw_type type) {
    return is_eight_bit(type) ? 1 : type == HW_FLOAT64 ? 8 : type == HW_FLOAT32 ? 4 : 2;
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

// The same for the type that an array holds.
template <class T> void read_padded(T *padded, const hw_array &array, const char *from, int64_t count) {
    with_type<T>(array.type,
                 [&](auto stored) { read_row<T, typename decltype(stored)::Type>(padded, from, array.column, count); });
}

template <class T> void write_padded(const hw_array &array, char *to, const T *padded, int64_t count) {
    with_type<T>(array.type,
                 [&](auto stored) { write_row<T, typename decltype(stored)::Type>(to, array.column, padded, count); });
}

// May the micro-kernels read this array where it lies?
template <class T> bool direct(const hw_array &array) {
    constexpr hw_type type = sizeof(T) == 4 ? HW_FLOAT32 : HW_FLOAT64;
    constexpr int64_t far = 4096; // rows this far apart fall on the same cache sets: a copy pays
    const int64_t size = sizeof(T), row = array.row < 0 ? -array.row : array.row;
    const bool aligned =
        reinterpret_cast<uintptr_t>(array.data) % size == 0 && row % size == 0 && array.head % size == 0;
    bool batch = true;
    for (int64_t stride : array.batch) batch = batch && stride % size == 0;
    return array.type == type && array.column == size && aligned && batch && row < far;
}

// The same for rows of so many numbers, which whole vectors read and write.
template <class T> bool whole_rows(const hw_array &array, int64_t width) {
    return width % W<T> == 0 && direct<T>(array);
}

} // namespace headwork::HW_CPU
#endif
