/* SPDX-License-Identifier: GPL-2.0-only */
/* The plugin: its variables, its counters, opening and closing the database. */
/* Only here: elsewhere it would turn calls of the server into calls through its table of services. */
#define MYSQL_DYNAMIC_PLUGIN 1
#include "ha_pantile.h"
#include "backup.h"
#include "information.h"
#include "two_phases.h"
#include "version.h"
#include "watch.h"
#include "set_var.h"
#include <signal.h>
#include <sstream>

handlerton *pantile_hton;
pantile_db *pantile_database;

extern "C" int pantile_server_collector(pantile_options *options, const char *name);
extern "C" int pantile_server_medium(pantile_options *options, const char *name);

static char *data_dir, *gc, *medium;
static ulong durability;
static double space_target;
static unsigned long long memory_limit, row_cache, max_bytes, max_pinned_bytes;
static ulong max_pinned_age, on_pinned;

static const char *durability_names[]= {"sync", "group", "none", NullS};
static TYPELIB durabilities= {array_elements(durability_names) - 1, "durabilities", durability_names, nullptr};
static const char *change_names[]= {"record_changed", "deadlock", NullS};
static TYPELIB changes= {array_elements(change_names) - 1, "changes", change_names, nullptr};

static const char *pinned_names[]= {"warn", "end", NullS};
static TYPELIB pinned_policies= {array_elements(pinned_names) - 1, "pinned_policies", pinned_names, nullptr};

static void limit_pinned()
{
  if (!pantile_database)
    return;
  const int then= on_pinned ? PANTILE_END : PANTILE_WARN;
  pantile_set_max_pinned_age(pantile_database, max_pinned_age * 1000ULL, then);
  pantile_set_max_pinned_bytes(pantile_database, max_pinned_bytes, then);
}

template <class Value> static void update_limit(MYSQL_THD, struct st_mysql_sys_var *, void *value, const void *given)
{
  *(Value *) value= *(const Value *) given;
  limit_pinned();
}

static MYSQL_SYSVAR_STR(data_dir, data_dir, PLUGIN_VAR_READONLY | PLUGIN_VAR_RQCMDARG,
                        "The directory of the database, by default #pantile in the server's data directory", nullptr,
                        nullptr, "#pantile");
static MYSQL_SYSVAR_STR(medium, medium, PLUGIN_VAR_READONLY | PLUGIN_VAR_RQCMDARG,
                        "Where the data is: file; dram, memory that is freed when the server stops; dax, persistent memory "
                        "(a file system mounted with dax=always); or, in plugins built for experiments, an emulated memory, as "
                        "in nvm:optane",
                        nullptr, nullptr, "file");
static MYSQL_SYSVAR_ENUM(durability, durability, PLUGIN_VAR_READONLY | PLUGIN_VAR_RQCMDARG,
                         "When a commit returns: sync, when it is durable; group, the same, and it may wait 500 "
                         "microseconds for others; none, at once, and a power failure may take the last ones",
                         nullptr, nullptr, 0, &durabilities);
static MYSQL_SYSVAR_STR(gc, gc, PLUGIN_VAR_READONLY | PLUGIN_VAR_RQCMDARG, "The garbage collector", nullptr, nullptr,
                        "tb-collect");
static MYSQL_SYSVAR_DOUBLE(space_target, space_target, PLUGIN_VAR_READONLY | PLUGIN_VAR_RQCMDARG,
                           "Bytes of the file for each byte of live rows, besides 16 MB", nullptr, nullptr, 2.0, 1.05,
                           100.0, 0);
static MYSQL_SYSVAR_ULONGLONG(memory_limit, memory_limit, PLUGIN_VAR_READONLY | PLUGIN_VAR_RQCMDARG,
                              "Bytes of memory that the database may take, beside the system's copies of its file; 0 "
                              "for three quarters of what the server may have",
                              nullptr, nullptr, 0, 0, ULONGLONG_MAX, 0);
static MYSQL_SYSVAR_ULONGLONG(row_cache, row_cache, PLUGIN_VAR_READONLY | PLUGIN_VAR_RQCMDARG,
                              "Bytes of memory for rows that are read again and again, where the file is larger than "
                              "memory, from 1048576 on; 0 for none",
                              nullptr, nullptr, 0, 0, ULONGLONG_MAX, 0);
static MYSQL_SYSVAR_ULONGLONG(max_bytes, max_bytes, PLUGIN_VAR_READONLY | PLUGIN_VAR_RQCMDARG,
                              "Bytes that the file may take; 0 for 1 TiB", nullptr, nullptr, 0, 0,
                              ULONGLONG_MAX, 0);
