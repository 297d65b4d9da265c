//! A benchmark of the frontier: synthetic addresses pass the real ledger and the real store, without
//! fetching or parsing. As in a crawl, the end of a page brings its links, most of them known, and the
//! frontier grows large before it shrinks.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

use crate::bootstrap::Node;
use crate::config::{Config, Durability};
use crate::error::RunError;
use crate::ledger::{
    Command, Epoch, Grant, Harvest, JobKey, JoinRequest, NewJob, OpenMode, Outcome, Policy,
    Publication, Reply, RunPlan, Seat, SessionId, Tally,
};
use crate::plan::identity::{key, new_job};
use crate::run::report::peak_memory;
use crate::store::StoreError;

/// New addresses on each page, until none are left.
const NEW_LINKS: u64 = 8;
/// Jobs in flight.
const HAND: usize = 1000;
/// Jobs of one command.
const CHUNK: usize = 500;
const GROUP: &str = "bench";

/// The size of a benchmark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frontier {
    /// Different addresses.
    pub urls: u64,
    /// Hosts that have the addresses.
    pub hosts: u64,
}

/// The measured figures.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Figures {
    /// Different addresses. All were added, taken and finished.
    pub urls: u64,
    /// Addresses offered, including known ones.
    pub offered: u64,
    /// Seconds without the restart.
    pub seconds: f64,
    /// Addresses finished a second.
    pub urls_per_second: f64,
    /// CPU time of program and kernel for one address, in microseconds.
    pub cpu_micros_per_url: f64,
    /// Peak memory of the process.
    pub memory_peak_bytes: u64,
    /// The restart in the middle, if the store is durable.
    pub restart: Option<Restart>,
}

/// The data directory is closed and opened again when every address is known and most are pending.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Restart {
    /// From opening the data directory to the first granted job.
    pub seconds: f64,
    /// Pending jobs.
    pub pending: u64,
    /// Size of the data directory.
    pub data_bytes: u64,
}

/// Sends all addresses through a store in the data directory of `config`.
pub(crate) async fn frontier(config: &Config, plan: Frontier) -> Result<Figures, RunError> {
    let (began, cpu_before) = (Instant::now(), cpu_time());
    let mut site = Site::of(plan);
    let mut crowd = Crowd::enter(Node::solo(config)?, OpenMode::Fresh).await?;
    crowd.seed(&mut site).await?;
    crowd.work(&mut site, Until::AllKnown).await?;
    let mut restart = None;
    if config.store.durability == Durability::Strict {
        let (reopened, figures) = reopen(config, crowd).await?;
        (crowd, restart) = (reopened, Some(figures));
    }
    crowd.work(&mut site, Until::Over).await?;
    let done = crowd.node.store.standing().borrow().done;
    crowd.node.close();
    if done != plan.urls {
        let words = format!("{done} of {} addresses were finished", plan.urls);
        return Err(RunError::Internal(words));
    }
    let seconds = began.elapsed().as_secs_f64() - restart.map_or(0.0, |restart| restart.seconds);
    let cpu = cpu_time().saturating_sub(cpu_before);
    Ok(Figures {
        urls: plan.urls,
        offered: site.offered,
        seconds,
        urls_per_second: plan.urls as f64 / seconds,
        cpu_micros_per_url: cpu.as_secs_f64() * 1e6 / plan.urls.max(1) as f64,
        memory_peak_bytes: peak_memory(),
        restart,
    })
}

/// Closes the store, opens it again and takes a job.
async fn reopen(config: &Config, crowd: Crowd) -> Result<(Crowd, Restart), RunError> {
    let pending = crowd.node.store.standing().borrow().pending;
    crowd.node.close();
    let data_bytes = size_of(&config.store.data_dir);
    let began = Instant::now();
    let mut crowd = Crowd::enter(Node::solo(config)?, OpenMode::Continue).await?;
    crowd.take(1).await?;
    Ok((crowd, Restart { seconds: began.elapsed().as_secs_f64(), pending, data_bytes }))
}

/// When the workers stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Every address is known.
    AllKnown,
    /// Every address is finished.
    Over,
}

/// The synthetic site: pages have numbers, and links lead to new and known ones.
struct Site {
    urls: u64,
    hosts: u64,
    next: u64,
    offered: u64,
    root: JobKey,
}

impl Site {
    fn of(plan: Frontier) -> Self {
        let Frontier { urls, hosts } = plan;
        let hosts = hosts.min(urls);
        Self { urls, hosts, next: 0, offered: 0, root: key(&[GROUP]) }
    }

    /// The first `hosts` addresses are one home page for each host.
    fn job(&self, number: u64) -> NewJob {
        let host = if number < self.hosts { number } else { mix(number) % self.hosts };
        let url = format!("https://www.host-{host}.example/catalogue/{}/{number}", number % 97);
        new_job(self.root, "bench", GROUP, &url, u32::from(number >= self.hosts))
    }

    fn fresh(&mut self, count: u64) -> Vec<NewJob> {
        let last = (self.next + count).min(self.urls);
        let jobs: Vec<NewJob> = (self.next..last).map(|number| self.job(number)).collect();
        self.next = last;
        self.offered += jobs.len() as u64;
        jobs
    }

