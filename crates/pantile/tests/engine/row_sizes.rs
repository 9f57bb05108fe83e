//! A row is refused if and only if it does not fit, whatever its columns are.

use pantile::{Error, MediumKind, Options, Result, Row, TableDef, Type, Value};
use pantile_testkit::{Random, seeds};

/// Most bytes of a row in line.
const MOST: usize = 65_535;
/// Values of columns longer than this may move out of line.
const MOVABLE_FROM: u32 = 1536;
/// What remains of a value that has moved out.
const REFERENCE: usize = 16;

/// A column of a test, with the bytes that the row has there.
struct Case {
    ty: Type,
    nullable: bool,
    value: Option<Vec<u8>>,
}

impl Case {
    fn value(&self) -> Value<'_> {
        match (&self.value, self.ty) {
            (None, _) => Value::Null,
            (Some(bytes), Type::String(_)) => Value::Str(std::str::from_utf8(bytes).expect("letters")),
            (Some(bytes), _) => Value::Bytes(bytes),
        }
    }

    fn is_movable(&self) -> bool {
        matches!(self.ty, Type::String(max) | Type::Bytes(max) if max > MOVABLE_FROM)
    }

    /// What the value takes at least, without the fixed part.
    fn least(&self) -> usize {
        let len = self.value.as_ref().map_or(0, Vec::len);
        match self.ty {
            Type::FixedBytes(_) => 0,
            _ if self.is_movable() => len.min(REFERENCE),
            _ => len,
        }
    }
}

/// The length of the fixed part, by docs/format.md.
fn fixed_part(columns: &[Case]) -> usize {
    let count = |of: &dyn Fn(&Case) -> bool| columns.iter().filter(|c| of(c)).count();
    let fixed: usize =
        columns.iter().map(|c| if let Type::FixedBytes(n) = c.ty { n.into() } else { 0 }).sum();
    let variable = count(&|c| !matches!(c.ty, Type::FixedBytes(_)));
    // Eight bytes are the key's.
    8 + count(&|c| c.nullable).div_ceil(8) + fixed + count(&Case::is_movable).div_ceil(8) + 2 * variable
}

fn letters(random: &mut Random, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    random.fill_letters(&mut bytes);
    bytes
}

fn random_column(random: &mut Random) -> Case {
    let max = *random.pick(&[1, 10, 100, 1000, MOVABLE_FROM, MOVABLE_FROM + 1, 70_000]);
    let ty = match random.below(4) {
        0 => Type::FixedBytes(max.min(9_000) as u16),
        1 => Type::Bytes(max),
        _ => Type::String(max),
    };
    let most = if let Type::FixedBytes(n) = ty { n.into() } else { max };
    let len = if random.percent(30) {
        random.below(20.min(u64::from(most)) + 1) as u32
    } else {
        random.between(0, most)
    };
    let nullable = random.percent(30);
    let value = (!nullable || random.percent(70)).then(|| letters(random, len as usize));
    Case { ty, nullable, value }
}

/// Columns, one of which fills the row up to about the limit where that is possible.
fn random_columns(random: &mut Random) -> Vec<Case> {
    let mut columns: Vec<Case> = (0..random.below(70)).map(|_| random_column(random)).collect();
    let least = fixed_part(&columns) + columns.iter().map(Case::least).sum::<usize>();
    let filler = (MOST + 2).saturating_sub(least + random.index(5));
    if let Ok(len @ 1..) = u16::try_from(filler) {
        let value = Some(letters(random, random.clone().index(usize::from(len) + 1)));
        let at = random.index(columns.len() + 1);
        columns.insert(at, Case { ty: Type::FixedBytes(len), nullable: false, value });
    }
    columns
}

fn assert_row(row: &Row<'_>, columns: &[Case]) {
    for (n, case) in columns.iter().enumerate() {
        let mut expected = case.value.clone();
        if let (Type::FixedBytes(len), Some(value)) = (case.ty, &mut expected) {
            value.resize(len.into(), 0);
        }
        assert_eq!(row.get::<Option<Vec<u8>>>(n + 1).expect("read"), expected, "{:?}", case.ty);
    }
}

