/* SPDX-License-Identifier: GPL-2.0-only */
/* Creating, changing and dropping tables. Whatever a kill interrupts, the catalog says what each name means. */
#include "ha_pantile.h"
#include "reading.h"
#include <algorithm>
#include <set>
#include <unordered_set>

static bool defines_foreign_keys(THD *thd)
{
  LEX *lex= thd->lex;
  if (lex->sql_command != SQLCOM_CREATE_TABLE && lex->sql_command != SQLCOM_ALTER_TABLE)
    return false;
  List_iterator_fast<Key> keys(lex->alter_info.key_list);
  while (const Key *key= keys++)
    if (key->type == Key::FOREIGN_KEY)
      return true;
  return false;
}

/* There is none that could be dropped. */
static bool refuse_dropped_foreign_keys(THD *thd)
{
  if (thd->lex->sql_command != SQLCOM_ALTER_TABLE)
    return false;
  List_iterator_fast<Alter_drop> drops(thd->lex->alter_info.drop_list);
  while (const Alter_drop *drop= drops++)
    if (drop->type == Alter_drop::FOREIGN_KEY && !drop->drop_if_exists)
    {
      my_error(ER_CANT_DROP_FIELD_OR_KEY, MYF(0), "FOREIGN KEY", drop->name);
      return true;
    }
  return false;
}

int ha_pantile::refuse_foreign_keys(THD *thd)
{
  if (refuse_dropped_foreign_keys(thd))
    return HA_ERR_CANNOT_ADD_FOREIGN;
  if (!defines_foreign_keys(thd))
    return 0;
  my_printf_error(ER_CANNOT_ADD_FOREIGN,
                  "ENGINE=Pantile does not enforce foreign keys, so it takes none; leave the FOREIGN KEY clause out",
                  MYF(0));
  return HA_ERR_CANNOT_ADD_FOREIGN;
}

/* A table of the engine that no name means yet. */
static int create_engine_table(const Shape &shape, TABLE *form, const std::string &name)
{
  pantile_table_def *def= shape.definition(form, name);
  if (!def)
    return PANTILE_INVALID;
  const int code= pantile_create_table(pantile_database, def, nullptr);
  pantile_table_def_free(def);
  return code;
}

void drop_engine_table(uint64_t number)
{
  const std::string name= Entry{number, 0, false}.engine_name();
  /* If it cannot be dropped now it is dropped at the next start. */
  if (number && pantile_drop_table(pantile_database, name.c_str()) != PANTILE_OK)
    sql_print_warning("Pantile: %s", pantile_error_message());
  forget_row_numbers(number);
}

static const char *base_of(const char *name)
{
  const char *base= strrchr(name, FN_LIBCHAR);
  return base ? base + 1 : name;
}

/* Refuses to replace a table that the server does not know, because its definition (.frm) is missing: its rows are there.
 * What begins anew after a kill are tables that the server has made for itself, with # in their names. */
static int refuse_unknown(THD *thd, const char *name)
{
  const char *base= base_of(name);
  Entry entry;
  pantile_table *table;
  if (strchr(base, '#'))
    return 0;
  int code= catalog::find(name, &entry);
  if (code == PANTILE_NOT_FOUND)
    return 0;
  if (code == PANTILE_OK)
    code= pantile_table_open(pantile_database, entry.engine_name().c_str(), &table);
  if (code == PANTILE_UNKNOWN_NAME)
    return 0;
  if (code != PANTILE_OK)
    return handler_error(thd, code, HA_ERR_INTERNAL_ERROR);
  pantile_table_free(table);
  my_printf_error(ER_TABLESPACE_EXISTS,
                  "ENGINE=Pantile has a table '%s' whose definition (%s.frm) is missing. Nothing was done, and its rows are "
                  "there: put the file back, or remove the table by DROP TABLE",
                  MYF(0), base, base);
  return HA_ERR_TABLESPACE_EXISTS;
}

