/* SPDX-License-Identifier: GPL-2.0-only */
/* Opening tables, and reading and writing rows. */
#include "ha_pantile.h"
#include <algorithm>

int ha_pantile::error(int code, int none)
{
  if (code < PANTILE_MISUSE)
    return handler_error(ha_thd(), code, none);
  Failure &last= failure();
  last.message= engine_message();
  if (code == PANTILE_DUPLICATE_KEY)
  {
    const char *name= pantile_error_index();
    bool is_known= !name || !strcmp(name, "primary");
    last.key= shape.primary;
    for (uint k= 0; name && k < shape.keys.size(); k++)
      if (k != shape.primary && shape.keys[k].name == name)
      {
        last.key= k;
        is_known= true;
      }
    /* An index that has been dropped since the transaction began, and binds it still. */
    if (!is_known)
      code= PANTILE_CONFLICT;
  }
  return last.error= handler_error(ha_thd(), code, none);
}

/* The engine's words for its last error, with the server's name of the table. */
std::string ha_pantile::engine_message() const
{
  const char *engine_name= share && table_share ? pantile_table_name(share->table) : nullptr;
  if (!engine_name)
    return pantile_error_message();
  return error_message(engine_name, std::string(table_share->db.str) + "." + table_share->table_name.str);
}

/* The server puts what it gets here behind words of its own after HA_ERR_LOCK_DEADLOCK. What the engine says of the call
 * is no longer true then: the transaction is rolled back. */
bool ha_pantile::get_error_message(int error, String *to)
{
  const Failure &last= failure();
  std::string message= last.error == error ? last.message : "";
  if (error == HA_ERR_LOCK_DEADLOCK && !message.empty())
    message= ": " + message.substr(0, message.find(';'));
  to->copy(message.data(), message.size(), system_charset_info);
  return false;
}

/* Errors of which the server's own words say too little. */
void ha_pantile::print_error(int error, myf flags)
{
  const Failure &last= failure();
  switch (last.error == error ? error : 0)
  {
  case HA_ERR_ROLLBACK:
    my_printf_error(ER_ROLLBACK_ONLY, "The transaction was rolled back: %s", flags, last.message.c_str());
    break;
  case HA_ERR_RECORD_FILE_FULL:
    my_printf_error(ER_RECORD_FILE_FULL, "The table '%s' is full: %s", flags | ME_ERROR_LOG, table_share->table_name.str,
                    last.message.c_str());
    break;
  case HA_ERR_OUT_OF_MEM:
    my_printf_error(ER_OUT_OF_RESOURCES, "pantile_memory_limit is reached: %s", flags, last.message.c_str());
    break;
  case HA_ERR_INDEX_COL_TOO_LONG:
    my_printf_error(ER_INDEX_COLUMN_TOO_LONG, "%s", flags, last.message.c_str());
    break;
  default:
    handler::print_error(error, flags);
  }
}

/* Opening */

int ha_pantile::open(const char *name, int, uint)
{
  lock_shared_ha_data();
  share= static_cast<Share *>(get_ha_share_ptr());
  int code= PANTILE_OK;
  if (!share)
  {
    share= new Share(name);
    if ((code= share->open()) == PANTILE_OK && shape.find(table, share->table))
      code= make_indexes_agree();
    if (code == PANTILE_OK)
      set_ha_share_ptr(share);
    else
    {
      delete share;
      share= nullptr;
    }
  }
  unlock_shared_ha_data();
  if (code != PANTILE_OK)
    return error(code, HA_ERR_NO_SUCH_TABLE);
  make_row();
  has_one_unique_key= std::count_if(table->key_info, table->key_info + table->s->keys,
                                    [](const KEY &key) { return key.flags & HA_NOSAME; }) == 1;
  read_virtual_columns_from_rows();
  if (int failed= open_indexes())
  {
    free_all();
    return failed;
  }
  /* A scan is in the order of the primary key: an UPDATE of that key has to find its rows first. */
  key_used_on_scan= shape.primary;
  /* The handler of which this is a clone has sampled the keys. */
  if (table->file && table->file != this && table->file->ht == ht)
  {
    stats= table->file->stats;
    sampled_rows= static_cast<const ha_pantile *>(table->file)->sampled_rows;
    return 0;
  }
  return info(HA_STATUS_CONST | HA_STATUS_VARIABLE | HA_STATUS_OPEN);
}

