//! The command as scripts use it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output};

use pantile_testkit::Patience;
use serde_json::Value;

const QUICK: &[&str] =
    &["bench", "ycsb", "--tuples", "2000", "--seconds", "0.2", "--warmup", "0.05", "--threads", "2"];

fn pantile(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pantile")).args(args).output().expect("the command runs")
}

fn quick(more: &[&str]) -> Output {
    pantile(&[QUICK, more].concat())
}

/// Runs again until the record shows something: a machine that is busy with
/// something else may not get to it in time.
fn quick_until(more: &[&str], shows: impl Fn(&Value) -> bool) -> (Output, Value) {
    let patience = Patience::new();
    loop {
        let output = quick(&[more, &["--json", "-"]].concat());
        assert!(output.status.success(), "{}", complaint(&output));
        let record: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
        if shows(&record) {
            return (output, record);
        }
        patience.check(|| format!("it never shows that: {record}"));
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// What is said on stderr, but for the warning of a debug build.
fn complaint(output: &Output) -> String {
    let lines = text(&output.stderr).lines();
    lines.filter(|line| !line.starts_with("warning: this is a debug build")).collect::<Vec<_>>().join("\n")
}

fn left_over(dir: &Path) -> usize {
    let entries = dir.read_dir().expect("a directory").flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("pantile-bench.")).count()
}

#[test]
fn a_record_on_stdout_is_json_and_nothing_else() {
    let (output, record) =
        quick_until(&["--medium", "dram"], |record| record["txn_per_s"].as_f64() > Some(0.0));
    assert_eq!((&record["workload"], &record["engine"]), (&"ycsb".into(), &"pantile".into()));
    assert_eq!(record["debug_build"].as_bool().unwrap_or(false), cfg!(debug_assertions));
    let told = text(&output.stderr);
    assert!(told.contains("running dram, tb-collect\n") && told.contains("reclaimed/s"), "{told}");
}

#[test]
fn the_life_of_blocks_can_be_followed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trace");
    let output = quick(&["--medium", "dram", "--quiet", "--trace", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", complaint(&output));
    let trace = std::fs::read_to_string(file).unwrap();
    assert!(trace.lines().all(|line| line.contains("pantile::block")), "{trace}");
    for event in ["Opened", "Sealed"] {
        assert!(trace.contains(&format!("event={event} chunk=")), "{trace}");
    }
}

#[test]
fn a_quiet_run_tells_no_seconds() {
    let output = quick(&["--medium", "dram", "--quiet"]);
    assert!(output.status.success());
    assert_eq!(complaint(&output), "");
    assert!(text(&output.stdout).contains("txn/s"));
}

#[test]
fn collectors_are_compared_with_the_one_named_first() {
    let more = ["--medium", "dram", "--gc", "tb-collect,none", "--long-readers", "2"];
    let (output, records) = quick_until(&more, |records| {
        records
            .as_array()
            .is_some_and(|all| all.iter().all(|record| record["txn_per_s"].as_f64() > Some(0.0)))
    });
    let table = text(&output.stderr);
    let line = |gc: &str| {
        let mut lines = table.lines().skip_while(|line| !line.contains("mean and p99 of transaction"));
        lines.find(|line| line.starts_with(&format!("dram    {gc} "))).expect(table)
    };
    assert_eq!(line("tb-collect").matches("100.0 %").count(), 3, "{table}");
    assert_eq!(line("none").matches(" %").count(), 3, "{table}");
    for record in records.as_array().unwrap() {
        assert_eq!(record["config"]["long_readers"], 2);
        assert_eq!(record["per_second"][0]["transactions"], record["transactions"]);
        assert!(record["chains"]["accesses_per_tuple"].is_number());
    }
}

#[test]
fn queries_run_beside_transactions_and_are_counted_apart() {
    let args = ["bench", "ch", "--olap", "2", "--medium", "dram", "--seconds", "1", "--warmup", "0"];
    let output = pantile(&[&args[..], &["--rate", "100", "--json", "-"]].concat());
    assert!(output.status.success(), "{}", complaint(&output));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&record["workload"], &record["threads"]), (&"ch".into(), &3.into()));
    assert_eq!((&record["config"]["oltp"], &record["config"]["olap"]), (&1.into(), &2.into()));
    assert_eq!(record["consistency"], serde_json::json!({ "checked": 12, "failed": 0 }));
    assert!(record["queries_per_s"].is_number() && record["per_second"][0]["queries"].is_u64());
    assert_eq!(record["per_second"][0]["transactions"], record["transactions"]);
    assert!(text(&output.stderr).contains("queries/s"));
}

