/* Reading and writing rows: every kind of value, keys, indexes, cursors, savepoints. */
#include "test.h"

static void every_kind(pantile_db *db) {
    static const pantile_type types[] = {
        {PANTILE_TYPE_UINT, 4, 0},   {PANTILE_TYPE_BOOL, 0, 0},        {PANTILE_TYPE_INT, 8, 0},
        {PANTILE_TYPE_FLOAT, 8, 0},  {PANTILE_TYPE_DECIMAL, 38, 2},    {PANTILE_TYPE_TIMESTAMP, 0, 0},
        {PANTILE_TYPE_BYTES, 50, 0}, {PANTILE_TYPE_FIXED_BYTES, 4, 0}, {PANTILE_TYPE_FIXED_TEXT, 6, 0},
        {PANTILE_TYPE_TEXT, 9, 0},
    };
    const size_t len = sizeof types / sizeof *types;
    const char *key[] = {"c0"};
    pantile_table_def *def;
    pantile_table *table;
    OK(pantile_table_def_new("kinds", &def));
    for (size_t n = 0; n < len; n++) {
        char name[] = {'c', (char)('0' + n), 0};
        OK(pantile_table_def_column(def, name, types[n], n == 9));
    }
    OK(pantile_table_def_primary_key(def, key, 1));
    OK(pantile_create_table(db, def, &table));
    FAILS(PANTILE_NAME_EXISTS, pantile_create_table(db, def, NULL));
    EXPECT(strcmp(pantile_error_table(), "kinds") == 0 && !pantile_error_index() && !pantile_error_column());
    pantile_table_def_free(def);
    EXPECT(strcmp(pantile_table_name(table), "kinds") == 0 && pantile_table_columns(table) == len);
    for (size_t n = 0; n < len; n++) {
        const char *name;
        pantile_type found;
        bool nullable;
        OK(pantile_table_column(table, n, &name, &found, &nullable));
        EXPECT(name[1] == (char)('0' + n) && nullable == (n == 9));
        EXPECT(found.kind == types[n].kind && found.size == types[n].size && found.scale == types[n].scale);
    }
    FAILS(PANTILE_MISUSE, pantile_table_column(table, len, NULL, NULL, NULL));

    const uint8_t bytes[] = {0, 1, 255};
    pantile_value row[] = {
        pantile_uint(7),  pantile_bool(true),
        pantile_int(-5),  pantile_float(2.5),
        pantile_decimal(-1, UINT64_MAX - 1998, 2), /* -19.99 */
        pantile_timestamp(1000000),
        pantile_bytes(bytes, 3), pantile_bytes(bytes, 3),
        pantile_text("six"), pantile_text(NULL),
    };
    pantile_txn *txn;
    pantile_row *place = pantile_row_new();
    pantile_value value;
    OK(pantile_begin(db, NULL, &txn));
    OK(pantile_insert(txn, table, row, len));
    EXPECT(pantile_row_len(place) == 0);
    OK(pantile_get(txn, table, row, 1, place));
    OK(pantile_rollback(txn));
    /* The values are copies. */
    EXPECT(pantile_row_len(place) == len);
    for (size_t n = 0; n < len; n++) {
        OK(pantile_row_get(place, n, &value));
        EXPECT(value.kind == row[n].kind);
    }
    OK(pantile_row_get(place, 1, &value));
    EXPECT(value.as.boolean);
    OK(pantile_row_get(place, 2, &value));
    EXPECT(value.as.integer == -5);
    OK(pantile_row_get(place, 3, &value));
    EXPECT(value.as.real == 2.5);
    OK(pantile_row_get(place, 4, &value));
    EXPECT(value.scale == 2 && value.as.decimal.high == -1 && value.as.decimal.low == UINT64_MAX - 1998);
    OK(pantile_row_get(place, 5, &value));
    EXPECT(value.as.integer == 1000000);
    OK(pantile_row_get(place, 6, &value));
    EXPECT(value.as.bytes.len == 3 && memcmp(value.as.bytes.data, bytes, 3) == 0);
    OK(pantile_row_get(place, 7, &value));
    EXPECT(value.as.bytes.len == 4 && value.as.bytes.data[3] == 0);
    OK(pantile_row_get(place, 8, &value));
    EXPECT(value.as.bytes.len == 3 && memcmp(value.as.bytes.data, "six", 3) == 0);
    FAILS(PANTILE_MISUSE, pantile_row_get(place, len, &value));
    pantile_row_free(place);
    pantile_table_free(table);
    OK(pantile_drop_table(db, "kinds"));
    FAILS(PANTILE_UNKNOWN_NAME, pantile_drop_table(db, "kinds"));
}

