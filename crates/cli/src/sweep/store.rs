//! The directory of a sweep: rows in point order, and rows that came too early, so that nothing finished is lost.
//!
//! * `sweep.json`: the manifest, written first.
//! * `results.csv`: the header, then the rows in the order of their points, each written once.
//! * `early.csv`: rows whose turn has not come, in the order in which they came. A row goes there at once and to
//!   `results.csv` when all before it are there. The file is gone when the sweep is done.
//!
//! A process that is killed leaves at most one torn line at the end of either file: it has no line end, so it is
//! cut off and its point computed again. A row in both files is known by its number. The lock on `results.csv`
//! keeps two processes apart and goes with its process.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::fields::point_of;
use super::manifest::Manifest;
use super::space::Shard;
use crate::output;

/// The rows.
pub(crate) const RESULTS: &str = "results.csv";
const EARLY: &str = "early.csv";
/// Early rows are forgotten once none is waiting and the file is larger than this.
const LARGE: u64 = 1 << 16;

/// An open directory.
#[derive(Debug)]
pub(crate) struct Store {
    directory: PathBuf,
    shard: Shard,
    results: File,
    early: File,
    early_bytes: u64,
    /// Rows that wait for their turn, by position.
    waiting: BTreeMap<u64, String>,
    /// How many rows are in `results.csv`.
    written: u64,
}

/// What to do where a sweep has begun already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// Go on with it.
    Resume,
    /// Refuse.
    Refuse,
}

/// Whether a sweep has begun in a directory, and what it is.
///
/// # Errors
/// It has, and it is not to be gone on with; or there are results of something else.
pub(crate) fn begun(directory: &Path, begun: Begun) -> Result<Option<Manifest>> {
    let shown = directory.display();
    match Manifest::read(directory)? {
        Some(_) if begun == Begun::Refuse => {
            bail!(
                "`{shown}` holds a sweep already: `--resume` goes on with it, or write to another directory"
            )
        }
        Some(manifest) => Ok(Some(manifest)),
        None if directory.join(RESULTS).exists() => {
            bail!("`{shown}` has a `{RESULTS}` that no sweep wrote: write to another directory")
        }
        None => Ok(None),
    }
}