#[test]
fn long_transactions_and_table_scans_have_latencies_of_their_own() {
    let more = ["--medium", "dram", "--ops", "1", "--updates", "100", "--theta", "1", "--long-share", "30"];
    let kinds = ["transaction", "long", "table_scan"];
    let (_, record) =
        quick_until(&[&more[..], &["--long-ops", "5", "--scan-share", "30"]].concat(), |record| {
            kinds.iter().all(|kind| record["latency_us"][kind]["count"].is_u64())
        });
    let counts = kinds.map(|kind| record["latency_us"][kind]["count"].as_u64().expect(kind));
    assert_eq!(record["transactions"], counts.iter().sum::<u64>());
    assert_eq!((&record["config"]["long_ops"], &record["config"]["theta"]), (&5.into(), &1.0.into()));
    assert!(record.get("queries_per_s").is_none() && record["per_second"][0].get("queries").is_none());
}

#[test]
fn several_runs_make_an_array_in_the_file_and_one_line_of_medians() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("records.json");
    let output = quick(&["--medium", "dram,nvm:E", "--runs", "2", "--json", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", complaint(&output));
    let records: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let media: Vec<_> = records.as_array().unwrap().iter().map(|record| record["medium"].clone()).collect();
    assert_eq!(media, ["dram", "nvm:E", "nvm:E", "dram"]);
    let table = text(&output.stdout);
    assert!(table.contains("medians of 2 runs"), "{table}");
    assert_eq!(table.matches("transaction").count(), 2, "{table}");
}

#[test]
fn temporary_directories_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pantile"));
        command.args(QUICK).args(more).env("TMPDIR", dir.path()).output().unwrap()
    };
    assert!(run(&["--medium", "file"]).status.success());
    assert_eq!(left_over(dir.path()), 0);
}

#[test]
fn a_directory_of_other_data_is_a_failure_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    assert!(quick(&["--dir", path]).status.success());
    let other = quick(&["--dir", path, "--tuple-bytes", "200"]);
    assert_eq!(other.status.code(), Some(1));
    let complaint = complaint(&other);
    assert!(complaint.contains("--tuple-bytes 100") && complaint.contains(path), "{complaint}");
    let again = quick(&["--dir", path]);
    assert!(again.status.success());
    assert!(text(&again.stderr).contains("going on with the database"));
}

