//! What will happen, in a total order: (time, class, sequence).
//!
//! Several queues behind one interface. [`HeapQueue`] is a binary heap over one packed 128-bit key, for worlds
//! whose events never move once scheduled; [`PackedQueue`] is the same for events that fit into the key, which
//! halves what the heap moves about; [`crate::OwnerQueue`] needs no heap where each owner waits for one event and time
//! never runs back.
//! [`MovingQueue`] sits on the `priority-queue` crate, whose keyed change is what bandwidth-shared links,
//! failures and evictions need; it can [`reschedule`] and [`cancel`] any pending event in O(log n). For the same calls
//! all hand out the same events (a property test compares each with a sorted list), so the choice between them is one
//! of speed alone.
//!
//! [`reschedule`]: MovingQueue::reschedule
//! [`cancel`]: MovingQueue::cancel

use std::borrow::Borrow;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use priority_queue::PriorityQueue;
use rustc_hash::FxBuildHasher;

use crate::Time;

/// Which of the events of one instant comes first: the lower class. Within a class, the one scheduled first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(pub u8);

/// Names one pending event of a [`MovingQueue`]; never used again once that event is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(u64);

/// Pending events, handed out in the order (time, class, sequence).
pub trait EventQueue<E> {
    /// Adds an event at instant `at`.
    fn schedule(&mut self, at: Time, class: Class, event: E);

    /// Removes and returns the first event, with its instant.
    fn next(&mut self) -> Option<(Time, E)>;

    /// The instant of the first event.
    fn peek_time(&self) -> Option<Time>;
}

/// A binary heap whose least entry comes first.
///
/// In the steady state nothing is allocated. The entry that was taken last keeps its place at the top until the next
/// call, since most reactions to an event schedule one more: taking its place costs half of what removing one and
/// adding another does.
#[derive(Clone, Debug)]
struct LazyHeap<T> {
    heap: BinaryHeap<Reverse<T>>,
    /// Whether the top has been taken.
    top_is_gone: bool,
}

impl<T: Copy + Ord> LazyHeap<T> {
    const fn new() -> Self {
        Self { heap: BinaryHeap::new(), top_is_gone: false }
    }

    fn clear(&mut self) {
        self.heap.clear();
        self.top_is_gone = false;
    }

    #[inline]
    fn put(&mut self, entry: T) {
        if !self.top_is_gone {
            self.heap.push(Reverse(entry));
        } else if let Some(mut top) = self.heap.peek_mut() {
            *top = Reverse(entry);
            self.top_is_gone = false;
        }
    }

    #[inline]
    fn take(&mut self) -> Option<T> {
        if self.top_is_gone {
            self.heap.pop();
            self.top_is_gone = false;
        }
        let &Reverse(top) = self.heap.peek()?;
        self.top_is_gone = true;
        Some(top)
    }

    #[inline]
    fn first(&self) -> Option<T> {
        // Under a top that is gone, the next one is the better of its two children.
        let skipped = usize::from(self.top_is_gone);
        let left = self.heap.as_slice().get(skipped..).unwrap_or_default();
        left.iter().take(1 + skipped).map(|&Reverse(entry)| entry).min()
    }
}

/// A queue for events that never move: a binary heap over a packed key. `schedule` and `next` are O(log n) without
/// hashing.
#[derive(Clone, Debug)]
pub struct HeapQueue<E> {
    heap: LazyHeap<HeapEntry<E>>,
    sequence: u64,
}

/// An event under its key, `time << 64 | class << 56 | sequence`. Only the key takes part in comparisons: one integer,
/// so one branch.
#[derive(Clone, Copy, Debug)]
struct HeapEntry<E> {
    key: u128,
    event: E,
}

impl<E: Copy> HeapQueue<E> {
    /// An empty queue.
    pub const fn new() -> Self {
        Self { heap: LazyHeap::new(), sequence: 0 }
    }

    /// Forgets all pending events and keeps the memory for the next run.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.sequence = 0;
    }
}

impl<E: Copy> Default for HeapQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> EventQueue<E> for HeapQueue<E> {
    #[inline]
    fn schedule(&mut self, at: Time, class: Class, event: E) {
        let key = u128::from(at.as_nanos()) << 64 | u128::from(class.0) << 56 | u128::from(self.sequence);
        self.sequence += 1;
        debug_assert!(self.sequence < 1 << 56, "more than 2^56 events in one run");
        self.heap.put(HeapEntry { key, event });
    }

    #[inline]
    fn next(&mut self) -> Option<(Time, E)> {
        self.heap.take().map(|entry| (time_of(entry.key), entry.event))
    }

    #[inline]
    fn peek_time(&self) -> Option<Time> {
        self.heap.first().map(|entry| time_of(entry.key))
    }
}

const fn time_of(key: u128) -> Time {
    Time::from_nanos((key >> 64) as u64)
}

impl<E> PartialEq for HeapEntry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<E> Eq for HeapEntry<E> {}

