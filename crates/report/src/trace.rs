//! A step as a trace in Chrome's JSON format, for <https://ui.perfetto.dev> and `chrome://tracing`: a track per rank and per
//! link (`X` slices), and the memory of each rank (`C` counters).
//!
//! The format is "Trace Event Format" (the Chromium project); times are microseconds, written here with three
//! decimals so that no nanosecond is lost. Written event by event, so a large step needs no second copy.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use pipestep_engine::Bytes;
use pipestep_schedule::Rank;
use pipestep_step::{ACCOUNTS, Account, MemoryCurve, Record};

use crate::theme::name_of;
use crate::{Event, EventKind, StepView, events};

/// The processes under which tracks are grouped.
const RANKS: u32 = 1;
const LINKS: u32 = 2;
const MEMORY: u32 = 3;

/// Writes the trace. `curves` holds a memory curve for each rank, or nothing where none were kept.
///
/// # Errors
/// Whatever the writer reports.
pub fn write_trace(
    view: &StepView,
    record: &Record,
    curves: &[MemoryCurve],
    to: impl Write,
) -> io::Result<()> {
    let mut trace = Trace { to: BufWriter::new(to), links: BTreeMap::new(), link_tracks: 0, is_first: true };
    let name = serde_json::to_string(&format!("{}: {}", view.labels.name, view.labels.schedule))?;
    write!(trace.to, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"name\":{name}}},\"traceEvents\":[")?;
    trace.name_process(RANKS, "ranks")?;
    for rank in 0..view.shape.ranks() {
        trace.name_track(RANKS, rank, &format!("rank {rank}"))?;
    }
    trace.name_process(LINKS, "links")?;
    for event in events(view.shape, record) {
        trace.slice(&event)?;
    }
    if !curves.is_empty() {
        trace.name_process(MEMORY, "memory")?;
    }
    for (rank, curve) in curves.iter().enumerate() {
        trace.counters(rank, curve)?;
    }
    trace.to.write_all(b"\n]}\n")?;
    trace.to.flush()
}

struct Trace<W: Write> {
    to: BufWriter<W>,
    /// The tracks of each link, each with the instant at which it is free, in ns: messages of an unlimited link
    /// overlap, and slices of one track must not.
    links: BTreeMap<(Rank, Rank), Vec<(usize, u64)>>,
    link_tracks: usize,
    is_first: bool,
}

impl<W: Write> Trace<W> {
    fn start_event(&mut self) -> io::Result<()> {
        let separator: &[u8] = if std::mem::take(&mut self.is_first) { b"\n" } else { b",\n" };
        self.to.write_all(separator)
    }

    fn name_process(&mut self, process: u32, name: &str) -> io::Result<()> {
        self.start_event()?;
        write!(
            self.to,
            "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{process},\"args\":{{\"name\":\"{name}\"}}}}"
        )
    }

    /// Names a track and keeps tracks in the order of their numbers. `name` needs no escapes.
    fn name_track(&mut self, process: u32, track: usize, name: &str) -> io::Result<()> {
        self.start_event()?;
        write!(
            self.to,
            "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{process},\"tid\":{track},\"args\":{{\"name\":\"{name}\"}}}},\n\
             {{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{process},\"tid\":{track},\"args\":{{\"sort_index\":{track}}}}}"
        )
    }

    fn slice(&mut self, event: &Event) -> io::Result<()> {
        let (process, track) = match event.peer {
            Some(peer) => (LINKS, self.link_track(event, peer)?),
            None => (RANKS, event.rank.index()),
        };
        self.start_event()?;
        let (start, length) = (event.start.as_nanos(), event.end.since(event.start).as_nanos());
        let letter = event.kind.letter();
        write!(self.to, "{{\"ph\":\"X\",\"name\":\"{letter}")?;
        if let Some(micro_batch) = event.micro_batch {
            write!(self.to, "{micro_batch}")?;
        }
        write!(
            self.to,
            "\",\"cat\":\"{}\",\"pid\":{process},\"tid\":{track},\"ts\":{},\"dur\":{}",
            name_of(event.kind),
            Micros(start),
            Micros(length)
        )?;
        if let (Some(stage), Some(micro_batch)) = (event.stage, event.micro_batch) {
            write!(self.to, ",\"args\":{{\"stage\":{stage},\"micro_batch\":{micro_batch}}}")?;
        }
        self.to.write_all(b"}")
    }

