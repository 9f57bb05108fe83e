use pantile::Record;

#[derive(Record)]
struct Pet {
    #[record(primary_key)]
    id: Option<u64>,
}

fn main() {}
