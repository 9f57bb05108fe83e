/* Pantile: an embedded store for transactions. C interface.
 *
 * Codes: calls return PANTILE_OK, PANTILE_NOT_FOUND or PANTILE_DONE, or an error from 100 on.
 * pantile_error_message() then says what went wrong, what is still true and what to do. A call
 * that failed has changed nothing, unless its message says otherwise.
 *
 * Ownership: what is handed out through a pointer to a pointer is the caller's until it is given to
 * the call that its comment names. What callers hand in stays theirs.
 *
 * Threads: databases, tables and indexes may be used by any number of threads, everything else by
 * one at a time.
 *
 * Examples: crates/capi/examples. This file is made from crates/capi/src; changes go there. */

#ifndef PANTILE_H
#define PANTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// There is no bound.
#define PANTILE_UNBOUNDED 0

// The range includes keys that are or begin with the bound.
#define PANTILE_INCLUDED 1

// The range excludes them.
#define PANTILE_EXCLUDED 2

// A truth value, 1 byte.
#define PANTILE_TYPE_BOOL 0

// A signed integer of `size` bytes: 1, 2, 4 or 8.
#define PANTILE_TYPE_INT 1

// An unsigned integer of `size` bytes: 1, 2, 4 or 8.
#define PANTILE_TYPE_UINT 2

// An IEEE 754 number of `size` bytes: 4 or 8.
#define PANTILE_TYPE_FLOAT 3

// A decimal number of `size` digits, at most 38, of which `scale` are behind the point; 16 bytes.
#define PANTILE_TYPE_DECIMAL 4

// Microseconds since 1970-01-01 UTC, 8 bytes.
#define PANTILE_TYPE_TIMESTAMP 5

// Exactly `size` bytes; shorter values are padded with zero bytes.
#define PANTILE_TYPE_FIXED_BYTES 6

// UTF-8 text in exactly `size` bytes, padded with zero bytes.
#define PANTILE_TYPE_FIXED_TEXT 7

// Up to `size` bytes.
#define PANTILE_TYPE_BYTES 8

// UTF-8 text of up to `size` bytes.
#define PANTILE_TYPE_TEXT 9

// The call has done what it is for.
#define PANTILE_OK 0

// There is no such row.
#define PANTILE_NOT_FOUND 1

// The cursor has no more rows.
#define PANTILE_DONE 2

// The call was not made as it must be. It has done nothing.
#define PANTILE_MISUSE 100

// The library has a fault. The transaction can only be rolled back.
#define PANTILE_PANIC 101

// A concurrent transaction has read or written what this one would write. Run the transaction again.
#define PANTILE_CONFLICT 110

// Another running transaction has locked the row, and the call was not to wait. Run the transaction again.
#define PANTILE_LOCKED 111

// Another running transaction has locked the row, and has not ended in time. Run the transaction again.
#define PANTILE_TIMED_OUT 112

// Waiting would have closed a circle of transactions. Run the transaction again.
#define PANTILE_DEADLOCK 113

// As many transactions are open as can be. Run the transaction again.
#define PANTILE_TOO_MANY_TRANSACTIONS 114

// Another transaction has changed the row since the snapshot. Run the transaction again.
#define PANTILE_CHANGED 115

// A wait for a row that another transaction has locked was interrupted.
#define PANTILE_INTERRUPTED 116

// The transaction was ended from outside: by `pantile_end_transaction`, or because it held back too much. It can only be
// rolled back.
#define PANTILE_ENDED 117

// A row with this key is there.
#define PANTILE_DUPLICATE_KEY 120

// No table, index or column of this name.
#define PANTILE_UNKNOWN_NAME 121

// A table or index of this name is there.
#define PANTILE_NAME_EXISTS 122

// The table was dropped while it was in use.
#define PANTILE_TABLE_DROPPED 123

// A value that its column does not take: its kind, its range, its length, NULL, or the number of values.
#define PANTILE_BAD_VALUE 124

// A row that is too large.
#define PANTILE_ROW_TOO_LARGE 125

// An update would change the primary key.
#define PANTILE_PRIMARY_KEY_CHANGED 126

// A definition or an option that makes no sense.
#define PANTILE_INVALID 127

// A write in a transaction that only reads.
#define PANTILE_READ_ONLY 128

// More rows than one transaction may write.
#define PANTILE_TRANSACTION_TOO_LARGE 129

// No such savepoint.
#define PANTILE_UNKNOWN_SAVEPOINT 130

// No such transaction is open.
#define PANTILE_UNKNOWN_TRANSACTION 131

// The medium has no room.
#define PANTILE_STORAGE_FULL 140

// The database may not take more memory.
#define PANTILE_MEMORY_FULL 141

// The medium failed earlier and takes no more writes.
#define PANTILE_MEDIUM_FAILED 142

// Committed data is damaged.
#define PANTILE_DAMAGED 143

// The system refused something before anything was changed.
#define PANTILE_IO 144

// A process has the database open.
#define PANTILE_ALREADY_OPEN 150

// There is no database at this path.
#define PANTILE_NO_DATABASE 151

// These files are not a database that this library can read.
#define PANTILE_NOT_A_DATABASE 152

// The medium cannot be used at this path.
#define PANTILE_UNFIT_MEDIUM 153

// The database is closed or is being closed.
#define PANTILE_CLOSED 154

// Others have not ended in time. The call has changed nothing.
#define PANTILE_BUSY 155

// The caller has stopped the work.
#define PANTILE_CANCELLED 156

// There is something in the directory.
#define PANTILE_NOT_EMPTY 157

// A file in the database's directory, the default.
#define PANTILE_MEDIUM_FILE 0

// Memory, which is freed when the database is closed.
#define PANTILE_MEDIUM_DRAM 1

// Persistent memory: a file on a file system that is mounted with `dax=always`.
#define PANTILE_MEDIUM_DAX 2

// A commit returns when it is durable; commits that come together share a sync. The default.
#define PANTILE_DURABILITY_SYNC 0

// The same; a commit may wait up to 500 microseconds for others to share its sync.
#define PANTILE_DURABILITY_GROUP 1

// A commit returns at once. A power failure may take the last ones, and leaves an earlier consistent state.
#define PANTILE_DURABILITY_NONE 2

// A transaction that holds back too much is warned of, once.
#define PANTILE_WARN 0

// It is ended as well.
#define PANTILE_END 1

// Transactions are as if run one by one, in an order that agrees with real time. The default.
#define PANTILE_SERIALIZABLE 0

// Reads show the moment at which the transaction began.
#define PANTILE_SNAPSHOT 1

// Reads show the moment at which the statement began.
#define PANTILE_READ_COMMITTED 2

