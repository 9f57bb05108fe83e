"""What docs/mariadb.md says of ENGINE=Pantile beside InnoDB, row by row.

usage: behaviour.py SOCKET SMALL

SMALL is the socket of a server with pantile_max_bytes=32M and pantile_memory_limit=64M.
"""

import os
import shutil
import sys
import threading
import time

import pymysql

SOCKET, SMALL = sys.argv[1:3]
ROWS = [(1, 10), (2, 20), (3, 30)]


class Session:
    def __init__(self, engine, level="REPEATABLE READ", socket=SOCKET, user="root"):
        self.connection = pymysql.connect(unix_socket=socket, user=user, database="behaviour", autocommit=True)
        self.cursor = self.connection.cursor()
        self.engine = engine
        self.do(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        self.do("SET pantile_lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")

    def do(self, statement):
        """The answer, or the number of the error."""
        try:
            self.cursor.execute(statement.replace("{t}", f"t_{self.engine}"))
            return list(self.cursor.fetchall()) if self.cursor.description else self.cursor.rowcount
        except pymysql.err.MySQLError as error:
            self.message = error.args[1] if len(error.args) > 1 else ""
            return -error.args[0]

    def id(self):
        return self.connection.thread_id()

    def reset(self):
        """COM_RESET_CONNECTION, for which the driver has no call."""
        self.connection._execute_command(0x1F, b"")
        self.connection._read_ok_packet()

    def later(self, statement):
        """Runs a statement in a thread; its `join` returns the answer."""
        answer = []
        thread = threading.Thread(target=lambda: answer.append(self.do(statement)))
        thread.start()
        running = f"SELECT 1 FROM information_schema.processlist WHERE id = {self.id()} AND command = 'Query'"
        if "SLEEP(" in statement:
            running += " AND state = 'User sleep'"
        watch = Session(self.engine)
        eventually("the statement runs", lambda: answer or watch.do(running))
        if "SLEEP(" not in statement:
            # What it waits for shows nowhere.
            time.sleep(0.2)
        return lambda: (thread.join(), answer[0])[1]


def pair(engine, level="REPEATABLE READ", other=None):
    setup = Session(engine)
    setup.do("DELETE FROM {t}")
    for row in ROWS:
        setup.do("INSERT INTO {t} VALUES (%d, %d)" % row)
    return Session(engine, level), Session(engine, other or level)


def same(found, expected):
    assert found == expected, f"{found} and not {expected}"


def read_uncommitted():
    a, b = pair("Pantile", "READ UNCOMMITTED")
    a.do("BEGIN"), a.do("UPDATE {t} SET n = 11 WHERE id = 1")
    same(b.do("SELECT n FROM {t} WHERE id = 1"), [(10,)])


def read_committed():
    for engine in ("Pantile", "InnoDB"):
        a, b = pair(engine, "READ COMMITTED")
        a.do("BEGIN"), same(a.do("SELECT n FROM {t} WHERE id = 1"), [(10,)])
        b.do("UPDATE {t} SET n = 11 WHERE id = 1")
        same(a.do("SELECT n FROM {t} WHERE id = 1"), [(11,)])
        same(a.do("UPDATE {t} SET n = n + 1 WHERE n = 11"), 1)
        a.do("COMMIT"), same(b.do("SELECT n FROM {t} WHERE id = 1"), [(12,)])


def repeatable_read():
    for variable, error in (("deadlock", 1213), ("record_changed", 1020)):
        a, b = pair("Pantile")
        a.do(f"SET pantile_changed_row_error = {variable}")
        a.do("BEGIN"), same(a.do("SELECT n FROM {t} WHERE id = 1"), [(10,)])
        same(a.do("UPDATE {t} SET n = 21 WHERE id = 2"), 1)
        b.do("UPDATE {t} SET n = 11 WHERE id = 1")
        same(a.do("SELECT n FROM {t} WHERE id = 1"), [(10,)])
        same(a.do("UPDATE {t} SET n = 0 WHERE id = 1"), -error)
        # The transaction has been rolled back.
        same(b.do("UPDATE {t} SET n = 22 WHERE id = 2"), 1)


def before_the_first_read():
    for engine in ("Pantile", "InnoDB"):
        a, b = pair(engine)
        b.do("BEGIN"), b.do("UPDATE {t} SET n = 11 WHERE id = 1")
        a.do("SET pantile_lock_wait_timeout = 600, innodb_lock_wait_timeout = 600")
        a.do("BEGIN")
        waits = a.later("UPDATE {t} SET n = n + 1 WHERE id = 1")
        b.do("COMMIT")
        same(waits(), 1)
        same(a.do("SELECT n FROM {t} ORDER BY id"), [(12,), (20,), (30,)])
        a.do("COMMIT")
        # A single statement.
        b.do("BEGIN"), b.do("UPDATE {t} SET n = 100 WHERE id = 1")
        waits = a.later("UPDATE {t} SET n = n + 1 WHERE id = 1")
        b.do("COMMIT"), same(waits(), 1)
        same(a.do("SELECT n FROM {t} WHERE id = 1"), [(101,)])


def insert_select():
    a, b = pair("Pantile")
    a.do("BEGIN"), a.do("SELECT * FROM {t}"), b.do("INSERT INTO {t} VALUES (4, 40)")
    same(a.do("INSERT INTO {t} SELECT id + 100, n FROM {t}"), 3)


def serializable():
    a, b = pair("Pantile", "SERIALIZABLE")
    a.do("BEGIN"), b.do("BEGIN")
    same(a.do("SELECT SUM(n) FROM {t}"), [(60,)]), same(b.do("SELECT SUM(n) FROM {t}"), [(60,)])
    answers = [a.do("UPDATE {t} SET n = 0 WHERE id = 1"), b.do("UPDATE {t} SET n = 0 WHERE id = 2"), a.do("COMMIT"), b.do("COMMIT")]
    assert -1213 in answers, f"write skew: {answers}"
    # Also of a transaction that begins with a statement that makes a table.
    a, b = pair("Pantile", "SERIALIZABLE")
    a.do("BEGIN"), same(a.do("CREATE TEMPORARY TABLE mine ENGINE=Pantile SELECT id FROM {t} WHERE id > 3"), 0)
    same(a.do("SELECT SUM(n) FROM {t}"), [(60,)])
    b.do("BEGIN"), same(b.do("SELECT SUM(n) FROM {t}"), [(60,)]), same(b.do("UPDATE {t} SET n = 0 WHERE id = 2"), 1)
    same(a.do("UPDATE {t} SET n = 0 WHERE id = 1"), 1), same(b.do("COMMIT"), 0), same(a.do("COMMIT"), -1213)
    # A reader is not in a writer's way, nor the other way around.
    a, b = pair("Pantile", "SERIALIZABLE")
    a.do("BEGIN"), a.do("SELECT * FROM {t}")
    same(b.do("UPDATE {t} SET n = 11 WHERE id = 1"), 1)
    same(a.do("SELECT n FROM {t} WHERE id = 1"), [(10,)]), same(a.do("COMMIT"), 0)


def gaps():
    a, b = pair("Pantile")
    a.do("BEGIN"), a.do("SELECT * FROM {t} WHERE id > 1 FOR UPDATE")
    same(b.do("INSERT INTO {t} VALUES (9, 90)"), 1)
    same(a.do("SELECT COUNT(*) FROM {t}"), [(4,)]), a.do("COMMIT")
    a.do("BEGIN"), a.do("SELECT * FROM {t}"), b.do("INSERT INTO {t} VALUES (10, 100)")
    same(a.do("SELECT COUNT(*) FROM {t}"), [(4,)])


def locking_reads():
    for engine in ("Pantile", "InnoDB"):
        a, b = pair(engine)
        a.do("BEGIN"), same(a.do("SELECT n FROM {t} WHERE id = 2 FOR UPDATE"), [(20,)])
        b.do("BEGIN")
        b.do("SET pantile_lock_wait_timeout = 600, innodb_lock_wait_timeout = 600")
        began = time.time()
        same(b.do("SELECT n FROM {t} WHERE id = 2 FOR UPDATE NOWAIT"), -1205)
        assert time.time() - began < 300, "NOWAIT waited"
        b.do("SET pantile_lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")
        same(b.do("SELECT id FROM {t} ORDER BY id FOR UPDATE SKIP LOCKED"), [(1,), (3,)])
        same(b.do("SELECT n FROM {t} WHERE id = 2 FOR UPDATE"), -1205)
        same(b.do("SELECT n FROM {t} WHERE id = 2"), [(20,)])
        same(a.do("UPDATE {t} SET n = 0 WHERE id = 1"), -1205)
        b.do("COMMIT"), a.do("COMMIT")


def share_mode():
    a, b = pair("Pantile")
    a.do("BEGIN"), a.do("SELECT n FROM {t} WHERE id = 2 LOCK IN SHARE MODE")
    same(b.do("UPDATE {t} SET n = 0 WHERE id = 2"), -1205)
    same(b.do("SELECT n FROM {t} WHERE id = 2 LOCK IN SHARE MODE"), -1205)


def unmatched_rows():
    a, b = pair("Pantile")
    a.do("BEGIN"), same(a.do("UPDATE {t} SET n = 21 WHERE n = 20"), 1)
    same(b.do("UPDATE {t} SET n = 11 WHERE id = 1"), 1)
    same(b.do("UPDATE {t} SET n = 22 WHERE id = 2"), -1205)


def deadlocks():
    for engine in ("Pantile", "InnoDB"):
        a, b = pair(engine)
        a.do("SET pantile_lock_wait_timeout = 50, innodb_lock_wait_timeout = 50")
        b.do("SET pantile_lock_wait_timeout = 50, innodb_lock_wait_timeout = 50")
        a.do("BEGIN"), a.do("UPDATE {t} SET n = 1 WHERE id = 1")
        b.do("BEGIN"), b.do("UPDATE {t} SET n = 2 WHERE id = 2")
        first = a.later("UPDATE {t} SET n = 1 WHERE id = 2")
        second = b.do("UPDATE {t} SET n = 2 WHERE id = 1")
        same(sorted([first(), second]), [-1213, 1])


def kill():
    for engine in ("Pantile", "InnoDB"):
        a, b = pair(engine)
        b.do("SET pantile_lock_wait_timeout = 600, innodb_lock_wait_timeout = 600")
        a.do("BEGIN"), a.do("UPDATE {t} SET n = 1 WHERE id = 1")
        waits = b.later("UPDATE {t} SET n = 2 WHERE id = 1")
        began = time.time()
        a.do(f"KILL QUERY {b.connection.thread_id()}")
        same(waits(), -1317)
        assert time.time() - began < 300, "the wait went on"
        same(b.do("SELECT COUNT(*) FROM {t}"), [(3,)])


def savepoints():
    for engine in ("Pantile", "InnoDB"):
        a, b = pair(engine)
        a.do("BEGIN"), a.do("INSERT INTO {t} VALUES (4, 40)"), a.do("SAVEPOINT one")
        a.do("DELETE FROM {t} WHERE id < 3"), a.do("SAVEPOINT two"), a.do("INSERT INTO {t} VALUES (5, 50)")
        # The statement fails at its third row, and only it is undone.
        same(a.do("INSERT INTO {t} VALUES (6, 60), (7, 70), (3, 0)"), -1062)
        same(a.do("SELECT id FROM {t} ORDER BY id"), [(3,), (4,), (5,)])
        a.do("ROLLBACK TO one"), same(a.do("ROLLBACK TO two"), -1305)
        same(a.do("SELECT id FROM {t} ORDER BY id"), [(1,), (2,), (3,), (4,)])
        a.do("RELEASE SAVEPOINT one"), a.do("COMMIT"), same(b.do("SELECT COUNT(*) FROM {t}"), [(4,)])
    # A statement that is a transaction, and fails once it has begun a longer one.
    a, b = pair("Pantile")
    a.do("CREATE FUNCTION writes() RETURNS INT BEGIN INSERT INTO {t} VALUES (9, 90); RETURN 0; END")
    a.do("SET autocommit = writes(), PASSWORD FOR nobody@nowhere = 'x'")
    same(a.do("SELECT @@autocommit"), [(0,)]), same(b.do("INSERT INTO {t} VALUES (9, 91)"), 1)
    a.do("DROP FUNCTION writes")


def consistent_snapshots():
    for level in ("REPEATABLE READ", "SERIALIZABLE"):
        a, b = pair("Pantile", level)
        a.do("START TRANSACTION WITH CONSISTENT SNAPSHOT"), b.do("UPDATE {t} SET n = 11 WHERE id = 1")
        same(a.do("SELECT n FROM {t} WHERE id = 1"), [(10,)])


def xa():
    a, _ = pair("Pantile")
    same(a.do("XA START 'x'"), 0), same(a.do("INSERT INTO {t} VALUES (9, 90)"), 1)
    same(a.do("XA END 'x'"), 0), same(a.do("XA PREPARE 'x'"), 0), same(a.do("XA ROLLBACK 'x'"), 0)
    same(a.do("SELECT COUNT(*) FROM {t}"), [(3,)])


def prepared_and_reset():
    """A pool resets its connections. What one had prepared stays, and any of them decides it."""
    for decides in ["COMMIT", "ROLLBACK"]:
        for uses_first in [False, True]:
            a, b = pair("Pantile")
            for number, decider in enumerate([a, b]):
                same(a.do("XA START 'r'"), 0), same(a.do(f"INSERT INTO {{t}} VALUES ({number + 8}, 0)"), 1)
                same(a.do("XA END 'r'"), 0), same(a.do("XA PREPARE 'r'"), 0)
                a.reset()
                if uses_first:
                    same(a.do("SELECT COUNT(*) FROM {t}"), [(3 + number * (decides == "COMMIT"),)])
                same([row[3] for row in a.do("XA RECOVER")], [b"r"])
                same(decider.do(f"XA {decides} 'r'"), 0)
            same(b.do("SELECT COUNT(*) FROM {t}"), [(3 + 2 * (decides == "COMMIT"),)])
    # Nor has what the connection does next to do with it.
    a, b = pair("Pantile")
    same(a.do("XA START 'r'"), 0), same(a.do("INSERT INTO {t} VALUES (8, 0)"), 1)
    same(a.do("XA END 'r'"), 0), same(a.do("XA PREPARE 'r'"), 0)
    a.reset()
    a.do("START TRANSACTION WITH CONSISTENT SNAPSHOT"), same(a.do("SELECT COUNT(*) FROM {t}"), [(3,)]), a.do("COMMIT")
    a.do("BEGIN"), same(a.do("INSERT INTO {t} VALUES (20, 0)"), 1), a.do("COMMIT")
    same(b.do("SELECT id FROM {t} WHERE id > 3"), [(20,)])
    same(a.do("XA START 's'"), 0), same(a.do("INSERT INTO {t} VALUES (9, 0)"), 1)
    same(a.do("XA END 's'"), 0), same(a.do("XA PREPARE 's'"), 0)
    same(sorted(row[3] for row in b.do("XA RECOVER")), [b"r", b"s"])
    a.reset()
    same(a.do("XA COMMIT 'r'"), 0), same(b.do("XA COMMIT 's'"), 0)
    same(a.do("SELECT id FROM {t} WHERE id > 3"), [(8,), (9,), (20,)])


def later_holders():
    """Waiting for a transaction that comes later in the order would not help, and neither would the same statement again."""
    a, b = pair("Pantile", "SERIALIZABLE")
    a.do("BEGIN"), same(a.do("SELECT n FROM {t} WHERE id = 1"), [(10,)])
    b.do("BEGIN"), same(b.do("UPDATE {t} SET n = 21 WHERE id = 2"), 1)
    same(a.do("UPDATE {t} SET n = 22 WHERE id = 2"), -1213)
    b.do("COMMIT"), same(a.do("UPDATE {t} SET n = 22 WHERE id = 2"), 1)


def definitions():
    a, b = pair("Pantile")
    same(a.do("CREATE TABLE child (id INT, FOREIGN KEY (id) REFERENCES {t} (id)) ENGINE=Pantile"), -1215)
    same(a.do("ALTER TABLE {t} ADD FOREIGN KEY (id) REFERENCES other (id)"), -1215)
    assert a.do("CREATE TABLE f (a TEXT, FULLTEXT KEY (a)) ENGINE=Pantile") < 0
    assert a.do("CREATE TABLE f (a POINT NOT NULL, SPATIAL KEY (a)) ENGINE=Pantile") < 0
    b.do("BEGIN"), b.do("UPDATE {t} SET n = 11 WHERE id = 1"), b.do("COMMIT")
    for statement in ("ADD INDEX by_n (n), ALGORITHM=INPLACE, LOCK=NONE", "DROP INDEX by_n, ALGORITHM=INPLACE, LOCK=NONE",
                      "ALTER n SET DEFAULT 5, ALGORITHM=INSTANT", "RENAME COLUMN n TO m, ALGORITHM=INSTANT",
                      "RENAME COLUMN m TO n, ALGORITHM=INSTANT", "COMMENT = 'new', ALGORITHM=INSTANT"):
        same(a.do("ALTER TABLE {t} " + statement), 0)
    same(a.do("ALTER TABLE {t} ADD UNIQUE (n), ALGORITHM=INPLACE"), 0)
    same(a.do("INSERT INTO {t} VALUES (9, 30)"), -1062)
    same(a.do("ALTER TABLE {t} DROP INDEX n"), 0)
    same(a.do("INSERT INTO {t} VALUES (9, 30)"), 1), same(a.do("ALTER TABLE {t} ADD UNIQUE (n)"), -1062)
    assert a.do("ALTER IGNORE TABLE {t} ADD UNIQUE (n)") >= 0
    same(a.do("SELECT COUNT(*) FROM {t}"), [(3,)]), same(a.do("ALTER TABLE {t} DROP INDEX n"), 0)
    b.do("BEGIN")
    for statement in ("ADD COLUMN x INT DEFAULT 7 FIRST", "ADD COLUMN v INT AS (n + 1) VIRTUAL", "MODIFY x BIGINT AFTER n",
                      "MODIFY x BIGINT AFTER id", "CHANGE x y BIGINT", "ADD COLUMN z TEXT NOT NULL, DROP COLUMN v"):
        same(a.do("ALTER TABLE {t} " + statement + ", ALGORITHM=INSTANT"), 0)
    same(a.do("SELECT id, y, n, z FROM {t}"), [(1, 7, 11, ""), (2, 7, 20, ""), (3, 7, 30, "")])
    # A snapshot from before the change shows the rows of then.
    b.do("COMMIT"), b.do("START TRANSACTION WITH CONSISTENT SNAPSHOT"), a.do("UPDATE {t} SET y = 8, z = 'long'")
    same(a.do("ALTER TABLE {t} DROP COLUMN z, ADD COLUMN w INT DEFAULT 1, ALGORITHM=INSTANT"), 0)
    same(b.do("SELECT DISTINCT y, w FROM {t}"), [(7, 1)]), b.do("COMMIT")
    # Rows that are there must fulfil a new condition.
    same(a.do("ALTER TABLE {t} ADD CHECK (n > 15)"), -4025)
    same(a.do("ALTER TABLE {t} ADD COLUMN c INT DEFAULT 1 CHECK (c > 1)"), -4025)
    same(a.do("ALTER TABLE {t} ADD COLUMN c INT AS (n) VIRTUAL CHECK (c > 15)"), -4025)
    assert a.do("ALTER TABLE {t} ADD COLUMN c INT AS (n) VIRTUAL CHECK (c > 10), ALGORITHM=INSTANT") < 0
    # These rows must be written again.
    for statement in ("ADD COLUMN s TIMESTAMP DEFAULT CURRENT_TIMESTAMP", "DROP COLUMN id", "MODIFY y INT", "MODIFY id BIGINT"):
        assert a.do("ALTER TABLE {t} " + statement + ", ALGORITHM=INSTANT") < 0
    same(a.do("ALTER TABLE {t} DROP COLUMN y, DROP COLUMN w"), 0)


def one_moment():
    """A statement that is a transaction reads one moment. What its triggers read other than by SELECT, they lock."""
    a, b = pair("Pantile")
    same(a.do("CREATE TABLE o (id INT PRIMARY KEY, p INT) ENGINE=Pantile"), 0)
    same(a.do("CREATE TRIGGER tr BEFORE INSERT ON o FOR EACH ROW SET NEW.p = (SELECT SUM(n) FROM {t})"), 0)
    made = a.later("INSERT INTO o (id) SELECT id FROM {t} WHERE SLEEP(0.5) = 0")
    for _ in range(3):
        same(b.do("UPDATE {t} SET n = n + 100"), 3), time.sleep(0.4)
    same(made(), 3)
    # Of the newest rows, which nobody has changed since the first look at them.
    sums = {p for _, p in a.do("SELECT id, p FROM o")}
    assert len(sums) == 1 and sums <= {60, 360, 660, 960}, sums
    same(a.do("DROP TABLE o"), 0)
    same(a.do("CREATE TABLE o (id INT PRIMARY KEY, p INT) ENGINE=Pantile"), 0)
    same(a.do("CREATE TRIGGER tr BEFORE INSERT ON o FOR EACH ROW BEGIN SELECT SUM(n) INTO @s FROM {t}; SET NEW.p = @s; END"), 0)
    before = a.do("SELECT SUM(n) FROM {t}")[0][0]
    made = a.later("INSERT INTO o (id) SELECT id FROM {t} WHERE SLEEP(0.5) = 0")
    for _ in range(3):
        same(b.do("UPDATE {t} SET n = n + 100"), 3), time.sleep(0.4)
    same(made(), 3), same(a.do("SELECT id, p FROM o"), [(n, before) for n in (1, 2, 3)]), same(a.do("DROP TABLE o"), 0)
    # It goes on to do so once it has come to a row that is in its way.
    for level in ("READ COMMITTED", "REPEATABLE READ"):
        for statement in ("INSERT INTO o {rows} ON DUPLICATE KEY UPDATE n = VALUES(n)", "REPLACE INTO o {rows}"):
            a, b = pair("Pantile", level)
            same(a.do("CREATE TABLE o (id INT PRIMARY KEY, n INT) ENGINE=Pantile"), 0), same(a.do("INSERT INTO o SELECT * FROM {t}"), 3)
            # Each row of the one table looks for its row of the other.
            a.do("SET join_cache_level = 0")
            made = a.later(statement.format(rows="SELECT l.id, r.n FROM {t} l STRAIGHT_JOIN {t} r ON r.id = l.id WHERE SLEEP(0.5) = 0"))
            for _ in range(3):
                same(b.do("UPDATE {t} SET n = n + 100"), 3), time.sleep(0.4)
            assert made() >= 0
            same(a.do("SELECT * FROM o"), ROWS), same(a.do("DROP TABLE o"), 0)


def prepared_parts():
    """What is prepared keeps a partitioned table from being emptied, as a whole."""
    a, b = pair("Pantile")
    same(a.do("CREATE TABLE p (id INT PRIMARY KEY, n INT) ENGINE=Pantile PARTITION BY HASH (id) PARTITIONS 3"), 0)
    same(a.do("INSERT INTO p SELECT seq, seq FROM seq_1_to_6"), 6)
    same(a.do("XA START 'parts'"), 0), same(a.do("UPDATE p SET n = 0 WHERE id = 5"), 1)
    same(a.do("XA END 'parts'"), 0), same(a.do("XA PREPARE 'parts'"), 0), a.connection.close()
    eventually("the connection ends", lambda: b.do("XA RECOVER") != [])
    same(b.do("TRUNCATE TABLE p"), -1192), same(b.do("SELECT COUNT(*) FROM p"), [(6,)])
    same(b.do("DROP TABLE p"), 0), same(b.do("SELECT COUNT(*) FROM p"), -1146)
    same(b.do("XA COMMIT 'parts'"), 0), same(b.do("XA RECOVER"), [])


def killed_index():
    """KILL ends the creation of an index, and there is none."""
    a, b = pair("Pantile")
    same(a.do("CREATE TABLE many ENGINE=Pantile SELECT seq AS id, seq % 1000 AS n FROM seq_1_to_300000"), 300000)
    is_made = f"SELECT 1 FROM information_schema.processlist WHERE id = {b.id()} AND state = 'altering table'"
    until = time.time() + 600
    while True:
        answer = []
        make = threading.Thread(target=lambda: answer.append(b.do("ALTER TABLE many ADD INDEX by_n (n), ALGORITHM=INPLACE")))
        make.start()
        while make.is_alive() and not a.do(is_made):
            pass
        a.do(f"KILL QUERY {b.id()}"), make.join()
        if answer == [-1317]:
            break
        # It was made before that.
        same(answer, [0]), same(a.do("ALTER TABLE many DROP INDEX by_n"), 0)
        assert time.time() < until, "it was always made before the kill"
    same(a.do("SHOW INDEX FROM many"), [])
    same(b.do("ALTER TABLE many ADD INDEX by_n (n), ALGORITHM=INPLACE"), 0)
    same(b.do("SELECT COUNT(*) FROM many FORCE INDEX (by_n) WHERE n = 7"), [(300,)])
    same(b.do("DROP TABLE many"), 0)


def virtual_columns():
    """What is computed is right wherever an index has it."""
    for parts in ("", " PARTITION BY RANGE (b) (PARTITION p0 VALUES LESS THAN (6), PARTITION p1 VALUES LESS THAN MAXVALUE)"):
        a, b = pair("Pantile")
        a.do("CREATE TABLE v (a INT, b INT, x INT AS (a + b) VIRTUAL, KEY (x)) ENGINE=Pantile" + parts)
        a.do("INSERT INTO v (a, b) VALUES (1, 2), (3, 4), (3, 12), (4, 18)")
        same(a.do("SELECT x FROM v FORCE INDEX (x) ORDER BY x"), [(3,), (7,), (15,), (22,)])
        same(a.do("SELECT a FROM v FORCE INDEX (x) WHERE x IN (7, 15) AND x <= 83 ORDER BY b"), [(3,), (3,)])
        same(a.do("SELECT a, x FROM v FORCE INDEX (x) WHERE x BETWEEN 4 AND 20 AND x % 5 = 0"), [(3, 15)])
        same(a.do("SELECT MAX(x), MIN(x) FROM v"), [(22, 3)]), a.do("DROP TABLE v")


def lists_of_keys():
    """The rows of a list of primary keys are fetched before they are read. What is read is the same."""
    parts = " PARTITION BY HASH (id) PARTITIONS 3"
    shapes = (("id INT PRIMARY KEY", "", lambda n: str(n)), ("id INT, PRIMARY KEY (id DESC)", parts, lambda n: str(n)),
              ("id VARCHAR(40) PRIMARY KEY", "", lambda n: f"'Key {n}'"),
              ("id TEXT, PRIMARY KEY (id(20))", "", lambda n: f"'Key {n}'"),
              ("id INT, k VARCHAR(9), PRIMARY KEY (id, k)", "", lambda n: f"{n}, 'k{n % 7}'"))
    for columns, parts, key in shapes:
        found = []
        for engine in ("Pantile", "InnoDB"):
            a, b = pair(engine)
            same(a.do(f"CREATE TABLE listed ({columns}, n INT) ENGINE={engine}{parts}"), 0)
            a.do("INSERT INTO listed VALUES " + ", ".join(f"({key(n)}, {n})" for n in range(0, 1000, 2)))
            a.do("BEGIN"), b.do("BEGIN"), b.do("SELECT COUNT(*) FROM listed")
            a.do(f"UPDATE listed SET n = -n WHERE n % 3 = 0"), a.do("DELETE FROM listed WHERE n % 10 = 4")
            listed = ", ".join(f"({key(n)})" for n in [*range(150), 998, 999, 7, 8, 8])
            left = "(id, k)" if "(id, k)" in columns else "id"
            statement = f"SELECT * FROM listed WHERE {left} IN ({listed})"
            found.append([sorted(s.do(statement + how)) for s, how in ((a, ""), (b, ""), (a, " FOR UPDATE"))])
            found[-1].append(sorted(a.do(f"SELECT t.n, (SELECT COUNT(*) FROM listed l WHERE l.n > t.n AND {left.replace('id', 'l.id').replace('k', 'l.k')} IN ({listed})) FROM listed t WHERE n < 9")))
            found[-1].append(a.do(f"UPDATE listed SET n = n + 1 WHERE {left} IN ({listed})"))
            found[-1].append(a.do(f"DELETE FROM listed WHERE {left} IN ({listed}) AND n % 2 = 1"))
            a.do("COMMIT"), b.do("COMMIT"), same(b.do(statement + " AND n % 2 = 1"), []), b.do("DROP TABLE listed")
        same(found[0], found[1])
        assert len(found[0][1]) == 76, found[0][1]


def joins():
    """A join that fetches the rows of its next keys ahead finds what one that goes key by key finds."""
    statements = (
        "SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer WHERE o.id < {n}",
        "SELECT o.id, l.no, l.amount FROM orders o JOIN lines l ON l.id = o.id WHERE o.id BETWEEN 40 AND {n}",
        "SELECT c.id, o.id FROM customers c JOIN orders o ON o.customer = c.id AND o.place = c.place",
        "SELECT c.id, o.id FROM customers c LEFT JOIN orders o ON o.customer = c.id AND o.id % 7 = c.id % 7",
        "SELECT c.id FROM customers c LEFT JOIN orders o ON o.customer = c.id WHERE o.id IS NULL",
        "SELECT c.id FROM customers c WHERE c.id IN (SELECT o.customer FROM orders o WHERE o.id > 9)",
        "SELECT c.id FROM customers c WHERE EXISTS (SELECT 1 FROM orders o, lines l WHERE o.customer = c.id AND l.id = o.id AND l.amount > c.id)",
        "SELECT c.name, SUM(l.amount) FROM customers c JOIN orders o ON o.customer = c.id JOIN lines l ON l.id = o.id GROUP BY c.name",
        "SELECT c.id, o.id, o.note FROM customers c STRAIGHT_JOIN orders o FORCE INDEX (customer) ON o.customer = c.id AND o.place <> c.place",
        "SELECT c.id, o.id, o.note FROM customers c STRAIGHT_JOIN orders o FORCE INDEX (customer) ON o.customer = c.id AND o.place <> c.place WHERE c.id > 14 AND c.id < 16",
        "SELECT o.id, p.name FROM orders o JOIN places p ON p.name = o.place",
        "SELECT a.id, b.id FROM orders a JOIN orders b ON b.customer = a.customer AND b.id < a.id - a.id % 5 WHERE a.id < {n}",
        "SELECT a.id, l.no FROM orders a JOIN lines l ON l.id = a.id AND l.no >= a.id % 4 AND l.amount % 3 <> a.id % 3",
    )
    ways = [("off", 2)] + [("on", level) for level in (5, 6, 7, 8)]
    for parts in ("", " PARTITION BY HASH (id) PARTITIONS 3"):
        found = {}
        for engine in ("Pantile", "InnoDB"):
            a, b = pair(engine)
            a.do(f"CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(20), place VARCHAR(9)) ENGINE={engine}{parts}")
            a.do(f"CREATE TABLE orders (id INT PRIMARY KEY, customer INT, place VARCHAR(9), note INT, KEY (customer, place), KEY (place)) ENGINE={engine}{parts}")
            a.do(f"CREATE TABLE `lines` (id INT, no INT, amount INT, PRIMARY KEY (id, no)) ENGINE={engine}{parts}")
            a.do(f"CREATE TABLE places (name VARCHAR(9), UNIQUE (name)) ENGINE={engine}")
            a.do("INSERT INTO customers VALUES " + ", ".join(f"({n}, 'name {n % 20}', 'p{n % 4}')" for n in range(0, 120)))
            customer = lambda n: "NULL" if n % 11 == 0 else n * 15 % 130
            a.do("INSERT INTO orders VALUES " + ", ".join(f"({n}, {customer(n)}, 'p{n % 5}', {n})" for n in range(400)))
            a.do("INSERT INTO `lines` VALUES " + ", ".join(f"({n}, {no}, {n + no})" for n in range(400) for no in range(n % 6)))
            a.do("INSERT INTO places VALUES (NULL), (NULL), ('p1'), ('p2'), ('P4 ')"), a.do("ANALYZE TABLE customers, orders, `lines`, places")
            # One reads what it has written, the other what was there when it began.
            a.do("BEGIN"), b.do("BEGIN"), b.do("SELECT COUNT(*) FROM orders, customers, `lines`, places")
            a.do("UPDATE orders SET customer = customer + 1 WHERE id % 3 = 0"), a.do("DELETE FROM `lines` WHERE amount % 5 = 1")
            a.do("INSERT INTO orders VALUES (1000, 5, 'p1', 0)"), a.do("DELETE FROM customers WHERE id % 10 = 4")
            used, in_index = 0, False
            for session in (a, b):
                for switch, level in ways:
                    # The smallest buffer has room for a few rows, so that some of its fillings are of one row.
                    size = 262144 if level % 2 else 128
                    session.do(f"SET join_buffer_size = {size}, join_cache_level = {level}, optimizer_switch = 'mrr={switch},join_cache_bka={switch},mrr_cost_based=off'")
                    for n, statement in enumerate(statements):
                        statement = statement.format(n=350).replace("lines l", "`lines` l").replace("JOIN", "STRAIGHT_JOIN" if n < 3 else "JOIN")
                        rows = sorted(session.do(statement), key=str)
                        plan = str(session.do("EXPLAIN " + statement))
                        used += "BKA" in plan
                        in_index |= "BKA" in plan and "Using index condition" in plan
                        same(rows, found.setdefault((session is a, n), rows))
                        assert rows, statement
            assert used > 20 and in_index or engine == "InnoDB", (used, in_index)
            a.do("COMMIT"), b.do("COMMIT"), a.do("DROP TABLE customers, orders, `lines`, places")


def numbers():
    a, b = pair("Pantile")
    a.do("CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY, n INT) ENGINE=Pantile")
    a.do("INSERT INTO counted (n) VALUES (1), (2)"), a.do("BEGIN"), a.do("INSERT INTO counted (n) VALUES (3)"), a.do("ROLLBACK")
    a.do("DELETE FROM counted WHERE id = 2"), a.do("FLUSH TABLES")
    a.do("INSERT INTO counted (n) VALUES (4)"), same(a.do("SELECT MAX(id) FROM counted"), [(4,)])
    a.do("INSERT INTO counted VALUES (100, 0)"), a.do("INSERT INTO counted (n) VALUES (5)")
    same(a.do("SELECT MAX(id) FROM counted"), [(101,)])
    a.do("TRUNCATE counted"), a.do("INSERT INTO counted (n) VALUES (1)"), same(a.do("SELECT id FROM counted"), [(1,)])
    a.do("DROP TABLE counted")


def lost_tables():
    """A definition without its engine's table, and the reverse."""
    a, b = pair("Pantile")
    (directory,), = a.do("SELECT @@datadir")
    shutil.copy(f"{directory}/behaviour/t_Pantile.frm", f"{directory}/behaviour/ghost.frm")
    same(a.do("SELECT * FROM ghost"), -1932), same(a.do("SELECT COUNT(*) FROM {t}"), [(3,)])
    a.do("DROP TABLE IF EXISTS ghost"), same(a.do("SELECT * FROM ghost"), -1146)
    a.do("CREATE TABLE left_over (id INT) ENGINE=Pantile"), a.do("INSERT INTO left_over VALUES (1)"), a.do("FLUSH TABLES")
    os.remove(f"{directory}/behaviour/left_over.frm")
    same(a.do("SELECT * FROM left_over"), -1146)
    # Its rows are not lost by a CREATE.
    same(a.do("CREATE TABLE left_over (id INT, n INT) ENGINE=Pantile"), -1813)
    same(a.do("DROP TABLE left_over"), 0)
    same(a.do("CREATE TABLE left_over (id INT, n INT) ENGINE=Pantile"), 0), same(a.do("SELECT * FROM left_over"), [])
    shutil.copy(f"{directory}/behaviour/left_over.frm", f"{directory}/kept.frm")
    a.do("INSERT INTO left_over VALUES (1, 2)"), a.do("FLUSH TABLES"), os.remove(f"{directory}/behaviour/left_over.frm")
    same(a.do("CREATE TABLE left_over (id INT) ENGINE=Pantile"), -1813), same(a.do("CREATE OR REPLACE TABLE left_over (id INT) ENGINE=Pantile"), -1813)
    shutil.move(f"{directory}/kept.frm", f"{directory}/behaviour/left_over.frm")
    same(a.do("SELECT * FROM left_over"), [(1, 2)])
    # Nor by what gets its name from another table.
    a.do("CREATE TABLE x (id INT) ENGINE=Pantile"), a.do("INSERT INTO x VALUES (7)")
    a.do("FLUSH TABLES"), shutil.move(f"{directory}/behaviour/left_over.frm", f"{directory}/kept.frm")
    for statement in ("RENAME TABLE x TO left_over", "RENAME TABLE x TO y, y TO left_over", "ALTER TABLE x RENAME left_over",
                      "ALTER TABLE x RENAME left_over, FORCE, ALGORITHM=COPY", "ALTER TABLE x RENAME left_over, ADD INDEX (id)"):
        same(a.do(statement), -1813), same(a.do("SELECT * FROM x"), [(7,)])
    same(a.do("CREATE TABLE left_over (id INT, n INT) ENGINE=InnoDB"), 0), same(a.do("INSERT INTO left_over VALUES (3, 4)"), 1)
    same(a.do("ALTER TABLE left_over ENGINE=Pantile"), -1813)
    same(a.do("SELECT * FROM left_over"), [(3, 4)]), same(a.do("DROP TABLE left_over"), 0)
    a.do("CREATE TABLE p (id INT) ENGINE=Pantile PARTITION BY LIST (id) (PARTITION p0 VALUES IN (5), PARTITION p1 VALUES IN (6))")
    a.do("INSERT INTO p VALUES (5), (6)"), same(a.do("ALTER TABLE p CONVERT PARTITION p0 TO TABLE left_over"), -1813)
    same(a.do("SELECT * FROM p"), [(5,), (6,)]), same(a.do("DROP TABLE p"), 0)
    shutil.move(f"{directory}/kept.frm", f"{directory}/behaviour/left_over.frm")
    same(a.do("SELECT * FROM left_over"), [(1, 2)]), same(a.do("DROP TABLE left_over, x"), 0)


def indexes_after_a_kill():
    """Definitions whose indexes are not those of the engine, as a kill within ALTER leaves them."""
    a, b = pair("Pantile")
    (directory,), = a.do("SELECT @@datadir")
    place, kept = f"{directory}/behaviour/t_Pantile.frm", f"{directory}/kept.frm"
    for first, second, duplicate in (("ADD UNIQUE by_n (n)", "DROP INDEX by_n", 1), ("ADD INDEX by_n (n)", "DROP INDEX by_n", 1)):
        a.do("FLUSH TABLES"), shutil.copy(place, kept), same(a.do("ALTER TABLE {t} " + first), 0)
        a.do("FLUSH TABLES"), shutil.copy(kept, place)
        # The engine has an index that the definition does not know: it is of no effect.
        same(a.do("INSERT INTO {t} VALUES (9, 30)"), duplicate), same(a.do("DELETE FROM {t} WHERE id = 9"), 1)
        same(a.do("ALTER TABLE {t} " + first), 0)
        a.do("FLUSH TABLES"), shutil.copy(place, kept), same(a.do("ALTER TABLE {t} " + second), 0)
        a.do("FLUSH TABLES"), shutil.copy(kept, place)
        # The definition has an index that the engine has dropped: it is made again.
        same(a.do("SELECT id FROM {t} FORCE INDEX (by_n) WHERE n = 20"), [(2,)])
        same(a.do("ALTER TABLE {t} " + second), 0)
    # A change that fails leaves the index of the same name.
    a.do("ALTER TABLE {t} ADD INDEX by_n (n)"), a.do("INSERT INTO {t} VALUES (9, 30)")
    same(a.do("ALTER TABLE {t} DROP INDEX by_n, ADD UNIQUE by_n (n)"), -1062), a.do("FLUSH TABLES")
    same(a.do("SELECT COUNT(*) FROM {t} FORCE INDEX (by_n) WHERE n = 30"), [(2,)])
    same(a.do("ALTER TABLE {t} DROP INDEX by_n"), 0)


def dropped_unique_index():
    """A unique index binds transactions from before it was dropped, and their definition of the table does not have it."""
    a, b = pair("Pantile")
    same(a.do("CREATE TABLE aside (id INT) ENGINE=Pantile"), 0), same(a.do("ALTER TABLE {t} ADD UNIQUE u (n)"), 0)
    for statement in ("REPLACE INTO {t} VALUES (9, 20)", "INSERT INTO {t} VALUES (9, 20) ON DUPLICATE KEY UPDATE n = 21"):
        b.do("BEGIN"), same(b.do("INSERT INTO aside VALUES (1)"), 1)
        same(a.do("ALTER TABLE {t} DROP INDEX u"), 0)
        assert b.do(statement) in (-1213, 1)
        b.do("ROLLBACK"), same(b.do(statement), 1), same(b.do("DELETE FROM {t} WHERE id = 9"), 1)
        same(a.do("ALTER TABLE {t} ADD UNIQUE u (n)"), 0)
    b.do("BEGIN"), same(b.do("INSERT INTO {t} VALUES (9, 20)"), -1062), b.do("ROLLBACK")
    same(a.do("ALTER TABLE {t} DROP INDEX u"), 0), same(a.do("DROP TABLE aside"), 0)


def maintenance():
    """CHECK, ANALYZE, OPTIMIZE, and what is refused."""
    a, b = pair("Pantile")
    (directory,), = a.do("SELECT CONCAT(@@datadir, @@pantile_data_dir)")
    a.do("CREATE TABLE m (id INT PRIMARY KEY, n INT, v VARCHAR(200), KEY by_n (n), KEY by_v (v)) ENGINE=Pantile")
    a.do("INSERT INTO m SELECT seq, seq % 7, CONCAT(REPEAT('x', 100), 'row ', seq) FROM seq_1_to_20000")
    whole = [("behaviour.m", "check", "status", "OK")]
    same(a.do("CHECK TABLE m"), whole), same(a.do("CHECK TABLE m QUICK"), whole)
    # What it checks is one state, beside writers.
    b.do("BEGIN"), b.do("UPDATE m SET n = n + 1 WHERE id < 100"), same(a.do("CHECK TABLE m"), whole), b.do("COMMIT")
    # OPTIMIZE gives space back, ANALYZE lets the optimizer know of the rows that are left.
    def of(variable):
        return int(a.do(f"SHOW STATUS LIKE 'pantile_{variable}'")[0][1])
    def per_key():
        return int(a.do("SELECT CARDINALITY FROM information_schema.STATISTICS WHERE TABLE_NAME = 'm' AND INDEX_NAME = 'by_n'")[0][0])
    a.do("DELETE FROM m WHERE id > 1000")
    before = of("medium_bytes")
    # What an old snapshot may read stays, and the answer says so.
    b.do("START TRANSACTION WITH CONSISTENT SNAPSHOT"), b.do("SELECT COUNT(*) FROM m"), a.do("UPDATE m SET n = 3")
    found = a.do("OPTIMIZE TABLE m")
    assert found[0][2] == "Note" and "bytes of old versions stay" in found[0][3], found
    b.do("COMMIT")
    same(a.do("OPTIMIZE TABLE m"), [("behaviour.m", "optimize", "status", "OK")])
    left = of("medium_bytes")
    assert left < before * 3 // 4, f"OPTIMIZE leaves {left} of {before} bytes"
    a.do("UPDATE m SET n = id")
    same(a.do("ANALYZE TABLE m")[-1], ("behaviour.m", "analyze", "status", "OK"))
    # Entries of old versions count until they have been cleaned up.
    eventually("the number of keys is known", lambda: 500 < per_key() < 2000)
    same(a.do("FLUSH TABLES m FOR EXPORT"), -1031), same(a.do("UNLOCK TABLES"), 0)
    same(a.do("ALTER TABLE m DISCARD TABLESPACE"), -1031), same(a.do("ALTER TABLE m IMPORT TABLESPACE"), -1031)
    # A row that the disk has changed: it is found, and named, also after others have read it.
    a.do("CREATE TABLE other (id INT PRIMARY KEY, v VARCHAR(50)) ENGINE=Pantile"), a.do("INSERT INTO other VALUES (1, 'sound')")
    a.do("INSERT INTO m VALUES (100001, 5, 'to be damaged 7c1e')")
    with open(f"{directory}/pantile.data", "r+b") as file:
        place = file.read().rindex(b"to be damaged 7c1e")
        file.seek(place), file.write(b"T")
    found = a.do("CHECK TABLE m")
    assert found[0][2] == "Warning" and "is damaged" in found[0][3] and "checksum" in found[0][3], found
    same(found[-1], ("behaviour.m", "check", "error", "Corrupt")), same(a.do("CHECK TABLE m QUICK")[-1], found[-1])
    same(a.do("CHECK TABLE other"), [("behaviour.other", "check", "status", "OK")])
    # Nor is it copied into a backup.
    same(a.do(f"SET GLOBAL pantile_backup_to = '{directory}-backup'"), -1105)
    with open(f"{directory}/pantile.data", "r+b") as file:
        file.seek(place), file.write(b"t")
    same(a.do("CHECK TABLE m"), whole), same(a.do(f"SET GLOBAL pantile_backup_to = '{directory}-backup'"), 0)
    same(a.do("SHOW STATUS LIKE 'pantile_backup_state'")[0][1], "complete"), shutil.rmtree(f"{directory}-backup")
    a.do("DROP TABLE m, other")


def eventually(what, happens, seconds=600):
    until = time.time() + seconds
    while not happens():
        assert time.time() < until, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def rewritten(a, rows=500):
    """A table with garbage, if anybody holds it."""
    a.do("CREATE OR REPLACE TABLE big (id INT PRIMARY KEY, n INT, note VARCHAR(2000), KEY by_n (n)) ENGINE=Pantile")
    a.do(f"INSERT INTO big SELECT seq, 0, REPEAT('x', 1000) FROM seq_1_to_{rows}")


def log_since(a, place):
    (path,), = a.do("SELECT @@log_error")
    with open(path, errors="replace") as log:
        log.seek(place)
        return log.read(), log.seek(0, 2)


def tables_of_tables():
    a, b = pair("Pantile")
    rewritten(a)
    where = "WHERE table_schema = 'behaviour' AND table_name = 'big' AND content = 'rows'"
    (rows, blocks, taken, live, amplification, memory), = a.do(
        "SELECT table_rows, blocks, bytes, live_bytes, space_amplification, index_memory_bytes "
        f"FROM information_schema.pantile_tables {where}")
    assert rows == 500 and blocks > 0 and taken >= live >= 500 * 1000 and amplification >= 1 and memory > 0
    assert abs(amplification - taken / live) < 0.01
    same(a.do(f"SELECT index_name, is_unique FROM information_schema.pantile_indexes {where} ORDER BY 1"),
         [("by_n", "NO"), ("PRIMARY", "YES")])
    same(a.do(f"SELECT SUM(blocks), SUM(bytes), SUM(live_bytes) FROM information_schema.pantile_blocks {where}"), [(blocks, taken, live)])
    states = {state for state, in a.do("SELECT DISTINCT state FROM information_schema.pantile_blocks")}
    assert "open" in states and states <= {"open", "sealed", "frozen", "released", "free", "record"}, states
    names = dict(a.do("SELECT name, value FROM information_schema.pantile_collector"))
    assert names["ROOM_BYTES"] > 0 and "PENDING_BLOCKS" in names and "LONG_TRANSACTION_BLOCKS" in names, names
    # Names that are encoded, and partitions.
    a.do("CREATE TABLE `a b-ü` (id INT PRIMARY KEY) ENGINE=Pantile PARTITION BY HASH (id) PARTITIONS 2")
    same(a.do("SELECT table_schema, partition_name FROM information_schema.pantile_tables WHERE table_name = 'a b-ü' AND content = 'rows' ORDER BY 2"),
         [("behaviour", "p0"), ("behaviour", "p1")])
    a.do("DROP TABLE `a b-ü`")
    # Values out of line are listed by themselves, under the name of their table.
    a.do("CREATE TABLE huge (id INT PRIMARY KEY, data LONGBLOB) ENGINE=Pantile"), a.do("INSERT INTO huge VALUES (1, REPEAT('x', 3000000))")
    (big,), = a.do("SELECT live_bytes FROM information_schema.pantile_tables WHERE table_name = 'huge' AND content = 'large values'")
    assert big >= 3000000, big
    a.do("DROP TABLE huge")


def privileges():
    a, b = pair("Pantile")
    a.do("CREATE USER nobody@localhost"), a.do("GRANT ALL ON behaviour.* TO nobody@localhost")
    nobody = Session("Pantile", user="nobody")
    for table in ("tables", "indexes", "blocks", "collector", "transactions", "garbage_holders"):
        same(nobody.do(f"SELECT COUNT(*) FROM information_schema.pantile_{table}"),
             nobody.do("SELECT COUNT(*) FROM information_schema.innodb_trx"))
    a.do("GRANT PROCESS ON *.* TO nobody@localhost")
    nobody = Session("Pantile", user="nobody")
    assert nobody.do("SELECT COUNT(*) FROM information_schema.pantile_tables")[0][0] > 0
    a.do("DROP USER nobody@localhost")


def garbage_holders():
    a, b = pair("Pantile")
    rewritten(a)
    b.do("START TRANSACTION WITH CONSISTENT SNAPSHOT"), b.do("SELECT n FROM {t}")
    for n in range(4):
        a.do("UPDATE big SET n = n + 1")
    (trx, isolation, read_only, age, held, freed), = a.do(
        "SELECT trx_id, isolation, read_only, age_seconds, held_bytes, freed_bytes "
        f"FROM information_schema.pantile_transactions WHERE connection_id = {b.id()}")
    assert (isolation, read_only) == ("SNAPSHOT", "NO") and 0 < age < 60 and held >= freed > 500 * 1000
    found = a.do("SELECT holder, trx_id, user, command, query, began_with, table_schema, held_bytes, held_blocks, holder_held_bytes, holder_freed_bytes "
                 f"FROM information_schema.pantile_garbage_holders WHERE connection_id = {b.id()} AND table_name = 'big' AND content = 'rows'")
    (holder, id, user, command, query, began, schema, bytes, blocks, all, freed), = found
    same((holder, id, user, command, query, schema), (f"connection {b.id()}", trx, "root", "Sleep", None, "behaviour"))
    same(began, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    assert all >= bytes > 500 * 1000 and blocks > 0 and freed > 0, found
    c = Session("Pantile")
    c.do("BEGIN"), c.do("SELECT n + 1 FROM {t}"), c.do("SELECT n + 2 FROM {t}")
    (command, query, began), = a.do(f"SELECT command, query, began_with FROM information_schema.pantile_transactions WHERE connection_id = {c.id()}")
    assert (command, query) == ("Sleep", None) and "n + 1" in began, began
    c.do("COMMIT")
    # A statement that runs is shown. One that is all of its transaction has begun that.
    done = c.later("SELECT SLEEP(100), n FROM {t} LIMIT 1")
    (query, began), = a.do(f"SELECT query, began_with FROM information_schema.pantile_transactions WHERE connection_id = {c.id()}")
    assert "SLEEP(100)" in query and began is None, began
    a.do(f"KILL QUERY {c.id()}"), done()
    done = b.later("SELECT SLEEP(100), n FROM {t} LIMIT 1")
    (command, query), = a.do(f"SELECT command, query FROM information_schema.pantile_transactions WHERE connection_id = {b.id()}")
    assert command == "Query" and "SLEEP(100)" in query, query
    a.do(f"KILL QUERY {b.id()}"), done()
    # What is prepared is no KILL's to end.
    c = Session("Pantile")
    c.do("XA START 'holder'"), c.do("UPDATE {t} SET n = 31 WHERE id = 3"), c.do("XA END 'holder'"), same(c.do("XA PREPARE 'holder'"), 0)
    same(a.do(f"SELECT is_prepared FROM information_schema.pantile_transactions WHERE connection_id = {c.id()}"), [("YES",)])
    c.do("XA ROLLBACK 'holder'")
    # KILL frees what it holds.
    a.do(f"KILL {b.id()}")
    mine = f"SELECT COUNT(*) FROM information_schema.pantile_garbage_holders WHERE connection_id = {b.id()}"
    eventually("the holder is gone", lambda: a.do(mine) == [(0,)])


def ends_of_keys():
    """What comes behind the rows of a key is neither read nor locked."""
    a, b = pair("Pantile")
    a.do("CREATE TABLE jobs (id INT PRIMARY KEY, state VARCHAR(9), KEY (state)) ENGINE=Pantile")
    a.do("INSERT INTO jobs SELECT seq, IF(seq <= 200, 'done', 'new') FROM seq_1_to_203"), a.do("ANALYZE TABLE jobs")
    groups = "SELECT state, MAX(id) FROM jobs GROUP BY state"
    assert "for group-by" in str(a.do("EXPLAIN " + groups)), a.do("EXPLAIN " + groups)
    same(a.do(groups), [("done", 200), ("new", 203)])
    a.do("CREATE TABLE few (id INT PRIMARY KEY, u INT NOT NULL, c INT NOT NULL, KEY uc (u, c)) ENGINE=Pantile")
    a.do("INSERT INTO few SELECT seq, seq, seq % 10 FROM seq_1_to_3000"), a.do("ANALYZE TABLE few")
    distinct = "SELECT COUNT(DISTINCT u) FROM few WHERE c = 3"
    assert "(scanning)" in str(a.do("EXPLAIN " + distinct)), a.do("EXPLAIN " + distinct)
    same(a.do(distinct), [(300,)])
    a.do("DROP TABLE few")
    for direction in ("ASC", "DESC"):
        statement = f"SELECT id FROM jobs WHERE state = 'new' ORDER BY id {direction} LIMIT 5 FOR UPDATE"
        assert "filesort" not in str(a.do("EXPLAIN " + statement)), a.do("EXPLAIN " + statement)
        a.do("BEGIN"), same(len(a.do(statement)), 3)
        b.do("SET SESSION pantile_lock_wait_timeout = 0")
        same(b.do("UPDATE jobs SET state = 'gone' WHERE id IN (200, 199)"), 2), same(b.do("UPDATE jobs SET state = 'done' WHERE id > 198"), -1205)
        b.do("UPDATE jobs SET state = 'done' WHERE id IN (199, 200)"), same(a.do("COMMIT"), 0)
    a.do("DROP TABLE jobs")


def idle_connections():
    a, b = pair("Pantile")
    rewritten(a)
    held = f"SELECT held_bytes FROM information_schema.pantile_transactions WHERE connection_id = {b.id()}"
    read, write = "SELECT SUM(n) FROM big", "UPDATE {t} SET n = n + 1 WHERE id = 1"
    for level, statements, keeps in (("READ COMMITTED", (read, write), False), ("READ COMMITTED", (write, read), False),
                                     ("REPEATABLE READ", (write,), False), ("REPEATABLE READ", (write, read), True),
                                     ("REPEATABLE READ", (read, write), True)):
        b.do(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}"), b.do("BEGIN")
        seen = [b.do(statement) for statement in statements]
        for n in range(3):
            a.do("UPDATE big SET n = n + 1")
        (bytes,), = a.do(held)
        assert (bytes > 0) == keeps, (level, statements, bytes)
        # Two of three states of the table came and went behind the snapshot.
        (one,), = a.do("SELECT live_bytes FROM information_schema.pantile_tables WHERE table_name = 'big' AND content = 'rows'")
        assert bytes < 1.5 * one, (level, statements, bytes, one)
        if read in statements:
            same(b.do(read) == seen[statements.index(read)], keeps)
        same(b.do("ROLLBACK"), 0)


def prepared_by_a_connection_that_goes_on():
    """What it is doing now is not what it has prepared."""
    a, b = pair("Pantile")
    b.do("XA START 'p'"), same(b.do("UPDATE {t} SET n = 1 WHERE id = 1"), 1), b.do("XA END 'p'"), same(b.do("XA PREPARE 'p'"), 0)
    b.reset()
    b.do("BEGIN"), same(b.do("UPDATE {t} SET n = 2 WHERE id = 2"), 1)
    seen = ("SELECT is_prepared, command, query, began_with FROM information_schema.pantile_transactions "
            f"WHERE connection_id = {b.id()} ORDER BY is_prepared")
    expected = [("NO", "Sleep", None, "UPDATE t_Pantile SET n = 2 WHERE id = 2"), ("YES", None, None, None)]
    eventually("only what it does now is shown", lambda: a.do(seen) == expected)
    b.do("ROLLBACK"), same(b.do("XA ROLLBACK 'p'"), 0)


def sequences_under_lock_tables():
    """Each statement has a transaction of its own, also where the lock stays."""
    a, b = pair("Pantile")
    same(a.do("CREATE SEQUENCE s ENGINE=Pantile"), 0), same(a.do("LOCK TABLES s WRITE"), 0)
    mine = f"SELECT COUNT(*) FROM information_schema.pantile_transactions WHERE connection_id = {a.id()}"
    for number in (1, 2):
        same(a.do("SELECT NEXTVAL(s)"), [(number,)]), same(b.do(mine), [(0,)])
    same(a.do("UNLOCK TABLES"), 0), same(a.do("DROP SEQUENCE s"), 0)


def pinned_too_long():
    a, b = pair("Pantile")
    rewritten(a)
    place = log_since(a, 0)[1]
    b.do("START TRANSACTION WITH CONSISTENT SNAPSHOT"), b.do("SELECT n FROM {t}"), a.do("UPDATE big SET n = n + 1")
    same(a.do("SET GLOBAL pantile_max_pinned_age = 1"), 0)
    eventually("a warning", lambda: f"connection {b.id()}" in log_since(a, place)[0])
    assert "[Warning] Pantile: " in log_since(a, place)[0] and "max_pinned_age" in log_since(a, place)[0]
    same(b.do("SELECT n FROM {t} WHERE id = 1"), [(10,)]), same(b.do("COMMIT"), 0)
    # An idle holder is ended and holds nothing any more, locks included.
    b.do("BEGIN"), b.do("SELECT n FROM {t}"), same(b.do("UPDATE {t} SET n = 11 WHERE id = 1"), 1), a.do("UPDATE big SET n = n + 1")
    same(a.do("SET GLOBAL pantile_on_pinned = 'end'"), 0)
    mine = f"SELECT COUNT(*) FROM information_schema.pantile_transactions WHERE connection_id = {b.id()}"
    eventually("the holder is ended", lambda: a.do(mine) == [(0,)])
    same(a.do("UPDATE {t} SET n = 12 WHERE id = 1"), 1)
    same(b.do("SELECT n FROM {t} WHERE id = 1"), -4060)
    assert "max_pinned_age" in b.message, b.message
    same(b.do("SELECT n FROM {t} WHERE id = 1"), [(12,)])
    same(b.do("UPDATE {t} SET n = 13 WHERE id = 1"), 1), same(b.do("COMMIT"), 0)
    # The same at COMMIT, ROLLBACK and ROLLBACK TO.
    for last, answer in (("COMMIT", -4060), ("ROLLBACK", 0), ("ROLLBACK TO one", -4060)):
        b.do("BEGIN"), b.do("SELECT n FROM {t}"), b.do("SAVEPOINT one"), b.do("UPDATE {t} SET n = 14 WHERE id = 1"), a.do("UPDATE big SET n = n + 1")
        eventually("the holder is ended", lambda: a.do(mine) == [(0,)])
        same(b.do(last), answer), b.do("ROLLBACK")
        same(b.do("SELECT n FROM {t} WHERE id = 1"), [(13,)])
    # One that has only read loses nothing at COMMIT.
    b.do("BEGIN"), b.do("SELECT n FROM {t}"), a.do("UPDATE big SET n = n + 1")
    eventually("the holder is ended", lambda: a.do(mine) == [(0,)])
    same(b.do("COMMIT"), 0)
    # What has locked rows fails as a whole, with what it has written to other engines.
    a.do("CREATE TABLE other (id INT PRIMARY KEY) ENGINE=InnoDB")
    b.do("BEGIN"), b.do("SELECT n FROM {t}"), b.do("SELECT n FROM {t} WHERE id = 1 FOR UPDATE")
    same(b.do("INSERT INTO other VALUES (1)"), 1), a.do("UPDATE big SET n = n + 1")
    eventually("the holder is ended", lambda: a.do(mine) == [(0,)])
    same(b.do("COMMIT"), -4060), same(b.do("ROLLBACK"), 0), same(a.do("SELECT COUNT(*) FROM other"), [(0,)]), a.do("DROP TABLE other")
    # In the middle of a statement, too.
    b.do("BEGIN"), b.do("SELECT n FROM {t}")
    answer = b.later("SELECT SLEEP(2), n FROM {t}")
    a.do("UPDATE big SET n = n + 1")
    same(answer(), -4060), same(b.do("SELECT COUNT(*) FROM {t}"), [(3,)])
    # And of a join, which takes what is not an error to the server for the end of the rows.
    b.do("SET join_cache_level = 6, optimizer_switch = 'mrr=on,join_cache_bka=on,mrr_cost_based=off'")
    join = "SELECT l.n, r.n FROM {t} l STRAIGHT_JOIN {t} r FORCE INDEX (PRIMARY) ON r.id = l.id WHERE SLEEP(1) = 0"
    assert "BKA" in str(b.do("EXPLAIN " + join)), b.do("EXPLAIN " + join)
    b.do("BEGIN"), b.do("SELECT n FROM {t}")
    answer = b.later(join)
    a.do("UPDATE big SET n = n + 1")
    same(answer(), -4060), same(b.do("SELECT COUNT(*) FROM {t}"), [(3,)])
    # By bytes.
    a.do("SET GLOBAL pantile_max_pinned_age = 0, GLOBAL pantile_max_pinned_bytes = 100000")
    b.do("BEGIN"), b.do("SELECT n FROM {t}"), a.do("UPDATE big SET n = n + 1")
    eventually("the holder is ended", lambda: a.do(mine) == [(0,)])
    same(b.do("SELECT n FROM {t} WHERE id = 1"), -4060)
    assert "max_pinned_bytes" in b.message, b.message
    ends = dict(a.do("SELECT name, value FROM information_schema.pantile_collector"))
    assert ends["PIN_ENDS"] >= 6 and ends["PIN_WARNINGS"] >= 1 and ends["ENDED_NOT_ROLLED_BACK"] == 0, ends
    a.do("SET GLOBAL pantile_max_pinned_bytes = 0, GLOBAL pantile_on_pinned = 'warn'"), a.do("DROP TABLE big")


def full_medium():
    """The error names the holder, and ending it makes room."""
    root = pymysql.connect(unix_socket=SMALL, user="root", autocommit=True).cursor()
    root.execute("CREATE DATABASE behaviour"), root.execute("CREATE TABLE behaviour.t_Pantile (id INT PRIMARY KEY, n INT) ENGINE=Pantile")
    a, b = Session("Pantile", socket=SMALL), Session("Pantile", socket=SMALL)
    # The first one makes the table of those that are prepared.
    b.do("XA START 'first'"), b.do("INSERT INTO {t} VALUES (1, 1)"), b.do("XA END 'first'")
    same(b.do("XA PREPARE 'first'"), 0), same(b.do("XA ROLLBACK 'first'"), 0)
    rewritten(a, 9000)
    b.do("START TRANSACTION WITH CONSISTENT SNAPSHOT"), b.do("SELECT n FROM {t}")
    place = log_since(a, 0)[1]
    answers = [a.do("UPDATE big SET n = n + 1") for n in range(8)]
    assert -1114 in answers, answers
    holder = f"connection {b.id()}"
    assert holder in a.message, a.message
    assert holder in log_since(a, place)[0], log_since(a, place)[0]
    a.do(f"KILL {b.id()}")
    eventually("there is room", lambda: a.do("UPDATE big SET n = n + 1") == 9000)
    # Who fails is not told to end itself.
    b = Session("Pantile", socket=SMALL)
    # What became old in the moment before a snapshot stays as well, and counts for nobody.
    time.sleep(1)
    b.do("XA START 'x'"), b.do("SELECT COUNT(*) FROM big"), same(b.do("INSERT INTO {t} VALUES (1, 1)"), 1)
    eventually("it holds something", lambda: a.do("UPDATE big SET n = n + 1") == 9000)
    answers = [a.do("UPDATE big SET n = n + 1") for n in range(8)]
    assert -1114 in answers and f"connection {b.id()}" in a.message, (answers, a.message)
    same(b.do("INSERT INTO big SELECT seq, 0, REPEAT('x', 1000) FROM seq_10001_to_20000"), 10000)
    b.do("XA END 'x'"), same(b.do("XA PREPARE 'x'"), -1114)
    assert "end what keeps" not in b.message, b.message
    eventually("there is room", lambda: a.do("UPDATE big SET n = n + 1") == 9000)
    # What fills a table commits at its end, and is told that it did not.
    eventually("there is room", lambda: a.do("CREATE TABLE half ENGINE=Pantile SELECT * FROM big") == 9000)
    for statement in ("CREATE TABLE third ENGINE=Pantile SELECT * FROM big", "ALTER TABLE half FORCE, ALGORITHM=COPY",
                      "CREATE TABLE third ENGINE=Pantile PARTITION BY HASH (id) PARTITIONS 2 SELECT * FROM big"):
        same(a.do(statement), -1114), same(a.do("SELECT COUNT(*) FROM half"), [(9000,)])
    same(a.do("SHOW TABLES LIKE 'third'"), []), a.do("DROP TABLE big, half")


def texts_of_errors():
    """They name the server's table and key, and say what to do."""
    a, b = pair("Pantile")
    a.do("BEGIN"), a.do("SELECT * FROM {t}"), b.do("UPDATE {t} SET n = 11 WHERE id = 1")
    same(a.do("UPDATE {t} SET n = 12 WHERE id = 1"), -1213)
    same(a.message, "Deadlock found when trying to get lock; try restarting transaction: conflict in table "
         '"behaviour.t_Pantile": another transaction has committed the tuple since this one took its snapshot')
    a.do("SET pantile_lock_wait_timeout = 600"), b.do("SET pantile_lock_wait_timeout = 600")
    a.do("BEGIN"), b.do("BEGIN"), a.do("UPDATE {t} SET n = 1 WHERE id = 1"), b.do("UPDATE {t} SET n = 1 WHERE id = 2")
    waits = a.later("UPDATE {t} SET n = 1 WHERE id = 2")
    second = b.do("UPDATE {t} SET n = 1 WHERE id = 1")
    # The one that came later, usually.
    same(sorted([waits(), second]), [-1213, 1])
    message = b.message if second == -1213 else a.message
    assert 'transaction: conflict in table "behaviour.t_Pantile": waiting' in message, message
    a.do("ROLLBACK"), b.do("ROLLBACK")
    # A key that is too long for the engine, in each statement that makes one.
    a.do("CREATE TABLE made (id INT PRIMARY KEY, v VARBINARY(2000)) ENGINE=Pantile")
    for statement in ("CREATE TABLE other (id INT PRIMARY KEY, v VARBINARY(2000), KEY long_key (v)) ENGINE=Pantile",
                      "ALTER TABLE made ADD KEY long_key (v)", "ALTER TABLE made ADD KEY long_key (v), ALGORITHM=COPY",
                      "CREATE INDEX long_key ON made (v)"):
        assert a.do(statement) in (-1005, -1815), statement
        name = "behaviour.other" if "other" in statement else "behaviour.made"
        assert f'"{name}": a key of index "long_key"' in a.message, (statement, a.message)
    # A text that is too long for its key, also in the part of a table that an update moves it to.
    a.do("CREATE TABLE texts (id INT PRIMARY KEY, n INT, v VARCHAR(760), KEY n (n), KEY of_text (n, v)) "
         "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci ENGINE=Pantile PARTITION BY HASH (id) PARTITIONS 2")
    same(a.do("INSERT INTO texts VALUES (1, 1, REPEAT('x', 500))"), 1)
    for statement in ("INSERT INTO texts VALUES (2, 1, REPEAT('x', 750))", "UPDATE texts SET v = REPEAT('x', 750)",
                      "UPDATE texts SET v = REPEAT('x', 750), id = 2"):
        same(a.do(statement), -1709)
        assert "column 'v' is too long for key 'of_text': its sort key may take 15" in a.message, a.message
    a.do("DROP TABLE made"), a.do("DROP TABLE texts")


def full_memory():
    """The error says so. The statement is rolled back, and the transaction goes on."""
    a = Session("Pantile", socket=SMALL)
    a.do("CREATE TABLE wide (id INT PRIMARY KEY, v INT, s VARCHAR(1000)) ENGINE=Pantile")
    a.do("CREATE FUNCTION fills() RETURNS INT BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET @e = 1; "
         "INSERT INTO wide SELECT seq, 0, REPEAT('x', 1000) FROM seq_1_to_100000; RETURN 1; END")
    a.do("BEGIN"), same(a.do("INSERT INTO wide VALUES (0, 0, '')"), 1)
    same(a.do("INSERT INTO wide SELECT seq, 0, REPEAT('x', 1000) FROM seq_1_to_100000"), -1041)
    assert a.message.startswith("pantile_memory_limit is reached: no memory for the statement"), a.message
    same(a.do("SELECT COUNT(*) FROM wide"), [(1,)])
    # Within a function that goes on after errors, too.
    same(a.do("SELECT fills()"), -1041)
    same(a.do("SELECT COUNT(*) FROM wide"), [(1,)])
    a.do("ROLLBACK")
    same(a.do("SELECT COUNT(*) FROM wide"), [(0,)])
    a.do("DROP FUNCTION fills"), a.do("DROP TABLE wide")


def main():
    connection = pymysql.connect(unix_socket=SOCKET, user="root", autocommit=True)
    cursor = connection.cursor()
    cursor.execute("CREATE DATABASE behaviour")
    cursor.execute("USE behaviour")
    for engine in ("Pantile", "InnoDB"):
        cursor.execute(f"CREATE TABLE t_{engine} (id INT PRIMARY KEY, n INT) ENGINE={engine}")
    for check in (read_uncommitted, read_committed, repeatable_read, before_the_first_read, insert_select, serializable, gaps,
                  locking_reads, share_mode, unmatched_rows, deadlocks, kill, savepoints, consistent_snapshots, xa,
                  prepared_and_reset, later_holders, definitions, one_moment, prepared_parts, killed_index, dropped_unique_index, virtual_columns, lists_of_keys,
                  joins, numbers, lost_tables, indexes_after_a_kill, maintenance, tables_of_tables, privileges,
                  garbage_holders, ends_of_keys, idle_connections, prepared_by_a_connection_that_goes_on,
                  sequences_under_lock_tables, pinned_too_long, texts_of_errors, full_medium, full_memory):
        check()
        print(f"{check.__name__}: as the documentation says", flush=True)
    cursor.execute("DROP DATABASE behaviour")


main()
