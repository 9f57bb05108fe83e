/* Who holds garbage, ending that, limits, and where the space is. */
#include "test.h"
#include <time.h>

/* Pauses of 10 ms in ten minutes: after that, what is waited for does not come. */
#define PATIENCE 60000

static void rewrite(pantile_db *db, pantile_table *table, int times) {
    char note[2000];
    memset(note, 'x', sizeof note - 1);
    note[sizeof note - 1] = '\0';
    for (int n = 0; n < times; n++) {
        pantile_txn *txn;
        OK(pantile_begin(db, NULL, &txn));
        for (uint64_t id = 0; id < 100; id++) {
            pantile_value row[] = {pantile_uint(id), pantile_int(n), pantile_text(note)};
            OK(pantile_upsert(txn, table, row, 3, NULL));
        }
        OK(pantile_commit(txn, NULL));
    }
}

static pantile_txn *report(pantile_db *db, const char *name, uint64_t number, uint64_t *id) {
    pantile_txn_options options = {0};
    options.isolation = PANTILE_SNAPSHOT;
    options.read_only = true;
    options.name = name;
    options.has_number = number != 0;
    options.number = number;
    pantile_txn *txn;
    OK(pantile_begin(db, &options, &txn));
    OK(pantile_txn_id(txn, id));
    return txn;
}

static int read_one(pantile_txn *txn, pantile_table *table) {
    pantile_value key = pantile_uint(1);
    pantile_row *row = pantile_row_new();
    int code = pantile_get(txn, table, &key, 1, row);
    pantile_row_free(row);
    return code;
}

static void holders(pantile_db *db, pantile_table *table) {
    uint64_t id, other;
    pantile_txn *txn = report(db, "connection", 17, &id), *plain = report(db, NULL, 0, &other);
    EXPECT(id != other && id != 0);
    rewrite(db, table, 3);
    pantile_transactions *list;
    pantile_running running;
    pantile_held held;
    OK(pantile_transactions_list(db, &list));
    EXPECT(pantile_transactions_len(list) == 2 && pantile_transactions_len(NULL) == 0);
    OK(pantile_transactions_get(list, 0, &running));
    EXPECT(running.id == id && strcmp(running.name, "connection") == 0 && running.has_number);
    EXPECT(running.number == 17 && running.read_only && running.isolation == PANTILE_SNAPSHOT);
    EXPECT(!running.ended && running.held_bytes > 100 * 2000 && running.held_blocks > 0);
    EXPECT(running.freed_bytes == 0 && running.tables == 1);
    OK(pantile_transactions_held(list, 0, 0, &held));
    EXPECT(strstr(held.table, "numbers") && held.bytes == running.held_bytes);
    EXPECT(held.blocks == running.held_blocks);
    FAILS(PANTILE_MISUSE, pantile_transactions_held(list, 0, 1, &held));
    OK(pantile_transactions_get(list, 1, &running));
    EXPECT(running.id == other && !running.name && !running.has_number);
    FAILS(PANTILE_MISUSE, pantile_transactions_get(list, 2, &running));
    FAILS(PANTILE_MISUSE, pantile_transactions_get(NULL, 0, &running));
    FAILS(PANTILE_MISUSE, pantile_transactions_list(db, NULL));
    pantile_transactions_free(list);
    pantile_transactions_free(NULL);
    OK(pantile_rollback(plain));

    OK(pantile_end_transaction(db, id));
    FAILS(PANTILE_ENDED, read_one(txn, table));
    OK(pantile_transactions_list(db, &list));
    OK(pantile_transactions_get(list, 0, &running));
    EXPECT(running.id == id && running.ended && running.freed_bytes == running.held_bytes);
    pantile_transactions_free(list);
    EXPECT(pantile_commit(txn, NULL) == PANTILE_ENDED);
    FAILS(PANTILE_UNKNOWN_TRANSACTION, pantile_end_transaction(db, id));
    EXPECT(!pantile_is_retryable(PANTILE_ENDED));
    pantile_reader readers[2];
    size_t found = 9;
    OK(pantile_reading_processes(db, readers, 2, &found));
    EXPECT(found == 0);
    OK(pantile_reading_processes(db, NULL, 0, &found));
    FAILS(PANTILE_MISUSE, pantile_reading_processes(db, NULL, 1, &found));
}

