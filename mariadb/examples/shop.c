/* The same shop in C, through MariaDB's own client library.
 *
 * usage: shop SOCKET */
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>

static MYSQL *connection;

static void run(const char *statement) {
    if (mysql_query(connection, statement)) {
        fprintf(stderr, "%s: %s\n", statement, mysql_error(connection));
        exit(1);
    }
}

static long first_number(const char *statement) {
    run(statement);
    MYSQL_RES *answer = mysql_store_result(connection);
    MYSQL_ROW row = mysql_fetch_row(answer);
    long number = row ? atol(row[0]) : -1;
    mysql_free_result(answer);
    return number;
}

/* Takes pieces out of the stock, or changes nothing. Returns the number of the order, or 0. */
static unsigned long long order(int goods, int pieces) {
    char statement[200];
    run("BEGIN");
    snprintf(statement, sizeof statement, "SELECT stock FROM goods WHERE id = %d FOR UPDATE", goods);
    long stock = first_number(statement);
    snprintf(statement, sizeof statement, "INSERT INTO orders (goods, pieces) VALUES (%d, %d)", goods, pieces);
    run(statement);
    unsigned long long number = mysql_insert_id(connection);
    if (stock < pieces) {
        run("ROLLBACK");
        return 0;
    }
    snprintf(statement, sizeof statement, "UPDATE goods SET stock = stock - %d WHERE id = %d", pieces, goods);
    run(statement);
    run("COMMIT");
    return number;
}

int main(int argc, char **argv) {
    connection = mysql_init(NULL);
    if (argc != 2 || !mysql_real_connect(connection, NULL, "root", NULL, NULL, 0, argv[1], 0)) {
        fprintf(stderr, "usage: shop SOCKET; %s\n", mysql_error(connection));
        return 1;
    }
    run("CREATE DATABASE IF NOT EXISTS shop_c");
    run("USE shop_c");
    run("CREATE OR REPLACE TABLE goods (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL UNIQUE, stock INT NOT NULL) ENGINE=Pantile");
    run("CREATE OR REPLACE TABLE orders (id BIGINT PRIMARY KEY AUTO_INCREMENT, goods INT NOT NULL, pieces INT NOT NULL, KEY (goods))"
        " ENGINE=Pantile");
    run("INSERT INTO goods VALUES (1, 'bricks', 10), (2, 'apples', 3)");
    unsigned long long first = order(1, 4), second = order(2, 9);
    printf("orders: %llu %llu\n", first, second);
    printf("bricks left: %ld, orders: %ld\n", first_number("SELECT stock FROM goods WHERE name = 'BRICKS'"),
           first_number("SELECT COUNT(*) FROM orders"));
    mysql_close(connection);
    return 0;
}
