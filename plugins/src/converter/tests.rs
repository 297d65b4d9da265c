use jiff::tz::TimeZone;
use spoonbill_defs::{PluginValue, Text};

use super::*;
use crate::data::{Axis, AxisKind, Row};

fn setup() -> DateSetup {
    DateSetup { zone: TimeZone::get("Asia/Kolkata").unwrap(), run_year: 2026 }
}

fn plugin(class: &str, options: &[(&str, &str)]) -> PluginDef {
    let one = |(key, value): &(&str, &str)| (Text::new(*key), PluginValue::One(Text::new(*value)));
    PluginDef {
        name: Text::new("dates"),
        class: Text::new(class),
        options: options.iter().map(one).collect(),
        plugins: Vec::new(),
    }
}

fn roller(input: &str, output: &str, roll: &str) -> ItemConverter {
    let options = [("item", "date"), ("inPattern", input), ("outPattern", output), ("roll", roll)];
    from_def(&plugin("date_roller", &options), &setup()).unwrap()
}

fn formatter(input: &str, output: &str) -> ItemConverter {
    let class = "org.codetab.scoopi.plugin.converter.DateFormater";
    let options = [("item", "date"), ("inPattern", input), ("outPattern", output)];
    from_def(&plugin(class, &options), &setup()).unwrap()
}

#[track_caller]
fn rolls(roll: &str, text: &str, expect: &str) {
    let pattern = "yyyy-MM-dd HH:mm";
    let got = roller(pattern, pattern, roll).converter.convert(text).unwrap();
    assert_eq!(got, expect, "{roll} of {text}");
}

#[track_caller]
fn problems(class: &str, options: &[(&str, &str)]) -> Vec<String> {
    let problems = from_def(&plugin(class, options), &setup()).unwrap_err();
    problems
        .into_iter()
        .map(|it| match it.help {
            Some(help) => format!("{} ({help})", it.message),
            None => it.message,
        })
        .collect()
}

fn data(values: &[Option<&str>]) -> Data {
    let row = |value: Option<&str>| Row {
        axes: vec![Axis {
            kind: AxisKind::Dim,
            item_name: "date".into(),
            value: value.map(str::to_owned),
            match_text: None,
            index: None,
            order: None,
        }],
        ..Row::default()
    };
    Data {
        name: "acme:quote:price".to_owned(),
        rows: values.iter().copied().map(row).collect(),
        ..Data::default()
    }
}

fn values(data: &Data) -> Vec<&str> {
    data.rows.iter().filter_map(|row| row.axes[0].value.as_deref()).collect()
}

#[test]
fn ceil_gives_the_last_day_of_a_month() {
    let converter = roller("MMM ''YY", "yyyy-MM-dd", "DAY_OF_MONTH=ceil").converter;
    assert_eq!(converter.convert("Dec '16").unwrap(), "2016-12-31");
    assert_eq!(converter.convert("Feb '16").unwrap(), "2016-02-29");
}

#[test]
fn each_field_rolls_to_its_value() {
    rolls("DAY_OF_MONTH=floor", "2016-05-17 10:00", "2016-05-01 10:00");
    rolls("DAY_OF_MONTH=round", "2016-05-15 10:00", "2016-05-01 10:00");
    rolls("DAY_OF_MONTH=round", "2016-05-16 10:00", "2016-05-31 10:00");
    rolls("DAY_OF_MONTH=7", "2016-05-16 10:00", "2016-05-07 10:00");
    rolls("DATE=32", "2016-05-16 10:00", "2016-06-01 10:00");
    rolls("MONTH=0", "2016-05-16 10:00", "2016-01-16 10:00");
    rolls("MONTH=ceil", "2016-05-16 10:00", "2016-12-16 10:00");
    rolls("YEAR=2020", "2016-05-16 10:00", "2020-05-16 10:00");
    rolls("DAY_OF_YEAR=ceil", "2016-05-16 10:00", "2016-12-31 10:00");
    rolls("DAY_OF_WEEK=6", "2016-05-16 10:00", "2016-05-20 10:00");
    rolls("WEEK_OF_YEAR=1", "2016-05-16 10:00", "2015-12-28 10:00");
    rolls("WEEK_OF_MONTH=ceil", "2016-05-16 10:00", "2016-05-30 10:00");
    rolls("HOUR_OF_DAY=ceil", "2016-05-16 10:00", "2016-05-16 23:00");
    rolls("HOUR=3", "2016-05-16 13:00", "2016-05-16 15:00");
    rolls("AM_PM=floor", "2016-05-16 13:00", "2016-05-16 01:00");
    rolls("MINUTE=round", "2016-05-16 10:29", "2016-05-16 10:00");
    rolls("MINUTE=round", "2016-05-16 10:30", "2016-05-16 10:59");
}

#[test]
fn rolls_apply_in_the_order_written() {
    rolls("MONTH=1 DAY_OF_MONTH=ceil", "2015-01-31 10:00", "2015-02-28 10:00");
    rolls("DAY_OF_MONTH=ceil MONTH=1", "2015-01-10 10:00", "2015-03-03 10:00");
    rolls("MONTH=floor DATE=floor", "2015-08-31 10:00", "2015-01-01 10:00");
}

