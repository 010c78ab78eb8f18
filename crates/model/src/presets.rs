//! Public dense decoders by name.
//!
//! The dimensions are those of each model's published configuration. Adding one is one line of [`PRESETS`]
//! and one of the test below, which holds the parameter count against the published one.

use crate::Decoder;

/// Name; layers, hidden size, query heads, key-value heads, head width, feed-forward width, vocabulary;
/// whether the embedding is tied; whether queries and keys are normed.
type Row = (&'static str, [u64; 7], bool, bool);

const PRESETS: &[Row] = &[
    ("qwen3-0.6b", [28, 1024, 16, 8, 128, 3072, 151_936], true, true),
    ("qwen3-1.7b", [28, 2048, 16, 8, 128, 6144, 151_936], true, true),
    ("qwen3-4b", [36, 2560, 32, 8, 128, 9728, 151_936], true, true),
    ("qwen3-8b", [36, 4096, 32, 8, 128, 12_288, 151_936], false, true),
    ("qwen3-14b", [40, 5120, 40, 8, 128, 17_408, 151_936], false, true),
    ("qwen3-32b", [64, 5120, 64, 8, 128, 25_600, 151_936], false, true),
    ("llama-2-7b", [32, 4096, 32, 32, 128, 11_008, 32_000], false, false),
    ("llama-2-13b", [40, 5120, 40, 40, 128, 13_824, 32_000], false, false),
    ("llama-2-70b", [80, 8192, 64, 8, 128, 28_672, 32_000], false, false),
    ("llama-3.1-8b", [32, 4096, 32, 8, 128, 14_336, 128_256], false, false),
    ("llama-3.1-70b", [80, 8192, 64, 8, 128, 28_672, 128_256], false, false),
    ("llama-3.1-405b", [126, 16_384, 128, 8, 128, 53_248, 128_256], false, false),
];

/// The names that [`Decoder::preset`] knows, by family and size.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|row| row.0)
}

impl Decoder {
    /// The dimensions of a public model; `None` if the name is not one of [`preset_names`].
    pub fn preset(name: &str) -> Option<Self> {
        let &(_, dimensions, tied_embeddings, query_key_norm) = PRESETS.iter().find(|row| row.0 == name)?;
        let [
            layers,
            hidden_size,
            attention_heads,
            key_value_heads,
            head_dim,
            intermediate_size,
            vocabulary_size,
        ] = dimensions;
        Some(Self {
            layers,
            hidden_size,
            attention_heads,
            key_value_heads,
            head_dim,
            intermediate_size,
            vocabulary_size,
            tied_embeddings,
            query_key_norm,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_the_published_number_of_parameters() {
        let published = [
            ("qwen3-0.6b", 596_049_920),
            ("qwen3-1.7b", 1_720_574_976),
            ("qwen3-4b", 4_022_468_096),
            ("qwen3-8b", 8_190_735_360),
            ("qwen3-14b", 14_768_307_200),
            ("qwen3-32b", 32_762_123_264),
            ("llama-2-7b", 6_738_415_616),
            ("llama-2-13b", 13_015_864_320),
            ("llama-2-70b", 68_976_648_192),
            ("llama-3.1-8b", 8_030_261_248),
            ("llama-3.1-70b", 70_553_706_496),
            ("llama-3.1-405b", 405_853_388_800),
        ];
        assert!(preset_names().eq(published.iter().map(|&(name, _)| name)));
        for (name, parameters) in published {
            let model = Decoder::preset(name).expect("listed");
            model.check().expect("sound");
            assert_eq!(model.parameters().expect("fits"), parameters, "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_no_preset() {
        assert!(Decoder::preset("qwen3-8B").is_none());
    }
}