static MYSQL_SYSVAR_ULONG(max_pinned_age, max_pinned_age, PLUGIN_VAR_RQCMDARG,
                          "Seconds for which a transaction may hold back old versions; pantile_on_pinned says what happens "
                          "then; 0 for any time",
                          nullptr, update_limit<ulong>, 0, 0, 100000000, 0);
static MYSQL_SYSVAR_ULONGLONG(max_pinned_bytes, max_pinned_bytes, PLUGIN_VAR_RQCMDARG,
                              "Bytes of old versions that a transaction may hold back; pantile_on_pinned says what happens "
                              "then; 0 for any number",
                              nullptr, update_limit<ulonglong>, 0, 0, ULONGLONG_MAX, 0);
static MYSQL_SYSVAR_ENUM(on_pinned, on_pinned, PLUGIN_VAR_RQCMDARG,
                         "What happens to a transaction that holds back more than pantile_max_pinned_age or "
                         "pantile_max_pinned_bytes allow: warn, a line in the error log; end, it is rolled back as well",
                         nullptr, update_limit<ulong>, 0, &pinned_policies);
static MYSQL_THDVAR_ULONG(lock_wait_timeout, PLUGIN_VAR_RQCMDARG, "Seconds to wait for a row that another has locked",
                          nullptr, nullptr, 50, 0, 100000000, 0);
static MYSQL_THDVAR_ENUM(changed_row_error, PLUGIN_VAR_RQCMDARG,
                         "The error at REPEATABLE READ of a write to a row that has changed since the snapshot: "
                         "record_changed (1020) or deadlock (1213, as programs for other engines expect)",
                         nullptr, nullptr, 1, &changes);

static int check_backup(MYSQL_THD thd, struct st_mysql_sys_var *, void *save, struct st_mysql_value *value);

static char *backup_to, *backup_staged;
static MYSQL_SYSVAR_STR(backup_to, backup_to, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_NOCMDOPT | PLUGIN_VAR_MEMALLOC,
                        "Setting it backs the database up, beside transactions that go on, into this directory, which "
                        "must be empty or not exist, and returns when the backup is durable",
                        check_backup, nullptr, "");
static MYSQL_SYSVAR_STR(backup_staged, backup_staged, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_NOCMDOPT | PLUGIN_VAR_MEMALLOC,
                        "Setting it makes ready a backup into this directory, of the moment of the next FLUSH ENGINE LOGS "
                        "in BACKUP STAGE BLOCK_COMMIT; the status variable Pantile_backup_state shows when it is "
                        "complete. An empty one gives it up",
                        check_backup, nullptr, "");

static int check_backup(MYSQL_THD thd, struct st_mysql_sys_var *variable, void *save, struct st_mysql_value *value)
{
  char buffer[FN_REFLEN];
  int length= sizeof buffer;
  const char *found= value->val_str(value, buffer, &length);
  const char *directory= found ? thd->strmake(found, length) : nullptr;
  *(const char **) save= directory;
  return variable == MYSQL_SYSVAR(backup_to) ? backup::make(thd, directory) : backup::stage(thd, directory);
}

static struct st_mysql_sys_var *variables[]= {
    MYSQL_SYSVAR(data_dir),     MYSQL_SYSVAR(medium),       MYSQL_SYSVAR(durability),        MYSQL_SYSVAR(gc),
    MYSQL_SYSVAR(space_target), MYSQL_SYSVAR(memory_limit), MYSQL_SYSVAR(lock_wait_timeout), MYSQL_SYSVAR(changed_row_error),
    MYSQL_SYSVAR(max_bytes),    MYSQL_SYSVAR(max_pinned_age), MYSQL_SYSVAR(max_pinned_bytes), MYSQL_SYSVAR(on_pinned),
    MYSQL_SYSVAR(row_cache),    MYSQL_SYSVAR(backup_to),    MYSQL_SYSVAR(backup_staged),    nullptr};

/* WAIT and NOWAIT set the server's variable for their statement, as SET STATEMENT does. For all others it is about metadata
 * locks. */
static bool says_how_long_to_wait(THD *thd)
{
  /* Appliers do not set what a statement sets for itself. */
  if (thd->slave_thread)
    return false;
  List_iterator_fast<set_var_base> variables(thd->lex->stmt_var_list);
  while (set_var_base *variable= variables++)
    if (variable->is_system() && !strcasecmp(((set_var *) variable)->var->name.str, "lock_wait_timeout"))
      return true;
  return false;
}

uint64_t lock_wait_of(THD *thd)
{
  const ulonglong own= THDVAR(thd, lock_wait_timeout);
  return (says_how_long_to_wait(thd) ? thd->variables.lock_wait_timeout : own) * 1000;
}

