//! Control groups that limit the memory of processes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A control group of this process's making, removed when dropped.
#[derive(Debug)]
pub struct MemoryGroup {
    path: PathBuf,
    limit: &'static str,
}

/// Where control groups are.
const ROOT: &str = "/sys/fs/cgroup";

impl MemoryGroup {
    /// Makes a group.
    ///
    /// # Errors
    /// [`Error::Io`] where this process may not do that, or where the system
    /// has no groups that limit memory.
    pub fn new(name: &str) -> Result<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let (parent, limit) = parent_of(&own, Path::new(ROOT))
            .ok_or_else(|| cannot(ROOT.as_ref(), io::ErrorKind::Unsupported.into()))?;
        let path = parent.join(format!("pantile-{}-{name}", std::process::id()));
        fs::create_dir(&path).map_err(|error| cannot(&path, error))?;
        let made = Self { path, limit };
        match made.path.join(limit).exists() {
            true => Ok(made),
            false => Err(cannot(&made.path, io::ErrorKind::Unsupported.into())),
        }
    }

    /// Limits the memory of its processes to this many bytes, cached pages of
    /// files included.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn limit(&self, bytes: u64) -> Result<()> {
        self.write(self.limit, &bytes.to_string())
    }

    /// Puts a process into it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn add(&self, process: u32) -> Result<()> {
        self.write("cgroup.procs", &process.to_string())
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.path.join(file);
        fs::write(&path, text).map_err(|error| Error::io(format!("write to {}", path.display()), error))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Best effort: a group that still has processes stays.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Where a process in these groups can make one that limits memory, and the
/// file of the limit. In version 1 that is below its own. In version 2 a group
/// with processes can have none below it that limit memory, so it is beside
/// its own.
fn parent_of(groups: &str, root: &Path) -> Option<(PathBuf, &'static str)> {
    let of = |line: &str| {
        let (hierarchy, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let path = path.trim_start_matches('/');
        if controllers.split(',').any(|name| name == "memory") {
            return Some((root.join("memory").join(path), "memory.limit_in_bytes"));
        }
        let beside = Path::new(path).parent().unwrap_or(Path::new(""));
        let has_memory = fs::read_to_string(root.join("cgroup.controllers"))
            .is_ok_and(|all| all.split_whitespace().any(|name| name == "memory"));
        (hierarchy == "0" && has_memory).then(|| (root.join(beside), "memory.max"))
    };
    groups.lines().find_map(of)
}

fn cannot(path: &Path, error: io::Error) -> Error {
    let operation = format!(
        "limit the memory of a process by a control group at {}; run as root, or in a group that is yours \
         (systemd-run --user --scope -p Delegate=yes)",
        path.display()
    );
    Error::io(operation, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_follows_from_the_own_groups() {
        let root = tempfile::tempdir().unwrap();
        let at = |groups: &str| parent_of(groups, root.path());
        assert_eq!(at("5:cpu:/\n4:memory:/a/b\n0::/\n").unwrap().0, root.path().join("memory/a/b"));
        assert_eq!(at("0::/user/session\n"), None);
        fs::write(root.path().join("cgroup.controllers"), "cpu memory\n").unwrap();
        assert_eq!(at("0::/user/session\n"), Some((root.path().join("user"), "memory.max")));
        assert_eq!(at("0::/\n").unwrap().0, root.path().join(""));
    }
}
