/* SPDX-License-Identifier: GPL-2.0-only */
/* Two-phase commit: with the binary log, with other engines, and by XA. */
#ifndef PANTILE_TWO_PHASES_H
#define PANTILE_TWO_PHASES_H

#include "common.h"

/* The name in the engine of the transaction that a connection is in. */
std::string name_of_transaction(THD *thd);

/* An error of a commit or of a prepare, told to the client. Returns the handler's. */
int tell_not_committed(THD *thd, int code);

/* Commits a transaction that is in the binary log, and that the engine had no space to commit, once there is space.
 * Returns the engine's code. If there is none for long, it is tried again when the binary log is changed, and when the
 * server stops. */
int commit_later(THD *thd, const std::string &name);
/* Whether no such transaction is left. */
bool commit_all_later();

void fill_in_two_phases(handlerton *hton);

#endif
