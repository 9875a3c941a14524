// SIMD vectors of one width, the same code for every CPU: HW_BYTES wide, of float or double.
#ifndef HEADWORK_KERNEL_SIMD_H
#define HEADWORK_KERNEL_SIMD_H

#include <stdint.h>

#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define HW_INLINE inline __attribute__((always_inline))
#define HW_LAMBDA __attribute__((always_inline))
// A loop with a constant count, laid out whole.
#define HW_EACH(i, from, to) _Pragma("GCC unroll 32") for (int i = (from); i < (to); ++i)

namespace headwork::HW_CPU {

template <class T> struct Shape;
template <> struct Shape<float> {
    using Int = int32_t;
    using Bits = uint32_t;
    using Wider = double;
};
template <> struct Shape<double> {
    using Int = int64_t;
    using Bits = uint64_t;
    using Wider = long double;
};

template <class T> struct VectorOf {
    typedef T Real __attribute__((vector_size(HW_BYTES)));
    typedef typename Shape<T>::Int Int __attribute__((vector_size(HW_BYTES)));
    typedef typename Shape<T>::Bits Bits __attribute__((vector_size(HW_BYTES)));
};

template <class T> using Vec = typename VectorOf<T>::Real;
template <class T> using IVec = typename VectorOf<T>::Int;
template <class T> using BitVec = typename VectorOf<T>::Bits;

template <class T> constexpr int W = HW_BYTES / static_cast<int>(sizeof(T));

template <class T> constexpr T infinity = static_cast<T>(__builtin_inf());
template <class T> constexpr T largest = sizeof(T) == 4 ? static_cast<T>(__FLT_MAX__) : static_cast<T>(__DBL_MAX__);

// Not std::min: a function of the standard library, compiled here for one CPU, could be linked for all.
template <class N> HW_INLINE constexpr N least(N a, N b) { return b < a ? b : a; }
template <class N> HW_INLINE constexpr N most(N a, N b) { return a < b ? b : a; }

template <class T> HW_INLINE Vec<T> load(const T *from) {
    Vec<T> v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
}

template <class T> HW_INLINE void store(T *to, Vec<T> v) { __builtin_memcpy(to, &v, sizeof v); }

template <class T> HW_INLINE void add_to(T *to, Vec<T> v) { store<T>(to, load<T>(to) + v); }

template <class T> HW_INLINE Vec<T> splat(T x) { return x - Vec<T>{}; }

// Holds v in a register: GCC would rather read it from memory again for every use, and loads are what runs short.
template <class V> HW_INLINE void hold(V &v) {
#if defined(__x86_64__) && (HW_BYTES == 16 || (HW_BYTES == 32 && defined(__AVX__)) || defined(__AVX512F__))
    asm("" : "+v"(v));
#else
    (void)v;
#endif
}

// b where either is NaN, as the instruction has it.
template <class T> HW_INLINE Vec<T> larger(Vec<T> a, Vec<T> b) {
#if HW_BYTES == 32 && defined(__AVX__)
    if constexpr (sizeof(T) == 4) return (Vec<T>)_mm256_max_ps((__m256)a, (__m256)b);
    else return (Vec<T>)_mm256_max_pd((__m256d)a, (__m256d)b);
#elif HW_BYTES == 64 && defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) return (Vec<T>)_mm512_maskz_max_ps(0xFFFF, (__m512)a, (__m512)b);
    else return (Vec<T>)_mm512_maskz_max_pd(0xFF, (__m512d)a, (__m512d)b);
#else
    return a > b ? a : b;
#endif
}

template <class T> HW_INLINE bool any(IVec<T> truth) {
#if HW_BYTES == 32 && defined(__AVX__)
    return _mm256_movemask_ps((__m256)truth) != 0;
#elif HW_BYTES == 64 && defined(__AVX512DQ__)
    return _mm512_movepi32_mask((__m512i)truth) != 0;
#else
    typedef long long Words __attribute__((vector_size(HW_BYTES)));
    Words words = (Words)truth;
    long long all = 0;
    HW_EACH(i, 0, HW_BYTES / 8) all |= words[i];
    return all != 0;
#endif
}

// The sum of all elements, by halves.
template <class T, int step, int... i> HW_INLINE Vec<T> with_other(Vec<T> v, std::integer_sequence<int, i...>) {
    return v + __builtin_shufflevector(v, v, (i ^ step)...);
}
template <class T, int step = W<T> / 2> HW_INLINE T total(Vec<T> v) {
    v = with_other<T, step>(v, std::make_integer_sequence<int, W<T>>{});
    if constexpr (step > 1) return total<T, step / 2>(v);
    else return v[0];
}

template <class T> constexpr int lane_of = 16 / static_cast<int>(sizeof(T)); // elements in 16 bytes

// The lower (or the upper) elements of a and b by turns, within every 16 bytes: one instruction.
template <class T, bool upper, int... i>
HW_INLINE Vec<T> by_turns(Vec<T> a, Vec<T> b, std::integer_sequence<int, i...>) {
    constexpr int lane = lane_of<T>;
    return __builtin_shufflevector(a, b,
                                   (i / lane * lane + i % lane / 2 + (upper ? lane / 2 : 0) + (i % 2 ? W<T> : 0))...);
}

// Pieces of `step` elements change places between two rows.
template <class T, int step, int... i>
HW_INLINE void swap_pieces(Vec<T> &a, Vec<T> &b, std::integer_sequence<int, i...>) {
    const Vec<T> low = __builtin_shufflevector(a, b, (i & step ? (i ^ step) + W<T> : i)...);
    b = __builtin_shufflevector(a, b, (i & step ? i + W<T> : i ^ step)...);
    a = low;
}

// Every second 16 bytes of a and then of b: one instruction.
template <class T, bool odd, int... i>
HW_INLINE Vec<T> pieces_by_turns(Vec<T> a, Vec<T> b, std::integer_sequence<int, i...>) {
    constexpr int lane = lane_of<T>;
    return __builtin_shufflevector(a, b, ((i / lane * 2 + odd) * lane + i % lane)...);
}

// The sum of every row, in the first row's place: within 16 bytes first, whose shuffles are the cheap ones, then of the
// pieces. Halves of whole vectors first, the same number of shuffles took a Zen 5 four times as long.
template <class T> HW_INLINE void sum_each(Vec<T> (&row)[W<T>]) {
    constexpr int lane = lane_of<T>;
    constexpr std::make_integer_sequence<int, W<T>> all;
#pragma GCC unroll 4
    for (int half = lane / 2; half > 0; half /= 2)
        HW_EACH(i, 0, W<T>)
            if (i % lane < half)
                row[i] = by_turns<T, false>(row[i], row[i + half], all) + by_turns<T, true>(row[i], row[i + half], all);
#pragma GCC unroll 4
    for (int step = lane; step < W<T>; step *= 2)
#pragma GCC unroll 4
        for (int i = 0; i < W<T>; i += 2 * step)
            row[i] = pieces_by_turns<T, false>(row[i], row[i + step], all) +
                     pieces_by_turns<T, true>(row[i], row[i + step], all);
}

template <class T, int step> HW_INLINE void turn_pieces(Vec<T> (&row)[W<T>]) {
    if constexpr (step >= lane_of<T>) {
        HW_EACH(i, 0, W<T>)
            if (!(i & step)) swap_pieces<T, step>(row[i], row[i | step], std::make_integer_sequence<int, W<T>>{});
        turn_pieces<T, step / 2>(row);
    }
}

// A W×W block turned on its diagonal: first within 16 bytes, then the 16-byte pieces.
template <class T> HW_INLINE void transpose(Vec<T> (&row)[W<T>]) {
    constexpr int lane = lane_of<T>;
    constexpr std::make_integer_sequence<int, W<T>> all;
#pragma GCC unroll 16
    for (int round = 1; round < lane; round *= 2) {
        Vec<T> next[W<T>];
#pragma GCC unroll 16
        for (int i = 0; i < W<T>; i += 2) {
            const int first = i / lane * lane + i % lane / 2, second = first + lane / 2;
            next[i] = by_turns<T, false>(row[first], row[second], all);
            next[i + 1] = by_turns<T, true>(row[first], row[second], all);
        }
        HW_EACH(i, 0, W<T>) row[i] = next[i];
    }
    turn_pieces<T, W<T> / 2>(row);
}

} // namespace headwork::HW_CPU
#endif
