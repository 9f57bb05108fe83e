//! The cores that this process may use, and binding a thread to one.

#[cfg(target_os = "linux")]
pub(crate) use linux::{allowed, bind_to, is_only_one};
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{allowed, bind_to, is_only_one};

#[cfg(target_os = "linux")]
mod linux {
    /// The cores of the process's first thread, and those of the calling one, which may have been bound
    /// to one of them.
    pub(crate) fn allowed() -> Vec<usize> {
        // SAFETY: the call only reads.
        let first = unsafe { libc::getpid() };
        let sets = [cores_of(first), cores_of(0)];
        // SAFETY: the index is below CPU_SETSIZE.
        let has = |core: usize| sets.iter().any(|set| unsafe { libc::CPU_ISSET(core, set) });
        (0..libc::CPU_SETSIZE as usize).filter(|&core| has(core)).collect()
    }

    fn cores_of(thread: libc::pid_t) -> libc::cpu_set_t {
        // SAFETY: the set is a plain bit array that the call fills in.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(thread, size_of::<libc::cpu_set_t>(), &mut set);
            set
        }
    }

    /// Whether the machine has one core only, so that there is nothing to compare.
    pub(crate) fn is_only_one() -> bool {
        // SAFETY: the call only reads.
        unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) == 1 }
    }

    /// Binds the calling thread to a core, and returns whether that is allowed. The thread ends with the test.
    pub(crate) fn bind_to(core: usize) -> bool {
        // SAFETY: the set is a plain bit array. If the call is refused, the thread
        // stays where it is.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(core, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    /// None is known, so that no counter is trusted.
    pub(crate) fn allowed() -> Vec<usize> {
        Vec::new()
    }

    pub(crate) fn is_only_one() -> bool {
        false
    }

    /// Leaves the thread where it is.
    pub(crate) fn bind_to(_core: usize) -> bool {
        false
    }
}
