//! Models from Hugging Face configurations.

use pipestep_engine::Bytes;

use crate::{MINIMAL, legal, step};

/// Saved bytes by stage of a model.
fn saved(model: &str) -> Vec<Bytes> {
    let text = format!("{MINIMAL}[model]\nsequence_length = 128\n{model}");
    step(&text, &[]).inputs.costs().stages.iter().map(|stage| stage.saved).collect()
}

#[test]
fn a_configuration_is_the_preset_of_the_same_model() {
    for (config, preset) in [("llama-8b.json", "llama-3.1-8b"), ("qwen3-tied.json", "qwen3-0.6b")] {
        let config = format!("config = \"{config}\"");
        let preset = format!("preset = \"{preset}\"");
        assert_eq!(saved(&config), saved(&preset));
        // The parameters, by what they weigh in a checkpoint.
        let size = |model: &str| {
            let text = format!(
                "[job]\nwork = \"1 s\"\n[checkpoint]\nevery = \"1 s\"\nwrite_time = \"1 s\"\n[model]\n{model}"
            );
            let job = legal(&text, &[]).job.expect("it has a job");
            job.inputs(None).expect("legal").checkpoint.expect("there is one").size.expect("the model's")
        };
        assert_eq!(size(&config), size(&preset));
    }
}

#[test]
fn written_dimensions_win() {
    let four = saved("config = \"llama-8b.json\"\nlayers = 4");
    assert_eq!(four, saved("preset = \"llama-3.1-8b\"\nlayers = 4"));
    assert_ne!(four, saved("config = \"llama-8b.json\""));
}
