// Compiled once for every instruction set, with HW_CPU its name and HW_BYTES its vector width.
#include "forward.h"

namespace headwork::HW_CPU {

int forward_call(const hw_attention *call, int threads) {
    return call->q.type == HW_FLOAT64 ? forward<double>(*call, threads) : forward<float>(*call, threads);
}

} // namespace headwork::HW_CPU
