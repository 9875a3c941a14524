// Work queue (persistent threads) and split-key workspace, what the threads of one call share: the counter of items,
// and the parts of results that wait to be combined.
#ifndef HEADWORK_KERNEL_WORK_QUEUE_H
#define HEADWORK_KERNEL_WORK_QUEUE_H

#include "../scratch.h"
#include "../threads.h"
#include "simd.h"

namespace headwork::HW_CPU {

// Memory handed out from one piece, in whole cache lines.
struct Carve {
    char *memory;
    int64_t used = 0;
    template <class T> T *take(int64_t count) {
        T *const here = reinterpret_cast<T *>(memory + used);
        used += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
        return here;
    }
};

// Where the keys of a result are cut into parts, each part leaves its state in a slot of the result's own.
template <class T> struct Team {
    int64_t items, parts, state_size;
    T *partial = nullptr;
    int32_t *waiting = nullptr; // for every result: the parts that are not done
    int64_t next = 0;
    int32_t failed = 0;

    bool reserve(int64_t results) {
        if (parts == 1) return true;
        Carve size{nullptr};
        size.take<T>(results * parts * state_size);
        size.take<int32_t>(results);
        Carve from{static_cast<char *>(shared_scratch(size.used))};
        if (!from.memory) return false;
        partial = from.take<T>(results * parts * state_size);
        waiting = from.take<int32_t>(results);
        for (int64_t i = 0; i < results; ++i) waiting[i] = static_cast<int32_t>(parts);
        return true;
    }

    T *state(int64_t result, int64_t part) const { return partial + (result * parts + part) * state_size; }

    // True for whoever hands in the last part: that one adds all parts up, in their order.
    bool last_of(int64_t result) { return __atomic_sub_fetch(&waiting[result], 1, __ATOMIC_ACQ_REL) == 0; }

    int64_t take_item() { return __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED); }
};

// Workers, one on each thread, take items until none is left. `work` is the number of multiplications, roughly.
template <class Worker, class Shared> int run_team(Shared &shared, int threads, double work) {
    constexpr double worth_a_thread = 2e5; // about what waking one costs
    const int64_t useful = static_cast<int64_t>(least(1 + work / worth_a_thread, 1e6));
    const int64_t count = least(least<int64_t>(threads, shared.team.items), useful);
    in_parallel(
        static_cast<int>(count),
        [](void *data) {
            Shared &mine = *static_cast<Shared *>(data);
            Worker worker{mine};
            char *const memory = static_cast<char *>(scratch(worker.carve(nullptr)));
            if (!memory) return __atomic_store_n(&mine.team.failed, 1, __ATOMIC_RELAXED);
            worker.carve(memory);
            if constexpr (requires { worker.work(0, 0); }) // to one that asks ahead for the next item
                for (int64_t item = mine.team.take_item(), next; item < mine.team.items; item = next)
                    next = mine.team.take_item(), worker.work(item, next);
            else
                for (int64_t item; (item = mine.team.take_item()) < mine.team.items;) worker.work(item);
        },
        &shared);
    return shared.team.failed;
}

} // namespace headwork::HW_CPU
#endif
