//! Processor time of this process, of its threads, and of the other programs.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::time::Instant;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::unistd::{SysconfVar, sysconf};
use serde::Serialize;

/// Threads whose names begin so work for the engine beside its clients.
const BACKGROUND: &str = "pantile-";

/// Those of them that take memory from the system ahead of its use.
const MEMORY: [&str; 2] = ["pantile-ahead", "pantile-prefill"];

/// The share of the processors' time above which other programs make the figures
/// of a run doubtful.
pub const MOST_FOR_OTHERS: f64 = 0.05;

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
    /// The share of all processors' time that other programs took; none where the
    /// system does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_share: Option<f64>,
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
    others: Option<Others>,
}

impl CpuTime {
    /// Up to now; the caller is the measuring thread.
    pub fn now() -> Self {
        let (user, system) = own_times();
        Self {
            process: times(UsageWho::RUSAGE_SELF),
            measuring: user + system,
            engine: engine(),
            others: Others::watch(),
        }
    }

    /// What was taken since an `earlier` moment.
    pub fn since(&self, earlier: &Self) -> Cpu {
        let before = |id| earlier.engine.get(id).map_or(0.0, |thread| thread.seconds);
        let engine = |takes_memory| {
            let threads = self.engine.iter().filter(|(_, thread)| thread.takes_memory == takes_memory);
            threads.fold(0.0, |sum, (id, thread)| sum + thread.seconds - before(id))
        };
        let user_seconds = self.process.0 - earlier.process.0;
        let system_seconds = self.process.1 - earlier.process.1;
        let others = earlier.others.zip(self.others);
        Cpu {
            user_seconds,
            system_seconds,
            measuring_seconds: self.measuring - earlier.measuring,
            memory_seconds: engine(true),
            background_seconds: engine(false),
            others_share: others.map(|(from, to)| to.share_since(&from, user_seconds + system_seconds)),
        }
    }
}

/// How much of the machine was taken up to a moment.
#[derive(Clone, Copy, Debug)]
struct Others {
    at: Instant,
    machine: Busy,
}

/// The processors of a machine, and the seconds for which they have worked
/// since it started.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Busy {
    processors: f64,
    seconds: f64,
}

impl Others {
    /// Up to now, if the system tells.
    fn watch() -> Option<Self> {
        let ticks = sysconf(SysconfVar::CLK_TCK).ok()??;
        let machine = busy(&fs::read_to_string("/proc/stat").ok()?, ticks as f64)?;
        Some(Self { at: Instant::now(), machine })
    }

    /// The share of all processors' time that other programs, or other machines on
    /// the same processors, took since an `earlier` moment, in which this process took
    /// `ours` seconds.
    fn share_since(&self, earlier: &Self, ours: f64) -> f64 {
        let all = (self.at - earlier.at).as_secs_f64() * self.machine.processors;
        let busy = self.machine.seconds - earlier.machine.seconds;
        if all > 0.0 { ((busy - ours) / all).clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// Reads Linux' `/proc/stat`, whose counts are in ticks.
fn busy(stat: &str, ticks_per_second: f64) -> Option<Busy> {
    const IDLE: usize = 3;
    const WAITING_FOR_DEVICES: usize = 4;
    /// Behind it are times of guests, which the others contain.
    const STOLEN: usize = 7;
    let mut lines = stat.lines();
    let ticks = lines.next()?.strip_prefix("cpu ")?.split_whitespace().take(STOLEN + 1).enumerate();
    let ticks = ticks.filter(|(n, _)| ![IDLE, WAITING_FOR_DEVICES].contains(n));
    let ticks = ticks.map(|(_, text)| text.parse::<u64>().ok()).sum::<Option<u64>>()?;
    let processors = lines.take_while(|line| line.starts_with("cpu")).count();
    (processors > 0).then(|| Busy { processors: processors as f64, seconds: ticks as f64 / ticks_per_second })
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
    use std::time::Duration;

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
            others_share: None,
        };
        assert!((cpu.client_seconds() - 3.125).abs() < 1e-12);
    }

    #[test]
    fn what_others_take_is_what_is_neither_idle_nor_ours() {
        let stat = |user, stolen| {
            format!("cpu  {user} 20 30 9999 9999 1 2 {stolen} 77 77\ncpu0 1\ncpu1 1\nintr 5\n")
        };
        let before = busy(&stat(100, 7), 100.0).unwrap();
        assert_eq!(before, Busy { processors: 2.0, seconds: 1.6 });
        let at = Instant::now();
        let earlier = Others { at, machine: before };
        let machine = busy(&stat(380, 27), 100.0).unwrap();
        let later = Others { at: at + Duration::from_secs(2), machine };
        assert!((later.share_since(&earlier, 2.0) - 0.25).abs() < 1e-9);
        // Counts are coarser than times.
        assert_eq!(later.share_since(&earlier, 4.0), 0.0);
        assert_eq!(earlier.share_since(&earlier, 0.0), 0.0);
        for other in ["", "cpu  1 2 x 4 5 6 7 8\ncpu0 1\n", "cpu  1 2 3 4 5 6 7 8\n"] {
            assert_eq!(busy(other, 100.0), None, "{other}");
        }
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
