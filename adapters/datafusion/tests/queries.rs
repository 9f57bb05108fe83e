//! Queries answer as DataFusion does over the same rows in its own tables.

mod common;

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use pantile::{Database, Error, IndexDef, Range, TableDef, Transaction, Type, Value};
use pantile_arrow::Batches;
use pantile_datafusion::{Snapshot, Sql};
use pantile_testkit::{Random, ScratchDir};

use common::{block_on, table};

const WORDS: [&str; 7] = ["", "a", "ab", "abc", "b", "ä", "zz top"];

fn random_row<'v>(random: &mut Random, id: u64) -> Vec<Value<'v>> {
    vec![
        id.into(),
        (random.below(9) as u16).into(),
        if random.one_in(6) { Value::Null } else { Value::Int(random.below(13) as i64 - 6) },
        if random.one_in(6) { Value::Null } else { (*random.pick(&WORDS)).into() },
        Value::Timestamp(random.below(50) as i64 - 25),
        Value::Bool(random.below(2) == 1),
        Value::Float(*random.pick(&[-0.0, 0.0, 1.5, f64::INFINITY, -2.25])),
    ]
}

fn definition() -> TableDef {
    TableDef::new("t")
        .column("id", Type::U64)
        .column("part", Type::U16)
        .nullable("n", Type::I32)
        .nullable("word", Type::String(8))
        .column("at", Type::Timestamp)
        .column("flag", Type::Bool)
        .column("x", Type::F64)
        .primary_key(["part", "id"])
        .index(IndexDef::new("by_n", ["n", "word"]))
        .index(IndexDef::new("by_word", ["word", "x"]))
        .index(IndexDef::new("by_at", ["flag", "at"]))
}

fn filled(scratch: &ScratchDir, random: &mut Random, rows: u64) -> Database {
    let db = Database::open(scratch.path()).expect("open");
    let t = db.create_table(definition()).expect("create");
    let all: Vec<_> = (0..rows).map(|id| random_row(random, id)).collect();
    db.run(|txn| txn.insert_many(&t, all.iter())).expect("fill");
    db
}

/// The rows of a table, in one batch.
fn batch(db: &Database, txn: &Transaction) -> RecordBatch {
    let t = db.table("t").expect("the table");
    let mut batches = Batches::new(&t, (0..t.columns().len()).collect()).expect("types of Arrow");
    let mut cursor = txn.cursor(&t, Range::all()).expect("cursor");
    batches.fill(txn, &mut cursor, usize::MAX).expect("read");
    batches.finish().expect("batch")
}

fn literal(random: &mut Random, column: &str) -> String {
    match column {
        "id" => random.below(300).to_string(),
        "part" => random.below(10).to_string(),
        "n" => (random.below(15) as i64 - 7).to_string(),
        "word" => format!("'{}'", random.pick(&["", "a", "ab", "b", "ä", "longer than the column"])),
        "at" => format!("to_timestamp_micros({})", random.below(50) as i64 - 25),
        "flag" => (*random.pick(&["true", "false"])).to_owned(),
        _ => (*random.pick(&["0.0", "-0.0", "1.5", "1e9"])).to_owned(),
    }
}

fn condition(random: &mut Random, depth: u64) -> String {
    let column = *random.pick(&["id", "part", "n", "word", "at", "flag", "x"]);
    let mut value = || literal(random, column);
    let (one, other) = (value(), value());
    match random.below(if depth == 0 { 8 } else { 12 }) {
        0 | 1 => format!("{column} = {one}"),
        2 => format!("{column} < {one}"),
        3 => format!("{one} <= {column}"),
        4 => format!("{column} > {one}"),
        5 => format!("{column} BETWEEN {one} AND {other}"),
        6 => format!("{column} IS NULL"),
        7 => format!("{column} IN ({one}, {other})"),
        8 => format!("({} OR {})", condition(random, depth - 1), condition(random, depth - 1)),
        9 => format!("NOT {}", condition(random, depth - 1)),
        _ => format!("({} AND {})", condition(random, depth - 1), condition(random, depth - 1)),
    }
}

