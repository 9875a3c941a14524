// Software prefetch: what will be read next, asked for while something else is worked.
#ifndef HEADWORK_KERNEL_PREFETCH_H
#define HEADWORK_KERNEL_PREFETCH_H

#include "convert.h"

namespace headwork::HW_CPU {

constexpr int first_level = 3; // the cache, as __builtin_prefetch calls it

// Asks for what will be read next while this is worked, a line or so for every vector of products: without it memory
// waits for arithmetic, asked for in bursts arithmetic waits for memory, and column by column it comes at two thirds of
// the speed. At the end it asks for the last row again, which costs nothing.
struct Ahead {
    static constexpr int64_t line = 64; // bytes
    const char *next = nullptr, *end_of_row = nullptr;
    int64_t row = 0, length = 0, rows = 0;               // bytes from row to row, and of a row in whole lines
    const char *const *list = nullptr;                   // where rows lie in no order: each of them
    bool into_first_level = hw_reads_into_first_level(); // also from afar

    Ahead() = default;
    Ahead(const char *from, int64_t step, int64_t bytes, int64_t count)
        : next(from), row(step), length((bytes + line - 1) / line * line), rows(count) {
        if (row == length) length *= rows, rows = 1; // one long row
        end_of_row = next + length;
    }

    Ahead(const char *const *each, int64_t bytes, int64_t count)
        : next(*each), length((bytes + line - 1) / line * line), rows(count), list(each) {
        end_of_row = next + length;
    }

    template <int lines> HW_INLINE void fetch() {
        HW_EACH(i, 0, lines) __builtin_prefetch(next + i * line, 0, first_level);
        advance(lines);
    }

    // Where all comes from memory once: into the second-level cache, so that more is under way, unless the CPU has room
    // for it in the first.
    template <int lines> HW_INLINE void fetch_from_afar() {
        if (into_first_level) return fetch<lines>();
        HW_EACH(i, 0, lines) __builtin_prefetch(next + i * line, 0, 2);
        advance(lines);
    }

    // What is due soon, once more: a CPU that is asked for more than it can have under way forgets the rest.
    template <int lines> HW_INLINE void fetch_again(const char *from) const {
        if (into_first_level)
            HW_EACH(i, 0, lines) __builtin_prefetch(from + i * line, 0, first_level);
    }

  private:
    HW_INLINE void advance(int lines) {
        next += lines * line;
        if (__builtin_expect(next >= end_of_row, 0)) turn();
    }
    void turn() {
        if (--rows > 0) end_of_row = list ? *++list + length : end_of_row + row;
        next = end_of_row - length;
    }
};

// Rows that the next item reads first, for the second-level cache. Short heads are over before a hardware prefetcher
// has seen where they go on.
inline void ask_for_rows(const hw_array &array, const char *from, int64_t width, int64_t count) {
    const int64_t bytes = width * bytes_of(array.type);
    if (!from || array.column != bytes_of(array.type)) return;
    for (int64_t r = 0; r < count; ++r)
        for (int64_t byte = 0; byte < bytes; byte += Ahead::line) __builtin_prefetch(from + r * array.row + byte, 0, 2);
}

} // namespace headwork::HW_CPU
#endif
