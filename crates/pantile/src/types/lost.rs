//! What recovery leaves out of a damaged database that is opened to be read.

use pantile_base::sync::Mutex;

/// One thing that is left out.
#[derive(Clone, Debug)]
pub(crate) struct Lost {
    pub table: Option<u32>,
    pub tuple: Option<u64>,
    pub what: String,
}

/// Everything that is left out.
#[derive(Default, Debug)]
pub(crate) struct LostParts(Mutex<Vec<Lost>>);

impl LostParts {
    pub fn note(&self, table: Option<u32>, tuple: Option<u64>, what: impl Into<String>) {
        self.0.lock().push(Lost { table, tuple, what: what.into() });
    }

    pub fn take(&self) -> Vec<Lost> {
        std::mem::take(&mut self.0.lock())
    }
}
