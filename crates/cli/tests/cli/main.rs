//! The `pipestep` binary from outside: every documented command, every output, and the docs that are generated.

// With Parquet the directory of a sweep has a file more than the documentation lists.
#[cfg(not(feature = "parquet"))]
mod documented;
mod help;
mod kill;
mod outputs;
#[cfg(feature = "parquet")]
mod parquet;
// The bytes of a picture depend on the mathematical library.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod pictures;
mod pytorch;
mod ray;
mod reference;
mod reproduce;
mod scatter;
mod scenarios;
mod search;
mod sweep;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The binary under test.
const PIPESTEP: &str = env!("CARGO_BIN_EXE_pipestep");

/// The root of the repository.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the package lies in the repository")
}

/// The binary with arguments, in the root of the repository.
fn pipestep(arguments: &[&str]) -> Command {
    let mut command = Command::new(PIPESTEP);
    command.args(arguments).current_dir(root());
    command
}

/// What was said, in one line: where it is folded depends on how long the names in it are.
fn one_line(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the binary prints to standard output; it must end with exit code 0.
fn printed(arguments: &[&str]) -> String {
    let output = pipestep(arguments).output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("it prints UTF-8")
}
