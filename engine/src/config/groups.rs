//! Values that the engine derives from groups of settings.

use std::time::Instant;

use spoonbill_plugins::html::TreeLimits;
use spoonbill_plugins::loader::http::HttpSettings;

use super::table::{FetchConfig, ParseConfig, StoreConfig};

impl FetchConfig {
    /// The settings of one request.
    pub(crate) fn http(&self) -> HttpSettings {
        HttpSettings {
            user_agent: self.user_agent.clone(),
            connect_timeout: self.connect_timeout,
            idle_timeout: self.idle_timeout,
            total_timeout: self.total_timeout,
            redirects_max: self.redirects_max as usize,
            body_max: self.body_bytes_max,
            retry_after_max: self.retry_after_max,
            ..HttpSettings::default()
        }
    }
}

impl ParseConfig {
    /// Limits on the tree of a page whose parsing starts now.
    pub(crate) fn tree_limits(&self) -> TreeLimits {
        TreeLimits {
            nodes_max: self.nodes_max,
            depth_max: self.depth_max,
            deadline: Instant::now().checked_add(self.time_max),
        }
    }
}

impl StoreConfig {
    /// Whether pages are saved for later runs.
    pub(crate) fn saves_pages(&self) -> bool {
        self.enable && self.persist_locator
    }

    /// Whether parsed data is saved for later runs.
    pub(crate) fn saves_data(&self) -> bool {
        self.enable && self.persist_data
    }
}
