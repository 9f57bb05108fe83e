/* Backups, and looking whether rows are whole. */
#include "test.h"

struct told {
    int moments, damaged;
    bool goes_on, stops;
};

static bool at_moment(void *context, bool is_current) {
    struct told *told = context;
    told->moments++;
    return is_current && told->goes_on;
}

static bool is_stopped(void *context) { return ((struct told *) context)->stops; }

static void note_damage(void *context, uint64_t tuple, const char *what) {
    EXPECT(what[0] != '\0' && tuple < 100);
    ((struct told *) context)->damaged++;
}

int main(int argc, char **argv) {
    pantile_db *db, *copy;
    pantile_table *table;
    pantile_txn *txn;
    struct told told = {0, 0, false, false};
    char path[4096];
    EXPECT(argc == 2);
    snprintf(path, sizeof path, "%s-copy", argv[1]);
    OK(pantile_open(argv[1], NULL, &db));
    table = numbers(db);
    OK(pantile_begin(db, NULL, &txn));
    for (uint64_t id = 0; id < 10; id++)
        OK(put(txn, table, id, (int64_t) id % 3, "note"));
    OK(pantile_commit(txn, NULL));

    uint64_t rows = 0;
    OK(pantile_verify_table(db, table, note_damage, is_stopped, &told, &rows));
    EXPECT(rows == 10 && told.damaged == 0);
    told.stops = true;
    FAILS(PANTILE_CANCELLED, pantile_verify_table(db, table, note_damage, is_stopped, &told, NULL));
    FAILS(PANTILE_MISUSE, pantile_verify_table(db, table, NULL, NULL, NULL, NULL));

    pantile_backup_options options = {1 << 30, true, 0, at_moment, is_stopped, &told};
    pantile_backup_report report;
    FAILS(PANTILE_CANCELLED, pantile_backup(db, path, &options, NULL));
    EXPECT(told.moments == 1);
    told.goes_on = true;
    FAILS(PANTILE_CANCELLED, pantile_backup(db, path, &options, NULL));
    told.stops = false;
    OK(pantile_backup(db, path, &options, &report));
    EXPECT(told.moments == 3 && report.is_current && report.tables == 1 && report.rows == 10 && report.file_bytes > 0);
    FAILS(PANTILE_NOT_EMPTY, pantile_backup(db, path, NULL, NULL));
    pantile_table_free(table);
    OK(pantile_close(db));

    OK(pantile_open(path, NULL, &copy));
    OK(pantile_table_open(copy, "numbers", &table));
    pantile_row *row = pantile_row_new();
    const pantile_value key = pantile_uint(9);
    OK(pantile_begin(copy, NULL, &txn));
    OK(pantile_get(txn, table, &key, 1, row));
    pantile_row_free(row);
    OK(pantile_rollback(txn));
    pantile_table_free(table);
    OK(pantile_close(copy));
    return 0;
}
