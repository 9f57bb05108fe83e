//! The files of snapshots. None outlives the process that has made it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::failed::Outcome;

const PREFIX: &str = "raft-snapshot-";

pub struct Files(PathBuf);

impl Files {
    /// Removes what a process that was killed has left in the directory.
    pub fn open(dir: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        for file in fs::read_dir(dir)? {
            let file = file?;
            if file.file_name().to_string_lossy().starts_with(PREFIX) {
                fs::remove_file(file.path())?;
            }
        }
        Ok(Self(dir.to_owned()))
    }

    pub fn create(&self) -> Outcome<NamedTempFile> {
        Ok(Builder::new().prefix(PREFIX).tempfile_in(&self.0)?)
    }

    pub fn create_nameless(&self) -> Outcome<File> {
        Ok(tempfile::tempfile_in(&self.0)?)
    }
}
