//! One cell of a schedule file, as text and as a value.

use std::fmt;

use crate::{Kind, MicroBatch, Op, Stage};

/// What a rank does with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Message {
    /// `SEND_F`: post the send of an activation to the next stage.
    SendForward,
    /// `RECV_F`: post the receive of an activation from the stage before.
    ReceiveForward,
    /// `SEND_B`: post the send of a gradient to the stage before.
    SendBackward,
    /// `RECV_B`: post the receive of a gradient from the next stage.
    ReceiveBackward,
    /// `WAIT_SEND_F`: wait until that send has completed.
    WaitSendForward,
    /// `WAIT_SEND_B`: wait until that send has completed.
    WaitSendBackward,
}

/// What a rank does with the parameters and gradients of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parameters {
    /// `UNSHARD`: gather the stage's parameters.
    Unshard,
    /// `RESHARD`: drop what was gathered.
    Reshard,
    /// `REDUCE_GRAD`: start the reduction of the stage's gradients.
    ReduceGradient,
    /// `WAIT_REDUCE_GRAD`: wait for that reduction.
    WaitReduceGradient,
}

/// What a cell asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Run(Op),
    /// Operations of one bracket, which start together.
    Bracket(Vec<Op>),
    Message(Message, Stage, MicroBatch),
    Parameters(Parameters, Stage),
}

/// A name that stands after the stage.
#[derive(Clone, Copy)]
enum Name {
    Kind(Kind),
    Message(Message),
    Parameters(Parameters),
}

/// PyTorch's names; of two that match, the longer one counts, so the longer ones come first.
const NAMES: [(&str, Name); 14] = [
    ("WAIT_REDUCE_GRAD", Name::Parameters(Parameters::WaitReduceGradient)),
    ("REDUCE_GRAD", Name::Parameters(Parameters::ReduceGradient)),
    ("WAIT_SEND_F", Name::Message(Message::WaitSendForward)),
    ("WAIT_SEND_B", Name::Message(Message::WaitSendBackward)),
    ("UNSHARD", Name::Parameters(Parameters::Unshard)),
    ("RESHARD", Name::Parameters(Parameters::Reshard)),
    ("SEND_F", Name::Message(Message::SendForward)),
    ("SEND_B", Name::Message(Message::SendBackward)),
    ("RECV_F", Name::Message(Message::ReceiveForward)),
    ("RECV_B", Name::Message(Message::ReceiveBackward)),
    ("F", Name::Kind(Kind::Forward)),
    ("B", Name::Kind(Kind::Backward)),
    ("I", Name::Kind(Kind::InputGradient)),
    ("W", Name::Kind(Kind::WeightGradient)),
];

/// The name after a bracket.
pub(super) const OVERLAP: &str = "OVERLAP_F_B";

impl Message {
    /// Every one of them.
    pub const ALL: [Self; 6] = [
        Self::SendForward,
        Self::ReceiveForward,
        Self::SendBackward,
        Self::ReceiveBackward,
        Self::WaitSendForward,
        Self::WaitSendBackward,
    ];

    /// PyTorch's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SendForward => "SEND_F",
            Self::ReceiveForward => "RECV_F",
            Self::SendBackward => "SEND_B",
            Self::ReceiveBackward => "RECV_B",
            Self::WaitSendForward => "WAIT_SEND_F",
            Self::WaitSendBackward => "WAIT_SEND_B",
        }
    }

    /// Whether it concerns an activation, and not a gradient.
    pub const fn is_forward(self) -> bool {
        matches!(self, Self::SendForward | Self::ReceiveForward | Self::WaitSendForward)
    }
}

impl Parameters {
    /// PyTorch's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unshard => "UNSHARD",
            Self::Reshard => "RESHARD",
            Self::ReduceGradient => "REDUCE_GRAD",
            Self::WaitReduceGradient => "WAIT_REDUCE_GRAD",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(op) => op.fmt(f),
            Self::Bracket(ops) => {
                f.write_str("(")?;
                for (index, op) in ops.iter().enumerate() {
                    write!(f, "{}{op}", if index == 0 { "" } else { ";" })?;
                }
                write!(f, "){OVERLAP}")
            }
            Self::Message(message, stage, micro_batch) => {
                write!(f, "{stage}{}{micro_batch}", message.name())
            }
            Self::Parameters(parameters, stage) => write!(f, "{stage}{}", parameters.name()),
        }
    }
}

