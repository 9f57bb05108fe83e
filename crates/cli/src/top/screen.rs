//! The terminal while pages are shown: keys come one by one, and what was there
//! comes back at the end.

use std::io::{Read, stdin, stdout};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::output;

/// To the other screen, and no cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// To the upper left corner. Lines are cleared to their ends, and then what is below.
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K\r\n";
const CLEAR_BELOW: &str = "\x1b[J";

pub struct Screen {
    before: Termios,
    keys: Receiver<char>,
}

impl Screen {
    pub fn open() -> Result<Self, Errno> {
        let before = tcgetattr(stdin())?;
        let mut modes = before.clone();
        // Ctrl-C still ends the command.
        modes.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(stdin(), OptionalActions::Now, &modes)?;
        print(ENTER);
        Ok(Self { before, keys: keys() })
    }

    /// Columns and lines.
    pub fn size(&self) -> (usize, Option<usize>) {
        match tcgetwinsize(stdout()) {
            Ok(size) if size.ws_col > 0 => (usize::from(size.ws_col), Some(usize::from(size.ws_row))),
            _ => (80, Some(24)),
        }
    }

    pub fn show(&self, text: &str) {
        let lines: Vec<_> = text.lines().collect();
        print(&format!("{HOME}{}{CLEAR_BELOW}", lines.join(CLEAR_LINE) + "\x1b[K"));
    }

    /// The next key, if one is pressed within this time.
    pub fn key(&self, time: Duration) -> Option<char> {
        match self.keys.recv_timeout(time) {
            Ok(key) => Some(key),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => None,
            // There are no keys any more.
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                thread::sleep(time);
                None
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        print(LEAVE);
        // The shell repairs the rest.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

/// A terminal that is gone shows itself as an end of the keys.
fn print(text: &str) {
    let _ = output::print(text);
}

fn keys() -> Receiver<char> {
    let (sender, keys) = channel();
    thread::spawn(move || {
        for byte in stdin().lock().bytes().map_while(Result::ok) {
            if sender.send(char::from(byte)).is_err() {
                return;
            }
        }
    });
    keys
}
