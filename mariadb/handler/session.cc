/* SPDX-License-Identifier: GPL-2.0-only */
#include "session.h"
#include "catalog.h"
#include "two_phases.h"
#include "slave.h"
#include "sql_parse.h"
#include <algorithm>
#include <unordered_map>

Counters pantile_counters;

/* Transactions that have begun, and statements within transactions that have ended, have numbers. A connection takes as many
 * at once: the place that has the next ones is one for all. */
static const uint64_t MOMENTS_AT_ONCE= 1 << 16;
static std::atomic<uint64_t> next_moments{0};

Session *Session::found(THD *thd) { return (Session *) thd_get_ha_data(thd, pantile_hton); }

Session *Session::of(THD *thd)
{
  Session *session= found(thd);
  if (!session)
    thd_set_ha_data(thd, pantile_hton, session= new Session(thd));
  return session;
}

/* Sessions by their connections, for threads that are none. */
static std::mutex sessions_lock;
static std::unordered_map<uint64_t, Session *> sessions;

Session::Session(THD *thd) : thd(thd), connection(thd_get_thread_id(thd))
{
  std::lock_guard<std::mutex> alone(sessions_lock);
  sessions[connection]= this;
}

Session::~Session()
{
  {
    std::lock_guard<std::mutex> alone(sessions_lock);
    const auto found= sessions.find(connection);
    if (found != sessions.end() && found->second == this)
      sessions.erase(found);
  }
  take();
  pantile_prepared_free(prepared);
  prepared= nullptr;
  waiting.clear();
  end(false);
}

void Session::next_moment()
{
  if (moment % MOMENTS_AT_ONCE == 0)
    moment= next_moments.fetch_add(MOMENTS_AT_ONCE, std::memory_order_relaxed);
  moment++;
}

void Session::take()
{
  int idle= IDLE;
  /* Only this connection makes it BUSY. */
  while (!use.compare_exchange_weak(idle, BUSY, std::memory_order_acquire) && idle != BUSY)
    idle= IDLE;
}

bool Session::free_ended(uint64_t connection, uint64_t id, const char *by)
{
  pantile_txn *freed= nullptr;
  {
    std::lock_guard<std::mutex> alone(sessions_lock);
    const auto found= sessions.find(connection);
    if (found == sessions.end())
      return true;
    Session *session= found->second;
    int idle= IDLE;
    if (!session->use.compare_exchange_strong(idle, BEING_ENDED, std::memory_order_acquire))
      return false;
    uint64_t now= 0;
    if (session->txn && pantile_txn_id(session->txn, &now) == PANTILE_OK && now == id)
    {
      size_t rows= 1;
      pantile_locked_rows(session->txn, &rows);
      session->ended_held_rows= rows > 0;
      std::swap(freed, session->txn);
      session->ended= "transaction " + std::to_string(id) + " was ended by " + by + "; nothing of it is committed";
    }
    session->leave();
  }
  pantile_rollback(freed);
  return true;
}

void Session::tell_ended() const
{
  my_printf_error(ER_ROLLBACK_ONLY, "The transaction was rolled back: %s", MYF(0), ended.c_str());
}

/* Its connection learns of it at its next statement that uses the engine. */
int Session::report_ended(THD *thd)
{
  thd->mark_transaction_to_rollback(true);
  leave();
  return HA_ERR_ROLLBACK;
}

static bool is_one_statement(THD *thd) { return !thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN); }

extern "C" int thd_need_wait_reports(const THD *thd);
extern "C" int thd_rpl_deadlock_check(THD *thd, THD *other);

/* An applier of a replica that waits for a row may wait for one that commits later, and that waits for it: the server then
 * has the later one begin again. */
void Session::report_wait(THD *thd, uint64_t holder)
{
  std::lock_guard<std::mutex> alone(sessions_lock);
  const auto found= sessions.find(holder);
  if (found != sessions.end() && found->second->thd != thd)
    thd_rpl_deadlock_check(thd, found->second->thd);
}

bool Session::is_stopped(void *of, uint64_t holder)
{
  THD *thd= (THD *) of;
  if (thd_need_wait_reports(thd))
    report_wait(thd, holder);
  return thd_killed(thd);
}

