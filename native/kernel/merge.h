// Merging of partial results: rows over some keys joined with the same rows over others, in place.
#ifndef HEADWORK_KERNEL_MERGE_H
#define HEADWORK_KERNEL_MERGE_H

#include <math.h>

#include "lanes.h"
#include "work_queue.h"

namespace headwork::HW_CPU {

// What a row and one more count in both together, and the log-sum-exp of both.
template <class T> struct Shares {
    using Wide = typename Shape<T>::Wider;
    T before, added;
    Wide lse;

    Shares(Wide lse_before, Wide lse_added) {
        const T apart = static_cast<T>(lse_before - lse_added), distance = apart < 0 ? -apart : apart;
        T lesser, more;
        if constexpr (sizeof(T) == 4) lesser = expf(-distance), more = log1pf(lesser);
        else lesser = exp(-distance), more = log1p(lesser);
        const T large = 1 / (1 + lesser), small = lesser * large;
        before = apart < 0 ? small : large;
        added = apart < 0 ? large : small;
        lse = (apart < 0 ? lse_added : lse_before) + more;
    }
};

// Merges a row of whole vectors and its log-sum-exp into those of `out` and `lse` at `to` and `sum`.
template <class T>
void merge_row(const hw_array &out, char *to, const hw_array &lse, char *sum, const T *row,
               typename Shape<T>::Wider added, int64_t d_v) {
    using Wide = typename Shape<T>::Wider;
    const Wide before = read_lse<T>(lse, sum);
    if (added == -infinity<Wide> && before != -infinity<Wide>) return; // it has read nothing
    with_type<T>(out.type, [&](auto stored) {
        using S = typename decltype(stored)::Type;
        if (before == -infinity<Wide>) { // whatever stands there was never worked out
            for (int64_t c = 0; c < d_v; c += W<T>) {
                T part[W<T>];
                store<T>(part, added == -infinity<Wide> ? Vec<T>{} : load<T>(row + c));
                write_row<T, S>(to + c * out.column, out.column, part, least<int64_t>(W<T>, d_v - c));
            }
            return write_lse<T>(lse, sum, added);
        }
        const Shares<T> share(before, added);
        for (int64_t c = 0; c < d_v; c += W<T>) {
            T both[W<T>];
            const int64_t columns = least<int64_t>(W<T>, d_v - c);
            read_row<T, S>(both, to + c * out.column, out.column, columns);
            store<T>(both, load<T>(both) * share.before + load<T>(row + c) * share.added);
            write_row<T, S>(to + c * out.column, out.column, both, columns);
        }
        write_lse<T>(lse, sum, share.lse);
    });
}

// Lanes whose results are merged are worked aside first: a row that has to be worked twice must not have been merged
// once.
template <class T> struct Aside {
    hw_attention call{};
    T *rows = nullptr;
    double *sums = nullptr;
    char **out = nullptr, **lse = nullptr;
    int64_t width = 0;

    void carve(Carve &from, const hw_attention &of, int64_t lanes) {
        if (!of.merges) return;
        width = (of.d_v + W<T> - 1) / W<T> * W<T>;
        rows = from.take<T>(lanes * width);
        sums = from.take<double>(lanes);
        out = from.take<char *>(lanes);
        lse = from.take<char *>(lanes);
        call = of;
        call.out.type = sizeof(T) == 4 ? HW_FLOAT32 : HW_FLOAT64;
        call.out.column = sizeof(T);
        call.lse.type = HW_FLOAT64;
    }

    // `finish` writes the results of the lanes.
    template <class Finish> void merge(Lane *lanes, int64_t count, const Group &group, Finish finish) {
        const hw_attention &of = *group.call;
        Group here = group;
        here.call = &call;
        for (int64_t i = 0; i < count; ++i) {
            out[i] = lanes[i].out, lse[i] = lanes[i].lse;
            lanes[i].out = reinterpret_cast<char *>(rows + i * width);
            lanes[i].lse = reinterpret_cast<char *>(sums + i);
        }
        finish(here);
        for (int64_t i = 0; i < count; ++i)
            merge_row<T>(of.out, out[i], of.lse, lse[i], rows + i * width, sums[i], of.d_v);
    }
};

constexpr int64_t merged_at_once = 64; // rows of a head

template <class T> struct MergeCall {
    const hw_attention &to;
    const hw_array &out, &lse;
    int64_t chunks = (to.tokens + merged_at_once - 1) / merged_at_once;
    Team<T> team{batch_items(to) * to.heads * chunks, 1, 0};
};

template <class T> struct MergeWorker {
    MergeCall<T> &call;
    T *row = nullptr;

    int64_t carve(char *memory) {
        Carve from{memory};
        row = from.take<T>(call.to.d_v + W<T>);
        return from.used;
    }

    void work(int64_t index) {
        const hw_attention &to = call.to;
        const int64_t chunk = index % call.chunks, head = index / call.chunks % to.heads;
        int64_t at[HW_BATCH_AXES];
        batch_place(to, index / call.chunks / to.heads, at);
        const auto place = [&](const hw_array &array, int64_t token) {
            return Group::place(array, batch_offset(array, at), head, token);
        };
        const int64_t first = chunk * merged_at_once, last = least(first + merged_at_once, to.tokens);
        for (int64_t token = first; token < last; ++token) {
            const char *const from = place(call.out, token);
            with_type<T>(call.out.type, [&](auto stored) {
                read_row<T, typename decltype(stored)::Type>(row, from, call.out.column, to.d_v);
            });
            const auto added = read_lse<T>(call.lse, place(call.lse, token));
            merge_row<T>(to.out, place(to.out, token), to.lse, place(to.lse, token), row, added, to.d_v);
        }
    }
};

template <class T> int merge(const hw_attention &to, const hw_array &out, const hw_array &lse, int threads) {
    MergeCall<T> call{to, out, lse};
    return run_team<MergeWorker<T>>(call, threads,
                                    static_cast<double>(batch_items(to) * to.heads * to.tokens * to.d_v));
}

} // namespace headwork::HW_CPU
#endif
