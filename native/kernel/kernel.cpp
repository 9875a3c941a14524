// The kernels' entry points: compiled once for every instruction set, with HW_CPU its name and HW_BYTES its vector
// width.
#include "backward_distance.h"
#include "backward_mainloop.h"
#include "backward_mask.h"
#include "decode.h"
#include "mainloop.h"
#include "merge.h"
#include "roofline.h"

namespace headwork::HW_CPU {

int forward_call(const hw_attention *call, int threads) {
    if (is_for_decoding(*call)) return decode(*call, threads);
    return call->q.type == HW_FLOAT64 ? forward_in_panels<double>(*call, threads)
                                      : forward_in_panels<float>(*call, threads);
}

template <class T> int backward(const hw_gradients &of, int threads) {
    if ((of.dq.data || of.dk.data || of.dv.data) && backward_in_keys<T>(of, threads)) return 1;
    if (of.dmask.data && backward_to_mask<T>(of, threads)) return 1;
    if (of.dslopes.data && backward_to_distances<T>(of, of.dslopes, threads)) return 1;
    return of.dtable.data ? backward_to_distances<T>(of, of.dtable, threads) : 0;
}

int backward_call(const hw_gradients *of, int threads) {
    return of->call.q.type == HW_FLOAT64 ? backward<double>(*of, threads) : backward<float>(*of, threads);
}

int merge_call(const hw_attention *to, const hw_array *out, const hw_array *lse, int threads) {
    return to->out.type == HW_FLOAT64 ? merge<double>(*to, *out, *lse, threads)
                                      : merge<float>(*to, *out, *lse, threads);
}

void multiply_add(int64_t operations, int threads) {
    Load load{nullptr, operations / (2 * threads * in_flight * W<float>)+1, threads, 0, 0};
    in_parallel(threads, multiply_add_rounds, &load);
}

void read(const char *data, int64_t bytes, int threads) {
    Load load{data, bytes / threads / 1024 * 1024, threads, 0, 0};
    in_parallel(threads, read_all, &load);
}

} // namespace headwork::HW_CPU
