// Fork and join, one function run on several threads: through the process's own OpenMP runtime where there is one.
#ifndef HEADWORK_THREADS_H
#define HEADWORK_THREADS_H

namespace headwork {

// Calls work(data) on up to `threads` threads, this one included, and returns when all are done.
void in_parallel(int threads, void (*work)(void *), void *data);

// Before the first call, and before anybody forks.
void watch_forks();

// What omp_set_num_threads and OMP_NUM_THREADS say, also where OpenMP itself cannot be used; otherwise all cores.
int default_threads();
const char *thread_runtime();

} // namespace headwork
#endif
