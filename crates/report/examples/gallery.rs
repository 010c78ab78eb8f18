//! Draws every kind of picture at many sizes into a directory, to be looked at:
//! `cargo run --release -p pipestep-report --example gallery -- /tmp/gallery`.

#![expect(clippy::print_stdout, reason = "an example for a person at a terminal")]

use std::error::Error;
use std::path::{Path, PathBuf};

use pipestep_engine::{Bytes, Duration};
use pipestep_report::{
    AxisSpec, Best, Candidate, Event, EventKind, HeatMap, Histogram, Labels, Line, LineChart, Measure,
    Picture, StepView, Stroke, events, gantt, gantt_with_path, heat_map, histogram, line_chart,
    memory_curves, tradeoff,
};
use pipestep_schedule::{Chunks, Op, Options, Orders, Placement, Plan, Shape, Weights, find};
use pipestep_step::{Costs, Inputs, Message, Outcome, RankCost, StageCost, simulate};

const MS: u64 = 1_000_000;

struct Step {
    labels: Labels,
    shape: Shape,
    outcome: Outcome,
}

impl Step {
    fn view(&self) -> StepView<'_> {
        StepView { labels: &self.labels, shape: &self.shape, summary: &self.outcome.summary }
    }
}

/// ZB-H1's and a pair's colours, whatever the registry holds.
fn by_hand() -> Result<Step, Box<dyn Error>> {
    let (p, m) = (4_u32, 8_u32);
    let list = |r: u32| {
        let first = (p - 1 - r).min(m);
        let mut list: Vec<Op> = (0..first).map(|i| Op::forward(r as u16, i)).collect();
        for i in 0..m {
            list.extend((first + i < m).then(|| Op::forward(r as u16, first + i)));
            list.push(Op::input_gradient(r as u16, i));
            list.extend((i >= r).then(|| Op::weight_gradient(r as u16, i - r)));
        }
        list.extend((m - r..m).map(|i| Op::weight_gradient(r as u16, i)));
        list
    };
    let shape = Shape::new(p.into(), 1, m.into(), Placement::Loop)?;
    timed("zb-h1", shape, Plan::Fixed(Orders::from_lists((0..p).map(list))))
}

fn planned(schedule: &str, [ranks, chunks, micro_batches]: [u64; 3]) -> Result<Step, Box<dyn Error>> {
    let found = find(schedule).ok_or("no such schedule")?;
    let shape = Shape::new(ranks, chunks, micro_batches, found.entry().placement)?;
    let plan = found.plan(&shape, &Weights::unit(&shape), &Options::default())?;
    timed(schedule, shape, plan)
}

fn timed(schedule: &str, shape: Shape, plan: Plan) -> Result<Step, Box<dyn Error>> {
    let (ranks, chunks) = (shape.ranks(), shape.chunks() as u64);
    let message = |bytes| Message { time: Duration::from_nanos(MS), bytes: Bytes::new(bytes) };
    let part = |whole: u64| Duration::from_nanos(whole * MS / chunks);
    let stage = StageCost {
        forward: part(10),
        backward: part(20),
        input_gradient: part(10),
        weight_gradient: part(10),
        layers: 1,
        saved: Bytes::new(240_915_456 / chunks),
        activation: message(1 << 20),
        gradient: message(1 << 21),
        ..StageCost::default()
    };
    let rank = RankCost { update: Duration::from_nanos(MS), ..RankCost::default() };
    let mut stages = vec![stage; shape.stages()];
    stages.last_mut().ok_or("no stages")?.saved = Bytes::new(240_915_456 / chunks + 79_888_896);
    let costs = Costs { stages, ranks: vec![rank; shape.ranks()], ..Costs::default() };
    let outcome = simulate(&Inputs::new(shape.clone(), costs)?, plan)?;
    let labels = Labels {
        name: format!("Qwen3-8B on {ranks} stages, 128 tokens"),
        schedule: schedule.to_owned(),
        budgets: vec![Bytes::new(1_000_000_000); shape.ranks()],
    };
    Ok(Step { labels, shape, outcome })
}

fn save(directory: &Path, name: &str, picture: &Picture) -> Result<(), Box<dyn Error>> {
    let start = std::time::Instant::now();
    let png = picture.to_png()?;
    let took = start.elapsed();
    let svg = picture.to_svg()?;
    std::fs::write(directory.join(format!("{name}.png")), &png)?;
    std::fs::write(directory.join(format!("{name}.svg")), &svg)?;
    let (width, height) = picture.size();
    println!(
        "{name}: {width} x {height}, PNG {} kB in {took:?}, SVG {} kB",
        png.len() / 1000,
        svg.len() / 1000
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("name a directory")?);
    std::fs::create_dir_all(&directory)?;
    for (schedule, shape) in [
        ("1f1b", [2, 1, 4]),
        ("1f1b", [4, 1, 8]),
        ("fill-drain", [4, 1, 8]),
        ("interleaved", [4, 2, 8]),
        ("1f1b", [16, 1, 64]),
        ("interleaved", [8, 4, 16]),
        ("1f1b", [64, 1, 512]),
        ("1f1b", [300, 1, 1000]),
        ("1f1b", [1, 1, 1]),
    ] {
        let step = planned(schedule, shape)?;
        let name = format!("{schedule}-{}x{}x{}", shape[0], shape[1], shape[2]);
        let start = std::time::Instant::now();
        let picture = gantt(&[(step.view(), &step.outcome.record)]);
        println!("  laid out in {:?}", start.elapsed());
        save(&directory, &format!("gantt-{name}"), &picture)?;
        save(&directory, &format!("memory-{name}"), &memory_curves(&[(step.view(), &step.outcome.curves)]))?;
    }
    let split = by_hand()?;
    save(&directory, "split-backward", &gantt(&[(split.view(), &split.outcome.record)]))?;
    let path = path(&split);
    save(&directory, "path", &gantt_with_path((split.view(), &split.outcome.record), &path))?;
    for schedule in pipestep_schedule::all() {
        let chunks = match schedule.entry().chunks {
            Chunks::Exactly(chunks) => u64::from(chunks),
            Chunks::Any | Chunks::Even => 2,
        };
        let Ok(step) = planned(schedule.entry().name, [4, chunks, 8]) else {
            println!("{} takes no such shape", schedule.entry().name);
            continue;
        };
        let picture = gantt(&[(step.view(), &step.outcome.record)]);
        save(&directory, &format!("schedule-{}", step.labels.schedule), &picture)?;
    }
    let all =
        [planned("fill-drain", [4, 1, 8])?, planned("1f1b", [4, 1, 8])?, planned("interleaved", [4, 2, 8])?];
    let panels: Vec<_> = all.iter().map(|step| (step.view(), &step.outcome.record)).collect();
    save(&directory, "compare-gantt", &gantt(&panels))?;
    let panels: Vec<_> = all.iter().map(|step| (step.view(), step.outcome.curves.as_slice())).collect();
    save(&directory, "compare-memory", &memory_curves(&panels))?;
    charts(&directory, &all)
}

