//! One command's runs: each loads, warms up, measures, checks, reopens, checks again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pantile::{Database, Stats};

use crate::baseline::{median, overwrite_and_sync};
use crate::error::{Error, Result};
use crate::load::Context;
use crate::long_readers::{LongReaders, begin};
use crate::machine;
use crate::place::DatabaseDir;
use crate::record::{Baseline, Emulation, Load, MediumIo, Record, Recovery, Reopened, Second, Space};
use crate::runner::{self, EndAll, Measured, Moment};
use crate::sample::{Sampler, Samples, ratio_trend, used_bytes};
use crate::settings::{Medium, Settings, Variant, durability_name, isolation_name};
use crate::workload::{Found, Workload};

/// Writes and syncs of the baseline, before the run and again after it.
const SYNCS: usize = 2000;

/// A longer run has its trend told to people.
const LONG: f64 = 60.0;

/// Runs every variant as often as the settings say, in turn, every other round
/// from the last to the first, so that what drifts meanwhile, the machine's
/// temperature or the file system, favours none. Hands each record over as
/// soon as there is one. Told to stop, it stops after the record of the run
/// that is on. A variant that fails is not run again, and the others go on.
///
/// # Errors
/// [`Error::Variant`] for the first that fails, once the others have run; [`Error::Interrupted`].
pub fn run_all<W: Workload>(
    workload: &W,
    settings: &Settings,
    context: &Context<'_>,
    mut each: impl FnMut(Record),
) -> Result<()> {
    let mut failed: Vec<(Variant, Error)> = Vec::new();
    for run in 1..=settings.runs {
        let mut round = settings.variants.clone();
        round.retain(|variant| failed.iter().all(|(other, _)| other != variant));
        if run.is_multiple_of(2) {
            round.reverse();
        }
        for variant in round {
            match run_one(workload, settings, variant, context, run, &mut each) {
                Ok(false) => {}
                Ok(true) => return first_of(failed),
                Err(error @ Error::Interrupted { .. }) => return first_of(failed).and(Err(error)),
                Err(error) => {
                    if settings.variants.len() > 1 {
                        context.observer.note(&format!("{variant} failed: {error}"));
                    }
                    failed.push((variant, error));
                }
            }
        }
    }
    first_of(failed)
}

/// Runs a variant once. Returns whether the run was interrupted.
fn run_one<W: Workload>(
    workload: &W,
    settings: &Settings,
    variant: Variant,
    context: &Context<'_>,
    run: usize,
    each: &mut impl FnMut(Record),
) -> Result<bool> {
    let place = place(settings, variant, run)?;
    let (record, verified) = Experiment { workload, settings, variant, place, context }.run(run)?;
    let interrupted = record.interrupted;
    each(record);
    verified.map(|()| interrupted)
}

/// The error of the variant that has failed first, if one has.
fn first_of(failed: Vec<(Variant, Error)>) -> Result<()> {
    match failed.into_iter().next() {
        None => Ok(()),
        Some((variant, error)) => {
            Err(Error::Variant { variant: variant.to_string(), source: Box::new(error) })
        }
    }
}

/// The directory of a run: the one chosen, or one in it where there are
/// several runs.
fn place(settings: &Settings, variant: Variant, run: usize) -> Result<DatabaseDir> {
    match &settings.dir {
        None => DatabaseDir::temporary(matches!(variant.medium, Medium::Nvm(_))),
        Some(dir) if settings.runs * settings.variants.len() == 1 => DatabaseDir::chosen(dir),
        Some(dir) => {
            let medium = variant.medium.to_string().replace([':', '/'], "-");
            let protocol = variant.protocol.map_or(String::new(), |protocol| format!("-{protocol}"));
            DatabaseDir::chosen(dir.join(format!("{medium}-{}{protocol}-{run}", variant.gc.name())))
        }
    }
}

struct Experiment<'a, W> {
    workload: &'a W,
    settings: &'a Settings,
    variant: Variant,
    place: DatabaseDir,
    context: &'a Context<'a>,
}

/// A database with data in it.
struct Prepared<D> {
    db: Database,
    data: D,
    load: Option<Load>,
    found: Option<Reopened>,
}

