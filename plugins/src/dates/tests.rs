//! The expected results were taken from Java 17 (`SimpleDateFormat`, `DateTimeFormatter`) and from
//! the date parser of Apache Commons Lang.

use jiff::civil::date;
use jiff::tz::TimeZone;

use super::*;

fn setup(zone: &str) -> DateSetup {
    DateSetup { zone: TimeZone::get(zone).unwrap(), run_year: 2026 }
}

#[track_caller]
fn formats(dialect: DateDialect, zone: &str, expects: &[(&str, &str)]) {
    let at =
        date(2019, 12, 31).at(0, 5, 9, 7_089_000).to_zoned(TimeZone::get(zone).unwrap()).unwrap();
    for (pattern, expect) in expects {
        let pattern = DatePattern::compile_as(dialect, pattern).unwrap();
        assert_eq!(pattern.format(&at), *expect, "pattern `{}`", pattern.as_str());
    }
}

/// Parses in New York. Expected is `uuuu-MM-dd HH:mm:ss.SSS` without trailing zeros, or `no` for a
/// failure.
#[track_caller]
fn parses(pattern: &str, expects: &[(&str, &str)]) {
    let pattern = DatePattern::compile(pattern).unwrap();
    let setup = setup("America/New_York");
    let shown = DatePattern::compile("yyyy-MM-dd HH:mm:ss.SSS").unwrap();
    for (text, expect) in expects {
        let got = pattern.read(text, &setup).map(|it| shown.print(&it.in_zone(&setup.zone)));
        let got = got.as_deref().unwrap_or("no");
        let got = got.strip_suffix(" 00:00:00.000").unwrap_or(got);
        let got = got.strip_suffix(".000").unwrap_or(got);
        assert_eq!(got, *expect, "`{text}` by `{}`", pattern.as_str());
    }
}

#[test]
fn formats_like_simple_date_format() {
    formats(
        DateDialect::Calendar,
        "Asia/Kolkata",
        &[
            ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2019-12-31T00:05:09.007+0530"),
            ("yyyyMMMdd-HHmmss", "2019Dec31-000509"),
            ("EEE, d MMMM yy h:mm a", "Tue, 31 December 19 12:05 AM"),
            ("YYYY-'W'ww-u", "2020-W01-2"),
            ("D w W F u", "365 1 5 5 2"),
            ("k K h H", "24 0 12 0"),
            ("S SS SSSS", "7 07 0007"),
            ("X XX XXX", "+05 +0530 +05:30"),
            ("z zzzz", "IST India Standard Time"),
            ("'it''s' '' yyyyy", "it's ' 02019"),
            ("G GGGG", "AD AD"),
        ],
    );
}

#[test]
fn formats_like_date_time_formatter() {
    formats(
        DateDialect::Time,
        "Europe/Paris",
        &[
            ("uuuu-MM-dd'T'HH:mm:ss.SSSSSS", "2019-12-31T00:05:09.007089"),
            ("EEEEE MMMMM GGGG", "T D Anno Domini"),
            ("e c ee eee", "3 3 03 Tue"),
            ("X XXX x xxx", "+01 +01:00 +01 +01:00"),
            ("Z ZZZZ ZZZZZ", "+0100 GMT+01:00 +01:00"),
            ("O OOOO VV", "GMT+1 GMT+01:00 Europe/Paris"),
            ("Q QQ QQQ QQQQ", "4 04 Q4 4th quarter"),
            ("n", "7089000"),
        ],
    );
    formats(DateDialect::Time, "UTC", &[("X x Z z", "Z +00 +0000 UTC")]);
}

#[test]
fn month_names_are_parsed_in_any_case() {
    parses(
        "MMM ''YY",
        &[
            ("Dec '16", "2016-12-01"),
            ("december '16", "2016-12-01"),
            ("SEPT '16", "2016-09-01"),
            ("Dec 16", "no"),
            ("Dec '16 ", "no"),
            ("Foo '16", "no"),
        ],
    );
}

