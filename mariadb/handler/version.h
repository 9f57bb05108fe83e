/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PANTILE_VERSION_H
#define PANTILE_VERSION_H

#include "common.h"

/* Whether the server is the one that the plugin was built for. Says in the log what does not fit. */
bool fits_the_server();

#endif
