use pantile::Record;

#[derive(Record)]
struct Pet {
    #[record(primary_key)]
    id: u64,
    #[record(primary_key)]
    number: u64,
}

fn main() {}
