// Mask and bias: which keys of a block each lane of a panel may read, one bit for each, and what an additive mask adds.
#ifndef HEADWORK_KERNEL_MASK_H
#define HEADWORK_KERNEL_MASK_H

#include "microkernel.h"
#include "overflow_fallback.h"

namespace headwork::HW_CPU {

constexpr int64_t block_words = key_block / word;
constexpr uint32_t every_bit = ~uint32_t(0);

// Bits of the keys [from, from + 32) that lie in [first, last).
HW_INLINE uint32_t range_word(int64_t first, int64_t last, int64_t from) {
    const int64_t low = most<int64_t>(first - from, 0), high = least<int64_t>(last - from, word);
    if (high <= low) return 0;
    return (every_bit >> (word - (high - low))) << low;
}

// Eight bytes, each zero or not, as eight bits.
HW_INLINE uint32_t byte_bits(const char *bytes) {
    uint64_t eight;
    __builtin_memcpy(&eight, bytes, sizeof eight);
    eight |= eight >> 4; // any bit of a byte, gathered in its lowest
    eight |= eight >> 2;
    eight |= eight >> 1;
    return static_cast<uint32_t>(((eight & 0x0101010101010101u) * 0x0102040810204080u) >> 56);
}

HW_INLINE uint32_t mask_word(const char *row, int64_t column, int64_t keys) {
    uint32_t bits = 0;
    if (column == 1 && keys == word) {
#if defined(__AVX2__)
        __m256i bytes;
        __builtin_memcpy(&bytes, row, sizeof bytes);
        return ~static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_setzero_si256())));
#else
        for (int i = 0; i < 4; ++i) bits |= byte_bits(row + 8 * i) << (8 * i);
        return bits;
#endif
    }
    for (int64_t key = 0; key < keys; ++key) bits |= static_cast<uint32_t>(row[key * column] != 0) << key;
    return bits;
}

// bits[word][lane], and bias[key][lane] in powers of two; `any` and `all` summarise each word over the lanes.
template <class T> struct Visible {
    typename Shape<T>::Int bits[block_words][max_vectors * W<T>];
    uint32_t any[block_words], all[block_words];
};

// The words that hold the keys [from, to) of the block.
template <class T>
void see_range(Visible<T> &seen, const Lane *lanes, int count, int width, int64_t block, int64_t from, int64_t to) {
    for (int64_t w = from / word; w * word < to; ++w) {
        seen.any[w] = 0;
        seen.all[w] = every_bit;
        for (int i = 0; i < width; ++i) {
            // Lanes without a query do as the last one does, and ask for no case of their own.
            const Lane &lane = lanes[least(i, count - 1)];
            const uint32_t bits = range_word(lane.first, lane.last, block + w * word);
            seen.bits[w][i] = bits;
            seen.any[w] |= bits;
            seen.all[w] &= bits;
        }
    }
}

// Bits of the keys [from, from + 32) in the blocks that may be read; there are `keys` keys.
HW_INLINE uint32_t block_word(const hw_attention &call, const char *row, int64_t from, int64_t keys) {
    uint32_t bits = 0;
    for (int64_t key = from, next; key < least(from + word, keys); key = next) {
        const int64_t block = key / call.block_keys;
        next = (block + 1) * call.block_keys;
        if (row[block * call.blocks.column]) bits |= range_word(key, next, from);
    }
    return bits;
}

// Narrows what see_range found to the blocks that may be read.
template <class T>
void see_blocks(Visible<T> &seen, const hw_attention &call, const Lane *lanes, int count, int width, int64_t block,
                int64_t keys) {
    for (int w = 0; w < block_words; ++w) {
        if (!seen.any[w]) continue;
        uint32_t any = 0, all = every_bit, bits = 0;
        for (int i = 0; i < width; ++i) {
            if (i < count && (i == 0 || lanes[i].blocks != lanes[i - 1].blocks))
                bits = block_word(call, lanes[i].blocks, block + w * word, keys);
            const uint32_t left = static_cast<uint32_t>(seen.bits[w][i]) & bits;
            seen.bits[w][i] = left;
            any |= left;
            all &= left;
        }
        seen.any[w] = any;
        seen.all[w] = all;
    }
}

