//! Reads the examples of the guide as definitions.

use spoonbill_defs::{DefsOptions, from_str};

#[test]
fn every_example_of_the_guide_has_no_problems() {
    let guide = include_str!("../../docs/guide.md");
    let examples: Vec<&str> =
        guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() > 6, "{}", examples.len());
    for example in examples {
        match from_str("guide.yml", example, &DefsOptions::default()) {
            Ok(loaded) => assert_eq!(loaded.warnings, [], "{example}"),
            Err(problems) => panic!("{problems:?}\n{example}"),
        }
    }
}