/// Backwards from the end: before each event, one that ended when it started.
fn path(step: &Step) -> Vec<Event> {
    let all = events(&step.shape, &step.outcome.record);
    let mut path: Vec<Event> = all.iter().copied().filter(|e| e.kind == EventKind::Update).take(1).collect();
    while let Some(&first) = path.last() {
        let feeds = |e: &&Event| e.end == first.start && e.peer.unwrap_or(e.rank) == first.rank;
        match all.iter().find(feeds) {
            Some(&before) => path.push(before),
            None => break,
        }
    }
    path
}

/// The pictures of sweeps and searches.
fn charts(directory: &Path, all: &[Step]) -> Result<(), Box<dyn Error>> {
    let mut candidates: Vec<Candidate> = all.iter().map(|step| Candidate::from(&step.view())).collect();
    save(
        directory,
        "tradeoff-3",
        &tradeoff("Qwen3-8B on 4 stages", &candidates, all[0].view().common_budget()),
    )?;
    for chunks in [3, 4, 6] {
        candidates.push(Candidate::from(&planned("interleaved", [4, chunks, 8])?.view()));
    }
    for (name, ms, mb) in
        [("zb-h1", 330, 970), ("zb-h2", 310, 1_700), ("v-half", 322, 600), ("v-min", 345, 420)]
    {
        let (makespan, peak) = (Duration::from_nanos(ms * MS), Bytes::new(mb * MS));
        candidates.push(Candidate { name: name.to_owned(), makespan, peak });
    }
    save(
        directory,
        "tradeoff",
        &tradeoff("Qwen3-8B on 4 stages", &candidates, all[0].view().common_budget()),
    )?;
    let share = |m: f64, p: f64| m / (m + p - 1.0);
    let line = |p: u32, stroke| Line {
        name: format!("{p} ranks"),
        points: (0..9).map(|i| f64::from(1 << i)).map(|m| (m, share(m, f64::from(p)))).collect(),
        stroke,
        errors: Vec::new(),
    };
    let mut chart = LineChart {
        title: "Utilisation against micro-batches, 1F1B".to_owned(),
        bars: String::new(),
        x: AxisSpec::log("micro-batches", Measure::Number),
        y: AxisSpec::linear("utilisation", Measure::Share),
        lines: vec![
            line(2, Stroke::Solid),
            line(4, Stroke::Solid),
            line(8, Stroke::Dashed),
            line(16, Stroke::Solid),
        ],
    };
    save(directory, "lines", &line_chart(&chart))?;
    chart.lines = (1..40).map(|p| line(p, Stroke::Solid)).collect();
    save(directory, "lines-many", &line_chart(&chart))?;
    chart.lines = vec![line(4, Stroke::Solid), line(8, Stroke::Solid)];
    chart.lines[0].errors = (0..9).map(|point| 0.01 * f64::from(point)).collect();
    chart.bars = String::from("95 % of the difference to 8 ranks");
    save(directory, "lines-bars", &line_chart(&chart))?;
    let names =
        |values: std::ops::RangeInclusive<u32>| values.map(|value| value.to_string()).collect::<Vec<_>>();
    let value = |index: u32| {
        let (m, p) = (f64::from(index % 16 + 1), f64::from(index / 16 + 1));
        (m >= p / 2.0).then_some((m + p - 1.0) * 30.0 * 1e6)
    };
    let map = HeatMap {
        title: "Makespan against micro-batches and ranks".to_owned(),
        x: ("micro-batches".to_owned(), names(1..=16)),
        y: ("ranks".to_owned(), names(1..=12)),
        what: "makespan".to_owned(),
        measure: Measure::Time,
        values: (0..16 * 12).map(value).collect(),
        best: Best::Lowest,
    };
    save(directory, "heat-map", &heat_map(&map))?;
    let samples: Vec<f64> = (0..5_000_u32).map(|i| 347e6 + f64::from(i % 97 + i % 89) * 1e5).collect();
    let marks = [("mean", 356.2e6), ("p50", 356.3e6), ("p90", 361e6), ("p99", 364.5e6)];
    let marks = marks.map(|(name, at)| (name.to_owned(), at)).to_vec();
    let x = AxisSpec::linear("makespan", Measure::Time);
    let spec = Histogram { title: "Makespan of 5,000 jittered runs".to_owned(), x, samples, marks };
    save(directory, "histogram", &histogram(&spec))
}
