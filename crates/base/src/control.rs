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
    /// Nothing writes to the medium once the database is closed (I-20).
    Gate,
    /// A block is opened only when the next state record has room for it, and
    /// every record is written (I-19).
    RoomForRecords,
    /// The cleaner locks deleted tuples, too (I-15).
    CleanerLocks,
    /// Transactions that began before an index was dropped maintain it (I-16).
    DroppedIndexes,
    /// Values out of line are dropped with their table (I-18).
    PiecesOfTables,
    /// Values out of line are deleted with their row (I-18).
    PiecesOfRows,
    /// A late writer reads its clock again after it has announced its bound
    /// (I-6).
    ClockAfterBound,
    /// A late writer commits above what it supersedes (I-2).
    AboveSuperseded,
    /// No transaction begins at a timestamp ahead of its clock (I-6).
    NotAhead,
    /// Recovery frees blocks without committed contents.
    EmptyBlocks,
    /// Blocks that a refused commit has opened are freed.
    RefusedBlocks,
    /// The waits of a cycle are announced one at a time.
    OneVictim,
    /// Large buffers of transactions are freed.
    Buffers,
    /// The data file is locked while the database is open.
    OneOpener,
    /// A commit fails if the data file is no longer in its place.
    Place,
    /// Blocks that another process reads are not released (I-27).
    HeldForReaders,
    /// A transaction is run again for as long as there is time, with pauses.
    RetryTime,
    /// The beginning of a transaction waits while all slots are taken.
    SlotsAwaited,
    /// What is open goes on while the database is being closed.
    ClosingWaits,
    /// The build of an index hands entries of old versions to the cleaner
    /// (I-17).
    BuiltEntries,
    /// Changes of definitions heed no read marks.
    LateDefinitions,
    /// Values of fixed length are counted once in a row's length.
    RowLength,
    /// Rows of the layout that the table had when their transaction began.
    LayoutsOfTheirTime,
    /// Zeros in place of a fixed value that becomes NULL.
    NullsAreZero,
    /// A float that F32 cannot hold is refused.
    FloatRange,
    /// A fixed string that ends as its padding does is refused.
    FixedPadding,
    /// A wait may end later than the clock can say.
    FarDeadlines,
    /// Numbers in options have bounds.
    OptionBounds,
    /// A serializable writer looks at the read marks of what it has written
    /// before it publishes (I-21).
    MarksAtCommit,
    /// It announces that look, and readers wait for what it decides (I-21).
    Deciding,
    /// A writer that moves leaves its marks again, at the later timestamp (I-22).
    MarksMove,
    /// A writer that moves looks again at the rows that it has read (I-22).
    RowsReadAgain,
    /// A writer that moves looks again at the ranges that it has read (I-22).
    RangesReadAgain,
    /// A copy in the cache of rows is of one generation of its block (I-35).
    GenerationOfCopies,
    /// A writer that has read something does not begin again.
    FreshHaveRead,
    /// A tuple that is left with an entry and without a version has the marks of gaps.
    GapMarks,
    /// A read that finds no visible version looks its key up once more (I-5).
    AbsentAgain,
    /// A reader waits until all clocks have passed it before it looks whether it needs marks
    /// (I-33).
    PastWritersWait,
    /// A safe reader waits for those that are just beginning (I-6).
    SafeAwaits,
    /// What a writer that moves has read of a table that was dropped or renamed counts
    /// as changed.
    DroppedAreChanged,
    /// No look for the running transactions passes one that begins again.
    EntersAgain,
    /// A writer that must move waits for all who may get its unique keys.
    MovedAreLate,
    /// Recovery zeroes what was cut off behind the last content of a block (T2).
    Wiping,
    /// An index image is used only if the last state record names it (I-23).
    ImageName,
    /// An image of a running database leaves out what its base may not have
    /// published.
    ImageBase,
    /// An image notes tuples whose entries may be stale; an index of which it says too
    /// much, or too little, is made from the rows.
    ImageNotes,
    /// Pages of an index image are verified before they are trusted (I-23).
    ImageChecksum,
    /// Recovery drops a transaction whose predecessor is lost (I-25).
    Dependencies,
    /// A transaction depends on the commits in flight whose versions it reads
    /// (I-25).
    ReadsDepend,
    /// A transaction that only reads waits until what it reads is durable.
    ReadsAwait,
    /// What a transaction that was ended from outside may look at stays until it is
    /// dropped (I-28).
    EndedStay,
    /// A transaction that is ended from outside is woken if it waits.
    EndedWake,
    /// A statistics page is verified before it is shown.
    PageChecksum,
    /// A block descriptor or chunk header that is lost is read from its copy
    /// (I-29).
    Copies,
    /// A sweep drops the tombstone that it has noted, and no later one in its
    /// place (I-14).
    SameTombstone,
    /// A transaction drops earlier states of rows that no savepoint needs.
    Squeezing,
    /// A transaction cleans more the more index entries it has made stale.
    StaleInProportion,
    /// Tuple ids come back to threads that insert, also if others have cleaned them.
    IdsReturn,
    /// Closing looks at the space, whenever it was looked at last.
    ClosingLooks,
    /// Writers leave slots to transactions that only read.
    ReaderSlots,
    /// A long transaction is tried on the stage even if its time is over.
    LastOnStage,
    /// What prepares a transaction depends on what the transaction depends on (I-32).
    PreparedDepends,
    /// A prepared transaction deletes its record as it commits (I-32).
    PreparedAsOne,
    /// The definitions of tables that a prepared transaction has changed stay (I-32).
    PreparedDefinitions,
    /// Space is kept for the commits of prepared transactions (I-32).
    Promises,
    /// A transaction announces that it uses tables that are newer than itself (I-37).
    NewerTables,
    /// A transaction that reads again announces it before it draws the timestamp (I-4).
    ReadsAgain,
    /// The journal begins anew once the data file has what is in it (I-38).
    JournalBeginsAnew,
}

