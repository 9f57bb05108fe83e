//! Random tables of all types and random values, many of them at the edge of
//! what a type holds: a row that is taken is given back as it was, and one that
//! is refused has changed nothing.

use pantile::lab::{index_entries, medium_of};
use pantile::{
    Database, Decimal, Error, IndexDef, MediumKind, Options, OwnedValue, Range, Row, Table, TableDef, Type,
    Value,
};
use pantile_testkit::{Random, SeedNote, seeds};

fn random_type(random: &mut Random) -> Type {
    let len = *random.pick(&[1, 2, 3, 4, 7, 8, 9, 40]);
    match random.below(10) {
        0 => {
            let precision = 1 + random.below(38) as u8;
            Type::Decimal { precision, scale: random.below(u64::from(precision) + 1) as u8 }
        }
        1 => Type::FixedString(len),
        2 => Type::FixedBytes(len),
        3 => Type::String(u32::from(len)),
        4 => Type::Bytes(u32::from(len)),
        _ => *random.pick(&Type::PLAIN),
    }
}

/// A power of two or its neighbours, or anything.
fn random_word(random: &mut Random) -> u64 {
    match random.below(3) {
        0 => random.word(),
        1 => random.below(4),
        _ => (1u64 << random.below(64)).wrapping_add(random.below(3)).wrapping_sub(1),
    }
}

fn random_float(random: &mut Random) -> f64 {
    let edges = [
        f64::NAN,
        f64::INFINITY,
        0.0,
        f64::MAX,
        f64::MIN_POSITIVE,
        f32::MAX.into(),
        f32::MIN_POSITIVE.into(),
    ];
    let float = match random.below(4) {
        0 => *random.pick(&edges),
        1 => f64::from_bits(random.word()),
        2 => f64::from(f32::from_bits(random.word() as u32)),
        _ => random.fraction() * 10f64.powi(random.below(80) as i32 - 40),
    };
    if random.one_in(2) { float } else { -float }
}

/// Few letters, and among them what terminates, pads and escapes.
fn random_text(random: &mut Random, most: u64) -> String {
    let letters = ['a', 'b', '\0', '\u{1}', '\u{7f}', '\u{e9}', '\u{ffff}', '\u{10ffff}', ' '];
    (0..random.below(most + 2)).map(|_| *random.pick(&letters)).collect()
}

fn random_bytes(random: &mut Random, most: u64) -> Vec<u8> {
    (0..random.below(most + 2)).map(|_| *random.pick(&[0, 1, 0x7f, 0x80, 0xfe, 0xff])).collect()
}

/// A value of a kind that the type takes, which may lie beyond what it holds.
fn random_value(random: &mut Random, ty: Type) -> OwnedValue {
    match ty {
        Type::Bool => OwnedValue::Bool(random.one_in(2)),
        Type::F32 | Type::F64 => OwnedValue::Float(random_float(random)),
        Type::Timestamp => OwnedValue::Timestamp(random_word(random) as i64),
        Type::Decimal { precision, scale } => {
            let most = 10i128.pow(u32::from(precision));
            let units = match random.below(3) {
                0 => most - random.below(3) as i128,
                1 => (random_word(random) as i128).wrapping_mul(random_word(random) as i128),
                _ => random.below(100) as i128,
            };
            let units = if random.one_in(2) { units } else { units.wrapping_neg() };
            let scale = if random.one_in(2) { scale } else { random.below(40) as u8 };
            OwnedValue::Decimal(Decimal::new(units, scale))
        }
        Type::FixedString(most) => OwnedValue::Str(random_text(random, most.into())),
        Type::String(most) => OwnedValue::Str(random_text(random, most.into())),
        Type::FixedBytes(most) => OwnedValue::Bytes(random_bytes(random, most.into())),
        Type::Bytes(most) => OwnedValue::Bytes(random_bytes(random, most.into())),
        _ if random.one_in(2) => OwnedValue::Int(random_word(random) as i64),
        _ => OwnedValue::UInt(random_word(random)),
    }
}

/// Whether what was read is what was given. Only this may differ: an F32 has
/// rounded, without leaving what it can hold; fixed bytes are padded; a number
/// has the kind or the digits of its column.
fn is_same(ty: Type, given: &OwnedValue, read: &Value<'_>) -> bool {
    match (given, read) {
        (OwnedValue::Float(g), Value::Float(r)) if g.is_nan() => r.is_nan(),
        (OwnedValue::Float(g), Value::Float(r)) if ty == Type::F32 => {
            g.is_finite() == r.is_finite() && f64::from(*g as f32).to_bits() == r.to_bits()
        }
        (OwnedValue::Float(g), Value::Float(r)) => g.to_bits() == r.to_bits(),
        (OwnedValue::Int(g), Value::UInt(r)) => i128::from(*g) == i128::from(*r),
        (OwnedValue::UInt(g), Value::Int(r)) => i128::from(*g) == i128::from(*r),
        (OwnedValue::Decimal(g), Value::Decimal(r)) => r.rescale(g.scale).is_some_and(|r| r.units == g.units),
        (OwnedValue::Bytes(g), Value::Bytes(r)) if matches!(ty, Type::FixedBytes(_)) => {
            r.starts_with(g) && r[g.len()..].iter().all(|&b| b == 0)
        }
        (given, read) => given.as_value() == *read,
    }
}