int ha_pantile::open_indexes()
{
  if (!shape.find(table, share->table))
  {
    failure().message= "the columns of the engine's table are not those of the table's definition";
    return HA_ERR_TABLE_DEF_CHANGED;
  }
  for (Left_out &known : left_out)
    known.is_known= false;
  for (pantile_index *index : indexes)
    pantile_index_free(index);
  indexes.assign(shape.keys.size(), nullptr);
  for (uint k= 0; k < shape.keys.size(); k++)
    if (k != shape.primary)
    {
      const char *name= shape.keys[k].name.c_str();
      size_t parts= 0;
      if (int code= pantile_index_open(share->table, name, &indexes[k]))
        return error(code, HA_ERR_TABLE_DEF_CHANGED);
      if (int code= pantile_index_columns(share->table, name, &parts))
        return error(code, HA_ERR_TABLE_DEF_CHANGED);
      shape.keep_parts(table, k, parts);
    }
  generation= share->generation;
  return 0;
}

/* What a record holds of long values is where they are, so they stay there when the transaction goes on. All else is copied
 * into the record at once. */
void ha_pantile::make_row()
{
  pantile_row_free(row);
  row= pantile_row_new();
  view= pantile_row_view(row);
  pantile_row_lend(row, !table->s->blob_fields);
  row_leaves_out= nullptr;
}

void ha_pantile::free_cursor()
{
  pantile_cursor_free(cursor);
  cursor= nullptr;
  is_at_key= false;
}

void ha_pantile::free_all()
{
  free_cursor();
  for (pantile_index *index : indexes)
    pantile_index_free(index);
  indexes.clear();
  pantile_row_free(row);
  row= nullptr;
  view= nullptr;
}

int ha_pantile::close()
{
  end_own();
  free_all();
  return 0;
}

/* Statements */

static const uint ROWS_OF_A_PART= 20000;

/* The engine locks rows, and the server's metadata locks are those of LOCK TABLES: nothing is added to the server's list
 * of table locks. */
THR_LOCK_DATA **ha_pantile::store_lock(THD *, THR_LOCK_DATA **to, thr_lock_type type)
{
  if (type != TL_IGNORE)
    lock_type= type;
  return to;
}

int ha_pantile::begin_own()
{
  pantile_txn_options options= {};
  options.isolation= PANTILE_READ_COMMITTED;
  options.has_lock_wait= true;
  options.lock_wait= lock_wait_of(ha_thd());
  options.name= NAME_OF_CONNECTIONS;
  options.has_number= true;
  options.number= thd_get_thread_id(ha_thd());
  const int code= pantile_begin(pantile_database, &options, &own);
  if (code == PANTILE_OK)
    pantile_interrupt_when(own, Session::is_stopped, ha_thd());
  txn= own;
  txn_number++;
  return code == PANTILE_OK ? 0 : error(code);
}

int ha_pantile::end_own(bool commits)
{
  if (!own)
    return 0;
  const int code= end_transaction(own, commits);
  own= txn= nullptr;
  return code == PANTILE_OK ? 0 : error(code);
}

/* Others must not wait for the rest of the statement to get the next number of a sequence. A copy is committed in parts:
 * it may have more rows than a transaction, and memory, can. */
int ha_pantile::after_write()
{
  if (!own)
    return 0;
  if (copies)
    return ++copied % ROWS_OF_A_PART ? 0 : end_own();
  const int failed= end_own();
  return failed ? failed : begin_own();
}

/* ALTER TABLE by copy, and CREATE TABLE ... SELECT. Nobody else sees the new table before it is complete, and if it fails
 * it is dropped. The parts of a partitioned table, of which there may be many, stay in the session's transaction, and so do
 * temporary tables, which may have been made in the middle of one. */
int ha_pantile::extra(ha_extra_function what)
{
  switch (what)
  {
  case HA_EXTRA_BEGIN_COPY: case HA_EXTRA_BEGIN_ALTER_IGNORE_COPY:
    copies= !is_sequence() && !share->is_temporary && share->name.find(PART) == std::string::npos;
    copied= 0;
    return 0;
  case HA_EXTRA_END_COPY: case HA_EXTRA_ABORT_COPY:
    if (!copies)
      return 0;
    copies= false;
    return end_own(what == HA_EXTRA_END_COPY);
  case HA_EXTRA_DETACH_CHILDREN:
    /* A statement ends. Under LOCK TABLES, what a sequence has begun would last until UNLOCK TABLES. */
    return is_sequence() && !copies ? end_own() : 0;
  case HA_EXTRA_WRITE_CAN_REPLACE: case HA_EXTRA_INSERT_WITH_UPDATE:
    replaces= true;
    return 0;
  case HA_EXTRA_WRITE_CANNOT_REPLACE:
    replaces= false;
    return 0;
  default:
    return 0;
  }
}

/* Whether a statement also locks what it only reads, as it does with InnoDB: it changes the newest rows, and what it writes
 * there must not be made of older ones. So it is with reads of triggers and functions of a statement that writes, but for
 * those by SELECT. Serializable transactions need no locks for that. */
