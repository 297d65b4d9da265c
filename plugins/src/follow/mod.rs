//! Sources of addresses: links on pages, sitemaps, lists and ranges.
//!
//! Follow rules are compiled once. On each page they return the normalized addresses of the links
//! to follow, and a reason for every other link.

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
