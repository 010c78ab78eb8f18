//! Published causes of failures, with their shares.

use crate::Cause;

/// Interruptions of a published run, by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailurePreset {
    /// What a scenario writes.
    pub name: &'static str,
    /// Where it is from.
    pub source: &'static str,
    /// Devices in the run.
    pub devices: u32,
    /// Days that it lasted.
    pub days: u32,
    /// Cause, count, and whether a machine was lost.
    pub causes: &'static [(&'static str, u32, bool)],
}

/// Llama 3 405B: 419 unexpected interruptions in 54 days on 16,384 H100 (table 5 of arXiv 2407.21783).
///
/// The counts are used, not the printed percentages, which contradict them (148 of 419 are 35.3 %, not 30.1).
/// Whether a machine was lost is our reading: hardware loses one; software, network and the dependencies
/// do not.
pub const LLAMA3: FailurePreset = FailurePreset {
    name: "llama3",
    source: "The Llama 3 Herd of Models, table 5 (arXiv 2407.21783)",
    devices: 16_384,
    days: 54,
    causes: &[
        ("Faulty GPU", 148, true),
        ("GPU HBM3 memory", 72, true),
        ("Software bug", 54, false),
        ("Network switch or cable", 35, false),
        ("Host maintenance (unplanned)", 32, true),
        ("GPU SRAM memory", 19, true),
        ("GPU system processor", 17, true),
        ("NIC", 7, true),
        ("NCCL watchdog timeout", 7, false),
        ("Silent data corruption", 6, true),
        ("GPU thermal interface and sensor", 6, true),
        ("SSD", 3, true),
        ("Power supply", 3, true),
        ("Server chassis", 2, true),
        ("IO expansion board", 2, true),
        ("Dependency", 2, false),
        ("CPU", 2, true),
        ("System memory", 2, true),
    ],
};

/// All presets.
pub const FAILURE_PRESETS: [&FailurePreset; 1] = [&LLAMA3];

impl FailurePreset {
    /// The preset of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FAILURE_PRESETS.into_iter().find(|preset| preset.name == name)
    }

    /// Interruptions in all.
    pub fn total(&self) -> u32 {
        self.causes.iter().map(|&(_, count, _)| count).sum()
    }

    /// Mean seconds between interruptions of the whole job.
    pub fn job_mtbf_seconds(&self) -> f64 {
        f64::from(self.days) * 86_400.0 / f64::from(self.total())
    }

    /// Mean seconds between the failures of one device, all interruptions put down to devices.
    pub fn device_mtbf_seconds(&self) -> f64 {
        self.job_mtbf_seconds() * f64::from(self.devices)
    }

    /// The causes of a random source.
    pub fn causes(&self) -> Vec<Cause> {
        let cause = |&(name, weight, loses_machine): &(&str, u32, bool)| Cause {
            name: name.to_owned(),
            weight,
            near_survives: None,
            loses_machine,
            downtime: None,
        };
        self.causes.iter().map(cause).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_llama_3_are_those_of_its_text() {
        assert_eq!(LLAMA3.total(), 419);
        assert!((LLAMA3.job_mtbf_seconds() - 11_135.083_532_2).abs() < 1e-6);
        assert_eq!(FailurePreset::named("llama3").unwrap().causes().len(), 18);
    }
}