impl<E> PartialOrd for HeapEntry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for HeapEntry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

/// An event that fits into 32 bits.
pub trait Packed: Copy {
    /// The event as a number.
    fn pack(self) -> u32;

    /// The event that has this number.
    fn unpack(number: u32) -> Self;
}

/// Owners by number.
impl Packed for u16 {
    #[inline]
    fn pack(self) -> u32 {
        u32::from(self)
    }

    #[inline]
    fn unpack(number: u32) -> Self {
        number as Self
    }
}

/// A queue for events that never move and fit into the key: 16 bytes for each pending event.
///
/// Takes classes 0 to 3, and 2^30 events between two calls of [`PackedQueue::clear`].
#[derive(Clone, Debug)]
pub struct PackedQueue<E> {
    /// `time << 64 | class << 62 | sequence << 32 | event`.
    heap: LazyHeap<u128>,
    sequence: u32,
    events: PhantomData<E>,
}

impl<E> PackedQueue<E> {
    /// An empty queue.
    pub const fn new() -> Self {
        Self { heap: LazyHeap::new(), sequence: 0, events: PhantomData }
    }

    /// Forgets all pending events and keeps the memory for the next run.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.sequence = 0;
    }
}

impl<E> Default for PackedQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Packed> EventQueue<E> for PackedQueue<E> {
    #[inline]
    fn schedule(&mut self, at: Time, class: Class, event: E) {
        debug_assert!(class.0 < 4, "classes of a packed queue are 0 to 3");
        debug_assert!(self.sequence < 1 << 30, "more than 2^30 events in one run");
        let place = u64::from(class.0) << 62 | u64::from(self.sequence) << 32 | u64::from(event.pack());
        self.sequence += 1;
        self.heap.put(u128::from(at.as_nanos()) << 64 | u128::from(place));
    }

    #[inline]
    fn next(&mut self) -> Option<(Time, E)> {
        self.heap.take().map(|key| (time_of(key), E::unpack(key as u32)))
    }

    #[inline]
    fn peek_time(&self) -> Option<Time> {
        self.heap.first().map(time_of)
    }
}

/// A queue whose pending events can be moved and cancelled.
#[derive(Clone)]
pub struct MovingQueue<E> {
    pending: PriorityQueue<MovingEntry<E>, Reverse<(Time, Class, u64)>, FxBuildHasher>,
    sequence: u64,
}

/// An event under the identity that it is looked up by.
#[derive(Clone, Debug)]
struct MovingEntry<E> {
    id: EventId,
    event: E,
}

impl<E> MovingQueue<E> {
    /// An empty queue.
    pub fn new() -> Self {
        Self { pending: PriorityQueue::with_default_hasher(), sequence: 0 }
    }

    /// Adds an event like [`EventQueue::schedule`] and returns the name to move or cancel it by.
    pub fn schedule_movable(&mut self, at: Time, class: Class, event: E) -> EventId {
        let id = EventId(self.next_sequence());
        self.pending.push(MovingEntry { id, event }, Reverse((at, class, id.0)));
        id
    }

    /// Moves a pending event to another instant and class. Among its equals it then counts as scheduled
    /// last. Returns whether it was still pending.
    pub fn reschedule(&mut self, id: EventId, at: Time, class: Class) -> bool {
        let sequence = self.next_sequence();
        self.pending.change_priority(&id, Reverse((at, class, sequence))).is_some()
    }

    /// Removes a pending event and returns it, or `None` if it has already happened or been cancelled.
    pub fn cancel(&mut self, id: EventId) -> Option<E> {
        self.pending.remove(&id).map(|(entry, _)| entry.event)
    }

    /// What is pending, in no order: for worlds that look ahead. Of two events at one instant and of one class the
    /// one with the lower name comes first, unless one of them has been moved.
    pub fn pending(&self) -> impl Iterator<Item = (Time, EventId, &E)> {
        self.pending.iter().map(|(entry, Reverse((at, _, _)))| (*at, entry.id, &entry.event))
    }

    /// How many events are pending.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

impl<E: fmt::Debug> fmt::Debug for MovingQueue<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.pending.iter()).finish()
    }
}

impl<E> Default for MovingQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> EventQueue<E> for MovingQueue<E> {
    fn schedule(&mut self, at: Time, class: Class, event: E) {
        self.schedule_movable(at, class, event);
    }

    fn next(&mut self) -> Option<(Time, E)> {
        self.pending.pop().map(|(entry, Reverse((at, _, _)))| (at, entry.event))
    }

    fn peek_time(&self) -> Option<Time> {
        self.pending.peek().map(|(_, Reverse((at, _, _)))| *at)
    }
}

impl<E> PartialEq for MovingEntry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl<E> Eq for MovingEntry<E> {}

impl<E> Hash for MovingEntry<E> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl<E> Borrow<EventId> for MovingEntry<E> {
    fn borrow(&self) -> &EventId {
        &self.id
    }
}
