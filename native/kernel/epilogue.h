// Prologue and epilogue of a panel: its lanes and what they may read, and lanes turned back into rows of the output.
#ifndef HEADWORK_KERNEL_EPILOGUE_H
#define HEADWORK_KERNEL_EPILOGUE_H

#include "softmax.h"

namespace headwork::HW_CPU {

template <class T>
void begin(Panel<T> &panel, const Group &group, int64_t lane0, int count, const Dropout<T> &dropout) {
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
    if (dropout.on)
        for (int i = 0; i < panel.vectors * W<T>; ++i) {
            const Lane &lane = panel.lane[least(i, count - 1)];
            const RowKey key = dropout.key(group.item, lane.head, lane.token);
            panel.key_low[i] = key.low, panel.key_high[i] = key.high;
        }
    T *const tops = panel.o + call.d_v * panel.vectors * W<T>, *const sums = tops + panel.vectors * W<T>;
    for (int i = 0; i < panel.vectors * W<T>; i += W<T>) {
        store<T>(tops + i, splat<T>(-infinity<T>));
        store<T>(sums + i, Vec<T>{});
    }
}

// A row of sums with its sink, both in powers of two: `top` and `sum` are those of both; returns what the output so far
// is to be multiplied by. A sink that is not finite leaves a sum that is not, and the row is worked again.
template <class T> T join_sink(T sink, T &top, T &sum) {
    if (sink == -infinity<T>) return 1;
    const T raised = most(top, sink), factor = top == -infinity<T> ? T(0) : exp2<T>(splat<T>(top - raised))[0];
    sum = sum * factor + exp2<T>(splat<T>(sink - raised))[0];
    top = raised;
    return factor;
}

template <class T> T sink_in_powers(const Group &group, const Lane &lane) {
    return static_cast<T>(CarefulRow<T>{group, lane}.sink() * 1.4426950408889634074);
}

template <class T> void join_sinks(const Panel<T> &panel, const Group &group) {
    const int64_t lanes = panel.vectors * W<T>, d_v = group.call->d_v;
    T *const tops = panel.o + d_v * lanes, *const sums = tops + lanes;
    for (int i = 0; i < panel.count; ++i) {
        const Lane &lane = panel.lane[i];
        if (!may_hide(*group.call) && tops[i] == -infinity<T> && lane.first < lane.last) // an overflow, as in finish
            sums[i] = static_cast<T>(__builtin_nan(""));
        const T factor = join_sink<T>(sink_in_powers<T>(group, lane), tops[i], sums[i]);
        for (int64_t c = 0; c < d_v && factor != 1; ++c) panel.o[c * lanes + i] *= factor;
    }
}

// Writes lanes · gain/sum as rows; odd[lane] where a number came out that is not finite.
template <class T, class S>
void write_out(const Panel<T> &panel, const hw_attention &call, T gain, IVec<T> (&odd)[max_vectors]) {
    const int lanes = panel.vectors * W<T>;
    const T *sums = panel.o + (call.d_v + 1) * lanes;
    for (int i = 0; i < lanes; i += W<T>) {
        const Vec<T> sum = load<T>(sums + i);
        const Vec<T> inverse = sum == T(0) ? Vec<T>{} : gain / sum;
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

// weights = 2^(raw − top) / sum, in place; then dropped as they were for the values.
template <class T> void write_weights(const Group &group, const Lane &lane, T top, T sum, const Dropout<T> &dropout) {
    const int64_t keys = group.call->keys;
    const T inverse = sum == 0 ? 0 : dropout.gain / sum;
    const auto weight = [&](Vec<T> raw) { return raw == -infinity<T> ? Vec<T>{} : exp2<T>(raw - top) * inverse; };
    T *const row = reinterpret_cast<T *>(lane.weights);
    int64_t key = 0;
    for (; key + W<T> <= keys; key += W<T>) store<T>(row + key, weight(load<T>(row + key)));
    for (; key < keys; ++key) row[key] = weight(splat<T>(row[key]))[0];
    if (!dropout.on) return;
    const RowKey of_row = dropout.key(group.item, lane.head, lane.token);
    for (key = 0; key < keys; key += W<T>) {
        const IVec<T> kept = dropout.keeps(of_row, key);
        for (int i = 0; i < W<T> && key + i < keys; ++i)
            if (!kept[i]) row[key + i] = 0;
    }
}

// Before the first block: keys that are skipped keep −∞ and end as weights of 0.
template <class T> void clear_weights(const Panel<T> &panel, int64_t keys) {
    for (int i = 0; i < panel.count; ++i)
        for (int64_t key = 0; key < keys; ++key) reinterpret_cast<T *>(panel.lane[i].weights)[key] = -infinity<T>;
}

template <class T>
void finish(const Panel<T> &panel, const Group &group, typename Shape<T>::Wider *wide, const Dropout<T> &dropout) {
    const hw_attention &call = *group.call;
    const T *tops = panel.o + call.d_v * panel.vectors * W<T>, *sums = tops + panel.vectors * W<T>;
    IVec<T> odd[max_vectors];
    if (call.sinks.data) join_sinks(panel, group);
    with_type<T>(call.out.type,
                 [&](auto stored) { write_out<T, typename decltype(stored)::Type>(panel, call, dropout.gain, odd); });
    for (int i = 0; i < panel.count; ++i) {
        const Lane &lane = panel.lane[i];
        // Keys to read, and no score above −∞: an overflow. Where there is a mask, that was seen block by block.
        const bool lost = !may_hide(call) && tops[i] == -infinity<T> && lane.first < lane.last;
        const CarefulRow<T> careful{group, lane};
        if (lost || odd[i / W<T>][i % W<T>] || careful.is_unsure(tops[i])) {
            careful.work(wide);
            continue;
        }
        if (lane.weights) write_weights<T>(group, lane, tops[i], sums[i], dropout);
        if (lane.lse) write_lse<T>(call.lse, lane.lse, careful.log_sum(tops[i], sums[i]));
    }
}

} // namespace headwork::HW_CPU
#endif
