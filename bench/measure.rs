//! Compares the CPU time of two functions. The ratio does not depend on the machine.

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Rounds of both functions, in turn. The fastest round of each counts.
const ROUNDS: usize = 15;
/// Shortest time of a round.
const ROUND_MIN: Duration = Duration::from_millis(20);

/// Prints the time of our function and its ratio to that of a library.
pub fn compare<A, B>(what: &str, mut own: impl FnMut() -> A, mut library: impl FnMut() -> B) {
    let (own_calls, library_calls) = (calls(&mut own), calls(&mut library));
    let (mut own_best, mut library_best) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        own_best = own_best.min(micros(own_calls, &mut own));
        library_best = library_best.min(micros(library_calls, &mut library));
    }
    let ratio = own_best / library_best;
    println!("{what:<44} {own_best:>10.2} us   {ratio:>6.2} of the library's time");
}

/// Calls of one round.
fn calls<T>(work: &mut impl FnMut() -> T) -> u32 {
    let mut calls = 1;
    while micros(calls, work) * f64::from(calls) < ROUND_MIN.as_secs_f64() * 1e6 {
        calls *= 2;
    }
    calls
}

/// CPU time of one call in microseconds, as the mean of `calls`.
fn micros<T>(calls: u32, work: &mut impl FnMut() -> T) -> f64 {
    let start = clock();
    for _ in 0..calls {
        black_box(work());
    }
    clock().saturating_sub(start).as_secs_f64() * 1e6 / f64::from(calls)
}

/// CPU time of this process, so that other processes do not count. Elsewhere than on Linux, wall time.
fn clock() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let schedule = std::fs::read_to_string("/proc/self/schedstat").ok();
    let nanos = schedule.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}