fn query(random: &mut Random) -> String {
    let condition = condition(random, 3);
    match random.below(10) {
        8 => format!(
            "SELECT word, x FROM t WHERE word = 'ab' AND {condition} ORDER BY word NULLS FIRST, x NULLS FIRST LIMIT 9"
        ),
        9 => {
            let first = format!("SELECT part, id FROM t WHERE {condition} ORDER BY part, id LIMIT 5");
            format!("SELECT * FROM ({first}) ORDER BY part DESC, id DESC")
        }
        6 => format!(
            "SELECT n, word FROM t WHERE {condition} ORDER BY n NULLS FIRST, word NULLS FIRST LIMIT 9"
        ),
        7 => {
            format!("SELECT flag, at FROM t WHERE {condition} ORDER BY flag DESC NULLS LAST, at DESC LIMIT 9")
        }
        0 => format!("SELECT count(*) FROM t WHERE {condition}"),
        1 => format!("SELECT word, sum(n), max(at) FROM t WHERE {condition} GROUP BY word ORDER BY word"),
        2 => {
            format!("SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.n WHERE a.{} ORDER BY 1, 2", "part < 4")
        }
        3 => format!("SELECT part, id, x FROM t WHERE {condition} ORDER BY part, id LIMIT 7"),
        4 => format!("SELECT id, part FROM t WHERE {condition} ORDER BY part DESC, id DESC LIMIT 5 OFFSET 2"),
        _ => format!("SELECT * FROM t WHERE {condition} ORDER BY id"),
    }
}

#[test]
fn queries_answer_as_over_tables_of_datafusion() {
    for seed in 0..6 {
        let mut random = Random::new(seed, 0);
        let scratch = ScratchDir::new();
        let db = filled(&scratch, &mut random, 300);
        let own = SessionContext::new();
        let rows = batch(&db, &db.begin_read().expect("begin"));
        let memory = MemTable::try_new(rows.schema(), vec![vec![rows]]).expect("a table");
        own.register_table("t", Arc::new(memory)).expect("register");
        let sql = Sql::new(&db);
        block_on(async {
            for number in 0..60 {
                let query = query(&mut random);
                let ours = sql.query(&query).await.expect("plan").collect().await.expect("run");
                let theirs = own.sql(&query).await.expect("plan").collect().await.expect("run");
                assert_eq!(table(&ours), table(&theirs), "seed {seed}, query {number}: {query}");
            }
        });
    }
}

async fn plan(sql: &Sql, query: &str) -> String {
    let plan = sql.query(&format!("EXPLAIN FORMAT INDENT {query}")).await.expect("plan");
    table(&plan.collect().await.expect("run"))
}

#[test]
fn conditions_and_orders_become_ways() {
    let scratch = ScratchDir::new();
    let sql = Sql::new(&filled(&scratch, &mut Random::new(9, 0), 300));
    block_on(async {
        let of_key = plan(&sql, "SELECT id FROM t WHERE part = 3 AND id >= 20 AND id < 30").await;
        assert!(of_key.contains("by=primary key: part = 3, id >= 20, id < 30"), "{of_key}");
        let of_index = plan(&sql, "SELECT id FROM t WHERE n = 2 AND word > 'a'").await;
        assert!(of_index.contains("by=by_n: n = 2, word > \"a\""), "{of_index}");
        let columns = plan(&sql, "SELECT sum(n) FROM t").await;
        assert!(columns.contains("columns=[n], by=primary key"), "{columns}");
        // No float shortens the way: what is equal there is not equal here.
        let float = plan(&sql, "SELECT id FROM t WHERE x = 0.0").await;
        assert!(float.contains("by=primary key\n") || float.contains("by=primary key "), "{float}");
        for order in ["part, id", "part DESC, id DESC"] {
            let sorted = plan(&sql, &format!("SELECT part, id FROM t ORDER BY {order} LIMIT 3")).await;
            assert!(!sorted.contains("SortExec"), "{sorted}");
            assert!(sorted.contains("limit=3"), "{sorted}");
            assert_eq!(sorted.contains("order=reverse"), order.contains("DESC"), "{sorted}");
        }
        // The last of the first three are not the first of the last three.
        let first = "SELECT part, id FROM t ORDER BY part, id LIMIT 3";
        let turned = plan(&sql, &format!("SELECT * FROM ({first}) ORDER BY part DESC, id DESC")).await;
        assert!(turned.contains("SortExec") && !turned.contains("order=reverse"), "{turned}");
        let sorted = plan(&sql, "SELECT part, id FROM t ORDER BY id").await;
        assert!(sorted.contains("SortExec"), "{sorted}");
    });
}

