"""The same random tables, rows and statements with ENGINE=Pantile and ENGINE=InnoDB: the answers must be the same.

First the collations of the server: keys over CHAR, VARCHAR and TEXT, whole, by prefix and descending, lead to the same
rows in the same order, and unique keys refuse the same rows. Then tables of random columns and keys under random statements.

usage: differential.py SOCKET TABLES SEED
"""

import random
import sys

import pymysql

ENGINES = ["Pantile", "InnoDB"]
WORDS = ["a", "A", "á", "b", "B", "ß", "ss", "z", "Ž", "ä", "æ", "ch", "cz", "ll", " ", "  ", "\t", "0", "9", "-", "_", "",
         "ı", "i", "İ", "ñ", "Ω", "ω", "д", "Я", "日", "本", "ア", "ｱ", "😀", "e\u0301", "\u00ad", "\x01", "'", "%"]


def text(rand, most):
    return "".join(rand.choice(WORDS) for _ in range(rand.randint(0, 4)))[:most]


def run(cursor, statement, values=()):
    """The answer, or the number of the error."""
    try:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else cursor.rowcount
    except pymysql.err.MySQLError as error:
        # What is the engine's own is worth reading.
        return ("error", *error.args) if error.args[0] == 1296 else ("error", error.args[0])


# Of the collations that each Unicode character set has, these and some others are tried: there are more than a thousand.
ALWAYS = {f"utf8mb4_uca1400{pads}_{kind}" for pads in ["", "_nopad"] for kind in ["ai_ci", "ai_cs", "as_ci", "as_cs"]}
OTHERS = 40


def chosen_collations(cursor, rand):
    cursor.execute("SELECT a.FULL_COLLATION_NAME, a.CHARACTER_SET_NAME, c.CHARACTER_SET_NAME IS NULL "
                   "FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY a "
                   "JOIN information_schema.COLLATIONS c USING (COLLATION_NAME) ORDER BY 1")
    found = cursor.fetchall()
    shared = [name for name, _, is_shared in found if is_shared]
    assert ALWAYS <= set(shared), ALWAYS - set(shared)
    some = ALWAYS | set(rand.sample(shared, OTHERS))
    return [(name, charset) for name, charset, is_shared in found if not is_shared or name in some]


def unique(cursor, rand, collation, charset):
    """Keys that refuse other rows, if there are any."""
    # Some differ only behind what they have in common.
    common = [text(rand, 8) * 7 for _ in range(2)] + [""] * 6
    rows = [(number, rand.choice(common) + text(rand, 8) * rand.choice([1, 1, 1, 8])) for number in range(60)]
    lists = []
    for engine in ENGINES:
        cursor.execute(f"DROP TABLE IF EXISTS u_{engine}")
        cursor.execute(f"""CREATE TABLE u_{engine} (id INT PRIMARY KEY, v VARCHAR(120), UNIQUE v (v))
            ENGINE={engine} CHARACTER SET {charset} COLLATE {collation}""")
        cursor.executemany(f"INSERT IGNORE INTO u_{engine} VALUES (%s, %s)", rows)
        cursor.execute(f"SELECT id FROM u_{engine} ORDER BY id")
        lists.append([number for number, in cursor.fetchall()])
    ours, theirs = lists
    return None if ours == theirs else f"unique: {set(ours) ^ set(theirs)} of {rows}"


