/* SPDX-License-Identifier: GPL-2.0-only */
/* Locks of the server are taken here, and what instruments them is not exported. */
#define DISABLE_PSI_MUTEX 1
#define DISABLE_PSI_RWLOCK 1
#include "catalog.h"
#include "session.h"
#include "sql_acl.h"
#include "sql_parse.h"
#include "sql_show.h"
#include "sql_i_s.h"
#include "information.h"
#include <map>

struct st_mysql_information_schema information_schema= {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

namespace
{
  using namespace Show;

  const double MICROSECONDS= 1e6;
  /* Of a statement, what is shown. */
  const uint MAX_QUERY= 1024;

  /* Rows */

  /* Fills a row, column by column. */
  class Row
  {
  public:
    Row(THD *thd, TABLE *table) : thd(thd), table(table) { restore_record(table, s->default_values); }

    void text(const char *value, size_t length)
    {
      Field *field= next();
      field->set_notnull();
      field->store(value, length, system_charset_info);
    }
    void text(const std::string &value) { text(value.data(), value.size()); }
    void text_or_null(const std::string &value) { value.empty() ? null() : text(value); }
    void number(uint64_t value)
    {
      Field *field= next();
      field->set_notnull();
      field->store((longlong) value, true);
    }
    void real(double value)
    {
      Field *field= next();
      field->set_notnull();
      field->store(value);
    }
    void null() { next()->set_null(); }
    void truth(bool value) { text(value ? "YES" : "NO", value ? 3 : 2); }
    /* Returns whether the statement cannot go on. */
    bool store() { return schema_table_store_record(thd, table); }

  private:
    Field *next() { return table->field[column++]; }

    THD *thd;
    TABLE *table;
    uint column= 0;
  };

  int engine_failed()
  {
    my_printf_error(ER_GET_ERRMSG, "Pantile: %s", MYF(0), pantile_error_message());
    return 1;
  }

  /* As InnoDB's tables: they show what others do. Reports an error. */
  bool may_see(THD *thd) { return pantile_database && !check_global_access(thd, PROCESS_ACL); }

  /* Names */

  std::string decoded(const std::string &name)
  {
    char text[NAME_LEN * 5 + 1];
    const uint length= filename_to_tablename(name.c_str(), text, sizeof text, true);
    return std::string(text, length);
  }

  /* A table of the engine as the server knows it. */
  struct Place
  {
    std::string schema, table, partition;
    /* What of it: rows, large values, or what is left of it after a drop. */
    const char *content= "";
  };

  /* From "./schema/table#P#partition#SP#subpartition". */
  Place place_of(const std::string &path)
  {
    Place place;
    const size_t behind_schema= path.rfind(FN_LIBCHAR);
    std::string name= behind_schema == std::string::npos ? path : path.substr(behind_schema + 1);
    if (path.compare(0, 2, "./") == 0 && behind_schema != std::string::npos && behind_schema > 2)
      place.schema= decoded(path.substr(2, behind_schema - 2));
    const size_t part= name.find(PART);
    if (part != std::string::npos)
    {
      std::string parts= name.substr(part + 3);
      name.resize(part);
      const size_t below= parts.find("#SP#");
      place.partition= decoded(parts.substr(0, below));
      if (below != std::string::npos)
        place.partition+= "/" + decoded(parts.substr(below + 4));
    }
    place.table= place.schema.empty() ? name : decoded(name);
    return place;
  }

  class Names
  {
  public:
    int load()
    {
      std::vector<std::pair<uint64_t, std::string>> names;
      const int code= catalog::all_names(&names);
      for (auto &[number, name] : names)
        places[number]= place_of(name);
      return code == PANTILE_OK ? 0 : engine_failed();
    }

