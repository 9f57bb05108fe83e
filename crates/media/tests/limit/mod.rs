//! A limit on file sizes, which stands in for a full device.

// Only system calls can set such a limit.
#![allow(unsafe_code)]

/// Lets no file of this process grow beyond `bytes`.
pub fn limit_files(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: both calls get valid arguments; ignoring the signal makes the
    // system return an error instead.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}
