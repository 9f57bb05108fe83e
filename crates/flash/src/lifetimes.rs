//! Sorting the pages of a trace into streams, by how long what is written lives.

use std::collections::HashMap;

use crate::request::{Request, Stream};

/// What is known of a page when it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// How long what it held before had lived. A device or a file system can observe it.
    Before,
    /// How long what is written will live. Nobody knows it beforehand: it is the most that any hint can say.
    After,
}

/// How long what a page holds lives, in pages that are written meanwhile; `None` if it does not end in the trace, or
/// nothing was there.
type Life = Option<u64>;

/// The lives before and after each page that is written, in the order of the trace.
fn lives(requests: &[Request]) -> Vec<[Life; 2]> {
    let mut lives: Vec<[Life; 2]> = Vec::new();
    let mut written: HashMap<u64, usize> = HashMap::new();
    let end = |lives: &mut [[Life; 2]], at: usize| {
        let life = (lives.len() - at) as u64;
        lives[at][1] = Some(life);
        life
    };
    for request in requests {
        match request {
            Request::Write { pages, .. } => {
                for page in pages.clone() {
                    let at = written.insert(page, lives.len());
                    let before = at.map(|at| end(&mut lives, at));
                    lives.push([before, None]);
                }
            }
            Request::Trim(pages) => {
                for page in pages.clone() {
                    written.remove(&page).map(|at| end(&mut lives, at));
                }
            }
            Request::Read(_) | Request::Flush => {}
        }
    }
    lives
}

/// The same requests, with the pages that are written sorted into streams: as many pages in each, the shortest lives in the
/// first. What has no life goes to the last.
pub fn sort(requests: &[Request], by: Known, streams: Stream) -> Vec<Request> {
    let lives = lives(requests);
    let mut ended: Vec<u64> = lives.iter().filter_map(|[_, after]| *after).collect();
    ended.sort_unstable();
    let bounds: Vec<u64> = (1..usize::from(streams))
        .filter_map(|n| ended.get(n * ended.len() / usize::from(streams)).copied())
        .collect();
    let stream = |[before, after]: [Life; 2]| {
        let life = match by {
            Known::Before => before,
            Known::After => after,
        };
        let longest = usize::from(streams) - 1;
        life.map_or(longest, |life| bounds.partition_point(|bound| *bound <= life)) as Stream
    };
    let mut next = lives.into_iter().map(stream);
    let mut sorted = Vec::new();
    for request in requests {
        let Request::Write { pages, .. } = request else {
            sorted.push(request.clone());
            continue;
        };
        let first = sorted.len();
        for (page, of) in pages.clone().zip(&mut next) {
            match sorted[first..].last_mut() {
                Some(Request::Write { pages, stream }) if *stream == of => pages.end = page + 1,
                _ => sorted.push(Request::Write { pages: page..page + 1, stream: of }),
            }
        }
    }
    sorted
}

/// The same requests, in the first stream.
pub fn in_one_stream(requests: &[Request]) -> Vec<Request> {
    let one = |request: &Request| match request {
        Request::Write { pages, .. } => Request::Write { pages: pages.clone(), stream: 0 },
        other => other.clone(),
    };
    requests.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Totals;
    use crate::ssd::{Ssd, SsdSettings};
    use pantile_testkit::Random;
    use std::ops::Range;

    fn write(pages: Range<u64>, stream: Stream) -> Request {
        Request::Write { pages, stream }
    }

    #[test]
    fn pages_go_to_the_stream_of_their_life() {
        let trace = [
            write(0..4, 0),
            Request::Flush,
            write(0..2, 0),
            write(0..2, 0),
            Request::Trim(2..3),
            write(0..1, 0),
        ];
        // Pages 0 and 1 live for 4, 2 and (page 0) 2 pages; page 2 for 6, page 3 does not end.
        let after = sort(&trace, Known::After, 2);
        let (flush, trim) = (Request::Flush, Request::Trim(2..3));
        let wanted = [
            write(0..4, 1),
            flush.clone(),
            write(0..2, 0),
            write(0..1, 0),
            write(1..2, 1),
            trim.clone(),
            write(0..1, 1),
        ];
        assert_eq!(after, wanted);
        let before = sort(&trace, Known::Before, 2);
        assert_eq!(before, [write(0..4, 1), flush, write(0..2, 1), write(0..2, 0), trim, write(0..1, 0)]);
        assert_eq!(sort(&trace, Known::After, 1), trace);
    }

    /// A few pages are written far more often than the others, and all lie in disorder.
    #[test]
    fn what_dies_together_leaves_less_to_copy() {
        let settings = SsdSettings {
            pages: 1 << 12,
            block_pages: 8,
            channels: 1,
            over_provisioning: 0.1,
            streams: 4,
            ..SsdSettings::default()
        };
        let mut random = Random::new(1, 1);
        let filling: Vec<_> = (0..settings.pages).map(|page| write(page..page + 1, 0)).collect();
        let mut page = || match random.percent(80) {
            true => random.below(settings.pages / 5) * 5,
            false => random.below(settings.pages),
        };
        let updates: Vec<_> =
            (0..4 * settings.pages).map(|_| page()).map(|page| write(page..page + 1, 0)).collect();
        let trace = [filling, updates].concat();
        let amplification = |trace: &[Request]| {
            let mut ssd = Ssd::new(settings, 1);
            trace.iter().for_each(|request| ssd.execute(request));
            ssd.report().write_amplification()
        };
        let [one, before, after] =
            [trace.clone(), sort(&trace, Known::Before, 4), sort(&trace, Known::After, 4)];
        assert_eq!(Totals::of(&after).pages_written, Totals::of(&trace).pages_written);
        let [one, before, after] = [one, before, after].map(|trace| amplification(&trace));
        assert!(after < before && before < one, "{after} {before} {one}");
    }
}
