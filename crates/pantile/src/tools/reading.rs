//! Reading the files of a closed database as they are.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pantile_media::ViewMedium;
use pantile_store::{Survey, SurveyCalls, Surveyed, survey};

use crate::api::incomplete;
use crate::engine::failure::from_medium;
use crate::tools::definitions::Definitions;
use crate::tools::findings::Findings;
use crate::tools::options::{CheckOptions, CheckStep};
use crate::types::error::Result;
use crate::types::schema::TableDef;

/// What has been read.
pub(super) struct Files {
    /// The files; nothing writes to them.
    pub view: Arc<ViewMedium>,
    /// What is in them.
    pub found: Survey,
    /// The definitions of the tables, by id.
    pub definitions: BTreeMap<u32, TableDef>,
}

impl Files {
    /// Reads all of them, collects what is wrong with them, and calls
    /// `contents` with the valid contents of each block.
    pub fn read(
        path: &Path,
        options: &CheckOptions,
        findings: &Findings,
        contents: &(dyn Fn(&[Surveyed<'_>]) + Sync),
    ) -> Result<Self> {
        incomplete::refuse(path)?;
        let view = ViewMedium::open(path, &|done, total| options.report(CheckStep::Read, done, total));
        let view = view.map_err(from_medium)?;
        findings.note_file(&view);
        let definitions = Definitions::default();
        let found = survey(
            &*view,
            &SurveyCalls {
                threads: options.thread_count(),
                contents: &|table, block| {
                    contents(block);
                    definitions.note(table, block.iter().map(|one| one.content));
                },
                finding: &|finding| findings.add(finding),
                progress: &|done, total| options.report(CheckStep::Survey, done, total),
            },
        );
        options.check_stopped()?;
        Ok(Self { view, found, definitions: definitions.tables() })
    }

    /// The names of the tables, by id.
    pub fn names(&self) -> BTreeMap<u32, String> {
        self.definitions.iter().map(|(id, def)| (*id, def.name.clone())).collect()
    }
}
