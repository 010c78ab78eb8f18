//! What surrounds the stages of `[rl]`: weight synchronisation, memory, faults, prices.

use pipestep_engine::{Bytes, Duration, Rate, Time};
use pipestep_model::WEIGHT_BYTES;
use pipestep_rl::{
    ColocatedMemory, EngineFailure, FanOut, Faults, HeldIn, MemoryItem, MemoryMove, Payload, Prices,
    RandomFailures, Restart, ScorerStop, Survival, SwitchOrder, SyncContent, SyncStyle, SyncTime, Transfer,
    WeightSync,
};

use super::stages::speed;
use super::{Broken, Reading};
use crate::diagnostic::{Diagnostic, Span};
use crate::format::rl::Rl;
use crate::format::rl_around::{self as written, ContentWord, FanOutWord, HeldWord, StyleWord, SurvivalWord};
use crate::read::{Count, Key, OneOrList, Real, Word};

/// How new weights reach the engines.
pub(super) fn sync(rl: &Rl, reading: &mut Reading<'_, '_>) -> Result<WeightSync, Broken> {
    let (sync, span) = match &rl.sync {
        Key::Given(sync, span) => (sync, *span),
        Key::Absent | Key::Broken => return Err(Broken),
    };
    let time = match (&sync.time, &sync.transfer) {
        (Key::Broken, _) | (_, Key::Broken) => return Err(Broken),
        (Key::Given(time, _), Key::Absent) => SyncTime::Fixed(*time),
        (Key::Absent, Key::Given(transfer, span)) => {
            SyncTime::Transfer(self::transfer(transfer, *span, reading)?)
        }
        (Key::Absent, Key::Absent) => {
            let message = "`[rl.sync]` needs a `time` or a `transfer`";
            return Err(reading.refuse(span, message, "write `time = \"4 s\"`"));
        }
        (Key::Given(_, time), Key::Given(_, transfer)) => {
            let message = "`[rl.sync]` has both a `time` and a `transfer`";
            let problem = Diagnostic::new(*transfer, message).related(Some(*time), "the time");
            reading.problems.push(problem.help("leave out one of them"));
            return Err(Broken);
        }
    };
    Ok(WeightSync {
        time,
        style: match sync.style.or(Word(StyleWord::Blocking)).ok_or(Broken)?.0 {
            StyleWord::Blocking => SyncStyle::Blocking,
            StyleWord::Staggered => SyncStyle::Staggered,
        },
        speed: speed(&sync.speed, "rl.sync.speed", reading)?,
    })
}

fn transfer(
    written: &written::Transfer,
    span: Span,
    reading: &mut Reading<'_, '_>,
) -> Result<Transfer, Broken> {
    let common = match &written.common {
        Key::Broken => return Err(Broken),
        Key::Given(bytes, _) => *bytes,
        Key::Absent => weights(span, reading)?,
    };
    let payload = Payload {
        common,
        experts: written.experts.or(Bytes::ZERO).ok_or(Broken)?,
        expert_count: written.expert_count.or(Count(1)).ok_or(Broken)?.0,
        ranks: written.ranks.or(Count(1)).ok_or(Broken)?.0,
    };
    Ok(Transfer {
        payload,
        content: match written.content.or(Word(ContentWord::Whole)).ok_or(Broken)?.0 {
            ContentWord::Whole => SyncContent::Whole,
            ContentWord::OwnShards => SyncContent::OwnShards,
        },
        fan_out: match written.fan_out.or(Word(FanOutWord::Unicast)).ok_or(Broken)?.0 {
            FanOutWord::Unicast => FanOut::Unicast,
            FanOutWord::Broadcast => FanOut::Broadcast,
        },
        send: *written.send.get().ok_or(Broken)?,
        receive: optional(&written.receive)?,
        setup: written.setup.or(Duration::ZERO).ok_or(Broken)?,
    })
}

/// The weights of the model in BF16.
fn weights(span: Span, reading: &mut Reading<'_, '_>) -> Result<Bytes, Broken> {
    let Some(decoder) = reading.models.decoder? else {
        let message = "`[rl.sync.transfer]`: nothing says how large the weights are";
        return Err(reading.refuse(span, message, "write `common = \"16 GB\"`, or `[model]`"));
    };
    let bytes = decoder.parameters().ok().and_then(|count| count.checked_mul(WEIGHT_BYTES));
    bytes.map(Bytes::new).ok_or(Broken)
}

