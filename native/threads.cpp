#include "threads.h"

#include "system.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HEADWORK_LINUX
#include <sched.h>
#endif

#include <atomic>
#include <thread>
#include <vector>

// libgomp is looked up by name at run time instead of being linked: where torch has brought its own copy, the loader
// hands back that one, so both share a single pool, and a machine without OpenMP can still load this library.

namespace headwork {
namespace {

using Parallel = void (*)(void (*)(void *), void *, unsigned, unsigned);

struct OpenMP {
    Parallel parallel = nullptr;
    int (*max_threads)() = nullptr;
};

// A child of fork inherits the pool's data but not its threads: OpenMP would wait for them for ever.
std::atomic<bool> forked{false};

// Whether this process is the child of a fork that has not started a program of its own.
[[maybe_unused]] bool is_fork_without_exec() {
#ifdef HEADWORK_LINUX
    FILE *const file = fopen("/proc/self/stat", "r");
    if (!file) return false;
    char line[1024] = {};
    const size_t size = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    unsigned flags = 0;
    // pid (name) state parent group session terminal group flags …: the name may hold anything, parentheses too.
    const char *const after = size ? strrchr(line, ')') : nullptr;
    return after && sscanf(after, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && (flags & 0x40); // PF_FORKNOEXEC
#else
    return false;
#endif
}

OpenMP find_openmp() {
    OpenMP found;
#ifndef HEADWORK_PLAIN_THREADS // the thread sanitizer cannot see inside libgomp
    if (void *library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL)) {
        found.parallel = reinterpret_cast<Parallel>(dlsym(library, "GOMP_parallel"));
        found.max_threads = reinterpret_cast<int (*)()>(dlsym(library, "omp_get_max_threads"));
    }
#endif
    return found;
}

const OpenMP &openmp() {
    static const OpenMP found = find_openmp();
    return found;
}

bool use_openmp() {
    const OpenMP &found = openmp();
    return found.parallel && found.max_threads && !forked.load(std::memory_order_relaxed);
}

// Those this process may run on, where the system tells (Linux alone has a cpu_set_t); otherwise all there are.
int cores() {
#ifdef HEADWORK_LINUX
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    const unsigned all = std::thread::hardware_concurrency();
    return all > 0 ? static_cast<int>(all) : 1;
}

// OMP_NUM_THREADS where there is no OpenMP to read it: the first number of its list.
int wanted() {
    const char *const given = getenv("OMP_NUM_THREADS");
    const long number = given ? strtol(given, nullptr, 10) : 0;
    return number > 0 && number <= 4096 ? static_cast<int>(number) : 0;
}

} // namespace

void watch_forks() {
#ifndef HEADWORK_PLAIN_THREADS
    // Loaded by somebody before the fork: its pool may be one that has lost its threads.
    if (is_fork_without_exec() && dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD)) forked.store(true);
#endif
    pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
}

void in_parallel(int threads, void (*work)(void *), void *data) {
    if (threads <= 1) return work(data);
    if (use_openmp()) return openmp().parallel(work, data, static_cast<unsigned>(threads), 0);
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) {
        try {
            others.emplace_back(work, data);
        } catch (...) {
            break; // fewer threads share the same work: only slower
        }
    }
    work(data);
    for (std::thread &other : others) other.join();
}

int default_threads() {
    if (openmp().max_threads) return openmp().max_threads();
    const int asked = wanted();
    return asked > 0 ? asked : cores();
}

const char *thread_runtime() { return use_openmp() ? "openmp" : "threads"; }

} // namespace headwork
