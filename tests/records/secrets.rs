//! Values from the environment, and secrets that must not appear in any output.

use crate::harness::{SiteResponse, TestSite, Workdir};

fn defs(site: &TestSite) -> String {
    format!(
        "groups:\n  g:\n    urls: \"{}?key=${{SHOP_TOKEN}}&page=${{PAGE:-1}}\"\n    \
         fields: {{ title: h1 }}\n",
        site.url("/list")
    )
}

#[test]
fn a_secret_is_used_and_never_shown() {
    let site = TestSite::start();
    site.answer("/list?key=s3cr%20et&page=1", SiteResponse::status(404));
    let work = Workdir::with_defs(&defs(&site));
    let run = ["run", "defs", "-vv", "--report", "report.json", "--set", "loader.fetch.delay=0"];
    let ending = work.start_with_env(&run, &[("SHOP_TOKEN", "s3cr et")]).end();
    assert_eq!(ending.code, 4, "{}", ending.stderr);
    assert!(ending.stderr.contains("key=${SHOP_TOKEN}"), "{}", ending.stderr);
    let failed = work.spoonbill(&["failed"]);
    assert!(failed.stdout.contains("key=${SHOP_TOKEN}"), "{}", failed.stdout);
    for shown in [&ending.stderr, &ending.stdout, &failed.stdout, &work.read("report.json")] {
        assert!(!shown.contains("s3cr"), "{shown}");
    }
    assert!(site.log().iter().any(|hit| hit.path.contains("s3cr")));
}

#[test]
fn a_missing_variable_is_a_problem_with_its_place() {
    let site = TestSite::start();
    let work = Workdir::with_defs(&defs(&site));
    let ending = work.spoonbill(&["check", "defs"]);
    assert_eq!(ending.code, 3);
    assert!(ending.stderr.contains("the environment has no variable `SHOP_TOKEN`"));
    assert!(ending.stderr.contains("defs/job.yml:3:11"), "{}", ending.stderr);
}

#[test]
fn both_values_of_a_changed_secret_are_hidden() {
    let site = TestSite::start();
    site.otherwise(|_, _| SiteResponse::status(404));
    let work = Workdir::with_defs(&defs(&site));
    let with = |command: &str, token: &str| {
        let arguments =
            [command, "defs", "-vv", "--report", "report.json", "--set", "loader.fetch.delay=0"];
        work.start_with_env(&arguments, &[("SHOP_TOKEN", token)]).end()
    };
    with("run", "oldvalue");
    let again = with("retry", "newvalue");
    assert_eq!(again.code, 4, "{}", again.stderr);
    for shown in [&again.stderr, &again.stdout, &work.read("report.json")] {
        assert!(!shown.contains("oldvalue") && !shown.contains("newvalue"), "{shown}");
    }
}

#[test]
fn a_password_of_an_address_is_not_shown() {
    let site = TestSite::start();
    site.page("/a", "<h1>x</h1><a href=b>b</a>");
    let with_user = |path: &str| site.url(path).replace("://", "://me:pa55w@");
    let work = Workdir::with_defs(&format!(
        "groups:\n  g:\n    urls: \"{}\"\n    follow: a\n    columns: [ url, locator ]\n    \
         fields: {{ title: h1 }}\n",
        with_user("/a")
    ));
    let ending = work.run(&["-vv"]);
    let failed = work.spoonbill(&["failed"]);
    let rows = work.read("output/latest/g.csv");
    assert!(rows.contains(&site.url("/a")), "{rows}");
    assert!(failed.stdout.contains("\"name\":\"http://***@"), "{}", failed.stdout);
    for shown in [&ending.stderr, &failed.stdout, &work.read("report.json"), &rows] {
        assert!(!shown.contains("pa55w"), "{shown}");
    }
}
