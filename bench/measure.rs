//! How long two ways take, as a ratio: the machine's own speed does not count.

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Rounds of either way in turn; the fastest of each counts.
const ROUNDS: usize = 15;
/// How long a round takes at least.
const ROUND: Duration = Duration::from_millis(20);

/// Prints the time of our way and its ratio to the plain one.
pub fn compare<A, B>(what: &str, mut own: impl FnMut() -> A, mut plain: impl FnMut() -> B) {
    let (own_times, plain_times) = (times(&mut own), times(&mut plain));
    let (mut own_best, mut plain_best) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        own_best = own_best.min(micros(own_times, &mut own));
        plain_best = plain_best.min(micros(plain_times, &mut plain));
    }
    let ratio = own_best / plain_best;
    println!("{what:<44} {own_best:>10.2} us   {ratio:>6.2} of the plain way");
}

/// How often a thing is done in one round.
fn times<T>(work: &mut impl FnMut() -> T) -> u32 {
    let mut times = 1;
    while micros(times, work) * f64::from(times) < ROUND.as_secs_f64() * 1e6 {
        times *= 2;
    }
    times
}

fn micros<T>(times: u32, work: &mut impl FnMut() -> T) -> f64 {
    let start = clock();
    for _ in 0..times {
        black_box(work());
    }
    clock().saturating_sub(start).as_secs_f64() * 1e6 / f64::from(times)
}

/// CPU time of this process where the system tells it, so that neighbours do not count.
fn clock() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/self/schedstat").ok();
    let nanos = told.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}
