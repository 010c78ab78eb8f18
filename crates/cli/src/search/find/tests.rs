//! Bounds hold, and what the search finds is what trying everything finds, over random small problems.

use std::fmt::Write as _;

use super::*;

/// `SplitMix64`: enough chance for problems.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (word ^ (word >> 31)) % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn list(&mut self, count: u64, unit: &str, limit: u64, least: u64) -> String {
        let values: Vec<String> =
            (0..count).map(|_| format!("\"{} {unit}\"", least + self.below(limit))).collect();
        format!("[{}]", values.join(", "))
    }
}

/// A scenario with any of the things that bounds have to be right about.
fn problem(seed: u64) -> String {
    let mut random = Random(seed);
    let ranks = 1 + random.below(4);
    let micro_batches = 1 + random.below(8);
    let mut text =
        format!("[pipeline]\nranks = {ranks}\nmicro_batches = {micro_batches}\nschedule = \"1f1b\"\n");
    let by_layer = random.one_in(2);
    let layers = ranks * (1 + random.below(3)) + random.below(3);
    if by_layer {
        let rest = layers - (ranks - 1);
        let split: Vec<u64> = (0..ranks).map(|rank| if rank == 0 { rest } else { 1 }).collect();
        let _ = writeln!(text, "layers = {split:?}");
    }
    if random.one_in(4) {
        text += "update_after = \"own\"\n";
    }
    text += "[time]\n";
    let least = random.below(2);
    if by_layer {
        let _ = writeln!(text, "layer_forward = {}", random.list(layers, "us", 9, least));
        let _ = writeln!(text, "layer_backward = {}", random.list(layers, "us", 19, least));
        let _ = writeln!(text, "head_forward = \"{} us\"", random.below(12));
        let _ = writeln!(text, "embedding_backward = \"{} us\"", random.below(12));
    } else {
        let _ = writeln!(text, "forward = {}", random.list(ranks, "us", 20, least));
        let _ = writeln!(text, "backward = {}", random.list(ranks, "us", 40, least));
    }
    let _ = writeln!(text, "weight_gradient_fraction = 0.{}", random.below(10));
    let _ = writeln!(text, "update = {}", random.list(ranks, "us", 5, 0));
    let _ = writeln!(text, "setup = \"{} us\"", random.below(4));
    if random.one_in(3) {
        let _ = writeln!(text, "overlapped_pair = {}", random.list(ranks, "us", 40, 0));
    }
    if random.one_in(4) {
        let scale: Vec<u64> = (0..micro_batches).map(|_| 1 + random.below(3)).collect();
        let _ = writeln!(text, "micro_batch_scale = {scale:?}");
    }
    if random.one_in(4) {
        text += "first_stage_input_gradient = \"none\"\n";
    }
    text += "[transfer]\n";
    let _ = writeln!(text, "activation = \"{} us\"\ngradient = \"{} us\"", random.below(6), random.below(6));
    let links = ["directional", "directional", "shared", "unlimited"][random.below(4) as usize];
    let _ = writeln!(text, "links = \"{links}\"");
    text += "[memory]\n";
    let _ = writeln!(text, "saved_per_micro_batch = {}", random.list(ranks, "kB", 100, 0));
    let _ = writeln!(text, "activation_message = \"{} kB\"", random.below(9));
    let _ = writeln!(text, "released_at_input_gradient = 0.{}", random.below(10));
    if !random.one_in(5) {
        let _ = writeln!(text, "budget = \"{} kB\"", random.below(500));
    }
    let all = pipestep_schedule::all().iter().map(|schedule| schedule.entry().name);
    let some: Vec<&str> = all.filter(|_| random.one_in(2)).collect();
    let _ = writeln!(text, "[search]\nschedules = {some:?}\nmost_chunks = {}", 1 + random.below(3));
    if by_layer && random.one_in(3) {
        text += "ranks = [1, 2, 3]\n";
    }
    text
}

fn candidates(evaluator: &Evaluator) -> Option<Candidates> {
    Candidates::new(evaluator.written().ok()?).ok()
}

/// What is shown of a search: the best, and the front.
fn shown(found: &Found) -> [Vec<(u64, u64, usize)>; 2] {
    [&found.best, &found.front].map(|list| list.iter().map(Evaluated::key).collect())
}

#[test]
fn leaving_out_by_bounds_never_changes_what_is_shown() {
    let (mut problems, mut left_out, mut legal) = (0, 0, 0);
    for seed in 0..260 {
        let text = problem(seed);
        let evaluator = Evaluator::of_text(&text);
        let Some(candidates) = candidates(&evaluator) else { continue };
        let everything = find(&evaluator, &candidates, 4, Effort::Exhaustive);
        let pruned = find(&evaluator, &candidates, 4, Effort::Pruned);
        assert_eq!(shown(&pruned), shown(&everything), "seed {seed}:\n{text}");
        assert_eq!(everything.left_out, 0);
        problems += 1;
        left_out += pruned.left_out;
        legal += everything.simulated.len();
    }
    assert!(problems >= 200, "only {problems} problems could be read");
    assert!(left_out * 10 > legal, "bounds left out only {left_out} of {legal}");
}

