// Vector mathematics: exp2 and tanh, from one polynomial for 2^f − 1 on |f| ≤ ½, and log1p.
#ifndef HEADWORK_KERNEL_EXP2_H
#define HEADWORK_KERNEL_EXP2_H

#include "simd.h"

namespace headwork::HW_CPU {

// Minimax coefficients of f, f², f³ … for (2^f − 1): largest relative error of 2^f 2.6e-9 and 1.8e-17.
template <class T> struct Exp2;
template <> struct Exp2<float> {
    static constexpr float coefficients[] = {0.6931472149680279f, 0.2402265278288774f, 0.05550310551013797f,
                                             0.009617692972993f,  0.0013406643902352f, 0.00015594678161327f};
    static constexpr float round = 0x1.8p23f; // added and taken away again, rounds to a whole number
    static constexpr float lowest = -126;
    static constexpr int mantissa = 23;
};
template <> struct Exp2<double> {
    static constexpr double coefficients[] = {
        0.69314718055994569675,   0.24022650695910098007,   0.055504108664790394552,  0.0096181291076070023796,
        0.0013333558153439964747, 0.0001540353044157213033, 1.5252727385193868197e-5, 1.3215442675329822143e-6,
        1.0180647659234138888e-7, 7.0725704128144235096e-9, 4.078071929588336665e-10};
    static constexpr double round = 0x1.8p52;
    static constexpr double lowest = -1022;
    static constexpr int mantissa = 52;
};

template <class T> HW_INLINE Vec<T> two_to_less_one(Vec<T> f) {
    constexpr auto &c = Exp2<T>::coefficients;
    constexpr int last = sizeof c / sizeof c[0] - 1;
    Vec<T> sum = splat<T>(c[last]);
#pragma GCC unroll 16
    for (int i = last - 1; i >= 0; --i) sum = sum * f + c[i];
    return sum * f;
}

#if HW_BYTES == 64 && defined(__AVX512F__)
// 2^y for y ≤ about 100; 0 below the least normal number and for −∞. NaN stays NaN. `vrndscale` rounds, `vscalef`
// multiplies by the power of two, in the lanes of a mask register: those above `lowest`, and NaN.
template <class T> HW_INLINE Vec<T> exp2(Vec<T> y) {
    const Vec<T> lowest = splat<T>(Exp2<T>::lowest);
    if constexpr (sizeof(T) == 4) {
        const Vec<T> whole = (Vec<T>)_mm512_maskz_roundscale_ps(0xFFFF, (__m512)y, 0);
        const __mmask16 normal = _mm512_cmp_ps_mask((__m512)y, (__m512)lowest, _CMP_NLE_UQ);
        const Vec<T> fraction = two_to_less_one<T>(y - whole) + T(1);
        return (Vec<T>)_mm512_maskz_scalef_ps(normal, (__m512)fraction, (__m512)whole);
    } else {
        const Vec<T> whole = (Vec<T>)_mm512_maskz_roundscale_pd(0xFF, (__m512d)y, 0);
        const __mmask8 normal = _mm512_cmp_pd_mask((__m512d)y, (__m512d)lowest, _CMP_NLE_UQ);
        const Vec<T> fraction = two_to_less_one<T>(y - whole) + T(1);
        return (Vec<T>)_mm512_maskz_scalef_pd(normal, (__m512d)fraction, (__m512d)whole);
    }
}

template <class T> HW_INLINE Vec<T> exp2_or_zero(Vec<T> y) { return exp2<T>(y); }
#else
// 2^y for lowest ≤ y ≤ about 100. NaN stays NaN.
template <class T> HW_INLINE Vec<T> exp2_in_range(Vec<T> y) {
    const Vec<T> shifted = y + Exp2<T>::round;
    const Vec<T> f = y - (shifted - Exp2<T>::round);
    const Vec<T> fraction = two_to_less_one<T>(f) + T(1);
    // The whole number sits in the low bits of `shifted`: moved into the exponent, it multiplies by a power of two.
    return (Vec<T>)((BitVec<T>)fraction + ((BitVec<T>)shifted << Exp2<T>::mantissa));
}

// 2^y for y ≤ about 100; 0 below the least normal number and for −∞.
template <class T> HW_INLINE Vec<T> exp2(Vec<T> y) { return y <= Exp2<T>::lowest ? Vec<T>{} : exp2_in_range<T>(y); }

// The same by one instruction less: what is held at 2^(lowest − 1) is a 1 whose exponent comes out as 0, and so the
// number 0. Numbers between that and the least normal one are right to their order of magnitude only.
template <class T> HW_INLINE Vec<T> exp2_or_zero(Vec<T> y) {
    return exp2_in_range<T>(larger<T>(splat<T>(Exp2<T>::lowest - 1), y));
}
#endif

// tanh x = e/(e + 2) with e = exp(2x) − 1, which keeps the small ones exact.
template <class T> HW_INLINE Vec<T> tanh(Vec<T> x) {
    constexpr T twice_log2e = static_cast<T>(2.8853900817779268147);
    constexpr T bound = sizeof(T) == 4 ? 16 : 32; // ±1 to the last bit from here on
    const Vec<T> held = x > bound ? splat<T>(bound) : x < -bound ? splat<T>(-bound) : x;
    const Vec<T> y = held * twice_log2e;
    const Vec<T> shifted = y + Exp2<T>::round;
    const Vec<T> f = y - (shifted - Exp2<T>::round);
    const Vec<T> power = (Vec<T>)((BitVec<T>)splat<T>(1) + ((BitVec<T>)shifted << Exp2<T>::mantissa));
    const Vec<T> e = power * two_to_less_one<T>(f) + (power - T(1));
    return e / (e + T(2));
}

// log(1 + x) for 0 ≤ x ≤ 1: 2·artanh(s) with s = x/(x + 2) ≤ ⅓, whose series 2·(s + s³/3 + s⁵/5 …) ends below half a
// bit.
template <class T> HW_INLINE Vec<T> log1p(Vec<T> x) {
    constexpr int last = sizeof(T) == 4 ? 15 : 33;
    const Vec<T> s = x / (x + T(2)), square = s * s;
    Vec<T> sum = splat<T>(T(2) / last);
#pragma GCC unroll 16
    for (int i = last - 2; i > 0; i -= 2) sum = sum * square + T(2) / i;
    return sum * s;
}

// A softcap in powers of two, 0 for none; those beyond T do to scores in T what the nearest one does.
template <class T> constexpr T cap_in_powers(double softcap) {
    constexpr double least_cap = sizeof(T) == 4 ? 0x1p-120 : 0x1p-1000;
    const double cap = softcap * 1.4426950408889634074;
    return softcap > 0 ? static_cast<T>(most(least_cap, least(cap, static_cast<double>(largest<T>)))) : T(0);
}

// The softcap. A score that is not finite becomes NaN, not ±cap: the row is then worked again in wider arithmetic.
template <class T> HW_INLINE Vec<T> capped(Vec<T> s, T cap) { return tanh<T>(s / cap) * cap + s * T(0); }

} // namespace headwork::HW_CPU
#endif
