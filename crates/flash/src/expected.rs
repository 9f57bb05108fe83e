//! What the engine expects of the blocks that it opens, as hints to a device.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::request::Stream;
use crate::traced::Trace;

/// The lives that the engine tells apart, as it names them in its trace events. The stream of each is its
/// number.
pub(crate) const LIVES: [&str; 4] = ["Short", "Middle", "Long", "Unknown"];

/// Streams of what is written to blocks.
pub const STREAMS_OF_LIVES: Stream = LIVES.len() as Stream;

/// The trace to which expectations belong now.
static LISTENER: Mutex<Option<Arc<Trace>>> = Mutex::new(None);

/// From here on, what a database writes to `trace` goes to the stream of the life that its engine expects of
/// the block. The events of all databases of the process count, so there should be one.
///
/// # Panics
/// If something else listens to the trace events of this process.
pub fn listen_to_lives(trace: &Arc<Trace>) {
    static ONCE: Once = Once::new();
    *LISTENER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(trace));
    ONCE.call_once(|| tracing::subscriber::set_global_default(Lives).expect("nobody else listens"));
}

struct Lives;

/// The fields of an event that matter here.
#[derive(Default)]
struct Fields {
    numbers: BTreeMap<&'static str, u64>,
    life: String,
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.numbers.insert(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "life" {
            write!(self.life, "{value:?}").expect("a string takes it");
        }
    }
}

impl Subscriber for Lives {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "pantile::block" && metadata.fields().field("life").is_some()
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let life = LIVES.iter().position(|life| *life == fields.life);
        let place = ["offset", "bytes"].map(|name| fields.numbers.get(name).copied());
        let listener = LISTENER.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(life), [Some(offset), Some(bytes)], Some(trace)) = (life, place, &*listener) {
            trace.expect(offset, bytes, life as Stream);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicBool;

    use pantile::{Durability, Options};
    use pantile_bench::ycsb::{Mix, Ycsb};

    use super::*;
    use crate::request::Request;
    use crate::run::{SEED, run};
    use crate::traced::TracedFactory;

    #[test]
    fn versions_with_different_lives_go_to_streams_of_their_own() {
        let trace = Trace::new(16, 0);
        listen_to_lives(&trace);
        let factory = TracedFactory { trace: Arc::clone(&trace), syncs_at_fences: false };
        let options = Options::new().custom_medium(factory).durability(Durability::None).block_slots(100);
        let mix = Mix { updates: 100, ..Mix::default() };
        let ycsb = Ycsb { tuples: 20_000, mix, theta: 0.9, seed: SEED, ..Ycsb::default() };
        run(&ycsb, options, 10_000, &AtomicBool::new(false), |_| Ok(())).expect("a run");
        let stream = |request: Request| match request {
            Request::Write { stream, .. } => Some(stream),
            Request::Read(_) | Request::Trim(_) | Request::Flush => None,
        };
        let streams: BTreeSet<Stream> = trace.take().into_iter().filter_map(stream).collect();
        assert!(streams.len() > 2 && streams.iter().all(|stream| *stream < STREAMS_OF_LIVES), "{streams:?}");
    }
}
