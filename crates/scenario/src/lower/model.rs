//! `[model]`: a decoder, the size of its micro-batches, and what it keeps.

use pipestep_engine::Bytes;
use pipestep_model::{Activations, Decoder, MicroBatch, ModelError, Recompute, Saved};

use super::{Broken, config};
use crate::diagnostic::{Diagnostic, Span};
use crate::files::Files;
use crate::format::{File, Model};
use crate::read::{Key, OneOrList, Positive, Problems, Word};

/// What is kept of a model, and where `[model]` stands; `None` if there is no model.
pub(super) type LoweredModel = Result<Option<(Activations, Span)>, Broken>;

/// A model as far as each part of a scenario needs it.
pub(crate) struct Models {
    /// Its dimensions.
    pub(super) decoder: Result<Option<Decoder>, Broken>,
    /// What a step keeps of it.
    pub(super) activations: LoweredModel,
}

/// The model of a file.
pub(crate) fn lower_model(file: &File, files: &mut Files<'_>, problems: &mut Problems) -> Models {
    let (model, span) = match &file.model {
        Key::Absent => return Models { decoder: Ok(None), activations: Ok(None) },
        Key::Broken => return Models { decoder: Err(Broken), activations: Err(Broken) },
        Key::Given(model, span) => (model, *span),
    };
    let decoder = decoder(model, span, files, problems);
    let activations = match file.pipeline {
        Key::Absent => Ok(None),
        _ => activations(model, decoder, span, problems).map(|activations| Some((activations, span))),
    };
    Models { decoder: decoder.map(Some), activations }
}

/// What a step keeps of a model.
fn activations(
    model: &Model,
    decoder: Result<Decoder, Broken>,
    span: Span,
    problems: &mut Problems,
) -> Result<Activations, Broken> {
    let policy = policy(model, span, problems);
    if model.sequence_length.is_absent() {
        let problem = Diagnostic::new(span, "`[model]` needs `sequence_length`");
        problems.push(problem.help("write `sequence_length = 128`"));
    }
    let sequences = model.micro_batch_size.or(Positive(1)).ok_or(Broken)?;
    let tokens = model.sequence_length.get().ok_or(Broken)?;
    let (saved, recompute) = policy?;
    let micro_batch = MicroBatch { sequences: sequences.0, tokens: tokens.0 };
    Ok(Activations { model: decoder?, micro_batch, saved, recompute })
}

/// The bytes that `[model] extra_saved` adds, if there is such a key.
pub(super) fn extra_saved(file: &File) -> &Key<OneOrList<Bytes>> {
    file.model.get().map_or(&Key::Absent, |model| &model.extra_saved)
}

fn policy(model: &Model, whole: Span, problems: &mut Problems) -> Result<(Saved, Recompute), Broken> {
    let saved = model.saved.or(Word(Saved::NonlinearFp32)).ok_or(Broken)?.0;
    let recompute = model.recompute.or(Word(Recompute::NONE)).ok_or(Broken)?.0;
    if recompute.products && saved == Saved::NonlinearFp32 {
        let span = model.recompute.span().unwrap_or(whole);
        let message =
            "`model.recompute`: the products are matrix inputs, which \"nonlinear-fp32\" does not keep";
        let problem = Diagnostic::new(span, message)
            .related(model.saved.span(), "what is kept")
            .help("write `saved = \"gemm-inputs-fp32\"`, or leave the products out");
        problems.push(problem);
        return Err(Broken);
    }
    Ok((saved, recompute))
}

/// A preset or a configuration with the written dimensions put in, or the written dimensions alone.
fn decoder(
    model: &Model,
    whole: Span,
    files: &mut Files<'_>,
    problems: &mut Problems,
) -> Result<Decoder, Broken> {
    let decoder = match (&model.preset, &model.config) {
        (Key::Broken, _) | (_, Key::Broken) => return Err(Broken),
        (Key::Given(_, preset_at), Key::Given(_, config_at)) => {
            let message = "`model.config` and `model.preset` both say which model it is";
            let problem = Diagnostic::new(*config_at, message).related(Some(*preset_at), "the preset");
            problems.push(problem.help("leave one of them out"));
            return Err(Broken);
        }
        (Key::Given(name, _), Key::Absent) => with_written(model, Decoder::preset(name.0).ok_or(Broken)?)?,
        (Key::Absent, Key::Given(name, span)) => {
            with_written(model, config::read(name, *span, files, problems)?)?
        }
        (Key::Absent, Key::Absent) => from_dimensions(model, whole, problems)?,
    };
    decoder.check().map_err(|error| {
        problems.push(refused(model, whole, &error));
        Broken
    })?;
    Ok(decoder)
}

