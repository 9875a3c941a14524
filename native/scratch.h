// Workspace: memory that a thread keeps from call to call.
#ifndef HEADWORK_SCRATCH_H
#define HEADWORK_SCRATCH_H

#include <stdint.h>

namespace headwork {

// At least `bytes`, aligned to a cache line, valid until this thread asks again; null when memory ran out.
void *scratch(int64_t bytes);

// The same, apart: for what the thread that makes a call shares with those that help it.
void *shared_scratch(int64_t bytes);

} // namespace headwork
#endif
