//! One file under several schedules, as `compare` runs it.

use pipestep_scenario::{Diagnostics, Override, StepScenario};

use crate::{MINIMAL, parse};

fn under(text: &str, schedule: &str) -> Result<StepScenario, Diagnostics> {
    parse(text, "test.toml", &[Override::schedule(schedule)]).map(|scenario| scenario.step.expect("a step"))
}

#[test]
fn options_of_another_schedule_are_dropped() {
    let text = MINIMAL.replace("schedule = \"1f1b\"", "schedule = \"gpipe\"\nbackward_order = \"forward\"");
    let written = parse(&text, "test.toml", &[]).expect("legal").step.expect("a step");
    assert_eq!(written.order.options().get("backward_order"), Some(1));
    let other = under(&text, "1f1b").expect("legal");
    assert_eq!(other.order.options().get("backward_order"), None);
    // The same by --set and in a sweep.
    let set = parse(&text, "test.toml", &[Override::set("pipeline.schedule=1f1b")]);
    assert!(set.is_ok());
    // An option that is set for the wrong schedule is an error all the same.
    let both = ["pipeline.schedule=1f1b", "pipeline.backward_order=forward"].map(Override::set);
    assert!(parse(&text, "test.toml", &both).is_err());
}

#[test]
fn chunks_are_fitted_and_every_rank_keeps_its_layers() {
    let pipeline = "schedule = \"interleaved\"\nchunks = 2\nlayers = [4, 5, 6, 7, 1, 2, 3, 4]";
    let text = MINIMAL.replace("schedule = \"1f1b\"", pipeline);
    let fitted = under(&text, "1f1b").expect("legal");
    assert_eq!(fitted.inputs.shape().chunks(), 1);
    assert_eq!(fitted.layers, Some(vec![5, 7, 9, 11]));
    let kept = under(&text, "interleaved").expect("legal");
    assert_eq!(kept.layers, Some(vec![4, 5, 6, 7, 1, 2, 3, 4]));
    // Outside a comparison nobody asked for that.
    assert!(parse(&text, "test.toml", &[Override::set("pipeline.schedule=1f1b")]).is_err());
}

#[test]
fn every_schedule_fits_a_plain_file() {
    for schedule in pipestep_schedule::all() {
        let name = schedule.entry().name;
        let step = under(MINIMAL, name).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(step.order.name(), name);
    }
}
