// Prologue and epilogue of a panel: queries turned into lanes, and lanes turned back into rows of the output.
#ifndef HEADWORK_KERNEL_EPILOGUE_H
#define HEADWORK_KERNEL_EPILOGUE_H

#include "softmax.h"

namespace headwork::HW_CPU {

// q[c][lane] = query · scale · log2 e; lanes without a query are zero.
template <class T, class S> void pack_queries(Panel<T> &panel, const hw_attention &call) {
    const int lanes = panel.vectors * W<T>;
    const T factor = static_cast<T>(call.scale * 1.4426950408889634074);
    for (int i = 0; i < lanes; i += W<T>) {
        for (int64_t c = 0; c < call.d_k; c += W<T>) {
            Vec<T> part[W<T>];
            const int64_t columns = least<int64_t>(W<T>, call.d_k - c), at = c * call.q.column;
            if (i + W<T> <= panel.count && columns == W<T> && call.q.column == sizeof(S))
                HW_EACH(j, 0, W<T>) part[j] = load_as<T, S>(panel.lane[i + j].q + at) * factor;
            else
                HW_EACH(j, 0, W<T>) {
                    T row[W<T>] = {};
                    if (i + j < panel.count) read_row<T, S>(row, panel.lane[i + j].q + at, call.q.column, columns);
                    part[j] = load<T>(row) * factor;
                }
            transpose<T>(part);
            T *const q = panel.q + c * lanes + i;
            HW_EACH(j, 0, W<T>)
                if (j < columns) store<T>(q + j * lanes, part[j]);
        }
    }
}

template <class T> void begin(Panel<T> &panel, const Group &group, int64_t lane0, int count) {
    const hw_attention &call = *group.call;
    panel.count = count;
    panel.fresh = panel.empty = true;
    panel.vectors = (count + W<T> - 1) / W<T>;
    panel.first = panel.all_last = group.span.keys;
    panel.last = panel.all_first = 0;
    group.lanes_from(panel.lane, lane0, count);
    for (int i = 0; i < count; ++i) {
        const Lane &lane = panel.lane[i];
        panel.all_first = most(panel.all_first, lane.first);
        panel.all_last = least(panel.all_last, lane.last);
        if (lane.first < lane.last) panel.first = least(panel.first, lane.first);
        panel.last = most(panel.last, lane.last);
        panel.ends[i / W<T>] = panel.last;
    }
    with_type<T>(call.q.type, [&](auto stored) { pack_queries<T, typename decltype(stored)::Type>(panel, call); });
    T *const tops = panel.o + call.d_v * panel.vectors * W<T>, *const sums = tops + panel.vectors * W<T>;
    for (int i = 0; i < panel.vectors * W<T>; i += W<T>) {
        store<T>(tops + i, splat<T>(-infinity<T>));
        store<T>(sums + i, Vec<T>{});
    }
}

// Writes lanes · 1/sum as rows; odd[lane] where a number came out that is not finite.
template <class T, class S>
void write_out(const Panel<T> &panel, const hw_attention &call, IVec<T> (&odd)[max_vectors]) {
    const int lanes = panel.vectors * W<T>;
    const T *sums = panel.o + (call.d_v + 1) * lanes;
    for (int i = 0; i < lanes; i += W<T>) {
        const Vec<T> sum = load<T>(sums + i);
        const Vec<T> inverse = sum == T(0) ? Vec<T>{} : T(1) / sum;
        Vec<T> zeros = sum * T(0); // until something that is not finite makes them NaN
        for (int64_t c = 0; c < call.d_v; c += W<T>) {
            const int64_t columns = least<int64_t>(W<T>, call.d_v - c), at = c * call.out.column;
            const T *const o = panel.o + c * lanes + i;
            Vec<T> part[W<T>];
            HW_EACH(j, 0, W<T>) {
                part[j] = j < columns ? load<T>(o + j * lanes) * inverse : Vec<T>{};
                zeros += part[j] * T(0);
            }
            transpose<T>(part);
            if (i + W<T> <= panel.count && columns == W<T> && call.out.column == sizeof(S))
                HW_EACH(j, 0, W<T>) store_as<T, S>(panel.lane[i + j].out + at, part[j]);
            else
                HW_EACH(j, 0, W<T>) {
                    T row[W<T>];
                    store<T>(row, part[j]);
                    if (i + j < panel.count) write_row<T, S>(panel.lane[i + j].out + at, call.out.column, row, columns);
                }
        }
        odd[i / W<T>] = zeros != zeros;
    }
}

// weights = 2^(raw − top) / sum, in place
template <class T> void write_weights(const Lane &lane, int64_t keys, T top, T sum) {
    const T inverse = sum == 0 ? 0 : 1 / sum;
    const auto weight = [&](Vec<T> raw) { return raw == -infinity<T> ? Vec<T>{} : exp2<T>(raw - top) * inverse; };
    T *const row = reinterpret_cast<T *>(lane.weights);
    int64_t key = 0;
    for (; key + W<T> <= keys; key += W<T>) store<T>(row + key, weight(load<T>(row + key)));
    for (; key < keys; ++key) row[key] = weight(splat<T>(row[key]))[0];
}

// Before the first block: keys that are skipped keep −∞ and end as weights of 0.
template <class T> void clear_weights(const Panel<T> &panel, int64_t keys) {
    for (int i = 0; i < panel.count; ++i)
        for (int64_t key = 0; key < keys; ++key) reinterpret_cast<T *>(panel.lane[i].weights)[key] = -infinity<T>;
}

template <class T> void finish(const Panel<T> &panel, const Group &group, typename Shape<T>::Wider *wide) {
    const hw_attention &call = *group.call;
    const T *tops = panel.o + call.d_v * panel.vectors * W<T>, *sums = tops + panel.vectors * W<T>;
    IVec<T> odd[max_vectors];
    with_type<T>(call.out.type, [&](auto stored) { write_out<T, typename decltype(stored)::Type>(panel, call, odd); });
    for (int i = 0; i < panel.count; ++i) {
        const Lane &lane = panel.lane[i];
        // Keys to read, and no score above −∞: an overflow. Where there is a mask, that was seen block by block.
        const bool lost = !call.mask.data && tops[i] == -infinity<T> && lane.first < lane.last;
        const CarefulRow<T> careful{group, lane};
        if (lost || odd[i / W<T>][i % W<T>] || careful.is_unsure(tops[i])) {
            careful.work(wide);
            continue;
        }
        if (lane.weights) write_weights<T>(lane, call.keys, tops[i], sums[i]);
        if (lane.lse) write_lse<T>(call.lse, lane.lse, careful.log_sum(tops[i], sums[i]));
    }
}

} // namespace headwork::HW_CPU
#endif
