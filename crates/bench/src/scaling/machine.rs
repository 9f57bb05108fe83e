//! Machines that throughput is predicted for.

use pantile_nvm::NvmConfig;

use crate::machine;

/// What a core does with all its hardware threads busy, in units of what it
/// does with one: an assumption, since it cannot be measured on a machine
/// without such threads. Marr et al. 2002
/// ("Hyper-Threading Technology Architecture and Microarchitecture") report
/// up to 1.3 for servers.
pub const ASSUMED_SMT_YIELD: f64 = 1.3;

/// How many times longer a line takes between sockets than within one: an
/// assumption; two to three times is usual on machines of two sockets (David,
/// Guerraoui and Trigonakis, SOSP 2013, "Everything You Always Wanted to Know
/// About Synchronization but Were Afraid to Ask", table 2).
pub const ASSUMED_FAR_TRANSFER: f64 = 2.5;

/// A machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Sockets; threads spread evenly over them.
    pub sockets: usize,
    /// Cores of a socket.
    pub cores_per_socket: usize,
    /// Hardware threads of a core.
    pub threads_per_core: usize,
    /// Work of a core with all hardware threads busy, in units of that with one.
    pub smt_yield: f64,
    /// How fast a core is, in units of the one that costs were measured on.
    pub core_speed: f64,
    /// Seconds that a line takes between two cores of a socket.
    pub near_transfer: f64,
    /// Seconds that it takes between sockets.
    pub far_transfer: f64,
    /// Its persistent memory.
    pub memory: Memory,
}

/// The persistent memory of a machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Memory {
    /// What costs were measured on: one emulated device for writes, and waits
    /// for reads that no thread shares with another.
    AsMeasured,
    /// Modules, each with its part of the addresses; what one can do follows
    /// from what DRAM in its place could, by the shares of the medium.
    Modules {
        /// How many.
        count: usize,
        /// The DRAM.
        dram: Dram,
    },
}

/// What DRAM on one channel can do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dram {
    /// Bytes read a second.
    pub read_bytes_per_s: f64,
    /// Bytes written a second.
    pub write_bytes_per_s: f64,
    /// Seconds until a random read is there.
    pub latency_seconds: f64,
}

/// The channel of DRAM beside which `nvm:optane`'s shares give the 6.6 GB/s
/// read and 2.3 GB/s written that one module of Optane memory does, at a
/// DRAM latency of 101 ns for random reads (Yang et al., FAST 2020, "An
/// Empirical Guide to the Behavior and Use of Scalable Persistent Memory",
/// section 3).
pub const DRAM_BESIDE_OPTANE: Dram =
    Dram { read_bytes_per_s: 13.2e9, write_bytes_per_s: 7.67e9, latency_seconds: 101e-9 };

/// What all modules of a memory do for a transaction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Modules {
    /// How many work side by side.
    pub count: usize,
    /// Bytes a second that one reads.
    pub read_bytes_per_s: f64,
    /// Bytes a second that one writes.
    pub write_bytes_per_s: f64,
    /// Seconds that a read takes longer than from DRAM.
    pub read_extra: f64,
}

impl Machine {
    /// This machine, on which a line takes this long between two cores.
    pub fn here(transfer: f64) -> Self {
        Self {
            name: machine::describe(),
            sockets: 1,
            cores_per_socket: machine::cores(),
            threads_per_core: 1,
            smt_yield: 1.0,
            core_speed: 1.0,
            near_transfer: transfer,
            far_transfer: transfer,
            memory: Memory::AsMeasured,
        }
    }

    /// The machine of TB-Collect (5.1): one Xeon Gold 5218R, six modules. Its
    /// cores and transfers are taken to be as fast as those measured.
    pub fn tb_collect(transfer: f64) -> Self {
        Self {
            name: "Xeon Gold 5218R, 20 cores, 40 threads, 6 modules".into(),
            sockets: 1,
            cores_per_socket: 20,
            threads_per_core: 2,
            smt_yield: ASSUMED_SMT_YIELD,
            memory: Memory::Modules { count: 6, dram: DRAM_BESIDE_OPTANE },
            ..Self::here(transfer)
        }
    }

