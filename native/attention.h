// The C interface (ABI) of the attention kernel: softmax(q·kᵀ·scale)·v, fused, for arrays described by strides.
// No Python here; bindings.cpp turns NumPy arrays into these structures.
#ifndef HEADWORK_ATTENTION_H
#define HEADWORK_ATTENTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HW_BATCH_AXES = 8 };

// Only keys and values may be of the 8-bit types.
typedef enum {
    HW_FLOAT32,
    HW_FLOAT64,
    HW_FLOAT16,
    HW_BFLOAT16,
    HW_BOOL,
    HW_INT8,
    HW_FLOAT8_E4M3,
    HW_FLOAT8_E5M2
} hw_type;

// An array with axes (batch…, head, row, column). Strides are in bytes and may be zero or negative;
// data need not be aligned. An absent array has no data.
typedef struct {
    char *data;
    hw_type type;
    int64_t batch[HW_BATCH_AXES];
    int64_t head, row, column;
} hw_array;

// The tokens and keys of one batch item: a padded batch shortens `keys`, a packed one moves the starts too.
// Token i sits at key position i + offset when causal order, a window or a distance is counted; no key before `first`
// is read.
typedef struct {
    int64_t token0, tokens, key0, keys, offset, first;
} hw_span;

typedef struct {
    int64_t batch[HW_BATCH_AXES]; // sizes of the batch axes, 1 where there is none
    int64_t heads, kv_heads, tokens, keys, d_k, d_v;
    hw_array q, k, v;
    // Each optional, float32 (batch…, head, key): what every number of a key or a value is multiplied by.
    hw_array k_scales, v_scales;
    // Optional, a paged cache: key j of batch item b is row j % block_size of block
    // block_table[b · item_blocks + j / block_size], and blocks stand on the last batch axis of k, v and their scales.
    const int64_t *block_table;
    int64_t item_blocks, block_size;
    hw_array mask; // optional: HW_BOOL, true where a key may be read; otherwise added to the scores
    // Optional: HW_BOOL (batch…, head, block of tokens, block of keys), false where nothing of a block may be read.
    hw_array blocks;
    int64_t block_tokens, block_keys; // the sizes of such a block
    hw_array out;                     // (batch…, head, token, d_v)
    hw_array lse;          // optional: natural log-sum-exp, in the accumulation type or in HW_FLOAT64; column unused
    hw_array weights;      // optional: (batch…, head, token, key), in the accumulation type
    const hw_span *spans;  // optional: one for every batch item, the last batch axis fastest
    int64_t offset;        // for every batch item, where there are no spans
    int64_t left, right;   // how many keys before and after its own position a token reads, −1 = all
    double scale, softcap; // softcap 0 = none
    // Each optional, in the accumulation type. A sink is a score without a value, one more in every row of its head. A
    // slope takes slope · |key − position| off a score; a row of the table adds what stands at key − position, from
    // −reach to reach, and at its ends for all that lies farther.
    hw_array sinks, slopes; // (batch…, head); row and column unused
    hw_array table;         // (batch…, head, 2 · reach + 1); row unused
    int64_t reach;
    double
        dropout; // the share of weights that do not reach the values, drawn for (seed, batch item, head, row, column)
    uint64_t seed;
    int threads; // how many at most; 0 = the default
    int merges; // `out` and `lse` hold a result over other keys, and are to hold that over all of them; no weights then
} hw_attention;

// Works out `out` (and `lse`, `weights`). float32 accumulation unless q is float64. The result does not depend on
// the number of threads. Returns 0, or 1 when memory ran out: then nothing in `out` is to be relied on.
int hw_forward(const hw_attention *call);

// The gradients of a call, from that of its result. They are written where an array is given for them.
typedef struct {
    hw_attention call;   // as hw_forward had it; `out` and `lse`, its results, are read
    hw_array dout;       // the gradient of `out`
    hw_array dlse;       // optional: that of `lse`
    hw_array dq, dk, dv; // each optional; the group's query heads are summed in dk and dv
    hw_array delta;      // optional: Σ dout·out of every row, in the accumulation type; `out` is not read then
    int adds;            // to what stands in dq, dk and dv; no two spans of a call may share keys
    // Each optional, in the accumulation type: of an additive mask, of the slopes and of the table; summed over axes
    // without a stride.
    hw_array dmask, dslopes, dtable;
} hw_gradients;

// Recomputes the weights from `lse`, a tile at a time. The result does not depend on the number of threads. What lies
// outside the spans is not written. Returns as hw_forward does.
int hw_backward(const hw_gradients *gradients);

// Merges `out` and `lse`, a result over other keys, into those of `to`, of which nothing else but the sizes is read.
int hw_merge(const hw_attention *to, const hw_array *out, const hw_array *lse);

// A linear layer: out = x·weights + bias, x (rows, inputs), weights (inputs, outputs), out (rows, outputs), all of
// float32; rows are so many numbers apart. The result does not depend on the number of threads.
typedef struct {
    const float *x, *weights, *bias; // the bias is optional
    float *out;
    int64_t rows, inputs, outputs, x_row, weights_row, out_row;
    int turned;  // the weights lie as (outputs, inputs)
    int threads; // how many at most; 0 = the default
} hw_linear;

// What it returns but 0; HW_NOT_SUITED, with nothing done, where the rows are too few to pack the weights for, or
// inputs or outputs fill no whole vectors.
enum { HW_NO_MEMORY = 1, HW_NOT_SUITED = 2 };
int hw_linear_layer(const hw_linear *of);

// Whether that is ahead of the library that others bring: Intel's gives an AMD with vectors of 64 bytes half of them.
int hw_linear_is_ahead(void);

// Whether what is read ahead fits beside what is worked in the first-level cache of this CPU, and had better go there:
// a Zen 5 drops most of what is asked for in the second level.
int hw_reads_into_first_level(void);

// What to time to know the machine's limits: float32 operations that wait for nothing, and reading that does no more.
void hw_multiply_add(int64_t operations, int threads);
void hw_read(const char *data, int64_t bytes, int threads);

// The instruction set in use: "baseline", "avx2", "avx512", "avx512_bf16" or "amx".
const char *hw_cpu(void);

// Force one; returns 0, or 1 when this machine or this build has no such set.
int hw_use_cpu(const char *name);

// Call once, early: a child of fork has the data of a thread pool but none of its threads, and must know it is one.
void hw_watch_forks(void);

// How many threads a call uses unless told, and how they are run: "openmp" or "threads".
int hw_threads(void);
const char *hw_thread_runtime(void);

#ifdef __cplusplus
}
#endif
#endif
