/* SPDX-License-Identifier: GPL-2.0-only */
/* The server prepares a transaction in each engine, writes down that it commits (in the binary log, or in its tc.log), and
 * commits it in each engine. What an engine has prepared when the server starts is decided by what was written down; what
 * clients have prepared by XA stays until a client decides it. */
#include "two_phases.h"
#include "session.h"
#include "watch.h"
#include <algorithm>
#include <map>
#include <set>

/* Of the XA specification (X/Open CAE, "Distributed Transaction Processing: The XA Specification", 1991). */
enum { XA_OK= 0, XAER_NOTA= -4, XAER_RMFAIL= -7 };

/* The engine's name of an XID: the lengths of its parts, the parts, and the number of its format. */
static std::string name_of(const XID *xid)
{
  std::string name;
  name.push_back((char) xid->gtrid_length);
  name.push_back((char) xid->bqual_length);
  name.append(xid->data, xid->gtrid_length + xid->bqual_length);
  const int64_t format= xid->formatID;
  name.append((const char *) &format, sizeof format);
  return name;
}

/* The parts of a name by which XIDs are equal to the server. */
static std::string parts_of(const std::string &name) { return name.substr(0, name.size() - sizeof(int64_t)); }

static bool is_xid(const std::string &name)
{
  const size_t least= 2 + sizeof(int64_t);
  return name.size() >= least && name.size() == least + (uchar) name[0] + (uchar) name[1] &&
         (uchar) name[0] <= MAXGTRIDSIZE && (uchar) name[1] <= MAXBQUALSIZE;
}

static void read_name(const std::string &name, XID *xid)
{
  int64_t format;
  memcpy(&format, name.data() + name.size() - sizeof format, sizeof format);
  xid->set((long) format, name.data() + 2, (uchar) name[0], name.data() + 2 + (uchar) name[0], (uchar) name[1]);
}

std::string name_of_transaction(THD *thd)
{
  XID xid;
  thd_get_xid(thd, (MYSQL_XID *) &xid);
  return name_of(&xid);
}

static void add_name(void *context, const char *name, size_t length)
{
  ((std::vector<std::string> *) context)->emplace_back(name, length);
}

static std::vector<std::string> waiting()
{
  std::vector<std::string> names;
  pantile_prepared_each(pantile_database, add_name, &names);
  return names;
}

int tell_not_committed(THD *thd, int code)
{
  /* Of several errors the client sees the first, and the server's own says little. */
  if (code == PANTILE_CONFLICT)
    my_error(ER_LOCK_DEADLOCK, MYF(0));
  else if (code == PANTILE_ENDED)
    my_printf_error(ER_ROLLBACK_ONLY, "The transaction was rolled back: %s", MYF(0), pantile_error_message());
  else if (code == PANTILE_STORAGE_FULL)
    my_printf_error(ER_RECORD_FILE_FULL, "Pantile did not commit: %s", MYF(ME_ERROR_LOG), pantile_error_message());
  else if (code == PANTILE_MEMORY_FULL)
    my_printf_error(ER_OUT_OF_RESOURCES, "Pantile did not commit, because pantile_memory_limit is reached: %s", MYF(0),
                    pantile_error_message());
  else if (code == PANTILE_TRANSACTION_TOO_LARGE)
    my_printf_error(ER_LOCK_TABLE_FULL, "Pantile did not commit: %s", MYF(0), pantile_error_message());
  else
    my_printf_error(ER_ERROR_DURING_COMMIT, "Pantile did not commit: %s", MYF(0), pantile_error_message());
  return handler_error(thd, code, HA_ERR_INTERNAL_ERROR);
}

static int prepare(handlerton *, THD *thd, bool all)
{
  Session *session= Session::found(thd);
  return session ? session->prepare(thd, all) : 0;
}

/* In the order of the binary log, so that this is the order in which others see commits. */
static void commit_ordered(handlerton *, THD *thd, bool all)
{
  if (Session *session= Session::found(thd))
    session->publish(thd, all);
}

/* Those that have been told, so that a list that does not fit can be asked for in parts. The server asks when it starts. */
static std::set<std::string> told;

static int recover(handlerton *, XID *list, uint length)
{
  uint count= 0;
  for (const std::string &name : waiting())
  {
    if (count == length)
      break;
    if (is_xid(name) && told.insert(name).second)
      read_name(name, &list[count++]);
  }
  return (int) count;
}

/* Those of which nobody else knows any more, and whether they are to be committed. */
static std::mutex later_lock;
static std::map<std::string, bool> later;

