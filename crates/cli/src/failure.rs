//! What is said when a command fails, and with which exit code.

use std::io;
use std::process::ExitCode;

use pipestep_scenario::{Diagnostics, Style};

use crate::output::{self, Stream};

/// Says what went wrong and gives the exit code. A reader that went away (`pipestep ... | head`) is no failure,
/// and help that was asked for is none either.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    if let Some(usage) = error.downcast_ref::<clap::Error>() {
        return report_usage(usage);
    }
    let text = match error.downcast_ref::<Diagnostics>() {
        Some(diagnostics) => diagnostics.render(if output::takes_colours(Stream::Error) {
            Style::Coloured
        } else {
            Style::Plain
        }),
        None => format!("error: {error:#}"),
    };
    output::complain(&text);
    ExitCode::from(2)
}

/// A wrong command line, or help and version, which clap gives as errors too.
fn report_usage(usage: &clap::Error) -> ExitCode {
    let stream = if usage.use_stderr() { Stream::Error } else { Stream::Output };
    let rendered = usage.render();
    let text = if output::takes_colours(stream) { rendered.ansi().to_string() } else { rendered.to_string() };
    match stream {
        Stream::Error => {
            output::complain(text.trim_end());
            ExitCode::from(2)
        }
        Stream::Output => match output::print(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report(&error),
        },
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.into_iter().any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
