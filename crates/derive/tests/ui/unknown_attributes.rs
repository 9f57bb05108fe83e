use pantile::Record;

#[derive(Record)]
#[record(tabel = "pets")]
struct Pet {
    #[record(primary_key)]
    id: u64,
}

#[derive(Record)]
struct Other {
    #[record(key)]
    id: u64,
}

#[derive(Record)]
struct Skipped {
    #[record(primary_key, skip)]
    id: u64,
}

fn main() {}