static void by_key(pantile_db *db, pantile_table *table) {
    pantile_txn *txn;
    pantile_row *row = pantile_row_new();
    pantile_value key = pantile_uint(1), value;
    char *large = calloc(90001, 1);
    memset(large, 'x', 90000);
    OK(pantile_begin(db, NULL, &txn));
    OK(put(txn, table, 1, 10, large)); /* out of line */
    OK(put(txn, table, 2, 10, "two"));
    FAILS(PANTILE_DUPLICATE_KEY, put(txn, table, 2, 11, NULL));
    EXPECT(strcmp(pantile_error_index(), "primary") == 0);
    OK(pantile_get(txn, table, &key, 1, row));
    OK(pantile_row_get(row, 2, &value));
    EXPECT(value.kind == PANTILE_TEXT && value.as.bytes.len == 90000 && memcmp(value.as.bytes.data, large, 90000) == 0);
    free(large);
    size_t third = 2;
    OK(pantile_row_leave_out(row, &third, 1));
    OK(pantile_get(txn, table, &key, 1, row));
    OK(pantile_row_get(row, 1, &value));
    EXPECT(pantile_row_len(row) == 3 && value.as.integer == 10);
    OK(pantile_row_get(row, 2, &value));
    EXPECT(value.kind == PANTILE_NULL);
    OK(pantile_row_leave_out(row, NULL, 0));
    OK(pantile_get(txn, table, &key, 1, row));
    OK(pantile_row_get(row, 2, &value));
    EXPECT(value.kind == PANTILE_TEXT && value.as.bytes.len == 90000);

    size_t column;
    OK(pantile_table_column_number(table, "group", &column));
    FAILS(PANTILE_UNKNOWN_NAME, pantile_table_column_number(table, "grup", &column));
    EXPECT(column == 1);
    pantile_value group = pantile_int(20), too_large = pantile_int(INT64_MAX);
    OK(pantile_update(txn, table, &key, 1, &column, &group, 1));
    FAILS(PANTILE_BAD_VALUE, pantile_update(txn, table, &key, 1, &column, &too_large, 1));
    EXPECT(strcmp(pantile_error_column(), "group") == 0);
    OK(pantile_get_for_update(txn, table, &key, 1, row));
    OK(pantile_row_get(row, 1, &value));
    EXPECT(value.kind == PANTILE_INT && value.as.integer == 20);

    size_t before;
    OK(pantile_savepoint(txn, &before));
    OK(pantile_delete(txn, table, &key, 1));
    EXPECT(pantile_delete(txn, table, &key, 1) == PANTILE_NOT_FOUND);
    EXPECT(pantile_get(txn, table, &key, 1, row) == PANTILE_NOT_FOUND);
    EXPECT(pantile_update(txn, table, &key, 1, &column, &group, 1) == PANTILE_NOT_FOUND);
    pantile_value keys[] = {pantile_uint(1), pantile_uint(2), pantile_uint(77)}, text = pantile_text("x");
    OK(pantile_fetch_ahead(txn, table, keys, 1, 3));
    OK(pantile_fetch_ahead(txn, table, NULL, 1, 0));
    FAILS(PANTILE_BAD_VALUE, pantile_fetch_ahead(txn, table, &text, 1, 1));
    FAILS(PANTILE_BAD_VALUE, pantile_fetch_ahead(txn, table, keys, 3, 1));
    FAILS(PANTILE_MISUSE, pantile_fetch_ahead(txn, table, keys, 0, 1));
    FAILS(PANTILE_MISUSE, pantile_fetch_ahead(txn, table, keys, SIZE_MAX / 2, 3));
    OK(pantile_rollback_to(txn, before));
    FAILS(PANTILE_UNKNOWN_SAVEPOINT, pantile_rollback_to(txn, before + 1));
    OK(pantile_get(txn, table, &key, 1, row));

    bool replaced;
    pantile_value three[] = {pantile_uint(3), pantile_int(30), pantile_null()};
    OK(pantile_upsert(txn, table, three, 3, &replaced));
    EXPECT(!replaced);
    OK(pantile_upsert(txn, table, three, 3, &replaced));
    EXPECT(replaced);
    uint64_t committed = 0, began;
    OK(pantile_txn_timestamp(txn, &began));
    OK(pantile_commit(txn, &committed));
    EXPECT(committed >= began && began > 0);
    pantile_row_free(row);
}

