/* What the test programs share. */
#include <pantile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                                   \
    do {                                                                                                    \
        if (!(condition)) {                                                                                 \
            fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition,                  \
                    pantile_error_message());                                                               \
            exit(1);                                                                                        \
        }                                                                                                   \
    } while (0)
#define OK(call) EXPECT((call) == PANTILE_OK)
/* The call returns this code, and says why. */
#define FAILS(code, call) EXPECT((call) == (code) && pantile_error_message()[0] != '\0')

static inline pantile_type type(int kind, unsigned size, unsigned scale) {
    pantile_type made = {kind, size, scale};
    return made;
}

/* A table of numbers with an index by their group. */
static inline pantile_table *numbers(pantile_db *db) {
    const char *key[] = {"id"}, *group[] = {"group"};
    pantile_table_def *def;
    pantile_table *table;
    OK(pantile_table_def_new("numbers", &def));
    OK(pantile_table_def_column(def, "id", type(PANTILE_TYPE_UINT, 8, 0), false));
    OK(pantile_table_def_column(def, "group", type(PANTILE_TYPE_INT, 4, 0), false));
    OK(pantile_table_def_column(def, "note", type(PANTILE_TYPE_TEXT, 100000, 0), true));
    OK(pantile_table_def_primary_key(def, key, 1));
    OK(pantile_table_def_index(def, "by_group", group, 1, false));
    OK(pantile_create_table(db, def, &table));
    pantile_table_def_free(def);
    return table;
}

static inline int put(pantile_txn *txn, pantile_table *table, uint64_t id, int64_t group, const char *note) {
    pantile_value row[] = {pantile_uint(id), pantile_int(group), pantile_text(note)};
    return pantile_insert(txn, table, row, 3);
}
