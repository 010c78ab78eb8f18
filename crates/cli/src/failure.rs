//! What is said when a command fails, and with which exit code.

use std::io;
use std::process::ExitCode;

use pipestep_report::{COLUMNS, folded};
use pipestep_scenario::{Diagnostics, Style};

use crate::output::{self, Stream};

/// Columns before the text of a help: the number of a line, and `= help: `.
const MARGIN: usize = 14;

/// Says what went wrong and gives the exit code. A reader that went away (`pipestep ... | head`) is no failure,
/// and help that was asked for is none either.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    if let Some(usage) = error.downcast_ref::<clap::Error>() {
        return report_usage(usage);
    }
    let text = if let Some(diagnostics) = error.downcast_ref::<Diagnostics>() {
        let is_coloured = output::takes_colours(Stream::Error);
        let style = if is_coloured { Style::Coloured } else { Style::Plain };
        diagnostics.render(style, |text| fitted(text, COLUMNS - MARGIN))
    } else {
        let start = "error: ";
        let text = fitted(&format!("{error:#}"), COLUMNS - start.len());
        format!("{start}{}", text.replace('\n', &format!("\n{:1$}", "", start.len())))
    };
    output::complain(&text);
    ExitCode::from(2)
}

/// A text whose longer lines are folded.
fn fitted(text: &str, columns: usize) -> String {
    let fits = |line: &str| line.chars().count() <= columns;
    let lines =
        text.lines().map(|line| if fits(line) { vec![line.to_owned()] } else { folded(line, columns) });
    lines.collect::<Vec<_>>().concat().join("\n")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_lines_are_folded() {
        let text = "write\n\n  [time]\nand so on, for longer than that";
        assert_eq!(fitted(text, 12), "write\n\n  [time]\nand so on,\nfor longer\nthan that");
    }
}
