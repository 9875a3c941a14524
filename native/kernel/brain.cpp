// The forward pass on bfloat16 numbers, compiled for the CPUs that multiply them in pairs or in tiles. Everything else,
// and every call that is not for them, is HW_BASE's: a build of the same width in float32.
#include "brain_operands.h"

#include "mainloop.h"

namespace headwork::HW_BASE {
bool is_for_decoding(const hw_attention &call);
int forward_call(const hw_attention *call, int threads);
} // namespace headwork::HW_BASE

namespace headwork::HW_CPU {

int forward_call(const hw_attention *call, int threads) {
    if (!suits(*call) || HW_BASE::is_for_decoding(*call)) return HW_BASE::forward_call(call, threads);
    const int how = forward_in_panels<float>(*call, threads);
    return how == not_for_this ? HW_BASE::forward_call(call, threads) : how;
}

} // namespace headwork::HW_CPU
