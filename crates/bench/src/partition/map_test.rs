use super::*;

const IDLE: [f64; 2] = [0.0, 0.0];

/// Four threads on two nodes, and random numbers.
fn soft() -> (SoftPartition, Random) {
    (SoftPartition::new(4, 2), Random::new(1, 1))
}

fn node_of_thread(thread: usize) -> usize {
    thread % 2
}

/// Counts accesses of a node to a partition.
fn access(soft: &SoftPartition, node: usize, partition: usize, times: u32) {
    soft.accesses[node][partition].fetch_add(times, Ordering::Relaxed);
}

fn map_all_to(soft: &SoftPartition, node: u8) {
    soft.node_of.iter().for_each(|of| of.store(node, Ordering::Relaxed));
}

fn mapped_to(soft: &SoftPartition, node: usize) -> usize {
    (0..PARTITIONS).filter(|partition| soft.node_of(*partition) == node).count()
}

#[test]
fn most_votes_win() {
    let (soft, mut random) = soft();
    let mut node = |keys: &[u64]| node_of_thread(soft.assign(&IDLE, keys, &mut random));
    // Even partitions are node 0's.
    assert_eq!([node(&[2, 4, 5]), node(&[1, 3, 4]), node(&[7 + 2048])], [0, 1, 1]);
    assert_eq!(node(&[1, 2]), 0, "the first of two with as many");
}

#[test]
fn without_votes_the_node_is_random() {
    let (soft, mut random) = soft();
    let nodes: Vec<_> = (0..64).map(|_| node_of_thread(soft.assign(&IDLE, &[], &mut random))).collect();
    assert!(nodes.contains(&0) && nodes.contains(&1));
}

#[test]
fn balance_comes_before_votes() {
    let (soft, mut random) = soft();
    let mut node = |load: [f64; 2]| node_of_thread(soft.assign(&load, &[1, 3], &mut random));
    assert_eq!(node([0.0, 0.31]), 0, "node 1 has too much to do");
    assert_eq!(node([0.0, 0.29]), 1);
    assert_eq!(node([0.9, 0.0]), 1);
}

#[test]
fn threads_of_a_node_take_turns() {
    let (soft, mut random) = soft();
    let mut thread = |key| soft.assign(&IDLE, &[key], &mut random);
    assert_eq!([thread(0), thread(0), thread(1), thread(0), thread(1)], [0, 2, 1, 0, 3]);
}

#[test]
fn what_is_assigned_counts_for_its_thread() {
    let (soft, mut random) = soft();
    let thread = soft.assign(&[0.0, 1.0], &[1, 1, 4 + 2048], &mut random);
    let of = |partition: usize| soft.accesses[thread][partition].load(Ordering::Relaxed);
    assert_eq!((node_of_thread(thread), of(1), of(4), of(0)), (0, 2, 1, 0));
}

#[test]
fn a_partition_goes_where_it_is_accessed_and_only_for_a_fifth_more() {
    let (soft, _) = soft();
    for (partition, others) in [(0, 119), (2, 120), (4, 121)] {
        access(&soft, 0, partition, 100);
        access(&soft, 1, partition, others);
    }
    // So that node 0 is never the only one below the bound.
    access(&soft, 0, 6, 10_000);
    access(&soft, 1, 7, 10_000);
    soft.map();
    assert_eq!([0, 2, 4].map(|partition| soft.node_of(partition)), [0, 0, 1]);
}

#[test]
fn hot_partitions_are_spread_over_nodes() {
    let (soft, _) = soft();
    map_all_to(&soft, 0);
    // Both nodes access two hot partitions, node 1 more than node 0.
    for partition in [10, 11] {
        access(&soft, 0, partition, 500);
        access(&soft, 1, partition, 1_000);
    }
    soft.map();
    assert_eq!(
        [10, 11].map(|partition| soft.node_of(partition)),
        [1, 0],
        "one node has enough with the first"
    );
}

#[test]
fn no_node_gets_more_than_its_share_of_partitions() {
    let (soft, _) = soft();
    map_all_to(&soft, 0);
    (0..PARTITIONS).for_each(|partition| access(&soft, 1, partition, 1));
    // Node 0 does as much elsewhere, so that accesses exclude nobody.
    access(&soft, 0, 0, PARTITIONS as u32);
    soft.map();
    assert_eq!(mapped_to(&soft, 1), PARTITIONS / 2);
}

#[test]
fn a_mapping_to_one_node_is_balanced_again() {
    let (soft, mut random) = soft();
    map_all_to(&soft, 0);
    let mut waiting = [0.0; 2];
    for _ in 0..20 {
        for _ in 0..20_000 {
            let key = random.below(1 << 20);
            let thread = soft.assign(&waiting, &[key], &mut random);
            waiting[node_of_thread(thread)] += 0.02;
            // The nodes work equally fast.
            waiting.iter_mut().for_each(|waiting| *waiting = (*waiting - 0.01f64).max(0.0));
        }
        soft.map();
    }
    let share = mapped_to(&soft, 1) as f64 / PARTITIONS as f64;
    assert!((0.35..=0.65).contains(&share), "{share} of the partitions");
}

#[test]
fn a_hot_tuple_stays_on_its_node() {
    let (soft, mut random) = soft();
    let hot = 3;
    for _ in 0..10 {
        let threads: Vec<_> = (0..1_000).map(|_| soft.assign(&IDLE, &[hot], &mut random)).collect();
        assert!(threads.iter().all(|thread| node_of_thread(*thread) == 1));
        soft.map();
    }
    // Nor do threads of both nodes that access it as often make it go back and forth.
    for round in 0..10 {
        access(&soft, 0, hot as usize, 1_000 + round % 2 * 100);
        access(&soft, 1, hot as usize, 1_000 + (round + 1) % 2 * 100);
        soft.map();
        assert_eq!(soft.node_of(hot as usize), 1);
    }
}

#[test]
fn counts_begin_again_at_each_mapping() {
    let (soft, _) = soft();
    access(&soft, 1, 0, 100);
    access(&soft, 0, 2, 1_000);
    soft.map();
    assert_eq!(soft.node_of(0), 1);
    access(&soft, 0, 0, 10);
    access(&soft, 1, 1, 1_000);
    soft.map();
    assert_eq!(soft.node_of(0), 0, "what was before does not count");
}
