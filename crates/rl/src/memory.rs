//! Memory of colocated devices: what each phase holds, and the loads and releases that lead from one to the
//! other.
//!
//! One idea: a switch is an ordered list of moves on the device's ledger, and its order decides the peak. A
//! load may need another item in memory to read from (rollout weights are taken from the training state); the
//! order with the lowest peak under such needs is found by going through all sets of moves already made.
//!
//! Deliberately absent: fragmentation, and moves that overlap in time.

use pipestep_engine::{Bytes, Curve, Duration, Ledger, Level, Overflow, Rate, Time};

use crate::{Field, RlError};

/// Moves a switch may have for its best order to be searched (all sets of them are looked at).
const MOST_MOVES: usize = 16;

/// What lies in the memory of a colocated device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColocatedMemory {
    /// Everything that is ever there.
    pub items: Vec<MemoryItem>,
    /// Memory of a device.
    pub capacity: Bytes,
    /// In which order a switch makes its moves.
    pub order: SwitchOrder,
}

/// Something that lies in memory during one phase or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryItem {
    /// Its name in reports: training state, rollout weights, KV pool, common.
    pub name: String,
    /// Its size.
    pub bytes: Bytes,
    /// In which phase it is there.
    pub held: HeldIn,
    /// The item (by number) that must be in memory while this one is loaded.
    pub read_from: Option<usize>,
    /// How fast it is loaded and released; `None`: in no time.
    pub rate: Option<Rate>,
}

/// In which phase an item is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldIn {
    /// Only while training.
    Training,
    /// Only during rollout.
    Rollout,
    /// Always.
    Both,
}

/// In which order a switch makes its moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchOrder {
    /// The one with the lowest peak; of several, the first in the order of the items.
    LowestPeak,
    /// As written.
    Given {
        /// From training to rollout.
        to_rollout: Vec<MemoryMove>,
        /// From rollout to training.
        to_training: Vec<MemoryMove>,
    },
}

/// One step of a switch; items by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryMove {
    /// The item comes into memory; its bytes count from the start.
    Load(usize),
    /// The item leaves memory; its bytes count until the end.
    Release(usize),
}

/// What the memory of colocated devices goes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryOutcome {
    /// Held while training.
    pub training: Bytes,
    /// Held during rollout.
    pub rollout: Bytes,
    /// From training to rollout.
    pub to_rollout: SwitchPlan,
    /// From rollout to training.
    pub to_training: SwitchPlan,
    /// The highest level of all.
    pub peak: Bytes,
    /// Memory of the device.
    pub capacity: Bytes,
    /// Whether the peak is at most the capacity.
    pub fits: bool,
}

/// One switch, step by step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchPlan {
    /// Its moves, each with the bytes in memory after it.
    pub moves: Vec<(MemoryMove, Bytes)>,
    /// The highest level, the phases before and after included.
    pub peak: Bytes,
    /// How long the moves take, one after the other.
    pub time: Duration,
}

impl ColocatedMemory {
    /// Both switches in the order given or found.
    ///
    /// # Errors
    /// [`RlError::Refused`] for an order that contradicts the phases or the needs, [`RlError::TooMany`]
    /// for more moves than can be searched, [`RlError::Overflow`].
    pub fn plan(&self) -> Result<MemoryOutcome, RlError> {
        let to_rollout = Switch::new(self, "rollout", HeldIn::Training, HeldIn::Rollout)?.plan()?;
        let to_training = Switch::new(self, "training", HeldIn::Rollout, HeldIn::Training)?.plan()?;
        let peak = to_rollout.peak.max(to_training.peak);
        Ok(MemoryOutcome {
            training: self.held_in(HeldIn::Training)?,
            rollout: self.held_in(HeldIn::Rollout)?,
            to_rollout,
            to_training,
            peak,
            capacity: self.capacity,
            fits: peak <= self.capacity,
        })
    }

    fn held_in(&self, phase: HeldIn) -> Result<Bytes, Overflow> {
        self.items
            .iter()
            .filter(|item| item.held == phase || item.held == HeldIn::Both)
            .try_fold(Bytes::ZERO, |sum, item| sum.plus(item.bytes))
    }
}

/// A switch to be planned.
struct Switch<'a> {
    memory: &'a ColocatedMemory,
    to: &'static str,
    from_phase: HeldIn,
    /// Its moves in the order of the items.
    moves: Vec<MemoryMove>,
    start: Bytes,
}

impl<'a> Switch<'a> {
    fn new(
        memory: &'a ColocatedMemory,
        to: &'static str,
        from_phase: HeldIn,
        to_phase: HeldIn,
    ) -> Result<Self, RlError> {
        let moves = memory.items.iter().enumerate().filter_map(|(index, item)| {
            if item.held == to_phase {
                Some(MemoryMove::Load(index))
            } else if item.held == from_phase {
                Some(MemoryMove::Release(index))
            } else {
                None
            }
        });
        Ok(Self { memory, to, from_phase, moves: moves.collect(), start: memory.held_in(from_phase)? })
    }

    fn plan(&self) -> Result<SwitchPlan, RlError> {
        let moves = match &self.memory.order {
            SwitchOrder::LowestPeak => self.search()?,
            SwitchOrder::Given { to_rollout, to_training } => {
                let given = if self.from_phase == HeldIn::Training { to_rollout } else { to_training };
                self.check(given)?;
                given.clone()
            }
        };
        self.carry_out(&moves)
    }

