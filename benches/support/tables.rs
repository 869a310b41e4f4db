//! Tables that compare this crate with a peer. Both take turns on the same input.

use std::time::{Duration, Instant};

const TURNS: usize = 15;

/// Measures a batch of calls and returns the time per call.
pub fn time(batch: usize, call: &mut dyn FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..batch {
        call();
    }
    start.elapsed() / batch as u32
}

/// Returns the number of calls that take about five milliseconds together.
pub fn batch(call: &mut dyn FnMut()) -> usize {
    let once = time(3, call).max(Duration::from_nanos(1));
    (Duration::from_millis(5).as_nanos() / once.as_nanos()).clamp(1, 1 << 20) as usize
}

pub fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap());
    values[values.len() / 2]
}

pub fn show(duration: Duration) -> String {
    match duration.as_nanos() {
        nanos @ 0..=9_999 => format!("{nanos} ns"),
        nanos @ 10_000..=9_999_999 => format!("{:.1} us", nanos as f64 / 1e3),
        nanos => format!("{:.2} ms", nanos as f64 / 1e6),
    }
}

pub struct Tables {
    pub filter: Option<String>,
}

impl Tables {
    /// Prints a table's heading, unless the filter excludes it. Returns whether it was printed.
    pub fn title(&self, title: &str) -> bool {
        let wanted = self.filter.as_ref().is_none_or(|word| title.contains(word.as_str()));
        if wanted {
            println!("\n{title}\n| case | ours | peer | ratio |\n|---|---|---|---|");
        }
        wanted
    }

    /// Measures the two calls in turn and prints a row.
    pub fn row(&self, case: &str, ours: &mut dyn FnMut(), peer: &mut dyn FnMut()) {
        let (our_batch, peer_batch) = (batch(ours), batch(peer));
        let turns: Vec<(Duration, Duration)> =
            (0..TURNS).map(|_| (time(our_batch, ours), time(peer_batch, peer))).collect();
        let ratio = median(turns.iter().map(|(a, b)| b.as_secs_f64() / a.as_secs_f64()).collect());
        let ours = show(median(turns.iter().map(|(ours, _)| *ours).collect()));
        let peer = show(median(turns.iter().map(|(_, peer)| *peer).collect()));
        println!("| {case} | {ours} | {peer} | {ratio:.2} |");
    }
}
