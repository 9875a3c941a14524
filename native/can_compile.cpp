// What the kernel asks of a compiler, in a few lines: tried before anything is built, so that a refusal has a reason.
#define HW_CPU baseline
#define HW_BYTES 16
#include "kernel/simd.h"
#include "view.h"

#include <thread>

int main() {
    using namespace headwork::HW_CPU;
    Vec<float> row[W<float>] = {};
    transpose<float>(row);
    return static_cast<int>(total<float>(larger<float>(row[0], splat<float>(1)))) + headwork::type_of("f") +
           static_cast<int>(std::thread::hardware_concurrency());
}
