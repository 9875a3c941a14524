// Fork and join, one function run on several threads: through the process's own OpenMP runtime where there is one.
#ifndef HEADWORK_THREADS_H
#define HEADWORK_THREADS_H

namespace headwork {

// Calls work(data) on up to `threads` threads, this one included, and returns when all are done.
void in_parallel(int threads, void (*work)(void *), void *data);

int default_threads();
const char *thread_runtime();

} // namespace headwork
#endif
