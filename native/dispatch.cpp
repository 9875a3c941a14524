// CPU dispatch: chooses the widest kernel this CPU can run, or the one HEADWORK_CPU names.
#include "system.h"

#include <stdlib.h>
#include <string.h>
#ifdef HEADWORK_LINUX
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <atomic>
#include <initializer_list>

#include "attention.h"
#include "threads.h"
#ifdef HEADWORK_X86
#include "cpuid.h"
#endif

namespace headwork {

#define HW_DECLARE(cpu)                                                                                                \
    namespace cpu {                                                                                                    \
    int forward_call(const hw_attention *, int);                                                                       \
    int backward_call(const hw_gradients *, int);                                                                      \
    int merge_call(const hw_attention *, const hw_array *, const hw_array *, int);                                     \
    int linear_call(const hw_linear *, int);                                                                           \
    void multiply_add(int64_t, int);                                                                                   \
    void read(const char *, int64_t, int);                                                                             \
    }
HW_DECLARE(baseline)
#ifdef HEADWORK_X86
HW_DECLARE(avx2)
#ifndef HEADWORK_NO_AVX512
HW_DECLARE(avx512)
#endif
#endif
// These have a forward pass of their own for bfloat16, and for everything else that of avx512.
#ifdef HEADWORK_AVX512_BF16
namespace avx512_bf16 {
int forward_call(const hw_attention *, int);
}
#endif
#ifdef HEADWORK_AMX
namespace amx {
int forward_call(const hw_attention *, int);
}
#endif

namespace {

struct Kernel {
    const char *name;
    int (*forward)(const hw_attention *, int);
    int (*backward)(const hw_gradients *, int);
    int (*merge)(const hw_attention *, const hw_array *, const hw_array *, int);
    int (*linear)(const hw_linear *, int);
    void (*multiply_add)(int64_t, int);
    void (*read)(const char *, int64_t, int);
    bool (*runs)();
};

#ifdef HEADWORK_EMULATE_AVX512 // that width compiled for AVX2, so that it is tested on machines without it
constexpr auto runs_avx512 = has_avx2, runs_avx512_bf16 = has_avx2, runs_amx = has_avx2;
#elif defined(HEADWORK_X86) && !defined(HEADWORK_NO_AVX512)
constexpr auto runs_avx512 = has_avx512, runs_avx512_bf16 = has_avx512_bf16, runs_amx = has_amx;
#endif

#ifdef HEADWORK_AMX
// Linux lets a process use the tiles once it has asked: they make every signal's frame larger by 8 kB.
bool may_use_tiles() {
#if defined(HEADWORK_EMULATE_AVX512)
    return true;
#elif defined(HEADWORK_LINUX)
    constexpr long ask = 0x1023, tile_data = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, ask, tile_data) == 0;
#else
    return false;
#endif
}

int forward_in_tiles(const hw_attention *call, int threads) {
    if (call->q.type != HW_BFLOAT16) return avx512::forward_call(call, threads);
    static const bool permitted = may_use_tiles();
    return permitted ? amx::forward_call(call, threads) : avx512_bf16::forward_call(call, threads);
}
#endif

const Kernel kernels[] = {
// the best first
#ifdef HEADWORK_X86
#ifdef HEADWORK_AMX
    {"amx", forward_in_tiles, avx512::backward_call, avx512::merge_call, avx512::linear_call, avx512::multiply_add,
     avx512::read, runs_amx},
#endif
#ifdef HEADWORK_AVX512_BF16
    {"avx512_bf16", avx512_bf16::forward_call, avx512::backward_call, avx512::merge_call, avx512::linear_call,
     avx512::multiply_add, avx512::read, runs_avx512_bf16},
#endif
#ifndef HEADWORK_NO_AVX512
    {"avx512", avx512::forward_call, avx512::backward_call, avx512::merge_call, avx512::linear_call,
     avx512::multiply_add, avx512::read, runs_avx512},
#endif
    {"avx2", avx2::forward_call, avx2::backward_call, avx2::merge_call, avx2::linear_call, avx2::multiply_add,
     avx2::read, has_avx2},
#endif
    {"baseline", baseline::forward_call, baseline::backward_call, baseline::merge_call, baseline::linear_call,
     baseline::multiply_add, baseline::read, [] { return true; }},
};

const Kernel *best() {
    for (const Kernel &kernel : kernels)
        if (kernel.runs()) return &kernel;
    return nullptr;
}

std::atomic<const Kernel *> &chosen() {
    static std::atomic<const Kernel *> kernel{best()};
    return kernel;
}

// Vectors of 64 bytes lower the clock of some CPUs for a while, which costs the caller more than so few
// multiplications gain by them. A kernel that was asked for by name takes every call.
constexpr double BRIEF = 1024;

std::atomic<const Kernel *> &chosen_for_brief() {
    static std::atomic<const Kernel *> kernel{[] {
        for (const Kernel &narrower : kernels)
            if (strncmp(narrower.name, "avx512", 6) != 0 && strcmp(narrower.name, "amx") != 0 && narrower.runs())
                return &narrower;
        return best();
    }()};
    return kernel;
}

bool is_brief(const hw_attention &call) {
    if (call.spans || call.block_table) return false;
    double products = 1;
    for (const int64_t size : {call.heads, call.tokens, call.keys, call.d_k + call.d_v})
        products *= static_cast<double>(size);
    for (const int64_t size : call.batch) products *= static_cast<double>(size);
    return products <= BRIEF;
}

const Kernel &kernel_for(const hw_attention &call) { return *(is_brief(call) ? chosen_for_brief() : chosen()).load(); }

} // namespace
} // namespace headwork