static bool locks_what_it_reads(THD *thd, const Session *session)
{
  const int isolation= thd_tx_isolation(thd);
  if (isolation == ISO_SERIALIZABLE)
    return false;
  switch (thd_sql_command(thd))
  {
  case SQLCOM_UPDATE:
    return isolation > ISO_READ_COMMITTED;
  case SQLCOM_UPDATE_MULTI: case SQLCOM_DELETE: case SQLCOM_DELETE_MULTI:
    return true;
  case SQLCOM_SELECT: case SQLCOM_INSERT_SELECT: case SQLCOM_REPLACE_SELECT: case SQLCOM_CREATE_TABLE:
    return false;
  default:
    return thd->in_sub_stmt && session->writes_rows;
  }
}

int ha_pantile::enter(THD *thd, thr_lock_type type)
{
  const bool writes= type >= TL_FIRST_WRITE;
  Session *session= Session::of(thd);
  locks_rows= writes || type == TL_READ_WITH_SHARED_LOCKS || type == TL_READ_SKIP_LOCKED ||
              locks_what_it_reads(thd, session);
  if (is_sequence())
    return own ? 0 : begin_own();
  skips_locked= type == TL_READ_SKIP_LOCKED || type == TL_WRITE_SKIP_LOCKED;
  /* The server asks for locks of what a statement reads that it may log as a statement, to write to another engine. There
   * are none, so it has to log rows. */
  if (type == TL_READ_NO_INSERT)
    thd->lex->set_stmt_unsafe(LEX::BINLOG_STMT_UNSAFE_MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE);
  const int failed= session->enter(thd, locks_rows, !locks_rows);
  /* What has locked rows may fail at its end, if it has been ended by then: what the transaction has done in other engines
   * is to fail with it, so the server is to prepare it. As the server does, not for temporary tables. */
  Ha_trx_info &statement= thd->ha_data[pantile_hton->slot].ha_info[0];
  if (!failed && locks_rows && !opt_readonly && table->s->tmp_table == NO_TMP_TABLE && statement.is_started())
    statement.set_trx_read_write();
  if (writes && !thd->in_sub_stmt)
    session->writes_rows= true;
  txn= session->transaction();
  txn_number= session->number();
  if (failed)
  {
    session->failure.error= failed;
    session->failure.message= session->why_ended().empty() ? pantile_error_message() : session->why_ended();
  }
  /* TRUNCATE, or an ALTER TABLE that copies, has put another table in the place of the one that the snapshot knows. What
   * only writes new rows may. The table that the statement makes is newer as well, and has no rows but its own. */
  const bool makes_it= writes && thd_sql_command(thd) == SQLCOM_CREATE_TABLE && !thd->lex->tmp_table();
  is_newer= !failed && !makes_it && table->s->tmp_table == NO_TMP_TABLE && session->is_before(share->table);
  return is_newer && !locks_rows ? HA_ERR_TABLE_DEF_CHANGED : failed;
}

/* The session's statement may have ended since the table was locked: the server commits inside some statements, and
 * temporary tables are used without being locked. */
int ha_pantile::ready()
{
  /* TRUNCATE, by another handler of the same statement or under LOCK TABLES. */
  if (generation != share->generation)
  {
    free_cursor();
    if (int failed= open_indexes())
      return failed;
  }
  if (copies && !own)
    return begin_own();
  return running() ? 0 : enter(ha_thd(), lock_type == TL_UNLOCK ? TL_WRITE : lock_type);
}

/* The same for what looks for rows: a snapshot from before the table would find none. */
int ha_pantile::ready_to_look()
{
  const int failed= ready();
  return !failed && is_newer ? HA_ERR_TABLE_DEF_CHANGED : failed;
}

/* The transaction of the statement, or nullptr if it has ended. */
pantile_txn *ha_pantile::running() const
{
  if (own)
    return own;
  const Session *session= Session::found(ha_thd());
  return session && !session->has_ended(txn_number) ? txn : nullptr;
}

int ha_pantile::external_lock(THD *thd, int type)
{
  if (type == F_UNLCK)
  {
    const int failed= end_own();
    txn= nullptr;
    return failed;
  }
  /* LOCK TABLES reads nothing itself. */
  const bool is_read= type == F_RDLCK;
  thr_lock_type wanted= lock_type;
  if (is_read && wanted >= TL_FIRST_WRITE)
    wanted= TL_READ;
  if (!is_read && wanted < TL_FIRST_WRITE)
    wanted= TL_WRITE;
  return enter(thd, is_clone ? lock_type : wanted);
}

/* Clones read for a statement beside its handler, and as that one does: where it locks rows, they come to the newest
 * rows and wait for what others write. So the server's own checks of unique keys, of long columns and of periods, miss
 * nothing that has been written before. */
