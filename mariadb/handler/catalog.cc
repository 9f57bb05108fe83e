/* SPDX-License-Identifier: GPL-2.0-only */
#include "catalog.h"
#include "session.h"
#include <atomic>
#include <set>

namespace
{
  const char *const OWN_TABLE= "#tables";
  enum { NAME, NUMBER, NEXT, TEMPORARY, COLUMNS };

  pantile_db *db;
  pantile_table *table;
  std::atomic<uint64_t> last_number;

  pantile_value name_value(const std::string &name)
  {
    return pantile_bytes((const uint8_t *) name.data(), name.size());
  }

  struct Work
  {
    int (*body)(pantile_txn *, Work *);
    const std::string *name;
    const std::string *other;
    Entry *entry;
    uint64_t number;
    const Entry *was;
  };

  int run(Work *work)
  {
    auto call= [](pantile_txn *txn, void *work) { return ((Work *) work)->body(txn, (Work *) work); };
    /* If there is no room, the error is not to name a transaction of the connection that it fails. */
    const THD *thd= current_thd;
    pantile_txn_options options= {};
    options.name= thd ? NAME_OF_CONNECTIONS : nullptr;
    options.has_number= thd;
    options.number= thd ? thd_get_thread_id(thd) : 0;
    return pantile_run(db, &options, call, work);
  }

  int get(pantile_txn *txn, const std::string &name, Entry *entry)
  {
    pantile_row *row= pantile_row_new();
    const pantile_value key= name_value(name);
    int code= pantile_get(txn, table, &key, 1, row);
    pantile_value values[COLUMNS];
    if (code == PANTILE_OK)
      code= pantile_row_values(row, values, COLUMNS);
    if (code == PANTILE_OK)
      *entry= {values[NUMBER].as.natural, values[NEXT].as.natural, values[TEMPORARY].as.boolean};
    pantile_row_free(row);
    return code;
  }

  int set(pantile_txn *txn, const std::string &name, const Entry &entry)
  {
    const pantile_value row[]= {name_value(name), pantile_uint(entry.number), pantile_uint(entry.next_number),
                                pantile_bool(entry.is_temporary)};
    return pantile_upsert(txn, table, row, COLUMNS, nullptr);
  }

  int erase(pantile_txn *txn, const std::string &name)
  {
    const pantile_value key= name_value(name);
    return pantile_delete(txn, table, &key, 1);
  }

  int all(std::vector<std::pair<std::string, Entry>> *found)
  {
    pantile_txn_options options= {};
    options.read_only= true;
    pantile_txn *txn;
    pantile_cursor *cursor;
    int code= pantile_begin(db, &options, &txn);
    if (code != PANTILE_OK)
      return code;
    code= pantile_scan(txn, table, nullptr, &cursor);
    if (code == PANTILE_OK)
    {
      pantile_row *row= pantile_row_new();
      pantile_value values[COLUMNS];
      while ((code= pantile_cursor_next(cursor, txn, row)) == PANTILE_OK)
      {
        pantile_row_values(row, values, COLUMNS);
        found->push_back({std::string((const char *) values[NAME].as.bytes.data, values[NAME].as.bytes.len),
                          {values[NUMBER].as.natural, values[NEXT].as.natural, values[TEMPORARY].as.boolean}});
      }
      pantile_row_free(row);
      pantile_cursor_free(cursor);
    }
    pantile_rollback(txn);
    return code == PANTILE_DONE ? PANTILE_OK : code;
  }

  int make()
  {
    pantile_table_def *def;
    int code= pantile_table_def_new(OWN_TABLE, &def);
    if (code != PANTILE_OK)
      return code;
    const char *key= "name";
    pantile_table_def_column(def, key, {PANTILE_TYPE_BYTES, 1500, 0}, false);
    pantile_table_def_column(def, "number", {PANTILE_TYPE_UINT, 8, 0}, false);
    pantile_table_def_column(def, "next", {PANTILE_TYPE_UINT, 8, 0}, false);
    pantile_table_def_column(def, "temporary", {PANTILE_TYPE_BOOL, 0, 0}, false);
    pantile_table_def_primary_key(def, &key, 1);
    code= pantile_create_table(db, def, &table);
    pantile_table_def_free(def);
    return code;
  }
}

std::string error_message(const std::string &engine_name, const std::string &name)
{
  std::string message= pantile_error_message();
  const std::string from= '"' + engine_name + '"', to= '"' + name + '"';
  for (size_t at= 0; (at= message.find(from, at)) != std::string::npos; at+= to.size())
    message.replace(at, from.size(), to);
  return message;
}

