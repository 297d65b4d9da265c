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

pub use address::PageAddress;
pub(crate) use address::base_href;
pub use canonical::{Canonicalizer, without_user};
pub use list::{ListedAddress, UrlList};
pub use ranges::UrlPattern;
pub use rules::{FollowPlan, FollowRule, FollowedLink, LinkContext, PageLinks};
pub use sitemap::{Sitemap, SitemapLimits};
