//! What the three tables hold: 10,000 suppliers, 62 nations, 5 regions,
//! however many warehouses there are.

use pantile::Database;

use super::schema::Tables;
use crate::error::Result;
use crate::tpcc::random::Text;
use pantile_testkit::Random;

/// Suppliers; their keys are the numbers below.
pub const SUPPLIERS: u16 = 10_000;

/// Sets the random numbers apart from those of TPC-C's loading.
const STREAM: u64 = 1 << 56;

/// Rows inserted by one transaction.
const BATCH: u16 = 1000;

/// Names of the regions, by key.
const REGIONS: [&str; 5] = ["Africa", "America", "Asia", "Australia", "Europe"];

/// The keys of nations: the codes of all letters and digits.
pub const NATION_KEYS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Names of the nations, in the order of their keys, with their regions. The
/// Europe of the queries is spread over digits, capitals and small letters.
const NATIONS: [(&str, u8); 62] = [
    ("Algeria", 0),
    ("Argentina", 1),
    ("Australia", 3),
    ("Austria", 4),
    ("Bangladesh", 2),
    ("Belgium", 4),
    ("Bolivia", 1),
    ("Brazil", 1),
    ("Bulgaria", 4),
    ("Burkina Faso", 0),
    ("Cambodia", 2),
    ("Cameroon", 0),
    ("Canada", 1),
    ("Chile", 1),
    ("China", 2),
    ("Colombia", 1),
    ("Croatia", 4),
    ("Cuba", 1),
    ("Denmark", 4),
    ("Ecuador", 1),
    ("Egypt", 0),
    ("Ethiopia", 0),
    ("Fiji", 3),
    ("Finland", 4),
    ("France", 4),
    ("Germany", 4),
    ("Ghana", 0),
    ("Greece", 4),
    ("Guatemala", 1),
    ("Hungary", 4),
    ("India", 2),
    ("Indonesia", 2),
    ("Ireland", 4),
    ("Italy", 4),
    ("Japan", 2),
    ("Kenya", 0),
    ("Laos", 2),
    ("Madagascar", 0),
    ("Malaysia", 2),
    ("Mexico", 1),
    ("Mongolia", 2),
    ("Morocco", 0),
    ("Nepal", 2),
    ("Netherlands", 4),
    ("New Zealand", 3),
    ("Nigeria", 0),
    ("Norway", 4),
    ("Papua New Guinea", 3),
    ("Peru", 1),
    ("Philippines", 2),
    ("Poland", 4),
    ("Portugal", 4),
    ("Romania", 4),
    ("Samoa", 3),
    ("Senegal", 0),
    ("Spain", 4),
    ("Sweden", 4),
    ("Thailand", 2),
    ("Tonga", 3),
    ("Uruguay", 1),
    ("Vietnam", 2),
    ("Zambia", 0),
];

/// Fills the tables.
///
/// # Errors
/// Those of the engine.
pub fn fill(db: &Database, tables: &Tables, seed: u64) -> Result<()> {
    let random = Random::new(seed, STREAM);
    db.run(|txn| {
        let random = &mut random.clone();
        for (key, name) in (0u8..).zip(REGIONS) {
            let comment = Text::<152>::letters(random, 31);
            txn.insert(&tables.region, &[key.into(), name.into(), comment.as_str().into()])?;
        }
        for (&key, (name, region)) in NATION_KEYS.iter().zip(NATIONS) {
            let comment = Text::<152>::letters(random, 31);
            let row = [key.into(), name.into(), region.into(), comment.as_str().into()];
            txn.insert(&tables.nation, &row)?;
        }
        Ok::<_, pantile::Error>(())
    })?;
    for first in (0..SUPPLIERS).step_by(BATCH.into()) {
        let random = Random::new(seed, STREAM + 1 + u64::from(first));
        db.run(|txn| {
            let random = &mut random.clone();
            (first..SUPPLIERS.min(first + BATCH)).try_for_each(|key| {
                let name = format!("Supplier#{key:09}");
                let address = Text::<40>::letters(random, 20);
                let nation = NATION_KEYS[random.below(NATION_KEYS.len() as u64) as usize];
                let phone = Text::<15>::digits(random);
                let comment = Text::<100>::letters(random, 51);
                let row = [
                    key.into(),
                    name.as_str().into(),
                    address.as_str().into(),
                    nation.into(),
                    phone.as_str().into(),
                    // -999.99 to 9,999.99
                    (i64::from(random.between(0, 1_099_998)) - 99_999).into(),
                    comment.as_str().into(),
                ];
                txn.insert(&tables.supplier, &row)
            })
        })?;
    }
    Ok(())
}