#[test]
fn drawn_steps_are_ranked_by_the_mean_of_all_runs() {
    let (mut problems, mut simulated) = (0, 0);
    for seed in 2_000..2_060 {
        let jitter = "[jitter]\nruns = 5\nseed = 3\nforward = { distribution = \"lognormal\", variation = 0.6 }\n\
                      gradient = { distribution = \"exponential\" }\n";
        let text = problem(seed) + jitter;
        let evaluator = Evaluator::of_text(&text);
        let Some(candidates) = candidates(&evaluator) else { continue };
        let found = find(&evaluator, &candidates, 3, Effort::Pruned);
        assert_eq!(found.left_out, 0, "bounds prove nothing here:\n{text}");
        // One run at a time, in whatever company none.
        let mean = |done: &Evaluated| {
            let setting = &candidates.settings[done.index];
            let step =
                evaluator.read(setting.overrides().collect()).expect("it was legal").step.expect("it is one");
            let jitter = step.jitter.as_ref().expect("it has one");
            let replicas = pipestep_step::Replicas::new(&step.inputs, jitter).expect("its lists are right");
            let run = |run| match step.plan().expect("it was legal") {
                pipestep_schedule::Plan::Fixed(orders) => {
                    replicas.of_orders(&orders, run..run + 1).expect("it runs")[0]
                }
                pipestep_schedule::Plan::Online(policy) => replicas.of_policy(policy, run).expect("it runs"),
            };
            ((0..5).map(|number| run(number).as_nanos() as f64).sum::<f64>() / 5.0).round() as u64
        };
        let mut fitting: Vec<(u64, u64, usize)> = Vec::new();
        for done in &found.simulated {
            assert_eq!(done.makespan(), mean(done), "seed {seed}:\n{text}");
            if done.fits {
                fitting.push((mean(done), done.peak().get(), done.index));
            }
        }
        fitting.sort_unstable();
        fitting.truncate(3);
        assert_eq!(
            found.best.iter().map(Evaluated::key).collect::<Vec<_>>(),
            fitting,
            "seed {seed}:\n{text}"
        );
        problems += 1;
        simulated += found.simulated.len();
    }
    assert!(problems >= 40 && simulated > 300, "{problems} problems, {simulated} settings");
}

#[test]
fn no_step_beats_its_bounds() {
    for seed in 1_000..1_100 {
        let text = problem(seed);
        let evaluator = Evaluator::of_text(&text);
        let Some(candidates) = candidates(&evaluator) else { continue };
        for (index, setting) in candidates.settings.iter().enumerate() {
            let Ok(bounded) = evaluator.bound(index, setting) else { continue };
            let name = setting.schedule.entry().name;
            let makespan = bounded.makespan;
            let check = |peaks: &[u64], done: &Evaluated, kind: &str| {
                for (rank, outcome) in done.summary.ranks.iter().enumerate() {
                    let peak = outcome.peak.bytes.get();
                    assert!(
                        peaks[rank] <= peak,
                        "{name} {kind}, rank {rank}: {} > {peak}\n{text}",
                        peaks[rank]
                    );
                }
            };
            let peaks = bounded.peaks.clone();
            let orders = match bounded.step.plan() {
                Ok(pipestep_schedule::Plan::Fixed(orders)) => Some(orders),
                _ => None,
            };
            let of_orders =
                orders.and_then(|orders| super::super::bounds::peaks_of(&bounded.step.inputs, &orders));
            let Ok(Some(done)) = evaluator.simulate(bounded, |_| false) else { continue };
            assert!(makespan <= done.makespan(), "{name}: {makespan} > {}\n{text}", done.makespan());
            check(&peaks, &done, "any order");
            check(of_orders.as_deref().unwrap_or(&peaks), &done, "its order");
        }
    }
}

#[test]
fn whole_backwards_are_never_split() {
    // The bounds of schedules that do not split rest on it.
    use pipestep_schedule::{Kind, Plan, Weights};
    for schedule in pipestep_schedule::all().iter().filter(|schedule| !schedule.entry().splits_backward) {
        for (ranks, chunks, micro_batches) in [(2, 1, 4), (2, 2, 4), (4, 1, 8), (4, 2, 8)] {
            let shape =
                pipestep_schedule::Shape::new(ranks, chunks, micro_batches, schedule.entry().placement);
            let shape = shape.expect("a small shape");
            let plan = schedule.plan(&shape, &Weights::unit(&shape), &pipestep_schedule::Options::default());
            if let Ok(Plan::Fixed(orders)) = plan {
                let whole = orders.all().iter().all(|op| matches!(op.kind, Kind::Forward | Kind::Backward));
                assert!(whole, "{}", schedule.entry().name);
            }
        }
    }
}