    /* The engine calls tables t17, t17: values out of line, t17, table 40 (dropped). */
    Place of(const char *engine_name) const
    {
      if (engine_name[0] != 't' || !my_isdigit(&my_charset_latin1, engine_name[1]))
        return {};
      const auto found= places.find(strtoull(engine_name + 1, nullptr, 10));
      const bool is_dropped= strstr(engine_name, " (dropped)");
      Place place= found == places.end() || is_dropped ? Place() : found->second;
      place.content= is_dropped ? "dropped" : strchr(engine_name, ':') ? "large values" : "rows";
      return place;
    }

    void put(Row *row, const char *engine_name) const
    {
      const Place place= of(engine_name);
      row->text_or_null(place.schema);
      row->text_or_null(place.table);
      row->text_or_null(place.partition);
      row->text_or_null(place.content);
      row->text_or_null(engine_name);
    }

  private:
    std::map<uint64_t, Place> places;
  };

#define NAME_COLUMNS                                                                                                   \
  Column("TABLE_SCHEMA", Varchar(NAME_CHAR_LEN), NULLABLE), Column("TABLE_NAME", Varchar(NAME_CHAR_LEN), NULLABLE),    \
      Column("PARTITION_NAME", Varchar(2 * NAME_CHAR_LEN + 1), NULLABLE),                                              \
      Column("CONTENT", Varchar(16), NULLABLE), Column("ENGINE_NAME", Varchar(128), NULLABLE)

  /* Connections */

  struct Connection
  {
    std::string user, host, command, query, began_with;
    uint64_t seconds= 0;
    uint transactions= 0;
  };
  typedef std::map<uint64_t, Connection> Connections;

  my_bool look_at(THD *thd, Connections *connections)
  {
    const auto found= connections->find(thd->thread_id);
    if (found == connections->end())
      return 0;
    Connection &connection= found->second;
    mysql_mutex_lock(&thd->LOCK_thd_data);
    const Security_context *security= thd->security_ctx;
    if (security && security->user)
      connection.user= security->user;
    if (security && security->host_or_ip)
      connection.host= security->host_or_ip;
    connection.command.assign(command_name[thd->get_command()].str, command_name[thd->get_command()].length);
    if (thd->query())
      connection.query.assign(thd->query(), std::min<size_t>(thd->query_length(), MAX_QUERY));
    const my_time_t now= my_time(0);
    connection.seconds= thd->start_time && now > (my_time_t) thd->start_time ? now - thd->start_time : 0;
    mysql_mutex_unlock(&thd->LOCK_thd_data);
    return 0;
  }

  class Transactions
  {
  public:
    ~Transactions() { pantile_transactions_free(list); }

    int load()
    {
      if (pantile_transactions_list(pantile_database, &list) != PANTILE_OK)
        return engine_failed();
      running.resize(pantile_transactions_len(list));
      for (size_t n= 0; n < running.size(); n++)
      {
        pantile_transactions_get(list, n, &running[n]);
        if (is_of_connection(running[n]))
          connections[running[n].number].transactions++;
      }
      server_threads.iterate(look_at, &connections);
      for (auto &[number, connection] : connections)
        connection.began_with= Session::began_with(number);
      return 0;
    }

    static bool is_of_connection(const pantile_running &txn)
    {
      return txn.has_number && txn.name && !strcmp(txn.name, NAME_OF_CONNECTIONS);
    }

    void put_connection(Row *row, const pantile_running &txn) const
    {
      if (!is_of_connection(txn))
      {
        for (uint n= 0; n < 7; n++)
          row->null();
        return;
      }
      const Connection &connection= connections.at(txn.number);
      row->number(txn.number);
      row->text_or_null(connection.user);
      row->text_or_null(connection.host);
      /* What it has prepared is no longer that in which it is. */
      if (txn.prepared && connection.transactions > 1)
      {
        for (uint n= 0; n < 4; n++)
          row->null();
        return;
      }
      row->text_or_null(connection.command);
      row->number(connection.seconds);
      row->text_or_null(connection.query);
      row->text_or_null(connection.began_with);
    }

    pantile_transactions *list= nullptr;
    std::vector<pantile_running> running;

