//! What a process has read, written and waited for.

use std::fs;

use serde::{Deserialize, Serialize};

/// Totals of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Bytes that it made the system read from devices.
    pub bytes_read: u64,
    /// Bytes that it made the system write to devices, sooner or later.
    pub bytes_written: u64,
    /// Page faults that waited for a device.
    pub faults: u64,
    /// Processor time of all its threads, in clock ticks of the system.
    pub ticks: u64,
}

impl Usage {
    /// So far. Zeros where the system does not say.
    pub fn now() -> Self {
        let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
        let of = |name: &str| {
            io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or_default()
        };
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The name of the program may have spaces in it.
        let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let fields: Vec<u64> = after_name.split(' ').map(|field| field.parse().unwrap_or_default()).collect();
        let field = |n: usize| fields.get(n).copied().unwrap_or_default();
        Self {
            bytes_read: of("read_bytes:"),
            bytes_written: of("write_bytes:"),
            faults: field(9),
            ticks: field(11) + field(12),
        }
    }

    /// This and `more`.
    pub fn plus(self, more: Self) -> Self {
        Self {
            bytes_read: self.bytes_read + more.bytes_read,
            bytes_written: self.bytes_written + more.bytes_written,
            faults: self.faults + more.faults,
            ticks: self.ticks + more.ticks,
        }
    }

    /// What has been added since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            bytes_read: self.bytes_read - before.bytes_read,
            bytes_written: self.bytes_written.saturating_sub(before.bytes_written),
            faults: self.faults - before.faults,
            ticks: self.ticks - before.ticks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_counted() {
        let before = Usage::now();
        let began = std::time::Instant::now();
        while Usage::now().since(before).ticks == 0 {
            assert!(began.elapsed().as_secs() < 60, "no processor time is counted");
        }
    }
}
