#include "scratch.h"

#include <stdlib.h>

namespace headwork {
namespace {

struct Kept {
    void *memory = nullptr;
    int64_t size = 0;

    ~Kept() { free(memory); }

    void *at_least(int64_t bytes) {
        if (bytes <= size) return memory;
        free(memory);
        size = (bytes + 4095) / 4096 * 4096;
        memory = aligned_alloc(64, static_cast<size_t>(size));
        if (!memory) size = 0;
        return memory;
    }
};

} // namespace

void *scratch(int64_t bytes) {
    static thread_local Kept kept;
    return kept.at_least(bytes);
}

void *shared_scratch(int64_t bytes) {
    static thread_local Kept kept;
    return kept.at_least(bytes);
}

} // namespace headwork
