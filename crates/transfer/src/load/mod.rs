//! Loading.

mod csv;
mod files;
mod input;
mod loading;
mod rows;
mod session;
mod settings;
mod stream;
mod work;

pub use loading::Load;
pub use settings::Loaded;