/* The ids of a cursor's rows, as digits. */
static long read_all(pantile_txn *txn, pantile_cursor *cursor) {
    pantile_row *row = pantile_row_new();
    pantile_value id;
    long digits = 0;
    int code;
    while ((code = pantile_cursor_next(cursor, txn, row)) == PANTILE_OK) {
        OK(pantile_row_get(row, 0, &id));
        digits = digits * 10 + (long)id.as.natural;
    }
    EXPECT(code == PANTILE_DONE && pantile_cursor_next(cursor, txn, row) == PANTILE_DONE);
    pantile_row_free(row);
    pantile_cursor_free(cursor);
    return digits;
}

static bool always(void *context) {
    (void)context;
    return true;
}

static void cursors(pantile_db *db, pantile_table *table) {
    pantile_txn *txn;
    pantile_cursor *cursor;
    OK(pantile_begin(db, NULL, &txn));
    for (uint64_t id = 4; id < 8; id++)
        OK(put(txn, table, id, (int64_t)(id % 2), NULL));
    OK(pantile_scan(txn, table, NULL, &cursor));
    EXPECT(read_all(txn, cursor) == 1234567);
    pantile_value three = pantile_uint(3), six = pantile_uint(6);
    pantile_range range = {{PANTILE_EXCLUDED, &three, 1}, {PANTILE_INCLUDED, &six, 1}, true, 2};
    OK(pantile_scan(txn, table, &range, &cursor));
    EXPECT(read_all(txn, cursor) == 65);

    const char *columns[] = {"group", "id"};
    pantile_index *by_group, *unique;
    OK(pantile_index_open(table, "by_group", &by_group));
    FAILS(PANTILE_UNKNOWN_NAME, pantile_index_open(table, "by_grup", &unique));
    pantile_names *indexes;
    OK(pantile_index_names(table, &indexes));
    EXPECT(pantile_names_len(indexes) == 1 && strcmp(pantile_names_get(indexes, 0), "by_group") == 0);
    pantile_names_free(indexes);
    pantile_value one = pantile_int(1);
    pantile_range ones = {{PANTILE_INCLUDED, &one, 1}, {PANTILE_INCLUDED, &one, 1}, false, 0};
    pantile_value groups[] = {one, pantile_int(7), pantile_int(-3)}, name = pantile_text("x");
    OK(pantile_fetch_ahead_index(txn, by_group, groups, 1, 3));
    OK(pantile_fetch_ahead_index(txn, by_group, NULL, 1, 0));
    FAILS(PANTILE_BAD_VALUE, pantile_fetch_ahead_index(txn, by_group, &name, 1, 1));
    FAILS(PANTILE_MISUSE, pantile_fetch_ahead_index(txn, by_group, groups, 0, 3));
    OK(pantile_scan_index(txn, by_group, &ones, &cursor));
    EXPECT(read_all(txn, cursor) == 57);

    /* While a cursor is open its transaction may write, and may lock what it comes to. */
    pantile_row *place = pantile_row_new();
    pantile_value values[3];
    uint64_t at, about;
    const pantile_view *seen = pantile_row_view(place);
    EXPECT(seen->len == 0 && pantile_row_view(NULL) == NULL);
    OK(pantile_scan(txn, table, NULL, &cursor));
    EXPECT(pantile_cursor_row_id(cursor, &at) == PANTILE_NOT_FOUND);
    OK(pantile_cursor_next(cursor, txn, place));
    OK(pantile_cursor_row_id(cursor, &at));
    EXPECT(seen->id == at && seen->len == 3 && seen->values[0].as.natural == 1);
    OK(put(txn, table, 9, 0, NULL));
    OK(pantile_cursor_next_for_update(cursor, txn, false, place));
    OK(pantile_row_values(place, values, 3));
    EXPECT(values[0].as.natural == 2);
    FAILS(PANTILE_MISUSE, pantile_row_values(place, values, 9));
    OK(pantile_cursor_row_id(cursor, &at));
    EXPECT(seen->id == at && seen->values[0].as.natural == 2);
    size_t locked = 0, left = 0;
    OK(pantile_locked_rows(txn, &locked));
    OK(pantile_unlock_row(txn, table, at));
    OK(pantile_locked_rows(txn, &left));
    EXPECT(left + 1 == locked);
    EXPECT(pantile_unlock_row(txn, table, at) == PANTILE_NOT_FOUND);
    OK(pantile_get_row_for_update(txn, table, at, place));
    size_t second = 1, first = 0;
    OK(pantile_update_row(txn, table, at, &second, &three, 1));
    FAILS(PANTILE_PRIMARY_KEY_CHANGED, pantile_update_row(txn, table, at, &first, &six, 1));
    OK(pantile_get_row(txn, table, at, place));
    OK(pantile_row_get(place, 1, &values[1]));
    EXPECT(values[1].as.integer == 3 && seen->values[1].as.integer == 3 && seen->id == at);
    OK(pantile_get(txn, table, &values[0], 1, place));
    EXPECT(seen->values[0].as.natural == 2 && seen->id == UINT64_MAX);
    uint64_t found = UINT64_MAX;
    OK(pantile_find_row(txn, table, &values[0], 1, place, &found));
    EXPECT(found == at && seen->id == at);
    found = UINT64_MAX;
    OK(pantile_find_row_for_update(txn, table, &values[0], 1, place, &found));
    EXPECT(found == at && seen->id == at);
    size_t savepoint;
    OK(pantile_savepoint(txn, &savepoint));
    OK(pantile_delete_row(txn, table, at));
    EXPECT(pantile_get_row(txn, table, at, place) == PANTILE_NOT_FOUND);
    EXPECT(pantile_find_row(txn, table, &values[0], 1, place, &found) == PANTILE_NOT_FOUND);
    EXPECT(pantile_find_row_for_update(txn, table, &values[0], 1, place, &found) == PANTILE_NOT_FOUND);
    EXPECT(pantile_get_row(txn, table, UINT64_MAX, place) == PANTILE_NOT_FOUND);
    OK(pantile_rollback_to(txn, savepoint));
    OK(pantile_release_savepoint(txn, savepoint));
    FAILS(PANTILE_UNKNOWN_SAVEPOINT, pantile_rollback_to(txn, savepoint));
    OK(pantile_get_row(txn, table, at, place));
    long rest = read_all(txn, cursor);
    EXPECT(rest == 34567 || rest == 345679);
    OK(pantile_estimate(txn, table, NULL, &about));
    EXPECT(about == 8);
    OK(pantile_estimate_index(txn, by_group, &ones, &about));
    EXPECT(about == 2);
    OK(pantile_commit(txn, NULL));
    pantile_row_free(place);

    FAILS(PANTILE_CANCELLED, pantile_create_index(db, table, "group_id", columns, 2, true, always, NULL, NULL));
    OK(pantile_create_index(db, table, "group_id", columns, 2, true, NULL, NULL, &unique));
    pantile_row *row = pantile_row_new();
    pantile_value key[] = {pantile_int(1), pantile_uint(7)};
    OK(pantile_begin(db, NULL, &txn));
    OK(pantile_get_by_index(txn, unique, key, 2, row));
    key[1] = pantile_uint(8);
    EXPECT(pantile_get_by_index(txn, unique, key, 2, row) == PANTILE_NOT_FOUND);
    OK(pantile_rollback(txn));
    pantile_row_free(row);
    pantile_index_free(unique);
    pantile_index_free(by_group);
    OK(pantile_drop_index(db, table, "group_id"));
    FAILS(PANTILE_UNKNOWN_NAME, pantile_drop_index(db, table, "group_id"));
}

int main(int argc, char **argv) {
    EXPECT(argc == 2);
    pantile_db *db;
    OK(pantile_open(argv[1], NULL, &db));
    every_kind(db);
    pantile_table *table = numbers(db);
    by_key(db, table);
    cursors(db, table);
    pantile_table_free(table);
    OK(pantile_close(db));

    /* All of it is there when the database is opened again. */
    pantile_txn *txn;
    pantile_cursor *cursor;
    pantile_names *names;
    OK(pantile_open(argv[1], NULL, &db));
    OK(pantile_table_names(db, &names));
    EXPECT(pantile_names_len(names) == 1 && strcmp(pantile_names_get(names, 0), "numbers") == 0);
    EXPECT(!pantile_names_get(names, 1));
    pantile_names_free(names);
    OK(pantile_table_open(db, "numbers", &table));
    OK(pantile_begin(db, &(pantile_txn_options){.read_only = true}, &txn));
    OK(pantile_scan(txn, table, NULL, &cursor));
    EXPECT(read_all(txn, cursor) == 12345679);
    FAILS(PANTILE_READ_ONLY, put(txn, table, 10, 0, NULL));
    OK(pantile_rollback(txn));
    pantile_table_free(table);
    OK(pantile_close(db));
    return 0;
}