    /// A track of the link on which nothing runs at the message's start, named when it is first used.
    fn link_track(&mut self, event: &Event, peer: Rank) -> io::Result<usize> {
        debug_assert!(matches!(event.kind, EventKind::Activation | EventKind::Gradient));
        let tracks = self.links.entry((event.rank, peer)).or_default();
        let end = event.end.as_nanos();
        if let Some((track, free)) = tracks.iter_mut().find(|(_, free)| *free <= event.start.as_nanos()) {
            *free = end;
            return Ok(*track);
        }
        let (track, lane) = (self.link_tracks, tracks.len() + 1);
        tracks.push((track, end));
        self.link_tracks += 1;
        let name = format!("rank {} to {peer}", event.rank);
        let name = if lane > 1 { format!("{name} ({lane})") } else { name };
        self.name_track(LINKS, track, &name)?;
        Ok(track)
    }

    /// The accounts that this rank ever uses, at every change.
    fn counters(&mut self, rank: usize, curve: &MemoryCurve) -> io::Result<()> {
        let is_used = |account: usize| curve.iter().any(|level| level.accounts[account] > Bytes::ZERO);
        let used: Vec<usize> = (0..ACCOUNTS).filter(|&account| is_used(account)).collect();
        for level in curve {
            self.start_event()?;
            let at = Micros(level.at.as_nanos());
            write!(
                self.to,
                "{{\"ph\":\"C\",\"name\":\"memory rank {rank} [B]\",\"pid\":{MEMORY},\"ts\":{at},\"args\":{{"
            )?;
            for (place, &account) in used.iter().enumerate() {
                let comma = if place > 0 { "," } else { "" };
                let (name, bytes) = (Account::ALL[account].name(), level.accounts[account].get());
                write!(self.to, "{comma}\"{name}\":{bytes}")?;
            }
            self.to.write_all(b"}}")?;
        }
        Ok(())
    }
}

/// Nanoseconds, written as microseconds.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 % 1_000 {
            0 => write!(f, "{}", self.0 / 1_000),
            rest => write!(f, "{}.{rest:03}", self.0 / 1_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;
    use serde_json::Value;

    fn trace(sample: &Sample) -> Vec<Value> {
        let mut bytes = Vec::new();
        let (record, curves) = (&sample.outcome.record, &sample.outcome.curves);
        write_trace(&sample.view(), record, curves, &mut bytes).unwrap();
        let json: Value = serde_json::from_slice(&bytes).unwrap();
        json["traceEvents"].as_array().unwrap().clone()
    }

    #[test]
    fn operations_messages_and_memory_are_there() {
        let events = trace(&Sample::new("1f1b", 4, 1, 8));
        let count = |ph: &str, pid: u32| events.iter().filter(|e| e["ph"] == ph && e["pid"] == pid).count();
        assert_eq!(count("X", RANKS), 2 * 4 * 8 + 4);
        assert_eq!(count("X", LINKS), 48);
        assert!(count("C", MEMORY) > 64);
        let gap =
            events.iter().find(|e| e["ph"] == "X" && e["pid"] == 1 && e["tid"] == 3 && e["name"] == "F2");
        assert_eq!((&gap.unwrap()["ts"], &gap.unwrap()["dur"]), (&95_000.into(), &10_000.into()));
    }

    #[test]
    fn slices_of_one_track_do_not_overlap_even_where_links_are_unlimited() {
        let sample = Sample::unlimited("fill-drain", [2, 1, 8]);
        let events = trace(&sample);
        let number = |e: &Value, key: &str| e[key].as_f64().unwrap();
        let mut slices: Vec<_> = events
            .iter()
            .filter(|e| e["ph"] == "X" && e["pid"] == LINKS)
            .map(|e| (number(e, "tid") as u64, number(e, "ts"), number(e, "dur")))
            .collect();
        slices.sort_by(|a, b| a.partial_cmp(b).unwrap());
        assert!(slices.windows(2).all(|w| w[0].0 != w[1].0 || w[0].1 + w[0].2 <= w[1].1), "{slices:?}");
        let lanes = slices.iter().map(|slice| slice.0).max().unwrap() + 1;
        assert!(lanes > 2, "messages longer than an operation overlap");
    }

    #[test]
    fn no_nanosecond_is_lost() {
        let shown = |nanos| Micros(nanos).to_string();
        assert_eq!(
            (shown(1_234_567), shown(5), shown(2_000)),
            ("1234.567".into(), "0.005".into(), "2".into())
        );
    }

    #[test]
    fn names_are_escaped() {
        let mut sample = Sample::new("1f1b", 2, 1, 2);
        sample.labels.name = "a \"quoted\" \\ name\n".into();
        assert!(!trace(&sample).is_empty());
    }
}
