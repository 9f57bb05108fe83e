//! The program is killed during a migration, while it takes orders, during
//! backups, and while another process reads.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use pantile::{BackupOptions, CheckOptions, Database, Error, Range, Table, restore};
use pantile_testkit::{ScratchDir, fails};

const OLD: u64 = 20_000;

fn shop(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shop"));
    command.args(arguments);
    command
}

fn done(arguments: &[&str]) -> Output {
    let output = shop(arguments).output().expect("run");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn killed(mut child: Child) {
    child.kill().expect("kill");
    child.wait().expect("wait");
}

fn orders(db: &Database) -> (Table, u64) {
    let orders = db.table("orders").expect("table");
    let count = db.begin_read().expect("begin").count(&orders, Range::all()).expect("count");
    (orders, count)
}

#[test]
fn a_migration_is_killed() {
    let place = ScratchDir::new();
    let dir = place.path().join("old");
    let dir = dir.to_str().expect("a name");
    done(&["old", dir, &OLD.to_string()]);
    for round in 0..8u32 {
        let copy = place.path().join(round.to_string());
        fs::create_dir(&copy).expect("directory");
        fs::copy(Path::new(dir).join("pantile.data"), copy.join("pantile.data")).expect("copy");
        let copy = copy.to_str().expect("a name");
        for tries in 1u64.. {
            let mut child = shop(&["migrate", copy]).stdout(Stdio::null()).spawn().expect("start");
            // Longer every time, so that some are killed late and the last is not.
            std::thread::sleep(Duration::from_millis(tries * tries * (5 + u64::from(round))));
            if child.try_wait().expect("wait").is_some_and(|status| status.success()) {
                break;
            }
            killed(child);
        }
        assert_eq!(done(&["migrate", copy]).stdout, b"migrated []\n", "each is made once");
        // It looks at the total of each order.
        done(&["report", copy]);
        let db = Database::open(copy).expect("open");
        assert_eq!(orders(&db).1, OLD);
    }
}

/// What a process has said before it was killed.
struct Said {
    orders: Vec<u64>,
    backups: u32,
}

fn said(dir: &str, backup: &str, orders: usize) -> Said {
    let mut child = shop(&["work", dir, backup]).stdout(Stdio::piped()).spawn().expect("start");
    let out = BufReader::new(child.stdout.take().expect("piped"));
    let mut said = Said { orders: Vec::new(), backups: 0 };
    let mut child = Some(child);
    for line in out.lines().map_while(Result::ok) {
        match line.split_once(' ') {
            Some(("order", id)) => said.orders.push(id.parse().expect("a number")),
            Some(("backup", _)) => said.backups += 1,
            _ => {}
        }
        // One is written at that moment.
        if said.orders.len() >= orders && said.backups > 0 {
            child.take().into_iter().for_each(killed);
        }
    }
    said
}

#[test]
fn orders_and_backups_are_killed() {
    let place = ScratchDir::new();
    let (dir, backups) = (place.path().join("shop"), place.path().join("backups"));
    let (dir, backups) = (dir.to_str().expect("a name"), backups.to_str().expect("a name"));
    done(&["old", dir, "1000"]);
    let mut known = 1000;
    for round in 0..3usize {
        fs::create_dir_all(backups).expect("directory");
        let said = said(dir, backups, 100 + 150 * round);
        done(&["report", dir]);
        let db = Database::open(dir).expect("open");
        let (table, count) = orders(&db);
        let txn = db.begin_read().expect("begin");
        for id in &said.orders {
            let found = txn.get(&table, &[(*id).into()]).expect("get");
            assert!(found.is_some(), "order {id} had been taken");
        }
        known += said.orders.len() as u64;
        assert!(count >= known, "{count} of {known}");
        known = count;
        drop((txn, db));
        // Those that were whole can be restored, and the one that was not is known and goes on.
        for n in 0..=said.backups {
            let (from, to) =
                (Path::new(backups).join(n.to_string()), place.path().join(format!("{round}-{n}")));
            if !from.exists() {
                continue;
            }
            match restore(&from, &to, &CheckOptions::new()) {
                Ok(_) => _ = done(&["report", to.to_str().expect("a name")]),
                partial => {
                    assert_eq!(n, said.backups, "only the last was not complete");
                    match from.join("pantile.incomplete").exists() {
                        true => fails!(partial, Error::IncompleteBackup(_), "not completed"),
                        // It was killed when its directory had just been made.
                        false => fails!(partial, Error::NoDatabase(_), "there is no database"),
                    }
                    let before = Path::new(backups).join(n.wrapping_sub(1).to_string());
                    let options = match n {
                        0 => BackupOptions::new(),
                        _ => BackupOptions::new().since(before),
                    };
                    Database::open(dir).expect("open").backup_to(&from, &options).expect("go on");
                    restore(&from, &to, &CheckOptions::new()).expect("restore");
                    done(&["report", to.to_str().expect("a name")]);
                }
            }
        }
        fs::remove_dir_all(backups).expect("remove");
    }
}

#[test]
fn reports_beside_orders() {
    let place = ScratchDir::new();
    let (dir, backups) = (place.path().join("shop"), place.path().join("backups"));
    fs::create_dir(&backups).expect("directory");
    let (dir, backups) = (dir.to_str().expect("a name"), backups.to_str().expect("a name"));
    done(&["old", dir, "1000"]);
    done(&["migrate", dir]);
    let worker = shop(&["work", dir, backups]).stdout(Stdio::null()).spawn().expect("start");
    for _ in 0..3 {
        done(&["report", dir]);
        killed(shop(&["report", dir]).stdout(Stdio::null()).spawn().expect("start"));
        let text = done(&["dump", dir]).stdout;
        assert!(text.windows(6).any(|word| word == b"orders"));
    }
    killed(worker);
    done(&["report", dir]);
}