  private:
    Connections connections;
  };

#define CONNECTION_COLUMNS                                                                                             \
  Column("CONNECTION_ID", Show::ULonglong(), NULLABLE), Column("USER", Varchar(USERNAME_CHAR_LENGTH), NULLABLE),            \
      Column("HOST", Varchar(HOSTNAME_LENGTH), NULLABLE), Column("COMMAND", Varchar(16), NULLABLE),                   \
      Column("COMMAND_SECONDS", Show::ULonglong(), NULLABLE), Column("QUERY", Varchar(MAX_QUERY), NULLABLE), \
      Column("BEGAN_WITH", Varchar(MAX_QUERY), NULLABLE)

  const char *isolation_name(const pantile_running &txn)
  {
    switch (txn.isolation)
    {
    case PANTILE_SERIALIZABLE:
      return "SERIALIZABLE";
    case PANTILE_SNAPSHOT:
      return "SNAPSHOT";
    case PANTILE_READ_COMMITTED:
      return "READ COMMITTED";
    default:
      return "";
    }
  }

  /* Tables, indexes, blocks */

  class Parts
  {
  public:
    ~Parts() { pantile_parts_free(list); }
    int load()
    {
      if (pantile_parts_by_table(pantile_database, &list) != PANTILE_OK)
        return engine_failed();
      return names.load();
    }
    /* Calls `each` for each table until it returns true. */
    template <class Each> int each_table(Each each)
    {
      for (size_t n= 0; n < pantile_parts_len(list); n++)
      {
        pantile_table_parts table;
        pantile_parts_table(list, n, &table);
        if (each(n, table))
          return 1;
      }
      return 0;
    }
    pantile_parts *list= nullptr;
    Names names;
  };

  ST_FIELD_INFO tables_columns[]= {NAME_COLUMNS,
                                   Column("TABLE_ROWS", Show::ULonglong(), NOT_NULL),
                                   Column("BLOCKS", Show::ULonglong(), NOT_NULL),
                                   Column("BYTES", Show::ULonglong(), NOT_NULL),
                                   Column("LIVE_BYTES", Show::ULonglong(), NOT_NULL),
                                   Column("OBSOLETE_BYTES", Show::ULonglong(), NOT_NULL),
                                   Column("UNFILLED_BYTES", Show::ULonglong(), NOT_NULL),
                                   Column("SPACE_AMPLIFICATION", Double(12), NULLABLE),
                                   Column("INDEX_MEMORY_BYTES", Show::ULonglong(), NOT_NULL),
                                   CEnd()};

  int fill_tables(THD *thd, TABLE_LIST *to, COND *)
  {
    if (!may_see(thd))
      return 0;
    Parts parts;
    return parts.load() || parts.each_table([&](size_t n, const pantile_table_parts &table) {
      if (!table.table[0])
        return false;
      pantile_blocks sum= {};
      for (size_t state= 0; state < table.states; state++)
      {
        pantile_blocks blocks;
        pantile_parts_blocks(parts.list, n, state, &blocks);
        sum.blocks+= blocks.blocks;
        sum.bytes+= blocks.bytes;
        sum.live_bytes+= blocks.live_bytes;
        sum.obsolete_bytes+= blocks.obsolete_bytes;
        sum.unfilled_bytes+= blocks.unfilled_bytes;
      }
      uint64_t memory= 0;
      for (size_t k= 0; k < table.indexes; k++)
      {
        pantile_index_parts index;
        pantile_parts_index(parts.list, n, k, &index);
        memory+= index.bytes;
      }
      Row row(thd, to->table);
      parts.names.put(&row, table.table);
      row.number(table.rows);
      row.number(sum.blocks);
      row.number(sum.bytes);
      row.number(sum.live_bytes);
      row.number(sum.obsolete_bytes);
      row.number(sum.unfilled_bytes);
      sum.live_bytes ? row.real((double) sum.bytes / (double) sum.live_bytes) : row.null();
      row.number(memory);
      return row.store();
    });
  }