impl Control {
    /// All of them, with their names on the command line.
    pub const ALL: [(Control, &'static str); 84] = [
        (Control::WatermarkAtRelease, "watermark-at-release"),
        (Control::LifeInChecksum, "life-in-checksum"),
        (Control::TombstonesStay, "tombstones-stay"),
        (Control::HeadersAreHints, "headers-are-hints"),
        (Control::ClockGoesOn, "clock-goes-on"),
        (Control::Pins, "pins"),
        (Control::Marks, "marks"),
        (Control::LeafMarks, "leaf-marks"),
        (Control::CopiesDurable, "copies-durable"),
        (Control::ForgottenDurable, "forgotten-durable"),
        (Control::TilesKept, "tiles-kept"),
        (Control::ContentChecksum, "content-checksum"),
        (Control::LineSeal, "line-seal"),
        (Control::StateChecksum, "state-checksum"),
        (Control::Evidence, "evidence"),
        (Control::DurableBeforeRecycle, "durable-before-recycle"),
        (Control::Gate, "gate"),
        (Control::RoomForRecords, "room-for-records"),
        (Control::CleanerLocks, "cleaner-locks"),
        (Control::DroppedIndexes, "dropped-indexes"),
        (Control::PiecesOfTables, "pieces-of-tables"),
        (Control::PiecesOfRows, "pieces-of-rows"),
        (Control::ClockAfterBound, "clock-after-bound"),
        (Control::AboveSuperseded, "above-superseded"),
        (Control::NotAhead, "not-ahead"),
        (Control::EmptyBlocks, "empty-blocks"),
        (Control::RefusedBlocks, "refused-blocks"),
        (Control::OneVictim, "one-victim"),
        (Control::Buffers, "buffers"),
        (Control::OneOpener, "one-opener"),
        (Control::Place, "place"),
        (Control::HeldForReaders, "held-for-readers"),
        (Control::RetryTime, "retry-time"),
        (Control::SlotsAwaited, "slots-awaited"),
        (Control::ClosingWaits, "closing-waits"),
        (Control::BuiltEntries, "built-entries"),
        (Control::LateDefinitions, "late-definitions"),
        (Control::RowLength, "row-length"),
        (Control::LayoutsOfTheirTime, "layouts-of-their-time"),
        (Control::NullsAreZero, "nulls-are-zero"),
        (Control::FloatRange, "float-range"),
        (Control::FixedPadding, "fixed-padding"),
        (Control::FarDeadlines, "far-deadlines"),
        (Control::OptionBounds, "option-bounds"),
        (Control::MarksAtCommit, "marks-at-commit"),
        (Control::Deciding, "deciding"),
        (Control::MarksMove, "marks-move"),
        (Control::RowsReadAgain, "rows-read-again"),
        (Control::RangesReadAgain, "ranges-read-again"),
        (Control::GenerationOfCopies, "generation-of-copies"),
        (Control::FreshHaveRead, "fresh-have-read"),
        (Control::GapMarks, "gap-marks"),
        (Control::AbsentAgain, "absent-again"),
        (Control::PastWritersWait, "past-writers-wait"),
        (Control::SafeAwaits, "safe-awaits"),
        (Control::DroppedAreChanged, "dropped-are-changed"),
        (Control::EntersAgain, "enters-again"),
        (Control::MovedAreLate, "moved-are-late"),
        (Control::Wiping, "wiping"),
        (Control::ImageName, "image-name"),
        (Control::ImageBase, "image-base"),
        (Control::ImageNotes, "image-notes"),
        (Control::ImageChecksum, "image-checksum"),
        (Control::Dependencies, "dependencies"),
        (Control::ReadsDepend, "reads-depend"),
        (Control::ReadsAwait, "reads-await"),
        (Control::EndedStay, "ended-stay"),
        (Control::EndedWake, "ended-wake"),
        (Control::PageChecksum, "page-checksum"),
        (Control::Copies, "copies"),
        (Control::SameTombstone, "same-tombstone"),
        (Control::Squeezing, "squeezing"),
        (Control::StaleInProportion, "stale-in-proportion"),
        (Control::IdsReturn, "ids-return"),
        (Control::ClosingLooks, "closing-looks"),
        (Control::ReaderSlots, "reader-slots"),
        (Control::LastOnStage, "last-on-stage"),
        (Control::PreparedDepends, "prepared-depends"),
        (Control::PreparedAsOne, "prepared-as-one"),
        (Control::PreparedDefinitions, "prepared-definitions"),
        (Control::Promises, "promises"),
        (Control::NewerTables, "newer-tables"),
        (Control::ReadsAgain, "reads-again"),
        (Control::JournalBeginsAnew, "journal-begins-anew"),
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize - 1].1
    }
}

