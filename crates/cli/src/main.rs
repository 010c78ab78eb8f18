//! The `pipestep` binary.

fn main() {}
