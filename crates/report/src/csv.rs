//! The two CSV files of the contract: events and memory, written row by row to any writer.
//!
//! Rows are streamed, so a step of millions of operations needs no second copy as text.

use std::io::{self, Write};

use pipestep_engine::Bytes;
use pipestep_step::{ACCOUNTS, Account, MemoryCurve};
use serde::Serialize;

use crate::Event;

/// One row of `--events`.
#[derive(Serialize)]
struct EventRow {
    rank: u16,
    kind: char,
    stage: Option<u16>,
    micro_batch: Option<u32>,
    start_ns: u64,
    end_ns: u64,
    peer: Option<u16>,
}

/// One row of `--memory`.
#[derive(Serialize)]
struct MemoryRow {
    rank: usize,
    time_ns: u64,
    account: &'static str,
    bytes: u64,
}

/// Writes `rank,kind,stage,micro_batch,start_ns,end_ns,peer`, one row an event in the order given (that of
/// [`crate::events`] is the contract's). Fields that do not apply are empty.
///
/// # Errors
/// Whatever the writer reports.
pub fn write_events(events: &[Event], to: impl Write) -> io::Result<()> {
    const HEADER: [&str; 7] = ["rank", "kind", "stage", "micro_batch", "start_ns", "end_ns", "peer"];
    let rows = events.iter().map(|event| EventRow {
        rank: event.rank.0,
        kind: event.kind.letter(),
        stage: event.stage.map(|stage| stage.0),
        micro_batch: event.micro_batch.map(|micro_batch| micro_batch.0),
        start_ns: event.start.as_nanos(),
        end_ns: event.end.as_nanos(),
        peer: event.peer.map(|rank| rank.0),
    });
    write_rows(&HEADER, rows, to)
}

/// Writes `rank,time_ns,account,bytes`: one row for each account that changed at an instant, with what it holds
/// afterwards; by rank, then time, then account. `curves` holds one curve for each rank.
///
/// # Errors
/// Whatever the writer reports.
pub fn write_memory(curves: &[MemoryCurve], to: impl Write) -> io::Result<()> {
    let rows = curves.iter().enumerate().flat_map(|(rank, curve)| changes(rank, curve));
    write_rows(&["rank", "time_ns", "account", "bytes"], rows, to)
}

fn changes(rank: usize, curve: &MemoryCurve) -> impl Iterator<Item = MemoryRow> + '_ {
    let mut before = [Bytes::ZERO; ACCOUNTS];
    curve.iter().flat_map(move |level| {
        let last = std::mem::replace(&mut before, level.accounts);
        let held = Account::ALL.into_iter().zip(last.into_iter().zip(level.accounts));
        held.filter(|(_, (last, now))| last != now).map(move |(account, (_, now))| MemoryRow {
            rank,
            time_ns: level.at.as_nanos(),
            account: account.name(),
            bytes: now.get(),
        })
    })
}

/// The header is written apart, so that a file without rows has one too.
fn write_rows(header: &[&str], rows: impl Iterator<Item = impl Serialize>, to: impl Write) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new().buffer_capacity(1 << 16).has_headers(false).from_writer(to);
    writer.write_record(header).map_err(io_error)?;
    for row in rows {
        writer.serialize(row).map_err(io_error)?;
    }
    writer.flush()
}

/// The writer's own error where there is one: callers tell a broken pipe from a full disk by its kind.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("a CSV row could not be written: {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events;
    use crate::testing::Sample;

    fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn events_are_the_rows_of_the_contract() {
        let sample = Sample::new("1f1b", 2, 1, 1);
        let written = text(|to| write_events(&events(&sample.shape, &sample.outcome.record), to));
        assert_eq!(
            written,
            "rank,kind,stage,micro_batch,start_ns,end_ns,peer\n\
             0,F,0,0,0,10000000,\n\
             0,A,0,0,10000000,11000000,1\n\
             1,F,1,0,11000000,21000000,\n\
             1,B,1,0,21000000,41000000,\n\
             1,G,1,0,41000000,42000000,0\n\
             0,B,0,0,42000000,62000000,\n\
             0,U,,,62000000,63000000,\n\
             1,U,,,62000000,63000000,\n"
        );
    }

    #[test]
    fn the_gap_of_the_last_rank_is_in_the_headline_events() {
        let sample = Sample::new("1f1b", 4, 1, 8);
        let written = text(|to| write_events(&events(&sample.shape, &sample.outcome.record), to));
        assert!(written.contains("\n3,B,3,1,73000000,93000000,\n"), "{written}");
        assert!(written.contains("\n3,F,3,2,95000000,105000000,\n"), "{written}");
    }

    #[test]
    fn memory_rows_say_what_an_account_holds_after_each_change() {
        let sample = Sample::new("1f1b", 2, 1, 2);
        assert_eq!(
            text(|to| write_memory(&sample.outcome.curves, to)),
            "rank,time_ns,account,bytes\n\
             0,0,activations,240915456\n\
             0,10000000,activations,481830912\n\
             0,10000000,send_buffers,1048576\n\
             0,11000000,send_buffers,0\n\
             0,20000000,send_buffers,1048576\n\
             0,21000000,send_buffers,0\n\
             0,41000000,receive_buffers,2097152\n\
             0,42000000,receive_buffers,0\n\
             0,62000000,activations,240915456\n\
             0,71000000,receive_buffers,2097152\n\
             0,72000000,receive_buffers,0\n\
             0,92000000,activations,0\n\
             1,10000000,receive_buffers,1048576\n\
             1,11000000,activations,320804352\n\
             1,11000000,receive_buffers,0\n\
             1,20000000,receive_buffers,1048576\n\
             1,41000000,send_buffers,2097152\n\
             1,41000000,receive_buffers,0\n\
             1,42000000,send_buffers,0\n\
             1,71000000,activations,0\n\
             1,71000000,send_buffers,2097152\n\
             1,72000000,send_buffers,0\n"
        );
    }

    #[test]
    fn files_without_rows_have_their_header() {
        assert_eq!(text(|to| write_memory(&[], to)), "rank,time_ns,account,bytes\n");
        assert_eq!(text(|to| write_events(&[], to)), "rank,kind,stage,micro_batch,start_ns,end_ns,peer\n");
    }

    /// A pipe whose reader has gone.
    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_broken_pipe_stays_a_broken_pipe() {
        let error = write_events(&[], Gone).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