handler *ha_pantile::clone(const char *name, MEM_ROOT *memory)
{
  auto *made= static_cast<ha_pantile *>(handler::clone(name, memory));
  if (made)
  {
    made->is_clone= true;
    made->lock_type= lock_type;
  }
  return made;
}

int ha_pantile::start_stmt(THD *thd, thr_lock_type type)
{
  /* Of a statement within another: its clones read as it does. */
  lock_type= type;
  return enter(thd, type);
}

int ha_pantile::reset()
{
  pushed_idx_cond= nullptr;
  pushed_idx_cond_keyno= MAX_KEY;
  in_range_check_pushed_down= false;
  free_cursor();
  replaces= false;
  taken_numbers= 0;
  /* Handlers are kept for later statements, and there are many. */
  if (read_large)
  {
    make_row();
    read_large= false;
  }
  return 0;
}

void ha_pantile::unlock_row()
{
  /* Another place of the statement may have locked it, and need it. */
  if (locks_rows && pantile_row_is_newly_locked(row) && running())
    pantile_unlock_row(txn, share->table, row_id);
}

/* Reading */

/* A longer value is not kept in memory from one statement to the next. */
static constexpr size_t KEPT_BYTES= 65536;

bool ha_pantile::has_come_to_row() const
{
  uint64_t id;
  return pantile_cursor_row_id(cursor, &id) == PANTILE_OK;
}

int ha_pantile::open_cursor(uint key, const pantile_range &range)
{
  free_cursor();
  const int code= key == MAX_KEY || key == shape.primary ? pantile_scan(txn, share->table, &range, &cursor)
                                                         : pantile_scan_index(txn, indexes[key], &range, &cursor);
  cursor_txn= txn_number;
  cursor_reverse= range.reverse;
  is_at_end= false;
  sought.clear();
  return code;
}

/* Columns that the statement does not use are not read. Of a row that may be changed all fields are; sort keys never. */
void ha_pantile::leave_out_unused()
{
  const my_bitmap_map *fields= table->read_set->bitmap;
  const size_t words= locks_rows ? 0 : no_words_in_map(table->read_set);
  Left_out &wanted= left_out[locks_rows];
  if (!wanted.is_known || wanted.used.size() != words || !std::equal(wanted.used.begin(), wanted.used.end(), fields))
  {
    std::vector<bool> is_read(shape.columns);
    for (const Stored_field &stored : shape.fields)
      is_read[stored.column]= locks_rows || bitmap_is_set(table->read_set, stored.field);
    wanted.columns.clear();
    for (size_t column= 0; column < shape.columns; column++)
      if (!is_read[column])
        wanted.columns.push_back(column);
    wanted.used.assign(fields, fields + words);
    wanted.is_known= true;
  }
  else if (row_leaves_out == &wanted)
    return;
  pantile_row_leave_out(row, wanted.columns.data(), wanted.columns.size());
  row_leaves_out= &wanted;
}

int ha_pantile::fill(uchar *record)
{
  const pantile_value *found= view->values;
  if (view->len < shape.columns)
  {
    failure().message= "the row has " + std::to_string(view->len) + " values and not " + std::to_string(shape.columns);
    return failure().error= HA_ERR_INTERNAL_ERROR;
  }
  if (table->s->blob_fields)
    for (const pantile_value *value= found; value < found + shape.columns; value++)
      read_large|= value->kind == PANTILE_BYTES && value->as.bytes.len > KEPT_BYTES;
  shape.decode(table, found, record, locks_rows);
  /* A partitioned table merges what its parts hand over in buffers of its own; there the server computes nothing. Of the
   * row that is in the way of another (record[1]) it does, and keeps the long values of the other meanwhile. */
  int failed= 0;
  if (record != table->record[0] && record != table->record[1] && table->vfield)
  {
    table->move_fields(table->field, record, table->record[0]);
    failed= table->update_virtual_fields(this, VCOL_UPDATE_FOR_READ);
    table->move_fields(table->field, table->record[0], record);
  }
  return failed;
}

/* The next row of the cursor. */
int ha_pantile::fetch(uchar *record)
{
  const bool checks= pushed_idx_cond && active_index == pushed_idx_cond_keyno && record == table->record[0];
  leave_out_unused();
  for (;;)
  {
    const int code= locks_rows ? pantile_cursor_next_for_update(cursor, txn, skips_locked, row)
                               : pantile_cursor_next(cursor, txn, row);
    if (code != PANTILE_OK)
    {
      is_at_end= code == PANTILE_DONE;
      return error(code);
    }
    row_id= view->id;
    if (int failed= fill(record))
      return failed;
    if (!checks)
      return 0;
    switch (handler_index_cond_check(this))
    {
    case CHECK_POS:
      return 0;
    case CHECK_OUT_OF_RANGE:
      is_at_end= true;
      return HA_ERR_END_OF_FILE;
    case CHECK_ABORTED_BY_USER:
      return HA_ERR_ABORTED_BY_USER;
    default:
      unlock_row();
    }
  }
}

