// Decoding, compiled apart from the rest (decode.cpp): whether a call is for it, and the call itself.
#ifndef HEADWORK_KERNEL_DECODE_H
#define HEADWORK_KERNEL_DECODE_H

#include "../attention.h"

namespace headwork::HW_CPU {

bool is_for_decoding(const hw_attention &call);
int decode(const hw_attention &call, int threads);

} // namespace headwork::HW_CPU
#endif