// No value. Only nullable columns hold it.
#define PANTILE_NULL 0

// A truth value: `as.boolean`.
#define PANTILE_BOOL 1

// A signed integer, for integer columns of any width that holds it: `as.integer`.
#define PANTILE_INT 2

// An unsigned integer, for integer columns of any width that holds it: `as.natural`.
#define PANTILE_UINT 3

// A floating-point number: `as.real`.
#define PANTILE_FLOAT 4

// A decimal number: `as.decimal` units of 10 to the power of minus `scale`.
#define PANTILE_DECIMAL 5

// UTF-8 text: `as.bytes`, without a zero byte at its end.
#define PANTILE_TEXT 6

// Bytes: `as.bytes`.
#define PANTILE_BYTES 7

// Microseconds since 1970-01-01 00:00:00 UTC: `as.integer`.
#define PANTILE_TIMESTAMP 8

// A place in a range of rows, as its transaction sees them.
typedef struct pantile_cursor pantile_cursor;

// An open database.
typedef struct pantile_db pantile_db;

// A commit on its way to the medium.
typedef struct pantile_in_flight pantile_in_flight;

// An index of a table.
typedef struct pantile_index pantile_index;

// Names, one after the other.
typedef struct pantile_names pantile_names;

// How a database opens. What is not set has its default.
typedef struct pantile_options pantile_options;

// What each table takes. Hidden tables of values out of line are listed by themselves, and so are dropped tables until
// their space has been given back.
typedef struct pantile_parts pantile_parts;

// A transaction that is prepared: its commit cannot fail but for the medium.
typedef struct pantile_prepared pantile_prepared;

// A place for the values of a row. It keeps its memory from row to row. The values are copies: they stay as they are
// when the transaction goes on or ends. After `pantile_row_lend`, they are not.
typedef struct pantile_row pantile_row;

// A table of an open database.
typedef struct pantile_table pantile_table;

// Changes of a table that are to be made at once.
typedef struct pantile_table_change pantile_table_change;

// A table to be created.
typedef struct pantile_table_def pantile_table_def;

// Transactions that are open, the oldest first.
typedef struct pantile_transactions pantile_transactions;

// A transaction.
typedef struct pantile_txn pantile_txn;

// Is told that the moment of a backup is fixed, and whether all that was acknowledged before the call is in it. The
// backup ends with `PANTILE_CANCELLED` if it returns false.
typedef bool (*pantile_at_moment)(void *context, bool is_current);

// Whether a call is to end.
typedef bool (*pantile_stop)(void *context);

// How to back up. Zeros are the defaults.
typedef struct pantile_backup_options {
  // Copies at most this many bytes a second; 0 for as fast as it goes.
  uint64_t bytes_per_second;
  // Whether `wait` counts. Otherwise it is ten seconds.
  bool has_wait;
  // For how many milliseconds the backup waits at its beginning for running serializable writers to end.
  uint64_t wait;
  // Called once the moment of the backup is fixed, in the thread of the call; may be NULL.
  pantile_at_moment at_moment;
  // Asked about once for each megabyte, in a thread of the backup; the backup ends with `PANTILE_CANCELLED` when it
  // returns true. May be NULL.
  pantile_stop stop;
  // What these take. Valid until the call returns.
  void *context;
} pantile_backup_options;

// What was backed up.
typedef struct pantile_backup_report {
  // Whether every commit that was acknowledged before the call is in it. If a serializable writer ran for longer than
  // the wait, those beside it may not be.
  bool is_current;
  // Tables.
  uint64_t tables;
  // Rows.
  uint64_t rows;
  // Bytes of the backup's file.
  uint64_t file_bytes;
} pantile_backup_report;

// Is told of a row that is damaged: its number in the table, and what is wrong. Valid during the call.
typedef void (*pantile_damaged)(void *context, uint64_t tuple, const char *what);

// The type of a column.
typedef struct pantile_type {
  // `PANTILE_TYPE_BOOL` to `PANTILE_TYPE_TEXT`.
  int kind;
  // Bytes or digits; the kind says which. 0 where it says nothing.
  uint32_t size;
  // Digits behind the point of a decimal number.
  uint32_t scale;
} pantile_type;

// A signed integer of 128 bits: `high` times 2 to the power of 64, plus `low`.
typedef struct pantile_int128 {
  // The upper half, with the sign.
  int64_t high;
  // The lower half.
  uint64_t low;
} pantile_int128;

// Bytes that lie elsewhere.
typedef struct pantile_span {
  // The first one; may be NULL if there are none.
  const uint8_t *data;
  // How many there are.
  size_t len;
} pantile_span;

// What a value is, by its kind.
typedef union pantile_value_as {
  // Of `PANTILE_BOOL`.
  bool boolean;
  // Of `PANTILE_INT` and `PANTILE_TIMESTAMP`.
  int64_t integer;
  // Of `PANTILE_UINT`.
  uint64_t natural;
  // Of `PANTILE_FLOAT`.
  double real;
  // Of `PANTILE_DECIMAL`.
  struct pantile_int128 decimal;
  // Of `PANTILE_TEXT` and `PANTILE_BYTES`.
  struct pantile_span bytes;
} pantile_value_as;

// One value of a row or a key. Those that go into a call need to last only as long as the call. Those that come from a
// row point into it.
typedef struct pantile_value {
  // `PANTILE_NULL` to `PANTILE_TIMESTAMP`.
  int kind;
  // Digits after the point of a decimal number.
  int scale;
  // The value.
  union pantile_value_as as;
} pantile_value;

// One end of a range: a key, or the first values of one.
typedef struct pantile_bound {
  // `PANTILE_UNBOUNDED`, `PANTILE_INCLUDED` or `PANTILE_EXCLUDED`.
  int kind;
  // The values; NULL if there is no bound.
  const struct pantile_value *values;
  // How many there are.
  size_t len;
} pantile_bound;

// Which rows to read, and in which order. Zeros are all rows, in ascending order.
typedef struct pantile_range {
  // Where it begins.
  struct pantile_bound from;
  // Where it ends.
  struct pantile_bound to;
  // Whether keys descend.
  bool reverse;
  // The most rows; 0 for all.
  size_t limit;
} pantile_range;

// What a database has done and takes.
typedef struct pantile_stats {
  // Transactions that have committed since the database was opened.
  uint64_t commits;
  // Transactions that have not.
  uint64_t aborts;
  // Transactions that are open now.
  uint64_t running;
  // Rows, as the newest transaction sees them, and one for each table in the catalog.
  uint64_t rows;
  // Their bytes, with a header of 24 bytes each.
  uint64_t live_bytes;
  // Bytes of the medium.
  uint64_t medium_bytes;
  // Bytes of versions that are not the newest and wait to be reclaimed.
  uint64_t obsolete_bytes;
  // Bytes of the medium that are free.
  uint64_t free_bytes;
  // Bytes of memory that the database takes.
  uint64_t memory_bytes;
  // Rows that were found to be damaged.
  uint64_t damaged_rows;
  // Bytes written to the medium since the database was opened, for whatever purpose.
  uint64_t written_bytes;
  // Syncs that reached the device since then.
  uint64_t syncs;
} pantile_stats;

