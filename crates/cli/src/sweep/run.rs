//! Points over threads: each takes the next points, and one thread keeps the rows as they come.
//!
//! A thread takes one point at a time, or several where they are so cheap that handing them over would cost more than
//! they do. No thread goes further ahead of the first unfinished point than a fixed number of points, so that the rows
//! which wait for their turn take the same memory however many points there are.

use std::collections::BTreeSet;
use std::mem;
use std::path::Path;
use std::sync::mpsc;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::manifest::Manifest;
use super::points::Points;
use super::progress::Progress;
use super::space::Shard;
use super::store::Store;

/// How far ahead of the first unfinished point a thread may go.
const WINDOW: u64 = 4_096;
/// Points that are taken at once at most, so that a thread never has all that the window allows.
const MOST_AT_ONCE: usize = 64;
/// What is finished is handed over at least this often: a kill loses no more.
const OFTEN: Duration = Duration::from_millis(2);

/// Computes what is missing in `store`.
///
/// # Errors
/// What the system reports. What is finished stays, and another run goes on with it.
pub(crate) fn run(
    points: &Points,
    shard: Shard,
    store: &mut Store,
    manifest: &mut Manifest,
    directory: &Path,
    jobs: usize,
    mut progress: Progress,
) -> Result<()> {
    let count = shard.count(points.space().points());
    let queue = Queue::new(store, count);
    let threads = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    let threads = threads.context("cannot start the threads of the sweep")?;
    let (sender, rows) = mpsc::channel();
    let kept = threads.in_place_scope(|scope| {
        for _ in 0..jobs {
            let (sender, queue) = (sender.clone(), &queue);
            scope.spawn(move |_| work(points, shard, queue, &sender));
        }
        drop(sender);
        let mut keep = || -> Result<()> {
            let mut files = 0;
            while let Ok(first) = rows.recv() {
                let all = std::iter::once(first).chain(rows.try_iter()).flatten();
                let (kept, failed) = until_error(all);
                // What a row depends on is written down before the row.
                if points.count_files() > files && manifest.add_files(points.files_read()) {
                    manifest.write(directory)?;
                }
                files = points.count_files();
                store.add(kept)?;
                failed?;
                queue.advance(store.written());
                if progress.show(store.finished()) {
                    store.sync()?;
                }
            }
            Ok(())
        };
        let kept = keep();
        queue.stop();
        kept
    });
    progress.end();
    kept.with_context(|| {
        let finished = store.finished();
        format!(
            "the sweep stopped with {finished} of {count} points; they are kept, and the same command with \
             `--resume` goes on"
        )
    })
}

/// A finished point: its position, and its row or why this machine cannot compute it.
type Finished = (u64, Result<String>);

/// What one thread does.
fn work(points: &Points, shard: Shard, queue: &Queue, sender: &mpsc::Sender<Vec<Finished>>) {
    let _guard = StopOnPanic(queue);
    let mut at_once = 1;
    loop {
        let positions = queue.take(at_once);
        if positions.is_empty() {
            return;
        }
        let (begun, count) = (Instant::now(), positions.len());
        let mut finished = Vec::with_capacity(count);
        let mut held_since = begun;
        for position in positions {
            finished.push((position, points.row(shard.point(position))));
            if held_since.elapsed() >= OFTEN {
                if sender.send(mem::take(&mut finished)).is_err() {
                    return;
                }
                held_since = Instant::now();
            }
        }
        if !finished.is_empty() && sender.send(finished).is_err() {
            return;
        }
        // Twice as many where they took no time, one where they took long.
        at_once = match begun.elapsed() {
            short if short < OFTEN / 2 => (2 * count).min(MOST_AT_ONCE),
            long if long > 2 * OFTEN => 1,
            _ => count,
        };
    }
}

/// The rows before the first error, and that.
fn until_error(all: impl Iterator<Item = Finished>) -> (Vec<(u64, String)>, Result<()>) {
    let mut kept = Vec::new();
    for (position, row) in all {
        match row {
            Ok(row) => kept.push((position, row)),
            Err(error) => return (kept, Err(error)),
        }
    }
    (kept, Ok(()))
}

/// Which positions are taken.
struct Queue {
    count: u64,
    /// Positions that need not be taken.
    early: BTreeSet<u64>,
    state: Mutex<State>,
    moved: Condvar,
}

struct State {
    /// The next position to take.
    next: u64,
    /// All before this one are in their place.
    written: u64,
    stopped: bool,
}

impl Queue {
    fn new(store: &Store, count: u64) -> Self {
        let state = State { next: store.written(), written: store.written(), stopped: false };
        Self { count, early: store.early().collect(), state: Mutex::new(state), moved: Condvar::new() }
    }

    /// The next positions, at most so many, once they are near enough; none when there is none left.
    fn take(&self, most: usize) -> Vec<u64> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let too_far = |state: &mut State| !state.stopped && state.next >= state.written + WINDOW;
        let waited = self.moved.wait_while(state, too_far);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.stopped {
            return Vec::new();
        }
        let end = self.count.min(state.written + WINDOW);
        let near = (state.next..end).filter(|position| !self.early.contains(position));
        let mut positions: Vec<u64> = near.take(most).collect();
        if positions.is_empty() {
            // All that is near has been there from the start: the first beyond it.
            positions.extend((end..self.count).find(|position| !self.early.contains(position)));
        }
        state.next = positions.last().map_or(self.count, |last| last + 1);
        positions
    }

    fn advance(&self, written: u64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).written = written;
        self.moved.notify_all();
    }

    fn stop(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.moved.notify_all();
    }
}

/// Lets the other threads end when one has met a broken invariant.
struct StopOnPanic<'a>(&'a Queue);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(count: u64, written: u64, early: &[u64]) -> Queue {
        let state = State { next: written, written, stopped: false };
        let early = early.iter().copied().collect();
        Queue { count, early, state: Mutex::new(state), moved: Condvar::new() }
    }

    #[test]
    fn every_position_is_taken_once_but_those_that_are_there() {
        for most in [1, 3, 64] {
            let queue = queue(100, 5, &[6, 7, 50, 99]);
            let mut taken = Vec::new();
            loop {
                let positions = queue.take(most);
                if positions.is_empty() {
                    break;
                }
                assert!(positions.len() <= most);
                taken.extend(positions);
            }
            let expected: Vec<u64> = (5..100).filter(|position| ![6, 7, 50, 99].contains(position)).collect();
            assert_eq!(taken, expected);
        }
    }

    #[test]
    fn nothing_is_taken_too_far_ahead() {
        let queue = queue(3 * WINDOW, 0, &[]);
        let near: Vec<u64> = (0..WINDOW / 64).flat_map(|_| queue.take(64)).collect();
        assert_eq!(near, (0..WINDOW).collect::<Vec<_>>());
        queue.advance(10);
        assert_eq!(queue.take(64), (WINDOW..WINDOW + 10).collect::<Vec<_>>());
        queue.stop();
        assert!(queue.take(64).is_empty());
    }
}
