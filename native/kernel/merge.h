// Merging of partial results: rows over some keys joined with the same rows over others, in place.
#ifndef HEADWORK_KERNEL_MERGE_H
#define HEADWORK_KERNEL_MERGE_H

#include "exp2.h"
#include "lanes.h"
#include "work_queue.h"

namespace headwork::HW_CPU {

// What each of a vector of rows, and as much again, counts in both together; `more` is what the greater log-sum-exp
// lacks. `apart` is how far the first log-sum-exp is above the second.
template <class T> struct Shares {
    T before[W<T>], added[W<T>], more[W<T>];

    explicit Shares(const T *apart) {
        constexpr T log2e = static_cast<T>(1.4426950408889634074L);
        const Vec<T> above = load<T>(apart);
        const Vec<T> lesser = exp2<T>((above < 0 ? above : -above) * log2e);
        const Vec<T> large = T(1) / (lesser + T(1)), small = lesser * large;
        store<T>(before, above < 0 ? small : large);
        store<T>(added, above < 0 ? large : small);
        store<T>(more, log1p<T>(lesser));
    }
};

// A row of a result, and where its log-sum-exp is.
struct Place {
    char *out, *lse;
};

// Merges rows of `added` into those of `to`, a vector of rows at a time; `place` and `place_added` say where each is.
template <class T> struct Merging {
    using Wide = typename Shape<T>::Wider;
    const hw_array &out, &lse, &added, &added_lse;
    int64_t d_v;

    template <class To, class From> void rows(int64_t count, To place, From place_added) const {
        for (int64_t i = 0; i < count; i += W<T>)
            some(i, static_cast<int>(least<int64_t>(W<T>, count - i)), place, place_added);
    }

    template <class To, class From> void some(int64_t first, int count, To place, From place_added) const {
        Wide before[W<T>], after[W<T>];
        T apart[W<T>] = {};
        for (int i = 0; i < count; ++i) {
            before[i] = read_lse<T>(lse, place(first + i).lse);
            after[i] = read_lse<T>(added_lse, place_added(first + i).lse);
            apart[i] = static_cast<T>(before[i] - after[i]);
        }
        const Shares<T> share(apart);
        for (int i = 0; i < count; ++i) {
            const Place to = place(first + i);
            const char *const from = place_added(first + i).out;
            const bool nothing = after[i] == -infinity<Wide>;
            if (before[i] == -infinity<Wide>) { // whatever stands there was never worked out
                copy(to.out, nothing ? nullptr : from);
                write_lse<T>(lse, to.lse, after[i]);
            } else if (!nothing) {
                blend(to.out, from, share.before[i], share.added[i]);
                write_lse<T>(lse, to.lse, most(before[i], after[i]) + share.more[i]);
            }
        }
    }

    // A row goes through here some columns at a time, read, joined and written by itself: loops for every pair of types
    // took the compiler as long as a third of the forward pass.
    static constexpr int64_t columns = 128;

    void blend(char *to, const char *from, T old, T fresh) const {
        alignas(64) T sum[columns], more[columns];
        for (int64_t c = 0; c < d_v; c += columns) {
            const int64_t count = least(columns, d_v - c);
            read_padded(sum, out, to + c * out.column, count);
            read_padded(more, added, from + c * added.column, count);
            for (int64_t i = 0; i < count; i += W<T>)
                store<T>(sum + i, load<T>(sum + i) * old + load<T>(more + i) * fresh);
            write_padded(out, to + c * out.column, sum, count);
        }
    }

    // A row as it is, or zeros.
    void copy(char *to, const char *from) const {
        alignas(64) T some[columns] = {};
        for (int64_t c = 0; c < d_v; c += columns) {
            const int64_t count = least(columns, d_v - c);
            if (from) read_padded(some, added, from + c * added.column, count);
            write_padded(out, to + c * out.column, some, count);
        }
    }
};

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
        const Merging<T> into{of.out, of.lse, call.out, call.lse, of.d_v};
        into.rows(
            count, [&](int64_t i) { return Place{out[i], lse[i]}; },
            [&](int64_t i) {
                return Place{reinterpret_cast<char *>(rows + i * width), reinterpret_cast<char *>(sums + i)};
            });
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

    int64_t carve(char *) { return 64; } // nothing to keep

    void work(int64_t index) {
        const hw_attention &to = call.to;
        const int64_t first = index % call.chunks * merged_at_once, head = index / call.chunks % to.heads;
        int64_t at[HW_BATCH_AXES];
        batch_place(to, index / call.chunks / to.heads, at);
        const auto rows_of = [&](const hw_array &out, const hw_array &lse) {
            const int64_t of_out = batch_offset(out, at), of_lse = batch_offset(lse, at);
            return [=, &out, &lse](int64_t row) {
                return Place{Group::place(out, of_out, head, first + row),
                             Group::place(lse, of_lse, head, first + row)};
            };
        };
        const Merging<T> into{to.out, to.lse, call.out, call.lse, to.d_v};
        into.rows(least(merged_at_once, to.tokens - first), rows_of(to.out, to.lse), rows_of(call.out, call.lse));
    }
};

template <class T> int merge(const hw_attention &to, const hw_array &out, const hw_array &lse, int threads) {
    MergeCall<T> call{to, out, lse};
    return run_team<MergeWorker<T>>(call, threads,
                                    static_cast<double>(batch_items(to) * to.heads * to.tokens * to.d_v));
}

} // namespace headwork::HW_CPU
#endif
