//! The cores that this process may use, and binding a thread to one.

#[cfg(target_os = "linux")]
pub(crate) use linux::{allowed, bind_to};
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{allowed, bind_to};

#[cfg(target_os = "linux")]
mod linux {
    /// The cores on which the calling thread may run.
    pub(crate) fn allowed() -> Vec<usize> {
        // SAFETY: the set is a plain bit array that the call fills in.
        let set = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
            set
        };
        // SAFETY: the index is below CPU_SETSIZE.
        (0..libc::CPU_SETSIZE as usize).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect()
    }

    /// Binds the calling thread to a core. The thread ends with the test.
    pub(crate) fn bind_to(core: usize) {
        // SAFETY: the set is a plain bit array. If the call is refused, the thread
        // stays where it is.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(core, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
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
    pub(crate) fn bind_to(_core: usize) {}
}