/* An applier of a replica. Transactions commit in the order of the log there, which is their order at whatever level: each
 * must come to what the ones before it have left, and to nothing older. */
static bool is_applier(THD *thd) { return thd->rgi_slave != nullptr; }

/* Of appliers that work in parallel, one that runs a statement must find what comes before it in the log, and no lock is on
 * what is not there. Changes of rows name what they change, and wait for its lock; that it is not there is an error, after
 * which they wait and are made again, unless such errors are skipped.
 * The statement has locks of the server, which what comes before may need, so it does not wait for long: after a deadlock
 * the server waits without them, and runs the transaction again. */
static int await_earlier(THD *thd)
{
  const wait_for_commit *order= thd->wait_for_commit_ptr;
  const bool is_statement= thd_sql_command(thd) != SQLCOM_END;
  if (!is_applier(thd) || !order ||
      (!is_statement && slave_exec_mode_options != SLAVE_EXEC_MODE_IDEMPOTENT && !use_slave_mask))
    return 0;
  const uint longest= 1000, in_all= 100000; /* microseconds */
  for (uint slept= 0, next= 20; order->waitee.load(std::memory_order_acquire); next= std::min(2 * next, longest))
  {
    if (thd_killed(thd))
      return HA_ERR_ABORTED_BY_USER;
    if (slept >= in_all)
      return HA_ERR_LOCK_DEADLOCK;
    my_sleep(next);
    slept+= next;
  }
  return 0;
}

/* Whether a statement is a transaction, and writes to a table that it makes and to no other, as its functions may. */
static bool writes_new_table_only(THD *thd)
{
  const LEX *lex= thd->lex;
  switch (lex->sql_command)
  {
  case SQLCOM_CREATE_TABLE: case SQLCOM_ALTER_TABLE: case SQLCOM_CREATE_INDEX: case SQLCOM_DROP_INDEX:
    break;
  default:
    return false;
  }
  if (thd->in_sub_stmt || !(is_one_statement(thd) || stmt_causes_implicit_commit(thd, CF_AUTO_COMMIT_TRANS)))
    return false;
  for (const TABLE_LIST *used= lex->query_tables; used; used= used->next_global)
    if (used->prelocking_placeholder && used->lock_type >= TL_FIRST_WRITE)
      return false;
  return true;
}

int Session::begin(THD *thd, bool reads, bool consistent_read)
{
  pantile_txn_options options= {};
  const int isolation= is_applier(thd) ? ISO_READ_COMMITTED : thd_tx_isolation(thd);
  only_reads= reads;
  options.read_only= reads;
  /* In the engine a serializable transaction cannot write to a table that is newer. Where nobody else sees what is written,
   * a snapshot is as good. */
  const bool makes_table= isolation == ISO_SERIALIZABLE && !reads && writes_new_table_only(thd);
  is_serializable= isolation == ISO_SERIALIZABLE && !reads && !makes_table;
  options.isolation= is_serializable ? PANTILE_SERIALIZABLE : PANTILE_READ_COMMITTED;
  const bool has_snapshot= makes_table || (!reads && isolation == ISO_REPEATABLE_READ && consistent_read);
  if (reads || has_snapshot)
    options.isolation= PANTILE_SNAPSHOT;
  options.has_lock_wait= true;
  options.lock_wait= lock_wait= lock_wait_of(thd);
  options.name= NAME_OF_CONNECTIONS;
  options.has_number= true;
  options.number= connection;
  if (int code= pantile_begin(pantile_database, &options, &txn))
  {
    txn= nullptr;
    return handler_error(thd, code, HA_ERR_INTERNAL_ERROR);
  }
  next_moment();
  pantile_interrupt_when(txn, is_stopped, thd);
  /* At repeatable read, statements that lock come to the newest rows until the first one that does not: its snapshot is
   * the transaction's. What a single statement changes is the newest rows as well. */
  needs_snapshot= !reads && !has_snapshot && isolation == ISO_REPEATABLE_READ;
  reads_snapshot= has_snapshot;
  by_statement= !reads && isolation <= ISO_READ_COMMITTED;
  return 0;
}

static constexpr size_t MAX_BEGINNING= 1024;

