//! Every generation of a block can be followed as trace events.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use super::rows::{Rows, let_epochs_pass, open, options, settle};
use pantile_testkit::Patience;

/// One generation of a block: chunk, index, when it was opened, table.
type Life = (u64, u64, u64, u64);

/// The events of each generation.
type Lives = BTreeMap<Life, Vec<String>>;

thread_local!(static RECORDED: RefCell<Option<Lives>> = const { RefCell::new(None) });

/// Collects the events with the target of blocks, by thread. It stays
/// installed: a recorder that was installed and removed beside other tests'
/// threads would miss some events.
struct Recorder;

#[derive(Default)]
struct Fields {
    event: String,
    numbers: BTreeMap<&'static str, u64>,
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.numbers.insert(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "event" {
            self.event = format!("{value:?}");
        }
    }
}

impl Subscriber for Recorder {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "pantile::block" && RECORDED.with_borrow(Option::is_some)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let generation = ["chunk", "index", "opened_at", "table"].map(|name| fields.numbers[name]);
        RECORDED.with_borrow_mut(|generations| {
            generations.iter_mut().for_each(|generations| {
                generations.entry(generation.into()).or_default().push(fields.event.clone())
            });
        });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Records the events of this thread.
fn recorded(work: impl FnOnce()) -> Lives {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Recorder).expect("the only one"));
    // An event that another thread reached while the recorder was being
    // installed would stay disabled.
    drop(open(options()));
    tracing::callsite::rebuild_interest_cache();
    RECORDED.set(Some(Lives::new()));
    work();
    RECORDED.take().expect("recorded")
}

/// The history of a block that is already full when it becomes obsolete enough.
/// A block that is still open then is pending before it is sealed.
fn is_whole_generation(events: &[String], waited: &str) -> bool {
    let rest = ["Frozen", "Relocated", "Released", "Freed"];
    [["Opened", "Sealed", "Pending"], ["Opened", "Pending", "Sealed"]]
        .iter()
        .any(|first| events.iter().map(String::as_str).eq(first.iter().copied().chain([waited]).chain(rest)))
}

#[test]
fn the_life_of_a_block_is_told_in_order() {
    let generations = recorded(|| {
        let db = open(options());
        let mut rows = Rows::filled(&db, 0..320);
        for _ in 0..5 {
            rows.put((0..320).filter(|key| key % 9 != 0));
            settle(&db);
        }
    });
    let whole = generations.values().filter(|events| is_whole_generation(events, "Queued")).count();
    assert!(whole > 50, "{generations:#?}");
    for (generation, events) in &generations {
        assert_eq!(events[0], "Opened", "{generation:?} {events:?}");
        let freed = events.iter().position(|event| event == "Freed");
        assert!(freed.is_none_or(|at| at + 1 == events.len()), "{generation:?} {events:?}");
        assert!(freed.is_none() || is_whole_generation(events, "Queued"), "{generation:?} {events:?}");
    }
    // No block had two generations at the same time.
    let mut places: BTreeMap<(u64, u64), Vec<u64>> = BTreeMap::new();
    for (chunk, index, opened_at, _) in generations.keys() {
        places.entry((*chunk, *index)).or_default().push(*opened_at);
    }
    assert!(places.values().any(|generations| generations.len() > 1), "no block was used again");
}

#[test]
fn blocks_that_are_bypassed_say_so() {
    let generations = recorded(|| {
        let db = open(options());
        let mut rows = Rows::filled(&db, 0..160);
        let reader = db.begin_read().expect("begin");
        let patience = Patience::new();
        while db.stats().collector.blocks_bypassed < 10 {
            patience.check(|| format!("hardly anything is bypassed: {:#?}", db.stats()));
            rows.put(0..160);
            let_epochs_pass(&db);
        }
        drop(reader);
    });
    assert!(
        generations.values().filter(|events| is_whole_generation(events, "Bypassed")).count() >= 8,
        "{generations:#?}"
    );
}