/* A copy that is to replace a table has a name of the server's own, with # in it. */
static std::string name_in_statement(THD *thd, const TABLE_SHARE *made)
{
  const TABLE_LIST *first= thd->lex->query_tables;
  const bool is_copy= made->table_name.str[0] == '#' && first;
  const LEX_CSTRING &schema= is_copy ? first->db : made->db, &table= is_copy ? first->table_name : made->table_name;
  return std::string(schema.str, schema.length) + "." + std::string(table.str, table.length);
}

int ha_pantile::create(const char *name, TABLE *form, HA_CREATE_INFO *info)
{
  THD *thd= ha_thd();
  if (int failed= refuse_foreign_keys(thd))
    return failed;
  if (int failed= info->tmp_table() ? 0 : refuse_unknown(thd, name))
    return failed;
  if (info->data_file_name || info->index_file_name)
  {
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_ILLEGAL_HA_CREATE_OPTION,
                        "ENGINE=Pantile keeps all tables in pantile_data_dir; DATA DIRECTORY and INDEX DIRECTORY are "
                        "ignored");
    info->data_file_name= info->index_file_name= nullptr;
  }
  Shape made;
  std::string why;
  if (int failed= made.make(form, &why))
  {
    my_printf_error(ER_ILLEGAL_HA_CREATE_OPTION, "ENGINE=Pantile does not support %s", MYF(0), why.c_str());
    return failed;
  }
  const Entry entry= {catalog::new_number(), info->auto_increment_value, info->tmp_table()};
  int code= create_engine_table(made, form, entry.engine_name());
  uint64_t before= 0;
  if (code == PANTILE_OK)
    code= catalog::put(name, entry, &before);
  if (code != PANTILE_OK)
  {
    my_printf_error(ER_CANT_CREATE_TABLE, "Pantile: %s", MYF(0),
                    error_message(entry.engine_name(), name_in_statement(thd, form->s)).c_str());
    return handler_error(thd, code, HA_ERR_INTERNAL_ERROR);
  }
  drop_engine_table(before);
  return 0;
}

/* Refuses what would take a table away from a transaction that is prepared. One that a client has prepared by XA locks no
 * tables of the server once its connection has gone. */
static int refuse_prepared(const char *name)
{
  Entry entry;
  pantile_table *table;
  if (catalog::find(name, &entry) != PANTILE_OK ||
      pantile_table_open(pantile_database, entry.engine_name().c_str(), &table) != PANTILE_OK)
    return 0;
  const int code= pantile_prepared_check_table(pantile_database, table);
  pantile_table_free(table);
  if (code != PANTILE_BUSY)
    return 0;
  my_printf_error(ER_LOCK_OR_ACTIVE_TRANSACTION,
                  "A prepared transaction has changed rows of the table; nothing was done. XA RECOVER shows it: commit it "
                  "or roll it back first",
                  MYF(0));
  return HA_ERR_LOCK_WAIT_TIMEOUT;
}

/* The same for a part of a table, and all its other parts: the server changes one after the other. */
static int refuse_prepared_parts(const std::string &name)
{
  const size_t part= name.find(PART);
  if (part == std::string::npos)
    return refuse_prepared(name.c_str());
  bool is_any= false;
  pantile_prepared_each(pantile_database, [](void *any, const char *, size_t) { *(bool *) any= true; }, &is_any);
  std::vector<std::string> parts;
  if (is_any)
    catalog::names_below(name.substr(0, part + strlen(PART)), &parts);
  for (const std::string &one : parts)
    if (int refused= refuse_prepared(one.c_str()))
      return refused;
  return 0;
}

int ha_pantile::delete_table(const char *name)
{
  Entry entry;
  /* When the server comes to a part, the definition of the whole has gone. The engine keeps what is prepared there until
   * it is decided, and temporary tables until the next start. */
  if (!strstr(name, PART) && !(catalog::find(name, &entry) == PANTILE_OK && entry.is_temporary))
    if (int refused= refuse_prepared(name))
      return refused;
  const int code= catalog::remove(name, &entry);
  if (code != PANTILE_OK)
    return error(code, HA_ERR_NO_SUCH_TABLE);
  /* DROP TEMPORARY TABLE does not end a transaction that has written to it. */
  Session *session= Session::found(ha_thd());
  if (entry.is_temporary && session && session->is_in_transaction())
    session->drop_at_end(entry.number);
  else
    drop_engine_table(entry.number);
  return 0;
}

