//! Requests as text: docs/flash.md describes the lines ("A trace as text").

use std::io::{self, Write};
use std::ops::Range;

use crate::expected::LIVES;
use crate::request::{PAGE_BYTES, Request};

/// What the streams of requests say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lives {
    /// Nothing about how long pages live.
    Unknown,
    /// How long the engine expects pages to live, as [`listen_to_lives`](crate::listen_to_lives) sorts them.
    Expected,
}

/// Writes requests as text, one a line.
///
/// # Errors
/// Those of `out`.
pub fn write_requests<'r>(
    out: &mut impl Write,
    requests: impl IntoIterator<Item = &'r Request>,
    lives: Lives,
) -> io::Result<()> {
    requests.into_iter().try_for_each(|request| match request {
        Request::Write { pages, stream } => {
            let life = match lives {
                Lives::Unknown => "-",
                Lives::Expected => LIVES[usize::from(*stream)],
            };
            writeln!(out, "write {} {}", place(pages), life.to_lowercase())
        }
        Request::Read(pages) => writeln!(out, "read {}", place(pages)),
        Request::Trim(pages) => writeln!(out, "trim {}", place(pages)),
        Request::Flush => writeln!(out, "flush"),
    })
}

fn place(pages: &Range<u64>) -> String {
    format!("{} {}", pages.start * PAGE_BYTES, (pages.end - pages.start) * PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_a_line() {
        let requests = [
            Request::Write { pages: 2..5, stream: 0 },
            Request::Write { pages: 5..6, stream: 3 },
            Request::Flush,
            Request::Read(1..2),
            Request::Trim(512..1024),
        ];
        let text = |lives| {
            let mut out = Vec::new();
            write_requests(&mut out, &requests, lives).expect("memory takes it");
            String::from_utf8(out).expect("text")
        };
        let rest = "flush\nread 4096 4096\ntrim 2097152 2097152\n";
        let known = "write 8192 12288 short\nwrite 20480 4096 unknown\n";
        assert_eq!(text(Lives::Expected), format!("{known}{rest}"));
        assert_eq!(text(Lives::Unknown), format!("write 8192 12288 -\nwrite 20480 4096 -\n{rest}"));
    }
}
