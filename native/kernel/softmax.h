// Online softmax: a panel, which is a few vectors of queries, over the keys they read.
//
// Kept for every lane, in powers of two: `top`, a score near the largest so far; `sum` = Σ 2^(s − top);
// and the output, Σ 2^(s − top)·v. A lane that has read nothing has top = −∞, so its first key is no special case.
#ifndef HEADWORK_KERNEL_SOFTMAX_H
#define HEADWORK_KERNEL_SOFTMAX_H

#include "exp2.h"
#include "mask.h"
#include "microkernel.h"
#include "prefetch.h"
#ifdef HW_BRAIN
#include "brain_products.h"
#else
#include "products.h"
#endif

namespace headwork::HW_CPU {

// Scores may exceed `top` by this many powers of two before the lane is rebased: rarely, after its first key.
constexpr int headroom = 20;

template <class T> constexpr int max_lanes = max_vectors * W<T>;

template <class T> struct Panel {
    Lane lane[max_lanes<T>];
    int count, vectors;
    bool fresh;                     // nothing read so far
    bool empty;                     // o not written so far
    int64_t first, last;            // keys that some lane reads
    int64_t all_first, all_last;    // keys that every lane reads
    int64_t ends[max_vectors];      // no lane of this vector, or of one before it, reads from here on
    typename Products<T>::Query *q; // d_k × lanes, times scale · log2 e
    T *o;                           // d_v × lanes, then the rows `top` and `sum`
    typename Shape<T>::Bits key_low[max_lanes<T>], key_high[max_lanes<T>]; // of dropout
};

// Zeros, where nothing was written to o.
template <class T> void fill(Panel<T> &panel, int64_t d_v) {
    if (!panel.empty) return;
    panel.empty = false;
    for (int64_t i = 0; i < d_v * panel.vectors * W<T>; i += W<T>) store<T>(panel.o + i, Vec<T>{});
}

// One block of keys, and scratch for the weights of one panel on it.
template <class T> struct KeyBlock {
    const hw_attention *call;
    const Group *group;
    const typename Products<T>::Key *k;
    const typename Products<T>::Value *v;
    int64_t k_row, v_row, d_k, d_v;
    int64_t start;                // the first key of the block
    mutable int64_t finite_rows;  // so many values are known to be finite: looked at once for all panels
    mutable Ahead next_k, next_v; // the block after this one
    int64_t lines;                // of each, to ask for with every tile
    T cap;                        // softcap · log2 e
    bool biased;
    const Dropout<T> *dropout;
    T *p, *raw, *bias, *bias_rows, *v_clean;
    Visible<T> *seen;
    typename Products<T>::Own own;
};

// How a run of keys is treated: read by every lane; by some; or with anything else done to the scores.
enum class Kind { plain, hidden, general };

template <class T, int NV> HW_INLINE T *tops(const Panel<T> &panel, int64_t d_v) { return panel.o + d_v * NV * W<T>; }

// The functions of a tile leave out its first `skip` vectors: near the diagonal those have read all they may.
template <class T, int NV, int KT, int skip = 0>
HW_INLINE void hide(Vec<T> (&s)[KT][NV], const Visible<T> &seen, int64_t j) {
    constexpr int sign = 8 * sizeof(T) - 1;
    HW_EACH(i, 0, KT)
        HW_EACH(v, skip, NV) {
            BitVec<T> bits;
            __builtin_memcpy(&bits, &seen.bits[(j + i) / word][v * W<T>], sizeof bits);
            bits <<= static_cast<typename Shape<T>::Bits>(sign - (j + i) % word);
            s[i][v] = (IVec<T>)bits < 0 ? s[i][v] : splat<T>(-infinity<T>);
        }
}

// What a softcap, an additive mask and a request for the weights do to raw scores.
template <class T, int NV, int KT> HW_INLINE void adjust(Vec<T> (&s)[KT][NV], const KeyBlock<T> &block, int64_t j) {
    constexpr int lanes = NV * W<T>;
    if (block.cap > 0)
        HW_EACH(i, 0, KT)
            HW_EACH(v, 0, NV) s[i][v] = capped<T>(s[i][v], block.cap);
    if (block.biased)
        HW_EACH(i, 0, KT)
            HW_EACH(v, 0, NV) s[i][v] += load<T>(block.bias + (j + i) * lanes + v * W<T>);
    hide<T, NV, KT>(s, *block.seen, j);
    if (block.raw)
        HW_EACH(i, 0, KT)
            HW_EACH(v, 0, NV) store<T>(block.raw + (j + i) * lanes + v * W<T>, s[i][v]);
}

// s = scores − top, hidden ones −∞.
template <class T, int NV, int KT, Kind kind, int skip = 0>
HW_INLINE void score_tile(Vec<T> (&s)[KT][NV], const Panel<T> &panel, const KeyBlock<T> &block, const Vec<T> (&top)[NV],
                          int64_t j) {
    // Starting the sums at −top would save the subtraction, but round every step to the size of `top`.
    score<T, NV, KT, skip>(s, panel, block, j);
    if constexpr (kind == Kind::general) adjust<T, NV, KT>(s, block, j);
    HW_EACH(i, 0, KT)
        HW_EACH(v, skip, NV) s[i][v] -= top[v];
    if constexpr (kind != Kind::plain) hide<T, NV, KT, skip>(s, *block.seen, j);
}

template <class T, int NV, int KT, int skip = 0> HW_INLINE void highest(Vec<T> (&high)[NV], const Vec<T> (&s)[KT][NV]) {
    HW_EACH(v, skip, NV) high[v] = s[0][v];
    HW_EACH(i, 1, KT)
        HW_EACH(v, skip, NV) high[v] = larger<T>(s[i][v], high[v]);
}

// p = 2^s; hidden ones are exactly 0, and so are those of the vectors left out.
template <class T, int NV, int KT, Kind kind, int skip = 0> HW_INLINE void emit(const Vec<T> (&s)[KT][NV], T *p) {
    HW_EACH(i, 0, KT) {
        HW_EACH(v, 0, skip) store<T>(p + (i * NV + v) * W<T>, Vec<T>{});
        HW_EACH(v, skip, NV)
            store<T>(p + (i * NV + v) * W<T>, kind == Kind::plain ? exp2_or_zero<T>(s[i][v]) : exp2<T>(s[i][v]));
    }
}

template <class T> HW_INLINE void scale_rows(T *rows, int64_t count, int64_t stride, Vec<T> factor) {
    for (int64_t i = 0; i < count; ++i) store<T>(rows + i * stride, load<T>(rows + i * stride) * factor);
}

// The first tile, and the rare one with a score above the headroom: raise `top` and scale down all that was summed
// under the old one, the weights [done, j) of this block that are not mixed yet included.
template <class T, int NV, int KT, Kind kind>
__attribute__((noinline, cold)) void rebase_tile(Panel<T> &panel, const KeyBlock<T> &block, int64_t done, int64_t j) {
    constexpr int lanes = NV * W<T>;
    T *top = tops<T, NV>(panel, block.d_v), *sum = top + lanes;
    const Vec<T> zero[NV] = {};
    Vec<T> s[KT][NV], high[NV];
    panel.fresh = false;
    score_tile<T, NV, KT, kind>(s, panel, block, zero, j);
    highest<T, NV, KT>(high, s);
    for (int v = 0; v < NV; ++v) {
        const Vec<T> old = load<T>(top + v * W<T>), raised = larger<T>(high[v], old);
        const Vec<T> factor = raised == -infinity<T> ? splat<T>(1) : exp2<T>(old - raised);
        const Vec<T> so_far = load<T>(sum + v * W<T>);
        store<T>(top + v * W<T>, raised);
        store<T>(sum + v * W<T>, so_far * factor);
        if (any<T>(so_far != T(0))) scale_rows<T>(panel.o + v * W<T>, block.d_v, lanes, factor);
        scale_rows<T>(block.p + done * lanes + v * W<T>, j - done, lanes, factor);
        HW_EACH(i, 0, KT) {
            const Vec<T> less = s[i][v] - raised;
            s[i][v] = s[i][v] == -infinity<T> && raised == -infinity<T> ? s[i][v] : less;
        }
    }
    if constexpr (kind != Kind::plain) hide<T, NV, KT>(s, *block.seen, j);
    emit<T, NV, KT, kind>(s, block.p + j * lanes);
}

template <class T, int NV, int KT, Kind kind, int skip>
HW_INLINE void weigh_tile(Panel<T> &panel, const KeyBlock<T> &block, int64_t done, int64_t j) {
    constexpr int lanes = NV * W<T>;
    if (__builtin_expect(panel.fresh, 0)) return rebase_tile<T, NV, KT, kind>(panel, block, done, j);
    T *const tops_row = tops<T, NV>(panel, block.d_v);
    Vec<T> s[KT][NV], high[NV], top[NV];
    HW_EACH(v, skip, NV) top[v] = load<T>(tops_row + v * W<T>);
    score_tile<T, NV, KT, kind, skip>(s, panel, block, top, j);
    highest<T, NV, KT, skip>(high, s);
    IVec<T> above{};
    HW_EACH(v, skip, NV) above |= high[v] > T(headroom);
    if (__builtin_expect(any<T>(above), 0)) return rebase_tile<T, NV, KT, kind>(panel, block, done, j);
    emit<T, NV, KT, kind, skip>(s, block.p + j * lanes);
}

// The weights of the keys [from, to) of the block; those from `done` on are not mixed yet.
template <class T, int NV, Kind kind, int KT = tile_of<NV>, int skip = 0>
void weigh(Panel<T> &panel, const KeyBlock<T> &block, int64_t done, int64_t from, int64_t to) {
    int64_t j = from;
    ready<T, NV>(panel, block, from, to);
    for (; j + KT <= to; j += KT) {
        for (int64_t i = 0; i < block.lines; ++i) block.next_k.template fetch<1>(), block.next_v.template fetch<1>();
        weigh_tile<T, NV, KT, kind, skip>(panel, block, done, j);
    }
    if constexpr (KT > 4)
        for (; j + 4 <= to; j += 4) weigh_tile<T, NV, 4, kind, skip>(panel, block, done, j);
    for (; j < to; ++j) weigh_tile<T, NV, 1, kind, skip>(panel, block, done, j);
}

// The same near the diagonal, where one vector after the other has read all it may.
template <class T, int NV, int skip = 0>
void weigh_edge(Panel<T> &panel, const KeyBlock<T> &block, int64_t done, int64_t from, const Ends<NV> &ends) {
    const int64_t to = done + ends.of[skip];
    weigh<T, NV, Kind::hidden, edge_tile<NV - skip>, skip>(panel, block, done, from, to);
    if constexpr (skip + 1 < NV) weigh_edge<T, NV, skip + 1>(panel, block, done, to, ends);
}

} // namespace headwork::HW_CPU
#endif