/* A connection that sleeps has no statement. What made it hold something is then found here. */
void Session::note_beginning()
{
  std::lock_guard<std::mutex> alone(beginning_lock);
  const char *query= thd->query();
  beginning.assign(query ? query : "", query ? std::min<size_t>(thd->query_length(), MAX_BEGINNING) : 0);
  has_beginning.store(true, std::memory_order_relaxed);
}

std::string Session::began_with(uint64_t connection)
{
  std::lock_guard<std::mutex> alone(sessions_lock);
  const auto found= sessions.find(connection);
  if (found == sessions.end())
    return "";
  Session *session= found->second;
  std::lock_guard<std::mutex> unchanged(session->beginning_lock);
  return session->has_beginning.load(std::memory_order_relaxed) ? session->beginning : "";
}

void Session::take_snapshot()
{
  note_beginning();
  pantile_take_snapshot(txn);
  needs_snapshot= false;
  reads_snapshot= true;
}

void Session::register_whole(THD *thd)
{
  if (!is_registered)
    trans_register_ha(thd, true, pantile_hton, 0);
  is_registered= true;
}

void Session::end_statement()
{
  if (has_statement_savepoint)
    release(statement_savepoint);
  /* A connection that thinks keeps no versions but its snapshot. Its cursors go on in another statement. */
  if (in_statement && txn && !only_reads)
  {
    pantile_end_statement(txn);
    next_moment();
  }
  in_statement= is_whole= has_moment= has_statement_savepoint= writes_rows= false;
}

void Session::begin_statement(THD *thd, bool consistent_read)
{
  if (needs_snapshot && consistent_read)
  {
    /* Triggers and functions lock their tables again for each row; all of the statement reads one moment. */
    if (!is_one_statement(thd))
      take_snapshot();
    else if (!has_moment)
      pantile_begin_statement(txn);
    has_moment= true;
  }
  else if (by_statement || needs_snapshot)
    pantile_begin_statement(txn);
}

/* After a reset of the connection the server has forgotten that what was prepared is this one's: any connection decides it. */
void Session::forget_detached()
{
  if (waiting.empty() || thd->transaction->xid_state.get_state_code() == XA_PREPARED)
    return;
  waiting.clear();
  in_statement= is_whole= is_registered= has_statement_savepoint= false;
  has_beginning.store(false, std::memory_order_relaxed);
}

int Session::enter(THD *thd, bool writes, bool consistent_read)
{
  forget_detached();
  if (is_prepared())
    return HA_ERR_INTERNAL_ERROR;
  if (int error= await_earlier(thd))
    return error;
  take();
  if (!ended.empty())
    return report_ended(thd);
  const bool one= is_one_statement(thd);
  if (txn && only_reads && writes)
  {
    /* Nothing has been read yet: all tables of a statement are locked first. */
    end(false);
    in_statement= false;
  }
  /* A function may write to a temporary table of its own, which is not locked before. */
  const bool reads= one && !writes && consistent_read && thd_sql_command(thd) == SQLCOM_SELECT &&
                    !thd->lex->requires_prelocking();
  if (txn && !in_statement)
    if (const uint64_t wait= lock_wait_of(thd); wait != lock_wait)
      pantile_set_lock_wait(txn, lock_wait= wait);
  const bool begins= !txn;
  if (begins)
  {
    if (int error= begin(thd, reads, !one && consistent_read))
      return error;
    if (!one)
      note_beginning();
  }
  if (!in_statement)
  {
    in_statement= true;
    writes_rows= false;
    is_whole= one && begins;
    if (!only_reads)
    {
      begin_statement(thd, consistent_read);
      has_statement_savepoint= !is_whole && pantile_savepoint(txn, &statement_savepoint) == PANTILE_OK;
    }
    trans_register_ha(thd, false, pantile_hton, 0);
  }
  else if (needs_snapshot && consistent_read)
    begin_statement(thd, true);
  if (!one)
    register_whole(thd);
  return 0;
}

int Session::start_with_snapshot(THD *thd)
{
  forget_detached();
  if (is_prepared())
    return HA_ERR_INTERNAL_ERROR;
  take();
  if (!txn)
  {
    if (int error= begin(thd, false, true))
      return error;
    note_beginning();
  }
  if (needs_snapshot)
    take_snapshot();
  register_whole(thd);
  leave();
  return 0;
}