// A transaction that is open. Texts are valid until the list is freed. The figures of what it holds are upper bounds: a
// block counts with everything superseded in it as soon as the transaction may see one version there.
typedef struct pantile_running {
  // By which `pantile_end_transaction` knows it; 0 for work of the database itself.
  uint64_t id;
  // What the program calls it, or NULL; for work of the database itself, what it is.
  const char *name;
  // Its number among those of this name, if `has_number`.
  uint64_t number;
  // Whether it has one.
  bool has_number;
  // `PANTILE_SERIALIZABLE`, `PANTILE_SNAPSHOT` or `PANTILE_READ_COMMITTED`; -1 for work of the database itself.
  int isolation;
  // Whether it only reads.
  bool read_only;
  // Whether it is prepared: only a decision under its name ends it.
  bool prepared;
  // What has ended it, if its program has not taken note yet; else NULL.
  const char *ended;
  // Microseconds since it began; at a safe snapshot, the age of what it reads.
  uint64_t age;
  // Where it reads.
  uint64_t timestamp;
  // Superseded bytes on the medium, in blocks that it may be reading.
  uint64_t held_bytes;
  // Those blocks.
  uint64_t held_blocks;
  // The part of `held_bytes` that no other transaction holds: what its end would free, at most.
  uint64_t freed_bytes;
  // Memory that it holds back.
  uint64_t held_memory;
  // Memory of its own writes.
  uint64_t buffer_bytes;
  // In how many tables it holds something; see `pantile_transactions_held`.
  size_t tables;
} pantile_running;

// What a transaction holds of one table. The name is valid until the list is freed.
typedef struct pantile_held {
  // The table's name.
  const char *table;
  // Superseded bytes, in blocks that the transaction may be reading.
  uint64_t bytes;
  // Those blocks.
  uint64_t blocks;
} pantile_held;

// A process that reads the database beside this one.
typedef struct pantile_reader {
  // Its number; 0 if it was there before this process opened the database.
  uint32_t process;
  // For how many microseconds it has read; 0 if that is not known.
  uint64_t age;
  // Superseded bytes on the medium, in blocks that it may be reading. Others may hold them, too.
  uint64_t held_bytes;
} pantile_reader;

// What a table takes. The name is valid until the list is freed; it is empty for what belongs to no table.
typedef struct pantile_table_parts {
  // Its name.
  const char *table;
  // Its rows, as the newest transaction sees them.
  uint64_t rows;
  // How many states its blocks are in; see `pantile_parts_blocks`.
  size_t states;
  // How many indexes it has, the primary one included; see `pantile_parts_index`.
  size_t indexes;
} pantile_table_parts;

// The blocks of a table that are in one state.
typedef struct pantile_blocks {
  // `open`: commits append to them. `sealed`: they are full. `frozen`: the collector empties them. `released`: they become
  // free soon. `free`: they belong to no table. `record`: the database's own notes. Valid until the list is freed.
  const char *state;
  // How many.
  uint64_t blocks;
  // Their bytes.
  uint64_t bytes;
  // The part of them in slots of the newest versions of rows.
  uint64_t live_bytes;
  // The part in slots of superseded versions.
  uint64_t obsolete_bytes;
  // The part in slots that are not written yet.
  uint64_t unfilled_bytes;
} pantile_blocks;

// An index of a table. Texts are valid until the list is freed.
typedef struct pantile_index_parts {
  // Its name; `primary` for the primary one.
  const char *index;
  // Its columns, most significant first, with commas between.
  const char *columns;
  // Whether it takes no second row with the same key.
  bool unique;
  // Whether it is in memory. Otherwise it is in an image on the medium, and is loaded when it is first used.
  bool is_loaded;
  // Its memory.
  uint64_t bytes;
} pantile_index_parts;

// What the collector has done since the database was opened, and what waits for it.
typedef struct pantile_collector_stats {
  // Blocks that it has freed.
  uint64_t blocks_reclaimed;
  // The part of them that transactions older than the block did not hold up.
  uint64_t blocks_bypassed;
  // The part of them that was emptied early because space was short.
  uint64_t blocks_compacted;
  // Old versions whose space it has freed.
  uint64_t versions_reclaimed;
  // Live versions that it has copied,
  uint64_t survivors_relocated;
  // and their bytes.
  uint64_t copied_bytes;
  // Blocks that wait: they are mostly obsolete.
  uint64_t pending_blocks;
  // Blocks that no transaction can see into.
  uint64_t queued_blocks;
  // Blocks that are being emptied.
  uint64_t frozen_blocks;
  // Blocks that wait for a long transaction.
  uint64_t long_tx_blocks;
  // Old versions that wait one by one, with collectors that free versions instead of blocks.
  uint64_t waiting_versions;
  // Deleted rows that wait until they hide nothing any more.
  uint64_t waiting_tombstones;
  // Index entries that wait to be cleaned up.
  uint64_t stale_entries;
  // Memory of what waits.
  uint64_t queue_bytes;
  // Superseded bytes that transactions hold back.
  uint64_t pinned_bytes;
  // Bytes that can still be written.
  uint64_t room_bytes;
  // Transactions that held back more than allowed and were warned of,
  uint64_t pin_warnings;
  // and those that were ended for it.
  uint64_t pin_ends;
  // Transactions that were ended from outside, and whose threads have not rolled them back yet.
  uint64_t ended_not_dropped;
} pantile_collector_stats;

// What `pantile_prepared_each` calls with each name.
typedef void (*pantile_each_name)(void *context, const char *name, size_t len);

// What has been read into a row last.
typedef struct pantile_view {
  // Its values; NULL before a row has been read. They are valid as long as their bytes.
  const struct pantile_value *values;
  // How many there are.
  size_t len;
  // Its place, if it was read by a cursor or by its place, or found by `pantile_find_row` or
  // `pantile_find_row_for_update`; otherwise `UINT64_MAX`.
  uint64_t id;
} pantile_view;