/* After an error and after a kill the server renames tables back, also one that has not been renamed. Then the table that is
 * to have the name has it, and the server knows it. (What a part is to become it knows before, too.) */
static bool takes_back_nothing(const char *from, const char *to)
{
  Entry entry;
  const bool is_known= strstr(to, PART) ? !strchr(base_of(from), '#')
                                        : !strstr(from, PART) && access((std::string(to) + reg_ext).c_str(), F_OK) == 0;
  return is_known && catalog::find(to, &entry) == PANTILE_OK;
}

int ha_pantile::rename_table(const char *from, const char *to)
{
  /* A copy that is to replace the table begins so. */
  if (int refused= refuse_prepared(from))
    return refused;
  Entry entry;
  int code= catalog::find(from, &entry);
  if (code == PANTILE_OK && takes_back_nothing(from, to))
    code= PANTILE_NOT_FOUND;
  if (int refused= code == PANTILE_OK ? refuse_unknown(ha_thd(), to) : 0)
    return refused;
  if (code == PANTILE_OK)
    code= catalog::rename(from, to);
  return code == PANTILE_OK ? 0 : error(code, HA_ERR_NO_SUCH_TABLE);
}

int ha_pantile::truncate()
{
  if (int refused= refuse_prepared_parts(share->name))
    return refused;
  Entry entry;
  int code= catalog::find(share->name, &entry);
  if (code != PANTILE_OK)
    return error(code, HA_ERR_NO_SUCH_TABLE);
  entry.number= catalog::new_number();
  entry.next_number= 1;
  uint64_t before= 0;
  /* The indexes of this one may end without the primary key. */
  Shape anew;
  if (int failed= anew.make(table, &failure().message))
    return failed;
  if ((code= create_engine_table(anew, table, entry.engine_name())) == PANTILE_OK &&
      (code= catalog::put(share->name, entry, &before)) == PANTILE_OK)
  {
    free_cursor();
    code= share->reopen();
    drop_engine_table(before);
  }
  return code == PANTILE_OK ? open_indexes() : error(code);
}

int ha_pantile::reset_auto_increment(ulonglong value)
{
  share->set_next_number(value);
  return 0;
}

void ha_pantile::update_create_info(HA_CREATE_INFO *info)
{
  if (!(info->used_fields & HA_CREATE_USED_AUTO))
    info->auto_increment_value= table->found_next_number_field ? share->next_number() : 0;
}

bool ha_pantile::check_if_incompatible_data(HA_CREATE_INFO *info, uint changes)
{
  return changes != IS_EQUAL_YES || (info->used_fields & HA_CREATE_USED_AUTO) ? COMPATIBLE_DATA_NO
                                                                              : COMPATIBLE_DATA_YES;
}

/* What needs no work in the engine. */
static const alter_table_operations ONLY_DEFINITION=
    ALTER_CHANGE_COLUMN_DEFAULT | ALTER_COLUMN_NAME | ALTER_CHANGE_COLUMN | ALTER_OPTIONS | ALTER_RENAME |
    ALTER_RENAME_COLUMN | ALTER_DROP_CHECK_CONSTRAINT | ALTER_CHANGE_INDEX_COMMENT |
    ALTER_COLUMN_OPTION | ALTER_INDEX_IGNORABILITY | ALTER_CHANGE_CREATE_OPTION;

static const alter_table_operations INDEXES=
    ALTER_ADD_INDEX | ALTER_DROP_INDEX | ALTER_ADD_NON_UNIQUE_NON_PRIM_INDEX | ALTER_DROP_NON_UNIQUE_NON_PRIM_INDEX |
    ALTER_ADD_UNIQUE_INDEX | ALTER_DROP_UNIQUE_INDEX |
    ALTER_INDEX_ORDER;

