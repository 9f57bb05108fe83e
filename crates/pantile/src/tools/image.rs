//! The index image of a closed database.

use std::sync::Arc;

use pantile_media::{BesideFile, ViewMedium};
use pantile_store::{Image, Survey};

/// What is known about an index image; see [`inspect`](crate::tools::inspect()).
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct InspectedImage {
    /// Bytes of the file.
    pub bytes: u64,
    /// Whether the state record in force names an image, so that opening looks
    /// for it.
    pub is_named: bool,
    /// Why opening cannot use the image, so that it reads all contents. That is not damage, because
    /// the image holds no data.
    pub problem: Option<String>,
}

/// Reads the image, if there is one.
pub(super) fn look(view: &ViewMedium, found: &Survey) -> Option<InspectedImage> {
    let name = found.record().and_then(|record| record.image);
    let open = |file: &Arc<dyn BesideFile>| (file.len(), Image::open(Arc::clone(file), found.identity, name));
    // A successor counts only if it is the one that is named.
    let mut opened = view.images().iter().map(open);
    let first = opened.next()?;
    let (bytes, image) = opened.find(|(_, image)| image.is_ok()).unwrap_or(first);
    let whole = || image?.verify().map_err(|_| "a page of it is damaged");
    let problem = match name {
        Some(_) => whole().err(),
        None => Some("the last state record names none"),
    };
    Some(InspectedImage { bytes, is_named: name.is_some(), problem: problem.map(str::to_owned) })
}
