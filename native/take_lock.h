// The interpreter's lock taken again after a call, in a process that may be ending meanwhile.
#ifndef HEADWORK_TAKE_LOCK_H
#define HEADWORK_TAKE_LOCK_H

struct _ts; // PyThreadState

namespace headwork {

void take_lock(_ts *state);

} // namespace headwork
#endif