// How a transaction runs. Zeros are the defaults.
typedef struct pantile_txn_options {
  // `PANTILE_SERIALIZABLE`, `PANTILE_SNAPSHOT` or `PANTILE_READ_COMMITTED`.
  int isolation;
  // Whether it only reads. It then sees all that was acknowledged before it began, and what others write does not make
  // it fail, except rows of prepared transactions (docs/isolation.md).
  bool read_only;
  // Whether it reads a state from before every writer that is running. No writer notices it: for long reports.
  bool safe_snapshot;
  // Whether `lock_wait` counts. Otherwise the database's does.
  bool has_lock_wait;
  // For how many milliseconds calls wait for rows that others have locked.
  uint64_t lock_wait;
  // What people call it, in lists, warnings and messages; NULL for no name. The text must stay valid as long as the
  // database is open: a literal.
  const char *name;
  // Whether `number` counts.
  bool has_number;
  // Its number among those of this name, that of a connection for example.
  uint64_t number;
} pantile_txn_options;

// What `pantile_run` calls: it reads and writes, and returns `PANTILE_OK`, the code of a call that has failed, or a
// negative number of its own.
typedef int (*pantile_body)(struct pantile_txn *txn, void *context);

// Whether a wait for the transaction of this number is to end.
typedef bool (*pantile_stop_wait)(void *context, uint64_t number);

// What is called with a warning. The text is valid until it returns.
typedef void (*pantile_on_warning)(const char *warning, void *context);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Copies the database, beside transactions that go on, into the directory `path`, which is created if need be. The copy
// is a database of one moment at the beginning of the call: it has what was committed up to then, and nothing else. It
// is durable when the call returns `PANTILE_OK`, and no database before. `options` and `report` may be NULL.
int pantile_backup(struct pantile_db *db,
                   const char *path,
                   const struct pantile_backup_options *options,
                   struct pantile_backup_report *report);

// Looks whether the newest version of every row of a table can be read and its checksum fits, beside transactions that
// go on. `damaged` is told of each that is not so; `rows`, which may be NULL, gets how many are whole. Damage is no
// error of the call. `stop` is asked now and then, and the call fails with `PANTILE_CANCELLED` when it returns true;
// it may be NULL.
int pantile_verify_table(struct pantile_db *db,
                         const struct pantile_table *table,
                         pantile_damaged damaged,
                         pantile_stop stop,
                         void *context,
                         uint64_t *rows);

// No change yet. Freed by `pantile_table_change_free`.
int pantile_table_change_new(struct pantile_table_change **out);

// Frees a change, made or not.
void pantile_table_change_free(struct pantile_table_change *change);

// Adds a column, before the column `before` or, if that is NULL, behind all others. It is nullable or has a default,
// which is its value in the rows that are there; `default_value` may be NULL.
int pantile_table_change_add_column(struct pantile_table_change *change,
                                    const char *name,
                                    struct pantile_type type,
                                    bool nullable,
                                    const struct pantile_value *default_value,
                                    const char *before);

// Drops a column that no index has.
int pantile_table_change_drop_column(struct pantile_table_change *change, const char *name);

// Gives a column another name.
int pantile_table_change_rename_column(struct pantile_table_change *change,
                                       const char *name,
                                       const char *to);

// Gives a column that no index has a type that holds all its values: a longer integer of the same kind, a longer text
// or byte string, a longer floating-point number, a decimal number with more digits before the point.
int pantile_table_change_widen_column(struct pantile_table_change *change,
                                      const char *name,
                                      struct pantile_type to);

// Lets a column that no index has take NULL.
int pantile_table_change_make_nullable(struct pantile_table_change *change, const char *name);

// Gives a column another default, or none if `value` is NULL.
int pantile_table_change_set_default(struct pantile_table_change *change,
                                     const char *name,
                                     const struct pantile_value *value);

// Gives a secondary index another name. Handles of it from before go on working.
int pantile_table_change_rename_index(struct pantile_table_change *change,
                                      const char *name,
                                      const char *to);

// Gives the table another name.
int pantile_table_change_rename_table(struct pantile_table_change *change, const char *to);

// Changes a table, beside transactions that go on and without touching its rows. Handles from before know the columns
// that there were. `out` may be NULL; the handle of the table as it is then is freed by `pantile_table_free`.
int pantile_alter_table(struct pantile_db *db,
                        const struct pantile_table *table,
                        const struct pantile_table_change *change,
                        struct pantile_table **out);

// How often a table has been changed since it was created; 0 for NULL.
uint64_t pantile_table_version(const struct pantile_table *table);

// A cursor before the first row of a range of primary keys. `range` may be NULL: all rows. Freed by
// `pantile_cursor_free`.
int pantile_scan(struct pantile_txn *txn,
                 const struct pantile_table *table,
                 const struct pantile_range *range,
                 struct pantile_cursor **out);

// A cursor before the first row of a range of keys of an index, in its order. Freed by `pantile_cursor_free`.
int pantile_scan_index(struct pantile_txn *txn,
                       const struct pantile_index *index,
                       const struct pantile_range *range,
                       struct pantile_cursor **out);

// Reads the next row into `row`. Returns `PANTILE_DONE`, and leaves `row` as it was, if there is none. `txn` is the
// transaction that has made the cursor; it may have written meanwhile. After an error the same row is the next one
// again.
int pantile_cursor_next(struct pantile_cursor *cursor,
                        struct pantile_txn *txn,
                        struct pantile_row *row);

// The same, and keeps others from writing the row until the transaction has ended. At read committed it is the newest
// committed row. With `skip_locked`, rows that others have locked are bypassed.
int pantile_cursor_next_for_update(struct pantile_cursor *cursor,
                                   struct pantile_txn *txn,
                                   bool skip_locked,
                                   struct pantile_row *row);

// Lets the cursor go on from the row that it has come to last, up or down, as far as the index goes. `txn` may be
// another transaction than before. Does nothing to a cursor that has come to no row: it stays with the transaction that
// it has been with.
int pantile_cursor_turn(struct pantile_cursor *cursor,
                        struct pantile_txn *txn,
                        bool reverse);

// The place of the row that the cursor has come to last: for `pantile_get_row` and similar calls, as long as the
// transaction runs. Returns `PANTILE_NOT_FOUND` before the first row.
int pantile_cursor_row_id(const struct pantile_cursor *cursor,
                          uint64_t *out);

// About how many rows are in a range of primary keys, however long it is. `range` may be NULL: all rows.
int pantile_estimate(struct pantile_txn *txn,
                     const struct pantile_table *table,
                     const struct pantile_range *range,
                     uint64_t *out);

// About how many rows are in a range of keys of an index.
int pantile_estimate_index(struct pantile_txn *txn,
                           const struct pantile_index *index,
                           const struct pantile_range *range,
                           uint64_t *out);

// Frees a cursor.
void pantile_cursor_free(struct pantile_cursor *cursor);

