//! Negative controls: safeguards of the engine that can be switched off, to
//! prove that the tests notice.
//!
//! Each safeguard is one line at the place that it guards. Without the feature
//! `controls` none can be switched off, and the line costs nothing.

/// A safeguard that can be switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Control {
    /// A block is released only when the durable watermark is past its contents
    /// and everything that superseded them (I-10; T1).
    WatermarkAtRelease = 1,
    /// The checksum of a content covers the generation of its block (T2).
    LifeInChecksum,
    /// A tombstone stays until no older version can be read back (I-14; T3).
    TombstonesStay,
    /// Recovery does not trust the superseded bits on the medium (T4).
    HeadersAreHints,
    /// Timestamps continue above everything on the medium (T5).
    ClockGoesOn,
    /// A block is released only when no thread is reading from it (I-11; T6).
    Pins,
    /// Reads of rows raise read marks, which are kept apart from tiles (T7).
    Marks,
    /// Reads of ranges and of absent keys raise read marks (T8).
    LeafMarks,
    /// A block is released only when its copies are durable (I-10; T12).
    CopiesDurable,
    /// A block is written again only when the medium has durably forgotten its
    /// previous generation (I-12; T12).
    ForgottenDurable,
    /// The tile of a block stays while a reader may follow its links (I-13;
    /// T13).
    TilesKept,
    /// Contents are verified before they are trusted (T16).
    ContentChecksum,
    /// Descriptors and frozen flags are verified before they are trusted
    /// (T16).
    LineSeal,
    /// State records are verified before they are trusted (T16).
    StateChecksum,
    /// Above the durable watermark, a transaction counts as committed only with
    /// all its contents (I-8).
    Evidence,
    /// A slot is written again only when the durable watermark is past the
    /// version in it and past that version's successor (I-10; T1).
    DurableBeforeRecycle,
}

impl Control {
    /// All of them.
    pub const ALL: [Control; 16] = [
        Control::WatermarkAtRelease,
        Control::LifeInChecksum,
        Control::TombstonesStay,
        Control::HeadersAreHints,
        Control::ClockGoesOn,
        Control::Pins,
        Control::Marks,
        Control::LeafMarks,
        Control::CopiesDurable,
        Control::ForgottenDurable,
        Control::TilesKept,
        Control::ContentChecksum,
        Control::LineSeal,
        Control::StateChecksum,
        Control::Evidence,
        Control::DurableBeforeRecycle,
    ];
}

#[cfg(feature = "controls")]
static REMOVED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Switches a safeguard off in the whole process, or switches all on again.
#[cfg(feature = "controls")]
pub fn remove(control: Option<Control>) {
    REMOVED.store(control.map_or(0, |c| c as u8), std::sync::atomic::Ordering::SeqCst);
}

/// Whether this safeguard is switched off.
#[cfg(feature = "controls")]
pub fn is_removed(control: Control) -> bool {
    REMOVED.load(std::sync::atomic::Ordering::Relaxed) == control as u8
}

/// Whether this safeguard is switched off.
#[cfg(not(feature = "controls"))]
#[inline(always)]
pub const fn is_removed(_: Control) -> bool {
    false
}