impl Action {
    /// Reads a cell without the blanks round it. What follows a complete action is ignored, as by PyTorch.
    ///
    /// # Errors
    /// Why it is no action, to be put after the cell.
    pub(super) fn parse(cell: &str) -> Result<Self, String> {
        match cell.strip_prefix('(') {
            Some(rest) => bracket(rest),
            None => single(cell),
        }
    }
}

fn bracket(rest: &str) -> Result<Action, String> {
    let Some((inside, name)) = rest.split_once(')') else {
        return Err("has no closing bracket".into());
    };
    if name != OVERLAP && !NAMES.iter().any(|&(known, _)| known == name) {
        return Err(format!("needs `{OVERLAP}` after the bracket, found `{name}`"));
    }
    if inside.trim().is_empty() {
        return Err("has no parts".into());
    }
    let part = |text: &str| match single(text.trim()) {
        Ok(Action::Run(op)) => Ok(op),
        Ok(_) => Err(format!("holds `{}`, but only F, B, I and W run in a bracket", text.trim())),
        Err(reason) => Err(format!("holds `{}`, which {reason}", text.trim())),
    };
    inside.split(';').map(part).collect::<Result<_, _>>().map(Action::Bracket)
}

fn single(cell: &str) -> Result<Action, String> {
    let (stage, rest) = digits(cell);
    if stage.is_empty() {
        return Err("is no action: expected a stage, a name and a micro-batch, as in `2F0`".into());
    }
    let stage = stage.parse::<u16>().map_err(|_| "names a stage past 65535")?;
    let stage = Stage(stage);
    let Some(&(name, meaning)) = NAMES.iter().find(|(name, _)| rest.starts_with(name)) else {
        let upper = rest.to_uppercase();
        let known = NAMES.iter().find(|(name, _)| upper.starts_with(name));
        return Err(match known {
            Some((name, _)) if rest != upper => format!("is no action: write `{name}` in upper case"),
            _ if rest.starts_with(OVERLAP) => format!("is no action: `{OVERLAP}` stands after a bracket"),
            _ => "is no action: expected F, B, I, W, or a name of a message, after the stage".into(),
        });
    };
    if let Name::Parameters(parameters) = meaning {
        return Ok(Action::Parameters(parameters, stage));
    }
    let (micro_batch, _) = digits(&rest[name.len()..]);
    if micro_batch.is_empty() {
        return Err("has no micro-batch".into());
    }
    let micro_batch = micro_batch.parse::<u32>().map_err(|_| "names a micro-batch past 4294967295")?;
    let micro_batch = MicroBatch(micro_batch);
    Ok(match meaning {
        Name::Kind(kind) => Action::Run(Op::new(kind, stage, micro_batch)),
        Name::Message(message) => Action::Message(message, stage, micro_batch),
        Name::Parameters(parameters) => Action::Parameters(parameters, stage),
    })
}

/// The digits at the start of a text, and what follows.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_read_as_they_are_written() {
        for text in [
            "0F0",
            "12B3",
            "2I1",
            "3W44",
            "(0F3;3B1)OVERLAP_F_B",
            "1SEND_F0",
            "2RECV_B7",
            "0WAIT_SEND_F1",
            "4WAIT_SEND_B2",
            "0UNSHARD",
            "0RESHARD",
            "3REDUCE_GRAD",
            "3WAIT_REDUCE_GRAD",
        ] {
            assert_eq!(Action::parse(text).map(|action| action.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_is_forgiven_is_read_and_what_is_not_says_why() {
        for (text, meaning) in
            [("00F00", "0F0"), ("0F0xyz", "0F0"), ("( 0F1 ; 1B0 )F", "(0F1;1B0)OVERLAP_F_B")]
        {
            assert_eq!(Action::parse(text).map(|action| action.to_string()), Ok(meaning.to_owned()));
        }
        for (text, reason) in [
            ("0f0", "upper case"),
            ("0F", "no micro-batch"),
            ("F0", "expected a stage"),
            ("0OVERLAP_F_B", "after a bracket"),
            ("()OVERLAP_F_B", "no parts"),
            ("(0F0;1SEND_F0)OVERLAP_F_B", "only F, B, I and W"),
            ("(0F0;1B0", "closing bracket"),
            ("(0F0;1B0)X", "needs `OVERLAP_F_B`"),
            ("70000F0", "past 65535"),
            ("0F99999999999", "past 4294967295"),
        ] {
            let error = Action::parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
