//! Mean value analysis of a closed network of queues.

/// A closed network: customers go round and round, each visiting every
/// station once, with a delay in between during which nobody is in anybody's
/// way.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Network {
    /// Seconds of a round that need no station.
    pub delay: f64,
    /// Seconds of a round at each station, which serves one customer at a time.
    pub demands: Vec<f64>,
}

/// What a network does with a number of customers.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// Rounds a second of all customers together.
    pub per_second: f64,
    /// Mean customers at each station, the one being served included.
    pub queues: Vec<f64>,
}

impl Network {
    /// The exact solution for `customers` of them (Reiser and Lavenberg 1980,
    /// "Mean-Value Analysis of Closed Multichain Queuing Networks", one chain):
    /// who arrives at a station finds the queue that the network would have
    /// without him.
    pub fn flow(&self, customers: usize) -> Flow {
        let mut flow = Flow { per_second: 0.0, queues: vec![0.0; self.demands.len()] };
        for n in 1..=customers {
            let times: Vec<_> =
                self.demands.iter().zip(&flow.queues).map(|(demand, queue)| demand * (1.0 + queue)).collect();
            flow.per_second = n as f64 / (self.delay + times.iter().sum::<f64>());
            flow.queues = times.iter().map(|time| flow.per_second * time).collect();
        }
        flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(delay: f64, demands: &[f64]) -> Network {
        Network { delay, demands: demands.to_vec() }
    }

    fn assert_close(got: f64, expected: f64) {
        assert!((got / expected - 1.0).abs() < 1e-9, "{got}, not {expected}");
    }

    #[test]
    fn small_networks_are_as_reckoned_by_hand() {
        let one = network(2.0, &[1.0]);
        assert_close(one.flow(1).per_second, 1.0 / 3.0);
        // The queue of one customer is 1/3: the second waits 4/3 at the station.
        assert_close(one.flow(2).per_second, 2.0 / (2.0 + 4.0 / 3.0));
        // The queue of two is 0.8.
        assert_close(one.flow(3).per_second, 3.0 / (2.0 + 1.8));

        let two = network(0.0, &[1.0, 2.0]);
        let flow = two.flow(2);
        // Alone: queues of 1/3 and 2/3; then 4/3 and 10/3 at the stations.
        assert_close(flow.per_second, 2.0 / (14.0 / 3.0));
        assert_close(flow.queues[0], 4.0 / 7.0);
        assert_close(flow.queues[1], 10.0 / 7.0);
    }

    #[test]
    fn equal_stations_share_the_customers() {
        // n customers at k equal stations: n / (n + k - 1) of what the stations can do.
        let flow = network(0.0, &[0.5; 3]).flow(4);
        assert_close(flow.per_second, 4.0 / 6.0 / 0.5);
        assert_close(flow.queues.iter().sum::<f64>(), 4.0);
    }

    #[test]
    fn without_stations_nobody_waits() {
        assert_close(network(0.25, &[]).flow(128).per_second, 512.0);
        assert_close(network(0.25, &[0.0, 0.0]).flow(128).per_second, 512.0);
        assert!(network(0.25, &[1.0]).flow(0).per_second == 0.0);
    }

    #[test]
    fn the_busiest_station_is_the_limit() {
        let flow = network(1.0, &[0.1, 0.02]).flow(128);
        assert!(flow.per_second > 9.999 && flow.queues[0] > 100.0, "{flow:?}");
    }

    #[test]
    fn throughput_keeps_to_its_bounds() {
        for (delay, demands) in [(1.0, vec![0.1, 0.02]), (0.0, vec![0.3, 0.3]), (5.0, vec![0.001, 0.5, 0.2])]
        {
            let network = network(delay, &demands);
            let total: f64 = demands.iter().sum();
            let largest = demands.iter().copied().fold(0.0, f64::max);
            let mut before = 0.0;
            for n in 1..=128 {
                let rate = network.flow(n).per_second;
                // Asymptotic bounds (Denning and Buzen 1978): of the busiest
                // station, of customers who never wait, of ones who always do.
                assert!(rate <= (1.0 / largest).min(n as f64 / (delay + total)) * (1.0 + 1e-12));
                assert!(rate >= n as f64 / (delay + n as f64 * total) * (1.0 - 1e-12));
                assert!(rate >= before * (1.0 - 1e-12));
                before = rate;
            }
        }
    }
}
