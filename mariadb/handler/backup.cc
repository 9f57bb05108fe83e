/* SPDX-License-Identifier: GPL-2.0-only */
#include "backup.h"
#include "log.h"
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <thread>

bool is_secure_file_path(char *path);
extern char *opt_secure_file_priv;

namespace
{
  enum State { NONE, WAITING, BEGINNING, COPYING, COMPLETE, FAILED };
  const char *const STATES[]= {"none", "waiting for BLOCK_COMMIT", "copying", "copying", "complete", "failed"};

  /* For how long a backup waits at its beginning for SERIALIZABLE transactions that write. While commits are blocked
   * they can only roll back. */
  const uint64_t MILLISECONDS= 10000, MILLISECONDS_BLOCKED= 1000;
  const auto LOOK= std::chrono::milliseconds(100);

  std::mutex lock;
  std::condition_variable changed;
  State state= NONE;
  std::string directory, message, binlog_file;
  uint64_t binlog_position;
  /* All that was acknowledged before is in it. */
  bool is_current;
  std::thread copier;
  std::atomic<bool> stops;

  bool runs() { return state == BEGINNING || state == COPYING; }

  /* Whether commits are blocked, by BACKUP STAGE BLOCK_COMMIT or FLUSH TABLES WITH READ LOCK of this session or another:
   * mariadb-backup has one session for the stages and another one that flushes. */
  bool are_commits_blocked(THD *thd)
  {
    if (!thd || thd->current_backup_stage == BACKUP_LOCK_COMMIT || thd->global_read_lock.is_acquired())
      return thd;
    MDL_request commit;
    MDL_REQUEST_INIT(&commit, MDL_key::BACKUP, "", "", MDL_BACKUP_COMMIT, MDL_EXPLICIT);
    if (thd->mdl_context.try_acquire_lock(&commit))
      return false;
    if (!commit.ticket)
      return true;
    thd->mdl_context.release_lock(commit.ticket);
    return false;
  }

  /* A moment that lies before commits of others is none while commits are blocked: what the binary log has would be
   * missing. */
  bool at_moment(void *must_be_current, bool current)
  {
    std::lock_guard<std::mutex> guard(lock);
    is_current= current;
    /* A second call would mean another moment, and commits may go on by now. */
    if (state != BEGINNING || (must_be_current && !current))
      return false;
    state= COPYING;
    changed.notify_all();
    return true;
  }

  bool is_stopped(void *) { return stops; }

  void copy(std::string to, bool is_blocked)
  {
    pantile_backup_options options= {};
    options.has_wait= true;
    options.wait= is_blocked ? MILLISECONDS_BLOCKED : MILLISECONDS;
    options.at_moment= at_moment;
    options.stop= is_stopped;
    bool must_be_current= is_blocked;
    options.context= must_be_current ? &must_be_current : nullptr;
    pantile_backup_report report= {};
    const int code= pantile_backup(pantile_database, to.c_str(), &options, &report);
    std::lock_guard<std::mutex> guard(lock);
    if (code == PANTILE_OK)
      message= std::to_string(report.tables) + " tables, " + std::to_string(report.rows) + " rows, " +
               std::to_string(report.file_bytes) + " bytes";
    else if (code != PANTILE_CANCELLED)
      message= pantile_error_message();
    else if (stops)
      message= "it was given up; what was copied stays in the directory, and another backup into it goes on with that";
    else if (!is_current)
      message= "a SERIALIZABLE transaction that writes is open, and while commits are blocked it cannot end; without it "
               "the backup would lack commits that the binary log has; call again, or end it first";
    else
      message= "the directory holds an interrupted backup of something else; remove it";
    state= code == PANTILE_OK ? COMPLETE : FAILED;
    if (code != PANTILE_OK)
      sql_print_warning("Pantile: no backup was made in %s: %s", to.c_str(), message.c_str());
    changed.notify_all();
  }

  bool refuse(const char *why)
  {
    my_printf_error(ER_UNKNOWN_ERROR, "Pantile: no backup is made: %s", MYF(0), why);
    return true;
  }