bool reports_changes_as_deadlocks(THD *thd) { return THDVAR(thd, changed_row_error) == 1; }

static pantile_stats counted;

template <backup::Fact which>
static int show_backup(MYSQL_THD, struct st_mysql_show_var *var, void *place, struct system_status_var *, enum enum_var_type)
{
  var->type= SHOW_CHAR;
  strmake((char *) place, backup::fact(which).c_str(), SHOW_VAR_FUNC_BUFF_SIZE - 1);
  var->value= (char *) place;
  return 0;
}

static int show_counters(MYSQL_THD, struct st_mysql_show_var *var, void *, struct system_status_var *, enum enum_var_type)
{
  static struct st_mysql_show_var list[]= {
      {"commits", (char *) &counted.commits, SHOW_ULONGLONG},
      {"aborts", (char *) &counted.aborts, SHOW_ULONGLONG},
      {"running_transactions", (char *) &counted.running, SHOW_ULONGLONG},
      {"rows", (char *) &counted.rows, SHOW_ULONGLONG},
      {"live_bytes", (char *) &counted.live_bytes, SHOW_ULONGLONG},
      {"medium_bytes", (char *) &counted.medium_bytes, SHOW_ULONGLONG},
      {"obsolete_bytes", (char *) &counted.obsolete_bytes, SHOW_ULONGLONG},
      {"free_bytes", (char *) &counted.free_bytes, SHOW_ULONGLONG},
      {"memory_bytes", (char *) &counted.memory_bytes, SHOW_ULONGLONG},
      {"damaged_rows", (char *) &counted.damaged_rows, SHOW_ULONGLONG},
      {"written_bytes", (char *) &counted.written_bytes, SHOW_ULONGLONG},
      {"syncs", (char *) &counted.syncs, SHOW_ULONGLONG},
      {"lock_timeouts", (char *) &pantile_counters.lock_timeouts, SHOW_ULONG},
      {"deadlocks", (char *) &pantile_counters.deadlocks, SHOW_ULONG},
      {"conflicts", (char *) &pantile_counters.conflicts, SHOW_ULONG},
      {"backup_state", (char *) show_backup<backup::STATE>, SHOW_FUNC},
      {"backup_directory", (char *) show_backup<backup::DIRECTORY>, SHOW_FUNC},
      {"backup_message", (char *) show_backup<backup::MESSAGE>, SHOW_FUNC},
      {"backup_binlog_file", (char *) show_backup<backup::BINLOG_FILE>, SHOW_FUNC},
      {"backup_binlog_position", (char *) show_backup<backup::BINLOG_POSITION>, SHOW_FUNC},
      {nullptr, nullptr, SHOW_UNDEF}};
  if (pantile_database)
    pantile_statistics(pantile_database, &counted);
  var->type= SHOW_ARRAY;
  var->value= (char *) &list;
  return 0;
}

static struct st_mysql_show_var status[]= {{"Pantile", (char *) show_counters, SHOW_FUNC}, {nullptr, nullptr, SHOW_UNDEF}};

static handler *create_handler(handlerton *hton, TABLE_SHARE *share, MEM_ROOT *root)
{
  return new (root) ha_pantile(hton, share);
}

static bool show_status(handlerton *, THD *thd, stat_print_fn *print, enum ha_stat_type type)
{
  if (type != HA_ENGINE_STATUS)
    return false;
  pantile_stats now;
  std::ostringstream text;
  if (pantile_statistics(pantile_database, &now) != PANTILE_OK)
    text << pantile_error_message();
  else
    text << "Transactions: " << now.running << " running, " << now.commits << " committed, " << now.aborts
         << " not\nWaits: " << pantile_counters.lock_timeouts << " timed out, " << pantile_counters.deadlocks
         << " deadlocks, " << pantile_counters.conflicts << " rows changed by others\nRows: " << now.rows << ", "
         << now.live_bytes << " bytes\nFile: " << now.medium_bytes << " bytes, of which " << now.obsolete_bytes
         << " are of old versions and " << now.free_bytes << " free\nMemory: " << now.memory_bytes
         << " bytes\nWritten: " << now.written_bytes << " bytes, with " << now.syncs << " syncs\nDamaged rows: "
         << now.damaged_rows << "\n";
  const std::string all= text.str();
  return print(thd, STRING_WITH_LEN("Pantile"), STRING_WITH_LEN(""), all.data(), all.size());
}

static void drop_database(handlerton *, char *path)
{
  std::vector<std::string> names;
  catalog::names_below(path, &names);
  for (const std::string &name : names)
  {
    Entry entry;
    if (catalog::remove(name, &entry) == PANTILE_OK)
      pantile_drop_table(pantile_database, entry.engine_name().c_str());
  }
}

