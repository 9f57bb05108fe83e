//! What the operating systems do in different ways: one file for each, all with the same functions.

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
compile_error!("Pantile knows Linux, macOS and Windows only; see docs/platforms.md");

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(target_os = "macos")]
pub use macos::*;
#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;
