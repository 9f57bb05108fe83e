//! Runs the negative controls.
use std::time::Duration;
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let limit = std::env::args().nth(1).map_or(20, |a| a.parse().unwrap());
    let only = std::env::args().nth(2);
    for c in pantile_sim::NegativeControl::all() {
        if only.as_ref().is_some_and(|o| o != c.name) {
            continue;
        }
        match c.run(1, 2, Duration::from_secs(limit), &false.into()) {
            Some(x) => println!(
                "{:22} {:>6.2} s {:>4} cases: {}",
                c.name,
                x.after.as_secs_f64(),
                x.cases,
                x.failure.to_string().chars().take(140).collect::<String>()
            ),
            None => println!("{:22} NOT CAUGHT", c.name),
        }
    }
}