def collations(connection, rand):
    cursor = connection.cursor()
    all_collations = chosen_collations(cursor, rand)
    compared, wrong = 0, {}
    for collation, charset in all_collations:
        for engine in ENGINES:
            cursor.execute(f"DROP TABLE IF EXISTS c_{engine}")
            answer = run(cursor, f"""CREATE TABLE c_{engine} (id INT PRIMARY KEY, v VARCHAR(40), c CHAR(8), t TEXT,
                KEY v (v), KEY c (c), KEY t (t(6)), KEY vd (v DESC), KEY p (v(2), c))
                ENGINE={engine} CHARACTER SET {charset} COLLATE {collation}""")
            assert answer == 0, f"{collation}, {engine}: {answer}"
        rows = []
        common = ["", "", text(rand, 8) * 4]
        for number in range(80):
            values = [None if rand.random() < 0.05 else rand.choice(common[:size]) + text(rand, 8) for size in (3, 1, 3)]
            rows.append((number, *values))
        for engine in ENGINES:
            cursor.execute("SET sql_mode = ''")
            cursor.executemany(f"INSERT INTO c_{engine} VALUES (%s, %s, %s, %s)", rows)
        for column, index, direction in [("v", "v", ""), ("c", "c", ""), ("v", "vd", "DESC"), ("v", "vd", ""), ("v", "v", "DESC")]:
            lists = []
            for engine in ENGINES:
                cursor.execute(f"SELECT HEX({column}) FROM c_{engine} FORCE INDEX ({index}) ORDER BY {column} {direction}")
                lists.append([value for value, in cursor.fetchall()])
            for ours, theirs in zip(*lists, strict=True):
                if ours != theirs:
                    cursor.execute(f"SELECT CONVERT(UNHEX(%s) USING {charset}) COLLATE {collation} = "
                                   f"CONVERT(UNHEX(%s) USING {charset}) COLLATE {collation}", (ours, theirs))
                    if cursor.fetchone() != (1,):
                        wrong.setdefault(collation, f"{index} {direction}: {ours} where {theirs} is")
            compared += 1
        for _ in range(30):
            column, index = rand.choice([("v", "v"), ("c", "c"), ("t", "t"), ("v", "vd"), ("v", "p")])
            operator = rand.choice(["=", "<", ">", "<=", ">=", "LIKE"])
            value = rand.choice(common) + text(rand, 4) + ("%" if operator == "LIKE" else "")
            answers = [run(cursor, f"SELECT id FROM c_{engine} FORCE INDEX ({index}) WHERE {column} {operator} %s ORDER BY id",
                           (value,)) for engine in ENGINES]
            if answers[0] != answers[1]:
                wrong.setdefault(collation, f"{column} {operator} {value!r}: {answers}")
            compared += 1
        if how := unique(cursor, rand, collation, charset):
            wrong.setdefault(collation, how)
        compared += 1
    assert not wrong, "\n".join(f"{collation}: {how}" for collation, how in wrong.items())
    print(f"{len(all_collations)} collations: {compared} answers compared", flush=True)


TYPES = [
    ("TINYINT", lambda r: r.randint(-128, 127)), ("SMALLINT UNSIGNED", lambda r: r.randint(0, 65535)),
    ("MEDIUMINT", lambda r: r.randint(-8388608, 8388607)), ("INT", lambda r: r.randint(-50, 50)),
    ("BIGINT", lambda r: r.randint(-2**63, 2**63 - 1)), ("BIGINT UNSIGNED", lambda r: r.randint(0, 2**64 - 1)),
    ("FLOAT", lambda r: r.choice([0.0, -0.0, 1.5, -1.5, 1e30, -1e-30])), ("DOUBLE", lambda r: r.choice([0.0, -0.0, 3.25, -1e300, 7e-300])),
    ("DECIMAL(20,5)", lambda r: round(r.uniform(-1e6, 1e6), 5)), ("BIT(13)", lambda r: r.randint(0, 8191)),
    ("DATE", lambda r: f"{r.randint(1000, 9999)}-{r.randint(1, 12):02}-{r.randint(1, 28):02}"),
    ("DATETIME(6)", lambda r: f"20{r.randint(10, 30)}-01-01 10:{r.randint(0, 59):02}:00.{r.randint(0, 999999):06}"),
    ("TIMESTAMP(3) NULL", lambda r: f"20{r.randint(10, 30)}-03-01 10:{r.randint(0, 59):02}:00.{r.randint(0, 999):03}"),
    ("TIME(2)", lambda r: f"{r.choice(['', '-'])}{r.randint(0, 800)}:{r.randint(0, 59):02}:01.{r.randint(0, 99):02}"),
    ("YEAR", lambda r: r.randint(1901, 2155)), ("ENUM('x','y','z')", lambda r: r.choice("xyz")),
    ("SET('a','b','c')", lambda r: r.choice(["", "a", "a,c", "b,c"])), ("CHAR(9)", lambda r: text(r, 9)),
    ("VARCHAR(20)", lambda r: text(r, 20)), ("VARCHAR(300) COLLATE utf8mb4_bin", lambda r: text(r, 20) * r.choice([1, 1, 9])),
    ("VARCHAR(30) COLLATE utf8mb4_unicode_nopad_ci", lambda r: text(r, 20)),
    ("BINARY(6)", lambda r: bytes(r.randrange(256) for _ in range(r.randint(0, 6)))),
    ("VARBINARY(20)", lambda r: bytes(r.randrange(3) for _ in range(r.randint(0, 5)))),
    ("INET6", lambda r: f"2001:db8::{r.randrange(65536):x}"),
    ("UUID", lambda r: f"{r.getrandbits(32):08x}-{r.getrandbits(16):04x}-1{r.getrandbits(12):03x}-8{r.getrandbits(12):03x}-{r.getrandbits(48):012x}"),
]
LARGE = [("TEXT", lambda r: text(r, 30) * r.choice([1, 5, 3000])), ("BLOB", lambda r: bytes(r.randrange(256) for _ in range(r.choice([0, 5, 70000]))) [:60000]),
         ("LONGBLOB", lambda r: b"x" * r.choice([0, 10, 200000])), ("JSON", lambda r: '{"a": %d}' % r.randint(0, 99))]