#[test]
fn a_query_reads_one_state() {
    let scratch = ScratchDir::new();
    let db = filled(&scratch, &mut Random::new(1, 0), 200);
    let sql = Sql::new(&db);
    let t = db.table("t").expect("the table");
    block_on(async {
        let count = "SELECT count(*) AS rows FROM t";
        let planned = sql.query(count).await.expect("plan");
        assert_eq!(db.transactions().iter().filter(|one| one.transaction.name == Some("sql")).count(), 1);
        db.run(|txn| txn.delete_range(&t, Range::all())).expect("delete");
        assert!(table(&planned.collect().await.expect("run")).contains("200"));
        // Nothing of it is left.
        assert!(db.transactions().is_empty());
        let empty = sql.query(count).await.expect("plan").collect().await.expect("run");
        assert!(table(&empty).contains("| 0 "), "{}", table(&empty));
        // A transaction of the program's own sees what it has written.
        let mut txn = db.begin().expect("begin");
        txn.insert(&t, &random_row(&mut Random::new(2, 0), 7)).expect("insert");
        let snapshot = Snapshot::of(&db, txn);
        let own = sql.query_at(snapshot, count).await.expect("plan").collect().await.expect("run");
        assert!(table(&own).contains("| 1 "), "{}", table(&own));
    });
}

#[test]
fn nothing_is_changed() {
    let scratch = ScratchDir::new();
    let sql = Sql::new(&filled(&scratch, &mut Random::new(1, 0), 10));
    let outside = scratch.path().with_extension("csv");
    let refused = [
        "INSERT INTO t SELECT * FROM t".to_owned(),
        "DELETE FROM t".to_owned(),
        "UPDATE t SET n = 1".to_owned(),
        "DROP TABLE t".to_owned(),
        "CREATE TABLE u AS SELECT * FROM t".to_owned(),
        format!("COPY t TO '{}'", outside.display()),
        format!("CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{}'", outside.display()),
        "SET datafusion.execution.batch_size = 1".to_owned(),
    ];
    block_on(async {
        for statement in refused {
            assert!(sql.query(&statement).await.is_err(), "{statement}");
        }
        assert!(sql.query("SELECT * FROM missing").await.is_err());
        assert!(sql.query("SELECT count(*) FROM T").await.is_err(), "names are as written");
        let tables = sql.query("SHOW TABLES").await.expect("plan").collect().await.expect("run");
        assert!(table(&tables).contains("| pantile       | public             | t "), "{}", table(&tables));
    });
    assert!(!outside.exists());
}

#[test]
fn a_query_fails_when_the_database_is_closed() {
    let scratch = ScratchDir::new();
    let db = filled(&scratch, &mut Random::new(1, 0), 10);
    let sql = Sql::new(&db);
    db.close().expect("close");
    let refusal = block_on(sql.query("SELECT * FROM t")).expect_err("closed");
    let source = refusal.find_root().to_string();
    assert!(source.contains(&Error::Closed.to_string()), "{source}");
}
