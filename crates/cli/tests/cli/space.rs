//! `pantile space`: each verb once, as small as it can be.

use std::process::{Command, Output};

use serde_json::Value;

fn space(args: &[&str]) -> (Output, Value) {
    let all = [&["space"], args, &["--json", "-"]].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_pantile")).args(all).output().expect("the command runs");
    let record = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    (output, record)
}

#[test]
fn a_price_is_measured_beside_the_optimum_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let svg = dir.path().join("price.svg");
    let args = ["price", "--live", "2", "--updates", "80/20", "--targets", "2", "--quiet", "--svg"];
    let (output, record) = space(&[&args[..], &[svg.to_str().unwrap()]].concat());
    assert!(output.status.success());
    let prices = record["prices"].as_array().unwrap();
    let targets: Vec<_> = prices.iter().map(|price| price["target"].as_f64()).collect();
    assert_eq!(targets, [Some(2.0), None], "the published policy has no target");
    for price in prices {
        let figure = |name: &str| price[name].as_f64().unwrap();
        assert_eq!(price["load"], "80/20");
        assert!(figure("optimum") > 1.0 && figure("amplification") > 1.0, "{price}");
        let (medium, used) = (&price["medium"], &price["used"]);
        assert!(
            medium["mean"].as_f64() > used["mean"].as_f64()
                && medium["max"].as_f64() >= medium["p95"].as_f64()
        );
    }
    let drawing = std::fs::read_to_string(svg).unwrap();
    assert!(drawing.starts_with("<svg xmlns=") && drawing.contains("80/20"), "{drawing}");
}

/// Time is simulated, so nothing depends on the machine.
#[test]
fn a_price_is_the_same_every_time() {
    let args = ["price", "--live", "2", "--updates", "zipf", "--targets", "1.5", "--window", "1", "--quiet"];
    assert_eq!(space(&args).1["prices"], space(&args).1["prices"]);
}

#[test]
fn patterns_leave_files_and_have_bars() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    let args = ["patterns", "new", "reader", "--scale", "0.01", "--reader-seconds", "0.1", "--dir", place];
    let (_, record) = space(&args);
    let patterns = record["patterns"].as_array().unwrap();
    assert_eq!(patterns.len(), 3);
    assert!(patterns[0]["later"]["allocated"].as_u64() <= patterns[0]["bar"].as_u64(), "{record}");
    assert!(
        patterns[2]["closed"]["length"].as_u64() > Some(0) && patterns[1]["closed"].is_null(),
        "{record}"
    );
    assert_eq!(dir.path().read_dir().unwrap().count(), 0, "databases are removed");
}

#[test]
fn an_unknown_pattern_is_refused_with_the_names_of_those_there_are() {
    let args = ["space", "patterns", "stack"];
    let output = Command::new(env!("CARGO_BIN_EXE_pantile")).args(args).output().expect("the command runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("new, tables, sizes"));
}

#[test]
fn what_loads_and_commits_write_is_counted() {
    let (_, record) = space(&["written", "--scale", "0.005"]);
    let written = record["written"].as_array().unwrap();
    assert_eq!(written.len(), 5);
    for cost in written {
        let figure = |name: &str| cost[name].as_f64().unwrap();
        assert!(figure("medium") > 1.0, "{cost}");
        // Without syncs small writes may be stores, which no system call counts.
        if cost["what"].as_str().unwrap().ends_with(", sync") {
            assert!(figure("process") >= figure("medium") && figure("calls") >= 1.0, "{cost}");
        }
    }
}
