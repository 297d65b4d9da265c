use super::*;
#[test]
fn compiles() {}
