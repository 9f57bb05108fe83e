use pantile::Record;

#[derive(Record)]
struct Pet {
    #[record(primary_key)]
    id: u64,
    born: std::time::SystemTime,
}

fn main() {}