  /* The server writes there, so what holds for SELECT ... INTO OUTFILE holds for it as well. */
  bool may_write(const char *path)
  {
    std::string copy= path;
    if (is_secure_file_path(copy.data()))
      return true;
    my_error(ER_OPTION_PREVENTS_STATEMENT, MYF(0), "--secure-file-priv");
    return false;
  }

  /* The caller has the lock, and none runs: the last one has let go of the lock and only returns. */
  void begin(const std::string &to, State first, bool is_blocked)
  {
    if (copier.joinable())
      copier.join();
    stops= false;
    is_current= true;
    directory= to;
    message.clear();
    state= first;
    if (first == BEGINNING)
      copier= std::thread(copy, to, is_blocked);
  }

  /* FLUSH ENGINE LOGS. Commits are blocked until BACKUP STAGE END, so what the copy sees is what the binary log has up to
   * its position now. */
  bool at_flush(handlerton *)
  {
    THD *thd= current_thd;
    std::unique_lock<std::mutex> guard(lock);
    if (state != WAITING || !are_commits_blocked(thd))
      return false;
    LOG_INFO place;
    if (mysql_bin_log.is_open() && !mysql_bin_log.get_current_log(&place))
      binlog_file= place.log_file_name + dirname_length(place.log_file_name), binlog_position= place.pos;
    begin(directory, BEGINNING, true);
    changed.wait(guard, [] { return state != BEGINNING; });
    return state == FAILED && refuse(message.c_str());
  }

  /* BACKUP STAGE END, or the end of the connection. */
  void at_end()
  {
    std::lock_guard<std::mutex> guard(lock);
    if (state != WAITING)
      return;
    state= FAILED;
    message= "BACKUP STAGE END came before FLUSH ENGINE LOGS in BACKUP STAGE BLOCK_COMMIT";
  }
}

bool backup::make(THD *thd, const char *to)
{
  if (!to || !*to)
    return refuse("pantile_backup_to takes the name of a directory that is empty or does not exist");
  if (!may_write(to))
    return true;
  std::unique_lock<std::mutex> guard(lock);
  if (runs() || state == WAITING)
    return refuse("another one runs");
  binlog_file.clear();
  begin(to, BEGINNING, are_commits_blocked(thd));
  while (runs())
  {
    changed.wait_for(guard, LOOK);
    if (thd_killed(thd))
      stops= true;
  }
  if (state == FAILED)
    return stops && thd_killed(thd) ? (my_error(ER_QUERY_INTERRUPTED, MYF(0)), true) : refuse(message.c_str());
  if (!is_current)
    push_warning(thd, Sql_condition::WARN_LEVEL_WARN, ER_UNKNOWN_ERROR,
                 "Pantile: a SERIALIZABLE transaction that writes has been open all the time; the backup is of a moment "
                 "before it, and commits since then may be missing");
  return false;
}

bool backup::stage(THD *, const char *to)
{
  const bool gives_up= !to || !*to;
  if (!gives_up && !may_write(to))
    return true;
  std::unique_lock<std::mutex> guard(lock);
  if (gives_up)
  {
    stops= true;
    changed.wait(guard, [] { return !runs(); });
    if (state == WAITING)
      state= NONE;
    return false;
  }
  if (runs())
    return refuse("another one runs");
  binlog_file.clear();
  begin(to, WAITING, false);
  return false;
}

std::string backup::fact(Fact which)
{
  std::lock_guard<std::mutex> guard(lock);
  switch (which)
  {
  case STATE: return STATES[state];
  case DIRECTORY: return directory;
  case MESSAGE: return message;
  case BINLOG_FILE: return binlog_file;
  default: return binlog_file.empty() ? "" : std::to_string(binlog_position);
  }
}

void backup::fill_in(handlerton *hton)
{
  hton->flush_logs= at_flush;
  hton->end_backup= at_end;
}

void backup::end()
{
  std::unique_lock<std::mutex> guard(lock);
  stops= true;
  changed.wait(guard, [] { return !runs(); });
  guard.unlock();
  if (copier.joinable())
    copier.join();
  state= NONE;
}