int ha_pantile::rnd_init(bool scan)
{
  if (int failed= scan ? ready_to_look() : ready())
    return failed;
  if (!scan)
    return 0;
  const int code= open_cursor(MAX_KEY, pantile_range{});
  return code == PANTILE_OK ? 0 : error(code);
}

int ha_pantile::rnd_end()
{
  free_cursor();
  return 0;
}

int ha_pantile::rnd_next(uchar *record)
{
  if (int failed= ready())
    return failed;
  if (is_at_end)
    return HA_ERR_END_OF_FILE;
  /* A cursor that has come to no row is of its statement only. */
  if (cursor_txn != txn_number)
    if (int failed= has_come_to_row() ? turn(false) : rnd_init(true))
      return failed;
  return fetch(record);
}

int ha_pantile::rnd_pos(uchar *record, uchar *position)
{
  if (int failed= ready())
    return failed;
  const uint64_t id= uint8korr(position);
  leave_out_unused();
  const int code= (locks_rows ? pantile_get_row_for_update : pantile_get_row)(txn, share->table, id, row);
  if (code != PANTILE_OK)
    return error(code, HA_ERR_KEY_NOT_FOUND);
  row_id= id;
  return fill(record);
}

int ha_pantile::cmp_ref(const uchar *a, const uchar *b)
{
  const uint64_t first= uint8korr(a), second= uint8korr(b);
  return first < second ? -1 : first > second;
}

int ha_pantile::index_init(uint index, bool)
{
  active_index= index;
  free_cursor();
  return 0;
}

int ha_pantile::index_end()
{
  active_index= MAX_KEY;
  free_cursor();
  return 0;
}

int ha_pantile::read_range_first(const key_range *start, const key_range *end, bool is_equal, bool sorted)
{
  /* Where the server merges indexes it computes no virtual columns, so that the record says nothing of the end of a range.
   * The cursor ends there. */
  if (keyread_enabled() && has_virtual_part(active_index))
    in_range_check_pushed_down= true;
  begins_range= true;
  const int failed= handler::read_range_first(start, end, is_equal, sorted);
  begins_range= false;
  return failed;
}

/* The one row with the primary key in `key_values`, if there is one. */
int ha_pantile::read_at_key(uchar *record)
{
  free_cursor();
  leave_out_unused();
  is_at_key= true;
  const int code= (locks_rows ? pantile_find_row_for_update : pantile_find_row)(txn, share->table, key_values.data(),
                                                                                 key_values.size(), row, &row_id);
  return code == PANTILE_OK ? fill(record) : error(code, HA_ERR_KEY_NOT_FOUND);
}

int ha_pantile::index_read_map(uchar *record, const uchar *key, key_part_map parts, ha_rkey_function how)
{
  if (int failed= ready_to_look())
    return failed;
  const uint length= calculate_key_len(table, active_index, key, parts);
  if (!key || !length)
    return whole_index(record, false);
  const bool is_whole= shape.encode_key(table, active_index, key, length, key_scratch, key_values);
  if (how == HA_READ_KEY_EXACT && active_index == shape.primary && is_whole && !skips_locked && !pushed_idx_cond &&
      key_values.size() == shape.keys[active_index].parts.size())
  {
    sought.assign(key, key + length);
    sought_parts= parts;
    return read_at_key(record);
  }
  const auto from= [&](bool includes) { return from_key(key_values, is_whole, includes); };
  const auto to= [&](bool includes) { return to_key(key_values, is_whole, includes); };
  pantile_range range= {};
  cursor_is_bounded= false;
  switch (how)
  {
  case HA_READ_KEY_EXACT:
    range.from= from(true);
    range.to= to(true);
    cursor_is_bounded= true;
    break;
  case HA_READ_KEY_OR_NEXT:
    range.from= from(true);
    break;
  case HA_READ_AFTER_KEY:
    range.from= from(false);
    break;
  case HA_READ_KEY_OR_PREV: case HA_READ_PREFIX_LAST_OR_PREV:
    range.to= to(true);
    range.reverse= true;
    break;
  case HA_READ_BEFORE_KEY:
    range.to= to(false);
    range.reverse= true;
    break;
  case HA_READ_PREFIX_LAST:
    range.from= from(true);
    range.to= to(true);
    range.reverse= true;
    cursor_is_bounded= true;
    break;
  default:
    return HA_ERR_WRONG_COMMAND;
  }
  end_at_range(range);
  if (int code= open_cursor(active_index, range))
    return error(code, HA_ERR_KEY_NOT_FOUND);
  const int failed= fetch(record);
  if (failed != HA_ERR_END_OF_FILE)
    return failed;
  if (how == HA_READ_KEY_EXACT)
  {
    sought.assign(key, key + length);
    sought_parts= parts;
  }
  return HA_ERR_KEY_NOT_FOUND;
}