    /// The machine of Steam (5): two Xeon E5-2660 v2, without persistent
    /// memory. Cores and transfers within a socket as above.
    pub fn steam(transfer: f64) -> Self {
        Self {
            name: "2 Xeon E5-2660 v2, 20 cores, 40 threads".into(),
            sockets: 2,
            cores_per_socket: 10,
            threads_per_core: 2,
            smt_yield: ASSUMED_SMT_YIELD,
            far_transfer: transfer * ASSUMED_FAR_TRANSFER,
            ..Self::here(transfer)
        }
    }

    /// Cores.
    pub fn cores(&self) -> usize {
        self.sockets * self.cores_per_socket
    }

    /// Hardware threads.
    pub fn hardware_threads(&self) -> usize {
        self.cores() * self.threads_per_core
    }

    /// How many times longer one of `active` threads takes for its work than
    /// on a core of its own; at most as many as there are hardware threads.
    pub fn crowding(&self, active: usize) -> f64 {
        let (active, cores) = (active as f64, self.cores() as f64);
        let doubled = (active - cores).max(0.0);
        // Of a core, every further thread adds the same.
        let per_thread = (self.smt_yield - 1.0) / (self.threads_per_core as f64 - 1.0).max(1.0);
        active / (active.min(cores) + doubled * per_thread)
    }

    /// Mean seconds that a line takes which any of the other `active` threads may have.
    pub fn transfer(&self, active: usize) -> f64 {
        let others = active as f64 - 1.0;
        if others <= 0.0 {
            return self.near_transfer;
        }
        let far = (active as f64 * (1.0 - 1.0 / self.sockets as f64) / others).min(1.0);
        self.near_transfer + far * (self.far_transfer - self.near_transfer)
    }
}

impl Memory {
    /// What its modules do as memory of this configuration, on a machine of this number of
    /// hardware threads; `None` of one that is as measured.
    pub fn modules(&self, config: NvmConfig, threads: usize) -> Option<Modules> {
        let Memory::Modules { count, dram } = *self else { return None };
        let (read, write) = match config.of_a_thread() {
            None => (config.speed.read * dram.read_bytes_per_s, config.speed.write * dram.write_bytes_per_s),
            Some(of_each) => {
                let each = threads as f64 / count as f64;
                (of_each.read * each, of_each.write * each)
            }
        };
        Some(Modules {
            count,
            read_bytes_per_s: read,
            write_bytes_per_s: write,
            read_extra: dram.latency_seconds * (dram.read_bytes_per_s / read - 1.0).max(0.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs().max(1e-9)
    }

    #[test]
    fn cores_are_crowded_only_when_all_are_taken() {
        let machine = Machine::tb_collect(1e-7);
        assert!(close(machine.crowding(1), 1.0) && close(machine.crowding(20), 1.0));
        // 40 threads do the work of 26.
        assert!(close(machine.crowding(40), 40.0 / 26.0));
        assert!(close(machine.crowding(30), 30.0 / 23.0));
        let here = Machine::here(1e-7);
        assert!(close(here.crowding(here.hardware_threads()), 1.0));
    }

    #[test]
    fn lines_come_from_both_sockets() {
        let machine = Machine::steam(1e-7);
        // Of two threads each has a socket; of forty, 20 of 39 others are far.
        assert!(close(machine.transfer(2), 2.5e-7));
        assert!(close(machine.transfer(40), 1e-7 + 1.5e-7 * 20.0 / 39.0));
        assert!(close(Machine::tb_collect(1e-7).transfer(40), 1e-7));
    }

    #[test]
    fn modules_of_optane_do_what_was_measured_of_them() {
        let memory = Machine::tb_collect(1e-7).memory;
        let modules = memory.modules(NvmConfig::OPTANE, 40).unwrap();
        assert_eq!(modules.count, 6);
        assert!((modules.read_bytes_per_s - 6.6e9).abs() < 1e8);
        assert!((modules.write_bytes_per_s - 2.3e9).abs() < 1e8);
        assert!(close(modules.read_extra, 101e-9));
        // What each of forty threads has of them makes six modules again.
        let again = memory.modules(NvmConfig::OPTANE_40, 40).unwrap();
        assert!((again.read_bytes_per_s - 6.6e9).abs() < 1e8);
        assert!((again.write_bytes_per_s - 2.3e9).abs() < 1e8);
        assert!(close(memory.modules(NvmConfig::E, 40).unwrap().read_extra, 0.0));
        assert_eq!(Memory::AsMeasured.modules(NvmConfig::E, 40), None);
    }
}
