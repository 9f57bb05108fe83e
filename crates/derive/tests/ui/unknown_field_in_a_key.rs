use pantile::Record;

#[derive(Record)]
#[record(primary_key(owner, id))]
struct Pet {
    id: u64,
}

#[derive(Record)]
#[record(index(by_name(nick)))]
struct Named {
    #[record(primary_key)]
    id: u64,
    #[record(name = "nick", max = 40)]
    name: String,
}

fn main() {}
