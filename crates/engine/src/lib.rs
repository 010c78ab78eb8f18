//! A small discrete-event engine: the one mechanism under every pipestep simulation.
//!
//! **A simulation is a queue and a world.** An [`EventQueue`] holds what will happen, ordered by
//! (time, class, sequence): a total order, so a run never depends on the queue's insides. A [`World`]
//! reacts to one event at a time, changes its own state, and schedules later events. [`run`] is the loop
//! between them, and nothing else advances time.
//!
//! ```
//! use pipestep_engine::{Class, Duration, EventQueue, HeapQueue, Time, World, run};
//!
//! /// Counts the ticks of a clock until a given instant.
//! struct Clock { ticks: u32, until: Time }
//!
//! impl World<HeapQueue<()>> for Clock {
//!     type Event = ();
//!     type Error = pipestep_engine::Overflow;
//!
//!     fn handle(&mut self, now: Time, (): (), queue: &mut HeapQueue<()>) -> Result<(), Self::Error> {
//!         self.ticks += 1;
//!         let next = now.after(Duration::from_nanos(250))?;
//!         if next <= self.until {
//!             queue.schedule(next, Class(0), ());
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let mut clock = Clock { ticks: 0, until: Time::from_nanos(1_000) };
//! let mut queue = HeapQueue::new();
//! queue.schedule(Time::ZERO, Class(0), ());
//! assert_eq!(run(&mut clock, &mut queue)?, Time::from_nanos(1_000));
//! assert_eq!(clock.ticks, 5);
//! # Ok::<(), pipestep_engine::Overflow>(())
//! ```
//!
//! Invariants of this crate:
//!
//! * time is integer nanoseconds, memory integer bytes; an overflow is an error ([`Overflow`]), never a wrap;
//! * the same calls give the same results on every machine: no clock, no hash order, no floats;
//! * what is recorded is chosen by type ([`Recorder`], [`Curve`]): what is off costs nothing.
//!
//! Deliberately absent: anything about training (ranks, micro-batches, schedules), files, printing, threads.

mod bytes;
mod curve;
mod ledger;
mod owner_queue;
mod queue;
mod random;
mod resource;
mod shared;
mod time;
mod timeline;
mod world;

pub use bytes::{Bytes, Rate};
pub use curve::{Curve, Level, NoCurve, TotalCurve, Totals};
pub use ledger::{LARGEST_LEVEL, Ledger, LedgerError, Peak};
pub use owner_queue::OwnerQueue;
pub use queue::{Class, EventId, EventQueue, HeapQueue, MovingQueue, Packed, PackedQueue};
pub use random::Streams;
pub use resource::Serial;
pub use shared::Shared;
pub use time::{Duration, Overflow, Time};
pub use timeline::{Interval, NoRecord, Recorder, Timeline, Tracks};
pub use world::{World, run};
