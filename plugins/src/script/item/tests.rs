use super::super::testing::{page_facts, zoned};
use super::super::{ItemScripts, Limits, ScriptError};

fn eval(expression: &str) -> Option<String> {
    let mut scripts = ItemScripts::new(&page_facts(), Limits::default());
    scripts.eval(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

fn check(expression: &str, expect: &str) {
    assert_eq!(eval(expression).as_deref(), Some(expect), "{expression}");
}

fn fail(expression: &str) -> String {
    let mut scripts = ItemScripts::new(&page_facts(), Limits::default());
    scripts.eval(expression).unwrap_err().to_string()
}

#[test]
fn a_page_without_scripts_starts_no_engine() {
    let scripts = ItemScripts::new(&page_facts(), Limits::default());
    assert!(scripts.engine_state.is_none());
}

#[test]
fn document_has_the_facts_of_the_page() {
    check("document.getName()", "acme");
    check("document.getGroup()", "snapshot");
    check("document.getUrl()", "http://example.org/acme");
    check("document.getLocatorId()", "17");
    check("document.getFromDate()", "2019-01-02T03:04:05");
    check("document.getDocumentObject().length", "11");
    check("String.fromCharCode(document.getDocumentObject()[3])", "A");
    assert_eq!(eval("document.getId()"), None);
    check("document.name + ' ' + document.group", "acme snapshot");
    check("document.fromDate", "2019-01-02T03:04:05");
}

#[test]
fn configs_has_the_facts_of_the_run() {
    check("configs.getRunDateTime()", "2020-05-06T07:08:09");
    check("configs.getRunDateTimeText()", "2020-05-06T07:08:09");
    check("configs.getRunDate()", "2020-05-06T00:00:00");
    check("configs.getRunDateText()", "2020-05-06T00:00:00");
    check("configs.getHighDate()", "2037-12-31T23:59:59");
    check("configs.getConfig('defs.dir')", "/defs");
    check("configs.getConfig('scoopi.defs.dir')", "/defs");
    check("configs.getConfig('nothing', 'else')", "else");
    check("configs.getInt('poolsize.parser') + 1", "5");
    check("configs.getInt('defs.dir', 7)", "7");
    check("configs.getInt('nothing', 7)", "7");
    check("configs.getBoolean('persist.data') === true", "true");
    check("configs.getBoolean('nothing', false)", "false");
    check("configs.isCluster()", "false");
    check("configs.getStage()", "prod");
    check("configs.getUserAgent()", "Spoonbill");
    check("configs.getWebClientTimeout()", "120000");
    check("configs.stage + configs.cluster", "prodfalse");
    assert!(fail("configs.getConfig('nothing')").contains("no setting `nothing`"));
    assert!(fail("configs.getInt('defs.dir')").contains("setting `defs.dir` is `/defs`"));
}

#[test]
fn values_become_text_as_java_would_print_them() {
    check("3", "3");
    check("6 / 2", "3");
    check("3.0", "3");
    check("7 / 2", "3.5");
    check("-0", "0");
    check("1e6", "1000000");
    check("'a' + 1", "a1");
    check("true", "true");
    check("[1, 2]", "1,2");
    check("''", "");
    check("'\\u00fc\\ud83d\\ude00\\u0000x'", "ü😀\0x");
    check("'a\\ud800b'", "a\u{fffd}b");
    assert_eq!(eval("null"), None);
    assert_eq!(eval("undefined"), None);
    assert_eq!(eval("void 0"), None);
    assert_eq!(eval("var x = 1;"), None);
    assert_eq!(eval(""), None);
}

#[test]
fn dates_have_the_pattern_of_the_run_and_support_arithmetic() {
    check("'on ' + document.getFromDate()", "on 2019-01-02T03:04:05");
    check("`${document.getFromDate()}`", "2019-01-02T03:04:05");
    check("document.getFromDate().toString()", "2019-01-02T03:04:05");
    let millis = zoned("2019-01-02T03:04:05").timestamp().as_millisecond();
    check("document.getFromDate().getTime()", &millis.to_string());
    check("document.getFromDate().getFullYear()", "2019");
    check("new Date(document.getFromDate().getTime() + 1000)", "2019-01-02T03:04:06");
    check("new Date(2021, 0, 31)", "2021-01-31T00:00:00");
    check("var d = document.getFromDate(); d.setDate(9); 'd ' + d", "d 2019-01-09T03:04:05");
    check("document.getFromDate() < configs.getRunDateTime()", "true");
    check("document.getFromDate() instanceof Date", "true");
    check("new Date(NaN)", "Invalid Date");
    check("Object.create(Date.prototype).constructor === Date", "true");
    check("Date = 5; document.getName()", "acme");
    check("document === document && configs === globalThis.configs", "true");
    check("document = 5; document", "5");
    check("var configs = 5; configs", "5");
}

#[test]
fn sloppy_code_is_legal_and_globals_stay_with_the_page() {
    let mut scripts = ItemScripts::new(&page_facts(), Limits::default());
    assert_eq!(scripts.eval("count = 1; with ({ a: 010 }) a"), Ok(Some("8".to_owned())));
    assert_eq!(scripts.eval("count += 1"), Ok(Some("2".to_owned())));
    let mut other = ItemScripts::new(&page_facts(), Limits::default());
    assert_eq!(other.eval("typeof count"), Ok(Some("undefined".to_owned())));
}

#[test]
fn errors_name_line_and_column_and_keep_the_engine_usable() {
    let mut scripts = ItemScripts::new(&page_facts(), Limits::default());
    scripts.eval("kept = 1").unwrap();
    let error = scripts.eval("1 +\n  missing.value").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`script` line 2, column 3: ReferenceError: missing is not defined"
    );
    assert_eq!(scripts.eval("kept"), Ok(Some("1".to_owned())));
    assert_eq!(scripts.eval("throw 'my words'").unwrap_err().to_string(), "`script`: my words");
    assert!(scripts.eval("1 +").is_err());
    assert!(scripts.eval("1 \0 2").is_err());
    assert!(scripts.eval("Symbol('x')").is_err());
    assert!(scripts.eval("Object.create(null)").is_err());
    let error = scripts.eval("throw new Error('x'.repeat(1e6))").unwrap_err();
    assert!(error.to_string().len() < 1200);
    assert!(matches!(error, ScriptError::Thrown { .. }));
    assert_eq!(scripts.eval("kept"), Ok(Some("1".to_owned())));
}

#[test]
fn log_is_kept_and_bounded() {
    let mut scripts = ItemScripts::new(&page_facts(), Limits::default());
    scripts.eval("log('a', 1, null); print('b')").unwrap();
    assert_eq!(scripts.take_log(), ["a 1 null", "b"]);
    scripts.eval("for (var i = 0; i < 1e4; i++) log('x'.repeat(2000))").unwrap();
    let lines = scripts.take_log();
    assert_eq!(lines.len(), 200);
    assert!(lines[0].len() < 1100);
}
