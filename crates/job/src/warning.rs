//! What a user should know about a job that ran.

use std::fmt;

use pipestep_engine::Duration;

/// Something about a run that its numbers alone do not say.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// Writes take longer than the interval between saves: snapshots pile up.
    WriterTooSlow {
        /// One write.
        write: Duration,
        /// The interval.
        every: Duration,
        /// Bytes a second asked for and given, where the size is known.
        bytes_per_second: Option<(f64, f64)>,
    },
    /// Requests on a fixed clock pile up and training gets hardly any time.
    Starved {
        /// Requests in line when the run ended.
        waiting: usize,
    },
    /// The job was over before its first save.
    NeverSaved {
        /// The useful work at risk.
        useful: Duration,
    },
    /// Snapshots were captured, and none of them was ever usable.
    NeverUsable {
        /// How many were captured.
        captured: u64,
        /// The useful work at risk.
        useful: Duration,
    },
    /// The run stopped at its horizon with work left.
    Unfinished {
        /// What was left to do.
        left: Duration,
    },
    /// The job had to wait for a spare machine.
    SparesRanOut {
        /// How often.
        times: u64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WriterTooSlow { write, every, bytes_per_second } => {
                write!(f, "a write takes {write} and one is asked for every {every}")?;
                if let Some((asked, given)) = bytes_per_second {
                    write!(f, ": {:.1} GB/s asked, {:.1} GB/s given", asked / 1e9, given / 1e9)?;
                }
                write!(f, ", so the backlog grows")
            }
            Self::Starved { waiting } => write!(
                f,
                "{waiting} requests on a fixed clock wait in line: saves take all the time there is and \
                 training stands still"
            ),
            Self::NeverSaved { useful } => {
                write!(f, "no checkpoint was captured: a failure would lose all of {useful}")
            }
            Self::NeverUsable { captured: 1, useful } => write!(
                f,
                "a snapshot was captured and not usable by the end: a failure would have lost all of {useful}"
            ),
            Self::NeverUsable { captured, useful } => write!(
                f,
                "{captured} snapshots were captured and none was usable by the end: a failure would have lost all \
                 of {useful}"
            ),
            Self::Unfinished { left } => write!(f, "{left} of the work were left at the horizon"),
            Self::SparesRanOut { times: 1 } => write!(f, "the spares ran out once"),
            Self::SparesRanOut { times } => write!(f, "the spares ran out {times} times"),
        }
    }
}
