use pantile::Record;

type Owner = Option<u32>;
type MaybeOwner = Option<Owner>;

#[derive(Record)]
struct Pet {
    #[record(primary_key)]
    id: u64,
    owner: MaybeOwner,
}

fn main() {}