// Opens the database in the directory `path`, or makes it. `options` may be NULL. The database is closed by
// `pantile_close`, or let go by `pantile_release`.
int pantile_open(const char *path,
                 const struct pantile_options *options,
                 struct pantile_db **out);

// Opens the database in the directory `path` to read it, also while another process has it open and writes. Its state
// is that of now, and stays that; open it again to see what was committed since. `options` may be NULL. Writing fails
// with `PANTILE_READ_ONLY`. If the process that has it open does not answer within ten seconds, the call fails with
// `PANTILE_ALREADY_OPEN`.
int pantile_open_read_only(const char *path,
                           const struct pantile_options *options,
                           struct pantile_db **out);

// Closes a database: waits for transactions that are open, makes everything durable, and lets other processes open it.
// Handles of tables and indexes are still to be freed, and of no other use.
//
// If it fails with `PANTILE_BUSY`, because a transaction did not end, the database is as open as before. After any other
// error of the database it is closed, but its last state could not be recorded: nothing that was acknowledged as durable
// is lost, and the next opening takes longer. `db` is then still to be given to `pantile_release`, which lets the
// directory be opened again.
int pantile_close(struct pantile_db *db);

// Lets go of a database without waiting for transactions. It stays open as long as transactions of it are not freed, or
// commits are in flight; tables and indexes do not keep it open. If there are none it is closed by this call, which may
// take a second. What has been acknowledged is as safe as after closing.
void pantile_release(struct pantile_db *db);

// Creates a table. It is durable when the call returns. `out` may be NULL; the handle is freed by `pantile_table_free`.
int pantile_create_table(struct pantile_db *db,
                         const struct pantile_table_def *def,
                         struct pantile_table **out);

// Finds a table by its name. Freed by `pantile_table_free`.
int pantile_table_open(struct pantile_db *db, const char *name, struct pantile_table **out);

// Frees the handle of a table. The table stays.
void pantile_table_free(struct pantile_table *table);

// Drops a table with its rows and indexes.
int pantile_drop_table(struct pantile_db *db, const char *name);

// Waits until all that others can see by now is durable: what was published, too, and all commits with
// `PANTILE_DURABILITY_NONE`.
int pantile_sync(struct pantile_db *db);

// Whether the database shows every commit that was acknowledged when it was opened. That is false only after
// `pantile_open_read_only` beside another process, if commits were made there while another transaction went on writing.
// To see them, open the database again when that transaction has ended.
int pantile_is_current(struct pantile_db *db,
                       bool *out);

// The names of all tables, in order. Freed by `pantile_names_free`.
int pantile_table_names(struct pantile_db *db, struct pantile_names **out);

// The names of a table's indexes, without the primary one. Freed by `pantile_names_free`.
int pantile_index_names(const struct pantile_table *table, struct pantile_names **out);

// How many names there are; 0 for NULL.
size_t pantile_names_len(const struct pantile_names *names);

// One of the names, or NULL. It is valid until the names are freed.
const char *pantile_names_get(const struct pantile_names *names, size_t n);

// Frees names.
void pantile_names_free(struct pantile_names *names);

// The name of a table, or NULL for NULL. It is valid until the handle is freed.
const char *pantile_table_name(const struct pantile_table *table);

// How many columns a table has; 0 for NULL.
size_t pantile_table_columns(const struct pantile_table *table);

// What is known of a column. `name`, `type` and `nullable` may be NULL. The name is valid until the handle is freed.
int pantile_table_column(const struct pantile_table *table,
                         size_t n,
                         const char **name,
                         struct pantile_type *type,
                         bool *nullable);

// The number of a column by its name.
int pantile_table_column_number(const struct pantile_table *table, const char *name, size_t *out);

// Creates an index of `len` columns, beside transactions that go on. `stop`, which may be NULL, is asked now and then;
// when it returns true the call fails with `PANTILE_CANCELLED`, and there is no index. It must not change the table,
// which waits for it. `out` may be NULL; the handle is freed by `pantile_index_free`.
int pantile_create_index(struct pantile_db *db,
                         const struct pantile_table *table,
                         const char *name,
                         const char *const *columns,
                         size_t len,
                         bool unique,
                         pantile_stop stop,
                         void *context,
                         struct pantile_index **out);

// Finds an index of a table by its name. Freed by `pantile_index_free`.
int pantile_index_open(const struct pantile_table *table,
                       const char *name,
                       struct pantile_index **out);

// How many columns an index of a table has.
int pantile_index_columns(const struct pantile_table *table, const char *name, size_t *out);

// Frees the handle of an index. The index stays.
void pantile_index_free(struct pantile_index *index);

// Drops an index.
int pantile_drop_index(struct pantile_db *db, const struct pantile_table *table, const char *name);

// Gives all space back that can be given back, beside transactions that go on. Takes as long as copying the data. `stop`
// is asked now and then, and the call fails with `PANTILE_CANCELLED` when it returns true; it may be NULL.
int pantile_compact(struct pantile_db *db,
                    pantile_stop stop,
                    void *context);

// What a database has done and takes.
int pantile_statistics(struct pantile_db *db, struct pantile_stats *out);

// A table of this name that has no columns yet. Freed by `pantile_table_def_free`.
int pantile_table_def_new(const char *name, struct pantile_table_def **out);

// Frees a definition. Tables made from it stay.
void pantile_table_def_free(struct pantile_table_def *def);

// Adds a column behind the others.
int pantile_table_def_column(struct pantile_table_def *def,
                             const char *name,
                             struct pantile_type type,
                             bool nullable);

// Names the `len` columns of the primary key, most significant first.
int pantile_table_def_primary_key(struct pantile_table_def *def,
                                  const char *const *columns,
                                  size_t len);

// Adds an index of `len` columns, most significant first. A unique index takes no second row with the same key, unless
// the key contains a NULL.
int pantile_table_def_index(struct pantile_table_def *def,
                            const char *name,
                            const char *const *columns,
                            size_t len,
                            bool unique);

// What went wrong in the last call of this thread that returned an error, what is still true and what to do. Empty if
// there was none. The text is valid until the next call of this thread that returns an error.
const char *pantile_error_message(void);

// The table that the last error is about, or NULL. Valid as long as the message.
const char *pantile_error_table(void);

// The index that the last error is about, or NULL: of a duplicate key, `primary` for the primary key. Valid as long as
// the message.
const char *pantile_error_index(void);

// The column that the last error is about, or NULL. Valid as long as the message.
const char *pantile_error_column(void);

// Whether the whole transaction can succeed if it is run again.
bool pantile_is_retryable(int code);

// The version of the library, as in "0.1.0".
const char *pantile_version(void);

