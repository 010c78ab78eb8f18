//! A training job: checkpoints, storage, faults, stragglers, input supply and useful progress.
