/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HA_PANTILE_H
#define HA_PANTILE_H

#include "catalog.h"
#include "session.h"
#include "shape.h"

/* What the handlers of a table share while it is open. */
class Share : public Handler_share
{
public:
  explicit Share(const char *name) : name(name) {}
  ~Share() override;

  /* Opens the engine's table. Returns a code of the C interface. */
  int open();
  /* The same after TRUNCATE has put another table in its place. */
  int reopen();

  /* The first of `wanted` numbers for AUTO_INCREMENT. */
  int take_numbers(uint64_t offset, uint64_t increment, uint64_t wanted, uint64_t *first);
  /* A row with this number was written. */
  int pass_number(uint64_t number);
  void set_next_number(uint64_t next);
  uint64_t next_number();
  /* For rows of tables without a primary key. */
  int take_row_number(uint64_t *number);

  const std::string name;
  pantile_table *table= nullptr;
  /* How often another table has come into its place. */
  uint64_t generation= 0;
  /* CREATE TEMPORARY TABLE has made it: its rows belong to transactions of the session. */
  bool is_temporary= false;

private:
  int keep(uint64_t next);
  int keep_numbers();

  std::mutex numbers;
  uint64_t next= 1;
  /* Up to where numbers are given out without another note in the catalog. */
  uint64_t kept= 0;
  uint64_t engine_number= 0;
};

/* The engine's table is gone, and with it the numbers of its rows. */
void forget_row_numbers(uint64_t engine_number);

int changed_since(handlerton *, const char *path, const LEX_CUSTRING *, ulonglong version);

/* A range of keys that is read later. */
struct Taken_range
{
  void copy(const KEY_MULTI_RANGE &from);

  KEY_MULTI_RANGE range;
  Scratch scratch;

private:
  static void keep(key_range &key, std::vector<uchar> &bytes);

  std::vector<uchar> start, end;
};

class ha_pantile final : public handler
{
public:
  ha_pantile(handlerton *hton, TABLE_SHARE *share) : handler(hton, share) { ref_length= sizeof(uint64_t); }
  ~ha_pantile() override { free_all(); }

  /* Statements are not for the binary log: without locks of gaps, the order of commits does not reproduce what they did.
   * Indexes are checked in the order in which they were made, which matters if several are unique. */
  ulonglong table_flags() const override
  {
    return HA_REC_NOT_IN_SEQ | HA_NULL_IN_KEY | HA_CAN_INDEX_BLOBS | HA_PRIMARY_KEY_IN_READ_INDEX |
           HA_BINLOG_ROW_CAPABLE | HA_CAN_GEOMETRY | HA_PARTIAL_COLUMN_READ |
           HA_CAN_SQL_HANDLER | HA_CAN_ONLINE_BACKUPS | HA_CAN_VIRTUAL_COLUMNS | HA_CONCURRENT_OPTIMIZE |
           HA_CAN_SKIP_LOCKED | HA_CAN_TABLES_WITHOUT_ROLLBACK | HA_FAST_KEY_READ | HA_ONLINE_ANALYZE |
           (deletes_keep_rows() ? HA_REQUIRES_KEY_COLUMNS_FOR_DELETE : 0) |
           (has_one_unique_key ? 0 : HA_DUPLICATE_KEY_NOT_IN_ORDER);
  }
  /* Where rows have versions of the server, a DELETE writes the row once more, with the keys over virtual columns. */
  bool deletes_keep_rows() const
  {
    return table_share && table_share->versioned != VERS_UNDEFINED && table_share->virtual_fields;
  }
  ulong index_flags(uint index, uint, bool) const override
  {
    /* Conditions on the primary key save nothing where they are looked at. Rows with one key that is not unique come in the
     * order of their primary keys, which is not that of their places (`cmp_ref`). */
    return HA_READ_NEXT | HA_READ_PREV | HA_READ_ORDER | HA_READ_RANGE | HA_KEYREAD_ONLY |
           (index == table_share->primary_key ? 0 : HA_DO_INDEX_COND_PUSHDOWN) |
           (table_share->key_info[index].flags & HA_NOSAME ? 0 : HA_KEY_SCAN_NOT_ROR);
  }
  uint max_supported_keys() const override { return MAX_KEY; }
  uint max_supported_key_length() const override { return 3072; }
  uint max_supported_key_part_length() const override { return 3072; }
  const char *index_type(uint) override { return "BTREE"; }
  uint8 table_cache_type() override { return HA_CACHE_TBL_NOCACHE; }