int end_transaction(pantile_txn *txn, bool commits)
{
  const int code= commits ? pantile_commit(txn, nullptr) : pantile_rollback(txn);
  /* A call before has panicked. */
  if (code == PANTILE_MISUSE)
    pantile_rollback(txn);
  return code;
}

/* An applier lets the next transaction of the log go on once this one is visible, so that their commits share a sync. What
 * is visible earlier is durable no later. Where there is a binary log, its coordinator does that. */
static int commit_in_order(THD *thd, pantile_txn *txn)
{
  pantile_in_flight *flight;
  const int code= pantile_publish(txn, &flight);
  if (code == PANTILE_MISUSE)
    pantile_rollback(txn);
  if (code != PANTILE_OK)
    return code;
  thd_wakeup_subsequent_commits(thd, 0);
  return pantile_in_flight_wait(flight, nullptr);
}

void Session::drop_tables()
{
  for (uint64_t table : dropped)
    drop_engine_table(table);
  dropped.clear();
}

int Session::end(bool commits)
{
  int code= PANTILE_OK;
  if (!waiting.empty())
    code= pantile_prepared_take(pantile_database, waiting.data(), waiting.size(), &prepared);
  if (code != PANTILE_OK)
    prepared= nullptr;
  else if (prepared)
    code= commits ? pantile_prepared_commit(prepared, nullptr) : pantile_prepared_rollback(prepared);
  else if (txn)
    code= commits && is_applier(thd) && thd->wait_for_commit_ptr ? commit_in_order(thd, txn) : end_transaction(txn, commits);
  prepared= nullptr;
  txn= nullptr;
  waiting.clear();
  ended.clear();
  /* What is in the binary log and found no space may have rows in them. */
  if (unpublished.empty())
    drop_tables();
  in_statement= is_registered= needs_snapshot= reads_snapshot= by_statement= only_reads= has_statement_savepoint= false;
  is_whole= has_moment= false;
  has_beginning.store(false, std::memory_order_relaxed);
  return code;
}

int Session::commit(THD *thd, bool all)
{
  if (all || is_one_statement(thd))
  {
    take();
    /* One that has locked and written nothing loses nothing. The server commits what it has done in other engines whatever
     * this one says then: to a client, an error would mean that nothing of it is committed. */
    if (!ended.empty() && ended_held_rows)
    {
      tell_ended();
      end(false);
      leave();
      return HA_ERR_ROLLBACK;
    }
    size_t rows= 1;
    if (txn)
      pantile_locked_rows(txn, &rows);
    const std::string by_client= waiting;
    int code= end(true);
    if (code == PANTILE_ENDED && !rows)
      code= PANTILE_OK;
    if (!unpublished.empty())
      code= decide_later(thd, unpublished, true, PANTILE_STORAGE_FULL);
    /* The server forgets the name, whatever becomes of it. */
    else if (code != PANTILE_OK && !by_client.empty())
      code= decide_later(thd, by_client, true, code);
    unpublished.clear();
    drop_tables();
    leave();
    return code == PANTILE_OK ? 0 : tell_not_committed(thd, code);
  }
  end_statement();
  leave();
  return 0;
}

int Session::prepare(THD *thd, bool all)
{
  if (!all && !is_one_statement(thd))
  {
    end_statement();
    return 0;
  }
  /* Up to the end of the transaction, no other thread ends it. */
  take();
  if (!ended.empty())
  {
    tell_ended();
    return HA_ERR_ROLLBACK;
  }
  if (!txn || only_reads)
    return 0;
  if (thd_sql_command(thd) == SQLCOM_XA_PREPARE && is_serializable)
  {
    my_printf_error(ER_NOT_SUPPORTED_YET,
                    "ENGINE=Pantile prepares no XA transaction at SERIALIZABLE, because readers would wait for its end; it "
                    "is rolled back. Use REPEATABLE READ, or XA COMMIT ... ONE PHASE",
                    MYF(0));
    return HA_ERR_UNSUPPORTED;
  }
  const std::string name= name_of_transaction(thd);
  const int code= pantile_prepare(pantile_database, txn, name.data(), name.size(), &prepared);
  if (code == PANTILE_MISUSE)
    pantile_rollback(txn);
  txn= nullptr;
  if (code != PANTILE_OK)
  {
    prepared= nullptr;
    return tell_not_committed(thd, code);
  }
  if (thd_sql_command(thd) == SQLCOM_XA_PREPARE)
  {
    pantile_prepared_free(prepared);
    prepared= nullptr;
    waiting= name;
  }
  return 0;
}

