//! Errors of the code that transactions run.

use crate::types::error::Error;

type AnyError = dyn std::error::Error;

/// An error with which the closure of [`Database::run`](crate::Database::run) can fail: [`Error`], a boxed
/// error, `anyhow::Error` (with the feature `anyhow`), or a type of your own.
///
/// Whatever the closure fails with, the transaction is rolled back. The closure runs again if the error
/// contains an error of the database that [can be retried](Error::is_retryable).
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
/// # db.run(|txn| txn.insert(&t, &[1u64.into(), 5i64.into()]))?;
/// #[derive(Debug)]
/// enum ShopError {
///     SoldOut,
///     Database(pantile::Error),
/// }
///
/// impl From<pantile::Error> for ShopError {
///     fn from(error: pantile::Error) -> Self {
///         ShopError::Database(error)
///     }
/// }
///
/// impl TransactionError for ShopError {
///     fn of_database(&self) -> Option<&pantile::Error> {
///         match self {
///             ShopError::Database(error) => Some(error),
///             ShopError::SoldOut => None,
///         }
///     }
/// }
///
/// fn take(db: &Database, stock: &Table, item: u64, pieces: i64) -> Result<(), ShopError> {
///     db.run(|txn| {
///         let row = txn.get_for_update(stock, &[item.into()])?.ok_or(ShopError::SoldOut)?;
///         let left = row.get::<i64>("n")? - pieces;
///         if left < 0 {
///             return Err(ShopError::SoldOut); // and nothing is written
///         }
///         txn.update(stock, &[item.into()], &[("n", left.into())])?;
///         Ok(())
///     })
/// }
///
/// assert!(take(&db, &t, 1, 5).is_ok());
/// assert!(matches!(take(&db, &t, 1, 1), Err(ShopError::SoldOut)));
/// # Ok::<(), Error>(())
/// ```
pub trait TransactionError: From<Error> {
    /// The error of the database that this error contains, if any. For errors with sources,
    /// [`Error::in_chain`] finds it.
    fn of_database(&self) -> Option<&Error>;
}

impl TransactionError for Error {
    fn of_database(&self) -> Option<&Error> {
        Some(self)
    }
}

impl TransactionError for Box<AnyError> {
    fn of_database(&self) -> Option<&Error> {
        Error::in_chain(self.as_ref())
    }
}

impl TransactionError for Box<dyn std::error::Error + Send + Sync> {
    fn of_database(&self) -> Option<&Error> {
        Error::in_chain(self.as_ref())
    }
}

#[cfg(feature = "anyhow")]
impl TransactionError for anyhow::Error {
    fn of_database(&self) -> Option<&Error> {
        self.chain().find_map(Error::among)
    }
}

impl Error {
    /// The first error of the database among an error and its sources, boxed or not.
    ///
    /// ```
    /// # use pantile::Error;
    /// let error: Box<dyn std::error::Error> = Error::ReadOnly.into();
    /// assert!(matches!(Error::in_chain(error.as_ref()), Some(Error::ReadOnly)));
    /// assert!(Error::in_chain(&std::fmt::Error).is_none());
    /// ```
    pub fn in_chain<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e Error> {
        std::iter::successors(Some(error), |error| error.source()).find_map(Error::among)
    }

    /// A box is an error of its own type, and its source is that of what is in it.
    fn among<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e Error> {
        let boxed = || error.downcast_ref::<Box<Error>>().map(Box::as_ref);
        error.downcast_ref().or_else(boxed)
    }
}
