//! Features of a machine that some tests need and not every machine offers.
//!
//! A test asks `NETWORK_NAMESPACES.are_there()` and returns if they are not. Its name is then written
//! to a file that `tests/not_run.rs` prints when all tests have run. `tests/all` installs the missing
//! packages.

#![allow(dead_code)]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// One such feature.
pub struct Need {
    /// Its name in the list of tests that could not run.
    name: &'static str,
    /// A shell command that succeeds if the machine has it.
    probe: &'static str,
    remedy: &'static str,
}

pub const NETWORK_NAMESPACES: Need = Need {
    name: "network namespaces",
    probe: "unshare --net --mount sh -c 'mount --make-rprivate / && mkdir -p /run/netns \
            && mount -t tmpfs none /run/netns && ip link set lo up && ip link add hub type bridge \
            && ip netns add probe'",
    remedy: "run `tests/all`, or install `iproute2` and `util-linux` and be root",
};
pub const PROCESS_NAMESPACES: Need = Need {
    name: "process namespaces",
    probe: "unshare --pid --fork --kill-child true",
    remedy: "run `tests/all`, or install `util-linux` and be root",
};
pub const SMALL_DISKS: Need = Need {
    name: "small file systems in memory",
    probe: "dir=$(mktemp -d) && mount -t tmpfs -o size=40k tmpfs $dir && umount $dir && rmdir $dir",
    remedy: "run `tests/all`, or install `mount` and be root",
};
pub const PYTHON_3: Need = Need {
    name: "Python 3",
    probe: "python3 -c 'import http.server, pty'",
    remedy: "run `tests/all`, or install `python3`",
};

impl Need {
    /// Whether this machine has it. If not, the calling test is noted as one that could not run.
    pub fn are_there(&self) -> bool {
        let probe = Command::new("sh")
            .args(["-c", self.probe])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let met = probe.is_ok_and(|status| status.success());
        if !met {
            self.note();
        }
        met
    }

    fn note(&self) {
        let thread = std::thread::current();
        let line = format!(
            "{}: no {} here: {}\n",
            thread.name().unwrap_or("a test"),
            self.name,
            self.remedy
        );
        // Unlike `print`, this is shown also for a test that passes.
        std::io::stderr().write_all(format!("not run: {line}").as_bytes()).unwrap();
        let list = concat!(env!("CARGO_TARGET_TMPDIR"), "/not-run");
        let file = OpenOptions::new().create(true).append(true).open(list);
        file.unwrap().write_all(line.as_bytes()).unwrap();
    }
}
