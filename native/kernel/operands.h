// What the two products read, laid out: queries turned into lanes, keys and values in place or converted. A build for
// bfloat16 (HW_BRAIN) has brain_operands.h in place of this file.
#ifndef HEADWORK_KERNEL_OPERANDS_H
#define HEADWORK_KERNEL_OPERANDS_H

#include "softmax.h"
#include "work_queue.h"

namespace headwork::HW_CPU {

template <class T> constexpr int64_t padded(int64_t count) { return (count + W<T> - 1) / W<T> * W<T>; }

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

template <class T> struct Operands {
    const hw_attention &of;
    bool k_direct = direct<T>(of.k), v_direct = direct<T>(of.v);
    T *k_copy = nullptr, *v_copy = nullptr;

    static int64_t query_size(const hw_attention &of) { return of.d_k * max_lanes<T>; }

    void carve(Carve &from, KeyBlock<T> &) {
        k_copy = k_direct ? nullptr : from.take<T>(key_block * padded<T>(of.d_k));
        v_copy = v_direct ? nullptr : from.take<T>(key_block * padded<T>(of.d_v));
    }

    bool in_place() const { return k_direct && v_direct; }

    // Whether the products can be worked; the queries of a panel, and the keys and values of a block.
    bool lay_queries(Panel<T> &panel) const {
        with_type<T>(of.q.type, [&](auto stored) { pack_queries<T, typename decltype(stored)::Type>(panel, of); });
        return true;
    }
    bool lay_keys(KeyBlock<T> &block, const Group &group, int64_t keys) const {
        block.k = rows(of.k, group.k + block.start * of.k.row, k_copy, of.d_k, keys, block.k_row);
        block.v = rows(of.v, group.v + block.start * of.v.row, v_copy, of.d_v, keys, block.v_row);
        return true;
    }

  private:
    // Rows of a block of keys or values, in place or copied (and converted) to scratch.
    const T *rows(const hw_array &array, const char *from, T *copy, int64_t width, int64_t keys, int64_t &row) const {
        if (!copy) {
            row = array.row / static_cast<int64_t>(sizeof(T));
            return reinterpret_cast<const T *>(from);
        }
        row = padded<T>(width);
        with_type<T>(array.type, [&](auto stored) {
            using S = typename decltype(stored)::Type;
            for (int64_t j = 0; j < keys; ++j)
                read_row<T, S>(copy + j * row, from + j * array.row, array.column, width);
        });
        return copy;
    }
};

} // namespace headwork::HW_CPU
#endif