void Session::publish(THD *thd, bool all)
{
  /* A client that commits by XA is told when that is durable. */
  if (!prepared || (!all && !is_one_statement(thd)) || thd->transaction->xid_state.is_explicit_XA())
    return;
  const std::string name= name_of_transaction(thd);
  pantile_in_flight *flight;
  const int code= pantile_prepared_publish(prepared, &flight);
  prepared= nullptr;
  if (code == PANTILE_OK)
    /* What was prepared is durable, and so is that it commits. */
    pantile_in_flight_free(flight);
  else
  {
    sql_print_error("Pantile: a transaction that the binary log has committed stays prepared, with its locks, and is tried "
                    "again: %s", pantile_error_message());
    unpublished= name;
  }
}

int Session::rollback(THD *thd, bool all)
{
  take();
  if (all || is_one_statement(thd) || is_whole)
  {
    const bool was_prepared= is_prepared();
    const std::string name= was_prepared && waiting.empty() ? name_of_transaction(thd) : waiting;
    int code= end(false);
    if (code != PANTILE_OK && !name.empty())
      code= decide_later(thd, name, false, code);
    leave();
    if (was_prepared && code != PANTILE_OK)
    {
      my_printf_error(ER_ERROR_DURING_ROLLBACK, "Pantile did not roll back what was prepared: %s", MYF(0),
                      pantile_error_message());
      return handler_error(thd, code, HA_ERR_INTERNAL_ERROR);
    }
    return 0;
  }
  const int error= has_statement_savepoint ? rollback_to(statement_savepoint) : 0;
  end_statement();
  leave();
  return error;
}

int Session::set_savepoint(size_t *savepoint)
{
  take();
  *savepoint= SIZE_MAX;
  const bool failed= txn && !only_reads && pantile_savepoint(txn, savepoint) != PANTILE_OK;
  if (!in_statement)
    leave();
  return failed ? HA_ERR_INTERNAL_ERROR : 0;
}

int Session::rollback_to(size_t savepoint)
{
  take();
  if (!ended.empty())
  {
    tell_ended();
    leave();
    return HA_ERR_ROLLBACK;
  }
  const bool failed= txn && savepoint != SIZE_MAX && pantile_rollback_to(txn, savepoint) != PANTILE_OK;
  if (!in_statement)
    leave();
  return failed ? HA_ERR_INTERNAL_ERROR : 0;
}

void Session::release(size_t savepoint)
{
  if (txn && savepoint != SIZE_MAX)
    pantile_release_savepoint(txn, savepoint);
}

/* Within a function or a trigger no handler of the program's goes on after the error: what has been done of the statement
 * could not be taken back there. An earlier request to roll the transaction back stays. */
static void end_outer_statement(THD *thd)
{
  if (!thd->transaction_rollback_request)
    thd->mark_transaction_to_rollback(false);
}