#[test]
fn the_last_possible_date_can_be_rolled() {
    let converter = roller("dd-MM-yyyy", "yyyy/MM/dd Z", "DAY_OF_MONTH=ceil").converter;
    assert_eq!(converter.convert("01-12-9999").unwrap(), "9999/12/31 +0530");
    let beyond = roller("dd-MM-yyyy", "yyyy", "DAY_OF_MONTH=32").converter;
    let error = beyond.convert("01-12-9999").unwrap_err();
    assert_eq!(error.to_string(), "`01-12-9999` rolls to a date beyond the year 9999");
}

#[test]
fn a_formatter_takes_the_first_alternative_that_fits() {
    let converter = formatter("dd.MM.yyyy|yyyy-MM-dd|MMM d, yyyy", "dd MMM yyyy").converter;
    assert_eq!(converter.convert("03.02.2001").unwrap(), "03 Feb 2001");
    assert_eq!(converter.convert("2001-02-03").unwrap(), "03 Feb 2001");
    assert_eq!(converter.convert("Feb 3, 2001").unwrap(), "03 Feb 2001");
}

#[test]
fn a_formatter_keeps_the_zone_of_the_text_and_a_roller_does_not() {
    let (input, output) = ("yyyy-MM-dd HH:mmXXX", "dd HH:mm XXX");
    let text = "2020-01-30 20:00+01:00";
    let kept = formatter(input, output).converter.convert(text).unwrap();
    assert_eq!(kept, "30 20:00 +01:00");
    let rolled = roller(input, output, "MINUTE=0").converter.convert(text).unwrap();
    assert_eq!(rolled, "31 00:00 +05:30");
}

#[test]
fn all_converters_convert_every_row_in_order() {
    let mut data = data(&[Some("Dec '16"), Some("Jan '17")]);
    let chain =
        [roller("MMM ''YY", "yyyy-MM-dd", "DAY_OF_MONTH=ceil"), formatter("yyyy-MM-dd", "d/M/yy")];
    apply(&chain, &mut data).unwrap();
    assert_eq!(values(&data), ["31/12/16", "31/1/17"]);
}

#[test]
fn errors_name_the_value_and_the_item() {
    let chain = [formatter("yyyy-MM-dd|dd.MM.yy", "yyyy")];
    let error = |values: &[Option<&str>]| apply(&chain, &mut data(values)).unwrap_err().to_string();
    assert_eq!(
        error(&[Some("2016-01-01"), Some("soon")]),
        "item `date`: `soon` does not fit the date pattern `yyyy-MM-dd|dd.MM.yy`"
    );
    assert_eq!(error(&[None]), "item `date` has no value to convert");
    let mut other = data(&[Some("2016-01-01")]);
    other.rows[0].axes[0].item_name = "fact".into();
    assert_eq!(
        apply(&chain, &mut other).unwrap_err().to_string(),
        "a row of `acme:quote:price` has no item `date` to convert"
    );
}

#[test]
fn all_problems_of_a_plugin_are_reported() {
    assert_eq!(
        problems(
            "date_roller",
            &[
                ("inPatern", "yyyy"),
                ("outPattern", "yyyy-bb"),
                ("roll", "DAY_OF_MONT=ceil MONTH=top HOUR YEAR=ceil"),
            ]
        ),
        [
            "plugin `dates` has no property `inPatern` (did you mean `inPattern`?)",
            "plugin `dates` lacks property `item`",
            "plugin `dates` lacks property `inPattern`",
            "date pattern `yyyy-bb`: `b` at offset 5 is not a pattern letter; put plain text in '...'",
            "roll has no field `DAY_OF_MONT` (did you mean `DAY_OF_MONTH`?)",
            "roll `MONTH` cannot be `top` (use `ceil`, `floor`, `round` or a whole number)",
            "roll `HOUR` has no `=` (write `FIELD=value`, such as `DAY_OF_MONTH=ceil`)",
            "roll `YEAR=ceil`: years have no first or last value (give the year as a number)",
        ]
    );
}

#[test]
fn empty_alternatives_lists_and_nested_plugins_are_problems() {
    let options = [("item", "date"), ("inPattern", "yyyy|"), ("outPattern", " ")];
    assert_eq!(
        problems("date_formatter", &options),
        ["`yyyy|` has an empty alternative", "property `outPattern` is blank"]
    );
    let mut def = plugin("date_formatter", &[("item", "date"), ("outPattern", "yyyy")]);
    let list = PluginValue::Many(vec![Text::new("yyyy")]);
    def.options.push((Text::new("inPattern"), list));
    def.plugins.push(plugin("csv", &[]));
    let found = from_def(&def, &setup()).unwrap_err();
    let messages: Vec<_> = found.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "property `inPattern` takes one value, not a list",
            "plugin `dates` takes no nested plugins",
        ]
    );
}

#[test]
fn classes_are_known_by_both_names() {
    assert!(is_converter("org.codetab.scoopi.plugin.converter.DateRoller"));
    assert!(is_converter("date_formatter"));
    assert!(!is_converter("csv"));
    assert_eq!(
        problems("org.codetab.scoopi.plugin.converter.DateFormatter", &[]),
        ["there is no converter `org.codetab.scoopi.plugin.converter.DateFormatter` \
          (did you mean `org.codetab.scoopi.plugin.converter.DateFormater`?)"]
    );
}
