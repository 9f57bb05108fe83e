/* Transactions: threads, conflicts, retries, commits in flight, options, closing, misuse. */
#include "test.h"
#include <pthread.h>

enum { THREADS = 4, ADDITIONS = 200 };

struct work {
    pantile_db *db;
    pantile_table *table;
    int calls;
};

static int add_one(pantile_txn *txn, void *context) {
    struct work *work = context;
    work->calls++;
    pantile_value key = pantile_uint(1), group;
    size_t column = 1;
    pantile_row *row = pantile_row_new();
    int code = pantile_get(txn, work->table, &key, 1, row);
    if (code == PANTILE_OK) {
        OK(pantile_row_get(row, 1, &group));
        group.as.integer++;
        code = pantile_update(txn, work->table, &key, 1, &column, &group, 1);
    }
    pantile_row_free(row);
    return code;
}

static void *add_many(void *context) {
    for (int n = 0; n < ADDITIONS; n++) {
        struct work *work = context;
        struct work own = {work->db, work->table, 0};
        OK(pantile_run(own.db, NULL, add_one, &own));
    }
    return NULL;
}

static int64_t counter(pantile_db *db, pantile_table *table) {
    pantile_txn *txn;
    pantile_row *row = pantile_row_new();
    pantile_value key = pantile_uint(1), group;
    OK(pantile_begin(db, &(pantile_txn_options){.read_only = true}, &txn));
    OK(pantile_get(txn, table, &key, 1, row));
    OK(pantile_row_get(row, 1, &group));
    OK(pantile_rollback(txn));
    pantile_row_free(row);
    return group.as.integer;
}

static int refuses(pantile_txn *txn, void *context) {
    struct work *work = context;
    work->calls++;
    OK(put(txn, work->table, 50, 0, NULL));
    FAILS(PANTILE_MISUSE, pantile_commit(txn, NULL));
    FAILS(PANTILE_MISUSE, pantile_rollback(txn));
    return -7;
}

static bool at_once(void *context, uint64_t number) {
    EXPECT(number == 5);
    ++*(int *)context;
    return true;
}

static void statements(pantile_db *db, pantile_table *table) {
    pantile_txn *first, *second;
    pantile_value key = pantile_uint(1), group = pantile_int(0);
    size_t column = 1;
    int asked = 0;
    pantile_row *row = pantile_row_new();
    pantile_cursor *cursor;
    OK(pantile_begin(db, &(pantile_txn_options){.isolation = PANTILE_SNAPSHOT, .has_number = true, .number = 5}, &first));
    OK(pantile_update(first, table, &key, 1, &column, &group, 1));
    OK(pantile_begin(db, &(pantile_txn_options){.isolation = PANTILE_READ_COMMITTED}, &second));
    OK(pantile_begin_statement(second));
    OK(pantile_interrupt_when(second, at_once, &asked));
    OK(pantile_set_lock_wait(second, 60000));
    FAILS(PANTILE_INTERRUPTED, pantile_update(second, table, &key, 1, &column, &group, 1));
    EXPECT(asked > 0 && !pantile_is_retryable(PANTILE_INTERRUPTED));
    OK(pantile_scan(second, table, NULL, &cursor));
    OK(pantile_cursor_next_for_update(cursor, second, true, row));
    pantile_value id;
    OK(pantile_row_get(row, 0, &id));
    EXPECT(id.as.natural != 1);
    OK(pantile_take_snapshot(second));
    const char *later_key = "id";
    pantile_table_def *def;
    pantile_table *later;
    OK(pantile_table_def_new("later", &def));
    OK(pantile_table_def_column(def, "id", (pantile_type){PANTILE_TYPE_UINT, 8, 0}, false));
    OK(pantile_table_def_primary_key(def, &later_key, 1));
    OK(pantile_create_table(db, def, &later));
    pantile_table_def_free(def);
    OK(pantile_is_before_table(second, later));
    EXPECT(pantile_is_before_table(second, table) == PANTILE_NOT_FOUND);
    pantile_table_free(later);
    OK(pantile_drop_table(db, "later"));
    OK(pantile_commit(first, NULL));
    FAILS(PANTILE_CHANGED, pantile_update(second, table, &key, 1, &column, &group, 1));
    EXPECT(pantile_is_retryable(PANTILE_CHANGED));
    OK(pantile_rollback(second));
    pantile_cursor_free(cursor);
    pantile_row_free(row);
}

