use pantile::Record;

#[derive(Record)]
struct Pet {
    id: u64,
}

fn main() {}
