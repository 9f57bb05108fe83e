/* SPDX-License-Identifier: GPL-2.0-only */
/* What a connection has open in the engine: at most one transaction, which may be prepared. */
#ifndef PANTILE_SESSION_H
#define PANTILE_SESSION_H

#include "common.h"
#include <atomic>
#include <mutex>
#include <vector>

/* Why a handler has failed last. The server may ask another one for it, that of another part of the table. */
struct Failure
{
  int error= 0;        /* of the handler */
  std::string message;
  uint key= MAX_KEY;   /* that has a duplicate */
};

/* Transactions of connections have this name in the engine, and the connection's number. */
#define NAME_OF_CONNECTIONS "connection"

class Session
{
public:
  static Session *of(THD *thd);
  /* Nullptr if the connection has not used the engine. */
  static Session *found(THD *thd);
  explicit Session(THD *thd);
  ~Session();

  /* A statement begins to use a table. Returns an error of the handler. */
  int enter(THD *thd, bool writes, bool consistent_read);
  int start_with_snapshot(THD *thd);
  /* Whether a table has other rows than at the moment at which the transaction reads. */
  bool is_before(const pantile_table *table) const { return reads_snapshot && pantile_is_before_table(txn, table) == PANTILE_OK; }

  /* How long the outermost statement waits for a row, in milliseconds. */
  uint64_t waits_for() const { return lock_wait; }
  /* Whether the statement comes to the newest rows where it locks them, and not to those of a snapshot. */
  bool sees_newest() const { return by_statement || needs_snapshot; }

  pantile_txn *transaction() const { return txn; }
  bool is_in_transaction() const { return txn || is_prepared(); }
  /* Whether tables may change that it has used. */
  bool holds_no_table();
  /* A table of the engine that goes once the transaction has ended, which may have rows in it. */
  void drop_at_end(uint64_t table) { dropped.push_back(table); }
  bool has_ended(uint64_t number) const { return !txn || number != moment; }
  /* The statement, among those of all connections. What handlers and cursors have found is of one statement. */
  uint64_t number() const { return moment; }

  /* Two phases: prepared, visible in the order of the binary log, committed. */
  int prepare(THD *thd, bool all);
  void publish(THD *thd, bool all);
  int commit(THD *thd, bool all);
  int rollback(THD *thd, bool all);
  int set_savepoint(size_t *savepoint);
  int rollback_to(size_t savepoint);

  /* Frees what a transaction holds that the engine has ended, if its connection is between two statements: the next one
   * fails then. For other threads. Returns whether the connection has no such transaction any more. */
  static bool free_ended(uint64_t connection, uint64_t id, const char *by);
  /* The statement with which a connection's transaction began, or took its snapshot; empty if that is all of the
   * transaction. For other threads. */
  static std::string began_with(uint64_t connection);
  /* Why the transaction was ended, after HA_ERR_ROLLBACK; empty if the engine's message says it. */
  const std::string &why_ended() const { return ended; }
  Failure failure;
  query_id_t compacted_by= 0; /* the statement that has last given space back */
  bool writes_rows= false;    /* the statement, or what it calls, has a table to write to */

  /* Whether a wait for a row, of a transaction of this THD, is to end. */
  static bool is_stopped(void *thd, uint64_t holder);

private:
  /* Between statements another thread may end the transaction. All that uses it begins with `take`, and ends with `leave`
   * unless the statement goes on. */
  enum Use { IDLE, BUSY, BEING_ENDED };
  void take();
  void leave() { use.store(IDLE, std::memory_order_release); }
  int report_ended(THD *thd);
  void tell_ended() const;

  int begin(THD *thd, bool only_reads, bool consistent_read);
  void begin_statement(THD *thd, bool consistent_read);
  void take_snapshot();
  void note_beginning();
  void register_whole(THD *thd);
  void end_statement();
  void next_moment();
  void release(size_t savepoint);
  int end(bool commits);
  void forget_detached();
  bool is_prepared() const { return prepared || !waiting.empty(); }
  void drop_tables();
  static void report_wait(THD *thd, uint64_t holder);

  THD *const thd;
  const uint64_t connection;
  std::atomic<int> use{IDLE};
  std::string ended;
  /* Whether it had locked or written rows. */
  bool ended_held_rows= false;

  std::mutex beginning_lock;
  std::string beginning; /* of the transaction, as its statement says it */
  std::atomic<bool> has_beginning{false};

  pantile_txn *txn= nullptr;
  pantile_prepared *prepared= nullptr; /* takes the place of `txn` */
  std::string waiting;                 /* the name of one that a client has prepared, which the engine has */
  uint64_t moment= 0;                  /* the number of the statement among those of all connections */
  std::vector<uint64_t> dropped;       /* temporary tables that go with the transaction */
  std::string unpublished;             /* the name of one that is in the binary log, and that found no space */
  bool only_reads= false;
  bool is_serializable= false;
  bool in_statement= false;
  uint64_t lock_wait= 0;
  bool is_registered= false;       /* with the server, as a transaction of several statements */
  bool needs_snapshot= false;      /* at repeatable read, before the first consistent read */
  bool reads_snapshot= false;      /* at repeatable read, from the first consistent read on */
  bool by_statement= false;        /* at read committed */
  bool has_moment= false;          /* at repeatable read, a statement that is a transaction: it has read */
  bool is_whole= false;            /* the statement is all of the transaction: to roll it back ends that */
  size_t statement_savepoint= 0;
  bool has_statement_savepoint= false;
};

/* Ends a transaction, which is gone then whatever the code says. */
int end_transaction(pantile_txn *txn, bool commits);

/* The error of the handler for a code, `none` for what was not found. Notes that the transaction has to be rolled back
 * where it cannot go on. */
int handler_error(THD *thd, int code, int none);

void fill_in_transactions(handlerton *hton);

/* Of pantile_lock_wait_timeout and the server's own limit, what is shorter, in milliseconds. */
uint64_t lock_wait_of(THD *thd);
bool reports_changes_as_deadlocks(THD *thd);

struct Counters
{
  ulong lock_timeouts, deadlocks, conflicts;
};
extern Counters pantile_counters;

#endif
