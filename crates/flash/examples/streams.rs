//! What a device gains from streams: skewed updates of YCSB's tuples, where space is tight, with pages in one stream or
//! sorted by how long they live. docs/flash.md says what the columns are.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use pantile::lab::medium_of;
use pantile::{Durability, Options};
use pantile_bench::ycsb::keys::THETA;
use pantile_bench::ycsb::{Mix, Ycsb};
use pantile_bench::{Error, Result};
use pantile_flash::{
    Known, Lives, PAGE_BYTES, Report, Request, SEED, STREAMS_OF_LIVES, Ssd, SsdSettings, Stream, Totals,
    Trace, TracedFactory, in_one_stream, listen_to_lives, run, sort, write_requests,
};

mod arguments;

use arguments::{number, write_file};

#[derive(Parser)]
#[command(about = "What a device gains from streams")]
struct Arguments {
    /// Tuples.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    tuples: u64,
    /// Transactions of 20 updates, of which the second half is counted.
    #[arg(long, default_value_t = 400_000, value_parser = clap::value_parser!(u64).range(2..))]
    transactions: u64,
    /// Skew of the updates.
    #[arg(long, default_value_t = 0.9, value_parser = |text: &str| number(text, THETA))]
    theta: f64,
    /// Share of the flash that the device keeps for itself, at most 0.9.
    #[arg(long, default_value_t = 0.07, value_parser = |text: &str| number(text, 0.0..=0.9))]
    over_provisioning: f64,
    /// Most contents of a block of the engine.
    #[arg(long, value_delimiter = ',', default_value = "1920,100", value_parser = clap::value_parser!(u32).range(1..=1920))]
    block_slots: Vec<u32>,
    /// Kilobytes of an erase unit.
    #[arg(long, value_delimiter = ',', default_value = "256,2048", value_parser = clap::value_parser!(u32).range(4..))]
    erase_units: Vec<u32>,
    /// Streams.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..))]
    streams: Stream,
    /// Megabytes that wait in the system's cache before they are written.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    cache: u64,
    /// Writes what the engine asks the device for to this file, as text, with the lifetimes that it expects.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if arguments.trace.is_some() && arguments.block_slots.len() != 1 {
        return Err(Error::Setting("a trace is of one run: add --block-slots with one number".to_owned()));
    }
    println!(
        "contents of a block  device MB  written MB  erase unit KB  one stream  by life before  by the engine  by life after"
    );
    for &slots in &arguments.block_slots {
        let (by_engine, pages) = trace(&arguments, slots)?;
        write_file(arguments.trace.as_deref(), |out| {
            // The trace has no cache in front of reads.
            let asked = by_engine.iter().filter(|request| !matches!(request, Request::Read(_)));
            write_requests(out, asked, Lives::Expected)
        })?;
        let requests = in_one_stream(&by_engine);
        let sorted = [Known::Before, Known::After].map(|by| sort(&requests, by, arguments.streams));
        for &erase_unit in &arguments.erase_units {
            let settings = SsdSettings {
                pages,
                over_provisioning: arguments.over_provisioning,
                block_pages: erase_unit / (PAGE_BYTES >> 10) as u32,
                channels: 1,
                streams: arguments.streams.max(STREAMS_OF_LIVES),
                ..SsdSettings::default()
            };
            let [one, before, expected, after] =
                [&requests, &sorted[0], &by_engine, &sorted[1]].map(|requests| replay(requests, settings));
            println!(
                "{slots:>19} {:>10.0} {:>11.0} {erase_unit:>14} {:>11.2} {:>15.2} {:>14.2} {:>14.2}",
                (pages * PAGE_BYTES) as f64 / 1e6,
                one.host_bytes() as f64 / 1e6,
                one.write_amplification(),
                before.write_amplification(),
                expected.write_amplification(),
                after.write_amplification(),
            );
        }
    }
    Ok(())
}

/// The requests of a run, and the pages of its medium.
fn trace(arguments: &Arguments, slots: u32) -> Result<(Vec<Request>, u64)> {
    let trace = Trace::new((arguments.cache << 20) / PAGE_BYTES, 0);
    listen_to_lives(&trace);
    let factory = TracedFactory { trace: Arc::clone(&trace), syncs_at_fences: false };
    let options = Options::new().custom_medium(factory).durability(Durability::None).block_slots(slots);
    let mix = Mix { updates: 100, ..Mix::default() };
    let ycsb = Ycsb { tuples: arguments.tuples, mix, theta: arguments.theta, seed: SEED, ..Ycsb::default() };
    let db = run(&ycsb, options, arguments.transactions, &AtomicBool::new(false), |_| Ok(()))?;
    let pages = medium_of(&db).len() / PAGE_BYTES;
    Ok((trace.take(), pages))
}

/// Executes requests on a device that is as large as the medium and has been written from end to end. The second half of
/// what is written counts.
fn replay(requests: &[Request], settings: SsdSettings) -> Report {
    let mut ssd = Ssd::new(settings, 1);
    ssd.execute(&Request::Write { pages: 0..settings.pages, stream: settings.streams - 1 });
    let half = Totals::of(requests).pages_written / 2;
    let filling = settings.pages;
    let mut is_counted = false;
    for request in requests {
        if !is_counted && ssd.report().host_pages >= filling + half {
            is_counted = true;
            ssd.start_over();
        }
        ssd.execute(request);
    }
    ssd.report()
}
