use pantile::Collector;
use pantile_sim::*;
fn main() {
    let a: Vec<u64> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let c = Campaign {
        seed: a[0],
        kinds: Kind::ALL.to_vec(),
        collectors: Collector::ALL.to_vec(),
        until: Until::Time(std::time::Duration::from_secs(a[1])),
        threads: 1,
        broken: None,
    };
    let o = c.run(&false.into(), |_| {});
    println!("{:#?}", o.totals);
    println!("{:?} {:?}", o.total(), o.time);
    if let Some(f) = o.failure {
        println!("{f}\n{}", f.replay());
    }
}