static void conflicts(pantile_db *db, pantile_table *table) {
    pantile_txn *first, *second;
    pantile_value key = pantile_uint(1), group = pantile_int(0);
    size_t column = 1;
    OK(pantile_begin(db, NULL, &first));
    OK(pantile_update(first, table, &key, 1, &column, &group, 1));
    pantile_txn_options at_once = {.has_lock_wait = true};
    OK(pantile_begin(db, &at_once, &second));
    int code = pantile_update(second, table, &key, 1, &column, &group, 1);
    EXPECT(code == PANTILE_LOCKED && pantile_is_retryable(code));
    EXPECT(strcmp(pantile_error_table(), "numbers") == 0);
    EXPECT(!pantile_is_retryable(PANTILE_DUPLICATE_KEY) && !pantile_is_retryable(PANTILE_OK));
    OK(pantile_rollback(second));
    at_once.isolation = 9;
    FAILS(PANTILE_MISUSE, pantile_begin(db, &at_once, &second));

    /* Closing waits, says what is open, and leaves it open. */
    FAILS(PANTILE_BUSY, pantile_close(db));
    OK(pantile_rollback(first));
}

static void misuse(pantile_db *db, pantile_table *table) {
    pantile_txn *txn;
    pantile_value key = pantile_uint(1), bad = {42, 0, {0}};
    pantile_row *row = pantile_row_new();
    FAILS(PANTILE_MISUSE, pantile_begin(NULL, NULL, &txn));
    FAILS(PANTILE_MISUSE, pantile_begin(db, NULL, NULL));
    FAILS(PANTILE_MISUSE, pantile_commit(NULL, NULL));
    FAILS(PANTILE_MISUSE, pantile_close(NULL));
    FAILS(PANTILE_MISUSE, pantile_table_open(db, "\xff", &table));
    FAILS(PANTILE_MISUSE, pantile_run(db, NULL, NULL, NULL));
    OK(pantile_rollback(NULL));
    pantile_release(NULL);
    pantile_table_free(NULL);
    pantile_index_free(NULL);
    pantile_cursor_free(NULL);
    pantile_row_free(NULL);
    pantile_names_free(NULL);
    pantile_options_free(NULL);
    pantile_table_def_free(NULL);
    EXPECT(pantile_row_len(NULL) == 0 && pantile_table_columns(NULL) == 0 && !pantile_table_name(NULL));

    OK(pantile_begin(db, NULL, &txn));
    FAILS(PANTILE_MISUSE, pantile_get(txn, NULL, &key, 1, row));
    FAILS(PANTILE_MISUSE, pantile_get(txn, table, NULL, 1, row));
    FAILS(PANTILE_MISUSE, pantile_get(txn, table, &key, 1, NULL));
    FAILS(PANTILE_MISUSE, pantile_get(txn, table, &bad, 1, row));
    bad = pantile_bytes(NULL, 3);
    FAILS(PANTILE_MISUSE, pantile_get(txn, table, &bad, 1, row));
    bad = pantile_text_of("\xff", 1);
    FAILS(PANTILE_MISUSE, pantile_get(txn, table, &bad, 1, row));
    bad = pantile_decimal(0, 1, 39);
    FAILS(PANTILE_MISUSE, pantile_get(txn, table, &bad, 1, row));
    bad = pantile_text_of("one, and more", 3);
    FAILS(PANTILE_BAD_VALUE, pantile_get(txn, table, &bad, 1, row));
    FAILS(PANTILE_BAD_VALUE, pantile_insert(txn, table, &key, 1));
    /* It goes on after all that. */
    OK(pantile_get(txn, table, &key, 1, row));
    OK(pantile_rollback(txn));
    pantile_row_free(row);

    pantile_table_def *def;
    OK(pantile_table_def_new("odd", &def));
    FAILS(PANTILE_MISUSE, pantile_table_def_column(def, "n", type(PANTILE_TYPE_INT, 3, 0), false));
    FAILS(PANTILE_MISUSE, pantile_table_def_column(def, NULL, type(PANTILE_TYPE_INT, 4, 0), false));
    FAILS(PANTILE_INVALID, pantile_create_table(db, def, NULL));
    pantile_table_def_free(def);
}

