//! `expect`: conditions on the rows of a run.

use super::with_page;

const PAGE: &str = "<p><b>ab</b></p><p><b>cd</b><i>1</i></p><p><b>E!</b></p>";

#[test]
fn met_expectations_are_not_reported() {
    let work = with_page(
        "block: p\nfields: { b: b, i: i }\n\
         expect: { minRows: 3, maxRows: 3, fill: { i: 33% }, pattern: { b: '[a-z]+|E!' } }\n",
        PAGE,
    );
    let ending = work.run(&[]);
    assert_eq!(ending.code, 0, "{}", ending.stderr);
}

#[test]
fn unmet_expectations_are_named_and_the_run_ends_with_5() {
    let work = with_page(
        "block: p\nfields: { b: b, i: i.value }\n\
         expect: { minRows: 4, fill: { i: 50% }, pattern: { b: '[a-z]+' } }\n",
        PAGE,
    );
    let ending = work.run(&[]);
    assert_eq!(ending.code, 5);
    for words in [
        "with 3 unmet expectations",
        "g (`p`): 3 rows instead of at least 4",
        "g.i (`i.value`): 0 of 3 rows with a value, instead of 50 %",
        "g.b (`b`): 1 value is not as the pattern says: `E!` on page.html",
    ] {
        assert!(ending.stderr.contains(words), "{words} in\n{}", ending.stderr);
    }
    assert_eq!(work.report()["unmet"].as_array().map(Vec::len), Some(3));
    assert_eq!(work.read("output/latest/g.csv").lines().count(), 4);
}

#[test]
fn an_expectation_without_rows_names_the_required_field() {
    let work = with_page(
        "block: p\nfields: { b: { selector: u, required: true }, i: i }\n\
         expect: { minRows: 1, fill: { i: 10% } }\n",
        PAGE,
    );
    let ending = work.run(&[]);
    assert_eq!(ending.code, 5);
    for words in [
        "g (`p`): 0 rows instead of at least 1; 3 rows dropped for want of `b` (`u`)",
        "g.i (`i`): there is no row that could have a value",
    ] {
        assert!(ending.stderr.contains(words), "{words} in\n{}", ending.stderr);
    }
}

#[test]
fn pages_without_the_block_are_counted() {
    let work = with_page("block: li\nfields: { b: b }\n", PAGE);
    work.run(&[]);
    assert_eq!(work.report()["notes"]["g: pages without block `li`"], 1);
}
