/* SPDX-License-Identifier: GPL-2.0-only */
/* The engine's tables by the server's names, in a table of the engine: which table of the engine a name means, and the
 * numbers that AUTO_INCREMENT has given out. A change of a row here is what creates, renames, empties or drops a table;
 * a table of the engine that no row names is dropped when the server starts. */
#ifndef PANTILE_CATALOG_H
#define PANTILE_CATALOG_H

#include "common.h"

struct Entry
{
  uint64_t number;          /* the engine's table is "t" and this number */
  uint64_t next_number;     /* for AUTO_INCREMENT; 0 if there is none */
  bool is_temporary;
  std::string engine_name() const { return "t" + std::to_string(number); }
};

/* The engine's words for its last error in this thread, in which a table has another name than the engine's. */
std::string error_message(const std::string &engine_name, const std::string &name);

/* Drops a table of the engine that no name means any more. 0 is none. */
void drop_engine_table(uint64_t number);

namespace catalog
{
  /* Opens the catalog, and drops what a crash has left. */
  int open(pantile_db *db);
  void close();

  /* Codes of the C interface; PANTILE_NOT_FOUND if there is no table of this name. */
  int find(const std::string &name, Entry *entry);
  /* A number that no table has. */
  uint64_t new_number();
  /* Makes a name mean what `entry` says. Returns the number of the engine's table that it meant before, or 0. */
  int put(const std::string &name, const Entry &entry, uint64_t *before);
  int rename(const std::string &from, const std::string &to);
  int remove(const std::string &name, Entry *entry);
  /* Notes that no number from `next` on has been given out; if `was` is given, only if its table of the engine and its
   * number are still those that are noted. */
  int keep_next_number(const std::string &name, uint64_t next, const Entry *was= nullptr);
  /* The names of all tables, with the numbers of the engine's. */
  int all_names(std::vector<std::pair<uint64_t, std::string>> *names);
  int names_below(const std::string &prefix, std::vector<std::string> *names);
}

#endif
