"""Statements that must do with ENGINE=Pantile what they do with InnoDB: each scenario runs with both, and the answers are
compared.

usage: same.py SOCKET
"""

import sys
import threading
import time

import pymysql

SOCKET = sys.argv[1]


def longer_than_stored(table, kind, key, most):
    """Searches for a text of one more than as many bytes as the longest text that is there."""
    lines = f"""
        a CREATE TABLE {table} (id INT PRIMARY KEY, v {kind}, n INT, KEY v ({key})) ENGINE={{e}}
        a INSERT INTO {table} VALUES (1, 'a', 1), (2, REPEAT('b', {most}), 2), (3, CONCAT(REPEAT('b', {most - 1}), 'c'), 3), (4, 'c', 4), (5, REPEAT('b', {most}), 5)"""
    for last in ("\\t", "x"):
        longer = f"CONCAT(REPEAT('b', {most}), '{last}')"
        lines += f"""
        a SELECT LENGTH(MAX(v)) FROM {table} WHERE v < {longer}
        a SELECT LENGTH(MIN(v)) FROM {table} WHERE v >= {longer}
        a SELECT id FROM {table} FORCE INDEX (v) WHERE v < {longer} ORDER BY v DESC, id
        a SELECT id FROM {table} FORCE INDEX (v) WHERE v IN ({longer}, 'a', REPEAT('b', {most})) ORDER BY id
        a HANDLER {table} OPEN
        a HANDLER {table} READ v = ({longer})
        a HANDLER {table} READ v PREV
        a HANDLER {table} READ v <= ({longer})
        a HANDLER {table} READ v >= ({longer})
        a HANDLER {table} CLOSE"""
    return lines