/* What changes columns and leaves rows as they are. */
static const alter_table_operations COLUMNS=
    ALTER_ADD_STORED_BASE_COLUMN | ALTER_DROP_STORED_COLUMN | ALTER_STORED_COLUMN_ORDER | ALTER_ADD_VIRTUAL_COLUMN |
    ALTER_DROP_VIRTUAL_COLUMN | ALTER_VIRTUAL_COLUMN_ORDER | ALTER_COLUMN_NULLABLE | ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE |
    ALTER_PARSER_ADD_COLUMN | ALTER_PARSER_DROP_COLUMN | ALTER_COLUMN_ORDER;

/* The engine remembers what rows of earlier definitions look like. A table that has been changed so often is copied. */
static const uint64_t MOST_CHANGES= 200;

static pantile_table_change *new_change()
{
  pantile_table_change *change;
  return pantile_table_change_new(&change) == PANTILE_OK ? change : nullptr;
}

static bool rename_indexes(pantile_table_change *change, const Alter_inplace_info *info)
{
  bool failed= false;
  for (const auto &key : info->rename_keys)
    failed|= pantile_table_change_rename_index(change, key.old_key->name.str, key.new_key->name.str) != PANTILE_OK;
  return failed;
}

/* Whether indexes get other names in the engine's table alone. Names that others have had are not taken over: if the server
 * kept its old definition after that, it would find one index under the name of another. The server does not name those of
 * which only the case of letters changes. */
static bool can_rename_indexes(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info)
{
  std::set<std::string> before, after;
  for (uint k= 0; k < table->s->keys; k++)
    before.insert(table->key_info[k].name.str);
  for (uint k= 0; k < altered->s->keys; k++)
    after.insert(altered->key_info[k].name.str);
  std::set<std::string> renamed= before;
  for (const auto &key : info->rename_keys)
    if (!renamed.erase(key.old_key->name.str) || before.count(key.new_key->name.str))
      return false;
  for (const auto &key : info->rename_keys)
    renamed.insert(key.new_key->name.str);
  return renamed == after;
}

bool ha_pantile::can_change_columns(TABLE *altered, const Alter_inplace_info *info)
{
  /* The parts of a table would not change at one time. */
  if (info->error_if_not_empty || share->name.find(PART) != std::string::npos)
    return false;
  pantile_table_change *change= new_change();
  const bool can= change && shape.change_to(table, share->table, altered, info, change);
  pantile_table_change_free(change);
  return can;
}

/* Whether all keys of a definition fit an index with the columns of sort keys that the engine's table has: a key of several
 * columns leaves less room for each than a key of one. */
static bool leaves_room(TABLE *altered, const Shape &with_columns_of_now)
{
  Shape anew;
  std::string why;
  if (anew.make(altered, &why))
    return false;
  for (size_t s= 0; s < anew.sorts.size(); s++)
    if (with_columns_of_now.sorts[s].most > anew.sorts[s].most)
      return false;
  return true;
}

/* Whether the rows that are there have to be read for what a column becomes: to find the highest number, or a row against
 * a CHECK that comes with the column. */
static bool asks_rows(const Alter_inplace_info *info)
{
  List_iterator_fast<Create_field> columns(info->alter_info->create_list);
  while (const Create_field *column= columns++)
  {
    if (!column->field)
    {
      if (column->check_constraint)
        return true;
      continue;
    }
    if ((column->flags & AUTO_INCREMENT_FLAG) && !(column->field->flags & AUTO_INCREMENT_FLAG))
      return true;
    const Virtual_column_info *was= column->field->check_constraint, *is= column->check_constraint;
    /* Of a column that stays it is the same one. */
    if (is && is != was)
      return true;
  }
  return false;
}

/* Whether AUTO_INCREMENT = N can be set without touching rows. The parts of a table have numbers of their own. */
bool ha_pantile::can_set_next_number(TABLE *altered, const Alter_inplace_info *info) const
{
  const Field *counted= table->found_next_number_field, *then= altered->found_next_number_field;
  return counted && then && counted->field_index == then->field_index && share->name.find(PART) == std::string::npos &&
         std::any_of(shape.fields.begin(), shape.fields.end(), [&](const Stored_field &field) {
           return field.field == counted->field_index && field.kind == Stored_field::INTEGER;
         }) && !(info->handler_flags & ~ONLY_DEFINITION);
}