fn optional<T: Copy>(key: &Key<T>) -> Result<Option<T>, Broken> {
    if key.is_broken() { Err(Broken) } else { Ok(key.get().copied()) }
}

/// What lies in the memory of colocated devices.
pub(super) fn memory(rl: &Rl, reading: &mut Reading<'_, '_>) -> Result<Option<ColocatedMemory>, Broken> {
    let Some((memory, span)) = rl.memory.given()? else {
        return Ok(None);
    };
    let (written, items_at) = match &memory.items {
        Key::Given(items, span) => (items, *span),
        Key::Absent | Key::Broken => return Err(Broken),
    };
    let names: Vec<&str> = written.iter().filter_map(|item| item.name.get()).map(String::as_str).collect();
    if let Some(twice) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
        let message = format!("`rl.memory.items`: two items are called `{}`", names[twice]);
        return Err(reading.refuse(items_at, message, "give each its own `name`"));
    }
    let items = written.iter().map(|item| memory_item(item, &names, reading));
    let items = items.collect::<Result<Vec<_>, _>>();
    let order = match (&memory.to_rollout, &memory.to_training) {
        (Key::Broken, _) | (_, Key::Broken) => return Err(Broken),
        (Key::Absent, Key::Absent) => SwitchOrder::LowestPeak,
        (Key::Given(to_rollout, rollout_at), Key::Given(to_training, training_at)) => {
            let to_rollout = moves(to_rollout, &names, *rollout_at, reading);
            let to_training = moves(to_training, &names, *training_at, reading);
            SwitchOrder::Given { to_rollout: to_rollout?, to_training: to_training? }
        }
        _ => {
            let message = "`[rl.memory]` gives the moves of one switch and not of the other";
            return Err(reading.refuse(
                span,
                message,
                "write both `to_rollout` and `to_training`, or neither",
            ));
        }
    };
    Ok(Some(ColocatedMemory { items: items?, capacity: *memory.capacity.get().ok_or(Broken)?, order }))
}

fn memory_item(
    item: &written::MemoryItem,
    names: &[&str],
    reading: &mut Reading<'_, '_>,
) -> Result<MemoryItem, Broken> {
    let read_from = match &item.read_from {
        Key::Absent => None,
        Key::Broken => return Err(Broken),
        Key::Given(name, span) => Some(numbered(name, names, "item", *span, reading)?),
    };
    Ok(MemoryItem {
        name: item.name.get().ok_or(Broken)?.clone(),
        bytes: *item.bytes.get().ok_or(Broken)?,
        held: match item.held.get().ok_or(Broken)?.0 {
            HeldWord::Training => HeldIn::Training,
            HeldWord::Rollout => HeldIn::Rollout,
            HeldWord::Both => HeldIn::Both,
        },
        read_from,
        rate: optional::<Rate>(&item.rate)?,
    })
}

/// The number of what a name stands for.
fn numbered(
    name: &str,
    names: &[&str],
    what: &str,
    span: Span,
    reading: &mut Reading<'_, '_>,
) -> Result<usize, Broken> {
    names.iter().position(|other| *other == name).ok_or_else(|| {
        let list: Vec<String> = names.iter().map(|name| format!("`\"{name}\"`")).collect();
        let help = match list.len() {
            0 => "there are none".to_owned(),
            _ => format!("there are {}", list.join(", ")),
        };
        reading.refuse(span, format!("there is no {what} called `{name}`"), help)
    })
}

fn moves(
    written: &[written::Move],
    names: &[&str],
    span: Span,
    reading: &mut Reading<'_, '_>,
) -> Result<Vec<MemoryMove>, Broken> {
    let mut moves = Vec::new();
    for one in written {
        moves.push(match (&one.load, &one.release) {
            (Key::Given(name, at), Key::Absent) => {
                MemoryMove::Load(numbered(name, names, "item", *at, reading)?)
            }
            (Key::Absent, Key::Given(name, at)) => {
                MemoryMove::Release(numbered(name, names, "item", *at, reading)?)
            }
            (Key::Broken, _) | (_, Key::Broken) => return Err(Broken),
            _ => {
                let message = "`rl.memory`: expected either `load` or `release` in each move";
                return Err(reading.refuse(span, message, "write `{ load = \"KV cache\" }`"));
            }
        });
    }
    Ok(moves)
}