#[test]
fn wrong_arguments_are_one_line_and_status_2() {
    for wrong in [
        &["bench", "ycsb", "--medium", "dram:8"][..],
        &["bench", "ycsb", "--inserts", "80"],
        &["bench", "tpcc", "--gc-theta", "0.1"],
        &["bench", "tpcc", "--threads", "600", "--long-readers", "600"],
        &["bench", "ch", "--oltp", "600", "--olap", "600"],
        &["bench", "ch", "--threads", "2"],
        &["bench", "ycsb", "--medium", "nvm:optane-40+nodes:naive:1e9"],
        &["bench", "tpcc", "--row-cache", "8", "--gc", "all"],
        &["bench", "ycsb", "--row-cache", "1048576", "--medium", "dram"],
        &["bench", "tpcc", "--isolation", "snapshot", "--protocol", "silo"],
        &["bench", "ch", "--isolation", "read-committed", "--protocol", "all"],
        &["bunch"],
        &[],
    ] {
        let output = pantile(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(output.stdout.is_empty());
        let complaint = complaint(&output);
        assert!(complaint.starts_with("pantile: ") && complaint.lines().count() == 1, "{complaint}");
    }
}

#[test]
fn what_is_refused_is_named() {
    let refused = |more: &[&str]| complaint(&quick(more));
    let isolation = refused(&["--protocol", "pantile,occ", "--isolation", "read-committed"]);
    assert!(isolation.contains("--protocol occ makes every transaction serializable"), "{isolation}");
    assert!(refused(&["--row-cache", "8", "--gc", "tb-collect,steam"]).contains("steam rewrites slots"));
    let costs = refused(&["--medium", "nvm:optane+nodes:local:101"]);
    assert!(costs.contains("remote memory costs 1 to 100 times as much"), "{costs}");
}

#[test]
fn long_readers_read_under_every_protocol() {
    let output = quick(&["--medium", "dram", "--protocol", "all", "--long-readers", "2", "--json", "-"]);
    assert!(output.status.success(), "{}", complaint(&output));
    let records: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(records.as_array().unwrap().len(), 11);
}

#[test]
fn a_failure_is_one_line_and_status_1() {
    let output = quick(&["--medium", "dram", "--json", "/nowhere/record.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        complaint(&output),
        "pantile: cannot write /nowhere/record.json: No such file or directory (os error 2)"
    );
}

#[test]
fn a_place_without_persistent_memory_is_named_with_the_way_out() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    for medium in ["dax", "dax:eadr"] {
        let output = quick(&["--medium", medium, "--dir", dir.path().to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        let complaint = complaint(&output);
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
        for part in [dir.path().to_str().unwrap(), "dax=always", "or use the medium \"file\""] {
            assert!(complaint.contains(part), "{complaint}");
        }
    }
}

#[test]
fn help_goes_to_stdout_and_has_an_example() {
    for verb in [
        &["--help"][..],
        &["check", "--help"],
        &["inspect", "--help"],
        &["dump", "--help"],
        &["load", "--help"],
        &["paper", "--help"],
        &["crashtest", "--help"],
        &["bench", "--help"],
        &["bench", "ycsb", "--help"],
        &["bench", "tpcc", "--help"],
        &["bench", "ch", "--help"],
    ] {
        let output = pantile(verb);
        assert!(output.status.success());
        assert!(text(&output.stdout).contains("Example"), "{verb:?}");
    }
}

/// A line for each verb, under its heading, and the exit statuses.
#[test]
fn help_groups_the_verbs() {
    let output = pantile(&["--help"]);
    let help = text(&output.stdout);
    let parts =
        ["\nLooking after a database:\n  check ", "\n  inspect ", "\nLaboratory:\n  bench ", "\n  paper "];
    let rest =
        ["\n  crashtest ", "\nOptions:\n", "\nExamples:\n", "\nExit status:\n  0  ", "\n  1  ", "\n  2  "];
    let mut from = 0;
    for part in parts.iter().chain(&rest) {
        from += help[from..].find(part).unwrap_or_else(|| panic!("{part:?} is missing or misplaced: {help}"));
    }
    assert!(!help.contains("crashtest-work"), "{help}");
    assert_eq!((output.status.code(), complaint(&output)), (Some(0), String::new()));
}

/// What reads the help or a table may have seen enough.
#[test]
fn a_reader_that_leaves_is_no_failure() {
    for args in [&["--help"][..], &["paper", "--list"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pantile"));
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = command.args(args).stdout(writer).stderr(std::process::Stdio::piped()).output().unwrap();
        assert_eq!((output.status.code(), complaint(&output)), (Some(0), String::new()), "{args:?}");
    }
}

/// Whether this is the line of a second in which transactions ended.
fn has_done_something(line: &str) -> bool {
    let numbers: Vec<&str> = line.split_whitespace().collect();
    numbers.len() > 5 && numbers[0].parse::<u64>().is_ok() && numbers[1] != "0"
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_prints_what_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pantile"));
    let args = ["bench", "ycsb", "--tuples", "2000", "--seconds", "3600", "--warmup", "0", "--json", "-"];
    command.args(args).env("TMPDIR", dir.path()).stdout(std::process::Stdio::piped());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    // A line for each second says that something was done in it.
    let told = BufReader::new(child.stderr.take().unwrap());
    let mut lines = told.lines().map_while(Result::ok);
    assert!(lines.any(|line| has_done_something(&line)), "it ended by itself");
    // What it goes on to say must find a reader.
    let rest = std::thread::spawn(move || lines.count());
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    rest.join().unwrap();
    assert!(output.status.success());
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["interrupted"], true);
    assert!(record["transactions"].as_u64().unwrap() > 0);
    assert_eq!(left_over(dir.path()), 0);
}

/// A run that is ended at once leaves nothing behind either.
#[cfg(unix)]
#[test]
fn a_second_interrupt_removes_the_temporary_directory() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pantile"));
    let args = ["bench", "ycsb", "--tuples", "100000", "--seconds", "3600", "--warmup", "0"];
    command.args(args).env("TMPDIR", dir.path()).stdout(std::process::Stdio::null());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let told = BufReader::new(child.stderr.take().unwrap());
    let mut lines = told.lines().map_while(Result::ok);
    assert!(lines.any(|line| has_done_something(&line)), "it ended by itself");
    assert_eq!(left_over(dir.path()), 1);
    let rest = std::thread::spawn(move || lines.count());
    let pid = child.id().to_string();
    // Until it has ended, in one way or the other: not every signal is seen before the next.
    let patience = Patience::new();
    while child.try_wait().unwrap().is_none() {
        patience.check(|| "no interrupt ends it".into());
        Command::new("kill").args(["-INT", &pid]).output().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    rest.join().unwrap();
    assert_eq!(left_over(dir.path()), 0);
}

#[test]
fn a_sound_database_is_checked_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    assert!(quick(&["--dir", path]).status.success());
    let output = pantile(&["check", path, "--json", "-"]);
    assert!(output.status.success(), "{}", complaint(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["damaged"], &report["was_closed"]), (&0.into(), &true.into()));
    assert!(report["rows"].as_u64().unwrap() > 100);
    assert!(text(&pantile(&["check", path]).stdout).contains("\nsound, nothing to do; "));
    let output = pantile(&["inspect", path]);
    assert!(output.status.success(), "{}", complaint(&output));
    let shown = text(&output.stdout);
    for wanted in ["format version 3", "used, closed", "primary (", "blocks of 16384 bytes", "frozen blocks"]
    {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    let output = pantile(&["inspect", path, "--json", "-", "--no-map"]);
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["format_version"], 3);
}

#[test]
fn damage_is_status_1_with_a_line_for_each_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    assert!(quick(&["--dir", path]).status.success());
    let data = dir.path().join("pantile.data");
    let mut bytes = std::fs::read(&data).unwrap();
    let seen: Value = serde_json::from_slice(&pantile(&["inspect", path, "--json", "-"]).stdout).unwrap();
    let mut used = Vec::new();
    for chunk in seen["chunks"].as_array().unwrap() {
        let blocks = chunk["blocks"].as_array().unwrap().iter().enumerate();
        let filled = blocks.filter(|(_, block)| block["fill"].as_u64() > Some(0));
        used.extend(filled.map(|(n, _)| (chunk["number"].as_u64().unwrap(), n as u64)));
    }
    // Two descriptors. The head of the file comes before the first chunk.
    let line = |(chunk, block): (u64, u64)| (chunk << 21).max(64 << 10) + 64 * (block + 1);
    let hurt = [used[0], used[used.len() - 1]];
    hurt.iter().for_each(|&block| bytes[line(block) as usize + 5] ^= 1);
    let places = hurt.map(|block| format!("offset {}, block {}.{}", line(block), block.0, block.1));
    std::fs::write(&data, &bytes).unwrap();
    let output = pantile(&["check", path]);
    assert_eq!(output.status.code(), Some(1));
    let lines = text(&output.stdout);
    for place in &places {
        assert_eq!(
            lines.lines().filter(|l| l.starts_with("damage: ") && l.contains(place)).count(),
            1,
            "{lines}"
        );
    }
    let told = complaint(&output);
    assert!(
        told.starts_with(&format!("pantile: 2 places are damaged in {path}; see to the device; ")),
        "{told}"
    );
    assert!(told.contains("pantile salvage DIR --into DIR2"), "{told}");
    let output = pantile(&["inspect", path]);
    assert!(output.status.success() && text(&output.stdout).contains('!'));
    assert_eq!(std::fs::read(&data).unwrap(), bytes);
    let new = tempfile::tempdir().unwrap();
    let into = new.path().join("new").to_str().unwrap().to_owned();
    let output = pantile(&["salvage", path, "--into", &into, "--json", "-"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // Both entries can be mended.
    assert_eq!((&report["tables"], &report["rows"]), (&2.into(), &2001.into()), "{report:#}");
    assert_eq!(report["lost"].as_array().unwrap().len(), 2, "{report:#}");
    assert!(complaint(&output).ends_with(&format!("pantile: 2 places are damaged or lost in {path}")));
    assert_eq!(std::fs::read(&data).unwrap(), bytes);
    assert!(pantile(&["check", &into]).status.success());
    let again = pantile(&["salvage", path, "--into", &into]);
    assert_eq!(again.status.code(), Some(1));
    assert!(complaint(&again).ends_with("new exists already; name a directory that does not"));
    // As a salvage leaves it that is killed.
    std::fs::create_dir(format!("{into}er.unfinished")).unwrap();
    let unfinished = pantile(&["salvage", &into, "--into", &format!("{into}er")]);
    assert_eq!(unfinished.status.code(), Some(1));
    assert!(complaint(&unfinished).contains("newer.unfinished is the unfinished copy"));
    std::fs::remove_dir(format!("{into}er.unfinished")).unwrap();
    let whole = pantile(&["salvage", &into, "--into", &format!("{into}er")]);
    assert!(whole.status.success(), "{}", complaint(&whole));
    assert!(text(&whole.stdout).starts_with("2 tables and 2001 rows copied to "));
    assert!(!Path::new(&format!("{into}er.unfinished")).exists());
    let none = pantile(&["check", "/nowhere"]);
    assert_eq!(none.status.code(), Some(1));
    assert_eq!(
        complaint(&none),
        "pantile: there is no database in /nowhere; name the directory that has the file pantile.data"
    );
    for wrong in
        [&["check"][..], &["inspect", path, "more"], &["check", path, "--threads", "0"], &["salvage", path]]
    {
        assert_eq!(pantile(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
