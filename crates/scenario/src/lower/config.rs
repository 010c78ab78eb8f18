//! `[model] config`: the dimensions of a decoder from a Hugging Face `config.json`.
//!
//! Supported are the model types whose layers are the ones that `pipestep-model` counts: grouped-query
//! attention and a gated feed-forward part, without biases. Others are refused with the reason, since a count
//! that is a little wrong is worse than none.

use pipestep_model::Decoder;
use serde_json::{Map, Value};

use super::Broken;
use crate::diagnostic::{Diagnostic, Span};
use crate::files::{Files, Opened};
use crate::read::Problems;

/// The model types that are read, and whether they norm queries and keys.
const SUPPORTED: [(&str, bool); 4] = [("llama", false), ("mistral", false), ("phi3", false), ("qwen3", true)];

/// Well-known model types that are not, with the reason.
const REFUSED: [(&str, &str); 10] = [
    ("qwen2", "it has biases in its attention, which are not counted"),
    ("gpt2", "its feed-forward part is not gated and it has biases"),
    ("gpt_neox", "its feed-forward part is not gated and it has biases"),
    ("gemma2", "it has further norms in each layer"),
    ("gemma3_text", "it has further norms in each layer"),
    ("mixtral", "mixtures of experts are not counted"),
    ("qwen2_moe", "mixtures of experts are not counted"),
    ("qwen3_moe", "mixtures of experts are not counted"),
    ("deepseek_v3", "mixtures of experts and latent attention are not counted"),
    ("gpt_oss", "mixtures of experts are not counted"),
];

/// The decoder of the file that the value at `span` names.
pub(super) fn read(
    name: &str,
    span: Span,
    files: &mut Files<'_>,
    problems: &mut Problems,
) -> Result<Decoder, Broken> {
    let opened = files.open(name, "model.config", span, problems).ok_or(Broken)?;
    let value: Value = match serde_json::from_str(&opened.text) {
        Ok(value) => value,
        Err(error) => {
            problems.push(invalid_json(&opened, &error));
            return Err(Broken);
        }
    };
    let Value::Object(keys) = value else {
        let message = format!("`model.config`: expected a table of keys in `{name}`, found another value");
        problems.push(Diagnostic::new(span, message));
        return Err(Broken);
    };
    let mut config = Config { keys, name, span, problems };
    let norm = config.supported()?;
    config.refuse_variants()?;
    config.decoder(norm)
}

/// A syntax error, at its place in the file.
fn invalid_json(opened: &Opened, error: &serde_json::Error) -> Diagnostic {
    let before = error.line().saturating_sub(1);
    let line: usize = opened.text.split_inclusive('\n').take(before).map(str::len).sum();
    let at = (line + error.column().saturating_sub(1)).min(opened.text.len());
    let text = error.to_string();
    // The place is shown; its words are not needed.
    let reason = text.split(" at line ").next().unwrap_or(&text);
    Diagnostic::new(opened.span(at, at + 1), format!("invalid JSON: {reason}"))
}

/// A configuration that is being read.
struct Config<'c> {
    keys: Map<String, Value>,
    name: &'c str,
    span: Span,
    problems: &'c mut Problems,
}

impl Config<'_> {
    fn problem(&mut self, message: &str, help: &str) -> Broken {
        let message = format!("`model.config`: {message} in `{}`", self.name);
        self.problems.push(Diagnostic::new(self.span, message).help(help));
        Broken
    }

    /// Whether the model type norms queries and keys, if it is supported.
    fn supported(&mut self) -> Result<bool, Broken> {
        let types: Vec<String> = SUPPORTED.iter().map(|(name, _)| format!("`{name}`")).collect();
        let supported = format!("supported are {}", types.join(", "));
        let Some(kind) = self.keys.get("model_type").and_then(Value::as_str).map(str::to_owned) else {
            return Err(self.problem("there is no `model_type`", &supported));
        };
        if let Some(&(_, norm)) = SUPPORTED.iter().find(|(name, _)| *name == kind) {
            return Ok(norm);
        }
        let reason = REFUSED.iter().find(|(name, _)| *name == kind);
        let reason = reason.map_or(String::new(), |(_, reason)| format!("{reason}; "));
        let message = format!("the model type `{kind}` is not supported, found");
        let help = format!("{reason}{supported}; or write the dimensions in `[model]`");
        Err(self.problem(&message, &help))
    }

    /// Variants of supported types that have parameters which are not counted.
    fn refuse_variants(&mut self) -> Result<(), Broken> {
        let mut result = Ok(());
        for key in ["attention_bias", "mlp_bias"] {
            if self.keys.get(key) == Some(&Value::Bool(true)) {
                let message = format!("biases (`{key}`) are not counted, and are on");
                result = Err(self.problem(&message, "write the dimensions in `[model]` to leave them out"));
            }
        }
        result
    }

    fn decoder(&mut self, query_key_norm: bool) -> Result<Decoder, Broken> {
        let layers = self.needed("num_hidden_layers");
        let hidden = self.needed("hidden_size");
        let heads = self.needed("num_attention_heads");
        let intermediate = self.needed("intermediate_size");
        let vocabulary = self.needed("vocab_size");
        let key_value_heads = self.number("num_key_value_heads");
        let head_dim = self.number("head_dim");
        let (hidden_size, attention_heads) = (hidden?, heads?);
        let head_dim = match head_dim? {
            Some(width) => width,
            None if hidden_size.is_multiple_of(attention_heads) => hidden_size / attention_heads,
            None => {
                let message =
                    format!("{attention_heads} attention heads do not divide the hidden size {hidden_size}");
                return Err(self.problem(&message, "write `head_dim = 128` in `[model]`"));
            }
        };
        Ok(Decoder {
            layers: layers?,
            hidden_size,
            attention_heads,
            key_value_heads: key_value_heads?.unwrap_or(attention_heads),
            head_dim,
            intermediate_size: intermediate?,
            vocabulary_size: vocabulary?,
            tied_embeddings: self.keys.get("tie_word_embeddings") == Some(&Value::Bool(true)),
            query_key_norm,
        })
    }

    fn needed(&mut self, key: &str) -> Result<u64, Broken> {
        match self.number(key)? {
            Some(number) => Ok(number),
            None => Err(self.problem(&format!("there is no `{key}`"), "is it the configuration of a model?")),
        }
    }

    /// A positive whole number; `None` where it is left out or null.
    fn number(&mut self, key: &str) -> Result<Option<u64>, Broken> {
        let value = match self.keys.get(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(value) => value,
        };
        if let Some(number) = value.as_u64().filter(|&number| number > 0) {
            return Ok(Some(number));
        }
        let message = format!("expected a whole number of at least 1 as `{key}`, found `{value}`");
        Err(self.problem(&message, "compare it with the model's published configuration"))
    }
}
