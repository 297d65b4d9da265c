//! Pages that are malformed or made to exhaust a limit.

use std::time::{Duration, Instant};

use super::*;

#[test]
fn nested_blocks_make_a_row_each() {
    let page = "<div class=b>1<i>x</i><div class=b>2<i>y</i></div></div>";
    let made = extract(
        &record(
            Some(css(".b")),
            vec![field(css("i")), { Field { name: Text::new("all"), ..field(css(".")) } }],
        ),
        page,
    );
    assert_eq!(lines(&made), ["x|1x 2y", "y|2y"]);
}

#[test]
fn deeply_nested_blocks_stop_at_the_byte_limit() {
    let page = format!("{}{}", "<div>".repeat(2000), "x".repeat(50_000));
    let plan = plan(&record(Some(css("div")), vec![field(css("."))]));
    let limits = RecordLimits { bytes_max: 10 << 20, ..RecordLimits::default() };
    let made = on_page(&page, |page| plan.extract(page, &mut NoScripts, &limits));
    assert_eq!(made.unwrap_err(), RecordError::TooManyBytes(10 << 20));
}

#[test]
fn rows_and_time_have_limits() {
    let page = "<p>x".repeat(50);
    let plan = plan(&record(Some(css("p")), vec![field(css("."))]));
    let few = RecordLimits { rows_max: 49, ..RecordLimits::default() };
    let made = on_page(&page, |page| plan.extract(page, &mut NoScripts, &few));
    assert_eq!(made.unwrap_err(), RecordError::TooManyRows(49));
    let late = RecordLimits {
        deadline: Instant::now().checked_sub(Duration::from_millis(1)),
        ..RecordLimits::default()
    };
    let made = on_page(&page, |page| plan.extract(page, &mut NoScripts, &late));
    assert_eq!(made.unwrap_err(), RecordError::OutOfTime(0));
}

#[test]
fn a_huge_text_is_extracted_and_a_huge_misfit_is_cut() {
    let page = format!("<p>{}</p>", "word \n".repeat(200_000));
    assert_eq!(value(field(css("p")), &page).unwrap().len(), 5 * 200_000 - 1);
    let number = spoonbill_defs::FieldType::Decimal(spoonbill_defs::Separators::default());
    let made = extract(&record(None, vec![Field { kind: number, ..field(css("p")) }]), &page);
    assert_eq!(made.misfits[0].value.chars().count(), 83);
}

#[test]
fn misfits_beyond_the_kept_ones_are_counted() {
    let page = "<p>x".repeat(150);
    let number = spoonbill_defs::FieldType::Integer(spoonbill_defs::Separators::default());
    let field = Field { kind: number, ..field(css(".")) };
    let made = extract(&record(Some(css("p")), vec![field]), &page);
    assert_eq!((made.rows.len(), made.misfits.len(), made.fields[0].misfits), (150, 100, 150));
}

#[test]
fn a_regex_that_exceeds_its_limit_is_a_misfit() {
    let page = format!("<p>{}</p>", "a".repeat(200));
    let regex = Field { regex: Some(Text::new(r"(a*)*\1b")), ..field(css("p")) };
    let made = extract(&record(None, vec![regex]), &page);
    assert_eq!(lines(&made), ["~"]);
}

#[test]
fn json_paths_stop_at_the_step_limit() {
    let json = format!("{}1{}", "[".repeat(900), "]".repeat(900));
    let error = try_extract(&record(None, vec![field(super::json("$..*..*..*..*"))]), &json);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("query `$..*..*..*..*`: the JSON path takes too many steps"), "{error}");
}

#[test]
fn a_block_must_be_a_node() {
    let error = try_extract(&record(Some(xpath("count(//p)")), vec![field(css("p"))]), "<p>");
    let error = error.unwrap_err().to_string();
    assert_eq!(
        error,
        "block: query `count(//p)`: a block must be a node, not a string, number or boolean"
    );
}