fn assert_outcome(outcome: &Result<bool>, fits: bool, least: usize) {
    match outcome {
        Ok(_) => assert!(fits, "a row of {least} bytes was taken"),
        Err(Error::RowTooLarge { len, .. }) => {
            assert!(!fits && *len > MOST, "a row of {least} bytes was refused with {len}");
        }
        Err(other) => panic!("{other}"),
    }
}

fn check(seed: u64) {
    let random = &mut Random::new(seed, 0);
    let columns = random_columns(random);
    let fixed = fixed_part(&columns);
    let least = fixed + columns.iter().map(Case::least).sum::<usize>();
    let mut def = TableDef::new("t").column("id", Type::U64).primary_key(["id"]);
    for (n, case) in columns.iter().enumerate() {
        def = if case.nullable {
            def.nullable(n.to_string(), case.ty)
        } else {
            def.column(n.to_string(), case.ty)
        };
    }
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let table = match db.create_table(def) {
        Ok(table) => table,
        Err(Error::InvalidDefinition(_)) => return assert!(fixed > MOST, "{fixed} bytes of fixed part"),
        Err(other) => panic!("{other}"),
    };
    let fits = least <= MOST;
    let mut txn = db.begin().expect("begin");
    let row = |id: u64| std::iter::once(id.into()).chain(columns.iter().map(Case::value)).collect::<Vec<_>>();
    assert_outcome(&txn.upsert(&table, &row(1)), fits, least);

    // The same by an update of an empty row, in any order, and of a row of other values.
    let empty = |case: &Case| match case.ty {
        Type::String(_) => Value::Str(""),
        _ => Value::Bytes(b""),
    };
    let blank: Vec<_> = std::iter::once(2u64.into()).chain(columns.iter().map(empty)).collect();
    txn.upsert(&table, &blank).expect("the fixed part fits");
    let mut changes: Vec<_> = columns.iter().enumerate().map(|(n, case)| (n + 1, case.value())).collect();
    random.shuffle(&mut changes);
    assert_outcome(&txn.update(&table, &[2u64.into()], &changes), fits, least);
    if !fits {
        return;
    }
    let back: Vec<_> = blank.iter().copied().enumerate().skip(1).collect();
    assert!(txn.update(&table, &[1u64.into()], &back).expect("the empty row fits"));
    assert!(txn.update(&table, &[1u64.into()], &changes).expect("it fits"));
    for id in [1u64, 2] {
        assert_row(&txn.get(&table, &[id.into()]).expect("get").expect("a row"), &columns);
    }
}

#[test]
fn a_row_is_refused_if_and_only_if_it_does_not_fit() {
    seeds(1, 400).into_iter().for_each(check);
}

/// Values of fixed length were counted twice beside a column of variable
/// length: 130,010 bytes instead of 65,010.
#[test]
fn wide_fixed_columns_beside_a_short_string() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t")
        .column("id", Type::U64)
        .column("wide", Type::FixedBytes(65_000))
        .column("text", Type::String(1500))
        .primary_key(["id"]);
    let table = db.create_table(def).expect("create");
    let wide = vec![7; 65_000];
    let row = [1u64.into(), Value::Bytes(&wide), "".into()];
    db.run(|txn| txn.insert(&table, &row)).expect("65,010 bytes fit");
    let txn = db.begin_read().expect("begin");
    assert_eq!(txn.get(&table, &row[..1]).expect("get").expect("a row").values().expect("in line"), row);
}

/// What fits together is taken, though the changes one by one would not fit on
/// the way, and of two changes of a column the last counts.
#[test]
fn an_update_is_judged_by_the_row_that_it_makes() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let mut def = TableDef::new("t").column("id", Type::U64).column("fixed", Type::FixedBytes(63_000));
    for n in 0..3 {
        def = def.column(n.to_string(), Type::Bytes(1500));
    }
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    let (long, short) = (Value::Bytes(&[1; 1500]), Value::Bytes(&[2; 100]));
    let mut txn = db.begin().expect("begin");
    txn.insert(&table, &[1u64.into(), Value::Bytes(&[]), long, short, short]).expect("fits");
    let key = [1u64.into()];
    assert!(txn.update(&table, &key, &[(3, long), (2, short)]).expect("a swap fits"));
    assert!(txn.update(&table, &key, &[(4, long), (4, short)]).expect("the last counts"));
    let row = txn.get(&table, &key).expect("get").expect("a row");
    assert_eq!(row.values().expect("in line")[2..], [short, long, short]);
}