#[test]
fn two_digit_years_are_near_the_run() {
    // In a run of 2026, two digits mean 1946 to 2045.
    parses(
        "yy",
        &[
            ("46", "1946-01-01"),
            ("45", "2045-01-01"),
            ("05", "2005-01-01"),
            ("5", "2005-01-01"),
            ("2016", "2016-01-01"),
        ],
    );
    parses("yyyy", &[("16", "0016-01-01")]);
}

#[test]
fn fields_out_of_range_carry_over() {
    parses(
        "dd-MM-yyyy",
        &[
            ("32-01-2015", "2015-02-01"),
            ("31-02-2016", "2016-03-02"),
            ("15-13-2014", "2015-01-15"),
            ("00-00-2000", "1999-11-30"),
            (" 5- 6-2016", "2016-06-05"),
            ("-5-6-2016", "no"),
            ("99999999999-1-2016", "no"),
            ("31-12-9999", "9999-12-31"),
            ("32-12-9999", "no"),
        ],
    );
    parses("HH:mm", &[("25:61", "1970-01-02 02:01:00")]);
}

#[test]
fn adjacent_numbers_have_the_width_of_the_pattern() {
    parses("yyyyMMdd", &[("20160229", "2016-02-29"), ("201602299", "2016-11-25")]);
    parses("HHmm", &[("0930", "1970-01-01 09:30:00"), ("9", "no")]);
    parses("yyyyMMM", &[("2001Mar", "2001-03-01")]);
}

#[test]
fn the_combination_completed_last_decides() {
    parses("EEE, d MMM yyyy", &[("Mon, 2 Jan 2015", "2015-01-02")]);
    parses("yyyy D", &[("2016 366", "2016-12-31"), ("2015 366", "2016-01-01")]);
    parses("yyyy MM dd D", &[("2015 03 04 1", "2015-01-01")]);
    parses("YYYY-'W'ww-u", &[("2019-W01-1", "2018-12-31")]);
    parses("yyyy MM F EEE", &[("2015 03 2 Mon", "2015-03-09")]);
    parses("yyyy MM EEE", &[("2015 3 Mon", "2015-03-02")]);
    parses("yyyy MM W", &[("2015 3 3", "2015-03-15")]);
    parses("h:mm a", &[("12:30 AM", "1970-01-01 00:30:00"), ("1:05 pm", "1970-01-01 13:05:00")]);
    parses("HH h a", &[("15 3 AM", "1970-01-01 03:00:00")]);
}

#[test]
fn zones_are_parsed_in_all_forms() {
    parses(
        "yyyy-MM-dd HH:mm z",
        &[
            ("2020-01-01 12:00 GMT", "2020-01-01 07:00:00"),
            ("2020-07-01 12:00 PST", "2020-07-01 16:00:00"),
            ("2020-01-01 12:00 +0530", "2020-01-01 01:30:00"),
            ("2020-01-01 12:00 GMT+02:00", "2020-01-01 05:00:00"),
            ("2020-01-01 12:00 Asia/Kolkata", "2020-01-01 01:30:00"),
            ("2020-01-01 12:00 Eastern Standard Time", "2020-01-01 12:00:00"),
            ("2020-01-01 12:00 XYZ", "no"),
            ("2020-01-01 12:00", "no"),
        ],
    );
    let pattern = DatePattern::compile_as(DateDialect::Time, "yyyy-MM-dd'T'HH:mm:ss.SSSZ").unwrap();
    let text = "2020-01-30T10:20:05.123+0530";
    let read = pattern.parse(text, &setup("UTC")).unwrap();
    assert_eq!(pattern.format(&read), text);
}