    /// The links of a page: a home page, known pages, and new pages until none are left.
    fn links(&mut self, page: u64) -> Vec<NewJob> {
        let known = [mix(page) % self.hosts, mix(!page) % self.next.max(1)];
        let mut links: Vec<NewJob> = known.into_iter().map(|number| self.job(number)).collect();
        self.offered += links.len() as u64;
        links.extend(self.fresh(NEW_LINKS));
        links
    }
}

/// The workers of one session.
struct Crowd {
    node: Node,
    session: SessionId,
    takes: u64,
    granted: VecDeque<Grant>,
}

type Ending = BoxFuture<'static, Result<Reply, StoreError>>;

impl Crowd {
    async fn enter(node: Node, mode: OpenMode) -> Result<Self, RunError> {
        let nonce = node.clock.now().as_nanosecond() as u64;
        let join = Command::Join(JoinRequest {
            nonce,
            life: nonce,
            seat: Seat(1),
            votes: true,
            alone: true,
        });
        let Reply::Joined(session) = node.store.submit(join).await? else {
            return Err(RunError::Internal(String::from("the store let nobody in")));
        };
        let crowd = Self { node, session, takes: 0, granted: VecDeque::new() };
        let epoch = crowd.claim("setup").await?;
        let policy = Policy { delay_ms: 0, slots: u32::MAX, ..Policy::default() };
        let plan = RunPlan {
            identity: [7; 32],
            defs: [8; 32],
            config: [9; 32],
            date: String::from("2026-11-16"),
            folder: String::from("bench"),
            groups: vec![String::from(GROUP)],
            appenders: 0,
            seats: vec![Seat(1)],
            by_level: false,
            sequence: BTreeMap::new(),
            policy,
        };
        let publish = Publication::default();
        let open = Command::OpenRun { session, epoch, plan, publish, mode };
        match crowd.node.store.submit(open).await? {
            Reply::Opened { .. } => Ok(crowd),
            other => Err(RunError::unexpected("run", &other)),
        }
    }

    async fn claim(&self, name: &str) -> Result<Epoch, RunError> {
        let claim = Command::Claim { session: self.session, name: name.to_owned() };
        match self.node.store.submit(claim).await? {
            Reply::Cross(epoch) => Ok(epoch),
            other => Err(RunError::unexpected("claim", &other)),
        }
    }

    async fn seed(&mut self, site: &mut Site) -> Result<(), RunError> {
        let (session, epoch) = (self.session, self.claim("seed").await?);
        while site.next < site.hosts {
            let jobs = site.fresh((site.hosts - site.next).min(CHUNK as u64));
            let (group, last) = (GROUP.to_owned(), site.next == site.hosts);
            let seed = Command::Seed { session, epoch, group, jobs, last };
            self.node.store.submit(seed).await?;
        }
        Ok(())
    }

    async fn take(&mut self, limit: u32) -> Result<(), RunError> {
        self.takes += 1;
        let take =
            Command::Take { session: self.session, number: self.takes, limit, ahead: u32::MAX };
        match self.node.store.submit(take).await? {
            Reply::Granted { jobs, .. } => self.granted.extend(jobs),
            other => return Err(RunError::unexpected("take", &other)),
        }
        Ok(())
    }

    /// Takes and finishes jobs with many in flight, as a run does, and finishes all of them at the end.
    async fn work(&mut self, site: &mut Site, until: Until) -> Result<(), RunError> {
        let mut endings: VecDeque<Ending> = VecDeque::new();
        loop {
            let pause = until == Until::AllKnown && site.next == site.urls;
            if self.granted.is_empty() && !pause && endings.len() <= HAND - CHUNK {
                self.take(CHUNK as u32).await?;
            }
            if let Some(grant) = self.granted.pop_front() {
                endings.push_back(self.finish(site, &grant));
            } else if let Some(ending) = endings.pop_front() {
                match ending.await? {
                    Reply::Ok => {}
                    other => return Err(RunError::unexpected("finish", &other)),
                }
            } else {
                return Ok(());
            }
        }
    }

    fn finish(&self, site: &mut Site, grant: &Grant) -> Ending {
        let tally = Tally { fetched: 1, statuses: [(200, 1)].into(), ..Tally::default() };
        let harvest = Harvest { children: site.links(grant.id.0), tally, ..Harvest::default() };
        let (job, token) = (grant.id, grant.token);
        let outcome = Outcome::Done(Box::new(harvest));
        self.node.store.submit(Command::Finish {
            session: self.session,
            job,
            token,
            since_start_ms: None,
            outcome,
        })
    }
}

/// The last step of SplitMix64: close numbers become distant ones.
fn mix(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// CPU time of this process in user and kernel mode, in steps of 10 ms.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field, the program's name, is in brackets and may contain spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Bytes of the files in a directory.
fn size_of(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_address_goes_in_once_and_is_finished() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().display().to_string();
        let config = Config::from_map(&[("data.dir".to_owned(), data)].into()).unwrap();
        let figures = frontier(&config, Frontier { urls: 3000, hosts: 50 }).await.unwrap();
        assert_eq!((figures.urls, figures.offered), (3000, 9000));
        let restart = figures.restart.unwrap();
        assert!(restart.pending > 2000 && restart.data_bytes > 0, "{restart:?}");
        assert!(crate::store::examine(dir.path(), &crate::cluster::LOG_CHECK).unwrap().is_empty());
    }
}
