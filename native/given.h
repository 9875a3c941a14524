// What a call is given besides q, k and v; spans, whose numbers nobody has seen before, are checked here.
#ifndef HEADWORK_GIVEN_H
#define HEADWORK_GIVEN_H

#include "call.h"

namespace headwork {

// What is read besides q, k and v, and how.
struct Given {
    const View mask, spans, sinks, slopes, table, blocks;
    int64_t block_tokens, block_keys;
    Given(nb::handle mask, nb::handle spans, nb::handle sinks, nb::handle slopes, nb::handle table, nb::handle blocks,
          int64_t block_tokens, int64_t block_keys)
        : mask(mask, false), spans(spans, false), sinks(sinks, false), slopes(slopes, false), table(table, false),
          blocks(blocks, false), block_tokens(block_tokens), block_keys(block_keys) {}
};

// Whether the table has a row for every block of tokens and a column for every block of keys.
inline bool are_blocks(const hw_attention &call, const View &blocks) {
    const auto count = [](int64_t all, int64_t size) { return (all + size - 1) / size; };
    if (call.block_tokens < 1 || call.block_keys < 1 || blocks.known_type() != HW_BOOL) return false;
    bool fits = blocks.size(2) == count(call.tokens, call.block_tokens) &&
                blocks.size(1) == count(call.keys, call.block_keys) &&
                (blocks.size(3) == 1 || blocks.size(3) == call.heads);
    for (int i = 0; i < HW_BATCH_AXES; ++i)
        fits = fits && (blocks.size(4 + i) == 1 || blocks.size(4 + i) == call.batch[HW_BATCH_AXES - 1 - i]);
    return fits;
}

// Spans come from tensors whose numbers nobody has seen before: none may lead out of the arrays, or two to one row.
inline void check_spans(const hw_attention &call, int64_t count, bool packed) {
    constexpr int64_t far = int64_t(1) << 61;
    int64_t done = 0;
    for (int64_t i = 0; i < count; ++i) {
        const hw_span &span = call.spans[i];
        const auto within = [](int64_t start, int64_t size, int64_t all) {
            return start >= 0 && size >= 0 && start <= all && size <= all - start;
        };
        if (!within(span.token0, span.tokens, call.tokens) || !within(span.key0, span.keys, call.keys) ||
            span.first < 0 || span.offset > far || span.offset < -far || (packed && span.token0 < done))
            throw nb::value_error("lengths, starts or offsets lie outside the tokens and keys");
        done = span.token0 + span.tokens;
    }
}

} // namespace headwork
#endif
