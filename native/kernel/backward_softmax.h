// Softmax backward by recomputation: one tile of scores, some queries by a block of keys, again from the log-sum-exp:
// p = exp(s − lse), the weights, and ds = p ∘ (dout·vᵀ − delta), the gradient of the scores.
#ifndef HEADWORK_KERNEL_BACKWARD_SOFTMAX_H
#define HEADWORK_KERNEL_BACKWARD_SOFTMAX_H

#include "backward_pack.h"
#include "exp2.h"

namespace headwork::HW_CPU {

// Which keys of a tile its rows may read: all of them; each row those of its range; or by a mask, or with a softcap.
enum class Seen { all, range, general };

template <class T> struct Tile {
    const hw_attention *call;
    const Group *group;
    T *p, *ds;          // rows of tile_keys
    T *bias;            // what a mask adds; −∞ hides. Once p is there: the slope of the softcap
    T cap;              // softcap · log2 e
    int64_t row0, rows; // of the queries
    bool clean;         // nothing hidden can spoil a sum
    typename Shape<T>::Int reads_from[tile_rows], reads_to[tile_rows]; // the keys of the block that each row may read
    int64_t first_row[tile_keys]; // no row before this one reads the key, or one after it
    int64_t last_key[tile_rows];  // neither this row nor one before it reads this key, or one after it

    void carve(Carve &from, const hw_attention &of) {
        call = &of;
        p = from.take<T>(tile_rows * tile_keys);
        ds = from.take<T>(tile_rows * tile_keys);
        bias = from.take<T>(tile_rows * tile_keys);
        cap = cap_in_powers<T>(of.softcap);
    }

    // The next rows from `from` on, and no more than a tile of them, that read some of the keys; false if there are
    // none.
    bool next(const Queries<T> &queries, const Keys<T> &keys, int64_t from) {
        const auto reads = [&](int64_t r) {
            return queries.first[r] < keys.start + keys.count && queries.last[r] > keys.start;
        };
        row0 = from;
        while (row0 < queries.count && !reads(row0)) ++row0;
        if (row0 >= queries.count) return false;
        int64_t end = least(row0 + tile_rows, queries.count);
        while (!reads(end - 1)) --end;
        rows = rounded(end - row0, row_step);
        return true;
    }

    // Works out p and ds; false where every key is hidden from every row, with nothing worked out.
    bool work(const Queries<T> &queries, const Keys<T> &keys) {
        const Cover cover = covered_by(queries, keys);
        if (cover == Cover::none) return false;
        const Seen seen = how_seen(queries, keys, cover == Cover::some);
        clean = seen == Seen::all || (keys.finite && queries.finite);
        reach(keys.padded, seen == Seen::range && clean);
        if (seen == Seen::general && !see(queries, keys)) return false;
        if (seen == Seen::all) weigh<Seen::all>(queries, keys);
        else if (seen == Seen::range) weigh<Seen::range>(queries, keys);
        else weigh<Seen::general>(queries, keys);
        call->dropout > 0 ? slope<true>(queries, keys) : slope<false>(queries, keys);
        return true;
    }

    // The gradient of the scores before the softcap.
    void bend() {
        if (!(cap > 0)) return;
        for (int64_t at = 0; at < rows * tile_keys; at += W<T>) {
            const Vec<T> after = load<T>(ds + at);
            store<T>(ds + at, after == T(0) ? Vec<T>{} : after * load<T>(bias + at));
        }
    }

  private:
    // How much of the keys the rows may read by the table of blocks, where there is one.
    Cover covered_by(const Queries<T> &queries, const Keys<T> &keys) const {
        if (!call->blocks.data) return Cover::all;
        const char *const *const of = queries.blocks + row0;
        Cover cover = Cover::none;
        for (int64_t r = 0; r < rows; ++r)
            cover = covered(*call, of[r], r ? of[r - 1] : nullptr, cover, keys.start, keys.start + keys.count);
        return cover;
    }

    Seen how_seen(const Queries<T> &queries, const Keys<T> &keys, bool in_part) {
        using Int = typename Shape<T>::Int;
        const bool general = in_part || call->mask.data || cap > 0 || has_distances(*call);
        bool all = keys.count == keys.padded;
        if (all && queries.every && !general) return Seen::all;
        for (int64_t r = 0; r < rows; ++r) {
            reads_from[r] = static_cast<Int>(most<int64_t>(queries.first[row0 + r] - keys.start, 0));
            reads_to[r] = static_cast<Int>(most<int64_t>(least(queries.last[row0 + r] - keys.start, keys.count), 0));
            all = all && ((reads_from[r] == 0 && reads_to[r] == keys.count) || row0 + r >= queries.count);
        }
        return general ? Seen::general : all ? Seen::all : Seen::range;
    }

    // If `narrow`, nothing is worked out past the diagonal of causal order, and p and ds are left as they are there.
    void reach(int64_t padded, bool narrow) {
        int64_t row = 0, key = narrow ? 0 : padded;
        for (int64_t j = 0; j < padded; ++j) {
            while (narrow && row < rows && reads_to[row] <= j) ++row;
            first_row[j] = row;
        }
        for (int64_t r = 0; r < rows; ++r) last_key[r] = key = narrow ? most<int64_t>(key, reads_to[r]) : padded;
    }

    // The rows of a times the keys, turned, handed to take(row, key, sum) a vector of keys at a time.
    template <class Take>
    HW_INLINE void product(Terms<T> a, const T *turned, int64_t d, int64_t terms, int64_t padded, Take take) const {
        // Whole tiles, whatever the height of the products that read p and ds; they may start some keys before g.
        const auto rows_of = [this](int64_t g) {
            return Span{first_row[g / accumulators * accumulators] / accumulators * accumulators, rows};
        };
        const auto all = [=](int64_t, int64_t) { return Span{0, terms}; };
        for (int64_t g = 0, width; g < padded; g += width) {
            width = vectors_at_once((padded - g) / W<T>) * W<T>;
            const auto here = [=](int64_t r, int v, Vec<T> sum) HW_LAMBDA { take(r, g + v * W<T>, sum); };
            with_vectors(width / W<T>, [=](auto vectors) HW_LAMBDA {
                columns_of_product<T, decltype(vectors)::count>(rows_of(g), a, turned + g * d, width, all, here);
            });
        }
    }

    template <Seen seen> void weigh(const Queries<T> &queries, const Keys<T> &keys) {
        const int64_t d = rounded(call->d_k, W<T>);
        product({queries.q + row0 * d, d, 1}, keys.k_turned, d, call->d_k, keys.padded,
                [this, &queries](int64_t r, int64_t key, Vec<T> s) HW_LAMBDA {
                    const T lse = queries.lse[row0 + r], rest = queries.rest[row0 + r];
                    const int64_t at = r * tile_keys + key;
                    store<T>(p + at, weight<seen>(s, at, lse, rest, r, key));
                });
    }

    template <bool drops> void slope(const Queries<T> &queries, const Keys<T> &keys) {
        const Dropout<T> dropout(*call);
        const int64_t d = rounded(call->d_v, W<T>);
        product({queries.dout + row0 * d, d, 1}, keys.v_turned, d, call->d_v, keys.padded,
                [&](int64_t r, int64_t key, Vec<T> dp) HW_LAMBDA {
                    const int64_t at = r * tile_keys + key;
                    const Vec<T> here = load<T>(p + at);
                    if constexpr (drops) {
                        const IVec<T> kept = dropout.keeps(queries.key[row0 + r], keys.start + key);
                        dp = kept ? dp * dropout.gain : Vec<T>{};
                        store<T>(p + at, kept ? here * dropout.gain : Vec<T>{});
                    }
                    const Vec<T> sloped = here * (dp - queries.delta[row0 + r]);
                    store<T>(ds + at, here == T(0) ? Vec<T>{} : sloped); // what has no weight is not read
                });
    }

    // The weights of row r on the keys of a vector, from `key` of the block on.
    template <Seen seen> HW_INLINE Vec<T> weight(Vec<T> s, int64_t at, T lse, T rest, int64_t r, int64_t key) {
        if constexpr (seen == Seen::all) return exp2_or_zero<T>(s - lse - rest);
        if constexpr (seen == Seen::range) {
            IVec<T> here;
            HW_EACH(i, 0, W<T>) here[i] = i;
            here += static_cast<typename Shape<T>::Int>(key);
            return ((here >= reads_from[r]) & (here < reads_to[r])) ? exp2<T>(s - lse - rest) : Vec<T>{};
        }
        const Vec<T> raw = load<T>(bias + at), added = bias_in_powers<T>(raw);
        if (cap > 0) {
            const Vec<T> bent = tanh<T>(s / cap);
            s = bent * cap;
            store<T>(bias + at, T(1) - bent * bent);
        }
        return raw == -infinity<T> ? Vec<T>{} : exp2<T>(s + added - lse - rest);
    }

    // Fills `bias`; false where all of it is −∞.
    bool see(const Queries<T> &queries, const Keys<T> &keys) {
        IVec<T> seen{};
        for (int64_t r = 0; r < rows; ++r) {
            T *const row = bias + r * tile_keys;
            for (int64_t j = 0; j < keys.padded; j += W<T>) store<T>(row + j, splat<T>(-infinity<T>));
            if (reads_from[r] >= reads_to[r]) continue;
            if (r > 0 && alike(queries, row0 + r) && reads_from[r] == reads_from[r - 1] &&
                reads_to[r] == reads_to[r - 1]) {
                for (int64_t j = 0; j < keys.padded; j += W<T>) store<T>(row + j, load<T>(row + j - tile_keys));
                continue;
            }
            see_row(row, queries.mask[row0 + r], keys.start, reads_from[r], reads_to[r]);
            if (queries.blocks[row0 + r]) hide_blocks(row, queries.blocks[row0 + r], keys.start, keys.count);
            if (has_distances(*call))
                Distances<T>(*group, queries.lane[row0 + r])
                    .add(row + reads_from[r], keys.start + reads_from[r], reads_to[r] - reads_from[r]);
            if (queries.only[row0 + r] == queries.only[row0 + r]) keep_only(row, queries.only[row0 + r], keys.padded);
            for (int64_t j = 0; j < keys.padded; j += W<T>) seen |= load<T>(row + j) != -infinity<T>;
        }
        return any<T>(seen);
    }

    // Whether a row has the mask of the one before it, and nothing else is added.
    bool alike(const Queries<T> &queries, int64_t r) const {
        return queries.mask[r] == queries.mask[r - 1] && queries.blocks[r] == queries.blocks[r - 1] &&
               queries.only[r] != queries.only[r] && queries.only[r - 1] != queries.only[r - 1] &&
               !has_distances(*call);
    }

    void see_row(T *row, const char *mask, int64_t start, int64_t from, int64_t to) const {
        const hw_array &array = call->mask;
        if (!mask) {
            for (int64_t j = from; j < to; ++j) row[j] = 0;
        } else if (array.type == HW_BOOL && array.column == 1) {
            for (int64_t j = from; j < to; ++j) row[j] = mask[start + j] ? T(0) : -infinity<T>;
        } else if (array.type == HW_BOOL) {
            for (int64_t j = from; j < to; ++j) row[j] = mask[(start + j) * array.column] ? T(0) : -infinity<T>;
        } else if ((array.type == HW_FLOAT64) == (sizeof(T) == 8)) {
            T some[tile_keys + W<T>];
            read_padded(some, array, mask + (start + from) * array.column, to - from);
            for (int64_t j = from; j < to; ++j) row[j] = some[j - from];
        } else {
            for (int64_t j = from; j < to; ++j) row[j] = read_bias<T>(array, mask + (start + j) * array.column);
        }
    }

    void hide_blocks(T *row, const char *blocks, int64_t start, int64_t count) const {
        for (int64_t j = 0, next; j < count; j = next) {
            const int64_t block = (start + j) / call->block_keys;
            next = least(count, (block + 1) * call->block_keys - start);
            for (; !blocks[block * call->blocks.column] && j < next; ++j) row[j] = -infinity<T>;
        }
    }

    // Of a row where nothing counts but the largest number that the mask adds: the keys that have it, alike.
    static void keep_only(T *row, T only, int64_t count) {
        for (int64_t j = 0; j < count; ++j) row[j] = row[j] == only ? -largest<T> : -infinity<T>;
    }
};

} // namespace headwork::HW_CPU
#endif
