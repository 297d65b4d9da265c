//! The documents are true: their commands work as written and print what is shown below them, their links
//! and paths exist, and every page is in the table of contents.
//!
//! A `sh` block holds commands. A `text` block right after it shows consecutive lines of their output. `...` stands
//! for more lines. The blocks of one page run in order, in one shell, in a directory with a copy of `examples/`.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::harness::needs::PYTHON_3;

/// Programs that do not run here, and why. A script in their place reads its input and does nothing.
const LEFT_OUT: [(&str, &str); 9] = [
    ("bin/docker", "needs a Docker daemon"),
    ("bin/kubectl", "needs a Kubernetes cluster"),
    ("bin/just", "is optional; each recipe is one or two commands of .ci/run"),
    ("bin/mdbook", "is optional; another test here checks the table of contents"),
    (".ci/run", "runs this test"),
    ("tests/all", "runs this test"),
    ("bench/smoke/run", "needs valgrind; .ci/run runs it"),
    ("bench/nodes/run", "needs a site of 1,000 pages"),
    ("bin/cargo", "compiles for minutes; `cargo run --release --` runs the binary of this test"),
];

/// Arguments of `spoonbill` that do not run here, as patterns of the shell, and why.
const LEFT_OUT_ARGUMENTS: [(&str, &str); 5] = [
    ("run prices --cluster *", "needs three machines; docs/cluster.md also has a cluster on one"),
    ("status*", "needs a run in progress; tests/cluster/operator.rs has one"),
    ("cancel*", "needs a run in progress; tests/cluster/operator.rs has one"),
    ("fence*", "needs a run in progress; tests/cluster/operator.rs has one"),
    ("admit*", "needs a run in progress; tests/cluster/operator.rs has one"),
];

/// Ports in the documents. Each is replaced by a free one, so that two tests can run at once.
const PORTS: [&str; 4] = ["8000", "7401", "7402", "7403"];

/// Lines of a report whose values differ from run to run. Only their labels are compared.
const VARYING: [&str; 4] = ["run", "pages", "output", "memory"];

/// Stands for `spoonbill`. `try` gets a terminal, because it prints JSON lines elsewhere.
const SPOONBILL: &str = r#"#!/bin/bash
case "$*" in
PATTERNS) exit ;;
try*) python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$BINARY" "$@" ;;
*) exec "$BINARY" "$@" ;;
esac
"#;

/// Stands for `python3`. A web server would hold the terminal of a reader; here it runs in the background.
const PYTHON: &str = r#"#!/bin/bash
export PATH=$ORIGINAL_PATH
[[ "$1 $2" == "-m http.server" ]] || exec python3 "$@"
python3 "$@" >"$WORK/server.log" 2>&1 &
echo $! >>"$WORK/servers"
until (exec 3<>"/dev/tcp/127.0.0.1/$3") 2>/dev/null; do
    kill -0 $! || { cat "$WORK/server.log"; exit 1; }
    sleep 0.05
done
"#;

/// Stands for `cargo`.
const CARGO: &str = r#"#!/bin/bash
[[ "$1 $2 $3" != "run --release --" ]] || exec spoonbill "${@:4}"
"#;

/// Words that README.md may have.
const README_WORDS_MAX: usize = 900;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The pages for readers, as paths from the root.
fn pages() -> Vec<String> {
    let mut pages: Vec<String> =
        ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md", "examples/README.md"]
            .map(str::to_owned)
            .into();
    for folder in ["docs", "docs/decisions"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(format!("{folder}/{}", path.file_name().unwrap().display()));
            }
        }
    }
    pages
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// A block between lines of three backticks.
struct CodeBlock {
    language: String,
    text: String,
    line: usize,
}

