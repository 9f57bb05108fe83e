//! Runs through a SQL server. A script of the repository makes one
//! (scripts/mariadb/tpcc); here it is found, called and understood.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pantile_bench::machine;

use crate::measurement::{KindSummary, Measurement, Second};
use crate::spec::RunSpec;

/// The script, from the repository's directory.
const SCRIPT: &str = "scripts/mariadb/tpcc";

/// Why there is no run: what is missing, and what installs it.
pub const MISSING: &str = "there is no SQL server here (scripts/mariadb/setup fetches one, and scripts/mariadb/build makes the plugin)";

/// How often a run looks whether it is to end early.
const LOOK: Duration = Duration::from_millis(50);

/// The script that makes a run, if there are a server and the plugin.
///
/// # Errors
/// What is missing, in words.
pub fn script() -> Result<PathBuf, String> {
    // The repository is that of the current directory or of this program.
    let places = [env::current_dir(), env::current_exe()].into_iter().filter_map(Result::ok);
    let above: Vec<_> =
        places.flat_map(|place| place.ancestors().map(Path::to_owned).collect::<Vec<_>>()).collect();
    let root = above.into_iter().find(|root| root.join(SCRIPT).is_file()).ok_or(MISSING)?;
    let server = env::var_os("PANTILE_MARIADB").map_or_else(|| root.join("target/mariadb"), PathBuf::from);
    let is_there = ["ready", "plugins/ha_pantile.so"].iter().all(|file| server.join(file).exists());
    if !is_there {
        return Err(MISSING.to_owned());
    }
    // A record says from which commit its engine is.
    let plugin = fs::read_to_string(server.join("plugins/commit")).unwrap_or_default();
    is_of_commit(plugin.trim(), machine::commit())?;
    Ok(root.join(SCRIPT))
}

fn is_of_commit(plugin: &str, program: &str) -> Result<(), String> {
    match plugin == program {
        true => Ok(()),
        false => Err(format!(
            "the server's plugin is of commit {plugin:?} and this program of {program:?} (scripts/mariadb/build makes it anew)"
        )),
    }
}

/// Makes a run through a server, with the seed of its data and transactions. `stop` is raised to end it early; then there is
/// no measurement.
///
/// # Errors
/// Why the run failed, in one line.
pub fn run(run: &RunSpec, seed: u64, stop: &AtomicBool) -> Result<Option<Measurement>, String> {
    let mut command = Command::new(script()?);
    command.args(run.key().split_whitespace().skip(1)).args(["--seed", &seed.to_string()]);
    let output = call(&mut command, stop).map_err(|error| format!("{SCRIPT} cannot be called: {error}"))?;
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let (told, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        let last = complaints.lines().rfind(|line| !line.trim().is_empty());
        return Err(last.unwrap_or("the script says no reason").to_owned());
    }
    let measurement = understand(&told);
    measurement.map(Some).ok_or_else(|| format!("{SCRIPT} has not said what it measured"))
}

/// The output of a command, which is asked to end when `stop` is raised.
fn call(command: &mut Command, stop: &AtomicBool) -> io::Result<Output> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let id = child.id().to_string();
    let waiting = thread::spawn(move || child.wait_with_output());
    let mut was_asked = false;
    while !waiting.is_finished() {
        if stop.load(Ordering::Relaxed) && !was_asked {
            was_asked = true;
            // It stops its server before it ends.
            Command::new("kill").args(["-s", "TERM", &id]).status()?;
        }
        thread::sleep(LOOK);
    }
    waiting.join().unwrap_or_else(|_| Err(io::Error::other("the thread that waits for it has ended")))
}

/// What the script prints, as a measurement. Percentiles of kinds are not among
/// it and stay 0.
fn understand(told: &str) -> Option<Measurement> {
    let lines: Vec<(&str, Vec<f64>)> = told
        .lines()
        .map(|line| {
            let (name, numbers) = line.split_once(' ')?;
            Some((name, numbers.split(' ').map(|number| number.parse().ok()).collect::<Option<_>>()?))
        })
        .collect::<Option<_>>()?;
    let first = |wanted: &str| lines.iter().find(|(name, _)| *name == wanted)?.1.first().copied();
    let (seconds, transactions) = (first("seconds")?, first("transactions")?);
    let mut measurement = Measurement {
        txn_per_s: transactions / seconds,
        transactions: transactions as u64,
        others_share: first("others"),
        ..Measurement::default()
    };
    for (name, numbers) in &lines {
        match (*name, numbers.as_slice()) {
            ("second", &[seconds, transactions, medium, memory]) => measurement.seconds.push(Second {
                seconds,
                transactions: transactions as u64,
                medium_bytes: medium as u64,
                dram_bytes: memory as u64,
                ..Second::default()
            }),
            (kind, &[count, micros]) => {
                let mean = if count > 0.0 { micros / count } else { 0.0 };
                let summary = KindSummary { per_s: count / seconds, mean, p95: 0.0, p99: 0.0 };
                measurement.kinds.insert(kind.to_owned(), summary);
            }
            _ => {}
        }
    }
    Some(measurement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_script_prints_is_understood() {
        let told = "seconds 2.5\ntransactions 500\nothers 0.125\nretries 3\nnew_order 200 400000\ndelivery 0 0\n\
                    second 1.01 190 4000000 9000\nsecond 1.00 210 6000000 9500\n";
        let measurement = understand(told).unwrap();
        assert_eq!((measurement.txn_per_s, measurement.transactions), (200.0, 500));
        assert_eq!(measurement.others_share, Some(0.125));
        let kinds: Vec<_> =
            measurement.kinds.iter().map(|(name, kind)| (&**name, kind.per_s, kind.mean)).collect();
        assert_eq!(kinds, [("delivery", 0.0, 0.0), ("new_order", 80.0, 2000.0)]);
        assert_eq!(measurement.growth(), Some(2_000_500.0));
        assert_eq!(measurement.seconds[1].transactions, 210);
    }

    #[test]
    fn a_plugin_of_another_commit_is_refused() {
        assert_eq!(is_of_commit("12ab", "12ab"), Ok(()));
        let why = is_of_commit("", "12ab").unwrap_err();
        assert!(why.contains("12ab") && why.contains("scripts/mariadb/build"), "{why}");
    }

    #[test]
    fn what_it_does_not_say_is_no_measurement() {
        for told in
            ["", "seconds 2.5\n", "seconds 2.5\ntransactions many\n", "an error\nseconds 1\ntransactions 1\n"]
        {
            assert_eq!(understand(told), None, "{told}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_call_ends_by_itself_or_when_it_is_asked() {
        let stop = AtomicBool::new(false);
        let output = call(Command::new("sh").args(["-c", "echo one; echo two >&2; exit 3"]), &stop).unwrap();
        assert_eq!((&*output.stdout, &*output.stderr), (&b"one\n"[..], &b"two\n"[..]));
        assert_eq!(output.status.code(), Some(3));
        stop.store(true, Ordering::Relaxed);
        let output = call(Command::new("sleep").arg("600"), &stop).unwrap();
        assert!(!output.status.success());
    }
}