// Narrows what see_range found to the words in use of a Boolean mask.
template <class T>
void see_mask(Visible<T> &seen, const hw_array &mask, const Lane *lanes, int count, int width, int64_t block,
              int64_t keys) {
    for (int w = 0; w < block_words; ++w) {
        const int64_t from = block + w * word, in_word = least(word, keys - from);
        if (!seen.any[w]) continue;
        uint32_t any = 0, all = every_bit, bits = 0;
        for (int i = 0; i < width; ++i) {
            if (i < count && (i == 0 || lanes[i].mask != lanes[i - 1].mask))
                bits = mask_word(lanes[i].mask + from * mask.column, mask.column, in_word);
            const uint32_t left = static_cast<uint32_t>(seen.bits[w][i]) & bits;
            seen.bits[w][i] = left;
            any |= left;
            all &= left;
        }
        seen.any[w] = any;
        seen.all[w] = all;
    }
}

// bias[key][lane] = what is added to the scores · log2 e; −∞ hides a key as a Boolean mask would. `rows` is scratch.
template <class T>
void see_bias(Visible<T> &seen, T *bias, T *rows, const Group &group, const Lane *lanes, int count, int width,
              int64_t block, int64_t keys) {
    const hw_attention &call = *group.call;
    const hw_array &mask = call.mask;
    const int64_t here = least(key_block, keys - block);
    for (int i = 0; i < width; ++i) {
        T *row = rows + i * key_block;
        if (i >= count) { // as in see_range
            __builtin_memcpy(row, rows + (count - 1) * key_block, key_block * sizeof(T));
        } else if (!has_additive_mask(call)) {
            for (int64_t key = 0; key < here; ++key) row[key] = 0;
        } else if ((mask.type == HW_FLOAT64) == (sizeof(T) == 8)) {
            with_type<T>(mask.type, [&](auto stored) {
                read_row<T, typename decltype(stored)::Type>(row, lanes[i].mask + block * mask.column, mask.column,
                                                             here);
            });
        } else {
            for (int64_t key = 0; key < here; ++key)
                row[key] = read_bias<T>(mask, lanes[i].mask + (block + key) * mask.column);
        }
        if (i < count && has_distances(call)) Distances<T>(group, lanes[i]).add(row, block, here);
        for (int64_t key = here; key < key_block; ++key) row[key] = 0;
    }
    for (int w = 0; w < block_words; ++w) seen.any[w] = 0, seen.all[w] = every_bit;
    for (int64_t key = 0; key < key_block; key += W<T>) {
        for (int i = 0; i < width; i += W<T>) {
            Vec<T> part[W<T>];
            HW_EACH(j, 0, W<T>) part[j] = load<T>(rows + (i + j) * key_block + key);
            transpose<T>(part);
            const int w = static_cast<int>(key / word);
            IVec<T> hidden{};
            HW_EACH(j, 0, W<T>) {
                store<T>(bias + (key + j) * width + i, bias_in_powers<T>(part[j]));
                hidden |=
                    (part[j] == -infinity<T>)&(IVec<T>{} + (typename Shape<T>::Int)(uint32_t(1) << (key % word + j)));
            }
            IVec<T> bits;
            __builtin_memcpy(&bits, &seen.bits[w][i], sizeof bits);
            bits &= ~hidden;
            __builtin_memcpy(&seen.bits[w][i], &bits, sizeof bits);
        }
    }
    for (int w = 0; w < block_words; ++w)
        for (int i = 0; i < width; ++i) {
            seen.any[w] |= static_cast<uint32_t>(seen.bits[w][i]);
            seen.all[w] &= static_cast<uint32_t>(seen.bits[w][i]);
        }
}

} // namespace headwork::HW_CPU
#endif
