//! What a record says of the machine, the build and the process.

use std::fs;

/// The commit that this program was built from, or "unknown".
pub fn commit() -> &'static str {
    env!("PANTILE_BUILT_FROM")
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The machine in one line: processor, cores, memory, system.
pub fn describe() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let cpu = field(&cpuinfo, "model name").unwrap_or(std::env::consts::ARCH);
    let memory = kilobytes(&read("/proc/meminfo"), "MemTotal").unwrap_or(0) >> 20;
    let release = read("/proc/sys/kernel/osrelease");
    format!("{cpu}, {} cores, {memory} GiB, {} {}", cores(), std::env::consts::OS, release.trim())
}

/// Bytes of memory that programs could still take; 0 if that is not known.
pub fn available_memory() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kilobytes(&meminfo, "MemAvailable").unwrap_or(0) * 1024
}

/// Bytes of memory that the process has resident, mapped files included.
pub fn resident_bytes() -> Option<u64> {
    kilobytes(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS").map(|kb| kb * 1024)
}

/// The value after `name` and a colon in a file of such lines.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "cpu model name : no\nmodel name\t: AMD EPYC\nVmRSS:\t  2048 kB\n";
        assert_eq!(field(text, "model name"), Some("AMD EPYC"));
        assert_eq!(kilobytes(text, "VmRSS"), Some(2048));
        assert_eq!(kilobytes(text, "Vm"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_takes_some_memory() {
        assert!(resident_bytes().unwrap() > 100_000);
        assert!(describe().contains("cores"));
    }
}