struct Case {
    types: Vec<(Type, bool)>,
    /// Rows that were taken, by their first column.
    rows: Vec<Vec<OwnedValue>>,
}

impl Case {
    fn random(random: &mut Random) -> Self {
        let types = (0..1 + random.below(6)).map(|_| (random_type(random), random.one_in(3))).collect();
        Self { types, rows: Vec::new() }
    }

    fn definition(&self, random: &mut Random) -> TableDef {
        let mut def = TableDef::new("t").column("id", Type::U32).primary_key(["id"]);
        for (n, (ty, nullable)) in self.types.iter().enumerate() {
            def = if *nullable { def.nullable(n.to_string(), *ty) } else { def.column(n.to_string(), *ty) };
        }
        for index in 0..random.below(3) {
            let mut columns: Vec<String> = (0..self.types.len()).map(|n| n.to_string()).collect();
            random.shuffle(&mut columns);
            columns.truncate(1 + random.index(columns.len()));
            def = def.index(IndexDef::new(format!("i{index}"), columns));
        }
        def
    }

    fn random_row(&self, random: &mut Random) -> Vec<OwnedValue> {
        let value = |(ty, nullable): &(Type, bool), random: &mut Random| match *nullable && random.one_in(4) {
            true => OwnedValue::Null,
            false => random_value(random, *ty),
        };
        self.types.iter().map(|column| value(column, random)).collect()
    }

    /// Writes a row by one of the ways to do so. Returns whether it was taken.
    fn write(&mut self, db: &Database, table: &Table, random: &mut Random) -> bool {
        let row = self.random_row(random);
        let at = if random.one_in(3) { random.index(self.rows.len() + 1) } else { self.rows.len() };
        let id = Value::UInt(at as u64);
        let mut txn = db.begin().expect("begin");
        let written = match at < self.rows.len() {
            true => {
                let changes: Vec<_> = row.iter().enumerate().map(|(n, v)| (n + 1, v.as_value())).collect();
                txn.update(table, &[id], &changes)
            }
            false => {
                let values: Vec<_> =
                    std::iter::once(id).chain(row.iter().map(OwnedValue::as_value)).collect();
                txn.insert(table, &values).map(|()| true)
            }
        };
        match written {
            Ok(existed) => assert!(existed),
            Err(Error::OutOfRange { .. } | Error::TooLong { .. }) => {
                txn.commit().expect("what was refused has changed nothing");
                return false;
            }
            Err(error) => panic!("{row:?}: {error}"),
        }
        txn.commit().expect("commit");
        match self.rows.get_mut(at) {
            Some(old) => *old = row,
            None => self.rows.push(row),
        }
        true
    }

    fn compare(&self, row: &Row<'_>) -> u64 {
        let values = row.values().expect("in line");
        let id = row.get::<u64>(0).expect("an id");
        let given = &self.rows[id as usize];
        for (n, (ty, _)) in self.types.iter().enumerate() {
            assert!(
                is_same(*ty, &given[n], &values[n + 1]),
                "{ty:?}: {:?} became {:?}",
                given[n],
                values[n + 1]
            );
        }
        id
    }

    /// Compares all rows by every index.
    fn check(&self, db: &Database) {
        let table = db.table("t").expect("the table");
        let txn = db.begin_read().expect("begin");
        let all: Vec<u64> = (0..self.rows.len() as u64).collect();
        let scanned =
            txn.scan(&table, Range::all()).expect("scan").map(|row| self.compare(&row.expect("row")));
        assert_eq!(scanned.collect::<Vec<_>>(), all);
        for def in &table.definition().indexes {
            let index = table.index(&def.name).expect("an index");
            let scanned = txn.scan_index(&index, Range::all()).expect("scan");
            let mut found: Vec<u64> = scanned.map(|row| self.compare(&row.expect("row"))).collect();
            found.sort_unstable();
            assert_eq!(found, all, "{def:?}");
        }
    }
}

#[test]
fn what_is_taken_is_given_back() {
    let (mut taken, mut refused) = (0, 0);
    for seed in seeds(1, 300) {
        let _note = SeedNote(seed);
        let random = &mut Random::new(seed, 0);
        let mut case = Case::random(random);
        let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
        let Ok(table) = db.create_table(case.definition(random)) else { continue };
        for _ in 0..40 {
            *(if case.write(&db, &table, random) { &mut taken } else { &mut refused }) += 1;
        }
        case.check(&db);
        let (medium, indexes) = (medium_of(&db), table.definition().indexes.len() as u64);
        db.close().expect("close");
        drop(table);
        let db = Options::new().on_medium(medium).open("unused").expect("open again");
        case.check(&db);
        assert_eq!(index_entries(&db).expect("count"), 1 + case.rows.len() as u64 * (1 + indexes));
    }
    println!("{taken} rows taken, {refused} refused");
    assert!(taken > 0, "everything was refused");
}
