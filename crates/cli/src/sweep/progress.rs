//! How far a sweep is: a bar where standard error is a terminal, a line now and then where it is not.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// How often progress is due: the rows are brought to the disk then, too.
const OFTEN: Duration = Duration::from_secs(1);
/// How often a line is due where there is no terminal.
const SELDOM: Duration = Duration::from_secs(10);

/// How far a sweep is.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    count: u64,
    /// How many points were there when it began.
    begun_with: u64,
    began: Instant,
    due: Instant,
    line_due: Instant,
}

impl Progress {
    /// Begins with `finished` of `count` points.
    pub(crate) fn new(finished: u64, count: u64, quiet: bool) -> Self {
        let began = Instant::now();
        let bar = (!quiet && stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::stderr());
            let style = "{bar:32} {human_pos} of {human_len} points, {per_sec:.0}, {eta} left";
            bar.set_style(
                ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar.set_position(finished);
            bar.reset_eta();
            bar
        });
        Self { bar, quiet, count, begun_with: finished, began, due: began + OFTEN, line_due: began + SELDOM }
    }

    /// Shows that `finished` points are there; whether a second has gone by since it last said so.
    pub(crate) fn show(&mut self, finished: u64) -> bool {
        if let Some(bar) = &self.bar {
            bar.set_position(finished);
        }
        let now = Instant::now();
        if now < self.due {
            return false;
        }
        self.due = now + OFTEN;
        if self.bar.is_none() && !self.quiet && now >= self.line_due {
            self.line_due = now + SELDOM;
            let computed = finished - self.begun_with;
            output::complain(&line(finished, self.count, computed, now - self.began));
        }
        true
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// One line: how far, how fast, how long still.
fn line(finished: u64, count: u64, computed: u64, elapsed: Duration) -> String {
    let rate = computed as f64 / elapsed.as_secs_f64().max(1e-9);
    let left = (count - finished) as f64 / rate.max(1e-9);
    let digits = usize::from(rate < 10.0);
    format!("{finished} of {count} points, {rate:.digits$}/s, {} left", indicatif::HumanDuration(whole(left)))
}

/// Whole seconds, at most a thousand years.
fn whole(seconds: f64) -> Duration {
    Duration::from_secs(seconds.clamp(0.0, 3.2e10) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_how_fast_how_long() {
        let said = line(600, 1_000, 500, Duration::from_secs(10));
        assert_eq!(said, "600 of 1000 points, 50/s, 8 seconds left");
        let slow = line(1, 1_000, 0, Duration::from_secs(10));
        assert!(slow.starts_with("1 of 1000 points, 0.0/s"), "{slow}");
    }
}
