// HEADWORK_LINUX guards what only Linux has; a build may be asked to do without it (HEADWORK_NO_LINUX), to try the
// other side.
#ifndef HEADWORK_SYSTEM_H
#define HEADWORK_SYSTEM_H

#if defined(__linux__) && !defined(HEADWORK_NO_LINUX)
#define HEADWORK_LINUX
#endif

#endif