/* Where the server begins a range, the cursor ends with it. */
void ha_pantile::end_at_range(pantile_range &range)
{
  if (!begins_range || range.reverse || cursor_is_bounded || !end_range)
    return;
  const bool is_whole= shape.encode_key(table, active_index, end_range->key, end_range->length, end_scratch, end_values);
  range.to= to_key(end_values, is_whole, end_range->flag != HA_READ_BEFORE_KEY);
  cursor_is_bounded= true;
}

int ha_pantile::whole_index(uchar *record, bool reverse)
{
  if (int failed= ready_to_look())
    return failed;
  pantile_range range= {};
  range.reverse= reverse;
  cursor_is_bounded= false;
  end_at_range(range);
  if (int code= open_cursor(active_index, range))
    return error(code);
  return fetch(record);
}

int ha_pantile::index_first(uchar *record) { return whole_index(record, false); }

int ha_pantile::index_last(uchar *record) { return whole_index(record, true); }

/* The cursor goes on from where it is, without the bounds that it had. */
int ha_pantile::turn(bool reverse)
{
  if (int code= pantile_cursor_turn(cursor, txn, reverse))
    return error(code);
  cursor_txn= txn_number;
  cursor_reverse= reverse;
  cursor_is_bounded= is_at_end= false;
  return 0;
}

/* Goes on beside a key that was not found. */
int ha_pantile::beside_sought(uchar *record, bool reverse)
{
  const std::vector<uchar> key= sought;
  const int failed= index_read_map(record, key.data(), sought_parts, reverse ? HA_READ_BEFORE_KEY : HA_READ_AFTER_KEY);
  return failed == HA_ERR_KEY_NOT_FOUND ? HA_ERR_END_OF_FILE : failed;
}

int ha_pantile::step(uchar *record, bool reverse)
{
  if (int failed= ready())
    return failed;
  const bool is_in_range= end_range || pushed_idx_cond;
  /* A query that locks rows and goes backward from a key wants no other row. */
  if (!cursor)
    return is_at_key && !is_in_range && !(reverse && locks_rows) ? beside_sought(record, reverse) : HA_ERR_END_OF_FILE;
  const bool is_same= cursor_txn == txn_number;
  /* Beyond the last row, the one before is the last. */
  if (is_at_end && cursor_reverse != reverse && !cursor_is_bounded)
    return whole_index(record, reverse);
  if (!is_same && !has_come_to_row())
    return sought.empty() || is_in_range ? HA_ERR_END_OF_FILE : beside_sought(record, reverse);
  if (cursor_reverse != reverse || !is_same)
    if (int failed= turn(reverse))
      return failed;
  const int failed= is_at_end ? HA_ERR_END_OF_FILE : fetch(record);
  /* Behind a key that was asked for, COUNT(DISTINCT) along an index goes on forward, and HANDLER READ both ways. Backward, a
   * query for the last rows of the key would lock one that it does not want. */
  if (failed != HA_ERR_END_OF_FILE || !cursor_is_bounded || is_in_range ||
      (reverse && thd_sql_command(ha_thd()) != SQLCOM_HA_READ))
    return failed;
  if (!has_come_to_row() && !sought.empty())
    return beside_sought(record, reverse);
  if (int failed_turn= turn(reverse))
    return failed_turn;
  return fetch(record);
}

int ha_pantile::index_next_same(uchar *record, const uchar *key, uint length)
{
  /* What HA_READ_KEY_EXACT has begun ends with the last row of the key. */
  if (is_at_key)
    return HA_ERR_END_OF_FILE;
  if (cursor && cursor_is_bounded && !cursor_reverse && cursor_txn == txn_number)
    return is_at_end ? HA_ERR_END_OF_FILE : fetch(record);
  return handler::index_next_same(record, key, length);
}

bool ha_pantile::has_virtual_part(uint index) const
{
  const KEY &key= table->key_info[index];
  for (uint p= 0; p < key.user_defined_key_parts; p++)
    if (!table->field[key.key_part[p].fieldnr - 1]->stored_in_db())
      return true;
  return false;
}

/* Virtual columns are computed by the server, from the columns of a row that it has been given. An index has sort keys
 * of them, so no query may be content with the index. */
