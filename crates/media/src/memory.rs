//! How much memory there is for this process.

use crate::os::machine_memory;
use std::fs;
use std::path::Path;

/// Bytes of memory that this process may use, the system's copies of files
/// included: the machine's, or what a control group allows. `None` where the
/// system does not say.
pub fn available_memory() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().filter_map(|line| limit_of(line, Path::new("/sys/fs/cgroup")));
    limits.chain(machine_memory()).min()
}

/// The least limit of a control group and those above it, given as a line of
/// `/proc/self/cgroup`.
fn limit_of(line: &str, root: &Path) -> Option<u64> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, group) = rest.split_once(':')?;
    let (root, file) = match controllers {
        "" => (root.to_owned(), "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            (root.join("memory"), "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let own = root.join(group.trim_start_matches('/'));
    let limits = own.ancestors().take_while(|path| path.starts_with(&root)).filter_map(|path| {
        // "max" is no number.
        fs::read_to_string(path.join(file)).ok()?.trim().parse().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_all_groups_counts() {
        let root = tempfile::tempdir().expect("directory");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("create");
            fs::write(path, text).expect("write");
        };
        let of = |line: &str| limit_of(line, root.path());
        assert_eq!(of("0::/a/b"), None);
        put("a/b/memory.max", "max\n");
        assert_eq!(of("0::/a/b"), None);
        put("a/memory.max", "4096\n");
        assert_eq!(of("0::/a/b"), Some(4096));
        put("memory/c/memory.limit_in_bytes", "512\n");
        put("memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(of("4:memory:/c"), Some(512));
        assert_eq!(of("4:memory:/"), Some(9_223_372_036_854_771_712));
        assert_eq!(of("3:cpu:/c"), None);
    }

    #[test]
    fn the_machine_has_some() {
        assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
