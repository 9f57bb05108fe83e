"""Kills a server under load, again and again, and looks at what is there after each restart.

Threads transfer money between accounts and write two rows of a journal in the same transaction; another thread creates,
changes, renames, empties and drops tables. After each kill:

- every transaction that was acknowledged is there, and no transaction is there in part;
- the money is what it was, and each secondary index leads to the same rows as the table;
- every table that the server knows can be read and dropped, and every name that it does not know can be created.

usage: crash_loop.py START_SCRIPT DIRECTORY ROUNDS SEED
"""

import os
import random
import subprocess
import sys
import threading
import time

import pymysql

import servers

# Others for comparison.
ENGINE = os.environ.get("ENGINE", "Pantile")
ACCOUNTS = 50
WORKERS = 6
MONEY = 1000
# Of a server that was killed, or of a transaction that others were in the way of.
MAY_FAIL = (pymysql.err.OperationalError, pymysql.err.InterfaceError, pymysql.err.InternalError)


def connect(directory, database="crash"):
    return pymysql.connect(unix_socket=directory + "/socket", user="root", database=database, autocommit=False)


def start(script, directory):
    subprocess.run([script, directory], check=True, stdout=subprocess.DEVNULL)
    with open(directory + "/pid") as file:
        return int(file.read())


class Worker(threading.Thread):
    def __init__(self, directory, number, first, seed):
        super().__init__()
        self.directory, self.number, self.acknowledged = directory, number, first
        self.tried = first
        self.random = random.Random(seed)
        self.error = None

    def run(self):
        try:
            connection = connect(self.directory)
            level = self.random.choice(["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL " + level)
                while True:
                    self.transfer(connection, cursor)
        except MAY_FAIL:
            pass
        except Exception as error:  # noqa: BLE001: told by the main thread
            self.error = error

    def transfer(self, connection, cursor):
        giver, taker = self.random.sample(range(ACCOUNTS), 2)
        amount = self.random.randint(1, 20)
        self.tried = self.acknowledged + 1
        try:
            cursor.execute("UPDATE account SET money = money - %s WHERE id = %s", (amount, giver))
            cursor.execute("INSERT INTO journal (worker, seq, note) VALUES (%s, %s, %s)",
                           (self.number, self.tried, "x" * self.random.choice([1, 100, 3000])))
            cursor.execute("UPDATE account SET money = money + %s WHERE id = %s", (amount, taker))
            cursor.execute("INSERT INTO journal (worker, seq, note) VALUES (%s, %s, 'second')", (self.number, self.tried))
            connection.commit()
            self.acknowledged = self.tried
        except pymysql.err.OperationalError as error:
            if error.args[0] not in (1020, 1205, 1213):
                raise
            connection.rollback()


class Definer(threading.Thread):
    """Changes definitions."""

    def __init__(self, directory, seed):
        super().__init__()
        self.directory, self.random, self.error = directory, random.Random(seed), None
        self.statements = 0

    def run(self):
        try:
            connection = connect(self.directory)
            with connection.cursor() as cursor:
                while True:
                    self.statement(cursor)
                    self.statements += 1
        except MAY_FAIL as error:
            if error.args and error.args[0] not in (2006, 2013, 0, 1053):
                self.error = error
        except Exception as error:  # noqa: BLE001
            self.error = error

    def statement(self, cursor):
        name, other = (f"d{self.random.randrange(4)}" for _ in range(2))
        # The server itself does not survive a kill while it copies a partitioned table: with other engines, too, it
        # may then find no .par file.
        parts = f"p{self.random.randrange(2)}"
        statement = self.random.choice([
            f"CREATE TABLE {name} (id INT PRIMARY KEY AUTO_INCREMENT, n INT, t VARCHAR(30), KEY (t)) ENGINE={ENGINE}",
            f"CREATE OR REPLACE TABLE {name} (a INT, b TEXT) ENGINE={ENGINE}",
            f"INSERT INTO {name} SELECT seq, seq FROM seq_1_to_200",
            f"ALTER TABLE {name} ADD COLUMN extra INT DEFAULT 3",
            f"ALTER TABLE {name} ADD COLUMN extra INT NOT NULL DEFAULT 3 FIRST",
            f"ALTER TABLE {name} DROP COLUMN extra",
            f"ALTER TABLE {name} CHANGE a extra INT",
            f"ALTER TABLE {name} CHANGE extra a INT",
            f"ALTER TABLE {name} MODIFY a BIGINT",
            f"ALTER TABLE {name} MODIFY b TEXT FIRST",
            f"INSERT INTO {name} (a, b) SELECT seq, seq FROM seq_1_to_200",
            f"ALTER TABLE {name} ADD INDEX by_n (n)",
            f"ALTER TABLE {name} DROP INDEX by_n",
            f"ALTER TABLE {name} RENAME INDEX by_n TO of_n",
            f"ALTER TABLE {name} RENAME INDEX of_n TO by_n",
            f"RENAME TABLE {name} TO {other}",
            f"TRUNCATE {name}",
            f"DROP TABLE {name}",
            f"CREATE TABLE {parts} (id INT PRIMARY KEY, n INT) ENGINE={ENGINE} PARTITION BY HASH (id) PARTITIONS 3",
            f"INSERT INTO {parts} SELECT seq, seq FROM seq_1_to_200",
            f"TRUNCATE {parts}",
            f"DROP TABLE {parts}",
        ])
        try:
            cursor.execute(statement)
            cursor.execute("COMMIT")
        except pymysql.err.MySQLError as error:
            # A table that is there or is not, and statements that do not fit it.
            if error.args[0] not in (1050, 1051, 1054, 1060, 1061, 1062, 1072, 1091, 1136, 1146, 1176, 1364):
                raise


def check(directory, acknowledged, tried):
    connection = connect(directory)
    with connection.cursor() as cursor:
        def one(statement):
            cursor.execute(statement)
            return cursor.fetchone()

        total, = one("SELECT SUM(money) FROM account")
        assert total == ACCOUNTS * MONEY, f"there is {total} money"
        for worker, last in acknowledged.items():
            rows, distinct, highest = one(
                f"SELECT COUNT(*), COUNT(DISTINCT seq), COALESCE(MAX(seq), 0) FROM journal WHERE worker = {worker}")
            assert highest >= last, f"worker {worker}: transaction {last} was acknowledged, {highest} is the last"
            assert highest <= tried[worker], f"worker {worker}: transaction {highest} was never tried"
            assert rows == 2 * distinct and distinct == highest, \
                f"worker {worker}: {rows} rows of {distinct} transactions up to {highest}"
            acknowledged[worker] = highest
        by_row, = one("SELECT COUNT(*) FROM journal")
        by_index, = one("SELECT COUNT(*) FROM journal FORCE INDEX (worker) WHERE worker >= 0")
        assert by_row == by_index, f"{by_row} rows, {by_index} in the index"
        cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'crash'")
        names = [name for name, in cursor.fetchall()]
        for name in names:
            rows, = one(f"SELECT COUNT(*) FROM `{name}`")
            cursor.execute(f"SHOW COLUMNS FROM `{name}`")
            columns = {column[0] for column in cursor.fetchall()}
            # Each column has its own values, wherever it is now. `a` may have been added as `extra`, with 3.
            if {"a", "b"} <= columns:
                wrong = one(f"SELECT COUNT(*), MIN(a), MIN(b) FROM `{name}` WHERE a NOT IN (3, b)")
                assert wrong[0] == 0, f"{name} has mixed up its columns: {wrong}"
            if {"extra", "b"} <= columns:
                assert one(f"SELECT COUNT(*) FROM `{name}` WHERE extra NOT IN (3, b)") == (0,), f"{name} has a wrong value"
            cursor.execute(f"CHECK TABLE `{name}`")
            answer = cursor.fetchall()
            assert answer[-1][-1] == "OK", f"{name}: {answer}"
        for name in ["d0", "d1", "d2", "d3", "p0", "p1"]:
            cursor.execute(f"DROP TABLE IF EXISTS {name}")
            cursor.execute(f"CREATE TABLE {name} (id INT) ENGINE={ENGINE}")
            assert one(f"SELECT COUNT(*) FROM {name}") == (0,), f"{name} is not empty"
            cursor.execute(f"DROP TABLE {name}")
        if "journal" in names and by_row > 20000:
            cursor.execute("TRUNCATE journal")
            for worker in acknowledged:
                acknowledged[worker] = 0
        connection.commit()
    connection.close()
    return by_row, [name for name in names if name.startswith("#")]


def main():
    script, directory, rounds, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    print(f"{rounds} kills, seed {seed}", flush=True)
    rand = random.Random(seed)
    process = start(script, directory)
    connection = connect(directory, None)
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE crash")
        cursor.execute("USE crash")
        cursor.execute(f"CREATE TABLE account (id INT PRIMARY KEY, money BIGINT NOT NULL) ENGINE={ENGINE}")
        cursor.execute("CREATE TABLE journal (id BIGINT PRIMARY KEY AUTO_INCREMENT, worker INT NOT NULL, seq INT NOT NULL,"
                       f" note VARCHAR(5000), KEY worker (worker, seq)) ENGINE={ENGINE}")
        cursor.executemany("INSERT INTO account VALUES (%s, %s)", [(n, MONEY) for n in range(ACCOUNTS)])
    connection.commit()
    connection.close()
    acknowledged = {number: 0 for number in range(WORKERS)}
    for kill in range(1, rounds + 1):
        workers = [Worker(directory, number, acknowledged[number], rand.random()) for number in acknowledged]
        definer = Definer(directory, rand.random())
        for thread in [*workers, definer]:
            thread.start()
        # A kill before anything is committed shows nothing. One that has failed is told of below.
        servers.eventually("something is committed", lambda: any(
            worker.acknowledged > acknowledged[worker.number] or worker.error for worker in workers) or definer.error)
        time.sleep(rand.uniform(0, 1.8))
        servers.kill(process)
        for thread in [*workers, definer]:
            thread.join()
            assert thread.error is None, f"before the kill: {thread.error!r}"
        for worker in workers:
            acknowledged[worker.number] = worker.acknowledged
        tried = {worker.number: worker.tried for worker in workers}
        process = start(script, directory)
        rows, left = check(directory, acknowledged, tried)
        print(f"kill {kill}: {rows} rows, {definer.statements} changes of definitions, {len(left)} tables left over",
              flush=True)
    print("nothing lost")


main()
