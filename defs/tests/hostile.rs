//! Hostile and random text causes problems, but never a panic.

use std::fmt::Write as _;

use spoonbill_defs::{DefsOptions, Problems, from_str};

const SAMPLE: &str = r#"
locatorGroups:
  g: &group
    locators: [ { name: "ä", url: "http://localhost/%7Ea" }, { name: b, url: x }, ]
taskGroups:
  g:
    live: P1W
    t:
      dataDef: d
      persist: { data: true }
      steps:
        own:
          make: { class: locator_creator, previous: parser, next: seeder }
dataDefs:
  d:
    query: { block: "tr:nth-child(%{item.index})", selector: "td:eq(%{dim.year.index}) attribute: href" }
    items: [ item: { name: a, selector: "%{index}", linkGroup: g, indexRange: 5-, breakAfter: [ "x" ] }, ]
    dims:
      - item: &dim
          name: year
          script: >
            document.getFromDate() +
            "%{item.value}"
          filters: [ filter: { type: value, pattern: " " } ]
    facts: [ item: { <<: *dim, name: fact } ]
steps:
  own:
    jsoupDefault:
      appender:
        class: data_appender
        previous: filter
        next: end
        plugins: [ plugin: { name: f, class: file, plugins: [ plugin: { name: c, class: csv } ] } ]
"#;

fn read(text: &str) -> Result<(), Problems> {
    from_str("hostile.yml", text, &DefsOptions::default()).map(drop)
}

#[track_caller]
fn refused_with(text: &str, expected: &str) {
    let Err(Problems(problems)) = read(text) else {
        panic!("definitions were read where `{expected}` was expected");
    };
    let found = problems.iter().any(|problem| problem.message.contains(expected));
    assert!(found, "no `{expected}`, but {:?}", problems.first());
}

#[test]
fn the_sample_has_no_problems() {
    assert_eq!(read(SAMPLE), Ok(()));
}

#[test]
fn a_cut_off_definition_causes_no_panic() {
    let ends = SAMPLE.char_indices().map(|(end, _)| end);
    for end in ends {
        drop(read(&SAMPLE[..end]));
        drop(read(&SAMPLE[end..]));
    }
}

#[test]
fn changed_characters_cause_no_panic() {
    const STRANGE: [&str; 24] = [
        "", "\t", "\n", "\r", " ", ":", ": ", "-", "- ", "{", "}", "[", "]", ",", "\"", "'", "&a ",
        "*dim", "!", "|", "%", "<<", "\u{0}", "\u{feff}",
    ];
    // A generator with a fixed seed, so that a failure can be repeated.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let chars: Vec<char> = SAMPLE.chars().collect();
    for _ in 0..2_000 {
        let mut changed = chars.clone();
        for _ in 0..=next(3) {
            let at = next(changed.len());
            let length = next(4).min(changed.len() - at);
            let strange = STRANGE[next(STRANGE.len())];
            changed.splice(at..at + length, strange.chars());
        }
        let text: String = changed.into_iter().collect();
        drop(read(&text));
    }
}

#[test]
fn flipped_bytes_cause_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    for at in (0..SAMPLE.len()).step_by(7) {
        let mut bytes = SAMPLE.as_bytes().to_vec();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(dir.path().join("a.yml"), bytes).unwrap();
        drop(spoonbill_defs::load(dir.path(), &DefsOptions::default()));
    }
}

#[test]
fn nesting_is_limited() {
    for open in ["[", "{ a: ", "- "] {
        refused_with(&open.repeat(100_000), "nested");
    }
    let mut indented = String::new();
    for depth in 0..2_000 {
        writeln!(indented, "{}a:", " ".repeat(depth)).unwrap();
    }
    refused_with(&indented, "nested");
    // Each list is shallow, but the aliases nest them.
    let mut aliases = String::from("a0: &a0 [ x ]\n");
    for level in 1..200 {
        writeln!(aliases, "a{level}: &a{level} [ *a{} ]", level - 1).unwrap();
    }
    refused_with(&aliases, "nested deeper");
}

#[test]
fn copies_by_aliases_are_limited() {
    let mut laughs = String::from("a0: &a0 [ x, x, x, x, x, x, x, x, x, x ]\n");
    for level in 1..20 {
        let list = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(laughs, "a{level}: &a{level} [ {list} ]").unwrap();
    }
    refused_with(&laughs, "more than 1000000 values");

    let text = "long ".repeat(100_000);
    let list = vec!["*a"; 10_000].join(", ");
    let copies = format!("a: &a \"{text}\"\nb: [ {list} ]\n");
    refused_with(&copies, "more than 1000000 values");
}

#[test]
fn huge_files_are_refused() {
    let text = "#".repeat(16 * 1024 * 1024 + 1);
    refused_with(&text, "is larger than");
}

#[test]
fn the_number_of_problems_is_limited() {
    let mut text = String::from("dataDefs:\n");
    for number in 0..20_000 {
        writeln!(text, "  d{number}: {{ quer: 1 }}").unwrap();
    }
    let Problems(problems) = read(&text).unwrap_err();
    assert!(problems.len() < 2_100, "{}", problems.len());
    let messages = problems.iter().map(|problem| problem.message.as_str());
    let cut: Vec<_> = messages.filter(|text| text.contains("not shown")).collect();
    assert_eq!(cut, ["39002 more errors are not shown", "19000 more warnings are not shown"]);
}

#[test]
fn a_long_sequence_of_base_chains_causes_no_stack_overflow() {
    let mut text = String::from("steps:\n");
    for number in 0..10_000 {
        writeln!(text, "  c{number}: {{ c{}: {{ }} }}", number + 1).unwrap();
    }
    refused_with(&text, "c10000");
}

#[test]
fn copies_of_chains_are_limited() {
    let mut text = String::from("steps:\n  c:\n    jsoupDefault:\n");
    for number in 0..190 {
        writeln!(
            text,
            "      s{number}: {{ class: data_filter, previous: {}, next: appender, plugins: [ {} ] }}",
            if number == 0 {
                "filter".to_owned()
            } else {
                format!("s{}", number - 1)
            },
            "plugin: { name: p, class: q, a: b }, ".repeat(20)
        )
        .unwrap();
    }
    text.push_str("taskGroups:\n  g:\n");
    for number in 0..300 {
        writeln!(text, "    t{number}: {{ dataDef: d, steps: c }}").unwrap();
    }
    text.push_str("locatorGroups: { g: { locators: [ { name: n, url: u } ] } }\n");
    text.push_str(
        "dataDefs: { d: { query: { block: b }, items: [ item: { name: i, value: v } ] } }\n",
    );
    refused_with(&text, "too large");
}
