//! Clients that send the transactions they draw to threads of the node that has the data.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use pantile::{Database, Isolation};
use pantile_testkit::Random;

use super::map::SoftPartition;
use crate::error::{Error, Result};
use crate::load::Context;
use crate::record::Consistency;
use crate::runner::{Client, Outcome};
use crate::workload::{Found, LoadedRow, Workload};

/// Transactions that wait for a thread that has as much to do as it can. It is the load of a node of which all
/// threads have as many.
const WAITING: usize = 16;

/// Partitions are mapped again after this many transactions.
const MAPPED_EACH: u64 = 8192;

/// A client whose transactions others can run.
pub trait Assign: Client {
    /// A transaction with all its inputs.
    type Drawn: Send;

    /// From here on it draws transactions for all of the data, and not for a part that is its own.
    fn draw_for_all(&mut self);

    /// A copy of what was drawn.
    fn drawn(&self) -> Self::Drawn;

    /// The next attempt is at this, which another has drawn.
    fn attempt_next(&mut self, drawn: Self::Drawn);

    /// Adds the partition keys of what was drawn, one for each request of which it is known.
    fn partition_keys(&self, keys: &mut Vec<u64>);
}

/// A workload whose transactions are assigned to threads by Zen+'s Algorithm 3.
#[derive(Clone, Debug)]
pub struct ByPartition<W>(pub W);

/// What clients share.
struct Shared<D> {
    soft: SoftPartition,
    /// For each thread, transactions and the numbers of their kinds.
    threads: Vec<(Sender<(usize, D)>, AtomicUsize)>,
    drawn: AtomicU64,
}

impl<D> Shared<D> {
    /// The load of each node.
    fn load(&self) -> Vec<f64> {
        let load = |node: usize| {
            let waiting = |thread: usize| self.threads[thread].1.load(Ordering::Relaxed);
            let (waiting, threads) =
                self.soft.threads_of(node).fold((0, 0), |(sum, n), thread| (sum + waiting(thread), n + 1));
            waiting as f64 / (WAITING * threads) as f64
        };
        (0..self.soft.nodes()).map(load).collect()
    }
}

/// A client that runs what is assigned to its thread.
pub struct Assigned<C: Assign> {
    client: C,
    thread: usize,
    assigned: Receiver<(usize, C::Drawn)>,
    shared: Arc<Shared<C::Drawn>>,
    random: Random,
    keys: Vec<u64>,
}

impl<C: Assign> Assigned<C> {
    /// Each client with the number of its thread, for threads that take nodes in turn.
    fn all(clients: Vec<C>, nodes: usize) -> Result<Vec<Self>> {
        if clients.iter().any(Client::is_analytical) {
            return Err(Error::Setting("no client may run queries where transactions are assigned".into()));
        }
        let count = clients.len();
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
        let shared = Arc::new(Shared {
            soft: SoftPartition::new(count, nodes.min(count)),
            threads: senders.into_iter().map(|sender| (sender, AtomicUsize::new(0))).collect(),
            drawn: AtomicU64::new(0),
        });
        let assigned = |((thread, mut client), assigned): ((usize, C), _)| {
            client.draw_for_all();
            let random = Random::new(0, (1 << 33) + thread as u64);
            Self { client, thread, assigned, shared: Arc::clone(&shared), random, keys: Vec::new() }
        };
        Ok(clients.into_iter().enumerate().zip(receivers).map(assigned).collect())
    }

    /// The thread for what the client has drawn.
    fn assign(&mut self) -> usize {
        let shared = &self.shared;
        self.keys.clear();
        self.client.partition_keys(&mut self.keys);
        let thread = shared.soft.assign(&shared.load(), &self.keys, &mut self.random);
        if (shared.drawn.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(MAPPED_EACH) {
            shared.soft.map();
        }
        thread
    }
}

impl<C: Assign> Client for Assigned<C> {
    /// What others have sent comes first. Until it draws one of its own it draws for others; nobody waits
    /// for a thread that has enough to do, because its node gets no more then.
    fn draw(&mut self) -> usize {
        loop {
            if let Ok((kind, drawn)) = self.assigned.try_recv() {
                self.shared.threads[self.thread].1.fetch_sub(1, Ordering::Relaxed);
                self.client.attempt_next(drawn);
                return kind;
            }
            let kind = self.client.draw();
            let thread = self.assign();
            if thread == self.thread {
                return kind;
            }
            let (sender, waiting) = &self.shared.threads[thread];
            waiting.fetch_add(1, Ordering::Relaxed);
            // It has gone if the run ends, and nobody asks for the transaction.
            let _ = sender.send((kind, self.client.drawn()));
        }
    }

    fn attempt(&mut self) -> Result<Outcome> {
        self.client.attempt()
    }
}

impl<W: Workload<Client: Assign>> Workload for ByPartition<W> {
    type Client = Assigned<W::Client>;
    type Data = W::Data;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn config(&self) -> serde_json::Value {
        let mut config = self.0.config();
        if let Some(config) = config.as_object_mut() {
            config.insert("by_partition".into(), true.into());
        }
        config
    }

    fn kinds(&self) -> &'static [&'static str] {
        self.0.kinds()
    }

    fn orders(&self) -> Option<usize> {
        self.0.orders()
    }

    fn most_bytes_per_second(&self) -> f64 {
        self.0.most_bytes_per_second()
    }

    fn find(&self, db: &Database) -> Result<Found<Self::Data>> {
        self.0.find(db)
    }

    fn load(&self, db: &Database, context: &Context<'_>) -> Result<Self::Data> {
        self.0.load(db, context)
    }

    fn clients(
        &self,
        db: &Database,
        data: &Self::Data,
        count: usize,
        isolation: Isolation,
    ) -> Result<Vec<Self::Client>> {
        Assigned::all(self.0.clients(db, data, count, isolation)?, pantile_nvm::NODES)
    }

    fn random_row<'d>(&self, data: &'d Self::Data, random: &mut Random) -> LoadedRow<'d> {
        self.0.random_row(data, random)
    }

    fn check(&self, db: &Database, data: &Self::Data, context: &Context<'_>) -> Result<Option<Consistency>> {
        self.0.check(db, data, context)
    }
}

#[cfg(test)]
#[path = "assigned_test.rs"]
mod tests;