  handler *clone(const char *name, MEM_ROOT *memory) override;
  int open(const char *name, int mode, uint flags) override;
  int close() override;
  int create(const char *name, TABLE *form, HA_CREATE_INFO *info) override;
  int delete_table(const char *name) override;
  int rename_table(const char *from, const char *to) override;
  int truncate() override;
  int reset_auto_increment(ulonglong value) override;
  void update_create_info(HA_CREATE_INFO *info) override;
  bool check_if_incompatible_data(HA_CREATE_INFO *info, uint changes) override;
  enum_alter_inplace_result check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info) override;
  bool can_convert_nocopy(const Field &field, const Column_definition &type) const override
  {
    return holds_all_of(&field, type);
  }
  bool inplace_alter_table(TABLE *altered, Alter_inplace_info *info) override;
  bool commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit) override;

  ulonglong table_version() const override { return share ? pantile_table_version(share->table) : 0; }

  int info(uint flag) override;
  ha_rows records_in_range(uint index, const key_range *min, const key_range *max, page_range *) override;
  int analyze(THD *thd, HA_CHECK_OPT *) override;
  int check(THD *thd, HA_CHECK_OPT *) override;
  int optimize(THD *thd, HA_CHECK_OPT *) override;
  double scan_time() override { return (double) stats.records / 100.0 + 1.0; }
  /* Of two indexes that lead to the same rows the primary key is the shorter way. */
  double read_time(uint index, uint ranges, ha_rows rows) override
  {
    return handler::read_time(index, ranges, rows) * (index == table_share->primary_key ? 1.0 : 1.001);
  }
  bool get_error_message(int error, String *message) override;
  void print_error(int error, myf flags) override;

  uint lock_count() const override { return 0; }
  THR_LOCK_DATA **store_lock(THD *thd, THR_LOCK_DATA **to, thr_lock_type type) override;
  int external_lock(THD *thd, int type) override;
  int start_stmt(THD *thd, thr_lock_type type) override;
  void unlock_row() override;
  int extra(ha_extra_function what) override;
  int reset() override;

  int write_row(const uchar *record) override;
  int update_row(const uchar *before, const uchar *after) override;
  int delete_row(const uchar *record) override;
  void get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first, ulonglong *got)
      override;

  int rnd_init(bool scan) override;
  int rnd_next(uchar *record) override;
  int rnd_end() override;
  int rnd_pos(uchar *record, uchar *position) override;
  void position(const uchar *record) override { int8store(ref, row_id); }
  int cmp_ref(const uchar *a, const uchar *b) override;

  int index_init(uint index, bool sorted) override;
  int index_end() override;
  int index_read_map(uchar *record, const uchar *key, key_part_map parts, ha_rkey_function how) override;
  int read_range_first(const key_range *start, const key_range *end, bool is_equal, bool sorted) override;
  int index_next(uchar *record) override { return step(record, false); }
  int index_prev(uchar *record) override { return step(record, true); }
  int index_next_same(uchar *record, const uchar *key, uint length) override;
  int index_first(uchar *record) override;
  int index_last(uchar *record) override;
  int multi_range_read_init(RANGE_SEQ_IF *ranges, void *parameter, uint count, uint mode, HANDLER_BUFFER *buffer)
      override;
  int multi_range_read_next(range_id_t *range) override;
  ha_rows multi_range_read_info(uint index, uint count, uint keys, uint parts, uint *size, uint *flags,
                                Cost_estimate *cost) override;
  int multi_range_read_explain_info(uint mode, char *to, size_t size) override;
  Item *idx_cond_push(uint index, Item *condition) override;

