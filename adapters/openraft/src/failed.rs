//! What fails in a call of a store, on its way to Raft.

use openraft::{AnyError, ErrorSubject, ErrorVerb, NodeId, StorageError, StorageIOError};

/// An error of the database, of a file, or of bytes that cannot be read.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

pub type Outcome<T> = Result<T, Failure>;

/// What a call was about, for the error that Raft gets if it fails. Raft then ends the node.
pub fn failing<N: NodeId>(
    subject: ErrorSubject<N>,
    verb: ErrorVerb,
) -> impl FnOnce(Failure) -> StorageError<N> {
    move |failure| {
        let source = AnyError::from_dyn(failure.as_ref(), None);
        StorageError::IO { source: StorageIOError::new(subject, verb, source) }
    }
}
