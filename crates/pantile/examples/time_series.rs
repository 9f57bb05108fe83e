//! Measurements over time. Old ones are deleted in steps, with one call for each step.
//!
//! The primary key begins with the time, so expired rows are one range of it. An index that begins
//! with the sensor answers questions about one sensor.
//!
//! `cargo run -p pantile --example time_series`

use std::ops::Bound;

use pantile::{Database, Index, IndexDef, Micros, Range, Result, Table, TableDef, Type, Value};

const SENSORS: u32 = 10;
const MINUTE: i64 = 60_000_000;
const DAY: i64 = 24 * 60 * MINUTE;
/// Rows that one transaction deletes: few enough that others never wait long.
const STEP: usize = 2_000;

fn average(db: &Database, by_sensor: &Index, sensor: u32, from: i64, to: i64) -> Result<Option<f64>> {
    let (from, to) = ([sensor.into(), Micros(from).into()], [sensor.into(), Micros(to).into()]);
    let txn = db.begin_read()?;
    let (mut sum, mut n) = (0.0, 0u32);
    for row in
        txn.scan_index(by_sensor, Range::all().from(Bound::Included(&from)).to(Bound::Excluded(&to)))?
    {
        sum += row?.get::<f64>("celsius")?;
        n += 1;
    }
    Ok((n > 0).then(|| sum / f64::from(n)))
}

/// Deletes everything from before a moment, in steps.
fn expire(db: &Database, measured: &Table, before: i64) -> Result<u64> {
    let until: [Value; 1] = [Micros(before).into()];
    let range = Range::all().to(Bound::Excluded(&until)).limit(STEP);
    let mut expired = 0;
    loop {
        let step = db.run(|txn| txn.delete_range(measured, range))?;
        expired += step;
        if step < STEP as u64 {
            return Ok(expired);
        }
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let db = Database::open(dir.path())?;
    let measured = db.open_or_create(
        TableDef::new("measured")
            .column("at", Type::Timestamp)
            .column("sensor", Type::U32)
            .column("celsius", Type::F64)
            .primary_key(["at", "sensor"])
            .index(IndexDef::new("by_sensor", ["sensor", "at"])),
    )?;
    let by_sensor = measured.index("by_sensor")?;

    // Three days, ten minutes apart. One transaction takes a whole day.
    for day in 0..3 {
        db.run(|txn| {
            for at in (day * DAY..(day + 1) * DAY).step_by(10 * MINUTE as usize) {
                for sensor in 0..SENSORS {
                    let celsius = f64::from(sensor) + day as f64;
                    txn.insert(&measured, &[Micros(at).into(), sensor.into(), celsius.into()])?;
                }
            }
            Ok::<_, pantile::Error>(())
        })?;
    }
    let second_day = average(&db, &by_sensor, 4, DAY, 2 * DAY)?;
    println!("on its second day, sensor 4 measured {:.1} degrees on average", second_day.expect("rows"));
    assert_eq!(second_day, Some(5.0));

    let latest: [Value; 1] = [4u32.into()];
    let txn = db.begin_read()?;
    let row =
        txn.scan_index(&by_sensor, Range::prefix(&latest).reverse().limit(1))?.next().expect("a row")?;
    assert_eq!(row.get::<Micros>("at")?.0, 3 * DAY - 10 * MINUTE);
    println!("its latest: {row:?}");
    drop(txn);

    let expired = expire(&db, &measured, 2 * DAY)?;
    let left = db.begin_read()?.count(&measured, Range::all())?;
    println!("{expired} measurements have expired, {left} are left");
    assert_eq!((expired, left), (2 * 144 * u64::from(SENSORS), 144 * u64::from(SENSORS)));
    assert_eq!(average(&db, &by_sensor, 4, 0, 2 * DAY)?, None);
    Ok(())
}
