use pantile::Record;

#[derive(Record)]
struct Pet {
    #[record(primary_key)]
    name: String,
}

fn main() {}
