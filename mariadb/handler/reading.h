/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PANTILE_READING_H
#define PANTILE_READING_H

#include "common.h"

/* A transaction that reads, of the statement or for this call. */
class Reading
{
public:
  explicit Reading(pantile_txn *of_statement) : txn(of_statement), own(!of_statement)
  {
    pantile_txn_options options= {};
    options.read_only= true;
    if (own && pantile_begin(pantile_database, &options, &txn) != PANTILE_OK)
      txn= nullptr;
  }
  ~Reading()
  {
    if (own && txn)
      pantile_rollback(txn);
  }
  pantile_txn *txn;
private:
  const bool own;
};

#endif
