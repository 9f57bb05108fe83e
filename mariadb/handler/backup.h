/* SPDX-License-Identifier: GPL-2.0-only */
/* Online backups: a copy of the database in another directory, of one moment. One is made at a time. */
#ifndef PANTILE_BACKUP_H
#define PANTILE_BACKUP_H

#include "common.h"

namespace backup
{
  /* SET GLOBAL pantile_backup_to: makes a backup and waits until it is durable. Returns whether it failed; the client has
   * been told why then. */
  bool make(THD *thd, const char *directory);
  /* SET GLOBAL pantile_backup_staged: makes a backup whose moment will be FLUSH ENGINE LOGS within BACKUP STAGE
   * BLOCK_COMMIT. Gives the one that runs up if the directory is empty. */
  bool stage(THD *thd, const char *directory);

  /* What is known of the last one. */
  enum Fact { STATE, DIRECTORY, MESSAGE, BINLOG_FILE, BINLOG_POSITION };
  std::string fact(Fact which);

  void fill_in(handlerton *hton);
  /* Gives up what runs, before the database is closed. */
  void end();
}

#endif
