use pantile::Record;

#[derive(Record)]
enum Pet {
    Dog,
}

#[derive(Record)]
struct Pair(u64, u64);

#[derive(Record)]
struct Of<T> {
    #[record(primary_key)]
    id: T,
}

fn main() {}
