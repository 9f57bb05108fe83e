use pantile::Record;

#[derive(Record)]
struct Pet {
    #[record(primary_key)]
    id: u64,
    owner: Option<Option<u32>>,
}

fn main() {}
