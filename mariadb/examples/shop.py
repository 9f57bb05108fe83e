"""A small shop with ENGINE=Pantile, through PyMySQL: nothing here knows which engine keeps the tables.

usage: shop.py SOCKET
"""

import sys

import pymysql

connection = pymysql.connect(unix_socket=sys.argv[1], user="root")
with connection.cursor() as cursor:
    cursor.execute("CREATE DATABASE IF NOT EXISTS shop_py")
    cursor.execute("USE shop_py")
    cursor.execute("CREATE OR REPLACE TABLE goods (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL UNIQUE, stock INT NOT NULL)"
                   " ENGINE=Pantile CHARACTER SET utf8mb4")
    cursor.execute("CREATE OR REPLACE TABLE orders (id BIGINT PRIMARY KEY AUTO_INCREMENT, goods INT NOT NULL, pieces INT NOT NULL,"
                   " KEY (goods)) ENGINE=Pantile")
    cursor.executemany("INSERT INTO goods VALUES (%s, %s, %s)", [(1, "Ziegel", 10), (2, "Äpfel", 3), (3, "apples", 5)])
connection.commit()


def order(goods, pieces):
    """Takes pieces out of the stock, or changes nothing."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT stock FROM goods WHERE id = %s FOR UPDATE", (goods,))
        (stock,) = cursor.fetchone()
        cursor.execute("INSERT INTO orders (goods, pieces) VALUES (%s, %s)", (goods, pieces))
        number = cursor.lastrowid
        if stock < pieces:
            connection.rollback()
            return None
        cursor.execute("UPDATE goods SET stock = stock - %s WHERE id = %s", (pieces, goods))
    connection.commit()
    return number


print("orders:", order(1, 4), order(2, 9), order(3, 5))
with connection.cursor() as cursor:
    cursor.execute("SELECT name, stock, COALESCE(SUM(pieces), 0) FROM goods LEFT JOIN orders ON goods = goods.id GROUP BY name, stock"
                   " ORDER BY name")
    for name, stock, sold in cursor.fetchall():
        print(f"{name}: {stock} left, {sold} sold")
