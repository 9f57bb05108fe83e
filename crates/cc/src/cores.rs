//! The cores that this process may use, and binding a thread to one.

#[cfg(target_os = "linux")]
pub(crate) use linux::{allowed, bind_to};
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{allowed, bind_to};

#[cfg(target_os = "linux")]
mod linux {
    /// The cores on which threads of this process can run, although some may be bound to others. The
    /// calling thread is bound to one after the other, and ends with the test.
    pub(crate) fn allowed() -> Vec<usize> {
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        numbers(&online).filter(|&core| bind_to(core)).collect()
    }

    /// The numbers of a list like `0-3,8`.
    fn numbers(list: &str) -> impl Iterator<Item = usize> {
        list.trim().split(',').flat_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let [first, last] = [first, last].map(|number| number.parse::<usize>().ok());
            first.zip(last).map_or(0..0, |(first, last)| first..last + 1)
        })
    }

    /// Binds the calling thread to a core, and returns whether that is allowed. The thread ends with the test.
    pub(crate) fn bind_to(core: usize) -> bool {
        // SAFETY: the set is a plain bit array. If the call is refused, the thread
        // stays where it is.
        core < libc::CPU_SETSIZE as usize
            && unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(core, &mut set);
                libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
            }
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn lists_of_cores_are_read() {
            let read = |list| super::numbers(list).collect::<Vec<_>>();
            assert_eq!(read("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
            assert_eq!(read("0\n"), [0]);
            assert_eq!(read(""), [0; 0]);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    /// None is known, so that no counter is trusted.
    pub(crate) fn allowed() -> Vec<usize> {
        Vec::new()
    }

    /// Leaves the thread where it is.
    pub(crate) fn bind_to(_core: usize) -> bool {
        false
    }
}
