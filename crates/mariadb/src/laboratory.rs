//! Everything, for experiments.

use pantile::Collector;
use pantile_c::pantile_options;
use pantile_nvm::NvmConfig;

/// What can be chosen beside the collectors, for messages.
pub(crate) const MEDIA: &str = "file, dram, dax, or an emulated memory such as nvm:optane";

/// What other plugins have, for messages.
pub(crate) const ELSEWHERE: &str = "";

/// Every collector.
pub(crate) fn collectors() -> &'static [Collector] {
    pantile_rivals::all()
}

/// Sets an emulated memory, as in `nvm:optane`. Returns false if there is none of this name.
pub(crate) fn set_emulated(options: &mut pantile_options, name: &str) -> bool {
    let config = name.strip_prefix("nvm:").and_then(NvmConfig::by_name);
    config.map(|config| options.set_medium(config)).is_some()
}
