//! What the Debian package has: nothing of the laboratory.

use pantile::Collector;
use pantile_c::pantile_options;

/// The media, for messages.
pub(crate) const MEDIA: &str = "file, dram, dax";

/// What other plugins have, for messages.
pub(crate) const ELSEWHERE: &str =
    " (collectors of other papers and emulated memories are in the plugin that scripts/mariadb/build makes)";

/// The engine's own collectors.
pub(crate) fn collectors() -> &'static [Collector] {
    &[Collector::NONE, Collector::TB_COLLECT_EAGER, Collector::TB_COLLECT]
}

/// There are no emulated memories.
pub(crate) fn set_emulated(_options: &mut pantile_options, _name: &str) -> bool {
    false
}
