//! Links to follow and other sources of addresses: which pages a run goes to.
//!
//! Rules are compiled once; on each page they give links in their one spelling, and a reason for
//! every link that they do not give.

mod address;
mod canonical;
mod list;
mod ranges;
mod reasons;
mod rules;
mod scope;
mod sitemap;

pub use address::Address;
pub(crate) use address::base_href;
pub use canonical::{Canon, without_user};
pub use list::{Listed, UrlList};
pub use ranges::UrlPattern;
pub use rules::{FollowPlan, FollowedLink, Found, Ground, Rule};
pub use sitemap::{Sitemap, SitemapLimits};