/// A known decoder with the written dimensions put in.
fn with_written(model: &Model, known: Decoder) -> Result<Decoder, Broken> {
    let number =
        |key: &Key<Positive>, default| key.or(Positive(default)).map(|number| number.0).ok_or(Broken);
    Ok(Decoder {
        layers: number(&model.layers, known.layers)?,
        hidden_size: number(&model.hidden_size, known.hidden_size)?,
        attention_heads: number(&model.attention_heads, known.attention_heads)?,
        key_value_heads: number(&model.key_value_heads, known.key_value_heads)?,
        head_dim: number(&model.head_dim, known.head_dim)?,
        intermediate_size: number(&model.intermediate_size, known.intermediate_size)?,
        vocabulary_size: number(&model.vocabulary_size, known.vocabulary_size)?,
        tied_embeddings: model.tied_embeddings.or(known.tied_embeddings).ok_or(Broken)?,
        query_key_norm: model.query_key_norm.or(known.query_key_norm).ok_or(Broken)?,
    })
}

fn from_dimensions(model: &Model, whole: Span, problems: &mut Problems) -> Result<Decoder, Broken> {
    let needed = [
        ("layers", &model.layers),
        ("hidden_size", &model.hidden_size),
        ("attention_heads", &model.attention_heads),
        ("intermediate_size", &model.intermediate_size),
        ("vocabulary_size", &model.vocabulary_size),
    ];
    let missing: Vec<String> =
        needed.iter().filter(|(_, key)| key.is_absent()).map(|(name, _)| format!("`{name}`")).collect();
    if !missing.is_empty() {
        let message = match missing.len() {
            5 => "`[model]` needs a `preset`, a `config` or the dimensions of a model".to_owned(),
            _ => format!("`[model]` without a `preset` or a `config` needs {} too", missing.join(", ")),
        };
        problems.push(Diagnostic::new(whole, message).help("write `preset = \"qwen3-8b\"`"));
        return Err(Broken);
    }
    let given = needed.map(|(_, key)| key.get().map(|number| number.0));
    let [
        Some(layers),
        Some(hidden_size),
        Some(attention_heads),
        Some(intermediate_size),
        Some(vocabulary_size),
    ] = given
    else {
        return Err(Broken);
    };
    let key_value_heads = model.key_value_heads.or(Positive(attention_heads)).ok_or(Broken)?.0;
    Ok(Decoder {
        layers,
        hidden_size,
        attention_heads,
        key_value_heads,
        head_dim: head_dim(model, hidden_size, attention_heads, problems)?,
        intermediate_size,
        vocabulary_size,
        tied_embeddings: model.tied_embeddings.or(false).ok_or(Broken)?,
        query_key_norm: model.query_key_norm.or(false).ok_or(Broken)?,
    })
}

fn head_dim(model: &Model, hidden: u64, heads: u64, problems: &mut Problems) -> Result<u64, Broken> {
    match &model.head_dim {
        Key::Broken => Err(Broken),
        Key::Given(Positive(width), _) => Ok(*width),
        Key::Absent if hidden.is_multiple_of(heads) => Ok(hidden / heads),
        Key::Absent => {
            let span = model.hidden_size.span().unwrap_or(Span::FILE);
            let message = format!("{heads} attention heads do not divide the hidden size {hidden} evenly");
            let problem = Diagnostic::new(span, message).related(model.attention_heads.span(), "the heads");
            problems.push(problem.help("write `head_dim = 128`"));
            Err(Broken)
        }
    }
}

fn refused(model: &Model, whole: Span, error: &ModelError) -> Diagnostic {
    let key = match error {
        ModelError::UnevenHeads { .. } => model.key_value_heads.span().or(model.attention_heads.span()),
        ModelError::Zero { .. } | ModelError::TooLarge { .. } => None,
    };
    Diagnostic::new(key.unwrap_or(whole), error.to_string())
}
