// The two products of the forward pass as the panels ask for them: here on numbers of the accumulation type. A build
// for bfloat16 (HW_BRAIN) has brain_products.h in place of this file.
#ifndef HEADWORK_KERNEL_PRODUCTS_H
#define HEADWORK_KERNEL_PRODUCTS_H

#include "microkernel.h"

namespace headwork::HW_CPU {

template <class T> struct Products {
    using Query = T;
    using Key = T;
    using Value = T;
    static constexpr bool any_value = true;  // values may be NaN and infinities
    static constexpr int64_t spare_rows = 0; // of weights, beyond the block's
    struct Own {};                           // what a block holds for them besides
};

// Called before the scores of the keys [from, to) are asked for, tile by tile.
template <class T, int NV, class Panel, class Block>
HW_INLINE void ready(const Panel &, const Block &, int64_t, int64_t) {}

// s = the scores of the keys from j on, but for the first `skip` vectors.
template <class T, int NV, int KT, int skip, class Panel, class Block>
HW_INLINE void score(Vec<T> (&s)[KT][NV], const Panel &panel, const Block &block, int64_t j) {
    HW_EACH(i, 0, KT)
        HW_EACH(v, skip, NV) s[i][v] = Vec<T>{};
    dot_tile<T, NV, KT, skip>(s, panel.q, block.k + j * block.k_row, block.k_row, block.d_k);
}

// The weights of the keys from `from` on, up to `ends`, times their values, into the panel's output.
template <class T, int NV, class Panel, class Block>
void mix_block(Panel &panel, const Block &block, int64_t from, const Ends<NV> &ends) {
    mix<T, NV>(panel.o, block.p + from * NV * W<T>, block.v + from * block.v_row, block.v_row, ends, block.d_v,
               panel.empty);
    panel.empty = false;
}

} // namespace headwork::HW_CPU
#endif
