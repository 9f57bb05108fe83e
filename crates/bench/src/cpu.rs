//! Processor time of this process and of its threads.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::Serialize;

/// Threads whose names begin so work for the engine beside its clients.
const BACKGROUND: &str = "pantile-";

/// Those of them that take memory from the system ahead of its use.
const MEMORY: [&str; 2] = ["pantile-ahead", "pantile-prefill"];

/// Processor time taken between two moments, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Cpu {
    /// In the program.
    pub user_seconds: f64,
    /// In the system on its behalf.
    pub system_seconds: f64,
    /// The part of both that the measuring thread took.
    pub measuring_seconds: f64,
    /// The part that the engine's own threads took for taking memory from the
    /// system; 0 where the system does not tell, as below.
    pub memory_seconds: f64,
    /// The part that they took for anything else.
    pub background_seconds: f64,
}

impl Cpu {
    /// What is left for the clients.
    pub fn client_seconds(&self) -> f64 {
        let all = self.user_seconds + self.system_seconds;
        (all - self.measuring_seconds - self.memory_seconds - self.background_seconds).max(0.0)
    }
}

/// Processor time up to a moment.
#[derive(Clone, Debug, Default)]
pub struct CpuTime {
    process: (f64, f64),
    measuring: f64,
    /// The engine's own threads that live.
    engine: HashMap<OsString, Thread>,
}

impl CpuTime {
    /// Up to now; the caller is the measuring thread.
    pub fn now() -> Self {
        let (user, system) = own_times();
        Self { process: times(UsageWho::RUSAGE_SELF), measuring: user + system, engine: engine() }
    }

    /// What was taken since an `earlier` moment.
    pub fn since(&self, earlier: &Self) -> Cpu {
        let before = |id| earlier.engine.get(id).map_or(0.0, |thread| thread.seconds);
        let engine = |takes_memory| {
            let threads = self.engine.iter().filter(|(_, thread)| thread.takes_memory == takes_memory);
            threads.fold(0.0, |sum, (id, thread)| sum + thread.seconds - before(id))
        };
        Cpu {
            user_seconds: self.process.0 - earlier.process.0,
            system_seconds: self.process.1 - earlier.process.1,
            measuring_seconds: self.measuring - earlier.measuring,
            memory_seconds: engine(true),
            background_seconds: engine(false),
        }
    }
}

/// A thread of the engine.
#[derive(Clone, Copy, Debug)]
struct Thread {
    takes_memory: bool,
    seconds: f64,
}

/// User and system time, in seconds; it cannot fail for what is asked here.
fn times(who: UsageWho) -> (f64, f64) {
    getrusage(who).map_or((0.0, 0.0), |usage: Usage| {
        let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        (seconds(usage.user_time()), seconds(usage.system_time()))
    })
}

#[cfg(target_os = "linux")]
fn own_times() -> (f64, f64) {
    times(UsageWho::RUSAGE_THREAD)
}

#[cfg(not(target_os = "linux"))]
fn own_times() -> (f64, f64) {
    (0.0, 0.0)
}

/// The engine's own threads.
fn engine() -> HashMap<OsString, Thread> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return HashMap::new() };
    let known = |thread: fs::DirEntry| {
        let name = fs::read_to_string(thread.path().join("comm")).ok()?;
        let ran = || fs::read_to_string(thread.path().join("schedstat")).ok();
        let nanoseconds = first_number(&name.starts_with(BACKGROUND).then(ran)??)?;
        let takes_memory = MEMORY.contains(&name.trim_end());
        Some((thread.file_name(), Thread { takes_memory, seconds: nanoseconds / 1e9 }))
    };
    threads.flatten().filter_map(known).collect()
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn threads_are_told_apart() {
        use std::sync::mpsc::channel;
        use std::thread;

        /// Works until this thread has taken a hundredth of a second.
        fn work() {
            let taken = || {
                let (user, system) = own_times();
                user + system
            };
            let begin = taken();
            while taken() - begin < 0.01 {}
        }

        let before = CpuTime::now();
        let (worked, hears) = channel();
        let (end, ends) = channel::<()>();
        let background = thread::Builder::new().name("pantile-test".into());
        let background = background.spawn(move || {
            work();
            worked.send(()).unwrap();
            ends.recv().unwrap();
        });
        thread::spawn(work).join().unwrap();
        hears.recv().unwrap();
        work();
        let cpu = CpuTime::now().since(&before);
        end.send(()).unwrap();
        background.unwrap().join().unwrap();
        assert!(cpu.background_seconds >= 0.005, "{cpu:?}");
        assert!(cpu.measuring_seconds >= 0.01, "{cpu:?}");
        assert!(cpu.client_seconds() >= 0.009, "{cpu:?}");
    }

    #[test]
    fn what_is_left_is_the_clients() {
        let cpu = Cpu {
            user_seconds: 3.0,
            system_seconds: 1.0,
            measuring_seconds: 0.5,
            memory_seconds: 0.125,
            background_seconds: 0.25,
        };
        assert!((cpu.client_seconds() - 3.125).abs() < 1e-12);
    }

    #[test]
    fn a_thread_that_ends_takes_nothing_from_others() {
        let thread =
            |&(id, takes_memory, seconds): &(&str, bool, f64)| (id.into(), Thread { takes_memory, seconds });
        let at = |threads: &[(&str, bool, f64)]| CpuTime {
            engine: threads.iter().map(thread).collect(),
            ..CpuTime::default()
        };
        let before = at(&[("1", false, 5.0), ("2", false, 1.0), ("4", true, 2.0)]);
        let after = at(&[("2", false, 1.5), ("3", false, 0.25), ("4", true, 2.5)]);
        let cpu = after.since(&before);
        assert_eq!((cpu.background_seconds, cpu.memory_seconds), (0.75, 0.5));
    }
}
