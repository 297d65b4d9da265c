//! Facts for the tests of this module.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Zoned;
use jiff::tz::TimeZone;

use super::{RunFacts, ScriptFacts};

pub(crate) fn zoned(text: &str) -> Zoned {
    let date: jiff::civil::DateTime = text.parse().unwrap();
    date.to_zoned(TimeZone::system()).unwrap()
}

pub(crate) fn run_facts() -> Arc<RunFacts> {
    let settings: BTreeMap<&str, &str> = [
        ("poolsize.parser", "4"),
        ("persist.data", "True"),
        ("defs.dir", "/defs"),
        ("highDate", "2037-12-31T23:59:59.999"),
    ]
    .into();
    Arc::new(RunFacts {
        run_date_time: zoned("2020-05-06T07:08:09"),
        config: Arc::new(move |key| settings.get(key).map(|&text| text.to_owned())),
        is_cluster: false,
        stage: "prod".to_owned(),
        user_agent: "Spoonbill".to_owned(),
        timeout: Duration::from_mins(2),
        date_text: Arc::new(|date| date.strftime("%Y-%m-%dT%H:%M:%S").to_string()),
    })
}

pub(crate) fn page_facts() -> ScriptFacts {
    ScriptFacts {
        name: "acme".into(),
        group: "snapshot".into(),
        url: "http://example.org/acme".into(),
        from_date: zoned("2019-01-02T03:04:05"),
        locator_id: "17".into(),
        body: Bytes::from_static(b"<p>Acme</p>"),
        run: run_facts(),
    }
}
