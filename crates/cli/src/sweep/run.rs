//! Points over threads: each takes the next point, and one thread keeps the rows as they come.
//!
//! No thread goes further ahead of the first unfinished point than a fixed number of points, so that the rows
//! which wait for their turn take the same memory however many points there are.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};

use super::manifest::Manifest;
use super::points::Points;
use super::progress::Progress;
use super::space::Shard;
use super::store::Store;

/// How far ahead of the first unfinished point a thread may go.
const WINDOW: u64 = 4_096;

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
            scope.spawn(move |_| {
                let _guard = StopOnPanic(queue);
                while let Some(position) = queue.take() {
                    let row = points.row(shard.point(position));
                    if sender.send((position, row)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut keep = || -> Result<()> {
            let mut files = 0;
            for (position, row) in &rows {
                // What a row depends on is written down before the row.
                if points.count_files() > files && manifest.add_files(points.files_read()) {
                    manifest.write(directory)?;
                }
                files = points.count_files();
                store.add(position, row?)?;
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

    /// The next position, once it is near enough; `None` when there is none.
    fn take(&self) -> Option<u64> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let too_far = |state: &mut State| !state.stopped && state.next >= state.written + WINDOW;
        let waited = self.moved.wait_while(state, too_far);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let position = (state.next..self.count).find(|position| !self.early.contains(position))?;
        state.next = position + 1;
        (!state.stopped).then_some(position)
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
