//! What flags can be set to, and how their text is read.

use std::time::Duration;

use clap::ValueEnum;
use pantile::lab::Protocol;
use pantile::{Collector, Durability, GcOptions, Isolation, Pacing};
use pantile_bench::settings::NEVER;
use pantile_bench::settings::OWN_PROTOCOL;
use pantile_bench::ycsb::Beside;
use pantile_bench::ycsb::keys::THETA;

/// One name of `--gc`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Collectors {
    /// This one.
    One(Collector),
    /// Every collector of the engine.
    All,
}

/// One name of `--protocol`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Protocols {
    /// This one, or the engine's own.
    One(Option<Protocol>),
    /// The engine's own and every one of the laboratory.
    All,
}

/// `--isolation`.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum IsolationArg {
    /// As if transactions ran one after the other.
    Serializable,
    /// Each reads one moment; the first committer wins.
    Snapshot,
    /// Each statement reads what is committed.
    ReadCommitted,
}

impl From<IsolationArg> for Isolation {
    fn from(arg: IsolationArg) -> Self {
        match arg {
            IsolationArg::Serializable => Isolation::Serializable,
            IsolationArg::Snapshot => Isolation::Snapshot,
            IsolationArg::ReadCommitted => Isolation::ReadCommitted,
        }
    }
}

/// `--durability`.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum DurabilityArg {
    /// When it is on the medium.
    Sync,
    /// When it is on the medium; commits that arrive meanwhile share one sync.
    Group,
    /// At once; a power failure may lose the last commits, and leaves an earlier consistent state.
    None,
}

impl From<DurabilityArg> for Durability {
    fn from(arg: DurabilityArg) -> Self {
        match arg {
            DurabilityArg::Sync => Durability::Sync,
            DurabilityArg::Group => Durability::Group,
            DurabilityArg::None => Durability::None,
        }
    }
}

pub fn percent() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(0..=100)
}

/// Reads a number that is at least `least`.
pub fn number(text: &str, least: f64) -> Result<f64, String> {
    // More seconds than a year are a typing error, and overflow the clocks.
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && (least..=3e7).contains(&number) => Ok(number),
        Ok(_) if least > 0.0 => Err("it must be above 0, and at most 30000000".into()),
        Ok(_) => Err("it must be at least 0, and at most 30000000".into()),
        Err(_) => Err("it is not a number".into()),
    }
}

pub fn theta(text: &str) -> Result<f64, String> {
    let theta = text.parse().map_err(|_| "it is not a number".to_owned())?;
    if THETA.contains(&theta) { Ok(theta) } else { Err("it must be from 0 to 1".into()) }
}

pub fn beside(text: &str) -> Result<Beside, String> {
    let (kind, tuples) = text.split_once(':').ok_or("it is scans:N or updates:N")?;
    let tuples = tuples.parse().map_err(|_| format!("{tuples:?} is not a number of tuples"))?;
    match kind {
        "scans" => Ok(Beside::Scans(tuples)),
        "updates" => Ok(Beside::Updates(tuples)),
        _ => Err("it is scans:N or updates:N".into()),
    }
}

pub fn tries(text: &str) -> Result<u32, String> {
    match text {
        "never" => Ok(NEVER),
        _ => match text.parse::<u32>() {
            Ok(tries) if tries > 0 => Ok(tries),
            _ => Err("it is a number of failures, from 1 on, or never".into()),
        },
    }
}

pub fn workload(text: &str) -> Result<char, String> {
    match text.to_ascii_uppercase().as_bytes() {
        [letter @ b'A'..=b'F'] => Ok(char::from(*letter)),
        _ => Err("the standard workloads are A to F".into()),
    }
}

pub fn collectors(text: &str) -> Result<Collectors, String> {
    if text == "all" {
        return Ok(Collectors::All);
    }
    pantile_rivals::by_name(text).map(Collectors::One).ok_or_else(|| {
        let known: Vec<_> = pantile_rivals::all().iter().map(|collector| collector.name()).collect();
        format!("there is no collector of this name; there are {} (or all)", known.join(", "))
    })
}

pub fn protocols(text: &str) -> Result<Protocols, String> {
    match text {
        "all" => Ok(Protocols::All),
        OWN_PROTOCOL => Ok(Protocols::One(None)),
        _ => {
            let found = pantile_protocols::by_name(text).map(|protocol| Protocols::One(Some(protocol)));
            found.ok_or_else(|| no_protocol(&[OWN_PROTOCOL]) + " (or all)")
        }
    }
}

/// What is said of a name that no protocol has, beside which there are `others`.
pub fn no_protocol(others: &[&str]) -> String {
    let known = others.iter().copied().chain(pantile_protocols::all().iter().map(|protocol| protocol.name()));
    let known: Vec<_> = known.collect();
    format!("there is no protocol of this name; there are {}", known.join(", "))
}

/// Reads a number that the engine accepts for one of its options.
fn gc_number<T: Copy>(
    text: &str,
    read: impl FnOnce(f64) -> Option<T>,
    with: impl FnOnce(T) -> GcOptions,
) -> Result<T, String> {
    let number = text.parse().ok().and_then(read).ok_or("it is not a number that makes sense")?;
    with(number).check().map(|()| number)
}

pub fn gc_theta(text: &str) -> Result<f64, String> {
    gc_number(text, Some, |theta| GcOptions { theta, ..GcOptions::default() })
}

pub fn gc_target(text: &str) -> Result<f64, String> {
    gc_number(text, Some, |space_target| GcOptions { space_target, ..GcOptions::default() })
}

pub fn gc_queue(text: &str) -> Result<f64, String> {
    gc_number(text, Some, |queue_share| GcOptions { queue_share, ..GcOptions::default() })
}

pub fn gc_epoch(text: &str) -> Result<Duration, String> {
    let read = |millis: f64| Duration::try_from_secs_f64(millis / 1e3).ok();
    gc_number(text, read, |epoch| GcOptions { epoch, ..GcOptions::default() })
}

pub fn gc_interval(text: &str) -> Result<Duration, String> {
    let read = |millis: f64| Duration::try_from_secs_f64(millis / 1e3).ok();
    gc_number(text, read, |interval| GcOptions { interval, ..GcOptions::default() })
}

pub fn gc_pacing(text: &str) -> Result<Pacing, String> {
    let known = Pacing::ALL.iter().copied();
    known.clone().find(|pacing| pacing.name() == text).ok_or_else(|| {
        let names: Vec<_> = known.map(Pacing::name).collect();
        format!("there is no pacing of this name; there are {}", names.join(" and "))
    })
}
