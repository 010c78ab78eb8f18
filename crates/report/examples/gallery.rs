//! Draws every kind of picture at many sizes into a directory, to be looked at:
//! `cargo run --release -p pipestep-report --example gallery -- /tmp/gallery`.

#![expect(clippy::print_stdout, reason = "an example for a person at a terminal")]

use std::error::Error;
use std::path::{Path, PathBuf};

use pipestep_engine::{Bytes, Duration};
use pipestep_report::{Labels, Picture, StepView, gantt, memory_curves};
use pipestep_schedule::{Options, Shape, Weights, find};
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

fn step(schedule: &str, [ranks, chunks, micro_batches]: [u64; 3]) -> Result<Step, Box<dyn Error>> {
    let found = find(schedule).ok_or("no such schedule")?;
    let shape = Shape::new(ranks, chunks, micro_batches, found.entry().placement)?;
    let plan = found.plan(&shape, &Weights::unit(&shape), &Options::default())?;
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
        budget: Some(Bytes::new(1_000_000_000)),
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
        let step = step(schedule, shape)?;
        let name = format!("{schedule}-{}x{}x{}", shape[0], shape[1], shape[2]);
        let start = std::time::Instant::now();
        let picture = gantt(&[(step.view(), &step.outcome.record)]);
        println!("  laid out in {:?}", start.elapsed());
        save(&directory, &format!("gantt-{name}"), &picture)?;
        save(&directory, &format!("memory-{name}"), &memory_curves(&[(step.view(), &step.outcome.curves)]))?;
    }
    let all = [step("fill-drain", [4, 1, 8])?, step("1f1b", [4, 1, 8])?, step("interleaved", [4, 2, 8])?];
    let panels: Vec<_> = all.iter().map(|step| (step.view(), &step.outcome.record)).collect();
    save(&directory, "compare-gantt", &gantt(&panels))?;
    let panels: Vec<_> = all.iter().map(|step| (step.view(), step.outcome.curves.as_slice())).collect();
    save(&directory, "compare-memory", &memory_curves(&panels))?;
    Ok(())
}
