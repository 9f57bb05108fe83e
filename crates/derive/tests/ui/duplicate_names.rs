use pantile::Record;

#[derive(Record)]
struct Pet {
    #[record(primary_key)]
    id: u64,
    #[record(name = "id")]
    number: u64,
}

#[derive(Record)]
#[record(index(by_n(n)))]
struct Indexed {
    #[record(primary_key)]
    id: u64,
    #[record(unique)]
    n: u64,
}

fn main() {}
