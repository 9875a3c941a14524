// Decoding's entry: a translation unit of its own, for it shares nothing with the panels and takes as long to compile.
#include "decode.h"

#include "decode_split_keys.h"

namespace headwork::HW_CPU {

bool is_for_decoding(const hw_attention &call) {
    return call.q.type == HW_FLOAT64 ? suits_rows<double>(call) : suits_rows<float>(call);
}

int decode(const hw_attention &call, int threads) {
    return call.q.type == HW_FLOAT64 ? forward_in_rows<double>(call, threads) : forward_in_rows<float>(call, threads);
}

} // namespace headwork::HW_CPU