def random_table(connection, rand, number):
    cursor = connection.cursor()
    cursor.execute("SET sql_mode = 'STRICT_TRANS_TABLES'")
    columns = [rand.choice(TYPES) for _ in range(rand.randint(2, 7))] + [rand.choice(LARGE) for _ in range(rand.randint(0, 2))]
    names = [f"c{n}" for n in range(len(columns))]
    parts = []
    for name, (kind, _) in zip(names, columns):
        parts.append(f"{name} {kind}" + (" NOT NULL" if rand.random() < 0.3 and "NULL" not in kind else ""))
    key_names = []

    def key_part():
        n = rand.randrange(len(columns))
        kind = columns[n][0]
        length = "(4)" if columns[n] in LARGE[:3] else ""
        if not length and kind.startswith(("VARCHAR", "CHAR", "VARBINARY")) and rand.random() < 0.3:
            length = "(3)"
        return n, names[n] + length + rand.choice(["", "", " DESC"])

    def key():
        seen = {}
        for _ in range(rand.randint(1, 3)):
            n, part = key_part()
            if columns[n][0] != "JSON":
                seen[n] = part
        return ", ".join(seen.values()) or "id"

    # Other keys end with the primary key. Each of them but the second has a number once.
    primary = rand.choice(["id INT AUTO_INCREMENT PRIMARY KEY", "id INT, KEY (id)", "id INT, UNIQUE KEY (id DESC)",
                           "id INT, PRIMARY KEY (id DESC)", "id INT, PRIMARY KEY (c0, id), UNIQUE KEY (id)",
                           "id INT, PRIMARY KEY (id, c1 DESC), UNIQUE KEY (id)"])
    # NULL is the time of the statement in a timestamp that takes none.
    if any(kind.startswith("TIMESTAMP") for kind, _ in columns[:2]) and "c" in primary:
        primary = "id INT PRIMARY KEY"
    keys = []
    for n in range(rand.randint(0, 4)):
        keys.append(f"{rand.choice(['KEY', 'KEY', 'UNIQUE KEY'])} k{n} ({key()})")
        key_names.append(f"k{n}")
    generated = rand.random() < 0.4
    if generated:
        parts.append("b INT DEFAULT 7, g INT AS (id * 2) VIRTUAL, h VARCHAR(20) AS (CONCAT('h', id)) STORED, "
                     "w INT AS (b + MOD(id, 5)) VIRTUAL")
        keys += ["KEY kg (g)", "KEY kh (h)", "KEY kw (w)"]
        key_names += ["kg", "kh", "kw"]
    body = ", ".join([primary, *parts, *keys])
    tables = {}
    for engine in ENGINES:
        tables[engine] = f"r_{engine}"
        cursor.execute(f"DROP TABLE IF EXISTS r_{engine}")
        answer = run(cursor, f"CREATE TABLE r_{engine} ({body}) ENGINE={engine} CHARACTER SET utf8mb4")
        if answer != 0:
            if engine == "InnoDB" or answer[1] not in (1071, 1478, 1030):
                for other in ENGINES:
                    theirs = run(cursor, f"CREATE TABLE r_x ({body}) ENGINE={other} CHARACTER SET utf8mb4")
                    run(cursor, "DROP TABLE IF EXISTS r_x")
                    if other == "InnoDB":
                        assert theirs != 0, f"only {engine} refuses {body}: {answer}"
            return 0

    def both(statement, values=(), order=None):
        answers = [run(cursor, statement.format(t=tables[engine]), values) for engine in ENGINES]
        if order is not None and all(isinstance(a, tuple) and (not a or a[0] != "error") for a in answers):
            answers = [sorted(a, key=repr) for a in answers]
        # The same row counts as one with InnoDB if the last unique key alone is in the way, and as two here.
        if statement.startswith("REPLACE") and all(answer in (1, 2) for answer in answers):
            answers = [1, 1]
        assert answers[0] == answers[1], f"table {number} ({body}): {statement} {values!r}:\n{answers[0]!r}\n{answers[1]!r}"
        return answers[0]

    def row(fill):
        return [None if rand.random() < 0.1 else make(rand) for _, make in columns] if fill else []

    def alter():
        """Changes columns, many of them without touching the rows, and keeps up what is known of them."""
        n = rand.randrange(len(columns))
        fresh = f"a{step}"
        kind = rand.choice(TYPES + LARGE)
        place = rand.choice(["", " FIRST", f" AFTER {names[n]}"])
        # No text is both the default and JSON, which a copy checks.
        needs = " NOT NULL" if rand.random() < 0.4 and "NULL" not in kind[0] and kind[0] != "JSON" else ""
        change, then = rand.choice([
            (f"ADD COLUMN {fresh} {kind[0]}{needs}{place}", (names + [fresh], columns + [kind])),
            (f"ADD COLUMN {fresh} INT DEFAULT 7{place}", (names + [fresh], columns + [TYPES[3]])),
            (f"DROP COLUMN {names[n]}", (names[:n] + names[n + 1:], columns[:n] + columns[n + 1:])),
            (f"RENAME COLUMN {names[n]} TO {fresh}", (names[:n] + [fresh] + names[n + 1:], columns)),
            (f"MODIFY {names[n]} {columns[n][0]}{place if place != f' AFTER {names[n]}' else ''}", (names, columns)),
            (f"ADD {rand.choice(['KEY', 'UNIQUE KEY'])} {fresh} ({key()})", (names, columns)),
            (f"DROP KEY {rand.choice(key_names or ['none'])}", (names, columns)),
            (f"DROP KEY {rand.choice(key_names or ['none'])}, ADD KEY {fresh} ({key()})", (names, columns)),
        ])
        if not then[0]:
            return
        answers = [run(cursor, f"ALTER TABLE {tables['Pantile']} {change}")]
        if answers[0] in [("error", code) for code in (1071, 1478)]:
            return
        answers.append(run(cursor, f"ALTER TABLE {tables['InnoDB']} {change}"))
        failed = [isinstance(answer, tuple) and answer[:1] == ("error",) for answer in answers]
        assert failed[0] == failed[1], f"table {number} ({body}): {change}:\n{answers[0]!r}\n{answers[1]!r}"
        if not failed[0]:
            names[:], columns[:] = then
            keys_left = run(cursor, f"SHOW INDEX FROM {tables['Pantile']}")
            key_names[:] = sorted({name for _, _, name, *_ in keys_left if name != "PRIMARY"})

    compared = 0
    placeholders = ", ".join(["%s"] * len(names))
    verbs = ["INSERT", "INSERT", "INSERT IGNORE", "REPLACE"]
    for step in range(rand.randint(30, 150)):
        what = rand.randrange(15)
        if what < 6:
            both(f"{rand.choice(verbs)} INTO {{t}} (id, {', '.join(names)}) VALUES (%s, {placeholders})",
                 [rand.randint(1, 60), *row(True)])
        elif what == 6:
            n = rand.randrange(len(columns))
            both(f"UPDATE {{t}} SET {names[n]} = %s WHERE id = %s", (columns[n][1](rand), rand.randint(1, 60)))
        elif what == 7:
            where = rand.choice(["id = %s", "id = %s", "id > %s"])
            both(f"UPDATE {{t}} SET id = id + 100 WHERE {where} ORDER BY id DESC", (rand.randint(1, 60),))
        elif what == 8:
            both("DELETE FROM {t} WHERE id = %s", (rand.randint(1, 60),))
        elif what == 9:
            both("BEGIN")
        elif what == 10:
            both(rand.choice(["COMMIT", "ROLLBACK", "SAVEPOINT a"]))
        elif what == 11:
            n = rand.randrange(len(columns))
            both(f"INSERT INTO {{t}} (id, {', '.join(names)}) VALUES (%s, {placeholders}) "
                 f"ON DUPLICATE KEY UPDATE {names[n]} = VALUES({names[n]})", [rand.randint(1, 60), *row(True)])
        elif what == 13 and key_names:
            c, force = rand.choice(names), f"FORCE INDEX ({rand.choice(key_names)})"
            kind = columns[names.index(c)]
            direction, most = rand.choice(["", "DESC"]), rand.randint(1, 4)
            values = (kind[1](rand), rand.randint(1, 60))
            both(f"SELECT id FROM {{t}} {force} WHERE {c} = %s AND id > %s ORDER BY id {direction} LIMIT {most}", values)
            both(f"SELECT id FROM {{t}} {force} WHERE {c} IS NULL AND id <= %s ORDER BY id {direction} LIMIT {most}", values[1:])
            both(f"SELECT MAX(id), MIN(id), COUNT(*) FROM {{t}} {force} WHERE id > 0 GROUP BY {c}", order="any")
            if primary != "id INT, KEY (id)" and rand.random() < 0.5:
                both(f"DELETE FROM {{t}} WHERE {c} = %s AND id > %s ORDER BY id {direction} LIMIT {most}", values)
            other = rand.choice(names)
            both(f"SELECT COUNT(DISTINCT {other}) FROM {{t}} {force} WHERE {c} = %s", values[:1])
            how = rand.choice(["AND", "OR"])
            two = (*values[:1], columns[names.index(other)][1](rand))
            both(f"SELECT id FROM {{t}} WHERE {c} = %s {how} {other} = %s", two, order="any")
            if rand.random() < 0.3:
                both(f"UPDATE {{t}} SET id = id + 1000 WHERE {c} = %s {how} {other} = %s ORDER BY id DESC", two)
            compared += 5
        elif what == 12:
            alter()
            placeholders = ", ".join(["%s"] * len(names))
        else:
            n = rand.randrange(len(columns))
            force = f"FORCE INDEX ({rand.choice(key_names)})" if key_names and rand.random() < 0.7 else ""
            value, other = columns[n][1](rand), columns[n][1](rand)
            where = rand.choice([f"{names[n]} = %s OR {names[n]} = %s", f"{names[n]} BETWEEN %s AND %s",
                                 f"{names[n]} > %s AND NOT {names[n]} <=> %s", f"{names[n]} IS NULL OR {names[n]} IN (%s, %s)"])
            both(f"SELECT * FROM {{t}} {force} WHERE {where}", (value, other), order="any")
            compared += 1
    both("COMMIT")
    all_columns = f"id, {', '.join(names)}" + (", g, h" if generated else "")
    for force in ["", *(f"FORCE INDEX ({name})" for name in key_names)]:
        both(f"SELECT {all_columns} FROM {{t}} {force} WHERE id > -1000000", order="any")
        both(f"SELECT COUNT(*), SUM(id) FROM {{t}} {force} WHERE id > 5")
        if generated:
            both(f"SELECT w FROM {{t}} {force} WHERE w > 7 ORDER BY w")
        compared += 2
    cursor.execute(f"CHECK TABLE {tables['Pantile']}")
    assert cursor.fetchall()[-1][-1] == "OK"
    return compared


def main():
    socket, tables, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rand = random.Random(seed)
    print(f"seed {seed}", flush=True)
    connection = pymysql.connect(unix_socket=socket, user="root", charset="utf8mb4", autocommit=True)
    cursor = connection.cursor()
    cursor.execute("CREATE DATABASE IF NOT EXISTS differential")
    cursor.execute("USE differential")
    cursor.execute("SET NAMES utf8mb4")
    collations(connection, rand)
    compared = sum(random_table(connection, random.Random(f"{seed} {number}"), number) for number in range(tables))
    print(f"{tables} random tables: {compared} answers compared")
    cursor.execute("DROP DATABASE differential")


main()
