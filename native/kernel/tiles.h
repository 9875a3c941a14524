// The tile registers of AMX, eight of 16 rows of 64 bytes. HW_TILES says how they come about: 1 the CPU's own, 2 arrays
// that stand in for them, so that all that uses them is tested where no CPU has them.
#ifndef HEADWORK_KERNEL_TILES_H
#define HEADWORK_KERNEL_TILES_H

#include <type_traits>
#include <utility>

#include "convert.h"

namespace headwork::HW_CPU {

constexpr int64_t tile_rows = 16;
constexpr int left_tile = 6, right_tile = 7; // those before them take sums

// Calls body for the first `count` tiles, with the number as a constant.
template <int count, class Body> HW_INLINE void each_tile(Body body) {
    [&]<int... v>(std::integer_sequence<int, v...>) {
        (body(std::integral_constant<int, v>{}), ...);
    }(std::make_integer_sequence<int, count>{});
}

#if HW_TILES == 1
struct alignas(64) TileShapes {
    uint8_t palette = 1, start = 0, none[14] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// A thread has its tiles for as long as one of these lives.
struct Tiles {
    Tiles() {
        const TileShapes shapes;
        asm volatile("ldtilecfg %0" : : "m"(shapes));
    }
    ~Tiles() { asm volatile("tilerelease"); }
    Tiles(const Tiles &) = delete;
    Tiles &operator=(const Tiles &) = delete;
};

template <int tile> HW_INLINE void clear_tile() { asm volatile("tilezero %%tmm%c0" : : "i"(tile)); }

template <int tile> HW_INLINE void load_tile(const void *from, int64_t row) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(row), "i"(tile) : "memory");
}

template <int tile> HW_INLINE void store_tile(void *to, int64_t row) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(row), "i"(tile) : "memory");
}

// sum[m][n] += Σ_k a[m][k] · b[k][n], where every k is a pair.
template <int sum, int a, int b> HW_INLINE void multiply_tiles() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(a), "i"(b));
}
#else
struct Tiles {
    uint32_t tile[8][tile_rows][16] = {};
    inline static thread_local Tiles *current = nullptr;

    Tiles() { current = this; }
    ~Tiles() { current = nullptr; }
    Tiles(const Tiles &) = delete;
    Tiles &operator=(const Tiles &) = delete;
};

template <int tile> void clear_tile() {
    __builtin_memset(Tiles::current->tile[tile], 0, sizeof Tiles::current->tile[tile]);
}

template <int tile> void load_tile(const void *from, int64_t row) {
    for (int64_t i = 0; i < tile_rows; ++i)
        __builtin_memcpy(Tiles::current->tile[tile][i], static_cast<const char *>(from) + i * row, 64);
}

template <int tile> void store_tile(void *to, int64_t row) {
    for (int64_t i = 0; i < tile_rows; ++i)
        __builtin_memcpy(static_cast<char *>(to) + i * row, Tiles::current->tile[tile][i], 64);
}

// As the manual has it: the even and the odd products are summed apart, then together, then added.
template <int sum, int a, int b> void multiply_tiles() {
    typedef float Row __attribute__((vector_size(64)));
    typedef uint32_t RowBits __attribute__((vector_size(64)));
    auto &tile = Tiles::current->tile;
    for (int64_t m = 0; m < tile_rows; ++m) {
        Row even = {}, odd = {}, so_far;
        for (int64_t k = 0; k < tile_rows; ++k) {
            RowBits right;
            __builtin_memcpy(&right, tile[b][k], sizeof right);
            const RowBits left = RowBits{} + tile[a][m][k];
            even += (Row)(left << 16) * (Row)(right << 16);
            odd += (Row)(left & 0xffff0000u) * (Row)(right & 0xffff0000u);
        }
        __builtin_memcpy(&so_far, tile[sum][m], sizeof so_far);
        so_far += even + odd;
        __builtin_memcpy(tile[sum][m], &so_far, sizeof so_far);
    }
}
#endif

} // namespace headwork::HW_CPU
#endif