void ha_pantile::read_virtual_columns_from_rows()
{
  for (uint k= 0; k < table->s->keys; k++)
    if (has_virtual_part(k))
      for (uint f= 0; f < table->s->fields; f++)
        table->field[f]->part_of_key.clear_bit(k);
}

Item *ha_pantile::idx_cond_push(uint index, Item *condition)
{
  if (has_virtual_part(index))
    return condition;
  pushed_idx_cond= condition;
  pushed_idx_cond_keyno= index;
  in_range_check_pushed_down= true;
  return nullptr;
}

/* Writing */

/* REPLACE and ON DUPLICATE KEY UPDATE read the row that is in the way. It is locked before they learn of it: others could
 * delete it in between. Without a snapshot that is the newest row, whatever moment the rest of the statement reads. Returns
 * the engine's code; PANTILE_NOT_FOUND if it has gone already. */
int ha_pantile::lock_duplicate()
{
  const uint duplicate= failure().key;
  if (duplicate == MAX_KEY)
    return PANTILE_NOT_FOUND;
  shape.key_of_row(duplicate, values.data(), key_values);
  pantile_range range= {};
  range.from= from_key(key_values, true, true);
  range.to= to_key(key_values, true, true);
  int code= open_cursor(duplicate, range);
  if (code == PANTILE_OK)
    code= pantile_cursor_next_for_update(cursor, txn, false, row);
  free_cursor();
  return code == PANTILE_DONE ? PANTILE_NOT_FOUND : code;
}

/* Whether another row has the primary key of a new one by now. */
bool ha_pantile::is_taken()
{
  pantile_txn_options options= {};
  options.isolation= PANTILE_READ_COMMITTED;
  options.read_only= true;
  pantile_txn *look;
  if (shape.primary == MAX_KEY || pantile_begin(pantile_database, &options, &look) != PANTILE_OK)
    return false;
  shape.key_of_row(shape.primary, values.data(), key_values);
  pantile_row *other= pantile_row_new();
  const int code= pantile_get(look, share->table, key_values.data(), key_values.size(), other);
  pantile_row_free(other);
  pantile_rollback(look);
  return code == PANTILE_OK;
}

/* As with unique keys, what a snapshot does not show is in the way of a new row all the same. */
int ha_pantile::insert_values()
{
  const int code= pantile_insert(txn, share->table, values.data(), values.size());
  return code == PANTILE_CHANGED && is_taken() ? PANTILE_DUPLICATE_KEY : code;
}

int ha_pantile::insert_or_lock()
{
  /* The server does not say it of a table with triggers. */
  const bool reads_duplicate= replaces || ha_thd()->lex->duplicates == DUP_REPLACE;
  for (;;)
  {
    int code= reads_duplicate ? pantile_insert(txn, share->table, values.data(), values.size()) : insert_values();
    if (code == PANTILE_OK || code != PANTILE_DUPLICATE_KEY || !reads_duplicate)
      return error(code);
    const int found= error(code);
    if (found != HA_ERR_FOUND_DUPP_KEY)
      return found;
    /* A row of a table without a key has a number that no other has. */
    if (failure().key == MAX_KEY)
      return HA_ERR_INTERNAL_ERROR;
    code= lock_duplicate();
    if (code == PANTILE_OK)
      return found;
    if (code != PANTILE_NOT_FOUND)
      return error(code);
    /* A row that a snapshot does not show is in the way of it all the same. */
    if (!Session::of(ha_thd())->sees_newest())
      return error(PANTILE_CHANGED);
    if (thd_killed(ha_thd()))
      return HA_ERR_ABORTED_BY_USER;
  }
}

/* A text is longer than a key has room for. It is the first that has no sort key. */
int ha_pantile::refuse_long_key(const uchar *record)
{
  shape.encode(table, record, scratch, values);
  Failure &last= failure();
  last.error= HA_ERR_INDEX_COL_TOO_LONG;
  last.message= "A value is too long for its key";
  for (uint k= 0; k < shape.keys.size(); k++)
    for (const Part &part : shape.keys[k].parts)
    {
      if (part.sort < 0 || values[part.column].kind != PANTILE_NULL)
        continue;
      const Sort_column &sort= shape.sorts[part.sort];
      const Field *field= table->field[sort.field];
      if (field->is_null_in_record(record))
        continue;
      last.message= std::string("The value of column '") + field->field_name.str + "' is too long for key '" +
                    table->key_info[k].name.str + "': its sort key may take " + std::to_string(sort.most) +
                    " bytes there. Store a shorter one, or make the key over a prefix of the column";
      return last.error;
    }
  return last.error;
}