/// What breaks.
pub(super) fn faults(rl: &Rl, reading: &mut Reading<'_, '_>) -> Result<Faults, Broken> {
    let Some((faults, _)) = rl.faults.given()? else {
        return Ok(Faults::none());
    };
    let pools = rl.scoring.get().map_or(&[][..], Vec::as_slice);
    let pools: Vec<&str> = pools.iter().filter_map(|pool| pool.name.get()).map(String::as_str).collect();
    Ok(Faults {
        engine_failures: each(&faults.engines, engine_failure)?,
        random_engine_failures: match &faults.random {
            Key::Absent => None,
            Key::Broken => return Err(Broken),
            Key::Given(random, _) => Some(RandomFailures {
                mean_time: *random.mean_time.get().ok_or(Broken)?,
                down: *random.down.get().ok_or(Broken)?,
                responses: survival(&random.responses)?,
            }),
        },
        mean_time_to_interruption: optional(&faults.mean_time_to_interruption)?,
        scorer_stops: each(&faults.scorers, |stop| scorer_stop(stop, &pools, reading))?,
        restarts: each(&faults.restarts, restart)?,
    })
}

fn each<W, T>(key: &Key<Vec<W>>, read: impl FnMut(&W) -> Result<T, Broken>) -> Result<Vec<T>, Broken> {
    match key {
        Key::Absent => Ok(Vec::new()),
        Key::Broken => Err(Broken),
        Key::Given(list, _) => list.iter().map(read).collect(),
    }
}

fn instant(key: &Key<Duration>) -> Result<Time, Broken> {
    key.get().map(|at| Time::from_nanos(at.as_nanos())).ok_or(Broken)
}

fn survival(key: &Key<Word<SurvivalWord>>) -> Result<Survival, Broken> {
    Ok(match key.or(Word(SurvivalWord::Lost)).ok_or(Broken)?.0 {
        SurvivalWord::Lost => Survival::Lost,
        SurvivalWord::Kept => Survival::Kept,
    })
}

fn engine_failure(written: &written::EngineFailure) -> Result<EngineFailure, Broken> {
    Ok(EngineFailure {
        engine: *written.engine.get().ok_or(Broken)?,
        at: instant(&written.at)?,
        down: *written.down.get().ok_or(Broken)?,
        responses: survival(&written.responses)?,
    })
}

fn scorer_stop(
    written: &written::ScorerStop,
    pools: &[&str],
    reading: &mut Reading<'_, '_>,
) -> Result<ScorerStop, Broken> {
    let pool = match &written.pool {
        Key::Given(name, span) => numbered(name, pools, "scoring pool", *span, reading)?,
        Key::Absent | Key::Broken => return Err(Broken),
    };
    Ok(ScorerStop { pool, at: instant(&written.at)?, down: optional(&written.down)? })
}

fn restart(written: &written::Restart) -> Result<Restart, Broken> {
    Ok(Restart {
        at: instant(&written.at)?,
        down: *written.down.get().ok_or(Broken)?,
        rollout: survival(&written.rollout)?,
    })
}

/// What the pools cost.
pub(super) fn prices(rl: &Rl, reading: &mut Reading<'_, '_>) -> Result<Option<Prices>, Broken> {
    let Some((prices, _)) = rl.prices.given()? else {
        return Ok(None);
    };
    let pools = rl.scoring.get().map_or(0, Vec::len);
    let worker_hour = match &prices.worker {
        Key::Absent => vec![0.0; pools],
        Key::Broken => return Err(Broken),
        Key::Given(OneOrList::One(price), _) => vec![price.0; pools],
        Key::Given(OneOrList::List(list), _) if list.len() == pools => {
            list.iter().map(|price| price.0).collect()
        }
        Key::Given(OneOrList::List(list), span) => {
            let message = format!(
                "`rl.prices.worker`: expected {pools} values, one a scoring pool, found {}",
                list.len()
            );
            return Err(reading.refuse(*span, message, "write one value for all, or one a pool"));
        }
    };
    Ok(Some(Prices {
        engine_hour: prices.engine.get().ok_or(Broken)?.0,
        trainer_hour: prices.trainer.or(Real(0.0)).ok_or(Broken)?.0,
        worker_hour,
    }))
}
