//! Predictions: costs and a machine as a network of queues.

use super::costs::Costs;
use super::machine::Machine;
use super::mva::Network;
use crate::settings::Medium;

/// A throughput that is expected, in transactions a second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prediction {
    /// If every transfer between cores is of another line, so that nobody
    /// waits for anybody else's.
    pub txn_per_s: f64,
    /// If all transfers are of one line, which one core at a time can have:
    /// the least that the measured transfers allow.
    pub least_txn_per_s: f64,
}

/// The throughput of this many threads on a machine.
pub fn predict(costs: &Costs, machine: &Machine, threads: usize) -> Prediction {
    let load = Load::new(costs, machine, threads);
    Prediction { txn_per_s: load.throughput(false), least_txn_per_s: load.throughput(true) }
}

/// Seconds that a transaction takes in each place, with this many threads at work.
struct Load {
    /// Threads that have a hardware thread.
    active: usize,
    /// All hardware threads.
    hardware: usize,
    /// Attempts.
    attempts: f64,
    /// Processor time of an attempt, without transfers, with the core shared.
    cpu: f64,
    /// Transfers of an attempt, one after the other.
    transfers: f64,
    medium: Network,
    /// Processor time of the engine's own threads.
    background: f64,
}

impl Load {
    fn new(costs: &Costs, machine: &Machine, threads: usize) -> Self {
        let active = threads.min(machine.hardware_threads());
        // Any of the active threads holds a line with equal probability.
        let elsewhere = 1.0 - 1.0 / active.max(1) as f64;
        Self {
            active,
            hardware: machine.hardware_threads(),
            attempts: 1.0 + costs.aborts * threads.saturating_sub(1) as f64,
            cpu: costs.cpu / machine.core_speed * machine.crowding(active),
            transfers: costs.shared_touches * elsewhere * machine.transfer(active),
            medium: medium(costs, machine),
            background: costs.background / machine.core_speed,
        }
    }

    fn throughput(&self, one_line: bool) -> f64 {
        let Network { mut delay, mut demands } = self.medium.clone();
        delay += self.attempts * self.cpu;
        match one_line {
            false => delay += self.attempts * self.transfers,
            true => demands.push(self.attempts * self.transfers),
        }
        let network = Network { delay: delay.max(0.0), demands };
        let rate = |clients: usize| network.flow(clients).per_second;
        // The engine's own threads take hardware threads from clients when none is free.
        let free = |clients: usize| (self.hardware - clients) as f64 - self.background * rate(clients);
        let clients = (1..=self.active).rev().find(|&clients| free(clients) >= 0.0).unwrap_or(0);
        if clients == self.active {
            return rate(clients);
        }
        // The one client more that there is no room for runs part of the time.
        let gain = rate(clients + 1) - rate(clients);
        rate(clients) + gain * free(clients) / (1.0 + self.background * gain)
    }
}

/// What the medium adds to a transaction's round.
fn medium(costs: &Costs, machine: &Machine) -> Network {
    let io = &costs.io;
    let Medium::Nvm(config) = costs.medium else { return Network::default() };
    let Some(modules) = machine.memory.modules(config, machine.hardware_threads()) else {
        return Network { delay: io.read_wait - io.overlap(), demands: vec![io.device_write] };
    };
    let count = modules.count as f64;
    let write = io.written_bytes / modules.write_bytes_per_s;
    let read = io.units_read * io.unit_bytes / modules.read_bytes_per_s;
    // Several modules as one that is as fast as all and a delay for the rest
    // of the way (Seidmann, Schweitzer and Shalev-Oren 1987). The rest of a
    // read's way is in its latency.
    let rest_of_write = write * (count - 1.0) / count;
    let overlap = match io.device_write > 0.0 {
        true => io.overlap() * (write / io.device_write).min(1.0),
        false => 0.0,
    };
    Network {
        delay: io.units_read * modules.read_extra + rest_of_write - overlap,
        demands: vec![write / count, read / count],
    }
}