  ST_FIELD_INFO indexes_columns[]= {NAME_COLUMNS,
                                    Column("INDEX_NAME", Varchar(NAME_CHAR_LEN), NOT_NULL),
                                    Column("IS_UNIQUE", Varchar(3), NOT_NULL),
                                    Column("IS_LOADED", Varchar(3), NOT_NULL),
                                    Column("MEMORY_BYTES", Show::ULonglong(), NOT_NULL),
                                    CEnd()};

  int fill_indexes(THD *thd, TABLE_LIST *to, COND *)
  {
    if (!may_see(thd))
      return 0;
    Parts parts;
    return parts.load() || parts.each_table([&](size_t n, const pantile_table_parts &table) {
      for (size_t k= 0; k < table.indexes; k++)
      {
        pantile_index_parts index;
        pantile_parts_index(parts.list, n, k, &index);
        Row row(thd, to->table);
        parts.names.put(&row, table.table);
        row.text(k ? index.index : "PRIMARY");
        row.truth(index.unique);
        row.truth(index.is_loaded);
        row.number(index.bytes);
        if (row.store())
          return true;
      }
      return false;
    });
  }

  ST_FIELD_INFO blocks_columns[]= {NAME_COLUMNS,
                                   Column("STATE", Varchar(16), NOT_NULL),
                                   Column("BLOCKS", Show::ULonglong(), NOT_NULL),
                                   Column("BYTES", Show::ULonglong(), NOT_NULL),
                                   Column("LIVE_BYTES", Show::ULonglong(), NOT_NULL),
                                   Column("OBSOLETE_BYTES", Show::ULonglong(), NOT_NULL),
                                   Column("UNFILLED_BYTES", Show::ULonglong(), NOT_NULL),
                                   CEnd()};

  int fill_blocks(THD *thd, TABLE_LIST *to, COND *)
  {
    if (!may_see(thd))
      return 0;
    Parts parts;
    return parts.load() || parts.each_table([&](size_t n, const pantile_table_parts &table) {
      for (size_t state= 0; state < table.states; state++)
      {
        pantile_blocks blocks;
        pantile_parts_blocks(parts.list, n, state, &blocks);
        Row row(thd, to->table);
        parts.names.put(&row, table.table);
        row.text(blocks.state);
        row.number(blocks.blocks);
        row.number(blocks.bytes);
        row.number(blocks.live_bytes);
        row.number(blocks.obsolete_bytes);
        row.number(blocks.unfilled_bytes);
        if (row.store())
          return true;
      }
      return false;
    });
  }

  /* The collector */

  ST_FIELD_INFO collector_columns[]= {Column("NAME", Varchar(32), NOT_NULL), Column("VALUE", Show::ULonglong(), NOT_NULL),
                                      Column("MEANING", Varchar(128), NOT_NULL), CEnd()};