int catalog::open(pantile_db *database)
{
  db= database;
  int code= pantile_table_open(db, OWN_TABLE, &table);
  if (code == PANTILE_UNKNOWN_NAME)
    code= make();
  std::vector<std::pair<std::string, Entry>> found;
  if (code == PANTILE_OK)
    code= all(&found);
  std::set<std::string> named= {OWN_TABLE};
  for (auto &[name, entry] : found)
  {
    if (code == PANTILE_OK && entry.is_temporary)
    {
      Entry ignored;
      code= remove(name, &ignored);
    }
    else
      named.insert(entry.engine_name());
    last_number= std::max(last_number.load(), entry.number);
  }
  pantile_names *names;
  if (code != PANTILE_OK || (code= pantile_table_names(db, &names)) != PANTILE_OK)
    return code;
  for (size_t n= 0; n < pantile_names_len(names) && code == PANTILE_OK; n++)
  {
    const std::string name= pantile_names_get(names, n);
    /* Such names are not of tables of the server. */
    if (name[0] == '#' || named.count(name))
      continue;
    code= pantile_drop_table(db, name.c_str());
    if (code == PANTILE_BUSY)
    {
      /* Its number is not for another. */
      last_number= std::max<uint64_t>(last_number, strtoull(name.c_str() + 1, nullptr, 10));
      sql_print_warning("Pantile: a table that has no name any more stays until the server is next started: %s",
                        pantile_error_message());
      code= PANTILE_OK;
    }
  }
  pantile_names_free(names);
  return code;
}

void catalog::close()
{
  pantile_table_free(table);
  table= nullptr;
  last_number= 0;
}

int catalog::find(const std::string &name, Entry *entry)
{
  pantile_txn_options options= {};
  options.read_only= true;
  pantile_txn *txn;
  int code= pantile_begin(db, &options, &txn);
  if (code != PANTILE_OK)
    return code;
  code= get(txn, name, entry);
  pantile_rollback(txn);
  return code;
}

uint64_t catalog::new_number() { return ++last_number; }

int catalog::put(const std::string &name, const Entry &entry, uint64_t *before)
{
  Entry copy= entry;
  Work work= {[](pantile_txn *txn, Work *work) {
                Entry old;
                const int code= get(txn, *work->name, &old);
                work->number= code == PANTILE_OK ? old.number : 0;
                return code >= PANTILE_MISUSE ? code : set(txn, *work->name, *work->entry);
              },
              &name, nullptr, &copy, 0, nullptr};
  const int code= run(&work);
  *before= work.number;
  return code;
}

int catalog::rename(const std::string &from, const std::string &to)
{
  Entry entry;
  Work work= {[](pantile_txn *txn, Work *work) {
                int code= get(txn, *work->name, work->entry);
                if (code == PANTILE_OK)
                  code= erase(txn, *work->name);
                return code == PANTILE_OK ? set(txn, *work->other, *work->entry) : code;
              },
              &from, &to, &entry, 0, nullptr};
  return run(&work);
}

int catalog::remove(const std::string &name, Entry *entry)
{
  Work work= {[](pantile_txn *txn, Work *work) {
                const int code= get(txn, *work->name, work->entry);
                return code == PANTILE_OK ? erase(txn, *work->name) : code;
              },
              &name, nullptr, entry, 0, nullptr};
  return run(&work);
}

int catalog::keep_next_number(const std::string &name, uint64_t next, const Entry *was)
{
  Entry entry;
  Work work= {[](pantile_txn *txn, Work *work) {
                const int code= get(txn, *work->name, work->entry);
                const Entry *was= work->was;
                if (code != PANTILE_OK ||
                    (was && (work->entry->number != was->number || work->entry->next_number != was->next_number)))
                  return code;
                work->entry->next_number= work->number;
                return set(txn, *work->name, *work->entry);
              },
              &name, nullptr, &entry, next, was};
  return run(&work);
}

int catalog::all_names(std::vector<std::pair<uint64_t, std::string>> *names)
{
  std::vector<std::pair<std::string, Entry>> found;
  const int code= all(&found);
  for (auto &[name, entry] : found)
    names->push_back({entry.number, name});
  return code;
}

int catalog::names_below(const std::string &prefix, std::vector<std::string> *names)
{
  std::vector<std::pair<std::string, Entry>> found;
  const int code= all(&found);
  for (auto &[name, entry] : found)
    if (name.compare(0, prefix.size(), prefix) == 0)
      names->push_back(name);
  return code;
}