static int decide_now(const std::string &name, bool commits)
{
  pantile_prepared *prepared;
  const int code= pantile_prepared_take(pantile_database, name.data(), name.size(), &prepared);
  if (code != PANTILE_OK)
    return code;
  return commits ? pantile_prepared_commit(prepared, nullptr) : pantile_prepared_rollback(prepared);
}

/* Whether trying again may help. */
static bool may_pass(int code)
{
  return code == PANTILE_STORAGE_FULL || code == PANTILE_MEMORY_FULL || code == PANTILE_TOO_MANY_TRANSACTIONS;
}

static void try_later(const std::string &name, bool commits)
{
  std::lock_guard<std::mutex> alone(later_lock);
  later[name]= commits;
  watch::look();
}

int decide_later(THD *thd, const std::string &name, bool commits, int code)
{
  for (int seconds= 0; may_pass(code) && seconds < 10; seconds++)
  {
    if ((code= decide_now(name, commits)) == PANTILE_OK)
      return code;
    if (thd_killed(thd))
      break;
    my_sleep(1000000);
  }
  if (may_pass(code))
    try_later(name, commits);
  return code;
}

bool decide_all_later()
{
  std::lock_guard<std::mutex> alone(later_lock);
  for (auto one= later.begin(); one != later.end();)
  {
    const int code= decide_now(one->first, one->second);
    if (code == PANTILE_DAMAGED)
      sql_print_error("Pantile: a transaction that is decided cannot be committed, and is to be rolled back: %s",
                      pantile_error_message());
    one= may_pass(code) ? std::next(one) : later.erase(one);
  }
  return later.empty();
}

static int decide(const XID *xid, const char *what, bool commits)
{
  const std::string parts= parts_of(name_of(xid));
  const std::vector<std::string> names= waiting();
  const auto is_it= [&](const std::string &name) { return is_xid(name) && parts_of(name) == parts; };
  const auto name= std::find_if(names.begin(), names.end(), is_it);
  const int code= name == names.end() ? PANTILE_UNKNOWN_NAME : decide_now(*name, commits);
  if (code == PANTILE_UNKNOWN_NAME)
    return XAER_NOTA;
  if (code != PANTILE_OK)
  {
    /* The server has read its log after a crash, and asks for this once. */
    if (!current_thd && may_pass(code))
      try_later(*name, commits);
    const std::string why= pantile_error_message();
    sql_print_error("Pantile: a prepared transaction was not %s: %s", what, why.c_str());
    /* The server looks whether there was an error, and not at what is returned. */
    if (current_thd)
      my_printf_error(ER_XAER_RMFAIL, "Pantile: the transaction was not %s, and is prepared as before: %s", MYF(0), what,
                      why.c_str());
  }
  return code == PANTILE_OK ? XA_OK : XAER_RMFAIL;
}

static int commit_by_xid(handlerton *, XID *xid) { return decide(xid, "committed", true); }

static int rollback_by_xid(handlerton *, XID *xid) { return decide(xid, "rolled back", false); }

/* The binary log keeps what it needs to decide commits until they are durable. It asks once, and does not stop before it
 * has its answer. */
static std::mutex checkpoints_lock;
static std::vector<void *> checkpoints;

bool settle()
{
  std::vector<void *> asked;
  {
    std::lock_guard<std::mutex> alone(checkpoints_lock);
    asked.swap(checkpoints);
  }
  const bool is_decided= decide_all_later();
  if (asked.empty())
    return is_decided;
  if (is_decided && pantile_sync(pantile_database) == PANTILE_OK)
  {
    for (void *cookie : asked)
      commit_checkpoint_notify_ha(cookie);
    return true;
  }
  std::lock_guard<std::mutex> alone(checkpoints_lock);
  checkpoints.insert(checkpoints.end(), asked.begin(), asked.end());
  return false;
}

static void request_checkpoint(void *cookie)
{
  {
    std::lock_guard<std::mutex> alone(checkpoints_lock);
    checkpoints.push_back(cookie);
  }
  if (settle())
    return;
  sql_print_error("Pantile: commits are not durable, and the binary log is kept: %s", pantile_error_message());
  watch::look();
}

void fill_in_two_phases(handlerton *hton)
{
  hton->prepare= prepare;
  hton->commit_ordered= commit_ordered;
  hton->recover= recover;
  hton->commit_by_xid= commit_by_xid;
  hton->rollback_by_xid= rollback_by_xid;
  hton->commit_checkpoint_request= request_checkpoint;
}
