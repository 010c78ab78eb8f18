//! A queue for worlds in which every owner waits for one event.

use std::num::NonZeroU64;

use crate::{Class, Duration, EventQueue, Time};

/// Buckets in a word of bits.
const PER_WORD: usize = u64::BITS as usize;

/// Words in a turn of the wheel.
const WORDS: usize = 32;

const BUCKETS: usize = WORDS * PER_WORD;

/// The mark of a key that lies on another one of its bucket.
const COVERS: u64 = 1 << 63;

/// No word.
const NEVER: u64 = u64::MAX;

/// A queue for worlds in which every owner has at most one event pending, its next one, no earlier than the event that
/// was handed out last, and all happen before [`OwnerQueue::END`]. Of several owners at one instant the lowest comes
/// first, whatever the class; an event is the number of its owner.
///
/// A wheel of buckets: each stands for a short span of time, mostly with one event or none, and has a bit that says
/// whether there is any. An event costs a few instructions, however many owners there are. And what a world schedules
/// mostly lies past the word of bits that is being handed out, so that a processor knows the next event, and can begin
/// with it, before it has done with this one; with a heap or a tree of minima it knows the next one only after that.
///
/// Keys that share a bucket are sorted when it is their turn.
#[derive(Clone, Debug)]
pub struct OwnerQueue {
    /// The logarithm of the width of a bucket in ns.
    shift: u32,
    /// The word that is being handed out; words and buckets count from instant 0.
    word: u64,
    /// Its buckets that hold keys.
    open: u64,
    /// Those of the words ahead.
    filled: [u64; WORDS],
    /// By bucket: its last key, `time << 16 | owner`, marked if it covers another one.
    tops: [u64; BUCKETS],
    /// By owner: what its key covers.
    covered: Vec<u64>,
    /// What is left of a bucket with several keys, the first key at the end.
    crowd: Vec<u64>,
    /// Keys a turn ahead or more.
    later: Vec<u64>,
    /// The word of the first of them.
    later_word: u64,
}

impl OwnerQueue {
    /// The first instant that is too late: 2^47 ns, 39 hours.
    pub const END: Time = Time::from_nanos(1 << 47);

    /// A queue without owners.
    pub const fn new() -> Self {
        Self {
            shift: 0,
            word: 0,
            open: 0,
            filled: [0; WORDS],
            tops: [0; BUCKETS],
            covered: Vec::new(),
            crowd: Vec::new(),
            later: Vec::new(),
            later_word: NEVER,
        }
    }

    /// Forgets all pending events and makes room for owners `0..owners`; keeps the memory. Most events should be
    /// scheduled no more than `ahead` before they happen: the queue is fastest then.
    pub fn reset(&mut self, owners: usize, ahead: Duration) {
        // A word for every few events, so that few share a bucket; but the wheel must reach far enough.
        let buckets = (16 * owners as u64).clamp(1, BUCKETS as u64 / 2);
        self.shift = (ahead.as_nanos() / buckets).max(1).ilog2();
        (self.word, self.open) = (0, 0);
        self.filled.fill(0);
        self.covered.resize(owners, 0);
        self.crowd.clear();
        self.later.clear();
        self.later_word = NEVER;
    }

    /// Adds the key of an event at `at`.
    #[inline]
    fn put(&mut self, at: u64, key: u64) {
        let bucket = at >> self.shift;
        let word = bucket / PER_WORD as u64;
        let ahead = word.wrapping_sub(self.word);
        if ahead.wrapping_sub(1) >= WORDS as u64 - 1 {
            return self.put_elsewhere(bucket, key);
        }
        let filled = &mut self.filled[word as usize % WORDS];
        let bit = 1 << (bucket % PER_WORD as u64);
        if *filled & bit != 0 {
            return self.cover(bucket, key);
        }
        *filled |= bit;
        self.tops[bucket as usize % BUCKETS] = key;
    }

    /// Adds a key to a bucket that has one.
    #[cold]
    fn cover(&mut self, bucket: u64, key: u64) {
        let top = &mut self.tops[bucket as usize % BUCKETS];
        self.covered[usize::from(key as u16)] = *top;
        *top = key | COVERS;
    }

    /// Adds a key to the word that is being handed out, or for later.
    #[cold]
    fn put_elsewhere(&mut self, bucket: u64, key: u64) {
        let (word, bit) = (bucket / PER_WORD as u64, 1 << (bucket % PER_WORD as u64));
        if word > self.word {
            self.later.push(key);
            self.later_word = self.later_word.min(word);
        } else if self.crowd.last().is_some_and(|&first| self.bucket(first) == bucket) {
            let place = self.crowd.partition_point(|&other| other > key);
            self.crowd.insert(place, key);
        } else if self.open & bit != 0 {
            self.cover(bucket, key);
        } else {
            self.open |= bit;
            self.tops[bucket as usize % BUCKETS] = key;
        }
    }

