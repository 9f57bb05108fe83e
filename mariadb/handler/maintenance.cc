/* SPDX-License-Identifier: GPL-2.0-only */
/* CHECK, ANALYZE and OPTIMIZE TABLE. */
#include "ha_pantile.h"
#include "reading.h"
#include <utility>

/* Findings of one kind that CHECK TABLE lists. */
static const uint64_t LISTED= 10;

static void report(THD *thd, const std::string &what)
{
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_NOT_KEYFILE, "Pantile: %s", what.c_str());
}

/* Rows, and which ones: a sum of their scattered places, so that their order does not matter. */
struct Found
{
  uint64_t rows= 0, which= 0;

  void add(uint64_t place)
  {
    rows++;
    place= (place ^ (place >> 31)) * 0x7fb5d329728ea185;
    place= (place ^ (place >> 27)) * 0x81dadef4bc2dd44d;
    which+= place ^ (place >> 33);
  }
};

/* Goes through a table or an index. Returns PANTILE_DONE at the end. */
static int go_through(THD *thd, pantile_txn *txn, const pantile_table *table, const pantile_index *index, Found *found)
{
  pantile_cursor *place;
  int code= index ? pantile_scan_index(txn, index, nullptr, &place) : pantile_scan(txn, table, nullptr, &place);
  if (code != PANTILE_OK)
    return code;
  pantile_row *read= pantile_row_new();
  while (!thd_killed(thd) && (code= pantile_cursor_next(place, txn, read)) == PANTILE_OK)
  {
    uint64_t id= 0;
    pantile_cursor_row_id(place, &id);
    found->add(id);
  }
  pantile_row_free(read);
  pantile_cursor_free(place);
  return code;
}

struct Damage
{
  THD *thd;
  uint64_t rows;
};

static void note_damage(void *context, uint64_t tuple, const char *what)
{
  Damage *damage= (Damage *) context;
  if (damage->rows++ < LISTED)
    report(damage->thd, "row " + std::to_string(tuple) + " of the engine is damaged: " + what);
}

static bool is_killed(void *damage) { return thd_killed(((Damage *) damage)->thd); }

/* The checksum of the newest version of every row; then, unless QUICK, whether each index leads to the rows that there
 * are, each once. What an index leads to has the key of the entry, or the engine would not return it. */
int ha_pantile::check(THD *thd, HA_CHECK_OPT *options)
{
  Damage damage= {thd, 0};
  const int verified= pantile_verify_table(pantile_database, share->table, note_damage, is_killed, &damage, nullptr);
  if (verified == PANTILE_CANCELLED)
    return HA_ADMIN_FAILED;
  if (verified != PANTILE_OK)
    return report(thd, engine_message()), HA_ADMIN_FAILED;
  if (damage.rows > LISTED)
    report(thd, "and " + std::to_string(damage.rows - LISTED) + " more rows are damaged");
  if (damage.rows)
    return HA_ADMIN_CORRUPT;
  if (options->flags & T_QUICK)
    return HA_ADMIN_OK;
  Reading reading(running());
  if (!reading.txn)
    return report(thd, engine_message()), HA_ADMIN_FAILED;
  int outcome= HA_ADMIN_OK;
  Found rows;
  int code= go_through(thd, reading.txn, share->table, nullptr, &rows);
  if (code != PANTILE_DONE && !thd_killed(thd))
    return report(thd, engine_message()), HA_ADMIN_CORRUPT;
  for (uint k= 0; k < shape.keys.size() && !thd_killed(thd); k++)
  {
    if (k == shape.primary)
      continue;
    Found entries;
    const std::string index= "index " + shape.keys[k].name;
    code= go_through(thd, reading.txn, share->table, indexes[k], &entries);
    if (thd_killed(thd))
      break;
    if (code != PANTILE_DONE)
      report(thd, index + ": " + engine_message());
    else if (entries.rows != rows.rows)
      report(thd, index + " leads to " + std::to_string(entries.rows) + " rows, and the table has " +
                      std::to_string(rows.rows));
    else if (entries.which != rows.which)
      report(thd, index + " leads to other rows than the table has");
    else
      continue;
    outcome= HA_ADMIN_CORRUPT;
  }
  return thd_killed(thd) ? HA_ADMIN_FAILED : outcome;
}

/* Samples how many rows have the same keys, for all who have the table open. */
int ha_pantile::analyze(THD *, HA_CHECK_OPT *)
{
  info(HA_STATUS_CONST | HA_STATUS_VARIABLE);
  return HA_ADMIN_OK;
}

/* Gives space back, of all tables, since they share one file. What the transaction of the statement could see would stay,
 * and it has done nothing. */
int ha_pantile::optimize(THD *thd, HA_CHECK_OPT *)
{
  Session *session= Session::of(thd);
  session->rollback(thd, true);
  /* The server asks for each part of a table. */
  const bool was_done= std::exchange(session->compacted_by, thd->query_id) == thd->query_id;
  if (was_done && share->name.find(PART) != std::string::npos)
    return HA_ADMIN_OK;
  const auto is_killed= [](void *of) { return (bool) thd_killed((THD *) of); };
  int code= pantile_compact(pantile_database, is_killed, thd);
  if (code == PANTILE_CANCELLED)
    return HA_ADMIN_FAILED;
  if (code != PANTILE_OK)
    return report(thd, engine_message()), error(code), HA_ADMIN_FAILED;
  pantile_stats now;
  if (pantile_statistics(pantile_database, &now) == PANTILE_OK && now.running && now.obsolete_bytes)
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_NOTE, ER_UNKNOWN_ERROR,
                        "Pantile: %llu bytes of old versions stay, which transactions that are open may read",
                        (ulonglong) now.obsolete_bytes);
  return HA_ADMIN_OK;
}