private:
  bool has_virtual_part(uint index) const;
  void read_virtual_columns_from_rows();
  int error(int code, int none= HA_ERR_END_OF_FILE);
  Failure &failure() const { return Session::of(ha_thd())->failure; }
  std::string engine_message() const;
  int refuse_long_key(const uchar *record);
  int enter(THD *thd, thr_lock_type type);
  int ready();
  int ready_to_look();
  pantile_txn *running() const;
  int lock_duplicate();
  bool is_taken();
  int insert_values();
  int insert_or_lock();
  void make_row();
  void free_cursor();
  void free_all();
  int open_indexes();
  int open_cursor(uint key, const pantile_range &range);
  int read_at_key(uchar *record);
  int fetch(uchar *record);
  int fill(uchar *record);
  void leave_out_unused();
  int turn(bool reverse);
  bool has_come_to_row() const;
  int step(uchar *record, bool reverse);
  int beside_sought(uchar *record, bool reverse);
  int whole_index(uchar *record, bool reverse);
  void end_at_range(pantile_range &range);
  static bool next_range(range_seq_t handler, KEY_MULTI_RANGE *range);
  bool take_range(KEY_MULTI_RANGE *range);
  void fetch_ahead();
  int refuse_foreign_keys(THD *thd);
  int make_index(const Key_shape &key);
  int make_indexes_agree();
  bool can_change_columns(TABLE *altered, const Alter_inplace_info *info);
  bool change_columns(TABLE *altered, Alter_inplace_info *info);
  bool can_set_next_number(TABLE *altered, const Alter_inplace_info *info) const;
  int find_highest_number(uint64_t *highest) const;
  void report_duplicate(TABLE *altered, const Shape &changed, uint key);
  uint64_t estimate(uint key, const pantile_range &range);
  void sample_keys();

  Share *share= nullptr;
  Shape shape;
  std::vector<pantile_index *> indexes;
  /* The share's table to which they belong. */
  uint64_t generation= 0;

  /* REPLACE then updates the row that is in its way. */
  bool has_one_unique_key= false;

  /* The rows that there were when the keys were sampled. */
  ha_rows sampled_rows= 0;

  bool is_sequence() const { return table->s->table_type == TABLE_TYPE_SEQUENCE; }
  int begin_own();
  int end_own(bool commits= true);
  int after_write();
  int note_number(const uchar *record);
  int compute_virtual(const uchar *record);

  pantile_txn *txn= nullptr;
  /* A transaction apart from the session's: of a sequence's table, since what a sequence has given out stays given out, or
   * of a copy. */
  pantile_txn *own= nullptr;
  bool copies= false;
  bool replaces= false;            /* the statement reads a row that is in the way of its own */
  uint copied= 0;
  int number_error= 0;             /* why no number was given out */
  /* Numbers behind which AUTO_INCREMENT goes on already, because this statement has taken them. */
  uint64_t taken_from= 0, taken_numbers= 0;
  uint64_t txn_number= 0;
  thr_lock_type lock_type= TL_UNLOCK;
  bool locks_rows= false;
  /* The table is newer than what the transaction reads. */
  bool is_newer= false;
  bool is_clone= false;
  bool skips_locked= false;

  pantile_cursor *cursor= nullptr;
  uint64_t cursor_txn= 0;
  bool cursor_reverse= false;
  bool cursor_is_bounded= false;
  /* The server's end of a range is that of the read under way, and not of one before. */
  bool begins_range= false;
  /* The cursor is at its end. */
  bool is_at_end= false;
  /* The key that it has looked for and not found, or that has been read without a cursor. */
  std::vector<uchar> sought;
  bool is_at_key= false;
  key_part_map sought_parts= 0;

  pantile_row *row= nullptr;
  /* What is in it. */
  const pantile_view *view= nullptr;
  /* It has held a value that is not worth keeping the memory for. */
  bool read_large= false;
  /* Columns that are not read into it, because no statement uses them. */
  struct Left_out
  {
    /* The fields that are read, as the server says it; empty for all. */
    std::vector<my_bitmap_map> used;
    std::vector<size_t> columns;
    bool is_known= false;
  };
  /* Of statements that only read, and of those that lock rows: a handler serves both in turn. */
  Left_out left_out[2];
  const Left_out *row_leaves_out= nullptr;
  std::vector<pantile_value> values, key_values, end_values;
  Changes changes;
  Scratch scratch, key_scratch, end_scratch;

  /* The ranges of a statement as the server tells them, and those that have been taken from there. */
  RANGE_SEQ_IF server_ranges= {};
  range_seq_t server_sequence= nullptr;
  std::vector<Taken_range> taken_ranges;
  size_t ranges_taken= 0, ranges_read= 0, taken_at_once= 0;
  /* The rows are for a join by batched key access. */
  bool joins= false;

  uint64_t row_id= 0;
};

#endif