impl Store {
    /// Opens a directory that has its manifest, cuts off what was torn, and gathers what is finished.
    ///
    /// # Errors
    /// Another process has it open; what the system reports; a header that is not this one.
    pub(crate) fn open(directory: &Path, header: &str, shard: Shard) -> Result<Self> {
        let path = directory.join(RESULTS);
        let results = open(&path)?;
        match results.try_lock() {
            Err(TryLockError::WouldBlock) => {
                bail!("another process is sweeping into `{}`", directory.display())
            }
            // Some network file systems have no locks; there the user has to take care himself.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        output::remove_leftovers(directory)?;
        let early_path = directory.join(EARLY);
        let early = open(&early_path)?;
        let mut store = Self {
            directory: directory.to_owned(),
            shard,
            results,
            early,
            early_bytes: 0,
            waiting: BTreeMap::new(),
            written: 0,
        };
        store.read_results(header).with_context(|| format!("cannot read `{}`", path.display()))?;
        store.read_early().with_context(|| format!("cannot read `{}`", early_path.display()))?;
        store.write_waiting()?;
        Ok(store)
    }

    /// How many rows are in their place.
    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    /// The positions behind that whose rows are there too.
    pub(crate) fn early(&self) -> impl Iterator<Item = u64> {
        self.waiting.keys().copied()
    }

    /// How many rows there are in all.
    pub(crate) fn finished(&self) -> u64 {
        self.written + self.waiting.len() as u64
    }

    /// Keeps the rows of some positions: those whose turn it is in their place, the others as early ones, each kind
    /// at one go.
    ///
    /// # Errors
    /// What the system reports: a full disk.
    pub(crate) fn add(&mut self, rows: Vec<(u64, String)>) -> Result<()> {
        let positions: Vec<u64> = rows.iter().map(|(position, _)| *position).collect();
        self.waiting.extend(rows);
        self.write_waiting()?;
        let early = positions.iter().filter_map(|position| self.waiting.get(position));
        let lines: String = early.map(String::as_str).collect();
        if lines.is_empty() {
            return Ok(());
        }
        let path = || format!("cannot write `{}`", self.directory.join(EARLY).display());
        self.early.write_all(lines.as_bytes()).with_context(path)?;
        self.early_bytes += lines.len() as u64;
        Ok(())
    }

    /// Brings everything to the disk itself.
    ///
    /// # Errors
    /// What the system reports.
    pub(crate) fn sync(&self) -> Result<()> {
        let path = || format!("cannot write `{}`", self.directory.join(RESULTS).display());
        self.results.sync_data().with_context(path)
    }

    /// Closes a sweep whose rows are all in their place.
    ///
    /// # Errors
    /// What the system reports.
    pub(crate) fn finish(self) -> Result<()> {
        self.sync()?;
        let path = self.directory.join(EARLY);
        fs::remove_file(&path).with_context(|| format!("cannot remove `{}`", path.display()))
    }

    /// Writes every row whose turn has come, at one go.
    fn write_waiting(&mut self) -> Result<()> {
        let (mut lines, mut next) = (String::new(), self.written);
        while let Some(line) = self.waiting.remove(&next) {
            lines.push_str(&line);
            next += 1;
        }
        if lines.is_empty() {
            return Ok(());
        }
        let path = || format!("cannot write `{}`", self.directory.join(RESULTS).display());
        self.results.write_all(lines.as_bytes()).with_context(path)?;
        self.written = next;
        if self.waiting.is_empty() && self.early_bytes > LARGE {
            // Not before the rows are safe where they belong.
            self.sync()?;
            self.early.set_len(0).with_context(path)?;
            self.early_bytes = 0;
        }
        Ok(())
    }

    /// Counts the rows that follow one another as they should, and cuts off the rest.
    fn read_results(&mut self, header: &str) -> Result<()> {
        let mut reader = BufReader::new(&self.results);
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line)?;
        if line != header.as_bytes() {
            if line.ends_with(b"\n") {
                bail!("its header is not that of this sweep");
            }
            self.results.set_len(0)?;
            return Ok(self.results.write_all(header.as_bytes())?);
        }
        let (mut good, mut rows) = (line.len() as u64, 0);
        loop {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
            if !is_whole(&line) || point_of(&line) != Some(self.shard.point(rows)) {
                break;
            }
            good += line.len() as u64;
            rows += 1;
        }
        self.results.set_len(good)?;
        self.written = rows;
        Ok(())
    }

    /// Gathers the rows that came too early, and cuts off a torn one.
    fn read_early(&mut self) -> Result<()> {
        let mut reader = BufReader::new(&self.early);
        let mut line = Vec::new();
        loop {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
            if !is_whole(&line) {
                break;
            }
            let position = point_of(&line).and_then(|point| self.shard.position(point));
            let (Some(position), Ok(text)) = (position, std::str::from_utf8(&line)) else { break };
            self.early_bytes += line.len() as u64;
            if position >= self.written {
                self.waiting.insert(position, text.to_owned());
            }
        }
        Ok(self.early.set_len(self.early_bytes)?)
    }
}

/// Opens a file to read it and to add to its end; makes it if it is not there.
fn open(path: &Path) -> Result<File> {
    let opened = OpenOptions::new().read(true).append(true).create(true).open(path);
    opened.with_context(|| format!("cannot write `{}`", path.display()))
}

/// Whether a line was written to its end. After a power cut a file may end in zeros.
fn is_whole(line: &[u8]) -> bool {
    line.ends_with(b"\n") && !line.contains(&0)
}