/* AUTO_INCREMENT goes on behind the number of a row that has been written. */
int ha_pantile::note_number(const uchar *record)
{
  Field *field= table->found_next_number_field;
  if (!field || record != table->record[0])
    return 0;
  const longlong number= field->val_int();
  if ((uint64_t) number - taken_from < taken_numbers)
    return 0;
  const int code= number > 0 || field->is_unsigned() ? share->pass_number((uint64_t) number) : PANTILE_OK;
  return code == PANTILE_OK ? 0 : error(code);
}

/* Rows of the binary log come without virtual columns, which keys need. */
int ha_pantile::compute_virtual(const uchar *record)
{
  if (!table->vfield || record != table->record[0])
    return 0;
  const THD *thd= ha_thd();
  return thd->rgi_slave || thd->rgi_fake ? table->update_virtual_fields(this, VCOL_UPDATE_FOR_WRITE) : 0;
}

int ha_pantile::write_row(const uchar *record)
{
  if (int failed= ready())
    return failed;
  if (int failed= compute_virtual(record))
    return failed;
  number_error= 0;
  if (table->next_number_field && record == table->record[0])
    if (int failed= update_auto_increment())
      /* The server has a code of its own, whatever the reason. */
      return number_error ? number_error : failed;
  if (!shape.encode(table, record, scratch, values))
    return refuse_long_key(record);
  if (shape.primary == MAX_KEY)
  {
    uint64_t number;
    if (int code= share->take_row_number(&number))
      return error(code);
    values[shape.row_number]= pantile_uint(number);
  }
  if (int failed= insert_or_lock())
    return failed;
  if (int failed= note_number(record))
    return failed;
  return after_write();
}

/* UPDATE of several tables finds its rows before it changes any. Of a table that it changes under two names, a row that
 * gets another primary key is no longer where the other name has found it. */
static const TABLE_LIST *other_name(THD *thd, const TABLE *table)
{
  if (thd_sql_command(thd) == SQLCOM_UPDATE_MULTI)
    for (const TABLE_LIST *used= thd->lex->query_tables; used; used= used->next_global)
      if (used->table && used->table != table && used->table->s == table->s && !used->prelocking_placeholder &&
          used->lock_type >= TL_FIRST_WRITE)
        return used;
  return nullptr;
}

int ha_pantile::update_row(const uchar *before, const uchar *after)
{
  if (int failed= ready())
    return failed;
  if (int failed= compute_virtual(after))
    return failed;
  if (!shape.encode_changes(table, before, after, scratch, changes))
    return refuse_long_key(after);
  if (changes.columns.empty())
    return HA_ERR_RECORD_IS_THE_SAME;
  int code= pantile_update_row(txn, share->table, row_id, changes.columns.data(), changes.values.data(),
                               changes.columns.size());
  if (code == PANTILE_PRIMARY_KEY_CHANGED)
  {
    if (const TABLE_LIST *other= other_name(ha_thd(), table))
    {
      my_error(ER_MULTI_UPDATE_KEY_CONFLICT, MYF(0), table->alias.c_ptr_safe(), other->alias.str);
      return HA_ERR_UNSUPPORTED;
    }
    if (!shape.encode(table, after, scratch, values))
      return refuse_long_key(after);
    size_t savepoint;
    if ((code= pantile_savepoint(txn, &savepoint)) == PANTILE_OK)
    {
      code= pantile_delete_row(txn, share->table, row_id);
      if (code == PANTILE_OK)
        code= insert_values();
      if (code != PANTILE_OK)
      {
        const int failed= error(code, HA_ERR_RECORD_DELETED);
        pantile_rollback_to(txn, savepoint);
        pantile_release_savepoint(txn, savepoint);
        return failed;
      }
      pantile_release_savepoint(txn, savepoint);
    }
  }
  if (code != PANTILE_OK)
    return error(code, HA_ERR_RECORD_DELETED);
  if (table->found_next_number_field && bitmap_is_set(table->write_set, table->found_next_number_field->field_index))
    if (int failed= note_number(after))
      return failed;
  return after_write();
}

int ha_pantile::delete_row(const uchar *)
{
  if (int failed= ready())
    return failed;
  const int code= pantile_delete_row(txn, share->table, row_id);
  return code == PANTILE_OK ? after_write() : error(code, HA_ERR_RECORD_DELETED);
}

void ha_pantile::get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first,
                                    ulonglong *got)
{
  uint64_t number= 0;
  const int code= share->take_numbers(offset, increment, wanted, &number);
  number_error= code == PANTILE_OK || code == PANTILE_BAD_VALUE ? 0 : error(code);
  const uint64_t behind= number + increment * wanted;
  taken_from= number;
  taken_numbers= code == PANTILE_OK && behind > number ? behind - number : 0;
  *first= code == PANTILE_OK ? number : ULONGLONG_MAX;
  *got= code == PANTILE_OK ? wanted : 0;
}
