use pantile::{Decimal, Record};

#[derive(Record)]
struct Pet {
    #[record(primary_key)]
    id: u64,
    #[record(max = 4)]
    number: u64,
    weight: Decimal,
    #[record(decimal(2, 3))]
    height: Decimal,
    #[record(fixed = 0)]
    picture: Vec<u8>,
}

fn main() {}
