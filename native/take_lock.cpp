#include "take_lock.h"

// A daemon thread that comes back while the interpreter shuts down must not go on, and must not unwind either: the
// arrays it holds are released with the interpreter's lock held. Python up to 3.13 ends such a thread by pthread_exit,
// which unwinds it. This file is compiled without unwind tables, so to the C library the stack ends here: it leaves the
// thread without a look at the frames below, whichever C++ library they were built with.

extern "C" void PyEval_RestoreThread(_ts *state);

namespace headwork {

void take_lock(_ts *state) {
    PyEval_RestoreThread(state);
    asm volatile(""); // no tail call: this frame must be there
}

} // namespace headwork