/* The highest number that a row has, by the ends of the key over it. Returns the engine's code. */
int ha_pantile::find_highest_number(uint64_t *highest) const
{
  Reading reading(nullptr);
  const uint key= table->s->next_number_index;
  const Stored_field &counted= *std::find_if(shape.fields.begin(), shape.fields.end(), [&](const Stored_field &field) {
    return field.field == table->found_next_number_field->field_index;
  });
  *highest= 0;
  for (bool reverse : {false, true})
  {
    pantile_range end= {};
    end.reverse= reverse;
    end.limit= 1;
    pantile_cursor *place;
    int code= PANTILE_TOO_MANY_TRANSACTIONS;
    if (!reading.txn || (code= key == shape.primary ? pantile_scan(reading.txn, share->table, &end, &place)
                                                    : pantile_scan_index(reading.txn, indexes[key], &end, &place)) != PANTILE_OK)
      return code;
    pantile_row *found= pantile_row_new();
    pantile_value value;
    if ((code= pantile_cursor_next(place, reading.txn, found)) == PANTILE_OK &&
        (code= pantile_row_get(found, counted.column, &value)) == PANTILE_OK &&
        (!counted.is_signed || value.as.integer > 0))
      *highest= std::max<uint64_t>(*highest, value.as.natural);
    pantile_row_free(found);
    pantile_cursor_free(place);
    if (code != PANTILE_OK && code != PANTILE_DONE)
      return code;
  }
  return PANTILE_OK;
}

