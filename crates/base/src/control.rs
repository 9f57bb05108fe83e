//! Negative controls: answers of the engine that can be taken away, to see
//! that tests notice.
//!
//! Each is one line where the answer is given. Without the feature `controls`
//! none can be removed, and the line costs nothing.

/// An answer that can be taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Control {
    /// A block is released only when the durable watermark has passed what is
    /// in it and what superseded it (I-10; T1).
    WatermarkAtRelease = 1,
    /// Contents are sealed with the life of their block (T2).
    LifeInChecksum,
    /// A tombstone stays until no older version can be read back (I-14; T3).
    TombstonesStay,
    /// Recovery does not believe `superseded_bits` (T4).
    HeadersAreHints,
    /// Timestamps go on above everything on the medium (T5).
    ClockGoesOn,
    /// A block is released only when no thread is looking into it (I-11; T6).
    Pins,
    /// Reads are remembered apart from tiles (T7).
    Marks,
    /// Reads of ranges and of absent keys are remembered (T8).
    LeafMarks,
    /// A block is released only when its copies are durable (I-10; T12).
    CopiesDurable,
    /// A block is written again only when the medium has forgotten its last
    /// life (I-12; T12).
    ForgottenDurable,
    /// The tile of a block stays while somebody may walk over it (I-13; T13).
    TilesKept,
    /// Contents are checked before they are believed (T16).
    ContentChecksum,
    /// Descriptors and frozen flags are checked before they are believed (T16).
    LineSeal,
    /// State records are checked before they are believed (T16).
    StateChecksum,
    /// Above the durable watermark a transaction counts only with all its
    /// contents (I-8).
    Evidence,
    /// A slot is written again only when the durable watermark has passed the
    /// version in it and its successor (I-10; T1).
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

/// Takes an answer away in this whole process, or gives it back.
#[cfg(feature = "controls")]
pub fn remove(control: Option<Control>) {
    REMOVED.store(control.map_or(0, |c| c as u8), std::sync::atomic::Ordering::SeqCst);
}

/// Whether this answer has been taken away.
#[cfg(feature = "controls")]
pub fn is_removed(control: Control) -> bool {
    REMOVED.load(std::sync::atomic::Ordering::Relaxed) == control as u8
}

/// Whether this answer has been taken away.
#[cfg(not(feature = "controls"))]
#[inline(always)]
pub const fn is_removed(_: Control) -> bool {
    false
}
