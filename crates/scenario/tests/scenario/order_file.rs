//! Orders from PyTorch's schedule files.

use pipestep_scenario::{OrderSource, Override, StepScenario};
use pipestep_schedule::{Plan, Rank, Stage};

use crate::{MINIMAL, parse, step};

/// A step ordered by a file, with nothing said of its shape.
fn filed(name: &str, sets: &[&str]) -> StepScenario {
    let pipeline = format!("[pipeline]\nschedule_file = \"{name}\"\n");
    let (_, time) = MINIMAL.split_once("\n\n").expect("two tables");
    step(&format!("{pipeline}{time}"), sets)
}

fn list(step: &StepScenario, rank: u16) -> Vec<String> {
    let Ok(Plan::Fixed(orders)) = step.plan() else { panic!("an order") };
    orders.rank(Rank(rank)).iter().map(ToString::to_string).collect()
}

#[test]
fn the_shape_is_that_of_the_file() {
    let filed = filed("zbv_p2_m4_v2.csv", &[]);
    let shape = filed.inputs.shape();
    assert_eq!((shape.ranks(), shape.stages(), shape.micro_batches()), (2, 4, 4));
    assert_eq!(shape.rank_of(Stage(3)), Rank(0));
    assert_eq!(filed.order.name(), "zbv_p2_m4_v2.csv");
    assert_eq!(filed.inputs.costs().stages[0].forward.as_nanos(), 5_000_000);
    // The same order as the schedule of that name.
    let sets = ["pipeline.schedule=zb-v", "pipeline.ranks=2", "pipeline.micro_batches=4"];
    let by_rule = step(MINIMAL, &sets);
    assert_eq!([list(&filed, 0), list(&filed, 1)], [list(&by_rule, 0), list(&by_rule, 1)]);
    assert_eq!(filed.inputs.costs(), by_rule.inputs.costs());
}

#[test]
fn layers_are_by_stage() {
    let filed = filed("zbv_p2_m4_v2.csv", &["pipeline.layers=[1, 2, 6, 3]"]);
    let forward: Vec<u64> =
        filed.inputs.costs().stages.iter().map(|stage| stage.forward.as_nanos()).collect();
    assert_eq!(forward, [2_500_000, 2_500_000, 7_500_000, 7_500_000]);
}

#[test]
fn ranks_may_hold_different_numbers_of_stages() {
    let model = ["model.preset=qwen3-8b", "model.sequence_length=128", "model.layers=13"];
    let uneven = filed("uneven.csv", &model);
    assert_eq!(uneven.layers, Some(vec![3, 6, 2, 2]));
    let alike = filed("uneven.csv", &[]);
    let forward: Vec<u64> =
        alike.inputs.costs().stages.iter().map(|stage| stage.forward.as_nanos()).collect();
    assert_eq!(forward, [3_333_333, 10_000_000, 3_333_333, 3_333_333]);
}

#[test]
fn communication_is_kept_where_the_file_has_it() {
    let comms = |name: &str| match filed(name, &[]).order {
        OrderSource::File { comms, .. } => comms.map(|comms| comms.lists.len()),
        OrderSource::Schedule { .. } => None,
    };
    assert_eq!(comms("1f1b_p2_m4_v1_comms.csv"), Some(2));
    assert_eq!(comms("1f1b_p2_m4_v1.csv"), None);
}

#[test]
fn overlapped_pairs_take_the_time_of_pairs() {
    let paired = filed("dualpipev_p2_m6_v2.csv", &["time.overlapped_pair=28 ms"]);
    assert!(list(&paired, 0).iter().any(|op| op.contains('F')));
    let Ok(Plan::Fixed(orders)) = paired.plan() else { panic!("an order") };
    assert!(orders.all().iter().any(|op| op.paired));
}

#[test]
fn what_is_set_from_outside_orders_the_step() {
    let set = step(
        MINIMAL,
        &["pipeline.schedule_file=1f1b_p2_m4_v1.csv", "pipeline.ranks=2", "pipeline.micro_batches=4"],
    );
    assert_eq!(set.order.name(), "1f1b_p2_m4_v1.csv");
    let sets = ["pipeline.schedule=1f1b", "pipeline.ranks=2", "pipeline.micro_batches=4"];
    assert_eq!(filed("1f1b_p2_m4_v1.csv", &sets).order.name(), "1f1b");
    // A comparison keeps each rank's layers.
    let pipeline = "[pipeline]\nranks = 2\nmicro_batches = 4\nschedule_file = \"zbv_p2_m4_v2.csv\"\nlayers = [1, 2, 6, 3]\n";
    let (_, time) = MINIMAL.split_once("\n\n").expect("two tables");
    let text = format!("{pipeline}{time}");
    let other = parse(&text, "test.toml", &[pipestep_scenario::Override::schedule("1f1b")]).expect("legal");
    assert_eq!(other.step.expect("a step").layers, Some(vec![4, 8]));
}

#[test]
fn a_schedule_in_a_comparison_has_the_shape_of_the_file() {
    let (_, time) = MINIMAL.split_once("\n\n").expect("two tables");
    let compared = |file: &str, more: &str| {
        let text = format!("[pipeline]\nschedule_file = \"{file}\"\n{more}{time}");
        parse(&text, "test.toml", &[pipestep_scenario::Override::schedule("1f1b")])
    };
    let shape =
        compared("1f1b_p2_m4_v1.csv", "").expect("legal").step.expect("a step").inputs.shape().clone();
    assert_eq!((shape.ranks(), shape.micro_batches()), (2, 4));
    let other = compared("1f1b_p2_m4_v1.csv", "ranks = 4\nmicro_batches = 4\n");
    assert!(other.is_err(), "the file has two ranks");
    let refusal = compared("nothing.csv", "").expect_err("no such file").to_string();
    assert!(refusal.contains("nothing.csv") && !refusal.contains("needs `ranks`"), "{refusal}");
}

#[test]
fn a_path_is_relative_to_the_scenario() {
    let seen = std::cell::RefCell::new(Vec::new());
    let reader = |path: &std::path::Path| {
        seen.borrow_mut().push(path.display().to_string());
        Ok("0F0,0B0\n".to_owned())
    };
    let text =
        "[pipeline]\nschedule_file = \"orders/mine.csv\"\n[time]\nforward = \"1 ms\"\nbackward = \"2 ms\"";
    pipestep_scenario::parse(text, "runs/a.toml", &[], &reader).expect("legal");
    assert_eq!(*seen.borrow(), ["runs/orders/mine.csv"]);
}

#[test]
fn a_scenario_says_whose_order_it_would_run() {
    let file = |text: &str, set: &[&str]| {
        let overrides: Vec<Override> = set.iter().copied().map(Override::set).collect();
        pipestep_scenario::order_file(text, &overrides)
    };
    let own = "[pipeline]\nschedule_file = \"mine.csv\"\nbackward_order = \"reverse\"\nranks = 0\n";
    assert_eq!(file(own, &[]).as_deref(), Some("mine.csv"), "right or not");
    assert_eq!(file(own, &["pipeline.schedule_file=other.csv"]).as_deref(), Some("other.csv"));
    assert_eq!(file(own, &["pipeline.schedule=1f1b"]), None, "the schedule was set later");
    assert_eq!(file("[pipeline]\nschedule = \"1f1b\"\n", &[]), None);
    assert_eq!(file("[pipeline", &[]), None);
}
