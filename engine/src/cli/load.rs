//! Loads one page, for commands that look at a page without running a job.

use spoonbill_plugins::loader::file::FileLoader;
use spoonbill_plugins::loader::http::HttpLoader;
use spoonbill_plugins::loader::{FetchedPage, PageTarget};

use crate::config::Config;

/// Loads a file or URL.
pub(super) fn load(source: &str, config: &Config) -> Result<FetchedPage, String> {
    match PageTarget::of(source).map_err(|error| error.message)? {
        PageTarget::Path(path) => {
            let files = FileLoader {
                resources_dir: config.fetch.resources_dir.clone(),
                body_max: config.fetch.body_bytes_max,
            };
            files.read(&path).map_err(|error| error.message)
        }
        PageTarget::Http(url) => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| format!("no async runtime: {error}"))?;
            let loader = HttpLoader::new(&config.fetch.http()).map_err(|error| error.message)?;
            runtime.block_on(loader.load(&url)).map_err(|error| error.message)
        }
    }
}
