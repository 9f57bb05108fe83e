/* SPDX-License-Identifier: GPL-2.0-only */
/* What the handlers of a table share: the engine's table, and numbers that are given out. */
#include "ha_pantile.h"
#include <unordered_map>

/* Numbers for which one note in the catalog is enough. After a crash as many may be left out. */
static const uint64_t NUMBERS_AT_ONCE= 1000;

Share::~Share()
{
  /* The server may have opened the table anew before it comes here, and numbers have been given out since. */
  const Entry was= {engine_number, kept, is_temporary};
  if (kept > next)
    catalog::keep_next_number(name, next, &was);
  pantile_table_free(table);
}

int Share::open()
{
  Entry entry;
  int code= catalog::find(name, &entry);
  if (code == PANTILE_OK)
    code= pantile_table_open(pantile_database, entry.engine_name().c_str(), &table);
  next= std::max<uint64_t>(entry.next_number, 1);
  /* The first number that is given out is noted, so that an earlier share does not take its own note back. */
  kept= 0;
  engine_number= entry.number;
  is_temporary= entry.is_temporary;
  return code;
}

int Share::reopen()
{
  pantile_table_free(table);
  table= nullptr;
  generation++;
  return open();
}

int Share::keep(uint64_t number)
{
  const int code= catalog::keep_next_number(name, number);
  if (code == PANTILE_OK)
    kept= number;
  return code;
}

int Share::take_numbers(uint64_t offset, uint64_t increment, uint64_t wanted, uint64_t *first)
{
  std::lock_guard<std::mutex> alone(numbers);
  /* As the server computes it. */
  uint64_t number= next;
  if (increment > 1)
    number= (next - 1 + increment - offset) / increment * increment + offset;
  if (number < next)
    return PANTILE_BAD_VALUE;
  *first= number;
  const uint64_t after= number + increment * wanted;
  if (after < number)
  {
    next= ULONGLONG_MAX;
    return keep_numbers();
  }
  next= after;
  return keep_numbers();
}

int Share::pass_number(uint64_t number)
{
  std::lock_guard<std::mutex> alone(numbers);
  if (number < next && next <= kept)
    return PANTILE_OK;
  next= std::max(next, number == ULONGLONG_MAX ? number : number + 1);
  return keep_numbers();
}

/* Notes ahead which numbers are taken, for the next start of the server. */
int Share::keep_numbers()
{
  if (next <= kept)
    return PANTILE_OK;
  return keep(next > ULONGLONG_MAX - NUMBERS_AT_ONCE ? next : next + NUMBERS_AT_ONCE);
}

void Share::set_next_number(uint64_t number)
{
  std::lock_guard<std::mutex> alone(numbers);
  next= std::max<uint64_t>(number, 1);
  keep(next);
}

uint64_t Share::next_number()
{
  std::lock_guard<std::mutex> alone(numbers);
  return next;
}

/* The next numbers of rows, by tables of the engine. A transaction that has not ended has taken numbers that no other
 * sees, also when all that the server keeps of the table has been closed meanwhile. So they last as long as the server. */
static std::mutex row_numbers;
static std::unordered_map<uint64_t, uint64_t> next_rows;

void forget_row_numbers(uint64_t engine_number)
{
  std::lock_guard<std::mutex> alone(row_numbers);
  next_rows.erase(engine_number);
}

/* More rows than anybody prepares. */
static const uint64_t PREPARED_ROWS= 1ULL << 32;

/* The number behind the last row that is there. Those of rows that are prepared are not seen. */
static int find_next_row(const pantile_table *table, uint64_t *next)
{
  pantile_txn_options options= {};
  options.isolation= PANTILE_READ_COMMITTED;
  options.read_only= true;
  pantile_txn *txn;
  pantile_cursor *cursor;
  pantile_range last= {};
  last.reverse= true;
  last.limit= 1;
  size_t number_column;
  int code;
  if ((code= pantile_table_column_number(table, ROW_NUMBER, &number_column)) != PANTILE_OK ||
      (code= pantile_begin(pantile_database, &options, &txn)) != PANTILE_OK)
    return code;
  if ((code= pantile_scan(txn, table, &last, &cursor)) == PANTILE_OK)
  {
    pantile_row *row= pantile_row_new();
    pantile_value value;
    code= pantile_cursor_next(cursor, txn, row);
    if (code == PANTILE_OK && (code= pantile_row_get(row, number_column, &value)) == PANTILE_OK)
      *next= value.as.natural + 1;
    else if (code == PANTILE_DONE)
    {
      *next= 1;
      code= PANTILE_OK;
    }
    pantile_row_free(row);
    pantile_cursor_free(cursor);
  }
  pantile_rollback(txn);
  if (code == PANTILE_OK && pantile_prepared_check_table(pantile_database, table) == PANTILE_BUSY)
    *next+= PREPARED_ROWS;
  return code;
}

int Share::take_row_number(uint64_t *number)
{
  std::lock_guard<std::mutex> alone(row_numbers);
  uint64_t &next_row= next_rows[engine_number];
  if (next_row == 0)
    if (int code= find_next_row(table, &next_row))
      return code;
  *number= next_row++;
  return PANTILE_OK;
}