/* The server takes every directory beside its own for a database of SQL. */
void ignore_db_dirs_append(const char *name);

static int start(void *hton)
{
  if (!fits_the_server())
    return 1;
  if (!strchr(data_dir, FN_LIBCHAR))
    ignore_db_dirs_append(data_dir);
  /* A file that may not grow (ulimit -f) is an error of the write, as a full disk is, and no reason to die. */
  struct sigaction limit;
  if (!sigaction(SIGXFSZ, nullptr, &limit) && limit.sa_handler == SIG_DFL)
    signal(SIGXFSZ, SIG_IGN);
  pantile_options *options= pantile_options_new();
  pantile_options_durability(options, (int) durability);
  pantile_options_space_target(options, space_target);
  if (memory_limit)
    pantile_options_memory_limit(options, memory_limit);
  if (row_cache)
    pantile_options_row_cache(options, row_cache);
  if (max_bytes)
    pantile_options_max_bytes(options, max_bytes);
  int code;
  if ((code= pantile_server_medium(options, medium)) != PANTILE_OK ||
      (code= pantile_server_collector(options, gc)) != PANTILE_OK)
    sql_print_error("Pantile: %s", pantile_error_message());
  else if ((code= pantile_open(data_dir, options, &pantile_database)) != PANTILE_OK)
    sql_print_error("Pantile: the database in %s cannot be opened: %s", data_dir, pantile_error_message());
  pantile_options_free(options);
  if (code == PANTILE_OK && (code= catalog::open(pantile_database)) != PANTILE_OK)
  {
    sql_print_error("Pantile: the catalog in %s cannot be read: %s", data_dir, pantile_error_message());
    catalog::close();
    pantile_release(pantile_database);
    pantile_database= nullptr;
  }
  if (code != PANTILE_OK)
    return 1;
  pantile_hton= (handlerton *) hton;
  pantile_hton->create= create_handler;
  pantile_hton->show_status= show_status;
  pantile_hton->drop_database= drop_database;
  pantile_hton->flags= HTON_SUPPORTS_EXTENDED_KEYS;
  static const char *no_files[]= {NullS};
  pantile_hton->tablefile_extensions= no_files;
  pantile_hton->check_version= changed_since;
  fill_in_transactions(pantile_hton);
  backup::fill_in(pantile_hton);
  watch::start();
  limit_pinned();
  return 0;
}

static int stop(void *)
{
  if (!pantile_database)
    return 0;
  backup::end();
  watch::stop();
  if (!decide_all_later())
    sql_print_error("Pantile: a transaction that is decided stays prepared: there is no space to commit it or to roll it back");
  catalog::close();
  if (pantile_close(pantile_database) != PANTILE_OK)
  {
    sql_print_warning("Pantile: %s", pantile_error_message());
    pantile_release(pantile_database);
  }
  pantile_database= nullptr;
  return 0;
}

static struct st_mysql_storage_engine storage_engine= {MYSQL_HANDLERTON_INTERFACE_VERSION};

#define INFORMATION(name, about, start)                                                                                 \
  {                                                                                                                    \
    MYSQL_INFORMATION_SCHEMA_PLUGIN, &information_schema, name, "Pantile's developers", about, PLUGIN_LICENSE_GPL, start, \
        nullptr, 0x0001, nullptr, nullptr, "0.1", MariaDB_PLUGIN_MATURITY_EXPERIMENTAL                                 \
  }

maria_declare_plugin(pantile)
{
  MYSQL_STORAGE_ENGINE_PLUGIN, &storage_engine, "Pantile", "Pantile's developers",
      "Serializable transactions without a log; space is freed in whole blocks", PLUGIN_LICENSE_GPL, start, stop, 0x0001,
      status, variables, "0.1", MariaDB_PLUGIN_MATURITY_EXPERIMENTAL
},
INFORMATION("PANTILE_TABLES", "Rows and space of Pantile's tables", start_tables_table),
INFORMATION("PANTILE_INDEXES", "Indexes of Pantile's tables", start_indexes_table),
INFORMATION("PANTILE_BLOCKS", "Blocks of Pantile by their state", start_blocks_table),
INFORMATION("PANTILE_COLLECTOR", "What Pantile's garbage collector has done, and its queues", start_collector_table),
INFORMATION("PANTILE_TRANSACTIONS", "Transactions that are open in Pantile", start_transactions_table),
INFORMATION("PANTILE_GARBAGE_HOLDERS", "Who holds old versions in Pantile, by table", start_holders_table)
maria_declare_plugin_end;