  int fill_collector(THD *thd, TABLE_LIST *to, COND *)
  {
    if (!may_see(thd))
      return 0;
    pantile_collector_stats is;
    if (pantile_collector_statistics(pantile_database, &is) != PANTILE_OK)
      return engine_failed();
    const struct
    {
      const char *name;
      uint64_t value;
      const char *meaning;
    } figures[]= {
        {"PENDING_BLOCKS", is.pending_blocks, "Queue: blocks that are mostly obsolete"},
        {"QUEUED_BLOCKS", is.queued_blocks, "Queue: blocks that no transaction can see into"},
        {"FROZEN_BLOCKS", is.frozen_blocks, "Queue: blocks that are being emptied"},
        {"LONG_TRANSACTION_BLOCKS", is.long_tx_blocks, "Queue: blocks that wait for a long transaction"},
        {"WAITING_VERSIONS", is.waiting_versions, "Queue: old versions, with collectors that free them one by one"},
        {"WAITING_TOMBSTONES", is.waiting_tombstones, "Queue: deleted rows until they hide nothing any more"},
        {"STALE_INDEX_ENTRIES", is.stale_entries, "Queue: index entries of old versions"},
        {"QUEUE_MEMORY_BYTES", is.queue_bytes, "Memory of the queues"},
        {"BLOCKS_RECLAIMED", is.blocks_reclaimed, "Blocks freed since the start"},
        {"BLOCKS_BYPASSED", is.blocks_bypassed, "The part of them freed although an older transaction still ran"},
        {"BLOCKS_COMPACTED", is.blocks_compacted, "The part of them emptied early because space was short"},
        {"VERSIONS_RECLAIMED", is.versions_reclaimed, "Old versions whose space was freed since the start"},
        {"SURVIVORS_RELOCATED", is.survivors_relocated, "Live versions copied since the start"},
        {"COPIED_BYTES", is.copied_bytes, "Their bytes"},
        {"PINNED_BYTES", is.pinned_bytes, "Bytes of old versions that transactions hold back"},
        {"ROOM_BYTES", is.room_bytes, "Bytes that can still be written"},
        {"PIN_WARNINGS", is.pin_warnings, "Transactions warned of because they held back too much"},
        {"PIN_ENDS", is.pin_ends, "Transactions ended because they held back too much"},
        {"ENDED_NOT_ROLLED_BACK", is.ended_not_dropped, "Transactions that were ended and still hold what they held"},
    };
    for (const auto &figure : figures)
    {
      Row row(thd, to->table);
      row.text(figure.name);
      row.number(figure.value);
      row.text(figure.meaning);
      if (row.store())
        return 1;
    }
    return 0;
  }

  /* Transactions, and what they hold */

  ST_FIELD_INFO transactions_columns[]= {Column("TRX_ID", Show::ULonglong(), NULLABLE),
                                         CONNECTION_COLUMNS,
                                         Column("NAME", Varchar(64), NULLABLE),
                                         Column("ISOLATION", Varchar(16), NULLABLE),
                                         Column("READ_ONLY", Varchar(3), NOT_NULL),
                                         Column("IS_PREPARED", Varchar(3), NOT_NULL),
                                         Column("AGE_SECONDS", Double(12), NOT_NULL),
                                         Column("HELD_BYTES", Show::ULonglong(), NOT_NULL),
                                         Column("HELD_BLOCKS", Show::ULonglong(), NOT_NULL),
                                         Column("FREED_BYTES", Show::ULonglong(), NOT_NULL),
                                         Column("HELD_MEMORY_BYTES", Show::ULonglong(), NOT_NULL),
                                         Column("WRITE_MEMORY_BYTES", Show::ULonglong(), NOT_NULL),
                                         Column("ENDED_BY", Varchar(128), NULLABLE),
                                         CEnd()};

  int fill_transactions(THD *thd, TABLE_LIST *to, COND *)
  {
    if (!may_see(thd))
      return 0;
    Transactions transactions;
    if (transactions.load())
      return 1;
    for (const pantile_running &txn : transactions.running)
    {
      Row row(thd, to->table);
      txn.id ? row.number(txn.id) : row.null();
      transactions.put_connection(&row, txn);
      row.text_or_null(txn.name ? txn.name : "");
      row.text_or_null(isolation_name(txn));
      row.truth(txn.read_only);
      row.truth(txn.prepared);
      row.real((double) txn.age / MICROSECONDS);
      row.number(txn.held_bytes);
      row.number(txn.held_blocks);
      row.number(txn.freed_bytes);
      row.number(txn.held_memory);
      row.number(txn.buffer_bytes);
      row.text_or_null(txn.ended ? txn.ended : "");
      if (row.store())
        return 1;
    }
    return 0;
  }

  ST_FIELD_INFO holders_columns[]= {Column("HOLDER", Varchar(64), NOT_NULL),
                                    Column("TRX_ID", Show::ULonglong(), NULLABLE),
                                    CONNECTION_COLUMNS,
                                    Column("IS_PREPARED", Varchar(3), NULLABLE),
                                    Column("AGE_SECONDS", Double(12), NULLABLE),
                                    NAME_COLUMNS,
                                    Column("HELD_BYTES", Show::ULonglong(), NOT_NULL),
                                    Column("HELD_BLOCKS", Show::ULonglong(), NULLABLE),
                                    Column("HOLDER_HELD_BYTES", Show::ULonglong(), NOT_NULL),
                                    Column("HOLDER_FREED_BYTES", Show::ULonglong(), NULLABLE),
                                    Column("FULL_IN_SECONDS", Show::ULonglong(), NULLABLE),
                                    CEnd()};

