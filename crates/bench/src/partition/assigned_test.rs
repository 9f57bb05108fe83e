use super::*;

/// Draws keys in a row, and notes what it runs.
struct Keys {
    next: u64,
    ran: Vec<u64>,
    is_query: bool,
}

impl Client for Keys {
    fn draw(&mut self) -> usize {
        self.next += 1;
        (self.next % 3) as usize
    }

    fn attempt(&mut self) -> Result<Outcome> {
        self.ran.push(self.next);
        Ok(Outcome::Committed)
    }

    fn is_analytical(&self) -> bool {
        self.is_query
    }
}

impl Assign for Keys {
    type Drawn = u64;

    fn draw_for_all(&mut self) {}

    fn drawn(&self) -> u64 {
        self.next
    }

    fn attempt_next(&mut self, drawn: u64) {
        self.next = drawn;
    }

    fn partition_keys(&self, keys: &mut Vec<u64>) {
        keys.push(self.next);
    }
}

fn clients(count: usize) -> Vec<Keys> {
    (0..count).map(|_| Keys { next: 0, ran: Vec::new(), is_query: false }).collect()
}

fn step(client: &mut Assigned<Keys>) -> (usize, u64) {
    let kind = client.draw();
    client.attempt().expect("it cannot fail");
    (kind, *client.client.ran.last().expect("it ran one"))
}

#[test]
fn each_thread_runs_what_its_node_has() {
    let mut all = Assigned::all(clients(2), 2).expect("no queries");
    for _ in 0..10 {
        for (node, client) in all.iter_mut().enumerate() {
            let (kind, key) = step(client);
            assert_eq!((key % 2, kind as u64), (node as u64, key % 3));
        }
    }
}

#[test]
fn a_thread_that_stands_still_gets_only_so_much() {
    let mut all = Assigned::all(clients(2), 2).expect("no queries");
    let foreign = (0..100).filter(|_| step(&mut all[0]).1 % 2 == 1).count();
    assert!(foreign > 0, "node 0 runs what node 1 does not come to");
    let load = all[0].shared.load();
    assert!(load[0] == 0.0 && (super::super::BALANCED..0.5).contains(&load[1]), "{load:?}");
    // What was sent first is run first.
    let sent: Vec<_> = (0..3).map(|_| step(&mut all[1]).1).collect();
    assert_eq!(sent, [1, 3, 5]);
}

#[test]
fn one_thread_runs_everything() {
    let mut all = Assigned::all(clients(1), 2).expect("no queries");
    let ran: Vec<_> = (0..4).map(|_| step(&mut all[0]).1).collect();
    assert_eq!(ran, [1, 2, 3, 4]);
}

#[test]
fn queries_are_refused() {
    let queries = vec![Keys { next: 0, ran: Vec::new(), is_query: true }];
    assert!(Assigned::all(queries, 2).is_err());
}