using namespace headwork;

int hw_forward(const hw_attention *call) {
    if (call->heads == 0 || call->kv_heads == 0) return 0;
    return kernel_for(*call).forward(call, call->threads > 0 ? call->threads : default_threads());
}

int hw_backward(const hw_gradients *gradients) {
    const hw_attention &call = gradients->call;
    if (call.heads == 0 || call.kv_heads == 0) return 0;
    return kernel_for(call).backward(gradients, call.threads > 0 ? call.threads : default_threads());
}

int hw_merge(const hw_attention *to, const hw_array *out, const hw_array *lse) {
    return chosen().load()->merge(to, out, lse, to->threads > 0 ? to->threads : default_threads());
}

int hw_linear_layer(const hw_linear *of) {
    return chosen().load()->linear(of, of->threads > 0 ? of->threads : default_threads());
}

int hw_linear_is_ahead() {
#ifdef HEADWORK_X86
    return chosen().load()->linear == kernels[0].linear && has_avx512() && made_by_amd();
#else
    return 0;
#endif
}

int hw_reads_into_first_level() {
#ifdef HEADWORK_X86
    static const bool does = made_by_amd() && first_level_of_amd() >= 48 << 10;
    return does;
#else
    return 0;
#endif
}

void hw_multiply_add(int64_t operations, int threads) {
    chosen().load()->multiply_add(operations, threads > 0 ? threads : default_threads());
}

void hw_read(const char *data, int64_t bytes, int threads) {
    chosen().load()->read(data, bytes, threads > 0 ? threads : default_threads());
}

const char *hw_cpu() { return chosen().load()->name; }

int hw_use_cpu(const char *name) {
    for (const Kernel &kernel : kernels) {
        if (strcmp(kernel.name, name) != 0) continue;
        if (!kernel.runs()) return 1;
        chosen().store(&kernel);
        chosen_for_brief().store(&kernel);
        return 0;
    }
    return 1;
}

void hw_watch_forks() { watch_forks(); }

int hw_threads() { return default_threads(); }

const char *hw_thread_runtime() { return thread_runtime(); }
