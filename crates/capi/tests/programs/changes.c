/* Changing tables that have rows. */
#include "test.h"

int main(int argc, char **argv) {
    pantile_db *db;
    pantile_table_def *def;
    pantile_table *first, *second;
    pantile_table_change *change;
    pantile_txn *txn;
    const char *key[] = {"id"};
    const pantile_type number = {PANTILE_TYPE_UINT, 4, 0}, wide = {PANTILE_TYPE_UINT, 8, 0};
    const pantile_type text = {PANTILE_TYPE_TEXT, 20, 0};
    EXPECT(argc == 2);
    OK(pantile_open(argv[1], NULL, &db));
    OK(pantile_table_def_new("pets", &def));
    OK(pantile_table_def_column(def, "id", number, false));
    OK(pantile_table_def_column(def, "age", number, false));
    OK(pantile_table_def_primary_key(def, key, 1));
    OK(pantile_table_def_index(def, "old", key, 1, false));
    OK(pantile_create_table(db, def, &first));
    pantile_table_def_free(def);
    const pantile_value rex[] = {pantile_uint(1), pantile_uint(7)};
    OK(pantile_begin(db, NULL, &txn));
    OK(pantile_insert(txn, first, rex, 2));
    OK(pantile_commit(txn, NULL));

    const pantile_value four = pantile_uint(4);
    OK(pantile_table_change_new(&change));
    OK(pantile_table_change_add_column(change, "legs", number, false, &four, "age"));
    OK(pantile_table_change_add_column(change, "owner", text, true, NULL, NULL));
    OK(pantile_table_change_rename_column(change, "age", "years"));
    OK(pantile_table_change_widen_column(change, "years", wide));
    OK(pantile_table_change_make_nullable(change, "years"));
    OK(pantile_table_change_set_default(change, "legs", NULL));
    OK(pantile_table_change_rename_index(change, "old", "new"));
    OK(pantile_table_change_rename_table(change, "animals"));
    EXPECT(pantile_table_version(first) == 0);
    OK(pantile_alter_table(db, first, change, &second));
    pantile_table_change_free(change);
    EXPECT(pantile_table_version(second) == 1 && pantile_table_columns(second) == 4);
    EXPECT(pantile_table_columns(first) == 2 && strcmp(pantile_table_name(second), "animals") == 0);

    pantile_index *index;
    FAILS(PANTILE_UNKNOWN_NAME, pantile_index_open(second, "old", &index));
    OK(pantile_index_open(second, "new", &index));
    pantile_index_free(index);

    pantile_row *row = pantile_row_new();
    pantile_value found[4];
    OK(pantile_begin(db, NULL, &txn));
    OK(pantile_get(txn, second, rex, 1, row));
    OK(pantile_row_values(row, found, 4));
    EXPECT(found[1].as.natural == 4 && found[2].as.natural == 7 && found[3].kind == PANTILE_NULL);
    /* Through the handle from before: the new column has no default any more. */
    const pantile_value tib[] = {pantile_uint(2), pantile_uint(3)};
    FAILS(PANTILE_BAD_VALUE, pantile_insert(txn, first, tib, 2));
    OK(pantile_rollback(txn));

    OK(pantile_table_change_new(&change));
    FAILS(PANTILE_MISUSE, pantile_table_change_drop_column(change, NULL));
    OK(pantile_table_change_drop_column(change, "id"));
    FAILS(PANTILE_INVALID, pantile_alter_table(db, second, change, NULL));
    pantile_table_change_free(change);
    OK(pantile_table_change_new(&change));
    OK(pantile_table_change_drop_column(change, "years"));
    OK(pantile_alter_table(db, second, change, NULL));
    pantile_table_change_free(change);
    OK(pantile_begin(db, NULL, &txn));
    FAILS(PANTILE_UNKNOWN_NAME, pantile_insert(txn, first, tib, 2));
    OK(pantile_rollback(txn));

    pantile_row_free(row);
    pantile_table_free(first);
    pantile_table_free(second);
    OK(pantile_close(db));
    return 0;
}
