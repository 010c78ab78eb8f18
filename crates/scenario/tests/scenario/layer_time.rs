//! Lengths by layer: sums over stages, the ends of the model, and what is refused.

use pipestep_scenario::Override;
use pipestep_step::StageCost;

use crate::{legal, parse, step};

const BY_LAYER: &str = r#"
    [pipeline]
    ranks = 2
    micro_batches = 4
    schedule = "interleaved"
    chunks = 2
    layers = [1, 2, 0, 3]
    [time]
    layer_forward = ["1 ms", "2 ms", "4 ms", "8 ms", "16 ms", "32 ms"]
    layer_backward = "10 ms"
    embedding_forward = "100 ms"
    head_forward = "200 ms"
    head_backward = "7 ms"
"#;

fn millis(text: &str, sets: &[&str], of: fn(&StageCost) -> pipestep_engine::Duration) -> Vec<u64> {
    let step = step(text, sets);
    step.inputs.costs().stages.iter().map(|stage| of(stage).as_nanos() / 1_000_000).collect()
}

#[test]
fn a_stage_takes_as_long_as_its_layers_and_ends() {
    assert_eq!(millis(BY_LAYER, &[], |stage| stage.forward), [101, 6, 0, 256]);
    assert_eq!(millis(BY_LAYER, &[], |stage| stage.backward), [10, 20, 0, 37]);
    assert_eq!(
        millis(BY_LAYER, &["pipeline.layers=[2, 2, 1, 1]"], |stage| stage.forward),
        [103, 12, 16, 232]
    );
}

#[test]
fn what_each_layer_costs_is_told_for_balancing() {
    let costs = step(BY_LAYER, &[]).layer_costs.expect("lengths are by layer");
    let millis = |length: &u64| length / 1_000_000;
    assert_eq!(costs.layers.iter().map(millis).collect::<Vec<_>>(), [11, 12, 14, 18, 26, 42]);
    assert_eq!((millis(&costs.embedding), millis(&costs.head)), (100, 207));
    assert!(step(crate::MINIMAL, &[]).layer_costs.is_none());
}

#[test]
fn the_weight_gradient_is_a_share_of_the_sum() {
    let third = ["time.weight_gradient_fraction=0.3"];
    assert_eq!(millis(BY_LAYER, &third, |stage| stage.weight_gradient), [3, 6, 0, 11]);
    assert_eq!(millis(BY_LAYER, &third, |stage| stage.input_gradient), [7, 14, 0, 25]);
}

#[test]
fn each_copy_of_the_model_has_all_layers() {
    let sets = ["pipeline.schedule=dualpipe", "pipeline.chunks=1", "pipeline.layers=[2, 4]"];
    assert_eq!(millis(BY_LAYER, &sets, |stage| stage.forward), [103, 260, 103, 260]);
}

#[test]
fn a_slow_rank_is_slow_in_all_its_stages() {
    let slow = ["jitter.rank_factor=[1, 2]"];
    assert_eq!(millis(BY_LAYER, &slow, |stage| stage.backward), [10, 40, 0, 74]);
}

#[test]
fn lengths_are_given_in_one_way_and_fit_the_layers() {
    let check = |sets: &[&str], said: &str| {
        let sets: Vec<Override> = sets.iter().map(|&set| Override::set(set)).collect();
        let errors = parse(BY_LAYER, "test.toml", &sets).expect_err(said).to_string();
        assert!(errors.contains(said), "{errors}");
    };
    check(&["time.forward=10 ms"], "`time.forward` is for a whole rank");
    check(&["time.layer_forward=[\"1 ms\"]"], "expected 6 values, one a layer, found 1");
    check(&["pipeline.layers=[1, 1, 1, 1]"], "expected 4 values, one a layer, found 6");
    let without = BY_LAYER.replace("layers = [1, 2, 0, 3]", "");
    let errors = parse(&without, "test.toml", &[]).expect_err("how many layers?").to_string();
    assert!(errors.contains("it is not known how many layers there are"), "{errors}");
    let without = BY_LAYER.replace("layer_backward = \"10 ms\"", "");
    let errors = parse(&without, "test.toml", &[]).expect_err("no backward").to_string();
    assert!(errors.contains("`[time]` needs `layer_backward`"), "{errors}");
}

#[test]
fn a_search_is_limited_by_its_table() {
    let text = format!(
        "{BY_LAYER}\n[search]\nschedules = [\"1f1b\", \"zb-h1\"]\nmost_chunks = 3\nranks = [2]\nrecompute = [\"silu\"]"
    );
    let search = legal(&text, &[]).search;
    let names: Vec<&str> = search.schedules.iter().flatten().map(|schedule| schedule.entry().name).collect();
    assert_eq!((names, search.most_chunks, search.ranks), (vec!["1f1b", "zb-h1"], Some(3), Some(vec![2])));
    assert_eq!((search.recompute, search.micro_batch_sizes), (Some(vec!["silu"]), None));
}
