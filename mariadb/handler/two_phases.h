/* SPDX-License-Identifier: GPL-2.0-only */
/* Two-phase commit: with the binary log, with other engines, and by XA. */
#ifndef PANTILE_TWO_PHASES_H
#define PANTILE_TWO_PHASES_H

#include "common.h"

/* The name in the engine of the transaction that a connection is in. */
std::string name_of_transaction(THD *thd);

/* An error of a commit or of a prepare, told to the client. Returns the handler's. */
int tell_not_committed(THD *thd, int code);

/* Commits or rolls back a prepared transaction that is decided, and for which the engine had no space, once there is
 * space: one that is in the binary log, or one whose name the server forgets. `code` is what the first try returned.
 * Returns the engine's code. If there is no space for long, it is tried again once a second, and when the server stops. */
int decide_later(THD *thd, const std::string &name, bool commits, int code);
/* Whether no such transaction is left. */
bool decide_all_later();

/* Tries again what is decided and was not possible, and what the binary log waits for. Returns whether nothing is left. */
bool settle();

void fill_in_two_phases(handlerton *hton);

#endif