  struct Full
  {
    Full() { is_known= pantile_full_in(pantile_database, &seconds) == PANTILE_OK; }
    void put(Row *row) const { is_known ? row->number(seconds) : row->null(); }
    bool is_known;
    uint64_t seconds= 0;
  };

  bool put_holder(THD *thd, TABLE *to, const Transactions &transactions, size_t n, const Names &names, const Full &full)
  {
    const pantile_running &txn= transactions.running[n];
    for (size_t t= 0; t < txn.tables; t++)
    {
      pantile_held held;
      pantile_transactions_held(transactions.list, n, t, &held);
      Row row(thd, to);
      const char *name= txn.name ? txn.name : "transaction";
      row.text(txn.has_number ? std::string(name) + " " + std::to_string(txn.number) : std::string(name));
      txn.id ? row.number(txn.id) : row.null();
      transactions.put_connection(&row, txn);
      row.truth(txn.prepared);
      row.real((double) txn.age / MICROSECONDS);
      names.put(&row, held.table);
      row.number(held.bytes);
      row.number(held.blocks);
      row.number(txn.held_bytes);
      row.number(txn.freed_bytes);
      full.put(&row);
      if (row.store())
        return true;
    }
    return false;
  }

  /* Processes that read the database beside the server. What they hold is not known by table. */
  int put_processes(THD *thd, TABLE *to, const Full &full)
  {
    pantile_reader readers[64];
    size_t found= 0;
    if (pantile_reading_processes(pantile_database, readers, array_elements(readers), &found) != PANTILE_OK)
      return engine_failed();
    for (size_t n= 0; n < std::min<size_t>(found, array_elements(readers)); n++)
    {
      if (!readers[n].held_bytes)
        continue;
      Row row(thd, to);
      row.text("process " + (readers[n].process ? std::to_string(readers[n].process) : std::string("from before the start")));
      for (uint column= 0; column < 9; column++)
        row.null();
      readers[n].age ? row.real((double) readers[n].age / MICROSECONDS) : row.null();
      for (uint column= 0; column < 5; column++)
        row.null();
      row.number(readers[n].held_bytes);
      row.null();
      row.number(readers[n].held_bytes);
      row.null();
      full.put(&row);
      if (row.store())
        return 1;
    }
    return 0;
  }

  int fill_holders(THD *thd, TABLE_LIST *to, COND *)
  {
    if (!may_see(thd))
      return 0;
    Transactions transactions;
    Names names;
    if (transactions.load() || names.load())
      return 1;
    const Full full;
    for (size_t n= 0; n < transactions.running.size(); n++)
      if (put_holder(thd, to->table, transactions, n, names, full))
        return 1;
    return put_processes(thd, to->table, full);
  }

  int start(void *schema, ST_FIELD_INFO *columns, int (*fill)(THD *, TABLE_LIST *, COND *))
  {
    auto *table= (ST_SCHEMA_TABLE *) schema;
    table->fields_info= columns;
    table->fill_table= fill;
    return 0;
  }
}

int start_tables_table(void *schema) { return start(schema, tables_columns, fill_tables); }
int start_indexes_table(void *schema) { return start(schema, indexes_columns, fill_indexes); }
int start_blocks_table(void *schema) { return start(schema, blocks_columns, fill_blocks); }
int start_collector_table(void *schema) { return start(schema, collector_columns, fill_collector); }
int start_transactions_table(void *schema) { return start(schema, transactions_columns, fill_transactions); }
int start_holders_table(void *schema) { return start(schema, holders_columns, fill_holders); }