impl<W: Workload> Experiment<'_, W> {
    /// Gives what was measured, and what went wrong afterwards.
    fn run(&self, run: usize) -> Result<(Record, Result<()>)> {
        let mut syncs = self.measure_syncs()?;
        let emulation = self.measure_emulation();
        let Prepared { db, data, load, found } = self.prepare()?;
        let loaded = db.stats();
        let ahead = self.settings.preallocated(self.variant, self.workload.most_bytes_per_second());
        if ahead > 0 {
            pantile::lab::take_ahead(&db, ahead)?;
        }
        let (measured, samples) = self.measure(run, &db, &data)?;
        let written = used_bytes(&samples.after).saturating_sub(used_bytes(&loaded));
        if ahead > 0 && written > ahead {
            self.context.observer.note(&format!(
                "{}: more was written than was taken ahead, so the system's clearing of pages counts as the engine's time",
                self.variant
            ));
        }
        let resident_bytes = machine::resident_bytes();
        syncs.extend(self.measure_syncs()?);
        let mut record = self.record((run, ahead), &measured, samples);
        record.space.resident_bytes = resident_bytes;
        record.space.dram_bytes_per_tuple =
            ratio(loaded.dram_bytes as f64, loaded.tuples as f64).unwrap_or(0.0);
        self.tell_trend(&record);
        record.baseline = median(&syncs).map(|file_sync_us| Baseline { file_sync_us });
        record.emulation = emulation;
        (record.load, record.found) = (load, found);
        let verified = match measured.interrupted {
            true => db.close().map_err(Error::from),
            false => self.verify(db, data, &mut record),
        };
        if matches!(verified, Err(Error::Interrupted { .. })) {
            record.interrupted = true;
            return Ok((record, Ok(())));
        }
        Ok((record, verified))
    }

    /// Runs the clients, beside transactions that stay open if that is wanted.
    fn measure(&self, run: usize, db: &Database, data: &W::Data) -> Result<(Measured, Samples)> {
        let Settings { threads, isolation, long_readers, long_seconds, seed, .. } = *self.settings;
        let clients = self.workload.clients(db, data, threads, isolation)?;
        let life = long_seconds.map(Duration::from_secs_f64);
        let begin = || Ok(begin(db, self.variant.protocol)?);
        let readers = LongReaders::begin(self.workload, data, &begin, life, (long_readers, seed))?;
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let readers = scope.spawn(|| {
                // When they fail, the run need not go on.
                let _end = (long_readers > 0).then(|| EndAll(&over));
                readers.run(|| over.load(Ordering::Relaxed))
            });
            let end = EndAll(&over);
            let stop = || over.load(Ordering::Relaxed) || self.context.stop.load(Ordering::Relaxed);
            let measured = self.run_clients(run, db, clients, stop);
            drop(end);
            readers.join().map_err(|_| Error::Panicked)??;
            measured
        })
    }

    fn run_clients(
        &self,
        run: usize,
        db: &Database,
        clients: Vec<W::Client>,
        stop: impl Fn() -> bool,
    ) -> Result<(Measured, Samples)> {
        let (kinds, pace, observer) =
            (self.workload.kinds().len(), self.settings.pace, self.context.observer);
        let millis = |time: Duration| time.as_millis() as u64;
        let which = if self.settings.runs > 1 { format!(", run {run}") } else { String::new() };
        observer.begin(&format!("running {}{which}", self.variant), millis(pace.warmup + pace.measure));
        let mut passed = 0;
        let mut sampler = Sampler::new(db, observer);
        let measured = runner::run(clients, kinds, pace, stop, |moment| match moment {
            Moment::Begin => sampler.begin(),
            Moment::Second(second) => sampler.second(second),
            Moment::End => sampler.end(),
            Moment::Passed(time) => {
                observer.advance(millis(time) - passed);
                passed = millis(time);
            }
        });
        observer.end();
        Ok((measured?, sampler.into_samples()))
    }

    /// Tells people whether the medium still grows when a long run ends.
    fn tell_trend(&self, record: &Record) {
        let last = record.per_second.last().and_then(Second::ratio);
        if let (Some(ratio), Some(trend)) = (last, record.space.ratio_trend_percent_per_minute)
            && record.seconds > LONG
        {
            self.context.observer.note(&format!(
                "{}: medium/live is {ratio:.3}, {trend:+.2} % per minute over the last {:.0} s",
                self.variant,
                record.seconds / 2.0
            ));
        }
    }

    /// Opens the database of an earlier run, or loads one.
    fn prepare(&self) -> Result<Prepared<W::Data>> {
        let options = || self.settings.options(self.variant);
        let path = self.place.path();
        let earlier = if self.place.is_temporary() || self.variant.medium.is_volatile() {
            Err(pantile::Error::NoDatabase(path.to_owned()))
        } else {
            options().create(false).open(path)
        };
        let db = match earlier {
            Ok(db) => match self.workload.find(&db)? {
                Found::Complete(data) => return self.welcome(db, data),
                Found::Nothing => db,
                Found::Other(detail) => return Err(Error::OtherData { dir: path.to_owned(), detail }),
            },
            Err(pantile::Error::NoDatabase(_)) => options().open(path)?,
            Err(error) => return Err(error.into()),
        };
        let began = Instant::now();
        let data = self.workload.load(&db, self.context)?;
        let load = Load { seconds: began.elapsed().as_secs_f64(), tuples: db.stats().tuples };
        Ok(Prepared { db, data, load: Some(load), found: None })
    }

    /// Checks a database that an earlier run has left.
    fn welcome(&self, db: Database, data: W::Data) -> Result<Prepared<W::Data>> {
        let (recovery, was_closed) = (recovery(&db), db.recovery().was_closed);
        let consistency = self.workload.check(&db, &data, self.context)?;
        let how = if was_closed { "closed" } else { "not closed" };
        let dir = self.place.path().display();
        self.context.observer.note(&format!(
            "going on with the database in {dir}, which had been left {how}: opened in {:.3} s, {} contents scanned{}",
            recovery.counted.seconds,
            recovery.counted.contents_scanned,
            consistency.as_ref().map_or(String::new(), |c| format!(
                ", {} of {} consistency conditions hold",
                c.checked - c.failed,
                c.checked
            )),
        ));
        if let Some(failure) = consistency.as_ref().and_then(|c| c.failures.first()) {
            let detail = format!("holds an inconsistent database: {failure}");
            return Err(Error::OtherData { dir: self.place.path().to_owned(), detail });
        }
        let found = Some(Reopened { recovery, was_closed, consistency });
        Ok(Prepared { db, data, load: None, found })
    }

    /// Checks the data, opens the database again and checks once more.
    fn verify(&self, db: Database, data: W::Data, record: &mut Record) -> Result<()> {
        let after_run = self.workload.check(&db, &data, self.context)?;
        let (tuples, medium) = (db.stats().tuples, pantile::lab::medium_of(&db));
        drop(data);
        db.close()?;
        let options = self.settings.options(self.variant);
        let options = if self.variant.medium.is_volatile() {
            options.on_medium(medium)
        } else {
            drop(medium);
            options.create(false)
        };
        let db = options.open(self.place.path())?;
        record.recovery = Some(recovery(&db));
        let found = db.stats().tuples;
        let Found::Complete(data) = self.workload.find(&db)? else {
            return Err(Error::Lost { tuples, found });
        };
        if found != tuples {
            return Err(Error::Lost { tuples, found });
        }
        let reopened = self.workload.check(&db, &data, self.context)?;
        record.consistency = reopened.zip(after_run).map(|(reopened, after_run)| reopened.after(after_run));
        drop(data);
        Ok(db.close()?)
    }

    /// What the directory's device alone takes to make a page durable.
    fn measure_syncs(&self) -> Result<Vec<f64>> {
        match self.variant.medium {
            Medium::File => overwrite_and_sync(self.place.path(), SYNCS),
            Medium::Dram | Medium::Dax { .. } | Medium::Nvm(_) => Ok(Vec::new()),
        }
    }

    /// How close an emulated medium comes to its configuration just now. A
    /// machine that cannot measure it can still run.
    fn measure_emulation(&self) -> Option<Emulation> {
        let Medium::Nvm(config) = self.variant.medium else { return None };
        pantile_nvm::measure(config).ok().map(Emulation::from)
    }

    fn record(&self, (run, ahead): (usize, u64), measured: &Measured, samples: Samples) -> Record {
        let Samples { before, after, cpu, chains, tables, seconds: mut per_second } = samples;
        // The clients know exactly what ended when.
        for (second, &transactions) in per_second.iter_mut().zip(&measured.per_second) {
            second.transactions = transactions;
        }
        for (second, &queries) in per_second.iter_mut().zip(measured.queries_per_second.iter().flatten()) {
            second.queries = Some(queries);
        }
        let kinds = self.workload.kinds();
        let seconds = measured.seconds;
        let transactions = measured.transactions();
        let orders = self.workload.orders().map(|kind| &measured.kinds[kind]);
        let tpmc = orders.map(|kind| (kind.latencies.count() - kind.rolled_back) as f64 * 60.0);
        let summaries = measured.kinds.iter().map(|kind| kind.latencies.summary());
        Record {
            workload: self.workload.name(),
            engine: "pantile",
            gc: self.variant.gc.name().to_owned(),
            protocol: self.variant.protocol_name(),
            medium: self.variant.medium.to_string(),
            isolation: isolation_name(self.settings.isolation),
            durability: durability_name(self.settings.durability),
            threads: self.settings.threads,
            seconds,
            run,
            interrupted: measured.interrupted,
            commit: machine::commit(),
            debug_build: cfg!(debug_assertions),
            machine: machine::describe(),
            config: self.settings.config(ahead, self.workload.config()),
            transactions,
            txn_per_s: ratio(transactions as f64, seconds).unwrap_or(0.0),
            queries_per_s: measured
                .queries_per_second
                .as_ref()
                .and_then(|_| ratio(measured.queries as f64, seconds)),
            tpmc: tpmc.and_then(|commits| ratio(commits, seconds)),
            aborts_per_txn: ratio(measured.aborts as f64, transactions as f64).unwrap_or(0.0),
            rollbacks: measured.kinds.iter().map(|kind| kind.rolled_back).sum(),
            latency_us: kinds
                .iter()
                .copied()
                .zip(summaries)
                .filter_map(|(kind, s)| Some((kind, s?)))
                .collect(),
            medium_io: medium_io(self.variant.medium, &before, &after),
            cpu,
            collector: after.collector.since(&before.collector),
            space: Space {
                medium_bytes: after.medium_bytes,
                used_bytes: used_bytes(&after),
                dram_bytes: after.dram_bytes,
                tile_bytes: after.tile_bytes,
                obsolete_bytes: after.obsolete_bytes,
                unfilled_bytes: after.unfilled_bytes,
                free_bytes: after.free_bytes,
                tables,
                live_bytes: after.live_bytes,
                tuples: after.tuples,
                ratio_trend_percent_per_minute: ratio_trend(&per_second),
                ..Space::default()
            },
            chains,
            load: None,
            found: None,
            baseline: None,
            emulation: None,
            recovery: None,
            consistency: None,
            per_second,
        }
    }
}

fn medium_io(medium: Medium, before: &Stats, after: &Stats) -> MediumIo {
    let counted = after.medium - before.medium;
    let payload_bytes = after.payload_bytes - before.payload_bytes;
    let unit_bytes = medium.unit_bytes();
    let written = unit_bytes.map_or(counted.bytes_written, |bytes| bytes * counted.units_written);
    MediumIo {
        payload_bytes,
        counted,
        unit_bytes,
        write_amplification: ratio(written as f64, payload_bytes as f64),
    }
}

fn recovery(db: &Database) -> Recovery {
    let counted = db.recovery();
    Recovery { counted, bytes_per_s: ratio(counted.bytes_scanned as f64, counted.seconds) }
}

fn ratio(of: f64, to: f64) -> Option<f64> {
    (to > 0.0).then(|| of / to)
}

#[cfg(test)]
#[path = "experiment_test.rs"]
mod tests;