// Lists the transactions that are open, the oldest first, and what each holds back. Visits every block. Freed by
// `pantile_transactions_free`.
int pantile_transactions_list(struct pantile_db *db,
                              struct pantile_transactions **out);

// How many there are; 0 for NULL.
size_t pantile_transactions_len(const struct pantile_transactions *list);

// One of the transactions.
int pantile_transactions_get(const struct pantile_transactions *list,
                             size_t n,
                             struct pantile_running *out);

// What transaction `n` holds of one of the tables in which it holds something, the most first.
int pantile_transactions_held(const struct pantile_transactions *list,
                              size_t n,
                              size_t table,
                              struct pantile_held *out);

// Frees a list of transactions.
void pantile_transactions_free(struct pantile_transactions *list);

// Ends a transaction of any thread: nothing more of it is committed. Its next call fails with `PANTILE_ENDED`, and so does
// one that waits for a lock. What it holds, locks included, goes when its thread rolls it back. A commit that has begun goes
// on. Returns `PANTILE_UNKNOWN_TRANSACTION` if no such transaction is open.
int pantile_end_transaction(struct pantile_db *db,
                            uint64_t id);

// Limits for how many milliseconds a transaction may hold back garbage, and says what is done about one that is older:
// `PANTILE_WARN` or `PANTILE_END`. 0 is no limit, which is the default. One that holds back nothing may be of any age.
int pantile_set_max_pinned_age(struct pantile_db *db,
                               uint64_t milliseconds,
                               int then);

// The same for the bytes that a transaction may hold back.
int pantile_set_max_pinned_bytes(struct pantile_db *db, uint64_t bytes, int then);

// In how many seconds the medium has no room left, if its used part goes on growing as in the last minute.
// `PANTILE_NOT_FOUND` if it has not grown.
int pantile_full_in(struct pantile_db *db,
                    uint64_t *out);

// Writes up to `len` of the processes that read the database beside this one to `readers`, and to `found` how many there
// are. `readers` may be NULL if `len` is 0.
int pantile_reading_processes(struct pantile_db *db,
                              struct pantile_reader *readers,
                              size_t len,
                              size_t *found);

// What each table takes: its blocks by their state, its rows, and its indexes. Visits every block. Freed by
// `pantile_parts_free`.
int pantile_parts_by_table(struct pantile_db *db,
                           struct pantile_parts **out);

// How many tables there are; 0 for NULL.
size_t pantile_parts_len(const struct pantile_parts *list);

// One of the tables.
int pantile_parts_table(const struct pantile_parts *list,
                        size_t n,
                        struct pantile_table_parts *out);

// The blocks of table `n` that are in one of their states.
int pantile_parts_blocks(const struct pantile_parts *list,
                         size_t n,
                         size_t state,
                         struct pantile_blocks *out);

// One of the indexes of table `n`, the primary one first.
int pantile_parts_index(const struct pantile_parts *list,
                        size_t n,
                        size_t index,
                        struct pantile_index_parts *out);

// Frees a list of tables.
void pantile_parts_free(struct pantile_parts *list);

// What the collector has done, and what waits for it. Visits every block.
int pantile_collector_statistics(struct pantile_db *db, struct pantile_collector_stats *out);

// New options, all with their defaults. Freed by `pantile_options_free`.
struct pantile_options *pantile_options_new(void);

// Frees options. Databases that were opened with them go on.
void pantile_options_free(struct pantile_options *options);

// Sets where data is kept: `PANTILE_MEDIUM_FILE`, `PANTILE_MEDIUM_DRAM` or `PANTILE_MEDIUM_DAX`.
int pantile_options_medium(struct pantile_options *options, int medium);

// Sets when commits return: `PANTILE_DURABILITY_SYNC`, `PANTILE_DURABILITY_GROUP` or `PANTILE_DURABILITY_NONE`.
int pantile_options_durability(struct pantile_options *options,
                               int durability);

// Sets whether a database is made where there is none. It is by default.
int pantile_options_create(struct pantile_options *options, bool create);

// Sets the most bytes that the medium may take. 1 TiB by default.
int pantile_options_max_bytes(struct pantile_options *options, uint64_t bytes);

// Sets the most bytes of memory that the database may take, beside the system's copies of its file. By default it is
// three quarters of what the process may have.
int pantile_options_memory_limit(struct pantile_options *options,
                                 uint64_t bytes);

// Keeps rows that are read again and again in this many bytes of memory, from 1 MB on, where reads may wait for the
// medium. By default there is no such cache.
int pantile_options_row_cache(struct pantile_options *options,
                              uint64_t bytes);

// Sets how many bytes of the medium may be taken for each live byte, besides 16 MB: 2 by default. Less space costs more
// writes.
int pantile_options_space_target(struct pantile_options *options,
                                 double ratio);

// Sets for how many milliseconds calls wait for rows that others have locked: 1,000 by default. With 0 they fail at
// once.
int pantile_options_lock_wait(struct pantile_options *options,
                              uint64_t milliseconds);

// Limits for how many milliseconds a transaction may hold back garbage, and says what is done about one that is older:
// `PANTILE_WARN` or `PANTILE_END`. 0 sets none, and there is none by default. One that holds back nothing may be of any age.
// `pantile_set_max_pinned_age` changes the limit.
int pantile_options_max_pinned_age(struct pantile_options *options,
                                   uint64_t milliseconds,
                                   int then);

// The same for the bytes that a transaction may hold back.
int pantile_options_max_pinned_bytes(struct pantile_options *options, uint64_t bytes, int then);

// Prepares a transaction, for a coordinator that commits parts of one in several databases. `name` is of `len` bytes, at
// most 255, and is free. What the transaction has changed is durable under that name from then on, and its locks
// stay, also when the database is opened again, until it is committed or rolled back. The transaction has ended in any
// case, unless the call returns `PANTILE_MISUSE`. It is rolled back if the call fails; after `PANTILE_MEDIUM_FAILED` the
// next opening shows whether it has been prepared.
//
// Readers do not wait for it, unless it is at `PANTILE_SERIALIZABLE`. The definitions of tables whose rows it has changed
// cannot change.
int pantile_prepare(struct pantile_db *db,
                    struct pantile_txn *txn,
                    const void *name,
                    size_t len,
                    struct pantile_prepared **out);

// Commits a prepared transaction. `timestamp` may be NULL. If the call fails it is prepared as before and
// `pantile_prepared_take` takes it again, unless a sync has failed: then the next opening shows whether it has been
// committed.
int pantile_prepared_commit(struct pantile_prepared *prepared,
                            uint64_t *timestamp);

// The same, but returns as soon as the writes are visible, as `pantile_publish`. If the process ends before they are
// durable, the transaction is prepared when the database is next opened.
int pantile_prepared_publish(struct pantile_prepared *prepared,
                             struct pantile_in_flight **out);

