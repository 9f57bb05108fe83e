//! Scans as streams.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pantile::{Cursor, Result, Row, Transaction, TransactionOptions};

use crate::AsyncDatabase;

/// Rows that are read on a thread at once. That many are in memory, and none are read before these have been taken.
const BATCH: usize = 128;

type Convert<T> = Box<dyn FnMut(Row<'_>) -> Result<T> + Send>;
type Next<T> = Pin<Box<dyn Future<Output = Result<Batch<T>>> + Send>>;

/// The rows of a scan, from [`AsyncDatabase::scan`].
///
/// It reads some rows ahead, and more when these have been taken, and has a thread only while it reads. Its transaction
/// is open until the stream has ended or is dropped, and keeps the versions that it may read. After an error the stream
/// ends.
pub struct RowStream<T> {
    db: AsyncDatabase,
    read: VecDeque<Result<T>>,
    next: Option<Next<T>>,
}

struct Batch<T> {
    rows: VecDeque<Result<T>>,
    /// Where to go on.
    rest: Option<Reading<T>>,
}

struct Reading<T> {
    cursor: Cursor,
    txn: Transaction,
    convert: Convert<T>,
}

impl AsyncDatabase {
    /// The rows that a cursor comes to, in a transaction of its own, each as `convert` makes it of the row.
    ///
    /// # Errors
    /// The stream's items: those of [`begin_with`](pantile::Database::begin_with), of `cursor`, of
    /// [`Cursor::next`] and of `convert`, and [`Error::Closed`](pantile::Error::Closed) as for
    /// [`AsyncDatabase::call`].
    pub fn scan<T: Send + 'static>(
        &self,
        options: TransactionOptions,
        cursor: impl FnOnce(&Transaction) -> Result<Cursor> + Send + 'static,
        convert: impl FnMut(Row<'_>) -> Result<T> + Send + 'static,
    ) -> RowStream<T> {
        let db = self.clone();
        let first = async move {
            let first = db.call(move |db| {
                let txn = db.begin_with(options)?;
                let cursor = cursor(&txn)?;
                Ok(Reading { cursor, txn, convert: Box::new(convert) }.read())
            });
            first.await?
        };
        RowStream { db: self.clone(), read: VecDeque::new(), next: Some(Box::pin(first)) }
    }
}

impl<T: Send + 'static> Reading<T> {
    fn read(mut self) -> Batch<T> {
        let mut rows = VecDeque::with_capacity(BATCH);
        while rows.len() < BATCH {
            let Some(row) = self.next().transpose() else { return Batch { rows, rest: None } };
            let is_last = row.is_err();
            rows.push_back(row);
            if is_last {
                return Batch { rows, rest: None };
            }
        }
        Batch { rows, rest: Some(self) }
    }

    fn next(&mut self) -> Result<Option<T>> {
        self.cursor.next(&self.txn)?.map(&mut self.convert).transpose()
    }

    async fn read_on(self, db: AsyncDatabase) -> Result<Batch<T>> {
        db.call(move |_| self.read()).await
    }
}

impl<T: Send + 'static> Stream for RowStream<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        let stream = &mut *self;
        loop {
            if let Some(row) = stream.read.pop_front() {
                return Poll::Ready(Some(row));
            }
            let Some(next) = &mut stream.next else { return Poll::Ready(None) };
            let batch = ready!(next.as_mut().poll(context));
            stream.next = None;
            match batch {
                Ok(Batch { rows, rest }) => {
                    let db = &stream.db;
                    stream.read = rows;
                    stream.next = rest.map(|rest| Box::pin(rest.read_on(db.clone())) as Next<T>);
                }
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

// Nothing in it is pinned but the future, which has its own box.
impl<T> Unpin for RowStream<T> {}

impl<T> std::fmt::Debug for RowStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowStream").field("read", &self.read.len()).finish_non_exhaustive()
    }
}
