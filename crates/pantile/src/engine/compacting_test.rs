//! What compacting says when it cannot look.

use pantile_cc::{Begin, SimulatedTime};

use crate::{MediumKind, Options};

/// A late writer is about to draw its timestamp, and nobody knows what it may
/// see. That is not to say that nothing is left.
#[test]
fn what_could_not_be_looked_at_is_not_done() {
    let options = Options::new().medium(MediumKind::Dram).simulated_time(SimulatedTime::default());
    let db = options.open("unused").expect("open");
    let (permit, _) = db.core.enter(Begin::LateWriter).expect("a slot");
    db.core.registry.set_moving(permit.slot());
    let left = db.compact().expect("compact");
    assert!(left.is_held && !left.is_done(), "{left:?}");
    db.core.leave(permit);
    assert!(db.compact().expect("compact").is_done());
}
