//! Named storage: how fast the tiers of a DGX SuperPOD read and write.
//!
//! From NVIDIA's DGX SuperPOD (H100) reference architecture, table 6. One scalable unit is 32 systems, 256
//! GPUs. The textbook example's 7 and 20 GB/s are the write rates of one unit, Good and Better.

use pipestep_engine::Rate;

/// A storage tier by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoragePreset {
    /// What a scenario writes, such as `"superpod-good-1su"`.
    pub name: &'static str,
    /// What it stands for.
    pub description: &'static str,
    /// Aggregate read rate.
    pub read: Rate,
    /// Aggregate write rate.
    pub write: Rate,
}

/// All presets, in the order of the source's table.
pub const STORAGE_PRESETS: [StoragePreset; 9] = [
    preset("superpod-good-node", "DGX SuperPOD, Good, a single node", 4, 2),
    preset("superpod-better-node", "DGX SuperPOD, Better, a single node", 8, 4),
    preset("superpod-best-node", "DGX SuperPOD, Best, a single node", 40, 20),
    preset("superpod-good-1su", "DGX SuperPOD, Good, one unit", 15, 7),
    preset("superpod-better-1su", "DGX SuperPOD, Better, one unit", 40, 20),
    preset("superpod-best-1su", "DGX SuperPOD, Best, one unit", 125, 62),
    preset("superpod-good-4su", "DGX SuperPOD, Good, four units", 60, 30),
    preset("superpod-better-4su", "DGX SuperPOD, Better, four units", 160, 80),
    preset("superpod-best-4su", "DGX SuperPOD, Best, four units", 500, 250),
];

/// The preset of a name.
pub fn storage_preset(name: &str) -> Option<&'static StoragePreset> {
    STORAGE_PRESETS.iter().find(|preset| preset.name == name)
}

const fn preset(name: &'static str, description: &'static str, read: u64, write: u64) -> StoragePreset {
    StoragePreset { name, description, read: gigabytes_a_second(read), write: gigabytes_a_second(write) }
}

const fn gigabytes_a_second(count: u64) -> Rate {
    match Rate::per_second(count * 1_000_000_000) {
        Some(rate) => rate,
        None => panic!("a storage preset has a rate of zero"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_the_textbook_rates_are_there() {
        for preset in &STORAGE_PRESETS {
            assert_eq!(storage_preset(preset.name), Some(preset));
        }
        let write = |name| storage_preset(name).unwrap().write.per_second_f64() / 1e9;
        assert!((write("superpod-good-1su") - 7.0).abs() < 1e-12);
        assert!((write("superpod-better-1su") - 20.0).abs() < 1e-12);
    }
}