#[test]
fn an_abbreviation_means_the_home_zone_first() {
    let pattern = DatePattern::compile("HH z").unwrap();
    let hour = |zone: &str| {
        let read = pattern.parse("12 IST", &setup(zone)).unwrap();
        read.offset().seconds() / 60
    };
    assert_eq!(hour("UTC"), 330);
    assert_eq!(hour("Asia/Jerusalem"), 120);
}

#[test]
fn skipped_and_repeated_hours_follow_java() {
    parses("yyyy-MM-dd HH:mm", &[("2020-03-08 02:30", "2020-03-08 03:30:00")]);
    let text = "2020-11-01 01:30";
    let offset = |dialect| {
        let pattern = DatePattern::compile_as(dialect, "yyyy-MM-dd HH:mm").unwrap();
        let read = pattern.parse(text, &setup("America/New_York")).unwrap();
        read.offset().seconds() / 3600
    };
    assert_eq!(offset(DateDialect::Calendar), -5);
    assert_eq!(offset(DateDialect::Time), -4);
}

#[test]
fn an_error_names_the_problem_and_its_offset() {
    let error = |pattern: &str| DatePattern::compile(pattern).unwrap_err();
    assert_eq!(error("yyyy-bb"), PatternError::UnknownLetter { letter: 'b', offset: 5 });
    assert_eq!(error("dd 'of"), PatternError::OpenQuote { offset: 3 });
    assert_eq!(error("dd 'of''"), PatternError::OpenQuote { offset: 3 });
    assert!(matches!(error(&"y".repeat(65)), PatternError::TooLong { letter: 'y', offset: 0 }));
    let optional = DatePattern::compile_as(DateDialect::Time, "dd[ HH]").unwrap_err();
    assert_eq!(optional, PatternError::Reserved { mark: '[', offset: 2 });
    assert!(error("yyyy-bb").to_string().contains("`b` at offset 5"));
}

#[track_caller]
fn lives(live: &str, expect: &str) {
    let from = date(2026, 1, 31)
        .at(10, 0, 0, 0)
        .to_zoned(TimeZone::get("America/New_York").unwrap())
        .unwrap();
    let pattern = DatePattern::compile_as(DateDialect::Time, "yyyy-MM-dd'T'HH:mm:ss.SSSZ").unwrap();
    let got = live_until(&from, live, &pattern);
    if expect == "zero" {
        assert_eq!(got.until, from, "`{live}`");
        assert!(got.warning.is_some_and(|it| it.contains(live)), "`{live}`");
    } else {
        assert_eq!(got.until.datetime().to_string(), expect, "`{live}`");
        assert_eq!(got.warning, None, "`{live}`");
    }
}

#[test]
fn live_is_a_duration_or_a_date() {
    for nothing in ["", "  ", "0", "PT0S"] {
        lives(nothing, "2026-01-31T10:00:00");
    }
    lives("PT6H", "2026-01-31T16:00:00");
    lives("P1D", "2026-02-01T10:00:00");
    lives("P1DT2H", "2026-02-01T12:00:00");
    lives("pt1.5s", "2026-01-31T10:00:01.5");
    lives("-PT1H", "2026-01-31T09:00:00");
    lives("P1W", "2026-02-07T10:00:00");
    lives("P2M", "2026-03-31T10:00:00");
    lives("P1M", "2026-02-28T10:00:00");
    lives("P1Y2M", "2027-03-31T10:00:00");
    // Summer time starts on 8 March. A day stays 24 hours, and a week seven days of the calendar.
    lives("P40D", "2026-03-12T11:00:00");
    lives("P6W", "2026-03-14T10:00:00");
    lives("2026-03-01T00:00:00.000+0000", "2026-03-01T00:00:00");
}

#[test]
fn an_invalid_live_is_zero_with_a_warning() {
    for live in
        ["PT1W", "P", "PT", "P1DT", "P1H", "P2M1Y", "P1.5D", "tomorrow", "P1YT1H", "P99999Y"]
    {
        lives(live, "zero");
    }
}
