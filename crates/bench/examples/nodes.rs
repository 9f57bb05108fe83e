//! Checks on a machine of several nodes (NUMA) that rows are in memory of the node on which the thread ran that
//! wrote them, and that this is no accident: on a medium that knows of no nodes many are not.
//!
//! `scripts/numa-vm` runs it in a virtual machine of two nodes.

#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::c_void;
    use std::fs;
    use std::sync::Barrier;
    use std::thread;

    use pantile::lab::medium_of;
    use pantile::{Database, MediumKind, Options, Table, TableDef, Type};
    use pantile_bench::memory::Failure;

    pub type Result<T> = std::result::Result<T, Failure>;

    /// Rows of each node, and of a transaction.
    const ROWS: u64 = 10_000;
    const BATCH: u64 = 50;
    /// Rounds in which the threads exchange their rows and write all of them again.
    const ROUNDS: u64 = 4;
    /// The whole medium: its free blocks have to be used again.
    const MAX_BYTES: u64 = 96 << 20;
    const ROW_BYTES: u16 = 1000;
    const PAGE: usize = 4096;
    const CHUNK: usize = 2 << 20;
    /// The largest share of pages on the wrong node where placing works, and the least where nobody places.
    const WRONG: f64 = 0.01;
    const WRONG_BY_ACCIDENT: f64 = 0.1;

    pub fn main() -> Result<()> {
        let nodes = nodes()?;
        if nodes.len() < 2 {
            println!("skipped: this machine has one node");
            return Ok(());
        }
        let dir = std::env::args().nth(1).ok_or("usage: nodes DIRECTORY (in memory, for the control)")?;
        let placed = wrong_share(MediumKind::Dram, &dir, &nodes)?;
        let control = wrong_share(MediumKind::File, &dir, &nodes)?;
        if placed > WRONG {
            return Err(format!("{:.1} % of the pages are on another node", placed * 100.0).into());
        }
        if control < WRONG_BY_ACCIDENT {
            return Err("the control places as well: this test finds nothing".into());
        }
        println!("ok");
        Ok(())
    }

    /// The first processor of each node that has memory and processors.
    fn nodes() -> Result<Vec<(usize, usize)>> {
        let read = |name: &str| fs::read_to_string(format!("/sys/devices/system/node/{name}"));
        let mut nodes = Vec::new();
        for node in 0..64 {
            let Ok(cpus) = read(&format!("node{node}/cpulist")) else { continue };
            let first = cpus.trim().split([',', '-']).next().unwrap_or_default();
            if let Ok(cpu) = first.parse() {
                println!(
                    "node {node}: processors {}, distances {}",
                    cpus.trim(),
                    read(&format!("node{node}/distance"))?.trim()
                );
                nodes.push((node, cpu));
            }
        }
        Ok(nodes)
    }

    /// Writes rows by a thread of each node. Returns the share of their pages that are on another one.
    fn wrong_share(kind: MediumKind, dir: &str, nodes: &[(usize, usize)]) -> Result<f64> {
        let options = Options::new()
            .medium(kind)
            .max_bytes(MAX_BYTES)
            .durability(pantile::Durability::None)
            .worker(false);
        let db = options.open(dir)?;
        let def = TableDef::new("rows").column("id", Type::U64).column("value", Type::FixedBytes(ROW_BYTES));
        let table = db.create_table(def.primary_key(["id"]))?;
        let together = Barrier::new(nodes.len());
        thread::scope(|scope| {
            let writers: Vec<_> = (0..nodes.len())
                .map(|n| {
                    let (db, table, together) = (&db, &table, &together);
                    scope.spawn(move || -> Result<()> {
                        run_on(nodes[n].1)?;
                        for round in 0..=ROUNDS {
                            // In each round a thread has the rows that another one wrote before.
                            let whose = (n as u64 + round) % nodes.len() as u64;
                            write(db, table, whose, nodes[n].0, round == 0)?;
                            together.wait();
                        }
                        Ok(())
                    })
                })
                .collect();
            writers.into_iter().try_for_each(|writer| writer.join().map_err(|_| "a writer panicked")?)
        })?;
        let medium = medium_of(&db);
        // SAFETY: the bytes are mapped as long as the medium exists. Nobody uses it any more: there is no worker.
        let bytes = unsafe { std::slice::from_raw_parts(medium.facts().base, medium.len() as usize) };
        let mut counts = vec![[0u64; 2]; nodes.len()];
        for (n, (node, _)) in nodes.iter().enumerate() {
            let pages: Vec<_> = bytes.chunks(PAGE).filter(|page| has_rows_of(page, *node)).collect();
            for at in nodes_of(&pages)? {
                counts[n][usize::from(at != *node as i32)] += 1;
            }
            let [right, wrong] = counts[n];
            // What the engine decided, apart from what the system did.
            let is_meant = |page: &&&[u8]| {
                let chunk = (page.as_ptr().addr() - bytes.as_ptr().addr()) / CHUNK;
                medium.facts().nodes.as_ref().is_some_and(|nodes| nodes.of_chunk(chunk as u32) == n)
            };
            let meant = pages.iter().filter(is_meant).count();
            println!(
                "{}: written on node {node}: {right} pages there, {wrong} elsewhere; {meant} in chunks of the node",
                medium.facts().name
            );
        }
        let sum = |which: usize| counts.iter().map(|count| count[which]).sum::<u64>() as f64;
        db.close()?;
        match sum(0) + sum(1) {
            0.0 => Err("no row was found".into()),
            all => Ok(sum(1) / all),
        }
    }

    /// Inserts or updates all rows of one part, by a thread of this node.
    fn write(db: &Database, table: &Table, part: u64, node: usize, is_new: bool) -> Result<()> {
        let value = [mark(node); ROW_BYTES as usize / MARK].concat();
        for first in (0..ROWS).step_by(BATCH as usize) {
            db.run(|txn| {
                (first..first + BATCH).try_for_each(|n| {
                    let id = part * ROWS + n;
                    match is_new {
                        true => txn.insert(table, &[id.into(), value[..].into()]),
                        false => txn.update(table, &[id.into()], &[(1, value[..].into())]).map(|_| ()),
                    }
                })
            })?;
        }
        Ok(())
    }

    const MARK: usize = 20;

    /// What rows of a node are full of.
    fn mark(node: usize) -> [u8; MARK] {
        let mut mark = *b"<written on node   >";
        mark[17] = b'0' + node as u8;
        mark
    }

    fn has_rows_of(page: &[u8], node: usize) -> bool {
        let mark = mark(node);
        page.windows(MARK).any(|window| window == mark)
    }

    /// The node that each of these pages is on, or a negative number.
    fn nodes_of(pages: &[&[u8]]) -> Result<Vec<i32>> {
        let addresses: Vec<*const c_void> = pages.iter().map(|page| page.as_ptr().cast()).collect();
        let mut found = vec![-1i32; pages.len()];
        // SAFETY: without new nodes the call only writes where the pages are.
        let result = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                0,
                addresses.len(),
                addresses.as_ptr(),
                std::ptr::null::<i32>(),
                found.as_mut_ptr(),
                0,
            )
        };
        if result != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok(found)
    }

    /// The calling thread runs on this processor only.
    fn run_on(cpu: usize) -> Result<()> {
        // SAFETY: zeros are a set without processors, and the system reads it only.
        let result = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
        };
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
    }
}

#[cfg(target_os = "linux")]
fn main() -> linux::Result<()> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: only Linux says on which node memory is");
}