    /// Makes the moves on a ledger whose clock counts them, so that each level is seen.
    fn carry_out(&self, moves: &[MemoryMove]) -> Result<SwitchPlan, RlError> {
        let mut ledger = Ledger::<1, _>::new(Levels::default());
        ledger.change(Time::ZERO, 0, signed(i128::from(self.start.get()))?)?;
        let mut time = Duration::ZERO;
        for (made, &step) in moves.iter().enumerate() {
            let at = Time::from_nanos(made as u64 + 1);
            ledger.change(at, 0, signed(self.change(step))?)?;
            let item = self.item(step);
            if let Some(rate) = item.rate {
                time = time.plus(rate.time_for(item.bytes)?)?;
            }
        }
        let (peak, _, levels) = ledger.finish()?;
        Ok(SwitchPlan {
            moves: moves.iter().copied().zip(levels.0.into_iter().skip(1)).collect(),
            peak: peak.bytes,
            time,
        })
    }

    /// Refuses an order that misses, repeats or misplaces a move.
    fn check(&self, given: &[MemoryMove]) -> Result<(), RlError> {
        let mut made = 0_u32;
        for &step in given {
            let Some(index) = self.moves.iter().position(|&known| known == step) else {
                return Err(self.refuse(&match step {
                    MemoryMove::Load(item) => format!("item {item} is not to be loaded in it"),
                    MemoryMove::Release(item) => format!("item {item} is not to be released in it"),
                }));
            };
            if made & (1 << index) != 0 {
                return Err(self.refuse(&format!("`{}` is moved twice", self.item(step).name)));
            }
            if !self.may_follow(made, index) {
                let reason = format!("`{}` is moved when it cannot be read", self.item(step).name);
                return Err(self.refuse(&reason));
            }
            made |= 1 << index;
        }
        if let Some(missing) = (0..self.moves.len()).find(|&index| made & (1 << index) == 0) {
            let name = &self.item(self.moves[missing]).name;
            return Err(self.refuse(&format!("`{name}` is not moved")));
        }
        Ok(())
    }

    /// The order with the lowest peak.
    fn search(&self) -> Result<Vec<MemoryMove>, RlError> {
        let count = self.moves.len();
        if count > MOST_MOVES {
            return Err(RlError::TooMany {
                field: "memory.items".into(),
                what: format!("the number of moves in the switch to {}", self.to),
                found: count as u64,
                limit: MOST_MOVES as u64,
            });
        }
        let all = (1_u32 << count) - 1;
        // best[made]: the lowest peak from there to the end, or MAX if the end cannot be reached.
        let mut best = vec![i128::MAX; 1 << count];
        for made in (0..=all).rev() {
            let next = if made == all {
                i128::MIN
            } else {
                self.next_moves(made)
                    .map(|index| best[(made | 1 << index) as usize])
                    .min()
                    .unwrap_or(i128::MAX)
            };
            best[made as usize] = next.max(self.level(made));
        }
        if best[0] == i128::MAX {
            return Err(self.refuse("no order lets every load read what it needs"));
        }
        let (mut made, mut order) = (0, Vec::with_capacity(count));
        while made != all {
            let index = self
                .next_moves(made)
                .find(|&index| best[(made | 1 << index) as usize] <= best[0])
                .expect("the lowest peak is reached by some next move");
            order.push(self.moves[index]);
            made |= 1 << index;
        }
        Ok(order)
    }

    fn next_moves(&self, made: u32) -> impl Iterator<Item = usize> + '_ {
        (0..self.moves.len()).filter(move |&index| made & (1 << index) == 0 && self.may_follow(made, index))
    }

    /// Whether the move may be made after those: what it reads from is in memory.
    fn may_follow(&self, made: u32, index: usize) -> bool {
        let MemoryMove::Load(_) = self.moves[index] else {
            return true;
        };
        let Some(source) = self.item(self.moves[index]).read_from else {
            return true;
        };
        let done = |step| {
            let place = self.moves.iter().position(|&known| known == step);
            place.map(|place| made & (1 << place) != 0)
        };
        match (done(MemoryMove::Load(source)), done(MemoryMove::Release(source))) {
            (Some(loaded), _) => loaded,
            (None, Some(released)) => !released,
            (None, None) => self.memory.items[source].held == HeldIn::Both,
        }
    }

    fn level(&self, made: u32) -> i128 {
        let steps = self.moves.iter().enumerate();
        let moved = steps.filter(|(index, _)| made & (1 << index) != 0);
        i128::from(self.start.get()) + moved.map(|(_, &step)| self.change(step)).sum::<i128>()
    }

    fn change(&self, step: MemoryMove) -> i128 {
        let bytes = i128::from(self.item(step).bytes.get());
        match step {
            MemoryMove::Load(_) => bytes,
            MemoryMove::Release(_) => -bytes,
        }
    }

    fn item(&self, step: MemoryMove) -> &MemoryItem {
        let (MemoryMove::Load(index) | MemoryMove::Release(index)) = step;
        &self.memory.items[index]
    }

    fn refuse(&self, reason: &str) -> RlError {
        // An order that is searched for is nowhere written.
        let field = match self.memory.order {
            SwitchOrder::LowestPeak => Field::from("memory"),
            SwitchOrder::Given { .. } => format!("memory.to_{}", self.to).into(),
        };
        RlError::Refused { field, reason: format!("the switch to {}: {reason}", self.to) }
    }
}

/// Bytes as the ledger takes them.
fn signed(bytes: i128) -> Result<i64, Overflow> {
    i64::try_from(bytes).map_err(|_| Overflow {
        what: "bytes",
        left: u64::try_from(bytes.unsigned_abs()).unwrap_or(u64::MAX),
        right: 0,
    })
}

/// Keeps the level after every instant, also when it has not changed.
#[derive(Default)]
struct Levels(Vec<Bytes>);

impl Curve<1> for Levels {
    fn level(&mut self, level: Level<1>) {
        self.0.push(level.accounts[0]);
    }
}
