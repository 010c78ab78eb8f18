//! A resource whose capacity is divided evenly among everything that uses it at once: storage, a link.
//!
//! Processor sharing, exactly: service is counted in fractions of a nanosecond so fine that up to sixteen
//! users get whole numbers of them. An end is rounded up to the nanosecond at which it becomes an event, so
//! a use may hold its share for less than a nanosecond too long, never too short. Which events that makes is
//! the world's business: after every change it asks [`Shared::next_end`] and moves one event of a
//! [`MovingQueue`](crate::MovingQueue) there.

use crate::{Duration, Overflow, Time};

/// Parts of a nanosecond of service: the least common multiple of 1..=16.
const PARTS: u128 = 720_720;

/// A resource shared evenly by its users, each known by a key.
#[derive(Clone, Debug)]
pub struct Shared<K> {
    users: Vec<User<K>>,
    /// Until when service has been counted.
    now: Time,
}

#[derive(Clone, Debug)]
struct User<K> {
    key: K,
    /// Service still needed, in parts of a nanosecond of the whole resource.
    left: u128,
}

impl<K: Copy + PartialEq> Shared<K> {
    /// A resource that nobody uses.
    pub const fn new() -> Self {
        Self { users: Vec::new(), now: Time::ZERO }
    }

    /// Starts a use that would take `alone` if nobody else used the resource. A key is used once at a time.
    pub fn start(&mut self, now: Time, key: K, alone: Duration) {
        self.advance(now);
        self.users.push(User { key, left: u128::from(alone.as_nanos()) * PARTS });
    }

    /// When the first of the uses under way ends if nothing changes; `None` if there is none or never.
    pub fn next_end(&self) -> Option<Time> {
        let least = self.users.iter().map(|user| user.left).min()?;
        let nanos = u64::try_from(least.div_ceil(self.share())).ok()?;
        self.now.after(Duration::from_nanos(nanos)).ok()
    }

    /// Takes out a use that has ended by `now`; of several, the one that started first.
    pub fn take_ended(&mut self, now: Time) -> Option<K> {
        self.advance(now);
        let place = self.users.iter().position(|user| user.left == 0)?;
        Some(self.users.remove(place).key)
    }

    /// Breaks off a use; returns how long the rest of it would take alone, rounded up, or `None` if the key
    /// is not in use.
    pub fn cancel(&mut self, now: Time, key: K) -> Option<Duration> {
        self.advance(now);
        let place = self.users.iter().position(|user| user.key == key)?;
        let left = self.users.remove(place).left.div_ceil(PARTS);
        // It is no longer than the length it started with, which was 64 bits.
        Some(Duration::from_nanos(left as u64))
    }

    /// The uses under way in the order in which they started, each with the service that it still needed when the
    /// last of them started or ended, in parts of a nanosecond: with the time since then the whole state.
    pub fn left(&self) -> impl Iterator<Item = (K, u128)> {
        self.users.iter().map(|user| (user.key, user.left))
    }

    /// Moves everything on by a length of time in which nobody is served: for worlds that pass over a stretch after
    /// which the uses stand as they did before.
    ///
    /// # Errors
    /// [`Overflow`] past the end of time.
    pub fn pass_over(&mut self, length: Duration) -> Result<(), Overflow> {
        self.now = self.now.after(length)?;
        Ok(())
    }

    /// Since when the uses stand as [`Shared::left`] says.
    pub const fn since(&self) -> Time {
        self.now
    }

    /// How many uses are under way.
    pub fn users(&self) -> usize {
        self.users.len()
    }

    /// Counts the service until `now`.
    fn advance(&mut self, now: Time) {
        debug_assert!(now >= self.now, "time runs backwards: {now} after {}", self.now);
        if !self.users.is_empty() {
            let served = u128::from(now.since(self.now).as_nanos()) * self.share();
            for user in &mut self.users {
                user.left = user.left.saturating_sub(served);
            }
        }
        self.now = now;
    }

    /// Parts that each user gets in a nanosecond; more than sixteen users lose less than a part each to the
    /// division, more than 720,720 get one each.
    fn share(&self) -> u128 {
        (PARTS / self.users.len().max(1) as u128).max(1)
    }
}

impl<K: Copy + PartialEq> Default for Shared<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    const fn long(nanos: u64) -> Duration {
        Duration::from_nanos(nanos)
    }

    #[test]
    fn two_uses_at_once_take_twice_as_long() {
        let mut disk = Shared::new();
        disk.start(at(0), 'a', long(10));
        disk.start(at(4), 'b', long(20));
        // The first has 6 left and gets half: until 16. The second has 14 left by then and is alone.
        assert_eq!(disk.next_end(), Some(at(16)));
        assert_eq!(disk.take_ended(at(16)), Some('a'));
        assert_eq!(disk.take_ended(at(16)), None);
        assert_eq!(disk.next_end(), Some(at(30)));
        assert_eq!(disk.cancel(at(20), 'b'), Some(long(10)));
        assert_eq!((disk.cancel(at(20), 'b'), disk.next_end(), disk.users()), (None, None, 0));
    }

    #[test]
    fn a_stretch_passed_over_serves_nobody() {
        let mut disk = Shared::new();
        disk.start(at(0), 'a', long(10));
        disk.start(at(4), 'b', long(20));
        let before: Vec<(char, u128)> = disk.left().collect();
        disk.pass_over(long(100)).unwrap();
        assert_eq!((disk.since(), disk.left().collect::<Vec<_>>()), (at(104), before));
        assert_eq!(disk.next_end(), Some(at(116)));
        assert!(disk.pass_over(long(u64::MAX)).is_err());
    }

    #[test]
    fn of_two_that_end_together_the_first_to_start_is_first() {
        let mut disk = Shared::new();
        disk.start(at(0), 'b', long(5));
        disk.start(at(0), 'a', long(5));
        assert_eq!(disk.next_end(), Some(at(10)));
        assert_eq!([disk.take_ended(at(10)), disk.take_ended(at(10))], [Some('b'), Some('a')]);
    }

    /// Ends of all uses, in order.
    fn ends(uses: &[(u64, u64)]) -> Vec<Time> {
        let mut disk = Shared::new();
        let mut starts = uses.iter().enumerate().peekable();
        let mut ends = vec![Time::MAX; uses.len()];
        loop {
            let start = starts.peek().map_or(Time::MAX, |&(_, &(start, _))| at(start));
            match disk.next_end() {
                Some(end) if end <= start => {
                    while let Some(key) = disk.take_ended(end) {
                        ends[key] = end;
                    }
                }
                _ => match starts.next() {
                    Some((key, &(start, alone))) => disk.start(at(start), key, long(alone)),
                    None => return ends,
                },
            }
        }
    }

    proptest! {
        #[test]
        fn no_service_is_lost_or_invented(
            mut uses in proptest::collection::vec((0_u64..10_000, 1_u64..5_000), 1..20)
        ) {
            uses.sort_unstable();
            let ends = ends(&uses);
            // The resource is busy exactly as long as a serial one would be, but for the rounding of each end.
            let mut free = 0;
            for &(start, alone) in &uses {
                free = free.max(start) + alone;
            }
            let last = ends.iter().max().unwrap().as_nanos();
            prop_assert!(last >= free && last <= free + uses.len() as u64, "{} {}", last, free);
            for (&(start, alone), end) in uses.iter().zip(&ends) {
                prop_assert!(end.as_nanos() >= start + alone);
            }
        }
    }
}
