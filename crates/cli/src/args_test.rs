use clap::CommandFactory;
use pantile::{Durability, Isolation};

use super::*;

fn parse(line: &str) -> Result<Bench, String> {
    let words = std::iter::once("pantile").chain(line.split_whitespace());
    match Cli::try_parse_from(words) {
        Ok(Cli { verb: Verb::Bench(bench) }) => Ok(bench),
        Ok(other) => panic!("no benchmark: {other:?}"),
        Err(error) => Err(one_line(&error.to_string())),
    }
}

fn ycsb(line: &str) -> YcsbArgs {
    match parse(&format!("bench ycsb {line}")).unwrap() {
        Bench::Ycsb(args) => args,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn defaults_are_those_of_the_contract() {
    let args = ycsb("");
    assert_eq!((args.tuples, args.tuple_bytes, args.ops), (1_000_000, 100, 20));
    assert_eq!((args.updates, args.inserts, args.scans, args.rmw), (50, 0, 0, 0));
    assert_eq!((args.theta, args.workload), (None, None));
    assert_eq!((args.long_share, args.scan_share, args.scan_tuples), (0, 0, None));
    let common = args.common;
    assert_eq!((common.seconds, common.warmup, common.rate), (10.0, 2.0, 0.0));
    assert_eq!((common.runs, common.threads), (1, None));
    assert_eq!(common.medium, [Medium::File]);
    assert_eq!(common.collectors(), [Collector::TB_COLLECT]);
    assert_eq!(common.gc_options(), GcOptions::default());
    assert_eq!((common.long_readers, common.quiet), (0, false));
    assert_eq!(common.exclusive_wasted, ExclusiveStage::default().wasted);
    assert_eq!(Durability::from(common.durability), Durability::Sync);
    assert_eq!(Isolation::from(common.isolation), Isolation::Serializable);
}

#[test]
fn several_media_and_collectors_are_separated_by_commas() {
    let args = ycsb("--medium file,nvm,nvm:C,dram --gc none,all");
    let names: Vec<_> = args.common.medium.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["file", "nvm:optane", "nvm:C", "dram"]);
    assert_eq!(args.common.collectors(), pantile_rivals::all());
}

#[test]
fn every_flag_of_the_contract_is_taken() {
    let line = "bench tpcc --warehouses 4 --threads 16 --seconds 0.5 --warmup 0 --rate 1000 --gc all \
                --medium nvm:optane --dir /tmp/x --isolation read-committed --durability group \
                --seed 7 --runs 3 --json -";
    let Bench::Tpcc(args) = parse(line).unwrap() else { panic!("another") };
    assert_eq!(args.warehouses, 4);
    assert_eq!((args.common.threads, args.common.seed, args.common.runs), (Some(16), 7, 3));
    assert_eq!(args.common.json, Some(PathBuf::from("-")));
    assert_eq!(Isolation::from(args.common.isolation), Isolation::ReadCommitted);
    assert_eq!(Durability::from(args.common.durability), Durability::Group);
    let Bench::Ch(args) = parse("bench ch").unwrap() else { panic!("another") };
    assert_eq!((args.warehouses, args.oltp, args.olap, args.common.threads), (1, 1, 1, None));
    let line = "bench ch --warehouses 3 --oltp 4 --olap 0 --rate 100 --gc all --runs 2";
    let Bench::Ch(args) = parse(line).unwrap() else { panic!("another") };
    assert_eq!((args.warehouses, args.oltp, args.olap, args.common.rate), (3, 4, 0, 100.0));
    let line = "--gc-theta 0.75 --gc-queue 0.05 --gc-space-target 1.5 --gc-epoch-ms 2.5 --gc-pacing fixed --gc-no-pass-over --gc-interval-ms 20 \
                --gc-epoch-commits 7 \
                --long-readers 3 --quiet";
    let common = ycsb(line).common;
    let gc = GcOptions {
        theta: 0.75,
        queue_share: 0.05,
        space_target: 1.5,
        epoch: Duration::from_micros(2500),
        pacing: Pacing::Fixed,
        bypass: false,
        interval: Duration::from_millis(20),
        epoch_commits: Some(7),
    };
    assert_eq!(common.gc_options(), gc);
    assert_eq!((common.long_readers, common.quiet), (3, true));
    let args = ycsb("--long-share 10 --long-ops 80 --scan-share 5 --scan-tuples 1000 --theta 1");
    assert_eq!((args.long_share, args.long_ops, args.theta), (10, 80, Some(1.0)));
    assert_eq!((args.scan_share, args.scan_tuples), (5, Some(1000)));
    assert_eq!(ycsb("--workload f --theta 0.5").workload, Some('F'));
    let common =
        ycsb("--writers-stay --exclusive-wasted 1000 --exclusive-accessed 99 --exclusive-tries never").common;
    assert_eq!((common.exclusive_wasted, common.exclusive_accessed), (1000, Some(99)));
    assert_eq!(common.exclusive_tries, Some(u32::MAX));
    assert_eq!(ycsb("--exclusive-tries 3").common.exclusive_tries, Some(3));
}

#[test]
fn wrong_arguments_are_told_in_one_line() {
    let wrong = [
        ("bench tpcc --warehouses 0", "--warehouses"),
        ("bench tpcc --warehouse 1", "--warehouses"),
        ("bench ycsb --theta 1.1", "from 0 to 1"),
        ("bench ycsb --theta nan", "from 0 to 1"),
        ("bench ycsb --long-share 101", "--long-share"),
        ("bench ycsb --long-ops 0", "--long-ops"),
        ("bench ycsb --scan-share=-1", "--scan-share"),
        ("bench ycsb --scan-tuples 0", "--scan-tuples"),
        ("bench ycsb --beside scans", "scans:N or updates:N"),
        ("bench ycsb --beside reads:5", "scans:N or updates:N"),
        ("bench ycsb --beside scans:many", "not a number of tuples"),
        ("bench ycsb --theta x", "not a number"),
        ("bench ycsb --updates 101", "--updates"),
        ("bench ycsb --workload G", "A to F"),
        ("bench ycsb --workload A --updates 5", "--workload"),
        ("bench ycsb --medium dax:adr", "there is no medium \"dax:adr\""),
        ("bench ycsb --medium tape", "there is no medium \"tape\""),
        ("bench ycsb --gc tape", "there is no collector"),
        ("bench ycsb --protocol hope", "there is no protocol"),
        ("crashtest --protocol pantile", "there is no protocol"),
        ("bench ycsb --gc-theta 0.2", "from 0.5 to 1"),
        ("bench ycsb --gc-theta nan", "--gc-theta"),
        ("bench ycsb --gc-queue 1.5", "from 0 to 1"),
        ("bench ycsb --gc-space-target 0.9", "from 1 to 1000"),
        ("bench ycsb --gc-queue=-1", "from 0 to 1"),
        ("bench ycsb --gc-epoch-ms 0", "from 100 us to 10 s"),
        ("bench ycsb --gc-epoch-ms=-5", "--gc-epoch-ms"),
        ("bench ycsb --gc-epoch-ms inf", "not a number"),
        ("bench ycsb --gc-pacing slow", "fixed and adaptive"),
        ("bench tpcc --long-readers 1001", "--long-readers"),
        ("bench tpcc --long-writers 1", "--long-"),
        ("bench ycsb --seconds 0", "above 0"),
        ("bench ycsb --seconds nan", "above 0"),
        ("bench ycsb --isolation none", "read-committed"),
        ("bench ycsb --threads 0", "--threads"),
        ("bench ch --oltp 0", "--oltp"),
        ("bench ch --olap 1001", "--olap"),
        ("bench tpcc --olap 1", "--olap"),
        ("bench tpcd", "tpcc"),
        ("bench", "subcommand"),
        ("", "subcommand"),
    ];
    for (line, expected) in wrong {
        let error = parse(line).map(|_| ()).unwrap_err();
        assert!(error.contains(expected), "{line}: {error}");
        assert!(!error.contains('\n') && !error.contains("Usage"), "{line}: {error}");
    }
}

#[test]
fn every_verb_has_an_example() {
    fn check(command: &mut clap::Command) {
        let help = command.render_long_help().to_string();
        assert!(help.contains("Example"), "{help}");
        let shown = |sub: &&mut clap::Command| sub.get_name() != "help" && !sub.is_hide_set();
        command.get_subcommands_mut().filter(shown).for_each(check);
    }
    check(&mut crate::help::command());
}
