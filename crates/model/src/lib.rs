//! Where byte counts come from: a decoder's dimensions to parameters, saved activations and messages, and to
//! floating-point operations.
//!
//! **One formula per component.** A [`Decoder`] is a list of dimensions. What a pipeline stage keeps for its
//! backward is the sum of named [`Component`]s, each one line of arithmetic over those dimensions, so a reader
//! can hold every term against the layer it belongs to.
//!
//! ```
//! use pipestep_model::{Activations, Decoder, MicroBatch, Part, Recompute, Saved};
//!
//! let model = Decoder::preset("qwen3-8b").expect("a preset");
//! assert_eq!(model.parameters()?, 8_190_735_360);
//!
//! // Nine of its 36 layers, one sequence of 128 tokens, as in the headline scenario.
//! let activations = Activations {
//!     model,
//!     micro_batch: MicroBatch { sequences: 1, tokens: 128 },
//!     saved: Saved::NonlinearFp32,
//!     recompute: Recompute::NONE,
//! };
//! assert_eq!(activations.saved_bytes(Part::layers(9))?, 240_915_456);
//! # Ok::<(), pipestep_model::ModelError>(())
//! ```
//!
//! Invariants: all counts are exact integers and an overflow is an error, never a wrap.
//!
//! Deliberately absent: time, ranks, schedules, files; serialisation.

mod activations;
mod arithmetic;
mod decoder;
mod flops;
mod presets;

pub use activations::{Activations, Component, MicroBatch, Recompute, Saved};
pub use arithmetic::ModelError;
pub use decoder::{Decoder, GRADIENT_BYTES, OPTIMIZER_BYTES, Part, WEIGHT_BYTES};
pub use presets::preset_names;
