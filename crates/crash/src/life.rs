//! One life of a working process, as seen by the process that kills it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::history::{History, Line, Phase};
use crate::plan::Aim;

/// How a life ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Killed during this phase.
    Killed(Phase),
    /// It closed the database before the kill.
    Finished,
    /// By itself, unexpectedly.
    Failed(ExitStatus),
    /// Killed because it had printed nothing for ten minutes.
    Stuck,
}

/// How long steps usually take, learnt from one life for the next.
#[derive(Clone, Copy, Debug)]
pub struct Paces {
    opening: Duration,
    closing: Duration,
}

impl Default for Paces {
    fn default() -> Self {
        Self { opening: Duration::from_millis(10), closing: Duration::from_millis(1) }
    }
}

/// The longest silence of a healthy process.
const SILENCE: Duration = Duration::from_secs(600);
/// How often to check whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Starts a process, kills it as planned, and records what it reports in
/// `history` and in `log`.
///
/// # Errors
/// [`Error::Io`] if the process cannot be started; [`Error::Line`] if it prints
/// a line that cannot be parsed.
pub fn live(
    mut command: Command,
    aim: Aim,
    history: &mut History,
    log: &mut File,
    paces: &mut Paces,
    stop: &AtomicBool,
) -> Result<End> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = Killed(command.spawn().map_err(Error::io("start a working process"))?);
    let stdout = child.0.stdout.take().expect("the output is a pipe");
    let lines = lines_of(stdout);
    let mut watch = Watch { aim, history, log, paces, began: Instant::now(), begun: 0, due: None };
    let stuck = watch.follow(&lines, stop)?;
    if stuck {
        watch.history.failed.push(threads_of(child.0.id()));
    }
    let _ = child.0.kill();
    let status = child.0.wait().map_err(Error::io("wait for a killed process"))?;
    for line in lines {
        watch.take(line)?;
    }
    // Its phase is the last step that it reported to have begun.
    let phase = watch.history.phase;
    watch.history.phase = Phase::Outside;
    Ok(match status.code() {
        None if stuck => End::Stuck,
        None => End::Killed(phase),
        Some(0) => End::Finished,
        Some(_) => End::Failed(status),
    })
}

/// What each thread of a process waits for, as far as the system shows it.
fn threads_of(process: u32) -> String {
    let mut told = Vec::new();
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    for task in tasks.map(|task| task.path()) {
        let read = |name: &str| fs::read_to_string(task.join(name)).unwrap_or_default();
        let status = read("status");
        let state = status.lines().find_map(|line| line.strip_prefix("State:")).unwrap_or("?").trim();
        let (wchan, syscall) = (read("wchan"), read("syscall"));
        let call = syscall.split(' ').next().unwrap_or_default().trim();
        told.push(format!("thread {}: {state}, in {wchan}, system call {call}", told.len()));
    }
    told.join("; ")
}

/// A process that is killed when its owner is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The complete lines of a pipe, as they arrive. An incomplete line is dropped.
fn lines_of(pipe: impl Read + Send + 'static) -> Receiver<Result<Line>> {
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = String::new();
        while pipe.read_line(&mut line).is_ok() && line.ends_with('\n') {
            if send.send(line.trim_end().parse()).is_err() {
                return;
            }
            line.clear();
        }
    });
    receive
}

struct Watch<'a> {
    aim: Aim,
    history: &'a mut History,
    log: &'a mut File,
    paces: &'a mut Paces,
    /// When the current step began.
    began: Instant,
    /// Changes of definitions so far.
    begun: u64,
    /// When to kill.
    due: Option<Instant>,
}

impl Watch<'_> {
    /// Follows a life until its kill is due or it has ended. Returns true if it
    /// is stuck.
    fn follow(&mut self, lines: &Receiver<Result<Line>>, stop: &AtomicBool) -> Result<bool> {
        let mut heard = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let left = self.due.map_or(LOOK, |due| due.saturating_duration_since(Instant::now()).min(LOOK));
            match lines.recv_timeout(left) {
                Ok(line) => {
                    self.take(line)?;
                    heard = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(false),
                Err(RecvTimeoutError::Timeout) if heard.elapsed() > SILENCE => return Ok(true),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.due.is_some_and(|due| due <= Instant::now()) {
                return Ok(false);
            }
        }
        Ok(false)
    }

    fn take(&mut self, line: Result<Line>) -> Result<()> {
        let line = line?;
        writeln!(self.log, "{line}").map_err(Error::io("write the log of acknowledgements"))?;
        self.history.take(&line)?;
        let now = Instant::now();
        match &line {
            Line::Opening | Line::Closing => self.began = now,
            Line::Opened(_) => self.paces.opening = self.began.elapsed(),
            Line::Closed => self.paces.closing = self.began.elapsed(),
            Line::Begin(..) => self.begun += 1,
            _ => {}
        }
        let delay = match (self.aim, &line) {
            (Aim::Opening(share), Line::Opening) => Some(self.paces.opening.mul_f64(share)),
            (Aim::Working(delay), Line::Commit(..)) => Some(delay),
            (Aim::Defining(nth, delay), Line::Begin(..)) if self.begun > nth => Some(delay),
            (Aim::Closing(_, share), Line::Closing) => Some(self.paces.closing.mul_f64(share)),
            _ => None,
        };
        self.due = self.due.or(delay.map(|delay| now + delay));
        Ok(())
    }
}