static void in_flight(pantile_db *db, pantile_table *table) {
    pantile_in_flight *flights[16];
    uint64_t timestamp, last = 0;
    for (int n = 0; n < 16; n++) {
        pantile_txn *txn;
        OK(pantile_begin(db, NULL, &txn));
        OK(put(txn, table, (uint64_t)(100 + n), 1, NULL));
        OK(pantile_publish(txn, &flights[n]));
    }
    for (int n = 0; n < 16; n++) {
        OK(pantile_in_flight_wait(flights[n], &timestamp));
        EXPECT(timestamp > last);
        last = timestamp;
    }
    FAILS(PANTILE_MISUSE, pantile_in_flight_wait(NULL, NULL));
    EXPECT(pantile_in_flight_is_over(NULL));
    pantile_txn *txn;
    OK(pantile_begin(db, NULL, &txn));
    OK(put(txn, table, 116, 1, NULL));
    OK(pantile_publish(txn, &flights[0]));
    pantile_in_flight_free(flights[0]);
    pantile_in_flight_free(NULL);
    OK(pantile_sync(db));
}

static pantile_prepared *prepare(pantile_db *db, pantile_table *table, uint64_t id, const char *name) {
    const pantile_txn_options snapshot = {.isolation = PANTILE_SNAPSHOT};
    pantile_txn *txn;
    pantile_prepared *prepared;
    OK(pantile_begin(db, &snapshot, &txn));
    OK(put(txn, table, id, 1, NULL));
    OK(pantile_prepare(db, txn, name, strlen(name), &prepared));
    return prepared;
}

static void note_name(void *context, const char *name, size_t len) {
    char *names = context;
    strncat(names, name, len);
    strcat(names, " ");
}

static void expect_prepared(pantile_db *db, const char *expected) {
    char names[64] = "";
    OK(pantile_prepared_each(db, note_name, names));
    EXPECT(strcmp(names, expected) == 0);
}

/* Leaves "c" and "d" prepared. */
static void two_phases(pantile_db *db, pantile_table *table) {
    pantile_prepared *a = prepare(db, table, 201, "a"), *b = prepare(db, table, 202, "b"), *again;
    pantile_in_flight *flight;
    uint64_t timestamp = 0;
    expect_prepared(db, "");
    FAILS(PANTILE_UNKNOWN_NAME, pantile_prepared_take(db, "a", 1, &again));
    FAILS(PANTILE_BUSY, pantile_drop_table(db, "numbers"));
    FAILS(PANTILE_BUSY, pantile_prepared_check_table(db, table));
    pantile_txn *txn;
    OK(pantile_begin(db, NULL, &txn));
    OK(put(txn, table, 205, 1, NULL));
    FAILS(PANTILE_NAME_EXISTS, pantile_prepare(db, txn, "a", 1, &again));
    OK(pantile_prepared_commit(a, &timestamp));
    EXPECT(timestamp > 0);
    pantile_prepared_free(b);
    expect_prepared(db, "b ");
    OK(pantile_prepared_take(db, "b", 1, &b));
    OK(pantile_prepared_rollback(b));
    OK(pantile_prepared_publish(prepare(db, table, 206, "e"), &flight));
    OK(pantile_in_flight_wait(flight, NULL));
    pantile_prepared_free(prepare(db, table, 203, "c"));
    pantile_prepared_free(prepare(db, table, 204, "d"));
    expect_prepared(db, "c d ");
    pantile_prepared_free(NULL);
    FAILS(PANTILE_MISUSE, pantile_prepared_commit(NULL, NULL));
    FAILS(PANTILE_MISUSE, pantile_prepared_rollback(NULL));
    FAILS(PANTILE_MISUSE, pantile_prepared_each(db, NULL, NULL));
}

static bool has(pantile_db *db, pantile_table *table, uint64_t id) {
    pantile_txn *txn;
    pantile_value key = pantile_uint(id);
    pantile_row *row = pantile_row_new();
    OK(pantile_begin(db, NULL, &txn));
    int code = pantile_get(txn, table, &key, 1, row);
    EXPECT(code == PANTILE_OK || code == PANTILE_NOT_FOUND);
    OK(pantile_rollback(txn));
    pantile_row_free(row);
    return code == PANTILE_OK;
}

static int set_counter(pantile_txn *txn, pantile_table *table, int64_t to) {
    pantile_value key = pantile_uint(1), group = pantile_int(to);
    size_t column = 1;
    return pantile_update(txn, table, &key, 1, &column, &group, 1);
}

/* Meets a conflict when it runs for the first time, and then another failure. */
static int fails_twice(pantile_txn *txn, void *context) {
    struct work *work = context;
    pantile_value key = pantile_uint(1);
    pantile_row *row = pantile_row_new();
    OK(pantile_get(txn, work->table, &key, 1, row));
    pantile_row_free(row);
    if (work->calls++ == 0) {
        pantile_txn *other;
        OK(pantile_begin(work->db, NULL, &other));
        OK(set_counter(other, work->table, 7));
        OK(pantile_commit(other, NULL));
    }
    int code = set_counter(txn, work->table, 8);
    if (code != PANTILE_OK)
        FAILS(PANTILE_UNKNOWN_SAVEPOINT, pantile_rollback_to(txn, 99));
    return code;
}