const _: () = {
    let mut n = 0;
    while n < Control::ALL.len() {
        assert!(Control::ALL[n].0 as usize == n + 1, "in the order of their numbers");
        n += 1;
    }
};

#[cfg(feature = "controls")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Control;

    /// Names the safeguard that is switched off from the start of a process,
    /// for programs of tests and models.
    const VARIABLE: &str = "PANTILE_CONTROL";

    const NONE: u8 = 0;
    /// The variable has not been looked at.
    const UNKNOWN: u8 = u8::MAX;

    static REMOVED: AtomicU8 = AtomicU8::new(UNKNOWN);

    /// Switches a safeguard off in the whole process, or switches all on again.
    pub fn remove(control: Option<Control>) {
        REMOVED.store(control.map_or(NONE, |c| c as u8), Ordering::SeqCst);
    }

    /// Whether this safeguard is switched off.
    pub fn is_removed(control: Control) -> bool {
        let removed = match REMOVED.load(Ordering::Relaxed) {
            UNKNOWN => by_variable(),
            known => known,
        };
        removed == control as u8
    }

    #[cold]
    fn by_variable() -> u8 {
        let named = std::env::var(VARIABLE).ok().map(|name| {
            let found = Control::ALL.iter().find(|(_, known)| *known == name);
            found.unwrap_or_else(|| panic!("{VARIABLE}={name}: there is no such control")).0
        });
        remove(named);
        named.map_or(NONE, |control| control as u8)
    }
}

#[cfg(feature = "controls")]
pub use switch::{is_removed, remove};

/// Whether this safeguard is switched off.
#[cfg(not(feature = "controls"))]
#[inline(always)]
pub const fn is_removed(_: Control) -> bool {
    false
}
