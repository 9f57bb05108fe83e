//! Warnings of the engine, for programs that have a log of their own.

use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::fmt::Write;
use std::sync::{Mutex, OnceLock};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber, span};

use crate::c_text::as_c;
use crate::error::{Failure, PANTILE_OK, call};

/// What is called with a warning. The text is valid until it returns.
pub type pantile_on_warning = Option<unsafe extern "C" fn(warning: *const c_char, context: *mut c_void)>;

struct Listener {
    call: unsafe extern "C" fn(*const c_char, *mut c_void),
    context: *mut c_void,
}

// SAFETY: the caller of `pantile_on_warnings` sees to it, as its comment says.
unsafe impl Send for Listener {}

static LISTENER: Mutex<Option<Listener>> = Mutex::new(None);
static IS_SET: OnceLock<bool> = OnceLock::new();

/// Hands warnings to the program.
struct Warnings;

/// An event as one line: what it says, then its other fields.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing into a text does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, "; {name}: {value:?}"),
        };
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("pantile")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let text = as_c(&format!("{}{}", line.message, line.fields));
        let listener = LISTENER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(Listener { call, context }) = &*listener {
            // SAFETY: the caller of `pantile_on_warnings` has handed over a function and
            // what it takes.
            unsafe { call(text.as_ptr(), *context) }
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Calls `warning` with each warning of any database of the process, in the thread that it comes from, one at a time.
/// `context` must be valid until the function is replaced; NULL for the function ends it. `warning` calls nothing of this
/// library. Fails with `PANTILE_MISUSE` if something else of the process takes what `tracing` reports.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_on_warnings(warning: pantile_on_warning, context: *mut c_void) -> c_int {
    call(|| {
        let mut listener = LISTENER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !IS_SET.get_or_init(|| tracing::subscriber::set_global_default(Warnings).is_ok()) {
            return Err(Failure::misuse("something else of the process takes what tracing reports"));
        }
        *listener = warning.map(|call| Listener { call, context });
        Ok(PANTILE_OK)
    })
}