/// The rows of a directory whose sweep is done.
///
/// # Errors
/// The sweep is not done; what the system reports.
pub(crate) fn read_finished(directory: &Path) -> Result<csv::Reader<File>> {
    let path = directory.join(RESULTS);
    if directory.join(EARLY).exists() {
        bail!("the sweep in `{}` is not done: go on with it with `--resume` first", directory.display());
    }
    let file = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("there are no results in `{}`", directory.display())
        }
        opened => opened.with_context(|| format!("cannot read `{}`", path.display()))?,
    };
    Ok(csv::ReaderBuilder::new().from_reader(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "point,x\n";

    fn whole(directory: &Path) -> Store {
        Store::open(directory, HEADER, Shard::WHOLE).expect("it can be opened")
    }

    fn content(directory: &Path, name: &str) -> String {
        fs::read_to_string(directory.join(name)).expect("it is there")
    }

    #[test]
    fn rows_find_their_place_whatever_their_order() {
        let place = tempfile::tempdir().expect("there is room");
        let mut store = whole(place.path());
        for position in [2, 0, 4, 1] {
            store.add(vec![(position, format!("{position},a\n"))]).expect("there is room");
        }
        assert_eq!(content(place.path(), RESULTS), "point,x\n0,a\n1,a\n2,a\n");
        assert_eq!((store.written(), store.finished()), (3, 4));
        store.add(vec![(3, "3,a\n".to_owned())]).expect("there is room");
        store.finish().expect("it is done");
        assert_eq!(content(place.path(), RESULTS), "point,x\n0,a\n1,a\n2,a\n3,a\n4,a\n");
        assert!(!place.path().join(EARLY).exists());
    }

    #[test]
    fn many_rows_at_once_are_those_rows_one_by_one() {
        let row = |position: u64| (position, format!("{position},a\n"));
        let (one, many) =
            (tempfile::tempdir().expect("there is room"), tempfile::tempdir().expect("there is room"));
        let (mut by_one, mut at_once) = (whole(one.path()), whole(many.path()));
        for batch in [vec![5, 1], vec![0, 7, 2], vec![3], vec![]] {
            at_once.add(batch.iter().copied().map(row).collect()).expect("there is room");
            for position in batch {
                by_one.add(vec![row(position)]).expect("there is room");
            }
        }
        assert_eq!((at_once.written(), at_once.finished()), (4, 6));
        assert_eq!(content(one.path(), RESULTS), content(many.path(), RESULTS));
        let early: Vec<u64> = at_once.early().collect();
        drop((by_one, at_once));
        assert_eq!(whole(many.path()).early().collect::<Vec<_>>(), early);
    }

    #[test]
    fn wherever_it_is_cut_the_rest_is_found_again() {
        let place = tempfile::tempdir().expect("there is room");
        let results = "point,x\n0,a\n1,a\n2,a\n";
        let early = "3,a\n5,a\n";
        for cut_results in 0..=results.len() {
            for cut_early in 0..=early.len() {
                fs::write(place.path().join(RESULTS), &results[..cut_results]).expect("there is room");
                fs::write(place.path().join(EARLY), &early[..cut_early]).expect("there is room");
                let mut store = whole(place.path());
                let there: Vec<u64> = (0..store.written()).chain(store.early()).collect();
                for line in results[..cut_results]
                    .split_inclusive('\n')
                    .chain(early[..cut_early].split_inclusive('\n'))
                {
                    let kept = point_of(line.as_bytes()).is_none_or(|point| there.contains(&point));
                    assert!(kept || !line.ends_with('\n'), "{cut_results} {cut_early}: lost {line:?}");
                }
                let missing = (0..6).rev().filter(|position| !there.contains(position));
                let rows = missing.map(|position| (position, format!("{position},a\n"))).collect();
                store.add(rows).expect("there is room");
                store.finish().expect("it is done");
                let all: Vec<String> = (0..6).map(|point| format!("{point},a\n")).collect();
                assert_eq!(content(place.path(), RESULTS), HEADER.to_owned() + &all.concat());
            }
        }
    }

    #[test]
    fn early_rows_are_forgotten_when_they_are_many() {
        let place = tempfile::tempdir().expect("there is room");
        let mut store = whole(place.path());
        let long = "a".repeat(1_000);
        for position in (1..200).chain([0]) {
            store.add(vec![(position, format!("{position},{long}\n"))]).expect("there is room");
        }
        assert_eq!(content(place.path(), EARLY), "");
        assert_eq!(store.written(), 200);
    }

    #[test]
    fn two_processes_cannot_share_a_directory() {
        let place = tempfile::tempdir().expect("there is room");
        let first = whole(place.path());
        let second = Store::open(place.path(), HEADER, Shard::WHOLE).expect_err("it is locked");
        assert!(second.to_string().contains("another process"), "{second}");
        drop(first);
        whole(place.path());
    }

    #[test]
    fn another_header_and_zeros_are_noticed() {
        let place = tempfile::tempdir().expect("there is room");
        fs::write(place.path().join(RESULTS), "point,x\n0,a\n\0\0\0\0\n").expect("there is room");
        assert_eq!(whole(place.path()).written(), 1);
        fs::write(place.path().join(RESULTS), "point,y\n0,a\n").expect("there is room");
        let error = Store::open(place.path(), HEADER, Shard::WHOLE).expect_err("the header differs");
        assert!(format!("{error:#}").contains("header"), "{error:#}");
    }
}
