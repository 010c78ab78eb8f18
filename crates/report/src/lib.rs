//! What a user gets: JSON, CSV, tables and pictures of simulated timelines.
//!
//! Values in, bytes or text out. The command line hands over a [`StepView`] (names, shape, summary) and, where
//! they were recorded, the timeline and the memory curves; it gets back text or encoded pictures and decides
//! where they go.
//!
//! Deliberately absent: files, the terminal, arguments, and the scenario (names come in as [`Labels`]).

mod axes;
mod chart;
mod coincide;
mod compare_runs;
mod csv;
mod curve;
mod events;
mod explain;
mod font;
mod gantt;
mod heat_map;
mod histogram;
mod job;
mod lane;
#[cfg(test)]
mod layout_tests;
mod legend;
mod line_chart;
mod memory_curve;
mod paired;
mod pareto;
mod picture;
mod result;
mod rl;
mod rows;
mod smaller;
mod step_runs;
mod stroke;
mod table;
#[cfg(test)]
mod testing;
mod text_gantt;
mod theme;
mod trace;
mod tradeoff;
mod units;
mod view;
mod wrap;

pub use axes::{Measure, Scale};
pub use chart::AxisSpec;
pub use compare_runs::{
    ComparedRuns, StepWithRuns, compare_runs_results, compare_runs_text, compare_runs_tradeoff,
};
pub use csv::{write_events, write_memory};
pub use events::{Event, EventKind, events};
pub use explain::{
    Against, ExplainResult, Explanation, OtherMicroBatches, PostsView, explain_text, idle_text, path_events,
    transfers_on_path,
};
pub use gantt::{GanttPanel, gantt, gantt_with_path};
pub use heat_map::{Best, HeatMap, heat_map};
pub use histogram::{Histogram, histogram};
pub use job::{
    BacklogResult, CauseResult, CheckResult, CheckpointResult, FailureResult, InputResult, JobResult,
    JobTarget, JobView, LateStepsResult, PackedResult, Quantities, ReplayResult, ReplicasResult, SavesResult,
    TargetResult, job_completion, job_losses, job_storage, job_text, job_timeline,
};
pub use line_chart::{Line, LineChart, Stroke, line_chart};
pub use memory_curve::{MemoryPanel, memory_curves};
pub use paired::Difference;
pub use pareto::pareto_front;
pub use picture::{Picture, PictureError};
pub use result::{BubbleResult, MessagesResult, RankResult, ResultFile, SCHEMA, StepResult};
pub use rl::{
    LengthBin, RlCostResult, RlCountsResult, RlJobResult, RlMemoryResult, RlResult, RlView, RoundResult,
    SplitResult, StageResult, StalenessResult, SwitchResult, SyncResult, TailResult, rl_lengths,
    rl_staleness, rl_text, rl_timeline,
};
pub use smaller::SmallerMicroBatch;
pub use step_runs::{StepRuns, StepRunsResult, step_runs_histogram, step_runs_text};
pub use table::{compare_text, run_text};
pub use text_gantt::{Ink, TextGantt, text_gantt};
pub use trace::write_trace;
pub use tradeoff::{Candidate, tradeoff};
pub use view::{Labels, StepView};
pub use wrap::{COLUMNS, folded};
