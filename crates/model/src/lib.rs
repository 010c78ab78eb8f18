//! Model architectures: layers to durations and bytes.
