//! Isolation levels.

/// How transactions are isolated from each other; `docs/isolation.md` lists the
/// anomalies that each level permits.
///
/// The set is closed, so that a program can match on it: a further level would
/// come with a new major version.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
/// let options = TransactionOptions::new().isolation(Isolation::Snapshot);
/// db.run_with(options, |txn| txn.insert(&t, &[1u64.into(), 0i64.into()]))?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    /// As if transactions ran one after the other, in the order of their
    /// timestamps, which respects real time.
    #[default]
    Serializable,
    /// All reads show one state: that of the timestamp which the transaction gets when it begins.
    /// Of two transactions that write the same tuple, the first to commit wins. Permits write skew.
    Snapshot,
    /// Each statement reads what has been committed when the statement begins.
    ReadCommitted,
}
