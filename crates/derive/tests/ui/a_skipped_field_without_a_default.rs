use pantile::Record;

#[derive(Record)]
struct Pet {
    #[record(primary_key)]
    id: u64,
    #[record(skip)]
    seen: std::time::Instant,
}

fn main() {}