enum_alter_inplace_result ha_pantile::check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info)
{
  const alter_table_operations wanted= info->handler_flags;
  if (refuse_dropped_foreign_keys(ha_thd()))
    return HA_ALTER_ERROR;
  if (defines_foreign_keys(ha_thd()) || asks_rows(info) ||
      ((info->create_info->used_fields & HA_CREATE_USED_AUTO) && !can_set_next_number(altered, info)) ||
      (wanted & ~(ONLY_DEFINITION | INDEXES | COLUMNS | ALTER_RENAME_INDEX | ALTER_PARTITIONED)) ||
      table_version() >= MOST_CHANGES)
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  /* ALTER IGNORE leaves rows out whose keys are there already. */
  if (info->ignore && (wanted & ALTER_ADD_UNIQUE_INDEX))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  /* The parts of a table would not change at one time, and an index that is dropped may have the name until the end. */
  if ((wanted & ALTER_RENAME_INDEX) &&
      ((wanted & (INDEXES | COLUMNS)) || share->name.find(PART) != std::string::npos ||
       !can_rename_indexes(table, altered, info)))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  if (wanted & COLUMNS)
    return !(wanted & INDEXES) && can_change_columns(altered, info) ? HA_ALTER_INPLACE_INSTANT
                                                                    : HA_ALTER_INPLACE_NOT_SUPPORTED;
  /* The engine's columns must do for the new definition. */
  Shape changed;
  if (!changed.find(altered, share->table) || changed.columns != shape.columns || !shape.keeps_keys_of(changed) ||
      altered->s->primary_key != table->s->primary_key)
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  if ((shape.primary != MAX_KEY) &&
      strcmp(table->key_info[shape.primary].name.str, altered->key_info[changed.primary].name.str))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  /* While one is made the other is still needed, and the engine knows them by their names. */
  for (uint a= 0; a < info->index_add_count; a++)
    for (uint d= 0; d < info->index_drop_count; d++)
      if (!strcmp(info->key_info_buffer[info->index_add_buffer[a]].name.str, info->index_drop_buffer[d]->name.str))
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
  if (info->index_add_count && !leaves_room(altered, changed))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  /* The server takes names for the same that differ in case, and the engine does not. */
  if (!(wanted & ALTER_RENAME_INDEX))
    for (const Key_shape &key : changed.keys)
    {
      bool is_known= std::any_of(shape.keys.begin(), shape.keys.end(),
                                 [&](const Key_shape &known) { return known.name == key.name; });
      for (uint a= 0; a < info->index_add_count; a++)
        is_known|= key.name == info->key_info_buffer[info->index_add_buffer[a]].name.str;
      if (!is_known)
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
  /* An index is built, which is not done at once. */
  if (info->index_add_count && info->alter_info->algorithm(ha_thd()) == Alter_info::ALTER_TABLE_ALGORITHM_INSTANT)
  {
    info->unsupported_reason= "ADD INDEX";
    return HA_ALTER_INPLACE_NOCOPY_NO_LOCK;
  }
  /* A transaction whose definition does not have the index would meet its uniqueness. */
  if (wanted & ALTER_ADD_UNIQUE_INDEX)
    return HA_ALTER_INPLACE_SHARED_LOCK;
  return wanted & INDEXES ? HA_ALTER_INPLACE_NO_LOCK : HA_ALTER_INPLACE_INSTANT;
}

/* Keys among which one that is there twice is looked for: of these it takes 200 MB. */
static const size_t MOST_SEEN= 4 << 20;

/* Finds a key that two rows have, and names it. Of a larger table it may name none. */
void ha_pantile::report_duplicate(TABLE *altered, const Shape &changed, uint key)
{
  std::unordered_set<size_t> seen;
  pantile_cursor *place;
  pantile_row *read= pantile_row_new();
  std::vector<pantile_value> found(changed.columns), key_of_row;
  pantile_txn_options options= {};
  options.read_only= true;
  pantile_txn *reader;
  if (pantile_begin(pantile_database, &options, &reader) == PANTILE_OK)
  {
    if (pantile_scan(reader, share->table, nullptr, &place) == PANTILE_OK)
    {
      while (seen.size() < MOST_SEEN && !thd_killed(ha_thd()) &&
             pantile_cursor_next(place, reader, read) == PANTILE_OK)
      {
        pantile_row_values(read, found.data(), found.size());
        changed.key_of_row(key, found.data(), key_of_row);
        std::string text;
        bool has_null= false;
        for (const pantile_value &value : key_of_row)
        {
          has_null|= value.kind == PANTILE_NULL;
          if (value.kind == PANTILE_BYTES)
            text.append(std::to_string(value.as.bytes.len) + ":").append((const char *) value.as.bytes.data,
                                                                       value.as.bytes.len);
          else
            text.append(std::to_string(value.as.natural) + ",");
        }
        if (!has_null && !seen.insert(std::hash<std::string>()(text)).second)
        {
          changed.decode(altered, found.data(), altered->record[0], true);
          break;
        }
      }
      pantile_cursor_free(place);
    }
    pantile_rollback(reader);
  }
  /* The record may point into the row. */
  print_keydup_error(altered, &altered->key_info[key], MYF(0));
  pantile_row_free(read);
}

/* The thread is that of the statement, also where a table is opened. */
static bool is_killed(void *) { return thd_killed(current_thd); }

int ha_pantile::make_index(const Key_shape &key)
{
  std::vector<const char *> columns;
  auto add= [&](size_t column) {
    const char *name;
    pantile_table_column(share->table, column, &name, nullptr, nullptr);
    columns.push_back(name);
  };
  for (const Part &part : key.parts)
    add(part.column);
  if (!key.null_fields.empty())
    add(key.null_column);
  return pantile_create_index(pantile_database, share->table, key.name.c_str(), columns.data(), columns.size(),
                              key.is_unique, is_killed, nullptr, nullptr);
}

/* A kill may come between a change of the engine's indexes and that of the server's definition. The definition counts:
 * what it does not know is dropped, and what it misses is made. Nobody has the table open yet. */
int ha_pantile::make_indexes_agree()
{
  pantile_names *names;
  int code= pantile_index_names(share->table, &names);
  if (code != PANTILE_OK)
    return code;
  auto is_defined= [&](const char *name) {
    for (uint k= 0; k < shape.keys.size(); k++)
      if (k != shape.primary && shape.keys[k].name == name)
        return true;
    return false;
  };
  std::set<std::string> made;
  for (size_t n= 0; n < pantile_names_len(names) && code == PANTILE_OK; n++)
  {
    const char *name= pantile_names_get(names, n);
    made.insert(name);
    /* One that stays because rows of the table are prepared is no harm. */
    if (!is_defined(name) && (code= pantile_drop_index(pantile_database, share->table, name)) == PANTILE_BUSY)
      code= PANTILE_OK;
  }
  pantile_names_free(names);
  for (uint k= 0; k < shape.keys.size() && code == PANTILE_OK; k++)
    if (k != shape.primary && !made.count(shape.keys[k].name))
      code= make_index(shape.keys[k]);
  return code;
}

/* Makes new indexes, beside transactions that go on. Old ones are dropped when the server has decided. */
bool ha_pantile::inplace_alter_table(TABLE *altered, Alter_inplace_info *info)
{
  if (!info->index_add_count)
    return false;
  Shape changed;
  if (!changed.find(altered, share->table))
  {
    my_error(ER_TABLE_DEF_CHANGED, MYF(0));
    return true;
  }
  for (uint n= 0; n < info->index_add_count; n++)
  {
    const KEY &key= info->key_info_buffer[info->index_add_buffer[n]];
    for (const Key_shape &made : changed.keys)
    {
      if (made.name.empty() || made.name != std::string(key.name.str, key.name.length))
        continue;
      const int code= make_index(made);
      if (code == PANTILE_DUPLICATE_KEY)
        report_duplicate(altered, changed, (uint) (&made - changed.keys.data()));
      else if (code == PANTILE_CANCELLED)
        my_error(ER_QUERY_INTERRUPTED, MYF(0));
      else if (code != PANTILE_OK)
        my_printf_error(ER_INTERNAL_ERROR, "Pantile: %s", MYF(0), engine_message().c_str());
      if (code != PANTILE_OK)
        return true;
    }
  }
  return false;
}

/* Changes the columns of the engine's table and the names of its indexes, in one step: after a kill its version says which
 * of the server's two definitions is the one (`changed_since`). */
bool ha_pantile::change_columns(TABLE *altered, Alter_inplace_info *info)
{
  pantile_table_change *change= new_change();
  bool failed= !change;
  if (!failed && info->handler_flags & COLUMNS)
    failed= !shape.change_to(table, share->table, altered, info, change);
  failed= failed || rename_indexes(change, info) ||
          pantile_alter_table(pantile_database, share->table, change, nullptr) != PANTILE_OK;
  pantile_table_change_free(change);
  if (failed)
    my_printf_error(ER_INTERNAL_ERROR, "Pantile: %s", MYF(0), engine_message().c_str());
  return failed;
}

/* Whether ALTER TABLE has taken effect that found a table at this version, for the server's recovery: 0 if it has. */
int changed_since(handlerton *, const char *path, const LEX_CUSTRING *, ulonglong version)
{
  Entry entry;
  pantile_table *found;
  /* The parts of a partitioned table, which has no name of its own here, are changed only in ways that both definitions
   * bear. */
  if (catalog::find(path, &entry) != PANTILE_OK ||
      pantile_table_open(pantile_database, entry.engine_name().c_str(), &found) != PANTILE_OK)
    return 0;
  const uint64_t now= pantile_table_version(found);
  pantile_table_free(found);
  return now == version;
}

bool ha_pantile::commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit)
{
  uint64_t highest= 0;
  const bool sets_number= info->create_info->used_fields & HA_CREATE_USED_AUTO;
  if (commit && sets_number && find_highest_number(&highest) != PANTILE_OK)
  {
    my_printf_error(ER_INTERNAL_ERROR, "Pantile: %s", MYF(0), engine_message().c_str());
    return true;
  }
  if (commit && change_columns(altered, info))
    return true;
  if (commit && sets_number)
    share->set_next_number(std::max<uint64_t>(info->create_info->auto_increment_value,
                                              highest == ULONGLONG_MAX ? highest : highest + 1));
  auto drop= [&](const char *name) {
    const int code= pantile_drop_index(pantile_database, share->table, name);
    if (code != PANTILE_OK && code != PANTILE_UNKNOWN_NAME)
      sql_print_warning("Pantile: %s", pantile_error_message());
  };
  if (commit)
    for (uint n= 0; n < info->index_drop_count; n++)
      drop(info->index_drop_buffer[n]->name.str);
  else
    for (uint n= 0; n < info->index_add_count; n++)
      drop(info->key_info_buffer[info->index_add_buffer[n]].name.str);
  return false;
}