# A line begins with the session that runs it. {e} is the engine.
SCENARIOS = {
    "virtual texts of rows that are replaced": """
        a CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(5000), v TEXT AS (CONCAT('x', a)) VIRTUAL, KEY v (v(20))) ENGINE={e}
        a INSERT INTO t (id, a) VALUES (1, 'old'), (2, REPEAT('o', 5000))
        a REPLACE INTO t (id, a) VALUES (1, 'new'), (2, 'other')
        a SELECT id FROM t FORCE INDEX (v) WHERE v = 'xnew'
        a SELECT id FROM t FORCE INDEX (v) WHERE v = 'xother'
        a SELECT id FROM t FORCE INDEX (v) WHERE v LIKE 'xo%' ORDER BY id
        a CREATE TABLE u (id INT PRIMARY KEY, a VARCHAR(100), v TEXT AS (CONCAT('x', a)) VIRTUAL, UNIQUE v (v(20))) ENGINE={e}
        a INSERT INTO u (id, a) VALUES (1, 'old')
        a REPLACE INTO u (id, a) VALUES (1, 'new')
        a INSERT INTO u (id, a) VALUES (2, 'new')
        a INSERT INTO u (id, a) VALUES (3, 'old')
        a INSERT INTO u (id, a) VALUES (3, 'x') ON DUPLICATE KEY UPDATE a = 'third'
        a SELECT id, v FROM u FORCE INDEX (v) WHERE v > '' ORDER BY v""",
    "history of rows with virtual columns": """
        a CREATE TABLE t (id INT PRIMARY KEY, a INT, v INT AS (a * 2) VIRTUAL, KEY v (v)) ENGINE={e} WITH SYSTEM VERSIONING
        a INSERT INTO t (id, a) VALUES (1, 5), (2, 6)
        a DELETE FROM t WHERE id = 1
        a UPDATE t SET a = 7 WHERE id = 2
        a SELECT id FROM t FOR SYSTEM_TIME ALL FORCE INDEX (v) WHERE v = 10
        a SELECT id FROM t FOR SYSTEM_TIME ALL FORCE INDEX (v) WHERE v = 12
        a SELECT id FROM t FORCE INDEX (v) WHERE v >= 10""",
    "leading zeros that a column computes with": """
        a CREATE TABLE t (id INT PRIMARY KEY, a INT(5) ZEROFILL, s VARCHAR(30) AS (CONCAT('x', a)) STORED, v VARCHAR(30) AS (CONCAT('y', a)) VIRTUAL, KEY v (v)) ENGINE={e}
        a INSERT INTO t (id, a) VALUES (1, 7)
        a ALTER TABLE t MODIFY a BIGINT(10) ZEROFILL
        a SELECT s, v FROM t
        a SELECT id FROM t FORCE INDEX (v) WHERE v = 'y0000000007'""",
    "a wait that ends within a function that goes on after errors": """
        a CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE={e}
        a INSERT INTO t VALUES (1,0), (2,0), (3,0)
        a DROP FUNCTION IF EXISTS goes_on
        a CREATE FUNCTION goes_on() RETURNS INT BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET @e = 1; UPDATE t SET n = n + 1; RETURN 1; END
        a BEGIN
        a UPDATE t SET n = 7 WHERE id = 2
        b SET innodb_lock_wait_timeout = 1
        b SET pantile_lock_wait_timeout = 1
        b SELECT goes_on()
        a ROLLBACK
        a SELECT * FROM t""",
    "waiting as long as the statement says": """
        a CREATE TABLE t (id INT PRIMARY KEY) ENGINE={e}
        a INSERT INTO t VALUES (1)
        a BEGIN
        a SELECT * FROM t FOR UPDATE
        b SET innodb_lock_wait_timeout = 100
        b SET pantile_lock_wait_timeout = 100
        b SELECT * FROM t FOR UPDATE WAIT 1
        b SELECT * FROM t FOR UPDATE NOWAIT
        b SET lock_wait_timeout = 1
        b SET innodb_lock_wait_timeout = 2
        b SET pantile_lock_wait_timeout = 2
        b SELECT * FROM t FOR UPDATE""",
    "a foreign key that is not there is dropped": """
        a CREATE TABLE t (id INT PRIMARY KEY) ENGINE={e}
        a ALTER TABLE t DROP FOREIGN KEY f
        a ALTER TABLE t DROP FOREIGN KEY f, ALGORITHM=COPY
        a ALTER TABLE t DROP FOREIGN KEY IF EXISTS f""",
    "an index that is dropped and made again": """
        a CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), KEY k (v)) ENGINE={e}
        a INSERT INTO t VALUES (1,'a')
        a ALTER TABLE t DROP INDEX k
        a INSERT INTO t VALUES (2,'b')
        a UPDATE t SET v='c' WHERE id=1
        a ALTER TABLE t ADD INDEX k (v)
        a SELECT * FROM t FORCE INDEX (k) WHERE v='b'
        a SELECT * FROM t FORCE INDEX (k) WHERE v='c'
        a SELECT * FROM t FORCE INDEX (k) WHERE v='a'
        a ALTER TABLE t DROP INDEX k
        a INSERT INTO t VALUES (3,'b')
        a ALTER TABLE t ADD UNIQUE u (v)
        a DELETE FROM t WHERE id=3
        a ALTER TABLE t ADD UNIQUE u (v)
        a INSERT INTO t VALUES (4,'c')""",
    "columns that move over those of a dropped index": """
        a CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9), c VARCHAR(9), KEY ka (a), KEY kb (b)) ENGINE={e}
        a INSERT INTO t VALUES (1,'a1','b1','c1'), (2,'a2','b2','c2')
        a ALTER TABLE t DROP INDEX ka
        a INSERT INTO t VALUES (3,'a3','b3','c3')
        a ALTER TABLE t DROP COLUMN a
        a INSERT INTO t VALUES (4,'b4','c4')
        a ALTER TABLE t ADD INDEX kc (c)
        a SELECT id FROM t FORCE INDEX (kb) WHERE b >= 'b2' ORDER BY b
        a SELECT id FROM t FORCE INDEX (kc) WHERE c >= 'c2' ORDER BY c
        a SELECT id FROM t FORCE INDEX (kc) WHERE c = 'c1'""",
    "a primary key that is changed by a scan": """
        a CREATE TABLE t (id INT PRIMARY KEY) ENGINE={e}
        a INSERT INTO t SELECT seq FROM seq_1_to_1000
        a UPDATE t SET id = id + 10000
        a SELECT COUNT(*), MIN(id), MAX(id) FROM t
        a UPDATE t SET id = id - 9000 WHERE id > 10100
        a SELECT COUNT(*), MIN(id), MAX(id), SUM(id) FROM t""",
    "a snapshot from before TRUNCATE": """
        a CREATE TABLE t (id INT PRIMARY KEY) ENGINE={e}
        a CREATE TABLE other (id INT PRIMARY KEY) ENGINE={e}
        a INSERT INTO t VALUES (1)
        a INSERT INTO other VALUES (1)
        a START TRANSACTION WITH CONSISTENT SNAPSHOT
        b TRUNCATE t
        a SELECT * FROM other
        a SELECT * FROM t
        a COMMIT
        a SELECT * FROM t
        a START TRANSACTION WITH CONSISTENT SNAPSHOT
        b ALTER TABLE other FORCE, ALGORITHM=COPY
        a SELECT * FROM other
        a ROLLBACK
        a SELECT * FROM other""",
    "writing to a table that was rebuilt since the snapshot": """
        a CREATE TABLE t (id INT PRIMARY KEY, n INT, KEY (n)) ENGINE={e}
        a CREATE TABLE other (id INT PRIMARY KEY) ENGINE={e}
        a INSERT INTO t VALUES (1, 1), (2, 2)
        a START TRANSACTION WITH CONSISTENT SNAPSHOT
        a SELECT COUNT(*) FROM other
        b ALTER TABLE t FORCE, ALGORITHM=COPY
        a UPDATE t SET n = n + 10 WHERE id = 1
        a UPDATE t SET n = n + 10 WHERE n = 2
        a DELETE FROM t
        a SELECT * FROM t FOR UPDATE
        a SELECT * FROM t WHERE id = 1 LOCK IN SHARE MODE
        a COMMIT
        a SELECT * FROM t ORDER BY id""",
    "AUTO_INCREMENT for a column that has rows": """
        a CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE={e}
        a INSERT INTO t VALUES (1, 1), (2, 2), (50, 3)
        a ALTER TABLE t MODIFY id INT NOT NULL AUTO_INCREMENT
        a INSERT INTO t (n) VALUES (4)
        a SELECT * FROM t ORDER BY id
        a CREATE TABLE k (id INT NOT NULL, n INT, KEY (id)) ENGINE={e}
        a INSERT INTO k VALUES (1, 0), (2, 0)
        a ALTER TABLE k MODIFY id INT NOT NULL AUTO_INCREMENT
        a INSERT INTO k (n) VALUES (1)
        a SELECT * FROM k ORDER BY id, n""",
    "a CHECK that comes with a column": """
        a CREATE TABLE t (id INT PRIMARY KEY, n INT, j LONGTEXT COLLATE utf8mb4_bin) CHARACTER SET utf8mb4 ENGINE={e}
        a INSERT INTO t VALUES (1, 5, 'no json')
        a ALTER TABLE t MODIFY n BIGINT CHECK (n > 15)
        a ALTER TABLE t MODIFY j JSON
        a SELECT * FROM t
        a ALTER TABLE t MODIFY n BIGINT CHECK (n > 3)
        a INSERT INTO t VALUES (2, 2, '[]')
        a SELECT * FROM t""",
    "a temporary table that is newer than the snapshot": """
        a CREATE TABLE t (id INT PRIMARY KEY) ENGINE={e}
        a INSERT INTO t VALUES (1), (2)
        a START TRANSACTION WITH CONSISTENT SNAPSHOT
        a SELECT COUNT(*) FROM t
        a CREATE TEMPORARY TABLE mine (id INT PRIMARY KEY) ENGINE={e}
        a INSERT INTO mine SELECT id FROM t
        a SELECT * FROM mine
        a COMMIT
        a DROP TEMPORARY TABLE mine""",
    "a temporary table that is dropped within a transaction": """
        a CREATE TABLE t (id INT PRIMARY KEY) ENGINE={e}
        a BEGIN
        a INSERT INTO t VALUES (1)
        a CREATE TEMPORARY TABLE mine (id INT PRIMARY KEY) ENGINE={e}
        a INSERT INTO mine VALUES (1)
        a DROP TEMPORARY TABLE mine
        a CREATE TEMPORARY TABLE mine (n INT) ENGINE={e}
        a INSERT INTO mine SELECT id + 1 FROM t
        a SELECT * FROM mine
        a CREATE OR REPLACE TEMPORARY TABLE mine (m INT) ENGINE={e}
        a INSERT INTO mine VALUES (7)
        a SELECT * FROM mine
        a COMMIT
        a SELECT * FROM t
        a SELECT * FROM mine
        a BEGIN
        a INSERT INTO mine VALUES (8)
        a DROP TEMPORARY TABLE mine
        a INSERT INTO t VALUES (2)
        a ROLLBACK
        a SELECT * FROM t""",
    "groups of several ranges of an index": """
        a CREATE TABLE t (a INT, b INT, c INT, KEY ab (a,b)) ENGINE={e}
        a INSERT INTO t SELECT seq % 10, seq, 0 FROM seq_1_to_20000
        a ANALYZE TABLE t
        a SELECT a, MIN(b) FROM t WHERE a IN (1,3,5) GROUP BY a
        a SELECT a, MAX(b) FROM t WHERE a IN (1,3,5) GROUP BY a
        a SELECT a, MIN(b), MAX(b) FROM t WHERE a > 1 AND a < 4 OR a = 7 GROUP BY a
        a SELECT DISTINCT a FROM t WHERE a BETWEEN 1 AND 2 OR a BETWEEN 6 AND 7
        a CREATE TABLE p (a INT, b INT, KEY ab (a,b)) ENGINE={e} PARTITION BY HASH (b) PARTITIONS 3
        a INSERT INTO p SELECT a, b FROM t
        a ANALYZE TABLE p
        a SELECT a, MIN(b) FROM p WHERE a IN (1,3,5) GROUP BY a
        a SELECT DISTINCT a FROM p WHERE a BETWEEN 1 AND 2 OR a BETWEEN 6 AND 7 ORDER BY a""",
    "a key that leaves less room": """
        a CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(255), n INT, KEY (a)) ENGINE={e} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci
        a INSERT INTO t VALUES (1,'one',1), (2,'two',2)
        a ALTER TABLE t ADD KEY an (a, n)
        a SELECT id FROM t FORCE INDEX (an) WHERE a = 'TWO' AND n = 2""",
    "partitions that are changed in place": """
        a CREATE TABLE p (id INT PRIMARY KEY, n INT) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 4
        a INSERT INTO p SELECT seq, seq % 7 FROM seq_1_to_100
        a ALTER TABLE p ADD INDEX k (n), ALGORITHM=INPLACE
        a SELECT COUNT(*), SUM(id) FROM p FORCE INDEX (k) WHERE n = 3
        a ALTER TABLE p ALTER n SET DEFAULT 5, ALGORITHM=INSTANT
        a INSERT INTO p (id) VALUES (1000)
        a SELECT * FROM p WHERE id = 1000
        a ALTER TABLE p ADD UNIQUE u (n, id), DROP INDEX k, ALGORITHM=INPLACE
        a INSERT INTO p VALUES (1000, 5)
        a SELECT COUNT(*), SUM(id) FROM p FORCE INDEX (u) WHERE n = 3
        a ALTER TABLE p DROP INDEX u, ALGORITHM=INPLACE
        a SELECT COUNT(*) FROM p WHERE n = 3""",
    "a savepoint keeps no table from being changed": """
        a CREATE TABLE t (id INT PRIMARY KEY) ENGINE={e}
        a INSERT INTO t VALUES (1)
        a START TRANSACTION WITH CONSISTENT SNAPSHOT
        a SAVEPOINT sp
        a SELECT * FROM t
        a ROLLBACK TO SAVEPOINT sp
        b ALTER TABLE t COMMENT = 'x'
        a COMMIT""",
    "indexes that are merged, of a virtual column backward": """
        a CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, x INT AS (a+b) VIRTUAL, KEY x (x DESC), KEY a (a)) ENGINE={e}
        a INSERT INTO t (id, a, b) SELECT seq, seq, seq FROM seq_1_to_2000
        a ANALYZE TABLE t
        a SELECT id FROM t FORCE INDEX (x, a) WHERE x = 14 OR a = 100 ORDER BY id
        a SELECT id FROM t FORCE INDEX (x, a) WHERE x > 3990 OR a = 100 ORDER BY id
        a SELECT id FROM t FORCE INDEX (x, a) WHERE x < 8 OR a = 100 ORDER BY id
        a SELECT id FROM t FORCE INDEX (x, a) WHERE x BETWEEN 8 AND 14 OR a BETWEEN 100 AND 102 ORDER BY id
        a DELETE FROM t WHERE x = 14 OR a = 100
        a SELECT COUNT(*) FROM t""",
    "a primary key that is changed under two names": """
        a CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE={e}
        a INSERT INTO t VALUES (1, 1), (2, 2)
        a UPDATE t AS x, t AS y SET x.id = 10, y.n = 7 WHERE x.id = 1 AND y.id = 1
        a SELECT * FROM t ORDER BY id
        a UPDATE t AS x, t AS y SET x.n = 5, y.n = 7 WHERE x.id = 1 AND y.id = 2
        a SELECT * FROM t ORDER BY id
        a UPDATE t AS x, t AS y SET x.id = 10 WHERE x.id = 1 AND y.id = 2
        a SELECT * FROM t ORDER BY id""",
    "numbers at their end": """
        a CREATE TABLE t (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, n INT) ENGINE={e}
        a INSERT INTO t VALUES (18446744073709551000, 1)
        a INSERT INTO t (n) VALUES (2)
        a FLUSH TABLES
        a INSERT INTO t (n) VALUES (3)
        a SELECT * FROM t ORDER BY id""",
    "an index is not built at once": """
        a CREATE TABLE t (id INT PRIMARY KEY, n INT, KEY k (n)) ENGINE={e}
        a INSERT INTO t VALUES (1, 1)
        a ALTER TABLE t ADD INDEX m (n), ALGORITHM=INSTANT
        a ALTER TABLE t ADD INDEX m (n), ALGORITHM=NOCOPY
        a ALTER TABLE t DROP INDEX k, ADD INDEX K (n)
        a SELECT id FROM t FORCE INDEX (K) WHERE n = 1
        a SELECT id FROM t FORCE INDEX (m) WHERE n = 1""",
    "a table that is emptied under two names": """
        a CREATE TABLE t (k INT, KEY k (k)) ENGINE={e}
        a INSERT INTO t VALUES (1), (2)
        a LOCK TABLES t WRITE, t AS x WRITE
        a SELECT * FROM t AS x FORCE INDEX (k) WHERE k = 1
        a TRUNCATE t
        a SELECT * FROM t AS x FORCE INDEX (k) WHERE k = 1
        a INSERT INTO t VALUES (1)
        a SELECT * FROM t AS x FORCE INDEX (k) WHERE k = 1
        a UNLOCK TABLES""",
    "unique keys of long columns": """
        a CREATE TABLE u (id INT PRIMARY KEY, e TEXT, UNIQUE (e)) ENGINE={e}
        a BEGIN
        a INSERT INTO u VALUES (1,'x')
        b INSERT INTO u VALUES (2,'x')
        a COMMIT
        b INSERT INTO u VALUES (2,'x')
        a INSERT INTO u VALUES (2,'y')
        a INSERT INTO u VALUES (3,'x')
        a INSERT IGNORE INTO u VALUES (3,'x'), (4,'z')
        a SELECT * FROM u ORDER BY id
        a REPLACE INTO u VALUES (5,'x')
        a SELECT * FROM u ORDER BY id
        a INSERT INTO u VALUES (6,'y') ON DUPLICATE KEY UPDATE id = 60
        a SELECT * FROM u ORDER BY id
        a UPDATE u SET e = 'x' WHERE id = 4
        a UPDATE IGNORE u SET e = 'x' WHERE id = 4
        a SELECT * FROM u ORDER BY id
        a UPDATE u SET e = 'w' WHERE id = 4
        a SELECT * FROM u ORDER BY id""",
    "a duplicate of a large value": """
        a CREATE TABLE t (id INT PRIMARY KEY, x LONGTEXT, KEY k (x(10))) ENGINE={e}
        a INSERT INTO t VALUES (1,REPEAT('x',8000000)),(2,REPEAT('x',8000000))
        a ALTER TABLE t ADD UNIQUE u (x(10))
        a DELETE FROM t WHERE id = 2
        a ALTER TABLE t ADD UNIQUE u (x(10))""",
    "rows without a key, and tables that are closed": """
        a CREATE TABLE n (a INT) ENGINE={e}
        a BEGIN
        a INSERT INTO n VALUES (1)
        b FLUSH TABLES
        a INSERT INTO n VALUES (2)
        b INSERT INTO n VALUES (3)
        a COMMIT
        b INSERT INTO n VALUES (4)
        a SELECT * FROM n ORDER BY a
        a TRUNCATE n
        a INSERT INTO n VALUES (5), (6)
        a SELECT * FROM n ORDER BY a""",
    "a savepoint whose name is used again": """
        a CREATE TABLE t (id INT PRIMARY KEY) ENGINE={e}
        a BEGIN
        a SAVEPOINT a
        a INSERT INTO t VALUES (1)
        a SAVEPOINT b
        a INSERT INTO t VALUES (2)
        a SAVEPOINT a
        a INSERT INTO t VALUES (3)
        a SAVEPOINT c
        a INSERT INTO t VALUES (4)
        a ROLLBACK TO b
        a SELECT * FROM t
        a ROLLBACK TO c
        a RELEASE SAVEPOINT b
        a INSERT INTO t VALUES (5)
        a SAVEPOINT d
        a INSERT INTO t VALUES (6)
        a SAVEPOINT d
        a INSERT INTO t VALUES (7)
        a RELEASE SAVEPOINT d
        a ROLLBACK TO d
        a COMMIT
        a SELECT * FROM t""",
    "REPLACE and the order of unique keys": """
        a CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b INT, UNIQUE ub (b)) ENGINE={e}
        a ALTER TABLE t ADD UNIQUE ua (a)
        a INSERT INTO t VALUES (1,1,1),(2,2,2)
        a REPLACE INTO t VALUES (3,1,2)
        a SELECT * FROM t""",
    "copies of many rows": """
        a CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9), n INT) ENGINE={e}
        a INSERT INTO t SELECT seq, CONCAT('v', seq), seq DIV 2 FROM seq_1_to_50001
        a ALTER TABLE t ADD INDEX k (v), ALGORITHM=COPY
        a SELECT COUNT(*), SUM(id), COUNT(DISTINCT v) FROM t
        a SELECT id FROM t FORCE INDEX (k) WHERE v = 'v50001'
        a ALTER TABLE t ADD UNIQUE u (n), ALGORITHM=COPY
        a SELECT COUNT(*), SUM(id) FROM t
        a ALTER TABLE t ADD UNIQUE u (v), ALGORITHM=COPY
        a INSERT INTO t VALUES (0, 'v7', 1)
        a CREATE TABLE s ENGINE={e} SELECT * FROM t
        a SELECT COUNT(*), SUM(id) FROM s
        a CREATE TABLE f (UNIQUE (n)) ENGINE={e} SELECT * FROM t
        a SHOW TABLES
        a BEGIN
        a INSERT INTO t VALUES (0, 'v0', 1)
        a CREATE TEMPORARY TABLE mine ENGINE={e} SELECT * FROM t
        a SELECT COUNT(*) FROM mine
        a ROLLBACK
        a SELECT COUNT(*) FROM t
        a DROP TEMPORARY TABLE IF EXISTS mine
        a CREATE TABLE p (id INT PRIMARY KEY, v INT) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 4
        a INSERT INTO p SELECT seq, seq FROM seq_1_to_30000
        a ALTER TABLE p ADD COLUMN w INT DEFAULT (v + 1), ALGORITHM=COPY
        a SELECT COUNT(*), SUM(w) FROM p
        a CREATE SEQUENCE q ENGINE={e}
        a SELECT NEXT VALUE FOR q
        a ALTER SEQUENCE q INCREMENT 5
        a SELECT NEXT VALUE FOR q""",
    "AUTO_INCREMENT = N": """
        a CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT) ENGINE={e}
        a ALTER TABLE t AUTO_INCREMENT = 10
        a INSERT INTO t (n) VALUES (1)
        a ALTER TABLE t AUTO_INCREMENT = 100, COMMENT = 'numbers', ALGORITHM=INPLACE
        a INSERT INTO t (n) VALUES (2)
        a ALTER TABLE t AUTO_INCREMENT = 5
        a INSERT INTO t (n) VALUES (3)
        a DELETE FROM t WHERE id > 10
        a ALTER TABLE t AUTO_INCREMENT = 20
        a INSERT INTO t (n) VALUES (4)
        a ALTER TABLE t AUTO_INCREMENT = 0
        a INSERT INTO t (n) VALUES (5)
        a INSERT INTO t VALUES (-9, 6)
        a FLUSH TABLES
        a INSERT INTO t (n) VALUES (7)
        a SELECT * FROM t
        a CREATE TABLE d (v INT, id SMALLINT AUTO_INCREMENT, UNIQUE KEY (id DESC)) ENGINE={e}
        a INSERT INTO d (v) SELECT seq FROM seq_1_to_20
        a ALTER TABLE d AUTO_INCREMENT = 3
        a INSERT INTO d (v) VALUES (1)
        a SELECT MAX(id) FROM d
        a ALTER TABLE d AUTO_INCREMENT = 300, ADD KEY (v)
        a INSERT INTO d (v) VALUES (1)
        a SELECT MAX(id) FROM d
        a SELECT auto_increment FROM information_schema.tables WHERE table_schema = 'same' AND table_name = 'd'
        a CREATE TABLE m (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY) ENGINE={e}
        a INSERT INTO m VALUES (18446744073709551615)
        a ALTER TABLE m AUTO_INCREMENT = 5
        a INSERT INTO m VALUES (NULL)
        a CREATE TABLE p (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 2
        a ALTER TABLE p AUTO_INCREMENT = 50
        a INSERT INTO p VALUES (NULL), (NULL)
        a SELECT * FROM p""",
    "RENAME INDEX": """
        a CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(20), UNIQUE KEY once (v), KEY text (s), KEY two (v, s)) ENGINE={e}
        a INSERT INTO t SELECT seq, seq, CONCAT('s', seq % 7) FROM seq_1_to_50
        a ALTER TABLE t RENAME INDEX once TO single, ALGORITHM=INPLACE, LOCK=NONE
        a INSERT INTO t VALUES (51, 7, 'a')
        a SELECT id FROM t FORCE INDEX (single) WHERE v = 7
        a SELECT id FROM t FORCE INDEX (once) WHERE v = 7
        a ALTER TABLE t RENAME INDEX text TO two, RENAME INDEX two TO text
        a SELECT COUNT(*) FROM t FORCE INDEX (two) WHERE s = 's3'
        a SELECT COUNT(*) FROM t FORCE INDEX (text) WHERE v = 5 AND s = 's5'
        a ALTER TABLE t RENAME INDEX nothing TO something
        a ALTER TABLE t RENAME INDEX single TO two
        a ALTER TABLE t RENAME INDEX two TO Two, COMMENT = 'letters'
        a ALTER TABLE t RENAME INDEX Two TO `to b`, RENAME INDEX text TO b, ALGORITHM=INPLACE
        a ALTER TABLE t RENAME INDEX `to b` TO Two, ALGORITHM=INPLACE
        a ALTER TABLE t RENAME INDEX b TO text, ALGORITHM=INPLACE
        a ALTER TABLE t DROP INDEX single, ADD UNIQUE INDEX again (v)
        a INSERT INTO t VALUES (51, 7, 'a')
        a ALTER TABLE t RENAME INDEX again TO more, ADD COLUMN w INT, DROP INDEX text
        a ALTER TABLE t RENAME INDEX more TO once, ADD INDEX more (w)
        a FLUSH TABLES
        a INSERT INTO t VALUES (51, 7, 'a', 1)
        a SELECT index_name, column_name FROM information_schema.statistics WHERE table_name = 't' AND table_schema = 'same' ORDER BY 1
        a CREATE TABLE p (id INT PRIMARY KEY, v INT, KEY k (v)) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 3
        a INSERT INTO p SELECT seq, seq FROM seq_1_to_20
        a ALTER TABLE p RENAME INDEX k TO l
        a SELECT id FROM p FORCE INDEX (l) WHERE v = 5
        a ALTER TABLE p RENAME INDEX l TO k, ADD PARTITION PARTITIONS 1
        a CHECK TABLE t, p""",
    "a queue behind an index": """
        a CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, st VARCHAR(10), KEY (st)) ENGINE={e}
        a INSERT INTO t (st) SELECT IF(seq <= 2000, 'done', 'new') FROM seq_1_to_2010
        a ANALYZE TABLE t
        a SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
        b SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
        a BEGIN
        a SELECT id FROM t WHERE st = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
        b BEGIN
        b SELECT id FROM t WHERE st = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
        b UPDATE t SET st = 'done' WHERE id = 2002
        b UPDATE t SET st = 'kept' WHERE id = 2010
        a DELETE FROM t WHERE st = 'new' ORDER BY id LIMIT 1
        a COMMIT
        b SELECT id FROM t WHERE st = 'new' ORDER BY id DESC LIMIT 2 FOR UPDATE SKIP LOCKED
        a SELECT id FROM t WHERE st = 'new' ORDER BY id DESC LIMIT 2 FOR UPDATE SKIP LOCKED
        b COMMIT
        a SELECT st, COUNT(*), MAX(id), MIN(id) FROM t GROUP BY st""",
    "tables that are exchanged for partitions, with keys that end otherwise": """
        a CREATE TABLE p (a INT PRIMARY KEY, b INT, c INT, KEY (c)) ENGINE={e} PARTITION BY HASH (a) PARTITIONS 2
        a CREATE TABLE e (a INT PRIMARY KEY, b INT, c INT, KEY (c)) ENGINE={e}
        a INSERT INTO p SELECT seq, seq, seq DIV 100 FROM seq_1_to_400
        a INSERT INTO e SELECT 1000 - 2 * seq, seq, seq DIV 100 FROM seq_1_to_300
        a ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE e
        a SELECT a FROM p FORCE INDEX (c) WHERE c = 1 AND a > 300 ORDER BY a LIMIT 5
        a SELECT a FROM e FORCE INDEX (c) WHERE c = 1 AND a > 150 ORDER BY a LIMIT 5
        a ALTER TABLE e ADD COLUMN z INT, ALGORITHM=INSTANT
        a ALTER TABLE e ADD KEY d (c, b), DROP KEY c
        a SELECT a FROM e FORCE INDEX (d) WHERE c = 1 ORDER BY b, a LIMIT 3
        a TRUNCATE TABLE e
        a INSERT INTO e (a, b, c) SELECT 1000 - 2 * seq, seq DIV 50, seq DIV 100 FROM seq_1_to_300
        a SELECT a FROM e FORCE INDEX (d) WHERE c = 1 AND b = 3 AND a > 650 ORDER BY a LIMIT 3""",
    "distinct values before an equality": """
        a CREATE TABLE t (id INT PRIMARY KEY, u INT NOT NULL, c INT NOT NULL, KEY uc (u, c)) ENGINE={e}
        a INSERT INTO t SELECT seq, seq, seq % 10 FROM seq_1_to_3000
        a ANALYZE TABLE t
        a SELECT COUNT(DISTINCT u), SUM(DISTINCT u) FROM t WHERE c = 3
        a SELECT COUNT(DISTINCT u) FROM t WHERE c = 1
        a CREATE TABLE g (id INT PRIMARY KEY, g INT NOT NULL, u INT NOT NULL, c INT NOT NULL, KEY guc (g, u, c)) ENGINE={e}
        a INSERT INTO g SELECT seq, seq DIV 300, seq, seq % 7 FROM seq_1_to_3000
        a ANALYZE TABLE g
        a SELECT g, COUNT(DISTINCT u) FROM g WHERE c = 3 GROUP BY g""",
    "two indexes at once": """
        a CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, n INT DEFAULT 0, KEY (a), KEY (b)) ENGINE={e}
        a INSERT INTO t (id, a, b) SELECT 4000 - seq, seq % 20, seq % 21 FROM seq_1_to_3000
        a INSERT INTO t (id, a, b) SELECT 8000 - seq, seq % 33, seq % 13 FROM seq_1_to_3000
        a ANALYZE TABLE t
        a SELECT COUNT(*), SUM(id) FROM t WHERE a = 1 AND b = 1
        a SELECT COUNT(*), SUM(id) FROM t WHERE a = 1 OR b = 1
        a SELECT COUNT(*), SUM(id) FROM t WHERE a = 1 AND b = 1 AND id > 2000
        a SELECT COUNT(*), SUM(id) FROM t WHERE a = 3 OR b BETWEEN 4 AND 5
        a UPDATE t SET n = n + 1 WHERE a = 1 OR b = 1
        a DELETE FROM t WHERE a = 2 OR b = 2
        a SELECT COUNT(*), SUM(n), MAX(n), SUM(id) FROM t""",
    "HANDLER behind an exact key": """
        a CREATE TABLE h (k INT, KEY k (k)) ENGINE={e}
        a INSERT INTO h VALUES (4),(5),(5),(6)
        a BEGIN
        a HANDLER h OPEN
        a HANDLER h READ k = (5)
        a HANDLER h READ k NEXT
        a HANDLER h READ k NEXT
        a HANDLER h READ k NEXT
        a HANDLER h READ k PREV
        a HANDLER h READ k = (5)
        a HANDLER h READ k PREV
        a HANDLER h CLOSE
        a COMMIT""",
    "HANDLER beside a key that is not there": """
        a CREATE TABLE h (k INT, n INT, KEY k (k, n)) ENGINE={e}
        a INSERT INTO h VALUES (4,1),(5,1),(5,2),(7,1)
        a HANDLER h OPEN
        a HANDLER h READ k = (9)
        a HANDLER h READ k PREV
        a HANDLER h READ k PREV
        a HANDLER h READ k = (0)
        a HANDLER h READ k NEXT
        a HANDLER h READ k NEXT
        a HANDLER h READ k = (6)
        a HANDLER h READ k NEXT
        a HANDLER h READ k = (6)
        a HANDLER h READ k PREV
        a HANDLER h READ k = (5,7)
        a HANDLER h READ k PREV
        a HANDLER h READ k = (0)
        a HANDLER h READ k PREV
        a HANDLER h READ k = (9)
        a HANDLER h READ k NEXT
        a HANDLER h READ k PREV
        a HANDLER h READ k = (6)
        a BEGIN
        a HANDLER h READ k NEXT
        a HANDLER h READ k = (6)
        a COMMIT
        a HANDLER h READ k PREV
        a HANDLER h CLOSE""",
    "a duplicate in another partition": """
        a CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 2
        a INSERT INTO t VALUES (1,1), (2,2)
        a UPDATE t SET id = 2 WHERE id = 1
        a SHOW WARNINGS
        a CREATE TABLE two (id INT, u INT, v INT, PRIMARY KEY (id), UNIQUE (u, id)) ENGINE={e} PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (10), PARTITION q VALUES LESS THAN MAXVALUE)
        a INSERT INTO two VALUES (1,1,1), (2,2,2), (11,1,1)
        a INSERT INTO two VALUES (2,2,2)
        a UPDATE two SET id = 11 WHERE id = 1
        a SHOW WARNINGS
        a UPDATE IGNORE two SET id = id + 10 WHERE id < 10
        a SHOW WARNINGS
        a SELECT * FROM two ORDER BY id
        a INSERT INTO two VALUES (12,2,3) ON DUPLICATE KEY UPDATE v = v + 10
        a UPDATE two SET id = 3 WHERE id = 12
        a SELECT * FROM two ORDER BY id""",
    "AUTO_INCREMENT behind a large number of an update": """
        a CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE={e}
        a INSERT INTO t (n) VALUES (1), (2)
        a UPDATE t SET id = 18446744073709550000 WHERE n = 1
        a INSERT INTO t (n) VALUES (3)
        a SELECT * FROM t ORDER BY id
        a CREATE TABLE s (id INT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE={e}
        a INSERT INTO s (n) VALUES (1), (2)
        a UPDATE s SET id = -5 WHERE n = 1
        a UPDATE s SET id = 50 WHERE n = 2
        a INSERT INTO s (n) VALUES (3)
        a SELECT * FROM s ORDER BY id""",
    "AUTO_INCREMENT numbers that are given out, and others": """
        a CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE={e}
        a INSERT INTO t (n) VALUES (1), (2)
        a INSERT INTO t VALUES (7, 3)
        a INSERT INTO t (n) VALUES (4)
        a SET insert_id = 20
        a INSERT INTO t (n) VALUES (5)
        a INSERT INTO t (n) VALUES (6)
        a REPLACE INTO t VALUES (21, 7)
        a INSERT INTO t (n) VALUES (8)
        a SET auto_increment_increment = 10, auto_increment_offset = 3
        a INSERT INTO t (n) VALUES (9), (10)
        a INSERT INTO t VALUES (40, 11)
        a INSERT INTO t (n) VALUES (12)
        a SET auto_increment_increment = 1, auto_increment_offset = 1
        a SELECT * FROM t ORDER BY id
        a LOCK TABLES t WRITE
        a INSERT INTO t (n) VALUES (13)
        a TRUNCATE t
        a INSERT INTO t VALUES (44, 14)
        a INSERT INTO t (n) VALUES (15)
        a UNLOCK TABLES
        a SELECT * FROM t ORDER BY id""",
    "statements that are transactions, and fail": """
        a CREATE TABLE t (id INT PRIMARY KEY, n INT, UNIQUE u (n)) ENGINE={e}
        a INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)
        a INSERT INTO t VALUES (4, 4), (5, 5), (6, 1)
        a INSERT IGNORE INTO t VALUES (4, 4), (5, 1), (2, 7), (6, 6)
        a UPDATE t SET n = n + 1 ORDER BY id
        a UPDATE IGNORE t SET n = n + 1 ORDER BY id
        b SELECT * FROM t ORDER BY id
        a DROP FUNCTION IF EXISTS fails
        a CREATE FUNCTION fails(k INT) RETURNS INT BEGIN INSERT INTO t VALUES (k, k), (1, k + 1); RETURN 0; END
        a DROP FUNCTION IF EXISTS goes_back
        a CREATE FUNCTION goes_back(k INT) RETURNS INT BEGIN INSERT INTO t VALUES (k, k); SAVEPOINT s; INSERT INTO t VALUES (k + 1, k + 1); ROLLBACK TO s; RETURN 0; END
        a SELECT fails(20)
        a SELECT goes_back(30)
        a SET autocommit = fails(40)
        a SET @@autocommit = 0, @before = fails(50)
        a SET autocommit = 1
        b SELECT * FROM t ORDER BY id
        a LOCK TABLES t WRITE
        a INSERT INTO t VALUES (60, 60), (1, 61)
        a INSERT INTO t VALUES (61, 61)
        a UPDATE t SET n = 1 WHERE id > 1
        a UNLOCK TABLES
        b SELECT * FROM t ORDER BY id
        a SET autocommit = goes_back(70)
        a INSERT INTO t VALUES (80, 80), (1, 81)
        a INSERT INTO t VALUES (90, 90)
        a ROLLBACK
        a SET autocommit = 1
        b SELECT * FROM t ORDER BY id""",
    "REPLACE of the same row": """
        a CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9)) ENGINE={e}
        a INSERT INTO t VALUES (1,'a'), (2,'b')
        a REPLACE INTO t VALUES (1,'a')
        a REPLACE INTO t VALUES (1,'A')
        a REPLACE INTO t VALUES (1,'A'), (2,'c'), (3,'d')
        a REPLACE INTO t SELECT id, v FROM t
        a SELECT * FROM t ORDER BY id
        a CREATE TABLE x (id VARCHAR(9) PRIMARY KEY, v INT, KEY (v)) ENGINE={e}
        a INSERT INTO x VALUES ('a',1)
        a REPLACE INTO x VALUES ('A',1)
        a REPLACE INTO x VALUES ('A',2)
        a SELECT * FROM x FORCE INDEX (v) WHERE v > 0
        a CREATE TABLE u (v INT UNIQUE, n INT AUTO_INCREMENT, KEY (n)) ENGINE={e}
        a INSERT INTO u (v) VALUES (1), (NULL), (2)
        a REPLACE INTO u VALUES (1,1), (NULL,2), (2,3)
        a REPLACE INTO u (v) VALUES (1)
        a REPLACE INTO u VALUES (2,70)
        a INSERT INTO u (v) VALUES (3)
        a SELECT * FROM u ORDER BY v, n
        a CREATE TABLE two (id INT PRIMARY KEY, u INT UNIQUE, n INT) ENGINE={e}
        a INSERT INTO two VALUES (1,1,1), (2,2,2)
        a REPLACE INTO two VALUES (1,1,1)
        a REPLACE INTO two VALUES (1,2,3)
        a SELECT * FROM two
        a REPLACE INTO two VALUES (7,2,3)
        a SELECT * FROM two
        a ALTER TABLE t ADD UNIQUE (v)
        a REPLACE INTO t VALUES (4,'A')
        a REPLACE INTO t VALUES (2,'d')
        a ALTER TABLE t DROP PRIMARY KEY
        a REPLACE INTO t VALUES (2,'d')
        a REPLACE INTO t VALUES (5,'d')
        a SELECT * FROM t ORDER BY id
        a CREATE TABLE p (id INT PRIMARY KEY, v INT) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 2
        a INSERT INTO p VALUES (1,1), (2,2)
        a REPLACE INTO p VALUES (1,1), (2,3)
        a SELECT * FROM p ORDER BY id
        a CREATE TRIGGER g AFTER DELETE ON p FOR EACH ROW SET @gone = CONCAT(IFNULL(@gone, ''), OLD.id)
        a REPLACE INTO p VALUES (1,1), (2,4)
        a SELECT @gone
        a CREATE TABLE l (id INT PRIMARY KEY, b TEXT, UNIQUE (b)) ENGINE={e}
        a INSERT INTO l VALUES (1,'one'), (2,'two')
        a REPLACE INTO l VALUES (1,'one')
        a REPLACE INTO l VALUES (3,'two')
        a SELECT * FROM l ORDER BY id""",
    "rows that a join has locked and passes over later": """
        a CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE={e}
        a INSERT INTO t VALUES (1,1),(2,2),(3,3)
        a BEGIN
        a SELECT a.id, b.id FROM t a STRAIGHT_JOIN t b ON b.n > a.n WHERE a.id = 1 FOR UPDATE
        b SET SESSION innodb_lock_wait_timeout = 1
        b UPDATE t SET n = 9 WHERE id = 1
        a COMMIT""",
    "a key whose row is being deleted": """
        a CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE={e}
        a INSERT INTO t VALUES (1,1),(2,2),(3,3)
        a BEGIN
        a DELETE FROM t WHERE id = 1
        b& INSERT INTO t VALUES (1,5)
        a COMMIT
        a BEGIN
        a DELETE FROM t WHERE id = 2
        b& INSERT INTO t VALUES (2,5)
        a ROLLBACK
        a BEGIN
        a UPDATE t SET n = 9 WHERE id = 3
        b& INSERT INTO t VALUES (3,5)
        a COMMIT
        b SELECT * FROM t ORDER BY id""",
    "rows that come in the way after the statement has begun": """
        a CREATE TABLE t (id INT PRIMARY KEY) ENGINE={e}
        a INSERT INTO t VALUES (1), (2), (3)
        a CREATE TABLE o (id INT PRIMARY KEY, u INT UNIQUE, n INT) ENGINE={e}
        a SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
        a& INSERT INTO o SELECT id, id, SLEEP(0.4) FROM t ON DUPLICATE KEY UPDATE n = n + 10
        b INSERT INTO o VALUES (3, 7, 1), (9, 2, 1)
        a SELECT * FROM o ORDER BY id
        a TRUNCATE TABLE o
        a& REPLACE INTO o SELECT id, id, SLEEP(0.4) FROM t
        b INSERT INTO o VALUES (3, 7, 1), (9, 2, 1)
        a SELECT * FROM o ORDER BY id
        a DELETE FROM o
        a INSERT INTO o VALUES (8, 3, 1), (2, 9, 1)
        a& INSERT INTO o SELECT id, id, SLEEP(0.4) FROM t ON DUPLICATE KEY UPDATE n = n + 10
        b DELETE FROM o WHERE id IN (8, 2)
        a SELECT * FROM o ORDER BY id""",
    "CREATE TABLE ... SELECT that looks into its own table": """
        a CREATE TABLE src (id INT PRIMARY KEY, n INT, b TEXT) ENGINE={e}
        a INSERT INTO src SELECT seq, seq, CONCAT('b', seq) FROM seq_1_to_9
        a SET autocommit = 0
        a CREATE TABLE c (id INT PRIMARY KEY) ENGINE={e} REPLACE SELECT id DIV 2 AS id, n FROM src
        a SELECT * FROM c
        a CREATE TABLE d (UNIQUE (b)) ENGINE={e} SELECT id, b FROM src
        a SELECT COUNT(*) FROM d
        a CREATE TABLE f (UNIQUE (b)) ENGINE={e} SELECT id, 'x' AS b FROM src
        a CREATE TABLE g (b TEXT, UNIQUE (b)) ENGINE={e} REPLACE SELECT id, LEFT(b, 1) AS b FROM src
        a SELECT * FROM g
        a CREATE TABLE h (id INT PRIMARY KEY) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 2 REPLACE SELECT id DIV 2 AS id, n FROM src
        a SELECT * FROM h ORDER BY id
        a CREATE TABLE i (b TEXT, UNIQUE (b)) ENGINE={e} IGNORE SELECT id, LEFT(b, 1) AS b FROM src
        a SELECT * FROM i
        a CREATE TEMPORARY TABLE j (id INT PRIMARY KEY) ENGINE={e} REPLACE SELECT id DIV 2 AS id, n FROM src
        a SELECT * FROM j
        a COMMIT""",
    "copies at SERIALIZABLE": """
        a SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE
        a CREATE TABLE p (id INT PRIMARY KEY, n INT) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 2
        a INSERT INTO p SELECT seq, seq FROM seq_1_to_20
        a ALTER TABLE p ADD PARTITION PARTITIONS 1
        a ALTER TABLE p COALESCE PARTITION 1
        a ALTER TABLE p FORCE
        a ALTER TABLE p ADD COLUMN w INT DEFAULT (n + 1), ALGORITHM=COPY
        a SELECT COUNT(*), SUM(w) FROM p
        a CREATE TABLE r (id INT PRIMARY KEY) ENGINE={e} PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (9), PARTITION b VALUES LESS THAN (99))
        a INSERT INTO r SELECT seq FROM seq_1_to_20
        a ALTER TABLE r REORGANIZE PARTITION a, b INTO (PARTITION c VALUES LESS THAN (99))
        a SELECT COUNT(*), SUM(id) FROM r
        a CREATE TABLE q (PRIMARY KEY (id)) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 2 SELECT * FROM p
        a SELECT COUNT(*), SUM(w) FROM q
        a CREATE TEMPORARY TABLE mine (id INT PRIMARY KEY) ENGINE={e}
        a INSERT INTO mine VALUES (1), (2)
        a ALTER TABLE mine ADD COLUMN n INT DEFAULT 7
        a SELECT * FROM mine
        a CREATE TEMPORARY TABLE other (PRIMARY KEY (id)) ENGINE={e} SELECT * FROM p
        a SELECT COUNT(*) FROM other
        a ALTER TABLE p REBUILD PARTITION p0
        a CREATE INDEX w ON p (w), ALGORITHM=COPY
        a SELECT COUNT(*), SUM(w) FROM p FORCE INDEX (w)
        a CREATE TABLE c (id INT PRIMARY KEY) ENGINE={e} REPLACE SELECT id DIV 2 AS id, n FROM p
        a CREATE TABLE d (b TEXT, UNIQUE (b)) ENGINE={e} SELECT id, id AS b FROM p
        a CREATE TABLE f (b TEXT, UNIQUE (b)) ENGINE={e} SELECT id, id DIV 2 AS b FROM p
        a DROP FUNCTION IF EXISTS most
        a CREATE FUNCTION most() RETURNS INT RETURN (SELECT MAX(n) FROM p)
        a CREATE SEQUENCE s ENGINE={e}
        a CREATE TABLE h (id INT PRIMARY KEY) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 2 SELECT id, most() AS m, NEXT VALUE FOR s AS o FROM p
        a SELECT COUNT(*), SUM(m), MAX(o) FROM h
        a SET autocommit = 0
        a SELECT COUNT(*) FROM c
        a ALTER TABLE p FORCE, ALGORITHM=COPY
        a CREATE TABLE g (PRIMARY KEY (id)) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 2 SELECT * FROM p
        a SELECT COUNT(*), SUM(w) FROM g
        a COMMIT
        a SHOW TABLES""",
    "keys of texts that begin alike": """
        a CREATE TABLE g (v VARCHAR(300) COLLATE utf8mb4_general_ci, UNIQUE (v)) CHARACTER SET utf8mb4 ENGINE={e}
        a INSERT INTO g VALUES ('customer0001'), ('customer0002'), (CONCAT(REPEAT('x', 299), 'a')), (CONCAT(REPEAT('x', 299), 'b'))
        a SELECT v FROM g FORCE INDEX (v) WHERE v > 'customer0001' ORDER BY v
        a CREATE TABLE t (v VARCHAR(300) COLLATE utf8mb3_general_ci, UNIQUE (v)) CHARACTER SET utf8mb3 ENGINE={e}
        a INSERT INTO t VALUES ('customer 000001'), ('customer 000002'), (CONCAT(REPEAT('x', 299), 'a')), (CONCAT(REPEAT('x', 299), 'b'))
        a SELECT v FROM t FORCE INDEX (v) WHERE v > 'customer 000001' ORDER BY v
        a CREATE TABLE u (v VARCHAR(100) COLLATE utf8mb4_unicode_ci, UNIQUE (v)) CHARACTER SET utf8mb4 ENGINE={e}
        a INSERT INTO u VALUES (CONCAT(REPEAT('ﷺ', 49), 'a')), (CONCAT(REPEAT('ﷺ', 49), 'b'))
        a SELECT RIGHT(v, 1) FROM u FORCE INDEX (v) ORDER BY v""",
    # The lengths are the longest that their keys have room for.
    "keys that are searched and longer than any that is there": "".join([
        longer_than_stored("t", "VARCHAR(2000) CHARACTER SET latin1", "v", 1360),
        longer_than_stored("m", "VARCHAR(2000) CHARACTER SET latin1 COLLATE latin1_swedish_nopad_ci", "v", 1530),
        longer_than_stored("u", "VARCHAR(760) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "v, n", 676),
        longer_than_stored("d", "VARCHAR(2000) CHARACTER SET latin1", "v DESC", 1352),
        longer_than_stored("b", "BLOB", "v(2000)", 1530)]),
    "periods that must not overlap, of rows that are there": """
        a CREATE TABLE t (id INT, s DATE, e DATE, PERIOD FOR p (s, e)) ENGINE={e}
        a INSERT INTO t VALUES (1, '2003-01-01', '2003-03-01'), (1, '2003-02-01', '2003-04-01')
        a ALTER TABLE t ADD UNIQUE (id, p WITHOUT OVERLAPS)
        a ALTER TABLE t ADD PRIMARY KEY (id, p WITHOUT OVERLAPS)
        a UPDATE t SET s = '2003-03-01' WHERE e = '2003-04-01'
        a ALTER TABLE t ADD UNIQUE u (id, p WITHOUT OVERLAPS)
        a INSERT INTO t VALUES (1, '2003-02-01', '2003-04-01')
        a ALTER TABLE t DROP INDEX u
        a INSERT INTO t VALUES (1, '2003-02-01', '2003-04-01')
        a SELECT COUNT(*) FROM t""",
    "rows that are replaced and come and go meanwhile": """
        a CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE, n INT) ENGINE={e}
        a INSERT INTO t VALUES (1,1,1)
        a BEGIN
        a DELETE FROM t WHERE id = 1
        a INSERT INTO t VALUES (2,2,2)
        b& REPLACE INTO t VALUES (2,3,3)
        a COMMIT
        b SELECT * FROM t ORDER BY id
        a BEGIN
        a UPDATE t SET u = 7 WHERE id = 2
        b& INSERT INTO t VALUES (9,7,1) ON DUPLICATE KEY UPDATE n = n + 10
        a COMMIT
        b SELECT * FROM t ORDER BY id
        a BEGIN
        a DELETE FROM t WHERE id = 2
        b& REPLACE INTO t VALUES (5,7,5)
        a COMMIT
        b SELECT * FROM t ORDER BY id""",
    "what a statement writes is made of the newest rows of all its tables": """
        a CREATE TABLE item (id INT PRIMARY KEY, price INT) ENGINE={e}
        a CREATE TABLE acc (id INT PRIMARY KEY, total INT) ENGINE={e}
        a INSERT INTO item VALUES (1,10), (2,7)
        a INSERT INTO acc VALUES (1,10), (2,7)
        a BEGIN
        a UPDATE item SET price = 20 WHERE id = 1
        a UPDATE acc SET total = 20 WHERE id = 1
        b& UPDATE acc STRAIGHT_JOIN item ON item.id = acc.id SET acc.total = item.price
        a COMMIT
        b SELECT * FROM acc ORDER BY id
        a BEGIN
        a UPDATE item SET price = 30 WHERE id = 1
        b& UPDATE acc SET total = (SELECT price FROM item WHERE item.id = acc.id)
        a COMMIT
        b SELECT * FROM acc ORDER BY id
        a BEGIN
        a UPDATE item SET price = 31 WHERE id = 1
        b& DELETE FROM acc WHERE total <> (SELECT price FROM item WHERE item.id = acc.id)
        a COMMIT
        b SELECT * FROM acc ORDER BY id""",
    "rows that an older serializable transaction moves": """
        a CREATE TABLE t (id INT PRIMARY KEY, k INT, v INT, KEY k (k)) ENGINE={e}
        a INSERT INTO t VALUES (1,10,0), (2,20,0)
        a SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE
        a BEGIN
        a UPDATE t SET k = 5 WHERE id = 2
        b& UPDATE t FORCE INDEX (k) SET v = v + 1 WHERE k BETWEEN 1 AND 100
        a COMMIT
        b SELECT * FROM t ORDER BY id""",
    "a key that another transaction has taken since the snapshot": """
        a CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE, n INT) ENGINE={e}
        a INSERT INTO t VALUES (1,1,0)
        a BEGIN
        a SELECT COUNT(*) FROM t
        a UPDATE t SET n = 1 WHERE id = 1
        b INSERT INTO t VALUES (9,9,0)
        a INSERT INTO t VALUES (9,10,1)
        a INSERT INTO t VALUES (10,9,1)
        a INSERT IGNORE INTO t VALUES (9,11,2)
        a SELECT * FROM t ORDER BY id
        a COMMIT
        a SELECT * FROM t ORDER BY id""",
    "a row that moves to a key that another transaction has taken since the snapshot": """
        a CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE, n INT) ENGINE={e}
        a INSERT INTO t VALUES (1,1,0)
        a BEGIN
        a SELECT COUNT(*) FROM t
        a INSERT INTO t VALUES (2,2,0)
        b INSERT INTO t VALUES (9,9,0)
        a UPDATE t SET id = 9 WHERE id = 1
        a UPDATE IGNORE t SET id = 9 WHERE id = 1
        a UPDATE t SET u = 9 WHERE id = 1
        a INSERT INTO t VALUES (1,7,0) ON DUPLICATE KEY UPDATE id = 9
        a UPDATE t SET id = 8 WHERE id = 1
        a COMMIT
        a SELECT * FROM t ORDER BY id""",
    "a function that reads two indexes, and may write": """
        a CREATE TABLE users (id INT PRIMARY KEY, email INT NOT NULL, n INT, UNIQUE (email)) ENGINE={e}
        a INSERT INTO users SELECT seq, seq, 0 FROM seq_1_to_5000
        a ANALYZE TABLE users
        a CREATE FUNCTION seen(x INT) RETURNS INT BEGIN DECLARE v INT; SELECT SUM(n) INTO v FROM users WHERE id = x OR email = x + 1; IF v IS NULL THEN UPDATE users SET n = 1 WHERE id = x; END IF; RETURN v; END
        b BEGIN
        b UPDATE users SET n = 5 WHERE id = 7
        a& SELECT seen(7)
        b COMMIT
        a BEGIN
        a SELECT n FROM users WHERE id = 7
        b UPDATE users SET n = 6 WHERE id = 7
        a SELECT seen(7)
        a COMMIT
        a SELECT seen(7)""",
    "numbers that a trigger gives": """
        a CREATE TABLE counter (id INT PRIMARY KEY, n INT) ENGINE={e}
        a INSERT INTO counter VALUES (1,5)
        a CREATE TABLE inv (id INT PRIMARY KEY, no INT) ENGINE={e}
        a CREATE TRIGGER tr BEFORE INSERT ON inv FOR EACH ROW BEGIN SET NEW.no = (SELECT n FROM counter WHERE id = 1); UPDATE counter SET n = n + 1 WHERE id = 1; END
        a BEGIN
        a INSERT INTO inv (id) VALUES (1)
        b& INSERT INTO inv (id) VALUES (2)
        a COMMIT
        b SELECT * FROM inv ORDER BY id
        b SELECT * FROM counter""",
    "ANALYZE beside a long query": """
        a CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE={e}
        a INSERT INTO t VALUES (1,1), (2,2)
        a& SELECT SLEEP(4) FROM t LIMIT 1
        b ANALYZE TABLE t
        b SELECT * FROM t WHERE id = 1
        b UPDATE t SET n = 3 WHERE id = 1""",
    "a serializable writer holds up no consistent read": """
        a CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE={e}
        a INSERT INTO t VALUES (1,0), (2,0)
        a SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE
        a BEGIN
        a UPDATE t SET n = 1 WHERE id = 1
        b BEGIN
        b SELECT * FROM t ORDER BY id
        b UPDATE t SET n = 5 WHERE id = 2
        a COMMIT
        b SELECT * FROM t ORDER BY id
        b COMMIT
        b SELECT * FROM t ORDER BY id""",
    "rows that move ahead of a statement that waits": """
        a CREATE TABLE t (id INT PRIMARY KEY, k INT, v INT, KEY k (k)) ENGINE={e}
        a INSERT INTO t VALUES (1,10,0), (2,20,0), (3,90,0), (4,30,0)
        a BEGIN
        a UPDATE t SET v = 5 WHERE id = 1
        b& UPDATE t FORCE INDEX (k) SET v = v + 1 WHERE k BETWEEN 1 AND 100
        a UPDATE t SET k = 50 WHERE id = 2
        a UPDATE t SET id = 9 WHERE id = 4
        a COMMIT
        b SELECT * FROM t ORDER BY id
        b SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
        a BEGIN
        a UPDATE t SET v = 5 WHERE id = 3
        b& SELECT id FROM t FORCE INDEX (k) WHERE k BETWEEN 1 AND 100 ORDER BY k DESC FOR UPDATE
        a UPDATE t SET k = 5 WHERE id = 2
        a UPDATE t SET k = 20 WHERE id = 9
        a COMMIT
        b SELECT * FROM t ORDER BY id""",
}


def run(connection, statement):
    """The rows or the number of changed ones, or the number of the error."""
    with connection.cursor() as cursor:
        try:
            cursor.execute(statement)
            # ALTER TABLE may copy rows with one engine and not with the other.
            done = "done" if statement.startswith("ALTER") else cursor.rowcount
            return list(cursor.fetchall()) if cursor.description else done
        except pymysql.err.MySQLError as error:
            return f"error {error.args[0]}"


def answers(engine, scenario):
    sessions = {}
    for name in "ab":
        sessions[name] = pymysql.connect(unix_socket=SOCKET, user="root", autocommit=True)
        run(sessions[name], "SET SESSION lock_wait_timeout = 2, pantile_lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")
    for statement in ("DROP DATABASE IF EXISTS same", "CREATE DATABASE same"):
        run(sessions["a"], statement)
    for session in sessions.values():
        run(session, "USE same")
    found = []
    waiting = {}

    def await_answer(who):
        if who in waiting:
            told, thread, answer = waiting.pop(who)
            thread.join()
            found.append((told, answer[0]))
            run(sessions[who], "SET SESSION pantile_lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")

    for line in scenario.strip().splitlines():
        who, statement = line.strip().split(" ", 1)
        statement = statement.replace("{e}", engine)
        # A session has one statement at a time.
        await_answer(who[0])
        # It waits for the other session, and has its answer before its own next statement.
        if who.endswith("&"):
            answer = []
            one = (line.strip(), sessions[who[0]], statement)
            run(one[1], "SET SESSION pantile_lock_wait_timeout = 600, innodb_lock_wait_timeout = 600")
            thread = threading.Thread(target=lambda one=one, answer=answer: answer.append(run(one[1], one[2])))
            thread.start()
            time.sleep(0.3)
            waiting[who[0]] = (line.strip(), thread, answer)
            continue
        found.append((line.strip(), run(sessions[who], statement)))
    for who in sessions:
        await_answer(who)
    run(sessions["a"], "ROLLBACK")
    run(sessions["a"], "DROP DATABASE same")
    for session in sessions.values():
        session.close()
    return found


def main():
    differ = 0
    for name, scenario in SCENARIOS.items():
        mine, theirs = answers("Pantile", scenario), answers("InnoDB", scenario)
        wrong = [(one, other[1]) for one, other in zip(mine, theirs) if one != other]
        print(f"{name}: {'differs' if wrong else 'the same'}", flush=True)
        for (statement, found), expected in wrong:
            print(f"    {statement}\n        {str(found)[:300]}\n        InnoDB: {str(expected)[:300]}")
        differ += bool(wrong)
    sys.exit(f"{differ} of {len(SCENARIOS)} scenarios differ" if differ else 0)


main()