static bool stops(void *context) {
    (void) context;
    return true;
}

int main(int argc, char **argv) {
    EXPECT(argc == 2 && strlen(pantile_version()) >= 5);
    pantile_options *options = pantile_options_new();
    pantile_db *db, *other;
    OK(pantile_options_create(options, false));
    FAILS(PANTILE_NO_DATABASE, pantile_open(argv[1], options, &db));
    OK(pantile_options_create(options, true));
    OK(pantile_options_medium(options, PANTILE_MEDIUM_FILE));
    FAILS(PANTILE_MISUSE, pantile_options_medium(options, 9));
    OK(pantile_options_durability(options, PANTILE_DURABILITY_GROUP));
    FAILS(PANTILE_MISUSE, pantile_options_durability(options, 9));
    OK(pantile_options_max_bytes(options, 64 << 20));
    OK(pantile_options_memory_limit(options, 64 << 20));
    OK(pantile_options_space_target(options, 0.5));
    FAILS(PANTILE_INVALID, pantile_open(argv[1], options, &db));
    OK(pantile_options_space_target(options, 1.5));
    OK(pantile_options_lock_wait(options, 5000));
    OK(pantile_open(argv[1], options, &db));
    pantile_options_free(options);
    FAILS(PANTILE_ALREADY_OPEN, pantile_open(argv[1], NULL, &other));

    pantile_table *table = numbers(db);
    OK(pantile_open_read_only(argv[1], NULL, &other));
    bool is_current = false;
    OK(pantile_is_current(other, &is_current));
    EXPECT(is_current);
    FAILS(PANTILE_READ_ONLY, pantile_drop_table(other, "numbers"));
    OK(pantile_close(other));
    struct work work = {db, table, 0};
    pantile_txn *txn;
    OK(pantile_begin(db, NULL, &txn));
    OK(put(txn, table, 1, 0, "a counter"));
    OK(pantile_commit(txn, NULL));
    pthread_t threads[THREADS];
    for (int n = 0; n < THREADS; n++)
        EXPECT(pthread_create(&threads[n], NULL, add_many, &work) == 0);
    for (int n = 0; n < THREADS; n++)
        EXPECT(pthread_join(threads[n], NULL) == 0);
    EXPECT(counter(db, table) == THREADS * ADDITIONS);

    EXPECT(pantile_run(db, NULL, refuses, &work) == -7 && work.calls == 1);
    work.calls = 0;
    OK(pantile_run(db, NULL, fails_twice, &work));
    EXPECT(work.calls == 2 && counter(db, table) == 8);
    conflicts(db, table);
    misuse(db, table);
    in_flight(db, table);
    statements(db, table);
    FAILS(PANTILE_CANCELLED, pantile_compact(db, stops, NULL));
    OK(pantile_compact(db, NULL, NULL));
    pantile_stats stats;
    OK(pantile_statistics(db, &stats));
    /* The catalog has a row for the table. */
    EXPECT(stats.rows == 19 && stats.running == 0 && stats.commits > THREADS * ADDITIONS && stats.memory_bytes > 0);
    EXPECT(stats.medium_bytes >= stats.live_bytes && stats.damaged_rows == 0 &&
           stats.written_bytes >= stats.live_bytes && stats.syncs > 0);
    two_phases(db, table);
    pantile_table_free(table);
    OK(pantile_close(db));
    OK(pantile_open(argv[1], NULL, &db));
    OK(pantile_table_open(db, "numbers", &table));
    expect_prepared(db, "c d ");
    EXPECT(has(db, table, 201) && !has(db, table, 202) && !has(db, table, 203) && has(db, table, 206));
    pantile_prepared *prepared;
    OK(pantile_prepared_take(db, "c", 1, &prepared));
    OK(pantile_prepared_commit(prepared, NULL));
    OK(pantile_prepared_take(db, "d", 1, &prepared));
    OK(pantile_prepared_rollback(prepared));
    EXPECT(has(db, table, 203) && !has(db, table, 204) && !has(db, table, 205));
    expect_prepared(db, "");
    OK(pantile_prepared_check_table(db, table));
    pantile_table_free(table);
    pantile_release(db);
    return 0;
}
