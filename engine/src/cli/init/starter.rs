//! The project that `init` writes without samples.

use crate::cli::init::project::NewFile;

const PAGES: [(&str, &str); 5] = [
    ("pages/page-1.html", include_str!("starter/page-1.html")),
    ("pages/page-2.html", include_str!("starter/page-2.html")),
    ("pages/rye.html", include_str!("starter/rye.html")),
    ("pages/spelt.html", include_str!("starter/spelt.html")),
    ("pages/oat.html", include_str!("starter/oat.html")),
];

/// Definitions of a small bakery and its pages; `dir` is named in the comments.
pub(crate) fn starter(dir: &str) -> Vec<NewFile> {
    let defs = include_str!("starter/loaves.yml").replace("DIR", dir);
    let pages = PAGES.iter().map(|(path, text)| NewFile::new(*path, *text));
    std::iter::once(NewFile::new("loaves.yml", defs)).chain(pages).collect()
}