int handler_error(THD *thd, int code, int none)
{
  switch (code)
  {
  case PANTILE_OK:
    return 0;
  case PANTILE_NOT_FOUND: case PANTILE_DONE:
    return none;
  case PANTILE_DUPLICATE_KEY:
    return HA_ERR_FOUND_DUPP_KEY;
  case PANTILE_LOCKED:
    /* Waiting cannot help, because the holder comes later in the order, and so trying again does not help either. */
    if (const Session *session= Session::found(thd); (session ? session->waits_for() : lock_wait_of(thd)) > 0)
      return handler_error(thd, PANTILE_CONFLICT, none);
    [[fallthrough]];
  case PANTILE_TIMED_OUT:
    statistic_increment(pantile_counters.lock_timeouts, &LOCK_status);
    end_outer_statement(thd);
    return HA_ERR_LOCK_WAIT_TIMEOUT;
  case PANTILE_DEADLOCK:
    statistic_increment(pantile_counters.deadlocks, &LOCK_status);
    thd->mark_transaction_to_rollback(true);
    return HA_ERR_LOCK_DEADLOCK;
  case PANTILE_CONFLICT: case PANTILE_CHANGED:
    statistic_increment(pantile_counters.conflicts, &LOCK_status);
    thd->mark_transaction_to_rollback(true);
    return code == PANTILE_CONFLICT || reports_changes_as_deadlocks(thd) ? HA_ERR_LOCK_DEADLOCK : HA_ERR_RECORD_CHANGED;
  case PANTILE_INTERRUPTED: case PANTILE_CANCELLED:
    return HA_ERR_ABORTED_BY_USER;
  case PANTILE_ENDED:
    thd->mark_transaction_to_rollback(true);
    return HA_ERR_ROLLBACK;
  case PANTILE_TOO_MANY_TRANSACTIONS:
    return HA_ERR_TOO_MANY_CONCURRENT_TRXS;
  case PANTILE_STORAGE_FULL:
    return HA_ERR_RECORD_FILE_FULL;
  case PANTILE_MEMORY_FULL: case PANTILE_TRANSACTION_TOO_LARGE:
    end_outer_statement(thd);
    return code == PANTILE_MEMORY_FULL ? HA_ERR_OUT_OF_MEM : HA_ERR_LOCK_TABLE_FULL;
  case PANTILE_ROW_TOO_LARGE:
    return HA_ERR_TO_BIG_ROW;
  case PANTILE_TABLE_DROPPED: case PANTILE_UNKNOWN_NAME:
    return HA_ERR_NO_SUCH_TABLE;
  case PANTILE_DAMAGED:
    return HA_ERR_CRASHED;
  case PANTILE_MEDIUM_FAILED:
    return HA_ERR_TABLE_READONLY;
  default:
    return HA_ERR_INTERNAL_ERROR;
  }
}

static int commit(handlerton *, THD *thd, bool all)
{
  Session *session= Session::found(thd);
  return session ? session->commit(thd, all) : 0;
}

static int rollback(handlerton *, THD *thd, bool all)
{
  Session *session= Session::found(thd);
  return session ? session->rollback(thd, all) : 0;
}

static int close_connection(handlerton *, THD *thd)
{
  /* What it has prepared by XA waits for another connection. */
  delete Session::found(thd);
  thd_set_ha_data(thd, pantile_hton, nullptr);
  return 0;
}

static int set_savepoint(handlerton *, THD *thd, void *place)
{
  size_t savepoint;
  const int error= Session::of(thd)->set_savepoint(&savepoint);
  memcpy(place, &savepoint, sizeof savepoint);
  return error;
}

static size_t savepoint_at(const void *place)
{
  size_t savepoint;
  memcpy(&savepoint, place, sizeof savepoint);
  return savepoint;
}

static int rollback_to_savepoint(handlerton *, THD *thd, void *place)
{
  return Session::of(thd)->rollback_to(savepoint_at(place));
}

/* At SERIALIZABLE, what it has read must stay as well. */
bool Session::holds_no_table()
{
  take();
  size_t locked= 0;
  const bool holds= txn && (is_serializable || pantile_locked_rows(txn, &locked) != PANTILE_OK || locked != 0);
  if (!in_statement)
    leave();
  return !holds && !is_prepared();
}

/* Whether the server may let others change the tables that were used after the savepoint. */
static bool holds_no_table(handlerton *, THD *thd)
{
  Session *session= Session::found(thd);
  return !session || session->holds_no_table();
}

static int start_consistent_snapshot(handlerton *, THD *thd) { return Session::of(thd)->start_with_snapshot(thd); }

void fill_in_transactions(handlerton *hton)
{
  hton->commit= commit;
  hton->rollback= rollback;
  hton->close_connection= close_connection;
  hton->savepoint_offset= sizeof(size_t);
  hton->savepoint_set= set_savepoint;
  hton->savepoint_rollback= rollback_to_savepoint;
  hton->savepoint_rollback_can_release_mdl= holds_no_table;
  /* Nothing releases one: a name that is used again leaves the savepoints that came after it, and they end with the
   * transaction. */
  hton->start_consistent_snapshot= start_consistent_snapshot;
  fill_in_two_phases(hton);
}