// Undoes all writes of a prepared transaction. If the call fails it is prepared as before.
int pantile_prepared_rollback(struct pantile_prepared *prepared);

// Leaves a transaction prepared, for `pantile_prepared_take`. Does nothing for NULL.
void pantile_prepared_free(struct pantile_prepared *prepared);

// Takes a prepared transaction by its name, to commit it or to roll it back: `PANTILE_UNKNOWN_NAME` if none of this name
// waits.
int pantile_prepared_take(struct pantile_db *db,
                          const void *name,
                          size_t len,
                          struct pantile_prepared **out);

// Checks that no prepared transaction has changed rows of a table: `PANTILE_BUSY` if one has. Then the table is neither
// changed nor dropped.
int pantile_prepared_check_table(struct pantile_db *db,
                                 const struct pantile_table *table);

// Calls `each` with the names of the prepared transactions that wait, in order.
int pantile_prepared_each(struct pantile_db *db, pantile_each_name each, void *context);

// A place for rows, with none in it. Freed by `pantile_row_free`.
struct pantile_row *pantile_row_new(void);

// Frees a row and its values.
void pantile_row_free(struct pantile_row *row);

// From the next read on, these columns are NULL in the row, whatever is in them, and are not read: what is large takes
// time. With `len` 0 all are read again.
int pantile_row_leave_out(struct pantile_row *row,
                          const size_t *columns,
                          size_t len);

// From the next read on, bytes of values in this row stay where the engine has them, with `lends`, and are not copied:
// they are valid until the next call with the row's transaction.
int pantile_row_lend(struct pantile_row *row,
                     bool lends);

// Whether the last read into this row has locked it, and it was not locked before.
bool pantile_row_is_newly_locked(const struct pantile_row *row);

// How many values the row has; 0 for NULL, and before a row has been read into it.
size_t pantile_row_len(const struct pantile_row *row);

// A value of the row, by the number of its column. Its bytes are valid until another row is read into this one, or
// this one is freed.
int pantile_row_get(const struct pantile_row *row,
                    size_t column,
                    struct pantile_value *out);

// The first `len` values of the row, with bytes that are valid as long as those of `pantile_row_get`. Fails if it has
// fewer.
int pantile_row_values(const struct pantile_row *row,
                       struct pantile_value *out,
                       size_t len);

// Where the library shows what is in the row, so that a program that reads many rows needs no other call for that. It stays
// there until the row is freed, and each read into the row changes it.
const struct pantile_view *pantile_row_view(const struct pantile_row *row);

// Begins a transaction. `options` may be NULL. Ended by `pantile_commit`, `pantile_publish` or `pantile_rollback`.
int pantile_begin(struct pantile_db *db,
                  const struct pantile_txn_options *options,
                  struct pantile_txn **out);

// By which `pantile_end_transaction` knows the transaction.
int pantile_txn_id(const struct pantile_txn *txn, uint64_t *out);

// Commits: makes the writes visible and durable, all or none. `timestamp` may be NULL; transactions with a greater one
// see them. The transaction has ended in any case, unless the call returns `PANTILE_MISUSE`. It is rolled back if the
// call fails; after `PANTILE_MEDIUM_FAILED` the next opening shows whether it has been committed, and after
// `PANTILE_PANIC` a look at what it was to change.
int pantile_commit(struct pantile_txn *txn,
                   uint64_t *timestamp);

// The same, but returns as soon as the writes are visible. `out` says when they are durable, and is given to
// `pantile_in_flight_wait`. One thread can so have many commits on their way.
int pantile_publish(struct pantile_txn *txn,
                    struct pantile_in_flight **out);

// Whether waiting would return at once; also for NULL.
bool pantile_in_flight_is_over(const struct pantile_in_flight *flight);

// Waits until a commit is durable, and frees it. `timestamp` may be NULL.
int pantile_in_flight_wait(struct pantile_in_flight *flight, uint64_t *timestamp);

// Leaves a commit to itself: it becomes durable soon, and nobody learns if it does not. Does nothing for NULL.
void pantile_in_flight_free(struct pantile_in_flight *flight);

// Undoes all writes and ends the transaction. Does nothing for NULL.
int pantile_rollback(struct pantile_txn *txn);

// The timestamp of the transaction: it sees what was committed at or before it. From this call on the transaction does not
// begin again at a later one, as it may when it locks its first row and has read nothing before.
int pantile_txn_timestamp(const struct pantile_txn *txn,
                          uint64_t *out);

// Runs `body` in a transaction and commits it. Starts again, after a while and for some time, if the body or the commit
// has met a conflict, so the body may run several times. If the body returns anything else than `PANTILE_OK`, the
// transaction is rolled back and the call returns the same. `options` may be NULL.
int pantile_run(struct pantile_db *db,
                const struct pantile_txn_options *options,
                pantile_body body,
                void *context);

// Sets a savepoint. Savepoints are numbered from 0.
int pantile_savepoint(struct pantile_txn *txn, size_t *out);

// Undoes all writes since a savepoint, which stays valid. Later ones do not. Locks taken since it are released.
int pantile_rollback_to(struct pantile_txn *txn,
                        size_t savepoint);

// Forgets a savepoint and those that were set after it. What was written since stays.
int pantile_release_savepoint(struct pantile_txn *txn, size_t savepoint);

// Begins a statement: at `PANTILE_READ_COMMITTED`, calls up to the next statement read the state of this moment.
// Without, each call reads a state of its own.
int pantile_begin_statement(struct pantile_txn *txn);

// Ends a statement of a transaction that began at `PANTILE_READ_COMMITTED`: until it reads again, nothing is kept for it but
// the rows that it has locked, and its snapshot if it has taken one. Without, all versions are kept that were visible since
// it began. Cursors of the statement go on only after `pantile_cursor_turn`.
int pantile_end_statement(struct pantile_txn *txn);

// From here on, a transaction at `PANTILE_READ_COMMITTED` is one at `PANTILE_SNAPSHOT`, and its snapshot is of this
// moment. What it has locked and written before stays.
int pantile_take_snapshot(struct pantile_txn *txn);

// Whether a table was made, or emptied, after the moment at which the transaction reads: `PANTILE_OK`, or
// `PANTILE_NOT_FOUND` if not. It shows no rows of that moment. At `PANTILE_READ_COMMITTED`, the moment at which it began
// counts.
int pantile_is_before_table(struct pantile_txn *txn,
                            const struct pantile_table *table);

// The number of rows that the transaction has locked, written ones included.
int pantile_locked_rows(struct pantile_txn *txn, size_t *out);

