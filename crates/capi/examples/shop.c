/* A shop: a table with an index, transactions that run again after conflicts, and
 * a report. From the root of the repository:
 *
 *     cargo build --release -p pantile-capi
 *     cc -I crates/capi/include crates/capi/examples/shop.c target/release/libpantile_c.a -lpthread -ldl -lm -o shop
 *     ./shop /tmp/shop
 */
#include <inttypes.h>
#include <pantile.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code, const char *what) {
    if (code >= PANTILE_MISUSE) {
        fprintf(stderr, "%s: %s\n", what, pantile_error_message());
        exit(1);
    }
}

static pantile_table *open_orders(pantile_db *db) {
    pantile_table *orders;
    int code = pantile_table_open(db, "orders", &orders);
    if (code == PANTILE_OK)
        return orders;

    const char *key[] = {"id"}, *customer[] = {"customer"};
    pantile_table_def *def;
    check(pantile_table_def_new("orders", &def), "define orders");
    check(pantile_table_def_column(def, "id", (pantile_type){PANTILE_TYPE_UINT, 8, 0}, false), "id");
    check(pantile_table_def_column(def, "customer", (pantile_type){PANTILE_TYPE_TEXT, 40, 0}, false), "customer");
    check(pantile_table_def_column(def, "cents", (pantile_type){PANTILE_TYPE_INT, 8, 0}, false), "cents");
    check(pantile_table_def_primary_key(def, key, 1), "primary key");
    check(pantile_table_def_index(def, "by_customer", customer, 1, false), "index");
    check(pantile_create_table(db, def, &orders), "create orders");
    pantile_table_def_free(def);
    return orders;
}

/* An order, and where it goes. */
struct order {
    pantile_table *orders;
    uint64_t id;
    const char *customer;
    int64_t cents;
};

/* May run several times: pantile_run starts again after a conflict. */
static int place_order(pantile_txn *txn, void *context) {
    const struct order *order = context;
    pantile_value row[] = {pantile_uint(order->id), pantile_text(order->customer), pantile_int(order->cents)};
    return pantile_upsert(txn, order->orders, row, 3, NULL);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    pantile_db *db;
    check(pantile_open(argv[1], NULL, &db), "open");
    pantile_table *orders = open_orders(db);

    /* Each order is durable when pantile_run returns. */
    struct order placed[] = {{orders, 1, "Ann", 1250}, {orders, 2, "Ben", 300}, {orders, 3, "Ann", 99}};
    for (size_t n = 0; n < sizeof placed / sizeof *placed; n++)
        check(pantile_run(db, NULL, place_order, &placed[n]), "place an order");

    /* All of Ann's orders, from one consistent state. */
    pantile_index *by_customer;
    check(pantile_index_open(orders, "by_customer", &by_customer), "by_customer");
    pantile_txn *txn;
    check(pantile_begin(db, &(pantile_txn_options){.read_only = true}, &txn), "begin");
    pantile_value ann = pantile_text("Ann");
    pantile_range of_ann = {.from = {PANTILE_INCLUDED, &ann, 1}, .to = {PANTILE_INCLUDED, &ann, 1}};
    pantile_cursor *cursor;
    check(pantile_scan_index(txn, by_customer, &of_ann, &cursor), "scan");
    pantile_row *row = pantile_row_new();
    int64_t total = 0;
    int code;
    while ((code = pantile_cursor_next(cursor, txn, row)) == PANTILE_OK) {
        pantile_value id, cents;
        check(pantile_row_get(row, 0, &id), "id");
        check(pantile_row_get(row, 2, &cents), "cents");
        printf("order %" PRIu64 ": %" PRId64 "\n", id.as.natural, cents.as.integer);
        total += cents.as.integer;
    }
    check(code, "next");
    printf("Ann owes %" PRId64 ".%02" PRId64 "\n", total / 100, total % 100);

    pantile_row_free(row);
    pantile_cursor_free(cursor);
    check(pantile_rollback(txn), "end");
    pantile_index_free(by_customer);
    pantile_table_free(orders);
    check(pantile_close(db), "close");
    return 0;
}
