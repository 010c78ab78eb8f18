//! The queues against a sorted list, under random schedules, moves and cancellations.

use pipestep_engine::{
    Class, Duration, EventId, EventQueue, HeapQueue, MovingQueue, OwnerQueue, Packed, PackedQueue, Time,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Call {
    Schedule { at: u64, class: u8 },
    Reschedule { which: usize, at: u64, class: u8 },
    Cancel { which: usize },
    Next,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        4 => (0_u64..20, 0_u8..3).prop_map(|(at, class)| Call::Schedule { at, class }),
        2 => (0_usize..50, 0_u64..20, 0_u8..3).prop_map(|(which, at, class)| Call::Reschedule { which, at, class }),
        1 => (0_usize..50).prop_map(|which| Call::Cancel { which }),
        3 => Just(Call::Next),
    ];
    prop::collection::vec(call, 0..200)
}

/// The naive queue: a list of (time, class, sequence, event), searched from end to end.
#[derive(Default)]
struct Naive {
    pending: Vec<(u64, u8, u64, usize)>,
    sequence: u64,
}

impl Naive {
    fn put(&mut self, at: u64, class: u8, event: usize) {
        self.sequence += 1;
        self.pending.push((at, class, self.sequence, event));
    }

    fn remove(&mut self, event: usize) -> bool {
        let before = self.pending.len();
        self.pending.retain(|entry| entry.3 != event);
        self.pending.len() < before
    }

    fn next(&mut self) -> Option<(Time, usize)> {
        let first = *self.pending.iter().min()?;
        self.pending.retain(|entry| *entry != first);
        Some((Time::from_nanos(first.0), first.3))
    }
}

proptest! {
    #[test]
    fn the_moving_queue_agrees_with_a_sorted_list(calls in calls()) {
        let (mut queue, mut naive) = (MovingQueue::new(), Naive::default());
        let mut ids: Vec<EventId> = Vec::new();
        for call in calls {
            match call {
                Call::Schedule { at, class } => {
                    naive.put(at, class, ids.len());
                    ids.push(queue.schedule_movable(Time::from_nanos(at), Class(class), ids.len()));
                }
                Call::Reschedule { which, at, class } if !ids.is_empty() => {
                    let event = which % ids.len();
                    let pending = naive.remove(event);
                    if pending {
                        naive.put(at, class, event);
                    }
                    prop_assert_eq!(queue.reschedule(ids[event], Time::from_nanos(at), Class(class)), pending);
                }
                Call::Cancel { which } if !ids.is_empty() => {
                    let event = which % ids.len();
                    let expected = naive.remove(event).then_some(event);
                    prop_assert_eq!(queue.cancel(ids[event]), expected);
                }
                Call::Next => prop_assert_eq!(queue.next(), naive.next()),
                Call::Reschedule { .. } | Call::Cancel { .. } => {}
            }
            prop_assert_eq!(queue.len(), naive.pending.len());
            prop_assert_eq!(queue.peek_time().map(Time::as_nanos), naive.pending.iter().min().map(|entry| entry.0));
        }
    }

    #[test]
    fn the_heap_queue_agrees_with_a_sorted_list(calls in calls()) {
        let (mut queue, mut naive) = (HeapQueue::new(), Naive::default());
        let mut scheduled = 0;
        for call in calls {
            if let Call::Schedule { at, class } = call {
                naive.put(at, class, scheduled);
                queue.schedule(Time::from_nanos(at), Class(class), scheduled);
                scheduled += 1;
            } else {
                prop_assert_eq!(queue.next(), naive.next());
            }
            prop_assert_eq!(queue.peek_time().map(Time::as_nanos), naive.pending.iter().min().map(|entry| entry.0));
        }
    }

    #[test]
    fn the_packed_queue_agrees_with_a_sorted_list(calls in calls()) {
        let (mut queue, mut naive) = (PackedQueue::new(), Naive::default());
        let mut scheduled = 0;
        for call in calls {
            if let Call::Schedule { at, class } = call {
                naive.put(at, class % 4, scheduled);
                queue.schedule(Time::from_nanos(at), Class(class % 4), Number(scheduled as u32));
                scheduled += 1;
            } else {
                prop_assert_eq!(queue.next().map(|(at, number)| (at, number.0 as usize)), naive.next());
            }
            prop_assert_eq!(queue.peek_time().map(Time::as_nanos), naive.pending.iter().min().map(|entry| entry.0));
        }
    }

    #[test]
    fn the_owner_queue_agrees_with_a_sorted_list(
        owners in prop_oneof![1_u16..10, 1_u16..200, Just(u16::MAX)],
        ahead in prop_oneof![Just(0_u64), 1_u64..100, 1_u64..1 << 40],
        reach in prop_oneof![1_u64..4, 1_u64..100, 1_u64..1 << 16, 1_u64..1 << 38],
        runs in prop::collection::vec(prop::collection::vec((any::<u16>(), any::<u64>()), 0..200), 1..3),
    ) {
        let mut queue = OwnerQueue::new();
        for calls in runs {
            queue.reset(usize::from(owners), Duration::from_nanos(ahead));
            let (mut naive, mut now) = (std::collections::BTreeMap::new(), 0);
            for (number, delay) in calls {
                let owner = number % owners;
                if number % 3 > 0 && !naive.contains_key(&owner) {
                    let at = now + delay % reach;
                    naive.insert(owner, at);
                    queue.schedule(Time::from_nanos(at), Class(0), owner);
                } else {
                    let first = naive.iter().map(|(&owner, &at)| (at, owner)).min();
                    first.map(|(_, owner)| naive.remove(&owner));
                    prop_assert_eq!(queue.next(), first.map(|(at, owner)| (Time::from_nanos(at), owner)));
                    now = first.map_or(now, |(at, _)| at);
                }
                prop_assert_eq!(queue.peek_time().map(Time::as_nanos), naive.values().copied().min());
            }
        }
    }

    #[test]
    fn events_of_the_whole_time_range_come_in_order(times in prop::collection::vec(any::<u64>(), 0..50)) {
        let mut queue = HeapQueue::new();
        for &at in &times {
            queue.schedule(Time::from_nanos(at), Class(0), at);
        }
        let mut sorted = times;
        sorted.sort_unstable();
        let drained: Vec<u64> = std::iter::from_fn(|| queue.next()).map(|(_, event)| event).collect();
        prop_assert_eq!(drained, sorted);
    }
}

/// An event of a packed queue.
#[derive(Clone, Copy, Debug)]
struct Number(u32);

impl Packed for Number {
    fn pack(self) -> u32 {
        self.0
    }

    fn unpack(number: u32) -> Self {
        Self(number)
    }
}
