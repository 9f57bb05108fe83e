struct Pet;

fn open(db: &pantile::Database) {
    let _ = db.open_typed::<Pet>();
}

fn main() {}