    /// The bucket of a key.
    const fn bucket(&self, key: u64) -> u64 {
        key >> 16 >> self.shift
    }

    /// The keys of a bucket that holds some.
    fn keys(&self, bucket: usize) -> impl Iterator<Item = u64> {
        let below = |&key: &u64| (key & COVERS != 0).then(|| self.covered[usize::from(key as u16)]);
        std::iter::successors(Some(self.tops[bucket]), below).map(|key| key & !COVERS)
    }

    /// The next word that holds keys, of those ahead.
    fn next_word(&self) -> u64 {
        let mut ahead = self.word + 1..self.word + WORDS as u64;
        ahead.find(|&word| self.filled[word as usize % WORDS] != 0).unwrap_or(NEVER)
    }

    /// Goes on to the next word that holds keys, and returns its bits.
    #[inline(never)]
    fn advance(&mut self) -> Option<NonZeroU64> {
        let mut word = self.next_word();
        if self.later_word <= word {
            if self.later.is_empty() {
                return None;
            }
            word = self.later_word;
            self.bring_near(word);
        }
        self.word = word;
        NonZeroU64::new(std::mem::take(&mut self.filled[word as usize % WORDS]))
    }

    /// Goes to just before a word that nothing comes before, and puts what is less than a turn ahead into its bucket.
    #[cold]
    fn bring_near(&mut self, word: u64) {
        self.word = word - 1;
        self.later_word = NEVER;
        for place in (0..self.later.len()).rev() {
            let key = self.later[place];
            let its_word = self.bucket(key) / PER_WORD as u64;
            if its_word - self.word < WORDS as u64 {
                self.later.swap_remove(place);
                self.put(key >> 16, key);
            } else {
                self.later_word = self.later_word.min(its_word);
            }
        }
    }

    /// Takes the first key of a bucket that holds several, of which this is the top.
    #[cold]
    fn split(&mut self, top: u64) -> u64 {
        let mut key = top;
        while key & COVERS != 0 {
            key &= !COVERS;
            self.crowd.push(key);
            key = self.covered[usize::from(key as u16)];
        }
        if let &[other] = &*self.crowd {
            self.crowd[0] = key.max(other);
            return key.min(other);
        }
        self.crowd.push(key);
        self.crowd.sort_unstable_by_key(|&key| std::cmp::Reverse(key));
        self.crowd.pop().unwrap_or(key)
    }

    /// The first key.
    #[inline]
    fn take(&mut self) -> Option<u64> {
        if let Some(key) = self.crowd.pop() {
            return Some(key);
        }
        let open = match NonZeroU64::new(self.open) {
            Some(open) => open,
            None => self.advance()?,
        };
        self.open = open.get() & (open.get() - 1);
        let bucket = self.word as usize * PER_WORD + open.trailing_zeros() as usize;
        let top = self.tops[bucket % BUCKETS];
        Some(if top & COVERS == 0 { top } else { self.split(top) })
    }
}

impl Default for OwnerQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl EventQueue<u16> for OwnerQueue {
    #[inline]
    fn schedule(&mut self, at: Time, _class: Class, owner: u16) {
        debug_assert!(at < Self::END, "{at} is too late for this queue");
        debug_assert!(at.as_nanos() >> self.shift >= self.word * PER_WORD as u64, "{at} is over");
        self.put(at.as_nanos(), at.as_nanos() << 16 | u64::from(owner));
    }

    #[inline]
    fn next(&mut self) -> Option<(Time, u16)> {
        let key = self.take()?;
        Some((Time::from_nanos(key >> 16), key as u16))
    }

    fn peek_time(&self) -> Option<Time> {
        let first = self.crowd.last().copied().or_else(|| {
            let (word, open) = match self.open {
                0 => (self.next_word(), self.filled[self.next_word() as usize % WORDS]),
                open => (self.word, open),
            };
            let bucket = word.wrapping_mul(PER_WORD as u64) + u64::from(open.trailing_zeros() % 64);
            let keys = self.keys(bucket as usize % BUCKETS).filter(|_| open != 0);
            keys.chain(self.later.iter().copied()).min()
        });
        first.map(|key| Time::from_nanos(key >> 16))
    }
}
