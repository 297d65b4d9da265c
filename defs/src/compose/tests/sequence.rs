//! Tests the order that `startSequence` gives to groups.

use crate::{DefsOptions, from_str};

#[test]
fn groups_are_numbered_without_gaps_in_both_forms() {
    let text = "
groups:
  first: { urls: https://a.example/, fields: { title: h1 }, follow: { selector: a, group: found } }
  later: { urls: https://b.example/, fields: { title: h1 }, startSequence: 70 }
  found: { fields: { title: h1 }, startSequence: 9 }
locatorGroups:
  classic: { locators: [ https://c.example/ ], sitemap: https://c.example/s.xml, startSequence: 70 }
taskGroups:
  classic: { task: { fields: { title: h1 } } }
";
    let defs = from_str("a.yml", text, &DefsOptions::default()).unwrap().defs;
    let order: Vec<_> = defs.start_order().into_iter().collect();
    let wanted = [("classic", 2), ("classic:sitemap", 2), ("found", 1), ("later", 2)];
    assert_eq!(order, wanted.map(|(name, place)| (name.to_owned(), place)));
}

#[test]
fn the_same_number_for_all_groups_is_no_order() {
    let text = "groups: { a: { urls: https://a.example/, fields: { t: h1 }, startSequence: 5 } }";
    let defs = from_str("a.yml", text, &DefsOptions::default()).unwrap().defs;
    assert!(defs.start_order().is_empty());
}

#[test]
fn a_wrong_number_is_reported_once() {
    for text in [
        "groups: { a: { urls: https://a.example/, sitemap: https://a.example/s.xml, \
         fields: { t: h1 }, startSequence: -1 } }",
        "groups: { a: { urls: https://a.example/, fields: { t: h1 }, startSequence: first } }",
    ] {
        let problems = from_str("a.yml", text, &DefsOptions::default()).unwrap_err();
        assert_eq!(problems.0.len(), 1, "{problems:?}");
        assert!(problems.0[0].message.starts_with("`startSequence` must be a whole number"));
    }
}