// Sets for how many milliseconds calls of this transaction wait for rows that others have locked. With 0 they fail at
// once.
int pantile_set_lock_wait(struct pantile_txn *txn,
                          uint64_t milliseconds);

// Before the transaction waits for rows that others have locked, and every 20 milliseconds while it waits, it calls `stop`,
// in the thread that waits, with the number of the transaction for which it waits (`UINT64_MAX` if that has none). The call
// that waits returns `PANTILE_INTERRUPTED` when `stop` returns true. `context` must be valid as long as the transaction.
// `stop` must not call anything with this transaction, which is in the middle of a call.
int pantile_interrupt_when(struct pantile_txn *txn,
                           pantile_stop_wait stop,
                           void *context);

// Inserts a row: `len` values, in the order of the table's columns.
int pantile_insert(struct pantile_txn *txn,
                   const struct pantile_table *table,
                   const struct pantile_value *row,
                   size_t len);

// Inserts a row, or replaces the one with the same primary key. `replaced` may be NULL.
int pantile_upsert(struct pantile_txn *txn,
                   const struct pantile_table *table,
                   const struct pantile_value *row,
                   size_t len,
                   bool *replaced);

// Sets `len` columns, by their numbers, of the row with this primary key. Returns `PANTILE_NOT_FOUND` if there is none.
int pantile_update(struct pantile_txn *txn,
                   const struct pantile_table *table,
                   const struct pantile_value *key,
                   size_t key_len,
                   const size_t *columns,
                   const struct pantile_value *new_values,
                   size_t len);

// Deletes the row with this primary key. Returns `PANTILE_NOT_FOUND` if there is none.
int pantile_delete(struct pantile_txn *txn,
                   const struct pantile_table *table,
                   const struct pantile_value *key,
                   size_t key_len);

// Reads the row with this primary key into `row`. Returns `PANTILE_NOT_FOUND`, and leaves `row` as it was, if there is
// none.
int pantile_get(struct pantile_txn *txn,
                const struct pantile_table *table,
                const struct pantile_value *key,
                size_t key_len,
                struct pantile_row *row);

// The same as `pantile_get`, and says the place of the row, as `pantile_cursor_row_id` would.
int pantile_find_row(struct pantile_txn *txn,
                     const struct pantile_table *table,
                     const struct pantile_value *key,
                     size_t key_len,
                     struct pantile_row *row,
                     uint64_t *id);

// The same as `pantile_find_row`, and keeps others from writing the row until the transaction has ended.
int pantile_find_row_for_update(struct pantile_txn *txn,
                                const struct pantile_table *table,
                                const struct pantile_value *key,
                                size_t key_len,
                                struct pantile_row *row,
                                uint64_t *id);

// Fetches rows that are read soon: into the processor's caches, or into memory if the database is larger than that.
// `keys` are `count` primary keys of `key_len` values each, one behind the other, or the first values of primary keys; then
// the first 16 rows, or less, of each are fetched. A key may have no row. That is only to save time: many rows are waited
// for at once, not one after the other. It reads nothing in the sense of isolation.
int pantile_fetch_ahead(struct pantile_txn *txn,
                        const struct pantile_table *table,
                        const struct pantile_value *keys,
                        size_t key_len,
                        size_t count);

// The same for keys of a secondary index, or the first values of them. A join does so with the keys of its next rows.
int pantile_fetch_ahead_index(struct pantile_txn *txn,
                              const struct pantile_index *index,
                              const struct pantile_value *keys,
                              size_t key_len,
                              size_t count);

// The same as `pantile_get`, and keeps others from writing the row until the transaction has ended.
int pantile_get_for_update(struct pantile_txn *txn,
                           const struct pantile_table *table,
                           const struct pantile_value *key,
                           size_t key_len,
                           struct pantile_row *row);

// Reads the first row with this key of an index into `row`. Returns `PANTILE_NOT_FOUND` if there is none.
int pantile_get_by_index(struct pantile_txn *txn,
                         const struct pantile_index *index,
                         const struct pantile_value *key,
                         size_t key_len,
                         struct pantile_row *row);

// Reads the row at this place into `row`; places are from `pantile_cursor_row_id`. Returns `PANTILE_NOT_FOUND` if the
// transaction sees none there.
int pantile_get_row(struct pantile_txn *txn,
                    const struct pantile_table *table,
                    uint64_t id,
                    struct pantile_row *row);

// The same, and keeps others from writing the row until the transaction has ended.
int pantile_get_row_for_update(struct pantile_txn *txn,
                               const struct pantile_table *table,
                               uint64_t id,
                               struct pantile_row *row);

// Sets `len` columns, by their numbers, of the row at this place. Returns `PANTILE_NOT_FOUND` if there is none.
int pantile_update_row(struct pantile_txn *txn,
                       const struct pantile_table *table,
                       uint64_t id,
                       const size_t *columns,
                       const struct pantile_value *new_values,
                       size_t len);

// Deletes the row at this place. Returns `PANTILE_NOT_FOUND` if there is none.
int pantile_delete_row(struct pantile_txn *txn, const struct pantile_table *table, uint64_t id);

// Lets go of a row that this transaction has locked last and not written. Returns `PANTILE_NOT_FOUND`, and does
// nothing, if it is another one.
int pantile_unlock_row(struct pantile_txn *txn,
                       const struct pantile_table *table,
                       uint64_t id);

// NULL.
struct pantile_value pantile_null(void);

// A truth value.
struct pantile_value pantile_bool(bool boolean);

// A signed integer.
struct pantile_value pantile_int(int64_t integer);

// An unsigned integer.
struct pantile_value pantile_uint(uint64_t natural);

// A floating-point number.
struct pantile_value pantile_float(double real);

// A decimal number: `high` times 2 to the power of 64, plus `low`, units of 10 to the power of minus `scale`.
struct pantile_value pantile_decimal(int64_t high,
                                     uint64_t low,
                                     int scale);

// A text that ends with a zero byte; NULL if the pointer is.
struct pantile_value pantile_text(const char *text);

// A text of `len` bytes.
struct pantile_value pantile_text_of(const char *text, size_t len);

// `len` bytes.
struct pantile_value pantile_bytes(const uint8_t *data, size_t len);

// A point in time, in microseconds since 1970-01-01 00:00:00 UTC.
struct pantile_value pantile_timestamp(int64_t micros);

// Calls `warning` with each warning of any database of the process, in the thread that it comes from, one at a time.
// `context` must be valid until the function is replaced; NULL for the function ends it. `warning` calls nothing of this
// library. Fails with `PANTILE_MISUSE` if something else of the process takes what `tracing` reports.
int pantile_on_warnings(pantile_on_warning warning,
                        void *context);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PANTILE_H */