static void pause_for(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

struct heard {
    int warnings;
    char last[1000];
};

static void hear(const char *warning, void *context) {
    struct heard *heard = context;
    snprintf(heard->last, sizeof heard->last, "%s", warning);
    heard->warnings++;
}

static void limits(pantile_db *db, pantile_table *table) {
    struct heard heard = {0};
    pantile_collector_stats stats;
    uint64_t id;
    OK(pantile_on_warnings(hear, &heard));
    pantile_txn *txn = report(db, "connection", 18, &id);
    rewrite(db, table, 2);
    FAILS(PANTILE_MISUSE, pantile_set_max_pinned_age(db, 20, 9));
    OK(pantile_set_max_pinned_age(db, 20, PANTILE_WARN));
    for (int n = 0; n < PATIENCE; n++) {
        OK(pantile_collector_statistics(db, &stats));
        if (stats.pin_warnings == 1)
            break;
        pause_for(10);
    }
    EXPECT(stats.pin_warnings == 1 && stats.pin_ends == 0 && stats.pinned_bytes > 0);
    pause_for(100);
    OK(read_one(txn, table));
    OK(pantile_set_max_pinned_age(db, 0, PANTILE_WARN));
    OK(pantile_set_max_pinned_bytes(db, 1, PANTILE_END));
    for (int n = 0; n < PATIENCE && read_one(txn, table) == PANTILE_OK; n++)
        pause_for(10);
    FAILS(PANTILE_ENDED, read_one(txn, table));
    OK(pantile_collector_statistics(db, &stats));
    EXPECT(stats.ended_not_dropped == 1);
    OK(pantile_rollback(txn));
    /* It is counted and told of a moment after it has been ended. */
    for (int n = 0; n < PATIENCE; n++) {
        OK(pantile_collector_statistics(db, &stats));
        if (stats.pin_ends == 1 && heard.warnings >= 2)
            break;
        pause_for(10);
    }
    EXPECT(stats.pin_warnings >= 1 && stats.pin_ends == 1 && stats.ended_not_dropped == 0);
    EXPECT(stats.room_bytes > 0);
    OK(pantile_set_max_pinned_bytes(db, 0, PANTILE_WARN));
    OK(pantile_on_warnings(NULL, NULL));
    EXPECT(heard.warnings >= 2 && strstr(heard.last, "connection 18"));
}

static void space(pantile_db *db) {
    pantile_parts *parts;
    pantile_table_parts table;
    pantile_blocks blocks;
    pantile_index_parts index;
    bool is_there = false;
    OK(pantile_parts_by_table(db, &parts));
    EXPECT(pantile_parts_len(parts) > 0 && pantile_parts_len(NULL) == 0);
    for (size_t n = 0; n < pantile_parts_len(parts); n++) {
        uint64_t live = 0, bytes = 0;
        OK(pantile_parts_table(parts, n, &table));
        for (size_t state = 0; state < table.states; state++) {
            OK(pantile_parts_blocks(parts, n, state, &blocks));
            EXPECT(blocks.state[0] && blocks.blocks > 0);
            EXPECT(blocks.live_bytes + blocks.obsolete_bytes + blocks.unfilled_bytes <= blocks.bytes);
            live += blocks.live_bytes;
            bytes += blocks.bytes;
        }
        if (strcmp(table.table, "numbers") != 0)
            continue;
        is_there = true;
        EXPECT(table.rows == 100 && table.indexes == 2 && live >= 100 * 20 && bytes > live);
        OK(pantile_parts_index(parts, n, 0, &index));
        EXPECT(strcmp(index.index, "primary") == 0 && strcmp(index.columns, "id") == 0 && index.unique);
        OK(pantile_parts_index(parts, n, 1, &index));
        EXPECT(strcmp(index.index, "by_group") == 0 && strcmp(index.columns, "group") == 0 && !index.unique);
        EXPECT(index.is_loaded && index.bytes > 0);
        FAILS(PANTILE_MISUSE, pantile_parts_index(parts, n, 2, &index));
        FAILS(PANTILE_MISUSE, pantile_parts_blocks(parts, n, table.states, &blocks));
    }
    EXPECT(is_there);
    FAILS(PANTILE_MISUSE, pantile_parts_table(parts, pantile_parts_len(parts), &table));
    pantile_parts_free(parts);
    uint64_t seconds;
    int code = pantile_full_in(db, &seconds);
    EXPECT(code == PANTILE_OK || code == PANTILE_NOT_FOUND);
    FAILS(PANTILE_MISUSE, pantile_full_in(NULL, &seconds));
}

static int write_rows(pantile_db *db, pantile_table *table, uint64_t rows) {
    char note[4000];
    int code = PANTILE_OK;
    memset(note, 'y', sizeof note);
    for (uint64_t id = 0; id < rows && code == PANTILE_OK;) {
        pantile_txn *txn;
        OK(pantile_begin(db, NULL, &txn));
        for (int n = 0; n < 20 && code == PANTILE_OK; n++) {
            pantile_value row[] = {pantile_uint(id++), pantile_int(0), pantile_text_of(note, sizeof note)};
            code = pantile_upsert(txn, table, row, 3, NULL);
        }
        code = code == PANTILE_OK ? pantile_commit(txn, NULL) : (pantile_rollback(txn), code);
    }
    return code;
}

/* The error of a full medium names the transaction that keeps most. */
static void full(const char *path) {
    char place[1000];
    snprintf(place, sizeof place, "%s-small", path);
    pantile_options *options = pantile_options_new();
    OK(pantile_options_max_bytes(options, 16 << 20));
    OK(pantile_options_max_pinned_age(options, 3600000, PANTILE_WARN));
    /* 0 sets no limit, and removes one. */
    OK(pantile_options_max_pinned_bytes(options, 1, PANTILE_END));
    OK(pantile_options_max_pinned_bytes(options, 0, PANTILE_END));
    FAILS(PANTILE_MISUSE, pantile_options_max_pinned_age(options, 1, 9));
    pantile_db *db;
    OK(pantile_open(place, options, &db));
    pantile_options_free(options);
    pantile_table *table = numbers(db);
    /* More than half of the medium, so that there is no room for all of it twice. */
    OK(write_rows(db, table, 2500));
    uint64_t id;
    pantile_txn *txn = report(db, "connection", 19, &id);
    int code = write_rows(db, table, 2500);
    EXPECT(code == PANTILE_STORAGE_FULL && strstr(pantile_error_message(), "connection 19"));
    OK(pantile_rollback(txn));
    /* What it held is free as soon as the collector has seen to it. */
    for (int n = 0; n < 200 && (code = write_rows(db, table, 20)) != PANTILE_OK; n++)
        pause_for(50);
    EXPECT(code == PANTILE_OK);
    pantile_table_free(table);
    OK(pantile_close(db));
}

int main(int argc, char **argv) {
    EXPECT(argc == 2);
    pantile_db *db;
    OK(pantile_open(argv[1], NULL, &db));
    pantile_table *table = numbers(db);
    rewrite(db, table, 1);
    holders(db, table);
    limits(db, table);
    space(db);
    pantile_table_free(table);
    OK(pantile_close(db));
    full(argv[1]);
    return 0;
}
