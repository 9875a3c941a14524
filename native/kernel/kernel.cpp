// Compiled once for every instruction set, with HW_CPU its name and HW_BYTES its vector width.
#include "decode.h"
#include "panels.h"

namespace headwork::HW_CPU {

template <class T> int forward(const hw_attention &call, int threads) {
    return suits_rows<T>(call) ? forward_in_rows<T>(call, threads) : forward_in_panels<T>(call, threads);
}

int forward_call(const hw_attention *call, int threads) {
    return call->q.type == HW_FLOAT64 ? forward<double>(*call, threads) : forward<float>(*call, threads);
}

} // namespace headwork::HW_CPU