fn code_blocks(page: &str) -> Vec<CodeBlock> {
    let mut blocks: Vec<CodeBlock> = Vec::new();
    let mut is_open = false;
    for (number, line) in read(page).lines().enumerate() {
        match (line.strip_prefix("```"), is_open) {
            (Some(language), false) => {
                let language = language.to_owned();
                assert!(!language.is_empty(), "{page}:{}: a block needs a language", number + 1);
                blocks.push(CodeBlock { language, text: String::new(), line: number + 1 });
                is_open = true;
            }
            (Some(_), true) => is_open = false,
            (None, true) => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    assert!(!is_open, "{page}: a block has no end");
    blocks
}

fn write_script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A directory with the parts of the repository that the documents use.
fn work_directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let copied =
        Command::new("cp").arg("-r").arg(root().join("examples")).arg(dir.path()).status().unwrap();
    assert!(copied.success());
    for (program, _) in LEFT_OUT {
        write_script(&dir.path().join(program), "#!/bin/sh\ncat >/dev/null\n");
    }
    let patterns = LEFT_OUT_ARGUMENTS.map(|(pattern, _)| pattern.replace(' ', "\\ ")).join("|");
    let spoonbill = SPOONBILL.replace("PATTERNS", &patterns);
    write_script(&dir.path().join("bin/spoonbill"), &spoonbill);
    write_script(&dir.path().join("bin/cargo"), CARGO);
    write_script(&dir.path().join("bin/python3"), PYTHON);
    dir
}

/// Runs the `sh` blocks of a page; the output of each, or the whole output if one fails.
fn run_blocks(page: &str, blocks: &[&CodeBlock]) -> Result<Vec<String>, String> {
    const MARKER: &str = "==== next block";
    let dir = work_directory();
    let mut script = "set -euo pipefail\nexec 2>&1\n\
        trap 'touch \"$WORK/servers\"; for server in $(cat \"$WORK/servers\"); do kill $server; done' EXIT\n"
        .to_owned();
    for block in blocks {
        writeln!(script, "echo '{MARKER}'\n{}", block.text).unwrap();
    }
    // All are held until all are found.
    let free: Vec<_> = PORTS.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    for (port, listener) in PORTS.iter().zip(&free) {
        let replacement = listener.local_addr().unwrap().port().to_string();
        script = script.replace(port, &replacement);
    }
    drop(free);
    let path = std::env::var("PATH").unwrap();
    let done = Command::new("timeout")
        .args(["120", "bash", "-c", &script])
        .current_dir(&dir)
        .env("WORK", dir.path())
        .env("BINARY", env!("CARGO_BIN_EXE_spoonbill"))
        .env("NO_COLOR", "1")
        .env("ORIGINAL_PATH", &path)
        .env("PATH", format!("{}/bin:{path}", dir.path().display()))
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() {
        Ok(output.split(&format!("{MARKER}\n")).skip(1).map(str::to_owned).collect())
    } else {
        Err(format!("{page}: a command ended with {}\n{output}", done.status))
    }
}

/// The lines of an output, without what differs from run to run.
fn comparable(output: &str) -> Vec<String> {
    let lines = output.trim_matches('\n').lines().filter(|line| *line != "...").map(|line| {
        let label = line.split_whitespace().next().unwrap_or_default();
        if VARYING.contains(&label) { label.to_owned() } else { line.trim_end().to_owned() }
    });
    lines.collect()
}

/// The first mistake in the commands of a page.
fn wrong_commands(page: &str) -> Option<String> {
    let blocks = code_blocks(page);
    let commands: Vec<&CodeBlock> = blocks.iter().filter(|block| block.language == "sh").collect();
    if commands.is_empty() {
        return None;
    }
    let outputs = match run_blocks(page, &commands) {
        Ok(outputs) => outputs,
        Err(words) => return Some(words),
    };
    let shown =
        blocks.windows(2).filter(|pair| pair[0].language == "sh" && pair[1].language == "text");
    for pair in shown {
        let place = commands.iter().position(|block| block.line == pair[0].line).unwrap();
        let (expected, found) = (comparable(&pair[1].text), comparable(&outputs[place]));
        if !found.windows(expected.len()).any(|lines| lines == expected) {
            let line = pair[1].line;
            return Some(format!("{page}:{line}: the commands above print\n{}", outputs[place]));
        }
    }
    None
}

#[test]
fn every_command_of_the_documents_works_and_prints_what_is_shown() {
    if !PYTHON_3.are_there() {
        return;
    }
    let pages = pages();
    let wrong: Vec<String> = thread::scope(|scope| {
        let checks: Vec<_> =
            pages.iter().map(|page| scope.spawn(|| wrong_commands(page))).collect();
        checks.into_iter().filter_map(|check| check.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The targets of links on a page, without addresses and without the part after `#`.
fn link_targets(page: &str) -> Vec<String> {
    let text = read(page);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets
        .map(|(target, _)| target.split('#').next().unwrap_or_default().to_owned())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}

#[test]
fn every_link_of_the_documents_leads_to_a_file() {
    let mut broken = Vec::new();
    for page in pages() {
        let folder = root().join(&page).parent().unwrap().to_owned();
        for target in link_targets(&page) {
            if !folder.join(&target).exists() {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_path_that_the_documents_name_exists() {
    let folders = [
        "defs/",
        "plugins/",
        "engine/",
        "tests/",
        "docs/",
        "bench/",
        "examples/",
        ".ci/",
        ".github/",
    ];
    let mut missing = Vec::new();
    for page in pages() {
        for name in read(&page).split('`').skip(1).step_by(2) {
            let is_path = folders.iter().any(|folder| name.starts_with(folder));
            if is_path && !name.contains(['<', ' ', '*']) && !root().join(name).exists() {
                missing.push(format!("{page}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn every_page_of_docs_is_in_the_table_of_contents() {
    let contents = link_targets("docs/SUMMARY.md");
    let pages = pages();
    let pages = pages.iter().filter_map(|page| page.strip_prefix("docs/"));
    let missing: Vec<&str> = pages
        .filter(|page| *page != "SUMMARY.md" && !contents.iter().any(|listed| listed == page))
        .collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md lacks {missing:?}");
}

#[test]
fn the_readme_is_short() {
    let words = read("README.md").split_whitespace().count();
    assert!(words <= README_WORDS_MAX, "README.md has {words} words");
}
